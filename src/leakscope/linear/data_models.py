"""Section 5 of **linear**: data models beyond Gaussian features, with one interface.

In each of them the prediction given the design is a zero-mean Gaussian, because coefficients and
label noise are, and its variance is computable.  The laws are therefore mixtures over designs
(Rao-Blackwell), and a few hundred designs do what the paper does with 100,000 draws in bins.

Every model comes in two conventions: ``"text"`` is what the paper says, ``"published"`` what the
code behind its figures does; each model says where they differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal, NormalMixture
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.linear.design import OutputNoise, require_scale
from leakscope.linear.law_pair import label_nodes, population_provenance
from leakscope.linear.moments import gaussian_moments, prediction_weights
from leakscope.settings.plan import LinearAttacker, LinearDesignSettings
from leakscope.settings.setting import default_of

Convention = Literal["text", "published"]
IntArray = NDArray[np.int64]
CONVENTION: Convention = default_of(LinearDesignSettings, "convention")

# Member's and non-member's moments, (2, designs K) each, and the settled share.
DrawnDesigns = tuple[tuple[FloatArray, FloatArray], float]

# Positions of a record for which one design answers.
_POSITIONS = 8

# Up to so many ReLU features a design may fail to interpolate, and each is looked at.
_FEW_UNITS = 40


@dataclass(frozen=True, eq=False)
class Query:
    """A record in question and whatever else stays fixed while designs are drawn anew.

    ``features`` are the record's own (latent vector, time), ``fixed`` the rest (loadings).
    """

    features: FloatArray
    fixed: FloatArray


class DataModel(ABC):
    """A world with a linear model in it, from which designs can be drawn around a fixed record."""

    @abstractmethod
    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """Draw a record in question."""

    @abstractmethod
    def label_variance(self, query: Query) -> float:
        """Variance of the record's label y0 over coefficients and label noise."""

    @abstractmethod
    def moments(
        self, query: Query, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw one design: (2, K) for the member and for the non-member.

        Rows: variance of the prediction given the design, and its covariance with y0.  K > 1 where
        a symmetry lets one design answer for K equally likely positions of the record.
        """

    def settled(self, query: Query) -> float:
        """Probability that a design without the record still holds its features, row for row.

        Such a design predicts as if the record were in it, so it is not drawn: `moments` draws
        from the others.
        """
        return 0.0

    @abstractmethod
    def assumptions(self) -> tuple[Assumption, ...]:
        """What this model and convention assume, and who knows what."""


def data_model_law_pair(
    model: DataModel,
    query: Query,
    *,
    attacker: LinearAttacker = "label_hidden",
    noise: OutputNoise | None = None,
    labels: ArrayLike | None = None,
    designs: int = 500,
    random_state: int | np.random.Generator | Key | None = None,
) -> LawPair:
    """The laws of the prediction at ``query``: mixtures over ``designs`` random designs.

    Member and non-member share their designs, all but the member's own row: their difference then
    varies less than with designs of their own.  Drawn components have equal weights and those of
    one design stand together; a first component with another weight is the probability that is
    known without drawing (`DataModel.settled`).

    Parameters
    ----------
    attacker, noise, labels
        As for `law_pair`: for the label-known attacker a batch of L pairs, the laws given the
        labels, in standard deviations of y0 (`label_nodes` by default).

    Examples
    --------
    >>> from leakscope.linear import LatentSpace, data_model_law_pair
    >>> model = LatentSpace(n=20, p=60, latent=4)
    >>> pair = data_model_law_pair(model, model.query(1), designs=50, random_state=2)
    >>> pair.nonmember.components  # eight of each design
    400
    """
    drawn = design_moments(model, query, designs=designs, random_state=random_state)
    return pair_of_designs(
        model, query, drawn, attacker=attacker, noise=noise, labels=labels, designs=designs
    )


def pair_of_designs(
    model: DataModel,
    query: Query,
    drawn: DrawnDesigns,
    *,
    attacker: LinearAttacker = "label_hidden",
    noise: OutputNoise | None = None,
    labels: ArrayLike | None = None,
    designs: int,
) -> LawPair:
    """`data_model_law_pair` of designs that were drawn before (`design_moments`)."""
    sides, settled = drawn
    extra = (0.0, 0.0) if noise is None else noise.variances()
    scores = None
    if attacker == "label_known":
        scores = label_nodes()[0] if labels is None else np.atleast_1d(np.asarray(labels, float))
    laws = [
        design_law(side, model.label_variance(query), share, more, scores)
        for side, share, more in zip(sides, (0.0, settled), extra, strict=True)
    ]
    return LawPair(laws[0], laws[1], design_provenance(model, attacker, noise, designs))


def design_provenance(
    model: DataModel, attacker: LinearAttacker, noise: OutputNoise | None, designs: int
) -> Provenance:
    """Where laws of drawn designs come from."""
    return population_provenance(
        attacker,
        noise,
        method="simulated",
        source=f"linear Section 5, {type(model).__name__}, mixture over {designs} designs",
        assumptions=model.assumptions(),
    )


def design_moments(
    model: DataModel,
    query: Query,
    *,
    designs: int,
    random_state: int | np.random.Generator | Key | None = None,
) -> DrawnDesigns:
    """`DataModel.moments` of many designs, (2, designs K) a side, and the settled share."""
    if designs < 2:
        raise InputError(f"designs must be 2 or more, but it is {designs}.")
    key = as_key(random_state)
    settled = model.settled(query)
    if settled == 1.0:
        label = np.full((2, 2), model.label_variance(query))
        return (label, label), 0.0
    drawn = [model.moments(query, key.child(k).generator()) for k in range(designs)]
    member, nonmember = (np.concatenate(side, axis=1) for side in zip(*drawn, strict=True))
    return (member, nonmember), settled


def design_law(
    side: FloatArray,
    label: float,
    settled: float,
    noise: float = 0.0,
    scores: FloatArray | None = None,
) -> Normal | NormalMixture:
    """A mixture with the settled component first; its prediction is the label itself.

    A prediction that is one number given what the attacker knows (zero where no ReLU is active, the
    label where the model repeats it) is given a spread of 1e-9.  One that is the label in every
    design has no law given the label.
    """
    weights: FloatArray | float = 1.0
    if settled > 0.0:
        drawn = side.shape[1]
        weights = np.concatenate([[settled], np.full(drawn, (1.0 - settled) / drawn)])
        side = np.column_stack([[label, label], side])
    variance, covariance = side
    if scores is None:
        total = np.maximum(variance, 1e-18 * label) + noise
        if np.ptp(total) <= 1e-9 * total.max():
            return Normal(0.0, float(np.sqrt(total[0])))
        return NormalMixture.scale(np.sqrt(total), weights)
    slope = covariance / label
    rest = np.maximum(variance - slope * covariance, 0.0) + noise
    certain = rest <= 1e-12 * label
    if certain.all():
        raise InputError(
            "The prediction is the label itself, so an attacker who knows the label knows the "
            "prediction and no law is needed; leakscope.planning.data_model_advantage says what "
            "he gains."
        )
    # one spread for all of them: rounding would make two equal numbers two laws
    rest = np.where(certain, 1e-18 * label, rest)
    means = slope * scores[:, None] * np.sqrt(label)
    return NormalMixture(weights, means, np.broadcast_to(np.sqrt(rest), means.shape))


def _member_moments(
    latent: FloatArray,
    rows: FloatArray,
    records: FloatArray,
    trained: FloatArray,
    asked: FloatArray,
    variance: float,
    noise: float,
) -> FloatArray:
    """`gaussian_moments` of K members, each of which takes the first place in turn.

    A member is its latent ``records``, the row of features it is ``trained`` on, and the features
    at which its prediction is ``asked``, a column each.
    """
    found = []
    for k in range(asked.shape[1]):
        latent[0], rows[0] = records[:, k], trained[:, k]
        weights = prediction_weights(rows, asked[:, k : k + 1])
        one = gaussian_moments(latent, records[:, k : k + 1], weights, variance, noise)
        one[1] += noise * weights[0]
        found.append(one)
    return np.concatenate(found, axis=1)


def _require_room(numbers: int, what: str) -> None:
    """Refuse a world of which one design alone does not fit into memory."""
    require_memory(
        8 * numbers,
        f"One design of this {what}",
        "use fewer records, fewer features or a smaller dim",
    )


@dataclass(frozen=True)
class LatentSpace(DataModel):
    """y = Z beta + noise, X = Z W' + U, and the model sees X only (Fig. 5a).

    ``"text"``: loadings w_j ~ N(0, I_d), the record's covariates carry noise like all others, and
    for a member the label is the record's.  ``"published"``: loadings have unit norm, the record
    has no covariate noise, and for a member the row of X is replaced but its label is not.
    """

    n: int
    p: int
    latent: int
    sigma: float = 1.0
    convention: Convention = CONVENTION

    def __post_init__(self) -> None:
        if self.n < 2 or self.p < 1 or self.latent < 1:
            raise InputError("A latent space needs n of 2 or more, p and dim of 1 or more.")
        require_scale("sigma", self.sigma)
        _require_room(2 * self.latent * (self.n + self.p) + self.n * self.p, "latent space")

    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """A latent vector z0, and W with the record's covariates x0 as its last column."""
        generator = as_key(random_state).generator()
        z0 = generator.standard_normal(self.latent)
        loadings = generator.standard_normal((self.p, self.latent))
        if self.convention == "published":
            loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
        x0 = loadings @ z0
        if self.convention == "text":
            x0 += generator.standard_normal(self.p)
        return Query(z0, np.column_stack([loadings, x0]))

    def label_variance(self, query: Query) -> float:
        """||z0||^2/d + sigma^2."""
        return float(query.features @ query.features) / self.latent + self.sigma**2

    def moments(
        self, query: Query, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Of x0'X^+ y given Z and U: variance ||Z'w||^2/d + sigma^2 ||w||^2.

        What x0 has outside the span of W may be rotated there, since U is as likely rotated: a
        design answers for 8 such records.  Where x0 has nothing there (``"published"``) it
        replaces one row after the other.
        """
        loadings, positions = query.fixed[:, :-1], self._positions(query, generator)
        latent = generator.standard_normal((self.n, self.latent))
        rows = latent @ loadings.T + generator.standard_normal((self.n, self.p))
        nonmember = self._moments(latent, query, prediction_weights(rows, positions))
        if self.convention == "published":
            return self._relabelled(query, latent, rows), nonmember
        if self.p >= self.n:
            return np.full(nonmember.shape, self.label_variance(query)), nonmember
        records = np.broadcast_to(query.features[:, None], (self.latent, positions.shape[1]))
        member = _member_moments(
            latent, rows, records, positions, positions, 1.0 / self.latent, self.sigma**2
        )
        return member, nonmember

    def _relabelled(self, query: Query, latent: FloatArray, rows: FloatArray) -> FloatArray:
        """A member whose row of X is replaced and whose label is not, for several rows.

        A model that interpolates repeats the label that stands in the replaced row.
        """
        if self.p >= self.n:
            spread = (latent**2).sum(axis=1) / self.latent + self.sigma**2
            return np.stack([spread, latent @ query.features / self.latent])
        x0 = query.fixed[:, -1:]
        found = []
        for k in range(min(_POSITIONS, self.n)):
            replaced = rows.copy()
            replaced[k] = x0[:, 0]
            found.append(self._moments(latent, query, prediction_weights(replaced, x0)))
        return np.concatenate(found, axis=1)

    def _positions(self, query: Query, generator: np.random.Generator) -> FloatArray:
        """(p, K) records as likely as x0."""
        loadings, x0 = query.fixed[:, :-1], query.fixed[:, -1:]
        if self.convention == "published" or self.p <= self.latent + 1:
            return x0
        basis = np.linalg.qr(loadings)[0]
        inside = basis @ (basis.T @ x0)
        turned = generator.standard_normal((self.p, _POSITIONS))
        turned -= basis @ (basis.T @ turned)
        length = np.linalg.norm(x0 - inside) / np.linalg.norm(turned, axis=0)
        return np.asarray(inside + turned * length)

    def _moments(self, latent: FloatArray, query: Query, weights: FloatArray) -> FloatArray:
        record = query.features[:, None]
        return gaussian_moments(latent, record, weights, 1.0 / self.latent, self.sigma**2)

    def assumptions(self) -> tuple[Assumption, ...]:
        """W and x0 are fixed and known to the attacker; z0 is known only through x0 and W."""
        return (
            Assumption("latent features, covariate noise, coefficients and label noise are normal"),
            Assumption("the attacker knows the loadings W and the record's latent vector"),
            Assumption(f"convention: {self.convention}"),
        )


@dataclass(frozen=True)
class FourierSeries(DataModel):
    """A signal of cosines observed without noise at n of the times 0, ..., times - 1 (Fig. 5b).

    ``"text"``: the signal has D = ``times`` frequencies 2 pi k/(2D - 1), of which the model fits
    the first p.  ``"published"``: p and D are swapped in the call, so the signal has p frequencies
    2 pi k/(2p - 1), and the model fits them all.

    Then the signal repeats itself with period 2p - 1: times t, 2p - 1 - t, 2p - 1 + t, ... have the
    same row of features.  A non-member whose row another time already brought is predicted exactly,
    and the probability of that is known (`settled`).  Rows that repeat are equal on paper only; in
    float64 they differ by rounding, ``lstsq`` takes some of the differences for features, and
    Fig. 5b depends on it.  ``rounding`` keeps that (rows computed as cos(t (2 pi k/M)), NumPy's
    cut-off for the rank); without it repeated rows are equal.
    """

    n: int
    p: int
    times: int = 1024
    convention: Convention = CONVENTION
    rounding: bool = True

    def __post_init__(self) -> None:
        if not 2 <= self.n < self.times or not 1 <= self.p <= self.times:
            raise InputError("A Fourier series needs 2 <= n < times and 1 <= p <= times.")
        _require_room(2 * self.n * self.p + 4 * self.times, "Fourier series")

    @property
    def frequencies(self) -> int:
        """How many frequencies the signal has."""
        return self.p if self.convention == "published" else self.times

    @property
    def period(self) -> int:
        """M = 2D - 1: the time after which the signal repeats itself."""
        return 2 * self.frequencies - 1

    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """A time."""
        time = as_key(random_state).generator().integers(self.times)
        return Query(np.array([float(time)]), np.empty(0))

    def label_variance(self, query: Query) -> float:
        """||x0||^2 divided by the number of frequencies; there is no label noise."""
        record = self._rows(query.features.astype(np.int64))[0]
        return float(np.dot(record, record)) / self.frequencies

    def settled(self, query: Query) -> float:
        """One minus the probability that n of the other times miss all of the record's class."""
        missing = self.times - 1 - self._others(query).size
        free = self.times - 1.0 - np.arange(self.n)
        return float(1.0 - np.prod(np.maximum(free - missing, 0.0) / free))

    def moments(
        self, query: Query, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Variance ||X'w||^2 divided by the number of frequencies, over times of other classes."""
        chosen = generator.choice(self._others(query), self.n, replace=False)
        return self._moments_at(query, chosen)

    def _moments_at(self, query: Query, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        record = self._rows(query.features.astype(np.int64))[0]
        rows = self._rows(chosen)
        nonmember = self._moments(rows, record)
        if self.p == self.frequencies:
            # the model holds the whole signal, so what it was trained on it repeats
            return np.full((2, 1), self.label_variance(query)), nonmember
        rows[0] = record
        return self._moments(rows, record), nonmember

    def _others(self, query: Query) -> IntArray:
        """Times whose row of features is not the record's."""
        every = self._folded(np.arange(self.times))
        return np.flatnonzero(every != every[int(query.features[0])])

    def _folded(self, at: IntArray) -> IntArray:
        """The first time with the same row."""
        phase = at % self.period
        return np.minimum(phase, self.period - phase)

    def _rows(self, at: IntArray) -> FloatArray:
        times = at if self.rounding else self._folded(at)
        angle = np.outer(times, np.arange(self.frequencies) * (2.0 * np.pi) / self.period)
        return np.asarray(np.cos(angle) / np.sqrt(self.period + 2.0))

    def _moments(self, rows: FloatArray, record: FloatArray) -> FloatArray:
        # lstsq, not normal equations: the low frequencies alone are nearly dependent
        found = np.linalg.lstsq(rows[:, : self.p].T, record[: self.p, None], rcond=None)[0]
        weights = np.asarray(found, dtype=np.float64)
        return gaussian_moments(rows, record[:, None], weights, 1.0 / record.size, 0.0)

    def assumptions(self) -> tuple[Assumption, ...]:
        """What is fixed and known."""
        return (
            Assumption("coefficients of the frequencies are normal and there is no label noise"),
            Assumption("the attacker knows the time in question, not the other times"),
            Assumption(
                "rows of features that repeat are kept apart by rounding alone, as in the figure",
                holds=self.rounding,
                evidence="lstsq decides the rank",
            ),
            Assumption(f"convention: {self.convention}"),
        )


@dataclass(frozen=True)
class RandomRelu(DataModel):
    """y = Z beta + noise with Z of D columns, and the model sees X = max(ZV, 0) (Fig. 5c).

    ``"text"``: rows of V (D x p) have unit norm in R^p and the query is passed through the ReLU
    like every record.  ``"published"``: columns of V have unit norm in R^D and the query is not
    passed through the ReLU, although a member's training row is; for p > n a member's prediction
    is its label all the same (Fig. 5c comes back only so: 0.66 at p = 110 where a fit would give
    0.24).  V is drawn anew for every design in both, so the attacker does not know it.
    """

    n: int
    p: int
    dim: int
    sigma: float = 1.0
    convention: Convention = CONVENTION

    def __post_init__(self) -> None:
        if self.n < 2 or self.p < 1 or self.dim < self.n + 2:
            raise InputError("Random ReLU features need n >= 2, p >= 1 and dim >= n + 2.")
        require_scale("sigma", self.sigma)
        height = self.n + _POSITIONS if self.convention == "published" else self.dim
        room = 2 * height * self.p + self.n * (self.p + self.dim)
        _require_room(room, "world of random ReLU features")

    @property
    def _repeats_labels(self) -> bool:
        """Whether a member's prediction is its label in all designs that can be met.

        As the figure takes it, for p > n.  By the text a row of few features may be a combination
        of the others or all zero: with n = p it is so in 22% of designs at p = 4, 1% at p = 10 and
        one in 4,000 at p = 20.
        """
        if self.convention == "published":
            return self.p > self.n
        return self.p >= self.n and self.p > _FEW_UNITS

    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """z0 ~ N(0, I_D)."""
        z0 = as_key(random_state).generator().standard_normal(self.dim)
        return Query(z0, np.empty(0))

    def label_variance(self, query: Query) -> float:
        """||z0||^2/D + sigma^2."""
        return float(query.features @ query.features) / self.dim + self.sigma**2

    def moments(
        self, query: Query, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Variance ||Z'w||^2/D + sigma^2 ||w||^2 and covariance with y0, at 8 positions of z0.

        Rotating z0 is as good as rotating Z and V (for unit rows of V: permuting and flipping
        coordinates), so each design answers for several records of the same norm.  Their answers
        are nearly independent: eight do the work of six designs or more.
        """
        if self.convention == "published":
            latent, records, directions = self._reduced(query.features, generator)
        else:
            records = self._permuted(query.features, generator)
            latent = generator.standard_normal((self.n, self.dim))
            directions = generator.standard_normal((self.dim, self.p))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rows = np.maximum(latent @ directions, 0.0)
        asked = directions.T @ records
        lifted = np.maximum(asked, 0.0)
        if self.convention == "text":
            asked = lifted
        weights = prediction_weights(rows, asked)
        nonmember = gaussian_moments(latent, records, weights, 1.0 / self.dim, self.sigma**2)
        if self._repeats_labels:
            return np.full(nonmember.shape, self.label_variance(query)), nonmember
        member = _member_moments(
            latent, rows, records, lifted, asked, 1.0 / self.dim, self.sigma**2
        )
        return member, nonmember

    def _permuted(self, z0: FloatArray, generator: np.random.Generator) -> FloatArray:
        order = generator.permuted(np.tile(z0, (_POSITIONS, 1)), axis=1)
        return np.asarray((order * generator.choice([-1.0, 1.0], order.shape)).T)

    def _reduced(
        self, z0: FloatArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Z, K positions of z0 and V in an orthonormal basis of their span: n + K numbers, not D.

        Bartlett's decomposition of Z with K further normal rows, which are then given the length
        of z0; a column of V is a normal vector over its norm, of which only n + K coordinates and
        the rest's length matter.
        """
        count = min(_POSITIONS, self.dim - self.n - 1)
        size = self.n + count
        rows = np.tril(generator.standard_normal((size, size)), -1)
        rows[np.diag_indices(size)] = np.sqrt(generator.chisquare(self.dim - np.arange(size)))
        records = rows[self.n :].T
        records = records * (np.linalg.norm(z0) / np.linalg.norm(records, axis=0))
        directions = generator.standard_normal((size, self.p))
        rest = generator.chisquare(self.dim - size, self.p)
        return rows[: self.n], records, directions / np.sqrt((directions**2).sum(axis=0) + rest)

    def assumptions(self) -> tuple[Assumption, ...]:
        """What is fixed and known."""
        return (
            Assumption("features, coefficients and label noise are normal"),
            Assumption("the attacker knows the record z0 and not the random directions V"),
            Assumption(f"convention: {self.convention}"),
        )
