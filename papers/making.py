"""Making a figure: run it, time it, and put it into a result document."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leakscope import InputError, __version__
from leakscope.laws import Key
from papers.catalogue import find_figure
from papers.figure import Figure, Made, OnStep, Order, Panel, Size
from papers.lood_images import images_digest
from papers.result import (
    ClaimEntry,
    PanelEntry,
    PictureEntry,
    ReproductionDocument,
)


def reproduce(
    name: str | Figure,
    *,
    size: Size = "quick",
    random_state: int | Key = 0,
    data: str | Path | None = None,
    knobs: Mapping[str, float] | None = None,
    on_step: OnStep | None = None,
) -> ReproductionDocument:
    """Make a figure of a paper again: its numbers, and a verdict on each of its claims.

    Parameters
    ----------
    name
        As `papers.figures` lists them.
    size
        ``"quick"`` or ``"full"``.
    random_state
        The same state gives the same figure.
    data
        A folder with the paper's images, for figures that can use them.
    knobs
        Parameters of the figure in place of the paper's own, such as ``{"n": 500}``; the claims
        stay the paper's, and are judged by the numbers that come out.
    on_step
        Called with a few words as each part begins.

    Examples
    --------
    >>> import pandas as pd
    >>> from papers import Figure, Made, Panel, judge, reproduce
    >>> def make(order):
    ...     table = pd.DataFrame({"n": [1, 2, 4], "error": [1.0, 0.5, 0.25]})
    ...     falls = table["error"].is_monotonic_decreasing
    ...     claim = judge("the error falls", "Fig. 0", "1 to 0.25", as_printed=bool(falls))
    ...     return Made((Panel("error", table, x="n", y="error"),), (claim,))
    >>> document = reproduce(Figure("linear-0", "linear", "Fig. 0", "error against n", make))
    >>> document.claims[0].verdict, document.panels[0].columns
    ('holds', ['n', 'error'])
    """
    figure = name if isinstance(name, Figure) else find_figure(name)
    key = random_state if isinstance(random_state, Key) else Key(random_state)
    if data is not None and not os.path.isdir(data):
        raise InputError(f"there is no folder {data} with data.")
    order = Order(
        size=size,
        key=key,
        data=None if data is None else Path(data),
        step=on_step or (lambda words: None),
        knobs=figure.turned(knobs or {}, size),
    )
    start = time.perf_counter()
    made = _made(figure, order, knobs or {})
    seconds = time.perf_counter() - start
    settings = {"size": size, "seed": key.entropy, **made.settings}
    if knobs:
        settings["set"] = dict(knobs)
    pictures = images_digest(order.data)
    if "data" in settings and pictures is not None:
        settings["data_digest"] = pictures
    return ReproductionDocument(
        leakscope_version=__version__,
        settings=settings,
        provenance={"paper": figure.paper, "where": figure.where},
        assumptions=[],
        timing={"make": seconds},
        warnings=[],
        name=figure.name,
        title=figure.title,
        notes=[*made.notes, *_turned(figure, size, knobs or {})],
        claims=[ClaimEntry(**vars(claim)) for claim in made.claims],
        panels=[_entry(panel) for panel in made.panels],
        pictures=[PictureEntry.of(picture.caption, picture.png) for picture in made.pictures],
    )


def is_made(
    document: ReproductionDocument,
    *,
    size: Size,
    random_state: int,
    data: str | Path | None,
    knobs: Mapping[str, float] | None = None,
) -> bool:
    """Whether a figure made before is what would be made again, on the same data."""
    settings = document.settings
    made = (settings.get("size"), settings.get("seed"), document.leakscope_version)
    if made != (size, random_state, __version__) or settings.get("set", {}) != (knobs or {}):
        return False
    if "data" not in settings:
        return True
    # Without a digest it is not known which pictures of --data they were.
    now = images_digest(None if data is None else Path(data))
    known = "data_digest" in settings or str(settings["data"]).startswith("digits")
    return known and settings.get("data_digest") == now


def _made(figure: Figure, order: Order, knobs: Mapping[str, float]) -> Made:
    """What comes of the figure; where its parameters were changed, a sentence if nothing does.

    No figure divides by zero at the paper's values, so a warning of that kind is a refusal too.
    """
    if not knobs:
        return figure.make(order)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            return figure.make(order)
    except InputError as error:
        raise InputError(f"{figure.name} cannot be made with {_told(knobs)}: {error}") from error
    except (ArithmeticError, LookupError, MemoryError, RuntimeWarning, ValueError) as error:
        raise InputError(
            f"{figure.name} cannot be made with {_told(knobs)} ({type(error).__name__}: {error}); "
            "take a value nearer to the paper's."
        ) from error


def _turned(figure: Figure, size: Size, knobs: Mapping[str, float]) -> list[str]:
    if not knobs:
        return []
    own = _told({name: figure.knobs[name] for name in knobs})
    smaller = {name: value for name, value in figure.quick.items() if name in knobs}
    here = f" ({_told(smaller)} at quick size)" if smaller and size == "quick" else ""
    return [
        f"Made with {_told(knobs)} in place of the paper's {own}{here}; the claims are the "
        "paper's, judged by these numbers."
    ]


def _told(knobs: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:,g}" for name, value in knobs.items())


def _entry(panel: Panel) -> PanelEntry:
    described = {key: value for key, value in vars(panel).items() if key != "table"}
    table = panel.table
    rows: list[list[Any]] = [
        [_plain(value) for value in row] for row in table.itertuples(index=False, name=None)
    ]
    return PanelEntry(**described, columns=[str(name) for name in table.columns], rows=rows)


def _plain(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain
