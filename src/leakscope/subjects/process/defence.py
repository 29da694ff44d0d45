"""A change of a process as something to apply: what to train on, the noise, and its price.

A released answer is one draw from the posterior, with noise of variance v added where that is the
change.  Its expected squared error at a record held out is

    (mean - y)^2 + posterior variance + v,

averaged over outputs; the draw and the noise are averaged over exactly, not simulated.  For classes
the chance that the sign, or the largest output, of the released answer is the right one is
computed the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.products import row_products
from leakscope._numerics.special_functions import chance_of_largest
from leakscope.data.datasets import RecordId, Task
from leakscope.errors import InputError
from leakscope.lood.features import FeatureRegression, FeatureSums
from leakscope.lood.process import ProcessOnRecords
from leakscope.results.advice import AdviceOption
from leakscope.subjects.pricing import Folds, ReleasedError, Rows


@dataclass(frozen=True, eq=False)
class Defence:
    """How to train a process and what to release.

    Attributes
    ----------
    noise_variance
        Of training, s2.
    output_variance
        Of the noise added to every released answer.
    components
        (d, k) directions that the features are projected on; None for the features themselves.
    kept
        The records to train on; None for all.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.subjects.process.defence import Defence
    >>> defence = Defence(0.01, kept=np.array([0, 3]))
    >>> X, y = defence.training_set(np.array([[0.0], [2.0], [9.0], [5.0]]), np.arange(4.0))
    >>> X.tolist(), y.tolist()
    ([[0.0], [5.0]], [0.0, 3.0])
    """

    noise_variance: float
    output_variance: float = 0.0
    components: FloatArray | None = None
    kept: Rows | None = None

    def features(self, features: FloatArray) -> FloatArray:
        """The features that the model is asked with."""
        return features if self.components is None else np.asarray(features @ self.components)

    def training_set(
        self, features: FloatArray, targets: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The rows to train on and their targets."""
        shown = self.features(features)
        return (shown, targets) if self.kept is None else (shown[self.kept], targets[self.kept])

    def applied(self, model: ProcessOnRecords) -> ProcessOnRecords:
        """The model with the features that this leaves it."""
        if self.components is None:
            return model
        return model.with_features(self.features(model.features))

    def held_out(self, model: ProcessOnRecords, folds: Folds) -> HeldOutDraws:
        """Predictions of every record by models trained without its fold, and changed so."""
        return held_out(self.applied(model), folds, self.noise_variance, self.kept)


def defence_of(
    option: AdviceOption, model: ProcessOnRecords, names: Sequence[RecordId] | None = None
) -> Defence:
    """What to apply for an option of advice on a process, also for one read from a file.

    Parameters
    ----------
    option
        Of the advice on this model.
    model
        What was advised on.
    names
        The ids of the model's records, or of its groups; row numbers where left out.

    Raises
    ------
    InputError
        Where the option names a record, or a group, that the model does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import advising, kernels, lood
    >>> X = np.linspace(0.0, 3.0, 40)[:, None]
    >>> model = lood.ProcessOnRecords(X, np.sin(X[:, 0]), kernels.rbf(1.0), noise_variance=0.001)
    >>> advice = advising.advise(model, advising.AuditTarget("advantage", 0.1))
    >>> noise = next(option for option in advice.options if option.name == "kernel noise")
    >>> defence = advising.defence_of(noise, model)
    >>> defence.noise_variance == noise.setting["noise_variance"]
    True
    """
    if not isinstance(model, ProcessOnRecords) or not isinstance(option, AdviceOption):
        raise InputError(
            "a defence is an option of advice on a process, applied to that process; of other "
            "models change the setting that the option names, and fit again."
        )
    place = {name: unit for unit, name in enumerate(names or range(model.units))}
    missing = [name for name in option.dropped if name not in place]
    if missing:
        raise InputError(f"the model has no {model.unit} {missing[0]!r}, which the option names.")
    gone = [place[name] for name in option.dropped]
    told = {name: value for name, value in option.setting.items() if value is not None}
    foreign = sorted(set(told) - {"noise_variance", "output_sd", "features", "dropped"})
    if foreign:
        raise InputError(f"the option changes {foreign[0]}, which a process does not have.")
    components = None
    if "features" in told:
        components = principal_directions(model.features)[:, : int(told["features"])]
    return Defence(
        told.get("noise_variance", model.noise_variance),
        output_variance=told.get("output_sd", 0.0) ** 2,
        components=components,
        kept=np.flatnonzero(~np.isin(model.labels, gone)) if gone else None,
    )


def principal_directions(features: FloatArray) -> FloatArray:
    """(d, r) directions of falling variance, those without any left out."""
    centred = features - features.mean(axis=0)
    values, vectors = symmetric_eigen(row_products(centred.T))
    kept = values > len(features) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    if not kept.any():
        raise InputError("all records have the same features: there is no component to keep.")
    return np.asarray(vectors[:, kept][:, ::-1])


@dataclass(frozen=True)
class HeldOutDraws:
    """Posterior mean (R, n, C) and variance (R, n) at every record, trained without its fold."""

    mean: FloatArray
    variance: FloatArray
    targets: FloatArray
    folds: Folds
    task: Task

    def released(self, noise: float = 0.0) -> ReleasedError:
        """The error of a draw with noise of this standard deviation added."""
        spread = self.variance + noise**2
        squared = np.mean((self.mean - self.targets) ** 2, axis=2) + spread
        right = None
        if self.task == "classification":
            right = _right(self.mean, spread, self.targets)
        return self.folds.released(squared, right)


def held_out(
    model: ProcessOnRecords, folds: Folds, noise_variance: float, kept: Rows | None = None
) -> HeldOutDraws:
    """Train on what is kept of each fold's training part, and predict the fold."""
    repeats, count = folds.number.shape
    phi, prior, outputs = model.phi, model.diagonal(), model.outputs
    mean = np.zeros((repeats, count, outputs.shape[1]))
    variance = np.empty((repeats, count))
    left = np.arange(count) if kept is None else kept
    for repeat, number in enumerate(folds.number):
        for fold in range(folds.count):
            asked, records = np.flatnonzero(number == fold), left[number[left] != fold]
            place = (repeat, asked)
            if not len(records):
                variance[place] = prior[asked]
            elif phi is not None:
                sums = FeatureSums.over(phi[records], outputs[records])
                trained, there = FeatureRegression.of(sums, noise_variance), phi[asked]
                mean[place] = there @ trained.beta
                variance[place] = trained.covariance(there, there)
            else:
                own, across = (model.matrix[np.ix_(records, some)] for some in (records, asked))
                mean[place], variance[place] = _predicted(
                    own, across, prior[asked], outputs[records], noise_variance
                )
    return HeldOutDraws(mean, variance, outputs, folds, model.task)


def _predicted(
    own: FloatArray,
    across: FloatArray,
    prior: FloatArray,
    targets: FloatArray,
    noise_variance: float,
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance from the kernel between the rows trained on, which is lost.

    ``across`` is the kernel from them to those asked, ``prior`` that of those asked with
    themselves.
    """
    own[np.diag_indices_from(own)] += noise_variance
    try:
        factor = cholesky.factorise(own, overwrite=True).packed
    except linalg.LinAlgError as error:
        raise InputError(
            f"the kernel matrix of a fold with noise_variance {noise_variance:g} on its diagonal "
            "is not positive definite in float64: audit with a larger noise_variance."
        ) from error
    solved = linalg.solve_triangular(
        factor,
        np.column_stack([across, targets]),
        lower=True,
        overwrite_b=True,
        check_finite=False,
    )
    root, white = solved[:, : len(prior)], solved[:, len(prior) :]
    left = prior - np.einsum("ij,ij->j", root, root)
    return root.T @ white, np.maximum(left, 0.0)


def _right(mean: FloatArray, spread: FloatArray, targets: FloatArray) -> FloatArray:
    """The chance that the released answer's sign, or largest output, is the record's class."""
    sigma = np.sqrt(np.maximum(spread, np.finfo(np.float64).tiny))
    if targets.shape[1] == 1:
        return np.asarray(special.ndtr(np.sign(targets[:, 0]) * mean[:, :, 0] / sigma))
    own = np.argmax(targets, axis=1)
    return chance_of_largest(mean / sigma[:, :, None], own)
