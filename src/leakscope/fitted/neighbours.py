"""What makes a record's law: its own weight, its own surprise, and the records that spread it.

A record that joins moves its prediction by kappa_i F_i: kappa_i is a matter of its features, the
force F_i of how far its label lies from what the others predict.  What varies without it is the
sum over the others of G_ij^2 t_j (:mod:`leakscope.fitted.cavity`), so each has a share in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.cavity import force_variance, solve_cavity
from leakscope.fitted.model import FittedModel


@dataclass(frozen=True, eq=False)
class Neighbours:
    """What makes the laws of a few records.

    Attributes
    ----------
    weight, surprise
        (k,) kappa and the size of the force, each over the median of all records.
    others, shares
        (k, m) the rows of the records with the largest shares in its variance, and these shares.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import fitted
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = fitted.from_sklearn(Ridge(alpha=0.1).fit(X, y), X, y)
    >>> found = fitted.neighbours_of(model, [123], fraction=0.5)
    >>> found.others.shape, bool(found.weight[0] > 1.0)
    ((1, 3), True)
    """

    weight: FloatArray
    surprise: FloatArray
    others: npt.NDArray[np.intp]
    shares: FloatArray


def neighbours_of(
    model: FittedModel, rows: Sequence[int], *, fraction: float, most: int = 3
) -> Neighbours | None:
    """What makes the laws of these records; None of a model with a shared loss of all classes.

    Parameters
    ----------
    model
        From :func:`leakscope.fitted.from_sklearn`.
    rows
        Which records.
    fraction
        As the laws were asked for.
    most
        How many others of each.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from leakscope import fitted
    >>> X, y = load_iris(return_X_y=True)
    >>> model = fitted.from_sklearn(LogisticRegression(max_iter=1000).fit(X, y), X, y)
    >>> fitted.neighbours_of(model, [0], fraction=0.5) is None
    True
    """
    if model.problems[0].loss == "softmax":
        return None
    chosen = np.asarray(rows, dtype=np.intp)
    kept = min(most, model.records - 1)
    weight, surprise = np.empty(len(chosen)), np.empty(len(chosen))
    others = np.empty((len(chosen), kept), dtype=np.intp)
    shares = np.empty((len(chosen), kept))
    for number in np.unique(model.own[chosen]).tolist():
        cavity = solve_cavity(model.problems[number], fraction)
        force = np.abs(cavity.moments.force)
        source = force_variance(cavity.moments, cavity.variance, fraction)
        if fraction == 1.0:
            # Fresh others: the finite pool's correction goes, as in the laws of the population.
            source = cavity.moments.square
        for place in np.flatnonzero(model.own[chosen] == number).tolist():
            row = int(chosen[place])
            weight[place] = cavity.kappa[row] / np.median(cavity.kappa)
            surprise[place] = force[row] / max(float(np.median(force)), 1e-300)
            share = cavity.contributions(source, slice(row, row + 1))[0]
            others[place] = np.argsort(-share, kind="stable")[:kept]
            shares[place] = share[others[place]]
    return Neighbours(weight, surprise, others, shares)
