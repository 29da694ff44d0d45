"""A defence as something to apply: the rows to train on, the noise, and what is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.advising.fewer_features import principal_directions
from leakscope.advising.released_error import Folds, HeldOut, held_out, predicted_by_kernel
from leakscope.data import RecordId
from leakscope.errors import InputError
from leakscope.lood import FeatureRegression, FeatureSums, Process
from leakscope.results import AdviceOption

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Defence:
    """How to train and what to release.

    Attributes
    ----------
    noise_variance
        Of training, s2.
    output_variance
        Of the noise added to every released answer.
    components
        (d, k) directions that the features are projected on; None for the features themselves.
    rows
        (n,) the row that each record goes into, with -1 for a record that is dropped; the records
        of one row are replaced by their mean.  None where each record is a row.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.advising import Defence
    >>> defence = Defence(0.01, rows=np.array([0, 0, -1, 1]))
    >>> X, y = defence.training_set(np.array([[0.0], [2.0], [9.0], [5.0]]), np.arange(4.0))
    >>> X.tolist(), y.tolist()
    ([[1.0], [5.0]], [0.5, 3.0])
    """

    noise_variance: float
    output_variance: float = 0.0
    components: FloatArray | None = None
    rows: Rows | None = None

    @property
    def merges(self) -> bool:
        """Whether some row is the mean of several records."""
        if self.rows is None:
            return False
        return bool(np.any(np.bincount(self.rows[self.rows >= 0]) > 1))

    def kept(self, count: int) -> Rows:
        """Which of ``count`` records reach the model."""
        return np.arange(count) if self.rows is None else np.flatnonzero(self.rows >= 0)

    def features(self, features: FloatArray) -> FloatArray:
        """The features that the model is asked with."""
        return features if self.components is None else np.asarray(features @ self.components)

    def training_set(
        self, features: FloatArray, targets: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The rows to train on and their targets."""
        shown = self.features(features)
        if self.rows is None:
            return shown, targets
        kept = self.rows >= 0
        found = np.unique(self.rows[kept], return_inverse=True)[1]
        return _means(shown[kept], found), _means(targets[kept], found)

    def applied(self, model: Process) -> Process:
        """The model with the features that this defence leaves it."""
        if self.components is None:
            return model
        return model.with_features(self.features(model.features))

    def held_out(self, model: Process, folds: Folds) -> HeldOut:
        """Predictions of every record by models trained without its fold, defence applied."""
        applied, rows, s2 = self.applied(model), self.rows, self.noise_variance
        merges, phi, prior = self.merges, applied.phi, applied.diagonal()

        def predicted(records: Rows, asked: Rows) -> tuple[FloatArray, FloatArray]:
            kept = records if rows is None else records[rows[records] >= 0]
            if not len(kept):
                return np.zeros((len(asked), applied.outputs.shape[1])), prior[asked]
            targets, means = applied.outputs[kept], None
            if rows is not None and merges:
                found = np.unique(rows[kept], return_inverse=True)[1]
                targets, means = _means(targets, found), _means(applied.features[kept], found)
            if phi is not None:
                trained_on = phi[kept] if means is None else applied.mapped(means)
                assert trained_on is not None
                trained = FeatureRegression.of(FeatureSums.over(trained_on, targets), s2)
                there = phi[asked]
                return there @ trained.beta, trained.covariance(there, there)
            if means is None:
                own, across = (applied.matrix[np.ix_(kept, some)] for some in (kept, asked))
            else:
                own = applied.between(means)
                across = applied.between(means, applied.features[asked])
            return predicted_by_kernel(own, across, prior[asked], targets, s2)

        return held_out(applied, folds, predicted)


def touched(
    defence: Defence, model: Process, names: Sequence[RecordId]
) -> tuple[list[RecordId], list[list[RecordId]]]:
    """Ids of the units that a defence drops, and of the records that share a row."""
    rows = defence.rows
    if rows is None:
        return [], []
    dropped = [names[int(unit)] for unit in np.unique(model.labels[rows < 0])]
    if not defence.merges:
        return dropped, []
    shared = [np.flatnonzero(rows == row) for row in np.flatnonzero(np.bincount(rows) > 1)]
    return dropped, [[names[int(record)] for record in members] for members in shared]


def defence_of(
    option: AdviceOption, model: Process, names: Sequence[RecordId] | None = None
) -> Defence:
    """What to apply for an option of advice, also for one that was read from a file.

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
    >>> model = lood.Process(X, np.sin(X[:, 0]), kernels.rbf(1.0), noise_variance=0.001)
    >>> advice = advising.advise(model, advising.AuditTarget("advantage", 0.1))
    >>> noise = next(option for option in advice.options if option.name == "kernel noise")
    >>> defence = advising.defence_of(noise, model)
    >>> defence.noise_variance == noise.setting["noise_variance"]
    True
    """
    place = {name: unit for unit, name in enumerate(names or range(model.units))}
    named = [*option.dropped, *(name for members in option.merged for name in members)]
    missing = [name for name in named if name not in place]
    if missing:
        raise InputError(f"the model has no {model.unit} {missing[0]!r}, which the option names.")
    rows = None
    if option.dropped or option.merged:
        own = np.arange(len(model.features))
        for members in option.merged:
            own[[place[name] for name in members]] = place[members[0]]
        gone = np.isin(model.labels, [place[name] for name in option.dropped])
        rows = np.full(len(own), -1)
        rows[~gone] = np.unique(own[~gone], return_inverse=True)[1]
    told = {name: value for name, value in option.setting.items() if value is not None}
    components = None
    if "features" in told:
        components = principal_directions(model.features)[:, : int(told["features"])]
    return Defence(
        told.get("noise_variance", model.noise_variance),
        output_variance=told.get("output_sd", 0.0) ** 2,
        components=components,
        rows=rows,
    )


def _means(values: FloatArray, rows: Rows) -> FloatArray:
    """The mean of the values of each row, numbered from 0 with none left out."""
    sums = np.zeros((int(rows.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(sums, rows, values)
    sizes = np.bincount(rows, minlength=len(sums))
    return np.asarray(sums / sizes.reshape(-1, *[1] * (values.ndim - 1)))
