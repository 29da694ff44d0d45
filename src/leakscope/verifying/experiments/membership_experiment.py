"""The membership experiment (linear Exp. 1, Def. 2.1) for any data model and estimator.

A coin decides whether the record z0 is among the training records; a model is fitted; the attacker
sees something of it and says which.  An experiment here is the two laws of what the attacker sees,
given by draws, or by draws of the laws given the design where these are known to be normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import Provenance
from leakscope.linear.data_models import DataModel, Query, design_law, design_moments
from leakscope.linear.design import GaussianDesign, OutputNoise, RecordNorms
from leakscope.linear.law_pair import law_pair, pair_of_moments
from leakscope.linear.moments import moments
from leakscope.settings.plan import LinearMethod

Draw = Callable[[int, Key], tuple[ArrayLike, ArrayLike]]
DrawLaws = Callable[[int, Key], tuple[Normal, Normal]]
Generator = np.random.Generator

_POPULATION = Provenance(
    question="population",
    adjacency="replaced",
    random=("data", "labels"),
    method="simulated",
    source="linear Exp. 1",
)


@dataclass(frozen=True)
class SampledExperiment:
    """An experiment of which the attacker's observations can be drawn, and nothing else is known.

    Parameters
    ----------
    draw
        ``draw(count, key)`` gives ``count`` observations with the record and ``count`` without it,
        (count,) or (count, d) each; random numbers from ``key.generator()`` only.  On a cluster it
        must be importable there.
    name
        What a stored run is known by; change it when the function changes.
    provenance
        What the question is; a typical record, replaced, where left out.
    """

    draw: Draw
    name: str
    provenance: Provenance = _POPULATION

    def arrays(self, count: int, key: Key) -> dict[str, NDArray[Any]]:
        """One block of draws, checked."""
        sides = [np.asarray(side, dtype=np.float64) for side in self.draw(count, key)]
        for side, which in zip(sides, ("member", "nonmember"), strict=True):
            if side.ndim not in (1, 2) or len(side) != count or not np.isfinite(side).all():
                raise InputError(
                    f"{self.name}: {count} finite {which} draws were asked for, but the answer's "
                    f"shape is {side.shape}"
                    + ("." if side.ndim not in (1, 2) or len(side) != count else ", not finite.")
                )
        return {"member": sides[0], "nonmember": sides[1]}


@dataclass(frozen=True)
class ConditionalExperiment:
    """An experiment in which the observation is normal given the design (Rao-Blackwell).

    Parameters
    ----------
    draw
        ``draw(count, key)`` gives the laws given ``count`` drawn designs or more, equally likely,
        with the record and without it: two batches of `Normal`.  Both may share their designs.
    name, provenance
        As for `SampledExperiment`.
    settled, settled_law
        A probability of the nonmember law that is known without drawing, and its part of the law.
    """

    draw: DrawLaws
    name: str
    provenance: Provenance = _POPULATION
    settled: float = 0.0
    settled_law: Normal | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.settled < 1.0 or (self.settled > 0.0) != (self.settled_law is not None):
            raise InputError(
                "settled must be a probability below one, and come with its law where it is not "
                f"zero, but it is {self.settled!r}."
            )

    def arrays(self, count: int, key: Key) -> dict[str, NDArray[Any]]:
        """One block of laws, as their means and standard deviations."""
        found: dict[str, NDArray[Any]] = {}
        for which, law in zip(("member", "nonmember"), self.draw(count, key), strict=True):
            if not isinstance(law, Normal):
                raise InputError(
                    f"{self.name}: the {which} laws given the design must be Normal, "
                    f"not {type(law).__name__}."
                )
            shape = law.batch_shape or (count,)
            if len(shape) != 1 or shape[0] < count:
                raise InputError(
                    f"{self.name}: laws of {count} designs were asked for, but the {which} "
                    f"batch's shape is {law.batch_shape}."
                )
            spread = law.broadcast_to(shape)
            found[f"{which}_mean"] = np.array(spread.mean)
            found[f"{which}_sigma"] = np.array(spread.sigma)
        return found

    def sampled(self) -> SampledExperiment:
        """The same experiment by plain draws, one from every design's law."""
        return SampledExperiment(self._draw_once, f"{self.name}, sampled", self.provenance)

    def _draw_once(self, count: int, key: Key) -> tuple[FloatArray, FloatArray]:
        laws, generator = self.arrays(count, key.child(0)), key.child(1).generator()
        sides = []
        for which in ("member", "nonmember"):
            mean, sigma = laws[f"{which}_mean"], laws[f"{which}_sigma"]
            one = generator.integers(len(mean), size=count) if len(mean) > count else slice(None)
            sides.append(mean[one] + sigma[one] * generator.standard_normal(count))
        if self.settled_law is not None:
            at = generator.random(count) < self.settled
            law, noise = self.settled_law, generator.standard_normal(count)
            sides[1] = np.where(at, law.mean + law.sigma * noise, sides[1])
        return sides[0], sides[1]


def fitted_experiment(
    data: Callable[[Generator], tuple[ArrayLike, ArrayLike, ArrayLike, float]],
    fit: Callable[[FloatArray, FloatArray], Callable[[FloatArray], ArrayLike]],
    *,
    name: str,
    observe: Callable[[Any, FloatArray, float], ArrayLike] | None = None,
) -> SampledExperiment:
    """The experiment from a data model and an estimator: fit with the record and without it.

    The member's training set has the record in the place of the first row.  Both models of a draw
    share their other rows.

    Parameters
    ----------
    data
        From a generator to X (n, d), y (n,), and the record x0 (d,), y0.  A record that is to be
        the same in every draw is returned the same every time.
    fit
        From X and y to a predictor of rows.
    name
        What a stored run is known by.
    observe
        What the attacker sees of a predictor: ``observe(predictor, x0, y0)``, a number or a few;
        the prediction at x0 where left out.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.verifying import fitted_experiment
    >>> def data(rng):
    ...     X = rng.normal(size=(20, 2))
    ...     return X, X @ [1.0, 1.0] + rng.normal(size=20), np.array([3.0, 0.0]), 9.0
    >>> def least_squares(X, y):
    ...     beta = np.linalg.lstsq(X, y, rcond=None)[0]
    ...     return lambda rows: rows @ beta
    >>> experiment = fitted_experiment(data, least_squares, name="least squares, n=20")
    >>> from leakscope._numerics.keys import Key
    >>> member, nonmember = experiment.draw(50, Key(0))
    >>> bool(np.mean(member) > np.mean(nonmember) + 1.0)
    True
    """
    provenance = replace(_POPULATION, observes="prediction" if observe is None else "unspecified")
    return SampledExperiment(partial(_fitted, data, fit, observe), name, provenance)


def _fitted(
    data: Callable[..., Any],
    fit: Callable[..., Any],
    observe: Callable[..., Any] | None,
    count: int,
    key: Key,
) -> tuple[FloatArray, FloatArray]:
    def seen(X: FloatArray, y: FloatArray, x0: FloatArray, y0: float) -> FloatArray:
        predictor = fit(X, y)
        answer = predictor(x0[None, :]) if observe is None else observe(predictor, x0, y0)
        found = np.asarray(answer, dtype=np.float64).ravel()
        return np.asarray(found[0]) if found.size == 1 else found

    sides: tuple[list[Any], list[Any]] = ([], [])
    for number in range(count):
        X, y, x0, y0 = data(key.child(number).generator())
        rows, targets = np.array(X, dtype=np.float64), np.array(y, dtype=np.float64)
        record = np.asarray(x0, dtype=np.float64)
        sides[1].append(seen(rows.copy(), targets.copy(), record, float(y0)))
        rows[0], targets[0] = record, y0
        sides[0].append(seen(rows, targets, record, float(y0)))
    return np.array(sides[0]), np.array(sides[1])


def data_model_experiment(
    model: DataModel, query: Query, *, noise: OutputNoise | None = None
) -> ConditionalExperiment:
    """The experiment in one of linear's data models, at one record; the label is hidden."""
    settled = model.settled(query)
    extra = (0.0, 0.0) if noise is None else noise.variances()
    share = settled if 0.0 < settled < 1.0 else 0.0
    law = Normal(0.0, float(np.sqrt(model.label_variance(query) + extra[1]))) if share else None
    provenance = replace(
        _POPULATION,
        observes="prediction",
        random=("data", "labels") if noise is None else ("data", "labels", "output_noise"),
        attacker_knows_label=False,
        source=f"linear Exp. 1 and Section 5, {type(model).__name__}",
        assumptions=model.assumptions(),
    )
    record = np.array2string(query.features, precision=17, threshold=8)
    name = f"{model!r}, record {record}, noise {noise!r}"
    draw = partial(_model_laws, model, query, extra)
    return ConditionalExperiment(draw, name, provenance, share, law)


def _model_laws(
    model: DataModel, query: Query, extra: tuple[float, float], count: int, key: Key
) -> tuple[Normal, Normal]:
    sides, _ = design_moments(model, query, designs=max(2, count), random_state=key)
    label = model.label_variance(query)
    laws = [
        _normals(design_law(side, label, 0.0, more), max(count, side.shape[1]))
        for side, more in zip(sides, extra, strict=True)
    ]
    return laws[0], laws[1]


def gaussian_design_experiment(
    design: GaussianDesign,
    norms: RecordNorms | None = None,
    *,
    method: LinearMethod = "simulated",
    noise: OutputNoise | None = None,
) -> ConditionalExperiment:
    """The experiment of a `GaussianDesign` at one record; the label is hidden.

    ``method`` ``"simulated"`` draws whole matrices and solves for each, which checks the other
    routes; ``"exact"`` draws what matters of them only.
    """
    record = RecordNorms.typical(design) if norms is None else norms
    if record.used.size != 1:
        raise InputError(f"an experiment is about one record, but there are {record.used.size}.")
    if method == "asymptotic":
        raise InputError("an experiment draws designs: method must be simulated or exact.")
    provenance = law_pair(design, record, method="exact", noise=noise, draws=2).provenance
    kept = tuple(a for a in provenance.assumptions if "resolved by its draws" not in a.statement)
    provenance = replace(
        provenance,
        method="simulated",
        source=f"linear Exp. 1, {method} designs",
        assumptions=kept,
    )
    squares = f"{float(record.used[0])!r}, {float(record.unused[0])!r}"
    name = f"{design!r}, squared norms {squares}, {method}, noise {noise!r}"
    draw = partial(_design_laws, design, record, method, noise)
    return ConditionalExperiment(draw, name, provenance)


def _design_laws(
    design: GaussianDesign,
    norms: RecordNorms,
    method: LinearMethod,
    noise: OutputNoise | None,
    count: int,
    key: Key,
) -> tuple[Normal, Normal]:
    member, nonmember = moments(design, norms, method, count, key)
    pair = pair_of_moments(
        member, nonmember, attacker="label_hidden", noise=noise, provenance=_POPULATION
    )
    return _normals(pair.member, count), _normals(pair.nonmember, count)


def _normals(law: Any, count: int) -> Normal:
    """The components of a mixture as a batch; a single one stands for all of them."""
    if isinstance(law, Normal):
        found = Normal(law.mean.reshape(-1), law.sigma.reshape(-1))
    else:
        found = Normal(law.means.reshape(-1), law.sigmas.reshape(-1))
    return found.broadcast_to((count,)) if found.batch_shape == (1,) else found
