"""Which figures there are, and where each is made: `papers/linear_2.py` makes linear-2a, -2b."""

from __future__ import annotations

import difflib
import importlib

from leakscope import InputError
from papers.figure import Figure

# Modules in this room, in the papers' order; each states its figures in FIGURES.
MODULES: tuple[str, ...] = (
    "linear_1",
    "linear_2",
    "linear_3",
    "linear_4",
    "linear_5",
    "linear_6",
    "linear_7",
    "relu_1",
    "relu_algorithm_1",
    "lasso_1",
    "lasso_2",
    "lasso_3",
    "lasso_4",
    "lasso_5",
    "lasso_6",
    "lasso_7",
    "lasso_8",
    "lasso_9",
    "lasso_10",
    "lood_1",
    "lood_2",
    "lood_3",
    "lood_4",
    "lood_5",
    "lood_6",
    "lood_7",
    "lood_8",
    "lood_9",
    "lood_10",
    "lood_11",
    "lood_12",
    "lood_13",
    "lood_14",
    "lood_e1",
    "lood_e2",
    "lood_section_6",
)


# Other names of figures, none of which is another's name: the conference version of linear numbers
# some otherwise, and the sheets of pictures of lood are one figure.
ALIASES = {
    "linear-3c": "linear-4",
    "linear-4a": "linear-5a",
    "linear-4b": "linear-5b",
    "linear-4c": "linear-5c",
    "linear-5": "linear-6",
    **{f"lood-{part}": "lood-14" for part in range(15, 20)},
}


def figures() -> tuple[Figure, ...]:
    """Every figure that can be made, in the papers' order.

    Examples
    --------
    >>> import papers
    >>> names = [figure.name for figure in papers.figures()]
    >>> len(names) == len(set(names))
    True
    """
    return tuple(
        figure
        for module in MODULES
        for figure in importlib.import_module(f"papers.{module}").FIGURES
    )


def find_figure(name: str) -> Figure:
    """The figure of this name; those of linear by the number of either version.

    Examples
    --------
    >>> import papers
    >>> papers.find_figure("linear-3c").name
    'linear-4'
    >>> papers.find_figure("linear-99")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: there is no figure 'linear-99'...
    """
    known = {figure.name: figure for figure in figures()}
    if name in known or name in ALIASES:
        return known[ALIASES.get(name, name)]
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`leakscope reproduce` lists them."
    raise InputError(f"there is no figure {name!r}; {hint}")
