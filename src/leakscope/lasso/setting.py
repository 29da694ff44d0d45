"""The data model and the mechanism of the paper **lasso**, and what the limit assumes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.pair import Assumption, Provenance
from leakscope.settings.plan import LassoDesignSettings, LassoMechanism, LassoNoise
from leakscope.settings.setting import default_of

NOT_A_GUARANTEE = (
    "The on-average KL is that of a typical pair of datasets of this data model; it is not a "
    "differential-privacy guarantee, which holds for every dataset."
)

MECHANISM: LassoMechanism = default_of(LassoDesignSettings, "mechanism")
# The unit: the problem is the same at any scale of coefficients, noises and lambda together.
SIGNAL_VARIANCE = 1.0
NOISE: LassoNoise = default_of(LassoDesignSettings, "noise")

_FIELDS = ("alpha", "rho", "sigma_xi", "lam", "sigma_eta", "signal_variance")


@dataclass(frozen=True, eq=False, init=False)
class LassoSetting:
    """A private LASSO in the limit of many records and coefficients (Settings D and P).

    Features are X_mu,i ~ N(0, 1/p), coefficients are zero with probability 1 - rho and
    N(0, sigma_beta^2) otherwise, labels carry noise N(0, sigma_xi^2).  The estimate minimises
    ||y - X beta||^2/2 + lambda ||beta||_1 (Eq. 2), and the privacy noise N(0, sigma_eta^2) enters
    as a linear term eta'beta (``"objective"``) or is added to the estimate (``"output"``, Eq. 3).
    Every parameter may be an array; they broadcast together.

    Parameters
    ----------
    alpha
        n/p, records for each coefficient.
    rho
        Share of the true coefficients that are not zero.
    sigma_xi
        Standard deviation of the label noise.
    lam
        lambda, the l1 penalty.
    sigma_eta
        Standard deviation of the privacy noise; zero is the plain LASSO.
    mechanism
        Where the privacy noise enters.
    signal_variance
        sigma_beta^2, the variance of a coefficient that is not zero.
    noise
        The law of the privacy noise: ``"gaussian"``, or ``"laplace"`` of the same standard
        deviation, which Setting P allows.
    """

    alpha: FloatArray
    rho: FloatArray
    sigma_xi: FloatArray
    lam: FloatArray
    sigma_eta: FloatArray
    mechanism: LassoMechanism
    signal_variance: FloatArray
    noise: LassoNoise

    def __init__(
        self,
        alpha: ArrayLike,
        rho: ArrayLike,
        sigma_xi: ArrayLike,
        lam: ArrayLike,
        sigma_eta: ArrayLike,
        mechanism: LassoMechanism = MECHANISM,
        signal_variance: ArrayLike = SIGNAL_VARIANCE,
        noise: LassoNoise = NOISE,
    ) -> None:
        if mechanism not in get_args(LassoMechanism):
            raise InputError(f"mechanism must be objective or output, but it is {mechanism!r}.")
        if noise not in get_args(LassoNoise):
            raise InputError(f"noise must be gaussian or laplace, but it is {noise!r}.")
        given = (alpha, rho, sigma_xi, lam, sigma_eta, signal_variance)
        arrays = [_numbers(value, name) for name, value in zip(_FIELDS, given, strict=True)]
        try:
            arrays = list(np.broadcast_arrays(*arrays))
        except ValueError:
            shapes = ", ".join(
                f"{name} {array.shape}" for name, array in zip(_FIELDS, arrays, strict=True)
            )
            raise InputError(f"The parameters' shapes do not fit together: {shapes}.") from None
        for name, array in zip(_FIELDS, arrays, strict=True):
            object.__setattr__(self, name, array)
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "noise", noise)
        self._require_ranges()

    def _require_ranges(self) -> None:
        for name in ("alpha", "lam"):
            _require(getattr(self, name) > 0.0, getattr(self, name), name, "above zero")
        for name in ("sigma_xi", "sigma_eta", "signal_variance"):
            _require(getattr(self, name) >= 0.0, getattr(self, name), name, "zero or above")
        _require((self.rho >= 0.0) & (self.rho <= 1.0), self.rho, "rho", "a fraction from 0 to 1")
        silent = (self.sigma_xi == 0.0) & (self.rho * self.signal_variance == 0.0)
        if self.mechanism == "objective":
            silent = silent & (self.sigma_eta == 0.0)
        if np.any(silent):
            raise InputError(
                "With no signal (rho or signal_variance 0) and no label noise (sigma_xi 0) the "
                "labels are all zero and there is nothing to fit; set one of them above zero."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the batch of settings; () for one."""
        return self.alpha.shape

    @property
    def objective_noise(self) -> FloatArray:
        """The sd of the noise inside the objective: zero under output perturbation."""
        if self.mechanism == "objective":
            return self.sigma_eta
        return np.zeros_like(self.sigma_eta)

    def change(self, **values: Any) -> LassoSetting:
        """The same setting with some parameters replaced."""
        kept = {name: getattr(self, name) for name in (*_FIELDS, "mechanism", "noise")}
        return LassoSetting(**{**kept, **values})

    def __iter__(self) -> Iterator[LassoSetting]:
        """Each setting of the batch, alone."""
        columns = [getattr(self, name).ravel().tolist() for name in _FIELDS]
        for row in zip(*columns, strict=True):
            own = dict(zip(_FIELDS, row, strict=True))
            yield LassoSetting(**own, mechanism=self.mechanism, noise=self.noise)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {name: getattr(self, name).tolist() for name in _FIELDS}
        return {**values, "mechanism": self.mechanism, "noise": self.noise}


def _numbers(value: ArrayLike, name: str) -> FloatArray:
    try:
        # -0.0 is zero, but what is divided by it is not above zero.
        array = np.array(value, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number or an array of numbers.") from None
    _require(np.isfinite(array), array, name, "finite")
    array.setflags(write=False)
    return array


def _require(good: NDArray[np.bool_], array: FloatArray, name: str, wanted: str) -> None:
    if np.all(good):
        return
    place = tuple(int(i) for i in np.argwhere(~np.asarray(good))[0])
    where = f" at position {place[0] if len(place) == 1 else place}" if place else ""
    raise InputError(f"{name} must be {wanted}, but it is {float(array[place])!r}{where}.")


def provenance_of(setting: LassoSetting) -> Provenance:
    """Where a pair at this setting comes from: a record replaced, over the privacy noise."""
    stated = [
        Assumption("the features are i.i.d. Gaussian with variance 1/p", None, "a data model"),
        Assumption("coefficients are Bernoulli-Gaussian, label noise Gaussian", None, "the same"),
        Assumption("n and p are large with n/p = alpha", None, "the limit is taken"),
        Assumption(
            f"the privacy noise is i.i.d. {setting.noise.title()} and independent of the data",
            None,
            "",
        ),
        Assumption("the replica-symmetric (state-evolution) solution", None, "Claims 4.2, 6.1"),
        Assumption("the number is a differential-privacy guarantee", False, NOT_A_GUARANTEE),
    ]
    source = "lasso Eqs. (9) and (53), with the two-replica correction of Claims 5.1 and 6.1"
    if setting.mechanism == "output":
        source = "lasso Eq. (60) times 1 + V"
        stated.append(
            Assumption("replacing a record changes few coordinates' support", None, "Section 6.1")
        )
    return Provenance(
        question="population",
        adjacency="replaced",
        observes="coefficients",
        random=("privacy_noise",),
        attacker_knows_label=True,
        method="asymptotic",
        source=source,
        assumptions=tuple(stated),
    )
