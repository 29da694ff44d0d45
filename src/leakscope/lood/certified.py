"""The Nyström route: approximate leave-one-out laws with an interval for every record.

More and more inducing records, until nearly all records are known to the error asked for or there
may be no more of them; :mod:`leakscope.lood.certificate` says what is claimed of a record and why.
Where the n^2 values of the kernel can be computed a few times, the labels' part and the few records
that are still not known are then solved by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import Assumption
from leakscope.lood.certificate import (
    COVERAGE,
    DRAWN_EXPOSED,
    DRAWN_OTHERS,
    Claims,
    Sample,
    claims,
    uncertified,
)
from leakscope.lood.conjugate_gradients import solve_columns
from leakscope.lood.identities import EPS, Leverages, laws_from_leverages
from leakscope.lood.nystrom import (
    Inducing,
    Nystrom,
    Rows,
    first_rows,
    more_rows,
    nystrom_bytes,
)
from leakscope.lood.process import Process
from leakscope.lood.separation import Separation
from leakscope.settings import AUDIT_DEFAULTS

INDUCING = AUDIT_DEFAULTS.inducing
ERROR = AUDIT_DEFAULTS.error

# The first inducing records are this share of the most there may be, then half of them, then all.
STAGES = (1 / 8, 1 / 2, 1.0)

# This share of the inducing records are the most exposed: they are then seen in full, and are what
# an audit is for.
EXPOSED = 0.1

# More inducing records are not tried once this share of the records is known well enough.
ENOUGH = 0.99

# A record whose KL is surely below this is known well enough: no test has an advantage of 0.001 on
# it (Pinsker's inequality), and nobody needs its digits.
UNSEEN_BELOW = 2e-6

# Up to so many records the kernel's n^2 values are computed again and again to solve what is left;
# so many records are solved together.
SOLVED_UP_TO = 100_000
SOLVED_AT_ONCE = 200

# By which powers of the inducing records the claims may be thought to fall on, and how far nearly
# all may be thought to lie behind half.
LEAST_POWER, MOST_POWER, MOST_SPREAD = 0.5, 3.0, 20.0

# What conjugate gradients may leave undone, as a share of the error asked for.
LEFT_UNDONE = 0.05


# Seconds of one core: of both passes for each record and pair of inducing records, all else
# included, and for each kernel value of a step of conjugate gradients (docs/benchmarks/size.md).
PER_PRODUCT, PER_VALUE, USUAL_STEPS = 1.5e-10, 1e-8, 12


@dataclass(frozen=True)
class Certificate:
    """What an approximate audit claims, and of how many records it cannot.

    Attributes
    ----------
    rows
        The inducing records, row numbers.
    records
        How many were audited.
    drawn
        How many of them were compared with all others exactly, to calibrate the claims.
    error
        The relative error of the KL that was asked for.
    claimed
        The median over the records of the relative error that is claimed.
    unresolved
        How many records are not known to the error asked for.
    solved
        How many were solved by conjugate gradients.
    needed
        About how many inducing records would be needed, extrapolated; None where these are enough,
        or nothing can be said.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> told = lood.Certificate(np.arange(500), 10_000, 600, 0.1, 0.021, 1200, 0, 900)
    >>> print(told.sentence())
    Nyström, 500 inducing records of 10,000; half of the KLs are known to 2.1%, 1,200 are not known
    to 10%, which would take about 900 inducing records
    """

    rows: Rows
    records: int
    drawn: int
    error: float
    claimed: float
    unresolved: int
    solved: int
    needed: int | None

    def sentence(self) -> str:
        """The finding in words."""
        half = f"half of the KLs are known to {_percent(self.claimed)}"
        if self.claimed > 1.0:
            half = "half of the KLs are not known to a factor of 2"
        rest = f"{self.unresolved:,} are not known to {_percent(self.error)}"
        if not self.unresolved:
            rest = f"all to {_percent(self.error)}"
        elif self.needed == self.records:
            rest += ", for which nearly all records would have to be inducing"
        elif self.needed is not None:
            rest += f", which would take about {self.needed:,} inducing records"
        if self.solved:
            rest += f"; {self.solved:,} were solved exactly"
        return f"Nyström, {len(self.rows):,} inducing records of {self.records:,}; {half}, {rest}"


class Reached(NamedTuple):
    """The claims with so many inducing records: of half of the records, and of nearly all."""

    inducing: int
    median: float
    nearly_all: float


@dataclass(frozen=True)
class CertifiedRecords:
    """What the Nyström route comes back with.

    Attributes
    ----------
    laws
        With an interval for every record (``laws.ends``), trusted where it is narrow enough.
    others
        The laws at the other noise variances asked for, without intervals.
    certificate
        What is claimed.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> process = lood.Process(X, np.sin(X[:, 0]), kernels.rbf(1.0), noise_variance=0.1)
    >>> found = lood.certified_records(process, inducing=20, levels=(1.0,))
    >>> bool(found.laws.trusted.all()), found.others[0].noise_variance
    (True, 1.0)
    """

    laws: Separation
    others: tuple[Separation, ...]
    certificate: Certificate


def certified_cost(records: int, inducing: int, outputs: int = 1) -> tuple[float, int]:
    """Seconds of one core and bytes that `certified_records` takes at most.

    Examples
    --------
    >>> from leakscope import lood
    >>> seconds, size = lood.certified_cost(1_000_000, 2000)
    >>> round(seconds), round(size / 1e9, 1)
    (759, 0.9)
    """
    number = min(inducing, records)
    seconds = PER_PRODUCT * records * sum((share * number) ** 2 for share in STAGES)
    if records <= SOLVED_UP_TO:
        seconds += PER_VALUE * USUAL_STEPS * records**2
    drawn = DRAWN_EXPOSED + DRAWN_OTHERS
    return seconds, nystrom_bytes(records, number, drawn, outputs)


def certified_records(
    process: Process,
    *,
    inducing: int = INDUCING,
    error: float = ERROR,
    levels: Sequence[float] = (),
) -> CertifiedRecords:
    """The laws with and without each record, through some records that stand for all.

    Parameters
    ----------
    process
        With its noise variance; records leave singly.
    inducing
        The most inducing records there may be.
    error
        The relative error of a record's KL up to which it is trusted.
    levels
        Other noise variances, whose KL is wanted for ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 2)), rng.normal(size=500)
    >>> process = lood.Process(X, y, kernels.rbf(2.0), noise_variance=0.1)
    >>> found = lood.certified_records(process, inducing=100)
    >>> low, high = found.laws.interval
    >>> dense = process.separation().kl
    >>> bool(np.mean((low <= dense) & (dense <= high)) > 0.99), found.laws.route
    (True, 'nystrom')
    """
    if process.groups is not None:
        raise InputError("the route nystrom is of records that leave singly, not of groups.")
    if not 0.0 < error < 1.0:
        raise InputError(f"error must be between 0 and 1, but it is {error:g}.")
    if inducing < 2:
        raise InputError(f"at least 2 inducing records are needed, but there are {inducing}.")
    s2, count = process.noise_variance, process.records
    sizes = [min(max(2, round(share * inducing)), count) for share in STAGES]
    rows = first_rows(process, sizes[0])
    nystrom = Nystrom.of(Inducing.of(process, rows))
    (seen,) = nystrom.seen([s2])
    reached: list[Reached] = []
    for size in sorted({*sizes[1:]}):
        first = uncertified(nystrom, seen)
        kl = _laws(process, first, seen.residual * ((1.0 - first) / s2)[:, None]).kl
        sample = Sample.of(kl)
        most = np.argsort(-kl, kind="stable")[: round(EXPOSED * size)]
        rows = more_rows(rows, seen.leverage + nystrom.left / s2, size, first=most)
        nystrom = Nystrom.of(Inducing.of(process, rows), sample.rows)
        seen, *rest = nystrom.seen([s2, *levels])
        claimed = claims(nystrom, seen, sample)
        laws = _with_ends(process, claimed, error)
        middle, far = np.quantile(laws.error_estimate, [0.5, ENOUGH])
        reached.append(Reached(len(rows), float(middle), float(far)))
        if np.mean(laws.trusted) >= ENOUGH:
            break
    solved = 0
    if not laws.trusted.all() and count <= SOLVED_UP_TO:
        laws, solved = _solved(nystrom, claimed, laws, error)
    unresolved = int(np.count_nonzero(~laws.trusted))
    certificate = Certificate(
        rows=rows,
        records=count,
        drawn=len(sample.rows),
        error=error,
        claimed=float(np.median(laws.error_estimate)),
        unresolved=unresolved,
        solved=solved,
        needed=_needed(reached, error, count) if unresolved else None,
    )
    return CertifiedRecords(
        laws=replace(laws, assumptions=_assumed(certificate, sample)),
        others=tuple(
            _laws(
                process.with_noise(other.noise_variance, process.kernel_scale),
                leverage := uncertified(nystrom, other),
                other.residual * ((1.0 - leverage) / other.noise_variance)[:, None],
            )
            for other in rest
        ),
        certificate=certificate,
    )


def _assumed(told: Certificate, sample: Sample) -> tuple[Assumption, ...]:
    exposed = int(np.count_nonzero(sample.exposed[sample.rows]))
    return (
        Assumption(
            statement=f"the {told.drawn - exposed} records drawn at random, and {exposed} of the "
            f"{np.count_nonzero(sample.exposed)} most exposed, are like those they were drawn from:"
            f" their exact rows of the kernel set every interval, to hold for {COVERAGE:.1%}",
            holds=None,
            evidence=told.sentence(),
        ),
    )


def _needed(reached: list[Reached], error: float, records: int) -> int | None:
    """Where the claims fall to the error asked for, as a power of the inducing records."""
    last = reached[-1]
    if last.nearly_all <= error or len(reached) < 2:
        return None
    before, power = reached[-2], LEAST_POWER
    if before.median > last.median > 0.0:
        steeper = np.log(before.median / last.median) / np.log(last.inducing / before.inducing)
        power = float(np.clip(steeper, LEAST_POWER, MOST_POWER))
    far = min(last.nearly_all, MOST_SPREAD * last.median) / error
    wanted = last.inducing * far ** (1.0 / power)
    size = 10.0 ** np.floor(np.log10(wanted))
    return int(min(np.ceil(wanted / size) * size, records))


def _solved(
    nystrom: Nystrom, claimed: Claims, laws: Separation, error: float
) -> tuple[Separation, int]:
    """The labels' part of all records, and the most exposed unknown ones, exactly."""
    process = nystrom.inducing.process
    s2, outputs = process.noise_variance, process.outputs
    # Once the labels' part is known, only the leverages decide.
    size = np.linalg.norm(claimed.a, axis=1)
    known = _with_ends(process, replace(claimed, size_low=size, size_high=size), error)
    unknown = np.flatnonzero(~known.trusted)
    chosen = unknown[np.argsort(-laws.kl[unknown], kind="stable")][:SOLVED_AT_ONCE]
    columns = np.zeros((process.records, outputs.shape[1] + len(chosen)))
    columns[:, : outputs.shape[1]] = outputs
    columns[chosen, outputs.shape[1] + np.arange(len(chosen))] = 1.0
    h = claimed.leverage
    narrow = LEFT_UNDONE * error * np.sqrt(s2 * np.quantile(h, 0.01))
    own = np.sqrt(LEFT_UNDONE * error * np.minimum(h[chosen], 1.0 - h[chosen]))
    tolerance = np.concatenate([np.full(outputs.shape[1], narrow), own])
    found, rest = solve_columns(nystrom, columns, tolerance)
    a, lengths = found[:, : outputs.shape[1]], np.linalg.norm(rest, axis=0)
    m = (1.0 - claimed.leverage_low) / s2
    error_a = np.sqrt(m / s2) * np.linalg.norm(lengths[: outputs.shape[1]])
    # b^T M^{-1} b is at least (b + r)^T x, and at most that and ||r||^2/s2.
    tail = slice(outputs.shape[1], None)
    least = np.einsum("ij,ij->j", (columns + rest)[:, tail], found[:, tail])
    above = lengths[tail] ** 2 / s2
    leverage, low, high = h.copy(), claimed.leverage_low.copy(), claimed.leverage_high.copy()
    high[chosen] = np.minimum(1.0 - s2 * least, 1.0 - 4.0 * EPS)
    low[chosen] = np.maximum(high[chosen] - s2 * above, claimed.leverage_low[chosen])
    leverage[chosen] = np.maximum(high[chosen] - 0.5 * s2 * above, low[chosen])
    size = np.linalg.norm(a, axis=1)
    better = Claims(leverage, low, high, a, np.maximum(size - error_a, 0.0), size + error_a)
    return _with_ends(process, better, error), len(chosen)


def _with_ends(process: Process, claimed: Claims, error: float) -> Separation:
    """The laws, those of both ends of each claim, and trust by how far these are apart."""
    size = np.linalg.norm(claimed.a, axis=1)
    along = claimed.a / np.where(size > 0.0, size, 1.0)[:, None]
    along[size == 0.0, 0] = 1.0
    middle = _laws(process, claimed.leverage, claimed.a)
    low = _laws(process, claimed.leverage_low, along * claimed.size_low[:, None])
    high = _laws(process, claimed.leverage_high, along * claimed.size_high[:, None])
    kl = np.maximum(middle.kl, np.finfo(np.float64).tiny)
    away = np.maximum(high.kl - middle.kl, middle.kl - low.kl) / kl
    trusted: NDArray[np.bool_] = (away <= error) | (high.kl < UNSEEN_BELOW)
    ends = [replace(end, error_estimate=away, trusted=trusted) for end in (low, high)]
    return replace(
        middle, error_estimate=away, trusted=trusted, ends=(ends[0], ends[1]), error_asked=error
    )


def _laws(process: Process, leverage: FloatArray, a: FloatArray) -> Separation:
    s2, none = process.noise_variance, np.zeros(process.records)
    # A record that nobody sees has a leverage below what float64 holds.
    h = np.maximum(leverage, np.finfo(np.float64).tiny)
    return laws_from_leverages(
        Leverages(h, (1.0 - h) / s2, a, none, none, none),
        process.targets,
        noise_variance=s2,
        condition_number=float(np.sum(process.diagonal()) / s2),
        route="nystrom",
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{100.0 * share:.2g}%"
