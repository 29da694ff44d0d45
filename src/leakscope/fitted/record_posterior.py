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
from leakscope.fitted.broken_lines import hats
from leakscope.fitted.record_population import (
    SHARES,
    TIMES,
    Moments,
    Population,
    falls,
    first_guess,
    on_grid,
    refitted,
)
from leakscope.fitted.record_sums import RecordSums

# How many nodes of s, u and r: for the posterior, and for the fit of the population.
FINE, COARSE = (7, 9, 5), (5, 7, 5)
REACH = 2.7
# Nodes of log r around its mean, in standard deviations of the population, and their distance.
R_REACH = 2.2
BLOCK = 1000
ROUNDS = 20
# The population has some twenty numbers; more records than these do not make them better known.
MOST_FITTED = 1500


@dataclass(frozen=True)
class Nodes:
    """A block of records' nodes and their probabilities; axes are (record, s, u, r, share).

    The last axis is whether the record's shift is one of the few with a large variance.  Given a
    node, m is normal with mean ``m`` and variance ``m_variance``; ``gap`` is how far the
    record's own mean is from the population's, ``total`` the variance which that should have, and
    ``shift`` the population's.  ``alone`` are the probabilities of (s, u) from the log-odds
    without the record only, ``off`` how far log s is off its line, and ``follows`` the error
    expected in the mean with the record.
    """

    u: FloatArray
    log_s: FloatArray
    log_r: FloatArray
    probability: FloatArray
    m: FloatArray
    m_variance: FloatArray
    gap: FloatArray
    total: FloatArray
    shift: FloatArray
    alone: FloatArray
    off: FloatArray
    follows: FloatArray
    s_step: FloatArray
    r_step: FloatArray
    u_step: FloatArray


def nodes(sums: RecordSums, population: Population, counts: tuple[int, int, int] = FINE) -> Nodes:
    """Nodes and probabilities of the records in ``sums``, one block."""
    s_nodes, u_nodes, r_nodes = counts
    df_out, df_in = sums.n_out - 1.0, sums.n_in - 1.0
    line_s = population.expected_log_s(sums.mean_out)
    line_r, _ = population.expected_log_r(sums.mean_out, np.zeros_like(line_s))
    # Log r follows log s, so that both sums of squares say where s is.
    log_s, s_step = _spread_nodes(
        sums.squares_out + sums.squares_in * np.exp(2.0 * (line_s - line_r)),
        df_out + df_in,
        line_s,
        population.log_s_spread,
        s_nodes,
    )
    s = np.exp(log_s)
    z = np.linspace(-3.2, 3.2, u_nodes)
    noise = s / np.sqrt(sums.n_out)[:, None]
    u = sums.mean_out[:, None, None] + noise[:, :, None] * z
    off = log_s[:, :, None] - population.expected_log_s(u)
    log_p = (
        -0.5 * z * z
        + population.log_prior_u(u)
        - 0.5 * (off / population.log_s_spread) ** 2
        + _log_squares(sums.squares_out, df_out, log_s)[:, :, None]
    )
    alone = np.exp(log_p - log_p.max(axis=(1, 2), keepdims=True))
    alone /= alone.sum(axis=(1, 2), keepdims=True)
    mean_r, spread_r = population.expected_log_r(u, off)
    q = np.linspace(-R_REACH, R_REACH, r_nodes)
    log_r = mean_r[..., None] + spread_r[..., None] * q
    error_in = np.exp(log_r) / np.sqrt(sums.n_in)[:, None, None, None]
    correlation = sums.correlation[:, None, None, None]
    shift = population.expected_shift(u, off)
    line_error = sums.line_error[:, None, None] * s[:, :, None]
    around = population.shift_variance(shift, s[:, :, None], line_error)[:, :, :, None]
    total = around + ((1.0 - correlation**2) * error_in**2)[..., None]
    # The mean without the record errs by -z of its standard errors; the mean with it follows.
    gap = (sums.mean_in[:, None, None] - u - shift)[..., None] + (
        correlation * error_in * z[:, None]
    )
    gap = gap[..., None]
    log_q = log_p[..., None] - 0.5 * q**2 + _log_squares(sums.squares_in, df_in, log_r)
    log_q = log_q[..., None] + np.log(SHARES) - 0.5 * np.log(total) - 0.5 * gap**2 / total
    log_q -= log_q.max(axis=(1, 2, 3, 4), keepdims=True)
    probability = np.exp(log_q)
    probability /= probability.sum(axis=(1, 2, 3, 4), keepdims=True)
    gain = around / total
    middle = error_in[:, s_nodes // 2, u_nodes // 2, r_nodes // 2]
    return Nodes(
        u=u,
        log_s=log_s,
        log_r=log_r,
        probability=probability,
        m=(u + shift)[..., None, None] + gain * gap,
        m_variance=around * (1.0 - gain),
        gap=gap,
        total=total,
        shift=shift,
        alone=alone,
        off=off,
        follows=-np.einsum("nsu,u->n", alone, z) * sums.correlation * middle,
        s_step=s_step,
        r_step=spread_r * (q[1] - q[0]),
        u_step=noise * (z[1] - z[0]),
    )


def fit_population(sums: RecordSums, rounds: int = ROUNDS) -> Population:
    """EM over at most ``MOST_FITTED`` records, evenly chosen by rank of their means."""
    if sums.records > MOST_FITTED:
        order = np.argsort(sums.mean_out, kind="stable")
        places = np.linspace(0, sums.records - 1, MOST_FITTED).round().astype(np.int64)
        sums = sums.take(order[places])
    population = first_guess(sums)
    for _ in range(rounds):
        parts = [
            _moments(nodes(block, population, COARSE), block, population)
            for block, _ in blocks(sums)
        ]
        joined = Moments(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in Moments.__dataclass_fields__
            )
        )
        population = refitted(population, joined, sums)
    return population


def blocks(sums: RecordSums) -> Iterator[tuple[RecordSums, slice]]:
    """The records a block at a time, with where each block lies."""
    for start in range(0, sums.records, BLOCK):
        rows = slice(start, min(start + BLOCK, sums.records))
        yield sums.take(rows), rows


def _moments(found: Nodes, sums: RecordSums, population: Population) -> Moments:
    """What one block says of the population.

    What the shift's line is regressed on are expectations given the log-odds without the record,
    and not those with it: a line that chose each record's u to suit m would prove itself.
    """
    p = found.probability
    weight = p.sum(axis=(3, 4))
    inverse = p / found.total
    size = found.shift * np.exp(found.log_s)[:, :, None]
    knots = population.knots
    middle = found.u[:, found.u.shape[1] // 2]
    basis = hats(found.u.ravel(), knots).reshape(*found.u.shape, -1)
    left = falls(population.size(found.u))
    tilted = found.alone * np.exp(
        population.expected_log_s(found.u) + population.shift_power * left * found.off
    )
    expected = np.einsum("nsu,nsu->n", found.alone, found.u)
    return Moments(
        u=middle,
        places=_places(middle, sums, population),
        density=on_grid(population.grid, found.u, weight)[None],
        score=np.einsum("nsu,c,nsurc->n", size, TIMES, inverse / found.total * found.gap**2),
        information=np.einsum("nsu,c,nsurc->n", size, TIMES, inverse),
        design=np.einsum("nsu,nsuk->nk", tilted, basis),
        shift=sums.mean_in - found.follows - expected,
        precision=1.0 / (found.total @ SHARES).reshape(len(p), -1).mean(axis=1),
        by_power=np.einsum(
            "nsu,nsu->n", found.alone * falls(population.size(found.u)) * found.off, found.shift
        ),
    )


def _places(u: FloatArray, sums: RecordSums, population: Population) -> FloatArray:
    """Probabilities of each record's places ``u``, given its mean without it and nothing else.

    Lines of variances are regressed on them.  If the sums of squares had a say in where u is,
    records with large ones would be moved to where the line is high, and raise it further.  What is
    far from its mean has a large s, and counts for more: a Student law is a mixture of normals.
    """
    df = 0.5 / population.log_s_spread**2
    log_s = population.expected_log_s(u)
    square = ((sums.mean_out[:, None] - u) / np.exp(log_s)) ** 2 * sums.n_out[:, None]
    log_p = population.log_prior_u(u) - log_s - 0.5 * (df + 1.0) * np.log1p(square / df)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True) * (df + square) / (df + 1.0))


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
    """Log likelihood of each record's sum of squares, over nodes of its log standard deviation."""
    shape = (-1, *[1] * (log_s.ndim - 1))
    inverse = np.exp(np.minimum(-2.0 * log_s, 60.0))
    return np.asarray(-df.reshape(shape) * log_s - 0.5 * squares.reshape(shape) * inverse)
