"""Algorithm 1 of **relu**: training records from the weights of networks with one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from leakscope import InputError, relu
from leakscope.relu import Form, MaxMarginNetwork, Reconstruction
from papers.arrays import FloatArray
from papers.binomial_share import Share
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.mean_interval import mean_interval

Kind = Literal["normal", "uniform"]
KINDS: tuple[Kind, ...] = ("normal", "uniform")
FORMS: dict[Form, str] = {
    "printed": "Algorithm 1",
    "pieces": "every piece",
    "moments": "moments",
}
ERRATUM = "relu 3"
# The example that is drawn: six records, of which the printed algorithm finds three.
EXAMPLE = ([-1.5, -0.5, 0.25, 1.0, 2.0, 3.0], [1, -1, 1, -1, -1, 1])


class Case(NamedTuple):
    """A training set's exact network and what each form finds in it."""

    kind: Kind
    best: MaxMarginNetwork
    found: dict[Form, Reconstruction]


def training_set(
    kind: Kind, generator: np.random.Generator, fewest: int = 3, most: int = 15
) -> tuple[FloatArray, FloatArray]:
    """``fewest`` to ``most`` records with coin-flip labels, normal or uniform on [-10, 10].

    Examples
    --------
    >>> import numpy as np
    >>> from papers.relu_algorithm_1 import training_set
    >>> x, y = training_set("uniform", np.random.default_rng(0))
    >>> x.size == y.size, set(y.tolist()) <= {-1.0, 1.0}
    (True, True)
    """
    n = int(generator.integers(fewest, most + 1))
    x = generator.standard_normal(n) if kind == "normal" else generator.uniform(-10.0, 10.0, n)
    return x, generator.choice([-1.0, 1.0], n)


def make(order: Order) -> Made:
    """Exact maximum-margin networks, and the candidates of three forms of the algorithm."""
    count = 200 if order.full else 25
    fewest, most = order.whole("fewest"), order.whole("most")
    if fewest > most:
        raise InputError(f"fewest must be at most {most}, the most records.")
    cases = []
    for number, kind in enumerate(KINDS):
        order.step(f"{kind} records")
        for i in range(count):
            generator = order.key.child(number, i).generator()
            best = relu.max_margin_network(*training_set(kind, generator, fewest, most))
            found = {form: relu.reconstruct(best, form=form) for form in FORMS}
            cases.append(Case(kind, best, found))
    order.step("queries")
    panels = (
        _example(),
        _shares(cases, "margin_recall", "the margin's records recovered", "share of records"),
        _shares(cases, "precision", "candidates that are records", "share of candidates"),
    )
    claims = (_a_quarter(cases), _exhaustive(cases), _theorem_3_2(cases), _partial_knowledge(cases))
    settings = {
        "networks": {kind: count for kind in KINDS}, "records": f"{fewest} to {most}",
        "labels": "fair coins",
        "largest_duality_gap": max(abs(case.best.gap) for case in cases),
    }  # fmt: skip
    notes = (
        "The paper has no experiment on Algorithm 1; the networks are exact optima of Eq. (1).",
        "Algorithm 1's n is read as the number of breakpoints after merging equal ones.",
        "Every piece and moments are ours: unbounded pieces too, and only candidates whose "
        "multiplier can be above zero.",
    )
    return Made(panels, claims, settings=settings, notes=notes)


def _example() -> Panel:
    best = relu.max_margin_network(*EXAMPLE)
    found = relu.reconstruct(best, form="printed")
    function = relu.pieces(best.network)
    x = np.unique(np.concatenate([np.linspace(-2.5, 4.0, 14), function.breakpoints]))
    rows = [(a, b, "network", "theory") for a, b in zip(x, function(x), strict=True)]
    rows += [(a, b, "records", "record") for a, b in zip(best.x, best.y, strict=True)]
    rows += [(c.x, float(c.label), "candidates", "found") for c in found.candidates]
    return Panel(
        f"a network of {len(best.x)} records and Algorithm 1's candidates",
        pd.DataFrame(rows, columns=["x", "f(x)", "series", "source"]),
        x="x", y="f(x)", series="series",
    )  # fmt: skip


def _shares(cases: Sequence[Case], measure: str, title: str, axis: str) -> Panel:
    """Means over networks; no candidate counts as nothing recovered, and has no precision."""
    rows = []
    for kind in KINDS:
        for form, name in FORMS.items():
            values = [
                getattr(case.found[form], measure)
                for case in cases
                if case.kind == kind and getattr(case.found[form], measure) is not None
            ]
            one = mean_interval(values)
            ends = max(one.low, 0.0), min(one.high, 1.0)
            rows.append((name, one.value, f"{kind} records", *ends))
    table = pd.DataFrame(rows, columns=["form", "share", "records", "low", "high"])
    return Panel(
        title, table, x="form", y="share", series="records", low="low", high="high", y_title=axis,
        kind="bars",
    )  # fmt: skip


def _always_active(case: Case) -> bool:
    network = case.best.network
    inputs = network.w[:, :1] * case.best.x[None, :] + network.b[:, None]
    return bool((inputs > 0.0).all(axis=1).any())


def _a_quarter(cases: Sequence[Case]) -> Claim:
    """Thm 3.4 asks for an always-active neuron; without one the bound may still hold."""
    covered = [case for case in cases if _always_active(case)]
    rates = {
        name: [one for case in group if (one := case.found["printed"].precision) is not None]
        for name, group in (("covered", covered), ("all", cases))
    }
    least = {name: min(found, default=float("nan")) for name, found in rates.items()}
    return judge(
        "at least a quarter of Algorithm 1's candidates are training records", "Thm 3.4",
        f"the least share is {least['covered']:.2f} over {len(rates['covered'])} networks with "
        f"candidates and a neuron that is active on every record, {least['all']:.2f} over all "
        f"{len(rates['all'])} with candidates",
        as_printed=None if not rates["covered"] else least["covered"] >= 0.25,
    )  # fmt: skip


def _exhaustive(cases: Sequence[Case]) -> Claim:
    """Functions of at most two intervals are the exception that the paper makes."""
    several = [case for case in cases if len(relu.pieces(case.best.network)) > 2]
    empty = {
        form: Share(sum(not case.found[form].candidates for case in several), len(several))
        for form in FORMS
    }
    recall = {form: np.mean([case.found[form].margin_recall for case in cases]) for form in FORMS}
    return judge(
        "but for functions of at most two linear pieces, Thms 3.2 and 3.3 cover every network",
        "Sec. 3.2, Algorithm 1",
        f"no candidate for {empty['printed']} of {len(several)} networks of three pieces or more, "
        f"with every piece, unbounded ones too, for {empty['pieces'].count}. Of the margin's "
        f"records {recall['printed']:.0%} are recovered, and {recall['pieces']:.0%}",
        as_printed=empty["printed"].count == 0, corrected=empty["pieces"].count == 0,
        erratum=ERRATUM,
    )  # fmt: skip


def _theorem_3_2(cases: Sequence[Case]) -> Claim:
    """Two bounded pieces beside each other, neither constant on the margin, hold a record."""
    held = total = 0
    for case in cases:
        function = relu.pieces(case.best.network)
        on = case.best.x[case.best.on_margin]
        plain = [function.level(p, 1.0, 1e-8) == 0 for p in range(len(function))]
        for p in range(1, len(function) - 2):
            if plain[p] and plain[p + 1]:
                low, high = function.bounds(p)[0], function.bounds(p + 1)[1]
                reach = 1e-7 * (1.0 + max(abs(low), abs(high)))
                total += 1
                held += bool(((on >= low - reach) & (on <= high + reach)).any())
    return judge(
        "two adjacent intervals off the margin hold a training record on it", "Thm 3.2",
        f"{held} of {total} pairs of intervals do",
        as_printed=None if not total else held == total,
    )  # fmt: skip


def _partial_knowledge(cases: Sequence[Case]) -> Claim:
    """Breakpoints found by asking the network, in place of its weights."""
    same, worst, queries = 0, 0.0, []
    for case in cases:
        asked = relu.reconstruct_from_queries(case.best.network)
        own = case.found["pieces"]
        queries.append(asked.queries or 0)
        if len(own.x) == len(asked.x):
            same += 1
            worst = max(worst, float(np.abs(own.x - asked.x).max(initial=0.0)))
    return judge(
        "access to the function and its breakpoints is enough", "Sec. 3.2, footnote 3",
        f"the same candidates for {same} of {len(cases)} networks, at most {worst:.0e} apart, with "
        f"{np.mean(queries):.0f} queries on average and {max(queries)} at most",
        as_printed=same == len(cases) and worst < 1e-6,
    )  # fmt: skip


FIGURES = (
    Figure(
        "relu-algorithm-1", "relu", "Algorithm 1", "training records from the weights, one input",
        make, full="one core, three minutes (400 networks)", knobs={"fewest": 3, "most": 15},
    ),
)  # fmt: skip
