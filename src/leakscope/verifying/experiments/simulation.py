"""Sequential simulation of a membership experiment: draw until the standard error is small enough.

Draws come in blocks, each a cell of a resumable run (:mod:`leakscope.running.cells`).  After
some blocks the measure and its standard error are looked at; the next look comes after as many
blocks as seem needed, at most twice as many.  Looks always use the first blocks, whatever else a
stored run holds, so that a run that was killed, or asked again for less, gives the same answer.

**What stopping does to the interval.**  It is computed as if the number of draws had been fixed.
Stopping when the estimated error is small favours moments at which it happens to be estimated too
small, so that the coverage need not be the confidence.  16 blocks before the first look and few
looks keep this small; tests/verifying/test_simulation.py holds the coverage to account.

**Mixtures over drawn designs**, and how far their measures are known, from the designs themselves.
Given the design an observation is normal, so the two laws are mixtures over designs, known up to
the designs drawn (Rao-Blackwell).  The measures of the drawn mixtures come from
:mod:`leakscope.measures`; here is what belongs beside them:

- the standard error, by the jackknife over 16 groups of blocks;
- a value whose bias is the other way.  The measures are convex in the laws, so that those of drawn
  mixtures are too large on average.  A test learnt on one half of the designs and judged on the
  other half is too small on average (for KL, the Donsker-Varadhan bound with the learnt ratio).

The truth lies between the two expectations, and the interval reaches from the one less its error to
the other plus it.  Densities are tabulated once, on nodes that follow the components, and each
leave-one-out density is a difference of sums.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.attacking.score_attacks import Adversary, cross_fitted_scores
from leakscope.errors import InputError
from leakscope.laws.distributions import Empirical, Normal, NormalMixture
from leakscope.laws.pair import LawPair, Provenance
from leakscope.measures.drawn_designs import TabulatedMeasure
from leakscope.measures.empirical_ranks import Estimate
from leakscope.running.cell_store import CellStore, FinishedCell, open_cells
from leakscope.running.cells import Cell, Found, OnProgress, run_cells
from leakscope.settings.measure import MEASURE_DEFAULTS
from leakscope.verifying.experiments.membership_experiment import (
    ConditionalExperiment,
    SampledExperiment,
)

Measure = Literal["advantage", "auc", "kl", "kl_reverse"]
Experiment = SampledExperiment | ConditionalExperiment

# Of blocks, for the jackknife.
GROUPS = 16

# Nodes are placed around this many components of each side, by size and by place, in steps of z.
_PLACED, _Z = 16, np.arange(-9.0, 9.01, 0.15)

STOPPING = (
    "draws were added until the standard error was met or the budget spent, and the interval is "
    "computed as if their number had been fixed: its coverage may differ a little from its "
    "confidence"
)


@dataclass(frozen=True)
class SimulationPlan:
    """How well a measure is to be known, and what may be spent.

    Parameters
    ----------
    standard_error
        Stop when the measure's is at most this.
    measure
        The measure that decides: ``"advantage"``, ``"auc"``, ``"kl"`` or ``"kl_reverse"``.
    most_draws
        Draws (designs, for a conditional experiment) that may be spent at most.
    draws_per_block
        Draws that make a cell; 16 blocks come before the first look.
    adversary
        For a sampled experiment, how the attacker learns: ``"kernel_density"`` or
        ``"histogram"``.
    confidence
        Of the interval.
    """

    standard_error: float = 0.01
    measure: Measure = "advantage"
    most_draws: int = 100_000
    draws_per_block: int = 100
    adversary: Adversary = "kernel_density"
    confidence: float = MEASURE_DEFAULTS.confidence

    def __post_init__(self) -> None:
        if not (np.isfinite(self.standard_error) and self.standard_error > 0.0):
            raise InputError(f"standard_error must be positive, but it is {self.standard_error!r}.")
        if self.measure not in get_args(Measure):
            raise InputError(
                f"measure must be one of {', '.join(get_args(Measure))}, not {self.measure!r}."
            )
        if not 0.0 < self.confidence < 1.0:
            raise InputError(f"confidence must be between 0 and 1, but it is {self.confidence!r}.")
        if self.draws_per_block < 2 or self.most_blocks < GROUPS:
            raise InputError(
                f"draws_per_block must be 2 or more and most_draws at least {GROUPS} blocks, but "
                f"they are {self.draws_per_block} and {self.most_draws}."
            )

    @property
    def most_blocks(self) -> int:
        """How many blocks there are at most: a multiple of 16."""
        return self.most_draws // self.draws_per_block // GROUPS * GROUPS

    def describe(self, experiment: Experiment) -> dict[str, Any]:
        """What a stored run is resumed by; the error and the budget may change later."""
        return {"experiment": experiment.name, "draws_per_block": self.draws_per_block}


@dataclass(frozen=True)
class Simulated:
    """What a simulated membership experiment found."""

    measure: Measure  # the measure that decided when to stop
    estimate: Estimate  # its value with an interval, and its standard error
    standard_error: float
    met: bool  # whether the standard error that was asked for was met before the budget was spent
    draws: int  # what was used: designs or draws of either kind, cells, and looks at the error
    blocks: int
    looks: int
    seconds: float  # of drawing, added up over cells
    # For any other measure: the mixtures over the designs, or the scores of one half of the draws
    # by an adversary whom the other half taught.
    pair: LawPair
    stopping: str = STOPPING  # what stopping early does to the interval, in words

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "measure": self.measure,
            "value": float(self.estimate.value),
            "low": float(self.estimate.low),
            "high": float(self.estimate.high),
            "confidence": self.estimate.confidence,
            "standard_error": self.standard_error,
            "met": self.met,
            "draws": self.draws,
            "blocks": self.blocks,
            "looks": self.looks,
            "seconds": self.seconds,
            "method": self.estimate.method,
            "bias": self.estimate.bias,
            "stopping": self.stopping,
            "provenance": self.pair.provenance.to_dict(),
        }


def simulate(
    experiment: Experiment,
    plan: SimulationPlan | None = None,
    *,
    seed: int,
    store: CellStore | None = None,
    client: Any = None,
    on_progress: OnProgress | None = None,
) -> Simulated:
    """Run the experiment until the plan's standard error is met or its budget is spent.

    Parameters
    ----------
    experiment
        A `ConditionalExperiment` where the law given the design is known (fewer draws for the same
        error), a `SampledExperiment` otherwise.
    plan
        How well, and at what cost; by default an advantage to 0.01.
    seed
        Of the run.
    store
        Of ``results.cells.open_cells(folder, settings=plan.describe(experiment), seed=seed)``:
        finished blocks are kept there and not drawn again.  Nothing is kept where left out.
    client
        A Dask client, or None for this process.
    on_progress
        Called after every block; the total is that of the next look.
    """
    asked = SimulationPlan() if plan is None else plan
    state: _Mixtures | _Scores
    if isinstance(experiment, ConditionalExperiment):
        state = _Mixtures(experiment, asked)
    else:
        state = _Scores(experiment, asked)
    with ExitStack() as stack:
        if store is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            store = stack.enter_context(
                open_cells(Path(folder, "run"), settings=asked.describe(experiment), seed=seed)
            )
        compute = partial(_block, experiment)
        blocks, looks, seconds = GROUPS, 0, 0.0
        while True:
            cells = [_cell(number, asked.draws_per_block) for number in range(blocks)]
            done = run_cells(
                store, cells, compute, seed=seed, client=client, on_progress=on_progress
            )
            error, looks = state.look(done), looks + 1
            seconds = float(sum(cell.seconds for cell in done))
            met = error <= asked.standard_error
            if met or blocks >= asked.most_blocks:
                break
            blocks = _next(blocks, error / asked.standard_error, asked.most_blocks)
    pair = state.pair()
    estimate = state.estimate(pair, error)
    return Simulated(
        measure=asked.measure,
        estimate=estimate,
        standard_error=float(error),
        met=bool(met),
        draws=blocks * asked.draws_per_block,
        blocks=blocks,
        looks=looks,
        seconds=seconds,
        pair=pair,
    )


def _next(blocks: int, excess: float, most: int) -> int:
    """The errors fall like one over the root of the blocks; at most twice as many, whole rounds."""
    needed = min(blocks * excess**2, 2.0 * blocks)
    rounds = max(blocks // GROUPS + 1, int(np.ceil(needed / GROUPS)))
    return min(rounds * GROUPS, most)


def _cell(number: int, draws: int) -> Cell:
    return Cell(f"block={number}", {"block": number, "draws": draws})


def _block(experiment: Experiment, parameters: Mapping[str, Any], key: Key) -> Found:
    draws = int(parameters["draws"])
    return Found({"draws": draws}, experiment.arrays(draws, key))


class _Mixtures:
    """The state of a conditional experiment: mixtures over the designs drawn so far."""

    def __init__(self, experiment: ConditionalExperiment, plan: SimulationPlan) -> None:
        self.experiment, self.plan = experiment, plan
        self.mixtures = DesignMixtures(experiment.settled, experiment.settled_law)
        self.taken = 0

    def look(self, done: Sequence[FinishedCell]) -> float:
        """Take in the blocks that are new, and say how well the measure is known."""
        for cell in done[self.taken :]:
            self.mixtures.add(cell.arrays)
        self.taken = len(done)
        self.spread = self.mixtures.spread(self.plan.measure)
        return self.spread.standard_error

    def pair(self) -> LawPair:
        designs = self.taken * self.plan.draws_per_block
        known = self.experiment.provenance
        return self.mixtures.pair(_drawn(known, f"mixture over {designs} designs"))

    def estimate(self, pair: LawPair, error: float) -> Estimate:
        value = _measured(pair, self.plan)
        assert not isinstance(value, Estimate)
        number = float(np.asarray(value))
        reach = float(special.stdtrit(GROUPS - 1, 0.5 + 0.5 * self.plan.confidence)) * error
        least = 0.5 if self.plan.measure == "auc" else 0.0
        most = np.inf if self.plan.measure.startswith("kl") else 1.0
        low = min(self.spread.cross_fitted, number) - reach
        return Estimate(
            value=np.asarray(number),
            low=np.asarray(max(min(low, number), least)),
            high=np.asarray(min(number + reach, most)),
            confidence=self.plan.confidence,
            method=f"mixtures over designs, jackknife over {GROUPS} groups of blocks; the low end "
            "from a test learnt on half of the designs and judged on the other",
            bias="upwards on average, since the measure is convex in the laws; judged on held-out "
            f"designs it is {self.spread.cross_fitted:.6g}, which is low on average",
        )


class _Scores:
    """The state of a sampled experiment: what was seen so far, and how an adversary scores it.

    Even blocks are judged by what odd ones taught, and the other way round.  The two judgements are
    not independent: where there is nothing to find, both are nearly the same product of the two
    halves' chance differences.  Scores of both in one sample give an interval too narrow by up to
    sqrt(2) there: 23 of 200 nulls fell outside their 95% interval, and 3 of 200 do so now.  So each
    half is measured on its own, and values and ends are averaged, which errs on the wide side only.
    """

    def __init__(self, experiment: SampledExperiment, plan: SimulationPlan) -> None:
        self.experiment, self.plan = experiment, plan

    def look(self, done: Sequence[FinishedCell]) -> float:
        """Learn from the even blocks and score the odd ones, and the other way round."""
        odd = np.repeat(np.arange(len(done)) % 2 == 1, self.plan.draws_per_block)
        sides = [
            np.concatenate([cell.arrays[which] for cell in done])
            for which in ("member", "nonmember")
        ]
        member, nonmember = cross_fitted_scores(
            sides[0], sides[1], self.plan.adversary, second_half=(odd, odd)
        )
        source = (
            f"{self.plan.adversary} adversary taught by {len(odd) // 2} draws of each kind and "
            "judged on as many others"
        )
        provenance = _drawn(self.experiment.provenance, source)
        self.judged = [
            LawPair(Empirical(member[half]), Empirical(nonmember[half]), provenance)
            for half in (odd, ~odd)
        ]
        found = [_measured(pair, self.plan) for pair in self.judged]
        self.found = [one for one in found if isinstance(one, Estimate)]
        assert len(self.found) == 2
        # The intervals of measures are not all symmetric: half their width, in units of a normal.
        width = float(np.mean([float(one.high) - float(one.low) for one in self.found]))
        return 0.5 * width / float(special.ndtri(0.5 + 0.5 * self.plan.confidence))

    def pair(self) -> LawPair:
        return self.judged[0]

    def estimate(self, pair: LawPair, error: float) -> Estimate:
        note = "downwards: this adversary had to learn the laws, and the best one knows them"
        one, other = self.found
        return Estimate(
            np.asarray(0.5 * (one.value + other.value)),
            np.asarray(0.5 * (one.low + other.low)),
            np.asarray(0.5 * (one.high + other.high)),
            one.confidence,
            f"{self.plan.adversary} adversary, cross-fitted, both halves' intervals averaged; "
            f"{one.method}",
            f"{note}; {one.bias}" if one.bias else note,
        )


def _measured(pair: LawPair, plan: SimulationPlan) -> FloatArray | Estimate:
    known: dict[str, Any] = {"confidence": plan.confidence}
    if plan.measure == "advantage":
        return measures.advantage(pair, **known)
    if plan.measure == "auc":
        return measures.auc(pair, **known)
    if plan.measure == "kl":
        return measures.kl(pair, **known)
    return measures.kl(pair, "member_to_nonmember", **known)


def _drawn(provenance: Provenance, what: str) -> Provenance:
    source = f"{provenance.source}; {what}" if provenance.source else what
    return replace(provenance, method="simulated", source=source)


class Spread(NamedTuple):
    """A measure's value for the drawn mixtures, its standard error, and the half-judged value."""

    plug_in: float
    standard_error: float
    cross_fitted: float


@dataclass(frozen=True)
class Side:
    """One side's drawn components, and a share of probability that is known without drawing."""

    mean: list[FloatArray]
    sigma: list[FloatArray]
    settled: float = 0.0
    settled_law: Normal | None = None

    def law(self) -> Normal | NormalMixture:
        """The mixture of everything drawn."""
        mean, sigma = np.concatenate(self.mean), np.concatenate(self.sigma)
        if self.settled_law is not None and self.settled > 0.0:
            weights = np.concatenate(
                [[self.settled], np.full(len(mean), (1.0 - self.settled) / len(mean))]
            )
            mean = np.concatenate([[float(self.settled_law.mean)], mean])
            sigma = np.concatenate([[float(self.settled_law.sigma)], sigma])
            return NormalMixture(weights, mean, sigma)
        if np.ptp(mean) == 0.0 and np.ptp(sigma) == 0.0:
            return Normal(float(mean[0]), float(sigma[0]))
        return NormalMixture(1.0, mean, sigma)


class DesignMixtures:
    """The two mixtures, block after block; the blocks go to the groups in turn."""

    def __init__(self, settled: float = 0.0, settled_law: Normal | None = None) -> None:
        self.member = Side([], [])
        self.nonmember = Side([], [], settled, settled_law)
        self._nodes: FloatArray | None = None
        self._sums: list[FloatArray] = []
        self._tabulated = 0

    def add(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take in a block's components: member_mean, member_sigma and so on, each (designs,)."""
        for name, side in (("member", self.member), ("nonmember", self.nonmember)):
            side.mean.append(np.asarray(arrays[f"{name}_mean"], dtype=np.float64))
            side.sigma.append(np.asarray(arrays[f"{name}_sigma"], dtype=np.float64))

    def pair(self, provenance: Provenance) -> LawPair:
        """The pair of mixtures of everything drawn."""
        return LawPair(self.member.law(), self.nonmember.law(), provenance)

    def spread(self, measure: TabulatedMeasure) -> Spread:
        """How well the measure is known; ``measure`` is advantage, auc, kl or kl_reverse."""
        weights, groups = self._groups()
        total = groups.sum(axis=1)
        plug_in = measures.tabulated(measure, weights, self._densities(total, GROUPS))
        left = [
            measures.tabulated(measure, weights, self._densities(total - groups[:, g], GROUPS - 1))
            for g in range(GROUPS)
        ]
        error = np.sqrt((GROUPS - 1) / GROUPS * np.sum((np.array(left) - np.mean(left)) ** 2))
        halves = [self._densities(groups[:, half::2].sum(axis=1), GROUPS // 2) for half in (0, 1)]
        judged = [
            measures.tabulated(measure, weights, halves[1 - half], learnt=halves[half])
            for half in (0, 1)
        ]
        return Spread(float(plug_in), float(error), float(np.mean(judged)))

    def _densities(self, sums: FloatArray, groups: int) -> tuple[FloatArray, FloatArray]:
        """Member and nonmember density on the nodes, from the sums over some groups."""
        per_group = len(self.member.mean) // GROUPS
        drawn = [groups * per_group * len(side.mean[0]) for side in (self.member, self.nonmember)]
        member, nonmember = sums[0] / drawn[0], sums[1] / drawn[1]
        if self.nonmember.settled_law is not None and self.nonmember.settled > 0.0:
            law, share = self.nonmember.settled_law, self.nonmember.settled
            assert self._nodes is not None
            known = _density(self._nodes, law.mean.reshape(1), law.sigma.reshape(1))
            nonmember = (1.0 - share) * nonmember + share * known
        return member, nonmember

    def _groups(self) -> tuple[FloatArray, FloatArray]:
        """Trapezoid weights, and sums of densities (2, groups, nodes); tabulated block by block."""
        count = len(self.member.mean)
        if count == 0 or count % GROUPS:
            raise InputError(f"the number of blocks must be a multiple of {GROUPS}.")
        if self._nodes is None:
            self._place(count)
        for _ in range(2):
            self._tabulate(count)
            assert self._nodes is not None
            weights = np.gradient(self._nodes)
            sums = np.array([self._sums[0], self._sums[1]])
            member, nonmember = self._densities(sums.sum(axis=1), GROUPS)
            if max(abs(weights @ member - 1.0), abs(weights @ nonmember - 1.0)) < 1e-3:
                break
            # Later components reach where the first ones did not.
            self._place(count)
        return weights, sums

    def _place(self, count: int) -> None:
        chosen = []
        for side in (self.member, self.nonmember):
            mean, sigma = np.concatenate(side.mean[:count]), np.concatenate(side.sigma[:count])
            spread = np.linspace(0, len(mean) - 1, _PLACED).astype(np.intp)
            rows = np.concatenate([np.argsort(sigma)[spread], np.argsort(mean)[spread]])
            chosen.append(mean[rows, None] + sigma[rows, None] * _Z)
        law = self.nonmember.settled_law
        if law is not None and self.nonmember.settled > 0.0:
            chosen.append(float(law.mean) + float(law.sigma) * _Z[None, :])
        self._nodes = np.unique(np.concatenate([nodes.ravel() for nodes in chosen]))
        self._sums = [np.zeros((GROUPS, len(self._nodes))) for _ in range(2)]
        self._tabulated = 0

    def _tabulate(self, count: int) -> None:
        assert self._nodes is not None
        for block in range(self._tabulated, count):
            for sums, side in zip(self._sums, (self.member, self.nonmember), strict=True):
                found = _density(self._nodes, side.mean[block], side.sigma[block])
                sums[block % GROUPS] += found
        self._tabulated = count


def _density(nodes: FloatArray, mean: FloatArray, sigma: FloatArray) -> FloatArray:
    """The sum of the components' densities on the nodes."""
    total = np.zeros(len(nodes))
    step = max(1, 2_000_000 // len(nodes))
    for start in range(0, len(mean), step):
        m, s = mean[start : start + step, None], sigma[start : start + step, None]
        total += (np.exp(-0.5 * ((nodes - m) / s) ** 2) / s).sum(axis=0)
    return np.asarray(total / np.sqrt(2.0 * np.pi))
