"""Each record's unknowns given its few log-odds and the population: sums over small grids.

Given u and s the log-odds without the record are independent of those with it, and given r too the
mean m is normal and drops out in closed form.  What is left is a sum over nodes of (log s, u,
log r), placed for every record where its likelihood and the population leave mass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.record_population import (
    Moments,
    Population,
    first_guess,
    hats,
    mean_line,
    refitted,
    tilt_hats,
)
from leakscope.fitted.record_sums import RecordSums

S_NODES, U_NODES, R_NODES = 7, 9, 7
REACH = 2.7
BLOCK = 1000
ROUNDS = 40
# The population has some forty numbers; more records than these do not make them better known.
MOST_FITTED = 2500


@dataclass(frozen=True)
class Nodes:
    """A block of records' nodes and their probabilities; axes are (record, s, u, r).

    Given a node, m is normal with mean ``m`` and variance ``m_variance``; ``gap`` is how far the
    record's own mean is from the population's, and ``total`` the variance which that should have.
    ``alone`` are the probabilities of (s, u) from the log-odds without the record only, ``off`` how
    far log s is off its line, and ``follows`` the error expected in the mean with the record.
    """

    u: FloatArray
    log_s: FloatArray
    log_r: FloatArray
    probability: FloatArray
    m: FloatArray
    m_variance: FloatArray
    gap: FloatArray
    total: FloatArray
    alone: FloatArray
    off: FloatArray
    follows: FloatArray
    s_step: FloatArray
    r_step: FloatArray
    u_step: FloatArray


def nodes(sums: RecordSums, population: Population) -> Nodes:
    """Nodes and probabilities of the records in ``sums``, one block."""
    log_s, s_step = _spread_nodes(
        sums.squares_out,
        sums.n_out - 1.0,
        population.expected_log_s(sums.mean_out),
        population.log_s_spread,
        S_NODES,
    )
    s = np.exp(log_s)
    z = np.linspace(-3.2, 3.2, U_NODES)
    noise = s / np.sqrt(sums.n_out)[:, None]
    u = sums.mean_out[:, None, None] + noise[:, :, None] * z
    line_s = population.expected_log_s(u)
    log_p = (
        -0.5 * z * z
        + population.log_prior_u(u)
        - 0.5 * ((log_s[:, :, None] - line_s) / population.log_s_spread) ** 2
        + _log_squares(sums.squares_out, sums.n_out - 1.0, log_s)[:, :, None]
    )
    off = log_s[:, :, None] - line_s
    alone = np.exp(log_p - log_p.max(axis=(1, 2), keepdims=True))
    alone /= alone.sum(axis=(1, 2), keepdims=True)
    mean, line_r = population.expected_in(u, off)
    centre = line_r[:, S_NODES // 2, U_NODES // 2]
    log_r, r_step = _spread_nodes(
        sums.squares_in, sums.n_in - 1.0, centre, population.log_r_spread + 0.05, R_NODES
    )
    error_in = np.exp(log_r) / np.sqrt(sums.n_in)[:, None]
    within = (1.0 - sums.correlation[:, None] ** 2) * error_in**2
    around = (population.relative_spread_in(u) * s[:, :, None]) ** 2
    total = around[..., None] + within[:, None, None, :]
    # The mean without the record errs by -z of its standard errors; the mean with it follows.
    follows = (sums.correlation[:, None] * error_in)[:, None, None, :] * z[:, None]
    gap = (sums.mean_in[:, None, None] - mean)[..., None] + follows
    log_q = (
        log_p[..., None]
        - 0.5 * ((log_r[:, None, None, :] - line_r[..., None]) / population.log_r_spread) ** 2
        + _log_squares(sums.squares_in, sums.n_in - 1.0, log_r)[:, None, None, :]
        - 0.5 * np.log(total)
        - 0.5 * gap**2 / total
    )
    log_q -= log_q.max(axis=(1, 2, 3), keepdims=True)
    probability = np.exp(log_q)
    probability /= probability.sum(axis=(1, 2, 3), keepdims=True)
    gain = around[..., None] / total
    return Nodes(
        u=u,
        log_s=log_s,
        log_r=log_r,
        probability=probability,
        m=mean[..., None] + gain * gap,
        m_variance=around[..., None] * (1.0 - gain),
        gap=gap,
        total=total,
        alone=alone,
        off=off,
        follows=-np.einsum("nsu,u->n", alone, z) * sums.correlation * error_in[:, R_NODES // 2],
        s_step=s_step,
        r_step=r_step,
        u_step=noise * (z[1] - z[0]),
    )


def fit_population(sums: RecordSums, rounds: int = ROUNDS) -> Population:
    """EM over at most ``MOST_FITTED`` records, evenly chosen by rank of their means."""
    if sums.records > MOST_FITTED:
        order = np.argsort(sums.mean_out, kind="stable")
        places = np.linspace(0, sums.records - 1, MOST_FITTED).round().astype(np.int64)
        sums = sums.take(order[places])
    population = first_guess(sums)
    sees_out = bool((sums.n_out > 1).any())
    sees_in = bool((sums.n_in > 1).any())
    for _ in range(rounds):
        parts, lines = [], []
        for block, _ in blocks(sums):
            found = nodes(block, population)
            parts.append(_moments(found, block))
            lines.append(_calibrated(found, block, population, sees_out))
        mean = mean_line(population, *(np.concatenate(each) for each in zip(*lines, strict=True)))
        joined = Moments(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in Moments.__dataclass_fields__
            )
        )
        population = refitted(population, joined, mean, sees_out, sees_in)
    return population


def blocks(sums: RecordSums) -> Iterator[tuple[RecordSums, slice]]:
    """The records a block at a time, with where each block lies."""
    for start in range(0, sums.records, BLOCK):
        rows = slice(start, min(start + BLOCK, sums.records))
        yield sums.take(rows), rows


def _calibrated(
    found: Nodes, sums: RecordSums, population: Population, sees_out: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What the line of m is regressed on: expectations given the log-odds without the record.

    They are not given those with it: a line that chose each record's u to suit m would prove
    itself.
    """
    flat = found.u.reshape(-1)
    count = len(found.u)
    basis = hats(flat, population.knots).reshape(*found.u.shape, -1)
    design = np.einsum("nsu,nsuk->nk", found.alone, basis)
    if sees_out:
        tilts = tilt_hats(flat, population).reshape(*found.u.shape, -1)
        tilt = np.einsum("nsu,nsuk->nk", found.alone * found.off, tilts)
        design = np.hstack([design, tilt])
    weight = 1.0 / found.total.reshape(count, -1).mean(axis=1)
    expected = np.einsum("nsu,nsu->n", found.alone, found.u)
    return design, sums.mean_in - found.follows - expected, weight


def _moments(found: Nodes, sums: RecordSums) -> Moments:
    p = found.probability
    weight = p.sum(axis=3)
    safe = np.maximum(weight, 1e-300)
    log_r = found.log_r[:, None, None, :]
    inverse = p / found.total
    s = np.exp(found.log_s)[:, :, None]
    information = s**2 * inverse.sum(axis=3) / safe
    score = s**2 * (inverse / found.total * found.gap**2).sum(axis=3) / safe
    mean_r = (p * log_r).sum(axis=3) / safe
    r_variance = (p * (log_r - mean_r[..., None]) ** 2).sum(axis=3) / safe
    log_s = np.broadcast_to(found.log_s[:, :, None], weight.shape)
    kept = weight.ravel() > 1e-6

    def spread_out(each: FloatArray) -> FloatArray:
        return np.asarray(np.broadcast_to(each[:, None, None], weight.shape).ravel()[kept])

    return Moments(
        weight=weight.ravel()[kept],
        u=found.u.ravel()[kept],
        log_s=log_s.ravel()[kept],
        score=score.ravel()[kept],
        information=information.ravel()[kept],
        s=np.exp(log_s.ravel()[kept]),
        log_r=mean_r.ravel()[kept],
        log_r_variance=r_variance.ravel()[kept],
        squares_out=spread_out(sums.squares_out),
        df_out=spread_out(sums.n_out - 1.0),
        squares_in=spread_out(sums.squares_in),
        df_in=spread_out(sums.n_in - 1.0),
    )


def _spread_nodes(
    squares: FloatArray, df: FloatArray, expected: FloatArray, spread: float, count: int
) -> tuple[FloatArray, FloatArray]:
    """Nodes of a log standard deviation around the shrunken one, and their distance."""
    prior_df = 0.5 / spread**2
    shrunken = (prior_df * np.exp(2.0 * expected) + squares) / (prior_df + df)
    width = REACH / np.sqrt(2.0 * (prior_df + df))
    step = 2.0 * width / (count - 1)
    return 0.5 * np.log(shrunken)[:, None] + step[:, None] * np.arange(
        -(count // 2), count // 2 + 1
    ), step


def _log_squares(squares: FloatArray, df: FloatArray, log_s: FloatArray) -> FloatArray:
    """Log likelihood of a sum of squares."""
    return np.asarray(
        -df[:, None] * log_s - 0.5 * squares[:, None] * np.exp(np.minimum(-2.0 * log_s, 60.0))
    )
