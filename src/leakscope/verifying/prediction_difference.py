"""The leave-one-out prediction difference: what retraining says a record changes in its answer.

This is memorisation by its definition (Feldman 2020) with the answer in the place of correctness,
and lood's ground truth of Fig. 1(c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.verifying.retraining import Retrained


@dataclass(frozen=True)
class PredictionDifference:
    """Mean answers with the record less those without it.

    Attributes
    ----------
    rows
        (records,) which were checked.
    shift, stderr
        (records, outputs) the differences and their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import PredictionDifference
    >>> found = PredictionDifference(np.array([4]), np.array([[0.5]]), np.array([[0.1]]))
    >>> found.size().tolist()
    [0.5]
    """

    rows: NDArray[np.intp]
    shift: FloatArray
    stderr: FloatArray

    def size(self) -> FloatArray:
        """(records,) the Euclidean length of each difference."""
        return np.asarray(np.linalg.norm(self.shift, axis=1))

    def to_frame(self) -> Any:
        """A pandas frame, one row per record and output."""
        import pandas as pd

        outputs = self.shift.shape[1]
        return pd.DataFrame(
            {
                "row": np.repeat(self.rows, outputs),
                "output": np.tile(np.arange(outputs), len(self.rows)),
                "shift": self.shift.ravel(),
                "stderr": self.stderr.ravel(),
            }
        )


def on_themselves(shift: FloatArray) -> FloatArray:
    """(n, outputs) each record's influence on its own answer.

    ``shift`` is (records, queries, outputs), and the queries must be the records.
    """
    if shift.shape[0] != shift.shape[1]:
        raise InputError(
            f"there are {shift.shape[0]} records and {shift.shape[1]} queries: the influence of "
            "records on themselves needs the records as queries."
        )
    return np.asarray(np.einsum("iio->io", shift))


def prediction_difference(retrained: Retrained) -> PredictionDifference:
    """The difference of mean answers at each record that was retrained without.

    Parameters
    ----------
    retrained
        Of :func:`retrain`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from leakscope.verifying import FunctionTrainer, RetrainingPlan, retrain
    >>> from leakscope.verifying import prediction_difference
    >>> from leakscope.running.cell_store import open_cells
    >>> def mean(X, y, seed):
    ...     return lambda Q: np.full(len(Q), y.mean())
    >>> X, y = np.zeros((5, 1)), np.array([0.0, 0.0, 0.0, 0.0, 5.0])
    >>> plan = RetrainingPlan(records=(0, 4), models=8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_cells(pathlib.Path(folder, "run"), settings=plan.describe(), seed=0) as store:
    ...         found = retrain(X, y, FunctionTrainer(mean), plan, store, seed=0)
    >>> prediction_difference(found).shift.ravel().tolist()
    [-0.25, 1.0]
    """
    shifts, errors = [], []
    for record in retrained.records:
        member, nonmember = record.member, record.nonmember
        shifts.append(member.mean(axis=0) - nonmember.mean(axis=0))
        parts = (np.var(a, axis=0, ddof=1) / len(a) for a in (member, nonmember))
        errors.append(np.sqrt(sum(parts)))
    return PredictionDifference(
        rows=np.array([record.row for record in retrained.records]),
        shift=np.array(shifts),
        stderr=np.array(errors),
    )
