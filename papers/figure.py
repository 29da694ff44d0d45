"""What a figure of a paper is, what is asked of it, and what comes back: numbers before pictures.

A figure module states its figures as `Figure`; each has a `make` that takes an `Order` and returns
`Made`: tidy tables (`Panel`) that `panels.py` draws, pictures where the figure shows records,
and claims judged by the numbers in those tables (`claims.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from leakscope import InputError
from leakscope.laws import Key
from papers.claims import Claim

if TYPE_CHECKING:
    import pandas as pd

Paper = Literal["linear", "relu", "lasso", "lood"]
Size = Literal["quick", "full"]

# How a row of a panel was got, which decides how it is drawn: a line, a point, a hollow diamond.
SOURCES = (
    "theory", "no noise", "simulation", "retraining", "published", "printed", "marked", "record",
    "found",
)  # fmt: skip

OnStep = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What is asked of a figure: how large, with which key, on which data.

    Parameters
    ----------
    size
        ``"quick"``: seconds to a minute on a CPU; ``"full"``: the paper's size.
    key
        Explicit randomness; children by labels of the figure's own.
    data
        A folder with the paper's data (``cifar10_car_plane.npz`` and the like); the figure says
        what it uses where it is left out.
    step
        Called with a few words as each part begins.
    knobs
        The figure's parameters by name, the paper's own or others.

    Examples
    --------
    >>> from papers import Order
    >>> Order(size="full").full
    True
    """

    size: Size = "quick"
    key: Key = field(default_factory=lambda: Key(0))
    data: Path | None = None
    step: OnStep = lambda words: None
    knobs: Mapping[str, float] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether the paper's size is asked for."""
        return self.size == "full"

    def whole(self, name: str) -> int:
        """One of the figure's parameters that is a whole number."""
        return int(self.knobs[name])


@dataclass(frozen=True)
class Panel:
    """One set of axes: a tidy table and which column is drawn where.

    Parameters
    ----------
    title
        In a few words.
    table
        One row per point.  A column ``source`` with the values of `SOURCES` tells theory (a line)
        from simulation (points), from what was read off the paper's figure (``published``) or
        computed by a formula as printed there (``printed``), from what theory says without noise
        (``no noise``), and from points that are neither: a
        point of a curve that is marked (``marked``), a training record (``record``), what an
        attack found (``found``).  Without that column all is theory.  A column ``order`` has a
        line follow it instead of x.
    x, y
        Columns.  For ``kind="heat"`` the cells' places, and `value` is the colour.
    series
        The column that tells curves apart.
    low, high
        Columns with the ends of an interval around y.
    value
        Of a heat map: the column that is the colour.
    x_log, y_log
        Logarithmic axes.
    x_title, y_title
        Axis titles; the column names where left out.
    kind
        ``"curves"``, ``"scatter"``, ``"bars"`` (y at each x, a category) or ``"heat"``.
    joined
        Thin lines between the points of a series.
    overlaid
        The first curve is wide, because another lies upon it.

    Examples
    --------
    >>> import pandas as pd
    >>> from papers import Panel
    >>> table = pd.DataFrame({"p": [1, 2], "advantage": [0.1, 0.2]})
    >>> Panel("advantage against p", table, x="p", y="advantage").columns()
    ['p', 'advantage']
    """

    title: str
    table: pd.DataFrame
    x: str
    y: str
    series: str | None = None
    low: str | None = None
    high: str | None = None
    value: str | None = None
    x_log: bool = False
    y_log: bool = False
    x_title: str | None = None
    y_title: str | None = None
    kind: Literal["curves", "scatter", "bars", "heat"] = "curves"
    joined: bool = False
    overlaid: bool = False

    def __post_init__(self) -> None:
        missing = [name for name in self.columns() if name not in self.table.columns]
        if missing:
            raise InputError(f"the panel {self.title!r} names a column {missing[0]!r} it lacks.")
        if "source" in self.table.columns:
            unknown = set(self.table["source"]) - set(SOURCES)
            if unknown:
                raise InputError(f"the panel {self.title!r} has a source {sorted(unknown)[0]!r}.")

    def columns(self) -> list[str]:
        """The columns that are drawn."""
        named = (self.x, self.y, self.series, self.low, self.high, self.value)
        return [name for name in named if name is not None]


@dataclass(frozen=True)
class Picture:
    """A picture with its caption: PNG bytes, as ``leakscope.data.pictures`` makes them.

    Examples
    --------
    >>> from papers import Picture
    >>> Picture("record 7", b"\\x89PNG").caption
    'record 7'
    """

    caption: str
    png: bytes


@dataclass(frozen=True)
class Made:
    """What came of a figure.

    Parameters
    ----------
    panels
        Tables and how they are drawn.
    claims
        What the paper says of the figure, each with its verdict.
    pictures
        Records and reconstructions, where the figure shows such.
    settings
        Sizes, seeds and data that were used: what a reader needs to make it again.
    notes
        What differs from the paper's own figure, such as another dataset or fewer trials.

    Examples
    --------
    >>> from papers import Made
    >>> Made(panels=(), claims=()).notes
    ()
    """

    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A figure, table or count of a paper that can be made again.

    Parameters
    ----------
    name
        As on the command line: ``linear-2b``.
    paper, where
        Which paper, and where in it: ``"Fig. 2(b)"``.
    title
        What it shows, in one line.
    make
        From an `Order` to what came of it.
    full
        What ``--full`` needs, in one line: time and machine.
    knobs
        Parameters that can be changed, by name, with the paper's own values; whole numbers stay
        whole.
    quick
        Values of some of them that the quick size takes in place of the paper's.

    Examples
    --------
    >>> from papers import Figure, Made
    >>> figure = Figure("linear-9", "linear", "Fig. 9", "nothing", lambda order: Made((), ()),
    ...                 knobs={"n": 100, "sigma": 1.0})
    >>> figure.turned({"n": 500})
    {'n': 500, 'sigma': 1.0}
    >>> figure.turned({"m": 5})
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: linear-9 has no parameter m to set; it has n, sigma.
    """

    name: str
    paper: Paper
    where: str
    title: str
    make: Callable[[Order], Made]
    full: str = "the same machine, minutes"
    knobs: Mapping[str, float] = field(default_factory=dict)
    quick: Mapping[str, float] = field(default_factory=dict)

    def own(self, size: Size) -> dict[str, float]:
        """The parameters of this size where none is changed."""
        return {**self.knobs, **(self.quick if size == "quick" else {})}

    def turned(self, given: Mapping[str, float], size: Size = "full") -> dict[str, float]:
        """The parameters of this size, with some changed; a sentence for one there is not."""
        for name, value in given.items():
            if name not in self.knobs:
                known = f"it has {', '.join(self.knobs)}" if self.knobs else "it has none"
                raise InputError(f"{self.name} has no parameter {name} to set; {known}.")
            if not 0.0 < value < math.inf:
                raise InputError(f"{name} must be a number above 0, but it is {value}.")
            if isinstance(self.knobs[name], int) and value != int(value):
                raise InputError(f"{name} must be a whole number, but it is {value}.")
        return {
            name: type(own)(given[name]) if name in given else own
            for name, own in self.own(size).items()
        }
