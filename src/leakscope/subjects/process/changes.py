"""What can be changed of a process: its training noise, its features, its records, its answers.

More training noise need not expose less: a record's mean shifts less, but the answers of the others
change too.  One eigendecomposition gives every level (:mod:`leakscope.lood.noise`), where the
kernel has no finite features that give it at once.

Principal directions are those of all records and stay fixed when one leaves, as the audit's scaling
does.  The features are projected as they are (not centred): with all directions the kernel is the
audit's own.  What the kernel left open, such as a median length scale, is chosen again.

To leave records out changes the inverse on the others by a downdate
(:meth:`leakscope.lood.WholeInverse.without`) instead of a factorisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from leakscope import lood
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.lood.groups import WholeInverse, separation_of_blocks
from leakscope.results.advice import Target
from leakscope.results.document import AssumptionEntry
from leakscope.subjects.laws import LARGEST_VARIANCE, Rows, UnitLaws
from leakscope.subjects.pricing import CONSTANT_TARGET, Folds, Terms, folds_of, like_these
from leakscope.subjects.process.defence import HeldOutDraws, held_out, principal_directions
from leakscope.subjects.process.subject import GaussianProcess, ProcessLaws, laws_of_separation
from leakscope.subjects.subject import Change, Scan, Stages, Wanted

# Kernel matrices held at once by the widest stage: the matrix, its eigenvectors and their
# squares, the work of the decomposition and the blocks of a fold.
MATRICES = 6

PER_DECADE = 6

# Relative width to which the training noise is found.
WIDTH = 1e-5

# At most this many numbers of components are tried at first; then those between are halved.
COMPONENTS_TRIED = 16

# On random halves of diabetes kernel ridge gave 0.6 to 0.8 at the penalty that promises a draw 0.2.
ONLY_A_DRAW = (
    "This holds where each answer is a draw from the process's posterior; a deterministic fit, "
    "such as kernel ridge, with the same number as its penalty gives more away."
)
MODEL_FAMILY = (
    "The advice is about a Gaussian process with the audit's kernel, of which one draw is "
    "released; your model was not examined. leakscope verify compares the audit with models that "
    "are actually trained."
)
APPROXIMATE = "The audit was approximate; the advice is by exact laws."
OWN_POINTS = (
    "The noise is for questions about the records themselves; another question may tell more"
)


class AdvisedProcess(GaussianProcess):
    """A process as advice changes it: exact laws, which share what is costly.

    ``level`` is another training noise than the process's own; ``left`` the records that are left,
    None where all are, and ``blocks`` then what is known of the inverse without the others.
    ``reach`` is given where noise on the answers must do for one question anywhere.
    """

    def __init__(
        self,
        audited: GaussianProcess,
        process: lood.ProcessOnRecords,
        *,
        ids: tuple[RecordId, ...],
        reach: float | None = None,
        level: float | None = None,
        left: Rows | None = None,
        blocks: WholeInverse | None = None,
    ) -> None:
        super().__init__(
            process, audited.plan, ids=ids, dataset=audited.dataset, settings=audited.settings
        )
        self.audited, self.reach, self.left, self.blocks = audited, reach, left, blocks
        self.level = process.noise_variance if level is None else level

    def laws(self, stage: Stages) -> ProcessLaws:
        """The exact laws, by the shortest way."""
        return laws_of_separation(self._separation(), reach=self.reach)

    def _separation(self) -> lood.Separation:
        process = self.process
        if self.left is None:
            own = self.level == process.noise_variance
            return process.separation() if own else process.at_noise(self.level)
        if self.blocks is None:
            return process.only(self.left).separation()
        groups = None
        if process.groups is not None:
            groups = np.unique(process.labels[self.left], return_inverse=True)[1].astype(np.intp)
        return separation_of_blocks(self.blocks, process.targets[self.left], groups, rows=self.left)

    def keep(self, units: Rows) -> AdvisedProcess:
        """Without some units: by a factorisation of its own, and of what is left by downdates."""
        process, blocks = self.process, self.blocks
        records = np.arange(process.records) if self.left is None else self.left
        numbers = np.unique(process.labels[records], return_inverse=True)[1]
        stay = np.isin(numbers, units)
        if self.left is not None and process.phi is None:
            gone = records[~stay]
            if blocks is None:
                blocks = process.inverse()
                gone = np.union1d(gone, np.setdiff1d(np.arange(process.records), records))
            blocks = blocks.without(gone)
        return AdvisedProcess(
            self.audited,
            process,
            ids=tuple(self.ids[unit] for unit in units),
            reach=self.reach,
            left=records[stay],
            blocks=blocks,
        )

    def changes(self, wanted: Wanted) -> Iterator[Change]:
        """More training noise, and fewer components of the features."""
        yield self._more_noise(wanted.target)
        # Two matrices that no other change needs: whoever tries changes is through with the first.
        self.process.forget_spectrum()
        if self.process.features.ndim == 2:
            yield self._fewer_components()

    def _more_noise(self, target: Target) -> Change:
        own = self.process.noise_variance
        enough = min(enough_noise(self.process, target.enough_advantage), LARGEST_VARIANCE)
        levels = [own]
        while levels[-1] < enough:
            levels.append(float(own * 10.0 ** (len(levels) / PER_DECADE)))

        def at(level: float) -> AdvisedProcess:
            if level == own:
                return self
            return AdvisedProcess(
                self.audited, self.process, ids=self.ids, reach=self.reach, level=level
            )

        def along(scan: Scan, points: int) -> Sequence[float]:
            top = scan.levels[-1] if scan.found is None else scan.found
            beyond = [] if scan.found is None else [2.0 * top]
            return [*np.geomspace(own, top, points).tolist(), *beyond]

        return Change(
            name="kernel noise",
            setting="noise_variance",
            levels=levels,
            at=at,
            words=lambda level: f"Train with noise_variance {level:.4g} instead of {own:.4g}",
            between=lambda low, high: (
                float(np.sqrt(low * high)) if high > low * (1.0 + WIDTH) else None
            ),
            beyond=PER_DECADE,
            along=along,
            told=lambda scan: (_falls(scan, target.label),),
            always=(ONLY_A_DRAW,),
            unmet="Was not shown to meet",
        )

    def _fewer_components(self) -> Change:
        directions = principal_directions(self.process.features)
        rank = directions.shape[1]
        counts = np.arange(1, rank + 1)
        if rank > COMPONENTS_TRIED:
            counts = np.unique(np.geomspace(1, rank, COMPONENTS_TRIED).round().astype(np.intp))

        def at(count: float) -> AdvisedProcess:
            if count == self.process.features.shape[1]:
                return self
            shown = self.process.features @ directions[:, : int(count)]
            return AdvisedProcess(
                self.audited, self.process.with_features(shown), ids=self.ids, reach=self.reach
            )

        def along(scan: Scan, points: int) -> Sequence[float]:
            tried = sorted([*scan.levels, *scan.refined])
            places = np.linspace(0, len(tried) - 1, points).round().astype(int)
            best = scan.levels[int(np.argmin(scan.worst))] if scan.found is None else scan.found
            return sorted({*(tried[place] for place in places), best}, reverse=True)

        return Change(
            name="fewer features",
            setting="features",
            levels=[float(count) for count in counts[::-1]],
            at=at,
            words=lambda count: (
                f"Train on the first {int(count)} of {rank} principal components of the features"
            ),
            between=lambda low, high: float((low + high) // 2) if low - high > 1 else None,
            along=along,
            always=("The components are those of all records and stay fixed when one leaves.",),
        )

    def folds(self, wanted: Wanted) -> Folds:
        """Of whole units."""
        return folds_of(self.process.labels, wanted.settings, wanted.random_state)

    def held_out(self, folds: Folds | None, kept: Rows | None = None) -> HeldOutDraws:
        """What one draw answers about every record, of a process trained without its fold."""
        assert folds is not None
        process = self.process
        records = None if kept is None else np.flatnonzero(np.isin(process.labels, kept))
        return held_out(process, folds, self.level, records)

    def terms(self, wanted: Wanted, folds: Folds | None) -> Terms:
        """Squared error of draws, and the process's own words."""
        assert folds is not None
        variance = self.process.total_variance
        told = [APPROXIMATE] if self.audited.approximate else []
        return Terms(
            priced="the released answers' squared error",
            whose="their",
            variance=variance,
            untrusted="float64 does not resolve every {unit} there",
            **NOISE_WORDS,
            # Measures of many outputs take longer.
            batches=200 if self.process.outputs.shape[1] == 1 else 40,
            notes=(CONSTANT_TARGET,) if variance == 0.0 else (),
            warnings=(MODEL_FAMILY, *told),
            assumptions=(
                asked_once("at the record's own point" if self.reach is None else "anywhere"),
                AssumptionEntry(
                    statement="scales, components and kernel parameters stay fixed when a record "
                    "leaves",
                    holds=None,
                    evidence="as in the audit",
                ),
                like_these(
                    f"{folds.count}-fold cross-validation, repetitions: {len(folds.number)}; what "
                    "to drop was chosen once, on all records"
                ),
            ),
        )

    def cannot_tell(self, laws: UnitLaws, target: Target) -> str:
        """What float64 does not resolve."""
        which = f"{laws.untrusted} of {laws.units} {self.unit}s"
        return not_resolved(which, self.process.noise_variance, target)

    def noise_notes(self, laws: UnitLaws, target: Target) -> tuple[str, ...]:
        """What noise takes against a question that is not at the record's own point."""
        if self.reach is not None or self.process.groups is not None:
            return ()
        if self.process.reach is None:
            return (f"{OWN_POINTS}, and with this kernel there is no bound on how much.",)
        anywhere = laws_of_separation(self.process.separation(), reach=self.process.reach)
        variance = anywhere.least_noise(target)
        if variance is None:
            return (f"{OWN_POINTS}.",)
        sd = float(np.sqrt(variance))
        return (
            f"{OWN_POINTS}: a standard deviation of {sd:.4g} is enough for one question anywhere.",
        )

    def holds_at(self, noise: float) -> Literal["own", "any"]:
        """Without noise on the answers, or with enough of it, no question tells more."""
        return "own" if noise > 0.0 and self.reach is None else "any"


# How noise on the answers of a process is told: as it was found.
NOISE_WORDS: dict[str, Any] = {
    "noise": "Add fresh noise of standard deviation {sd:.4g}, in units of the target as used, to "
    "every released answer",
    "noise_digits": None,
}


def advised(audited: GaussianProcess, wanted: Wanted) -> AdvisedProcess:
    """The process as advice changes it; refused where it is too large, or has no bound."""
    process, reach = audited.process, None
    if wanted.settings.questions == "any":
        reach = process.reach
        if process.groups is not None or reach is None:
            raise InputError(
                "questions anywhere are bounded for records and for rbf and matern kernels only; "
                "ask for advice with questions at the records' own points."
            )
    if process.phi is None:
        require_memory(
            8 * MATRICES * process.records**2,
            f"advice on {process.records} records, which holds {MATRICES} kernel matrices,",
            "audit a subsample of the records and ask for advice on that, or audit with a kernel "
            "of few features, such as linear",
        )
        # Kept for every change: without it each would compute it anew.
        _ = process.matrix
    return AdvisedProcess(audited, process, ids=audited.ids, reach=reach)


def not_resolved(which: str, noise_variance: float, target: Target) -> str:
    """The sentence of units that float64 does not resolve."""
    return (
        f"Cannot tell whether the audit's own setting meets {target.words}: {which} are not "
        f"resolved by float64 at noise_variance {noise_variance:g}; audit with a larger one."
    )


def asked_once(where: str) -> AssumptionEntry:
    """That noisy answers are asked for once."""
    return AssumptionEntry(
        statement=f"where answers carry noise, the attacker asks one question, {where}",
        holds=None,
        evidence="more answers average the noise away; without noise on the answers no question or "
        "set of questions to one trained model tells more than the record's own point",
    )


def enough_noise(model: lood.ProcessOnRecords, advantage: float) -> float:
    """A training noise above which no unit's advantage is above this one, in closed form.

    With l the largest eigenvalue and g the records of the largest unit, x <= l/s2 and
    |a| <= |y|/s2.  Where s2 >= l the divergence KL(with || without) of a unit is then at most
    (l/s2^2)(g C l/4 + |y|^2), and the advantage at most sqrt(KL/2) (Pinsker).  What float64
    does not hold is infinite.
    """
    top = model.largest_eigenvalue
    largest_unit = 1 if model.groups is None else int(np.bincount(model.labels).max())
    with np.errstate(over="ignore", divide="ignore"):
        share = 0.25 * largest_unit * model.outputs.shape[1] * top + np.sum(model.outputs**2)
        found = max(top, float(np.sqrt(0.5 * top * share) / np.float64(advantage)))
    return found if np.isfinite(found) else float("inf")


def _falls(scan: Scan, label: str) -> str:
    """Whether the worst fell with the training noise, over the levels that were tried."""
    span = f"{len(scan.levels)} levels from {scan.levels[0]:.3g} to {scan.levels[-1]:.3g}"
    if scan.found is None:
        if scan.levels[-1] >= LARGEST_VARIANCE:
            return f"None of {span} meets it, and higher ones would overflow float64."
        words = f"Float64 has too few digits of {label} at any of {span}"
        return f"{words}; by a bound (Pinsker) the last is enough."
    if falls(scan):
        return f"The worst falls with the noise at all of {span}."
    again = "; above the level found it exceeds the target again" if scan.rises else ""
    return f"The worst does not always fall with the noise over {span}{again}."


def falls(scan: Scan) -> bool:
    """Whether the worst unit's measure never rose over the levels that were tried."""
    shown: FloatArray = np.array(scan.worst)[np.isfinite(scan.worst)]
    return bool(np.all(np.diff(shown) <= 1e-9 * np.maximum(shown[:-1], 1e-300)))
