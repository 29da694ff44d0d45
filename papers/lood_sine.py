"""The lood paper's one-dimensional example (App. F.1): ten points of a sine, and one that joins.

x_i ~ N(0, 1), y_i = sin(x_i), noise variance 0.01, the RBF kernel exp(-(x - z)^2/2); the differing
record S has the label sin(S).  Fig. 7, 11 and 12 show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from leakscope import kernels, lood
from leakscope.laws import Key
from papers.arrays import FloatArray
from papers.figure import Order, Panel

KNOBS = {"records": 10, "noise_variance": 0.01, "length_scale": 1.0}
LOW, HIGH = -5.0, 5.0

# The differing point that the paper's own ten points gave (Fig. 11).
PUBLISHED_POINT = 3.899


@dataclass(frozen=True)
class Sine:
    """The training records D.

    Parameters
    ----------
    x, y
        (n,) places and labels.
    noise_variance, length_scale
        Of the Gaussian process.
    """

    x: FloatArray
    y: FloatArray
    noise_variance: float
    length_scale: float

    @property
    def kernel(self) -> kernels.Kernel:
        """RBF."""
        return kernels.rbf(self.length_scale)

    @property
    def count(self) -> str:
        """How many points there are, in words where they are the paper's ten."""
        return "ten" if len(self.x) == 10 else str(len(self.x))

    @property
    def same(self) -> float:
        """Two queries this near are the same: a twentieth of the kernel's length scale."""
        return 0.05 * self.length_scale

    def label(self, place: float) -> float:
        """What the differing record is labelled."""
        return float(np.sin(place))

    def at(self, place: float, queries: FloatArray) -> lood.Influence:
        """What a record at ``place`` changes at each query; the last row of the arrays."""
        X = np.append(self.x, place)[:, None]
        y = np.append(self.y, self.label(place))
        return lood.influence(X, y, queries[:, None], self.kernel, self.noise_variance)

    def self_influence(self, place: float) -> lood.SelfInfluence:
        """Prop. 5.1's gradient and regime at a record at ``place``, and a better query."""
        return lood.self_influence(
            self.x[:, None],
            self.y,
            [place],
            self.label(place),
            self.kernel,
            self.noise_variance,
        )

    @cached_property
    def worst(self) -> float:
        """S*, by Algorithm 1."""
        found = lood.find_non_optimal_point(
            self.x[:, None],
            self.y,
            lambda s: float(np.sin(s[0])),
            self.kernel,
            self.noise_variance,
            bounds=[(LOW, HIGH)],
        )
        return float(found.point[0])


def shown(order: Order) -> Sine:
    """The points that Fig. 7, 11 and 12 all show, as the paper's do."""
    return sine(order.key.child(11, 0), order.knobs)


def sine(key: Key, knobs: Mapping[str, float] = KNOBS) -> Sine:
    """Ten points or so, drawn as the paper draws them."""
    x = np.sort(key.generator().normal(size=int(knobs["records"])))
    return Sine(x, np.sin(x), knobs["noise_variance"], knobs["length_scale"])


def grid(order: Order, *places: float) -> FloatArray:
    """Queries over [-5, 5], with the given places among them."""
    count = 2001 if order.full else 401
    return np.unique(np.append(np.linspace(LOW, HIGH, count), places))


def marked_panel(
    title: str,
    name: str,
    queries: FloatArray,
    curves: dict[str, FloatArray],
    marks: dict[str, float],
    data: Sine,
    *,
    x_title: str = "query Q",
    y_title: str | None = None,
) -> Panel:
    """Curves over the query, vertical lines at ``marks``, and the training points on the axis.

    Marks and points come first, so that they have one colour in all panels of a figure.
    """
    low = min(0.0, *(float(values.min()) for values in curves.values()))
    high = max(float(values.max()) for values in curves.values())
    rows = [
        pd.DataFrame(
            {
                "query": [place, place],
                name: [low, high],
                "curve": f"{label} = {place:.3f}",
                "source": "theory",
            }
        )
        for label, place in marks.items()
    ]
    rows.append(
        pd.DataFrame({"query": data.x, name: 0.0, "curve": "training points", "source": "record"})
    )
    rows += [
        pd.DataFrame({"query": queries, name: values, "curve": label, "source": "theory"})
        for label, values in curves.items()
    ]
    return Panel(
        title,
        pd.concat(rows, ignore_index=True),
        x="query",
        y=name,
        series="curve",
        x_title=x_title,
        y_title=y_title or name,
    )
