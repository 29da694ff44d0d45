"""The private LASSO as scikit-learn estimators: noise in the objective, or on the output.

Both solve the unnormalised problem of lasso Eq. (2), so ``lam`` is n times the ``alpha`` of
scikit-learn's ``Lasso``.

**The noise is not kept.**  Whoever has eta can undo it: output perturbation by a subtraction,
objective perturbation by conditioning on it.  A fitted estimator holds the coefficients and the
settings, no more, so that it can be pickled and handed over; ``keep_noise=True`` stores ``noise_``
for research.  For the same reason ``random_state=None`` takes fresh entropy from the operating
system, other than elsewhere in this library.  An integer is a parameter and stays on the estimator:
it makes an experiment repeatable, and a released model that carries it has no privacy noise at all.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.lasso.solver import solve_lasso

# A fit whose optimality conditions are violated by more than this share of lambda is refused.
_SOLVED = 1e-6


class ObjectivePerturbedLasso(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """LASSO with a random linear term in its objective (lasso Eq. 2).

    Minimises 1/2 ||y - X beta||^2 + lam ||beta||_1 + eta'beta + l2/2 ||beta||^2 with
    eta ~ N(0, sigma_eta^2 I).  Estimates stay sparse.  With more features than records there is no
    minimiser below the stability edge, and ``fit`` says so; ``leakscope.lasso.stability_edge``
    tells beforehand.

    Parameters
    ----------
    lam
        lambda; scikit-learn's ``alpha`` is lam / n.
    sigma_eta
        Standard deviation of the privacy noise.
    l2
        Weight of the squared norm, 0 in the paper.
    fit_intercept
        Off by default, as in the paper.  With True the columns and labels are centred by their
        means, as scikit-learn does; the means then enter ``intercept_`` without noise.
    tol
        Accepted violation of the optimality conditions, in multiples of ``lam``.
    keep_noise
        Store the noise as ``noise_``.  Never release such an estimator.
    random_state
        None draws fresh entropy.  An integer repeats the fit, and reveals the noise to whoever
        sees it.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, n_iter_
        As in scikit-learn.
    kkt_violation_
        The largest violation of the optimality conditions, before any noise on the output.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso import ObjectivePerturbedLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 200)) / 200**0.5
    >>> y = X[:, :5] @ np.full(5, 3.0) + 0.1 * rng.standard_normal(100)
    >>> model = ObjectivePerturbedLasso(lam=0.5, sigma_eta=0.1, random_state=0).fit(X, y)
    >>> bool((model.coef_[:5] > 1).all()), int((model.coef_ != 0).sum()), hasattr(model, "noise_")
    (True, 5, False)
    """

    _inside = True

    def __init__(
        self,
        lam: float = 1.0,
        sigma_eta: float = 0.1,
        *,
        l2: float = 0.0,
        fit_intercept: bool = False,
        tol: float = 1e-10,
        keep_noise: bool = False,
        random_state: Any = None,
    ) -> None:
        self.lam = lam
        self.sigma_eta = sigma_eta
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.keep_noise = keep_noise
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit with a fresh draw of the privacy noise."""
        design, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        labels = np.asarray(labels, dtype=np.float64)
        if not (np.isfinite(self.sigma_eta) and self.sigma_eta >= 0.0):
            raise InputError(f"sigma_eta must be zero or above, but it is {self.sigma_eta!r}.")
        x_mean, y_mean = np.zeros(design.shape[1]), 0.0
        if self.fit_intercept:
            x_mean, y_mean = design.mean(axis=0), float(labels.mean())
            design, labels = design - x_mean, labels - y_mean
        generator = _noise_key(self.random_state).generator()
        eta = self.sigma_eta * generator.standard_normal(design.shape[1])
        term = eta if self._inside and self.sigma_eta > 0.0 else None
        solution = solve_lasso(design, labels, self.lam, term, l2=self.l2, tol=self.tol)
        if solution.status == "unbounded":
            raise InputError(
                f"The objective has no minimiser: lam = {self.lam:g} is below the stability edge "
                f"of these {design.shape[0]} records, {design.shape[1]} features and noise of "
                f"sigma_eta = {self.sigma_eta:g}; raise lam, lower sigma_eta or set l2 above zero."
            )
        if not solution.kkt_violation <= max(_SOLVED, self.tol) * self.lam:
            raise InputError(
                f"The LASSO was not solved: the optimality conditions are violated by "
                f"{solution.kkt_violation:.1e}; scale the columns of X or raise lam."
            )
        self.coef_ = solution.coef if self._inside else solution.coef + eta
        self.intercept_ = y_mean - float(x_mean @ self.coef_)
        self.kkt_violation_ = solution.kkt_violation
        self.n_iter_ = max(solution.iterations, 1)
        if self.keep_noise:
            self.noise_ = eta
        elif hasattr(self, "noise_"):
            del self.noise_
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """(n,) X coef_ + intercept_."""
        check_is_fitted(self)
        design = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(design @ self.coef_ + self.intercept_)


class OutputPerturbedLasso(ObjectivePerturbedLasso):
    """LASSO with Gaussian noise added to its coefficients (lasso Eq. 3).

    coef_ = argmin {1/2 ||y - X beta||^2 + lam ||beta||_1 + l2/2 ||beta||^2} + eta with
    eta ~ N(0, sigma_eta^2 I).  No coefficient is zero any more.  Parameters and attributes are
    those of `ObjectivePerturbedLasso`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso import OutputPerturbedLasso
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((100, 20)), rng.standard_normal(100)
    >>> model = OutputPerturbedLasso(lam=1.0, sigma_eta=0.5, random_state=0).fit(X, y)
    >>> bool((model.coef_ != 0).all())
    True
    """

    _inside = False


def _noise_key(random_state: Any) -> Key:
    """Fresh entropy for None; otherwise as everywhere, NumPy's old ``RandomState`` included."""
    if random_state is None:
        return Key(int(np.random.SeedSequence().entropy))  # type: ignore[arg-type]
    if isinstance(random_state, np.random.RandomState):
        return Key(int(random_state.randint(2**63 - 1, dtype=np.int64)))
    return as_key(random_state)
