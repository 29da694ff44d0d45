"""Section 5: with the dimension, training points come to the margin and test points leave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope import InputError
from leakscope.laws import Key
from leakscope.relu import MixtureData, SphereData, TrainingPlan, train
from papers.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd

Population = SphereData | MixtureData

TOLERANCES = (0.01, 0.05)


@dataclass(frozen=True)
class MarginRow:
    """One dimension: means over the networks that fit their data, with standard errors.

    Attributes
    ----------
    features, networks, fitted
        d, networks trained, and those that classify all of their training points.
    train_1, train_5
        Share of training points with |f| at most 1% and 5% above the least.
    test_above
        Share of test points with |f| at or above the margin.
    test_1, test_5
        Share of test points on the margin: |f| within 1% and 5% of it, on either side.
    train_1_error, train_5_error, test_above_error
        Standard errors of the means, over networks.
    residual, residual_largest
        The KKT residual along the path, mean and largest.

    Examples
    --------
    >>> from leakscope.relu import TrainingPlan
    >>> from papers.relu_margin import margin_experiment
    >>> plan = TrainingPlan(width=10, steps=100, flow_steps=10)
    >>> margin_experiment([1], n=9, plan=plan, networks=1, test_points=5).rows[0].fitted
    0
    """

    features: int
    networks: int
    fitted: int
    train_1: float
    train_5: float
    test_above: float
    test_1: float
    test_5: float
    train_1_error: float
    train_5_error: float
    test_above_error: float
    residual: float
    residual_largest: float


@dataclass(frozen=True)
class MarginExperiment:
    """The table of the experiment, one `MarginRow` per dimension.

    Examples
    --------
    >>> from leakscope.relu import TrainingPlan
    >>> from papers.relu_margin import margin_experiment
    >>> plan = TrainingPlan(width=30, steps=2000, flow_steps=500)
    >>> found = margin_experiment([5, 80], n=4, plan=plan, networks=2, test_points=50)
    >>> [row.features for row in found.rows]
    [5, 80]
    """

    n: int
    test_points: int
    plan: TrainingPlan
    rows: tuple[MarginRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "n": self.n,
            "test_points": self.test_points,
            "plan": asdict(self.plan),
            "rows": [asdict(row) for row in self.rows],
        }

    def to_frame(self) -> pd.DataFrame:
        """One line per dimension."""
        import pandas as pd

        names = [field.name for field in fields(MarginRow)]
        return pd.DataFrame([asdict(row) for row in self.rows], columns=names)


def margin_experiment(
    dimensions: Sequence[int],
    *,
    n: int = 20,
    plan: TrainingPlan | None = None,
    networks: int = 50,
    test_points: int = 5000,
    population: Callable[[int], Population] = SphereData,
    random_state: int | Key = 0,
    progress: Callable[[MarginRow], None] | None = None,
) -> MarginExperiment:
    """Train networks for each dimension, and compare their answers with the margin.

    Labels are fair coins.  In one dimension the sphere has two points only, so that random labels
    contradict each other and hardly a network can fit them: `MarginRow.fitted` says how many did.

    Parameters
    ----------
    dimensions
        The values of d.
    n, networks, test_points
        Training points, networks for each d (each with its own points), and fresh points for each
        network; the paper's are 20, 50 and 5,000.
    plan
        Training; the paper's width is 10,000.
    population
        From d to the law of the points; the paper's sphere by default.
    progress
        Called with each finished row.

    Examples
    --------
    >>> from leakscope.relu import TrainingPlan
    >>> from papers.relu_margin import margin_experiment
    >>> plan = TrainingPlan(width=50, steps=3000, flow_steps=1000)
    >>> row = margin_experiment([200], n=5, plan=plan, networks=2, test_points=100).rows[0]
    >>> row.train_1, row.test_above
    (1.0, 0.0)
    """
    if not dimensions or min(dimensions) < 1:
        raise InputError("dimensions must be one or more positive integers.")
    if min(n, networks, test_points) < 1:
        raise InputError("n, networks and test_points must each be 1 or more.")
    plan = TrainingPlan(width=10_000) if plan is None else plan
    key = random_state if isinstance(random_state, Key) else Key(random_state)
    rows = []
    for d in dimensions:
        row = _one_dimension(population(d), n, plan, networks, test_points, key.child(d))
        rows.append(row)
        if progress is not None:
            progress(row)
    return MarginExperiment(n, test_points, plan, tuple(rows))


def _one_dimension(
    data: Population, n: int, plan: TrainingPlan, networks: int, test_points: int, key: Key
) -> MarginRow:
    x, y = data.training_sets(networks, n, key.child(0))
    trained = train(x, y, plan, random_state=key.child(1))
    tests = np.stack(
        [data.sample(test_points, key.child(2, network)) for network in range(networks)]
    )
    fit = trained.correct
    if not fit.any():
        blank = [float("nan")] * (len(fields(MarginRow)) - 3)
        return MarginRow(data.features, networks, 0, *blank)
    margin = trained.margin[fit][:, None]
    own = trained.margins[fit] / margin
    fresh = np.abs(trained.outputs(tests)[fit]) / margin
    on = [(own <= 1.0 + t).mean(axis=1) for t in TOLERANCES]
    above = (fresh >= 1.0).mean(axis=1)
    near = [float((np.abs(fresh - 1.0) <= t).mean()) for t in TOLERANCES]
    residual = trained.residual[fit]
    return MarginRow(
        features=data.features,
        networks=networks,
        fitted=int(fit.sum()),
        train_1=float(on[0].mean()),
        train_5=float(on[1].mean()),
        test_above=float(above.mean()),
        test_1=near[0],
        test_5=near[1],
        train_1_error=_error(on[0]),
        train_5_error=_error(on[1]),
        test_above_error=_error(above),
        residual=float(residual.mean()),
        residual_largest=float(residual.max()),
    )


def _error(values: FloatArray) -> float:
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))
