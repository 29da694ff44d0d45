"""What leakscope said before it was rewritten, as arrays: the cases (issue 40, "Freeze first").

A case is a function that takes nothing and gives named arrays.  ``freeze.py`` writes what they gave
into ``frozen.npz``, with their tolerances in ``frozen.json``; ``test_frozen.py`` runs them against
it.  The two files and the cases stay as they are.  A call that is renamed changes in the section
"Adapters" alone.

The array ``confirmed`` of a case says for which of its units the code stands behind the numbers.
It is counted, and not compared.  Numbers of units that were not confirmed are not compared either,
for the code itself says that they may be wrong (``confirmed_only``; estimates of models of halves
have intervals, and are all compared).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn import datasets, linear_model
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope import kernels, lasso, laws, linear, lood, measures, planning, relu

Array = np.ndarray
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Tolerance:
    """How far a number may move: ``absolute`` + ``relative`` times what was frozen.

    With ``rms`` that is asked of the array's root mean square, and not of every number: of
    estimates by draws from a posterior, of which a few always lie far out.
    """

    relative: float
    absolute: float
    reason: str
    rms: bool = False


@dataclass(frozen=True)
class Case:
    """One function, the engine it belongs to, and the tolerances of its arrays."""

    name: str
    engine: str
    run: Callable[[], Mapping[str, Any]]
    tolerance: Tolerance
    others: Mapping[str, Tolerance]
    confirmed_only: bool

    def tolerance_of(self, array: str) -> Tolerance:
        """Of one of its arrays, by name."""
        return self.others.get(array, self.tolerance)


CASES: dict[str, Case] = {}


def case(
    engine: str, tolerance: Tolerance, *, confirmed_only: bool = True, **others: Tolerance
) -> Callable[[Any], Any]:
    """Registers a function; ``others`` are tolerances of single arrays."""

    def register(run: Callable[[], Mapping[str, Any]]) -> Callable[[], Mapping[str, Any]]:
        CASES[run.__name__] = Case(run.__name__, engine, run, tolerance, others, confirmed_only)
        return run

    return register


# --- Adapters: every call that may be renamed -----------------------------------------------------
#
# The laws, measures and kernels, and what docs/reproduce.md names, stay, and are called by their
# names below.

noise_path = lood.noise_path
stieltjes = linear.stieltjes
trade_off_curve = planning.trade_off_curve
least_error = planning.least_error
least_kl = planning.least_kl
plan_linear = planning.plan_linear
plan_lasso = planning.plan_lasso
solve_lasso = lasso.solve_lasso
scores_law_pair = relu.scores_law_pair


def fit_audit(X: Any, y: Any, model: Any, **options: Any) -> leakscope.Audit:
    """An audit by the laws of one fit.

    ``options``: groups, sample_weight, question, fraction, observes, weight_decay.
    """
    return leakscope.audit(X, y, model=model, **options)


def process_audit(
    X: Array, y: Array, kernel: Any, noise_variance: float, **options: Any
) -> leakscope.Audit:
    """An audit of a Gaussian process; ``options``: groups."""
    return leakscope.audit(X, y, model=lood.Process(kernel, noise_variance), **options)


def pair_of(audit: leakscope.Audit) -> laws.LawPair:
    """The laws of every unit, in the order of the data."""
    return audit.law_pair()


def confirmed(audit: leakscope.Audit) -> Array:
    """For which units the audit stands behind its numbers, in the order of the data."""
    return np.asarray(audit.confirmed)


def streamed_numbers(frame: pd.DataFrame, model: str, **parameters: float) -> Arrays:
    """The answers of a streamed fit, in the order of the rows; the target is the column target."""
    import pyarrow.parquet as pq

    from leakscope.auditing import audit_streamed
    from leakscope.settings import ModelSettings

    with tempfile.TemporaryDirectory() as folder:
        file, run = Path(folder, "data.parquet"), Path(folder, "run")
        frame.to_parquet(file, row_group_size=150)
        chosen = ModelSettings(model=model, **parameters)
        audit_streamed(
            file, directory=run, target="target", chosen=chosen, cell_records=200, block_bytes=8000
        )
        parts = [pq.read_table(part).to_pandas() for part in run.glob("answers/*.parquet")]
    table = pd.concat(parts).sort_values("record_id")
    names = ("advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001")
    found = {name: table[name].to_numpy() for name in names}
    return {**found, "confirmed": table["confirmed"].to_numpy()}


def few_models(log_odds: Array, trained_on: Array) -> Any:
    """Models of halves: ``.advantage`` and ``.tpr_at_fpr[0.01]`` with value, low and high."""
    from leakscope.fitted import few_models

    return few_models(log_odds, trained_on)


def confirmed_by_models(found: Any) -> Array:
    """Which units the models of halves confirm."""
    return np.asarray(found.trusted)


def secret_audit(frame: pd.DataFrame, target: str, secret: str, model: Any) -> pd.DataFrame:
    """The table of an audit of a secret column, in the order of the rows."""
    found = leakscope.audit_frame(frame, target=target, model=model, secret=secret)
    return found.to_frame().sort_values("record_id")


def left_out(model: Any, X: Array, y: Array) -> Arrays:
    """A fit's linear predictor of every record, of the fit with it and of the fit without it."""
    from leakscope.fitted import from_sklearn, leave_one_out

    found = leave_one_out(from_sklearn(model.fit(X, y), X, y).problems[0])
    return {"with": found.prediction, "without": found.without}


def released_pair(model: Any, X: Array, y: Array, **noise: float) -> laws.LawPair:
    """Laws of released coefficients: with ``coefficient_noise``, or a draw of their posterior."""
    from leakscope.fitted import laws_of

    return laws_of(model.fit(X, y), X, y, question="known_others").law_pair(**noise)


def composed(*audits: leakscope.Audit) -> Array:
    """What several releases give away together of every record, in the order of the data."""
    pair = leakscope.compose(*(audit.laws.pair() for audit in audits))
    return np.asarray(measures.advantage(pair))


def missing_record(model: Any, X: Array, y: Array, record: int) -> tuple[Array, str]:
    """The features and the label that somebody reconstructs who knows all others."""
    known = (np.delete(X, record, axis=0), np.delete(y, record))
    found = leakscope.attack_reconstruct(model.fit(X, y), known=known)
    return np.array(list(found.features.values())), str(found.label)


def reconstruction_bound(model: Any, X: Array, y: Array, noise: float, kappa: float) -> float:
    """The ReRo bound of coefficients with noise."""
    from leakscope.settings.attack import FitReconstructSettings

    settings = FitReconstructSettings(noise=noise, kappa=kappa)
    found = leakscope.attack_reconstruct(model.fit(X, y), data=(X, y), settings=settings)
    return float(found.rero_bound)


def canary_bounds(scores: Array, included: Array, **options: Any) -> list[tuple[float, float]]:
    """For each delta the epsilon of any mechanism, and of Gaussian ones."""
    from leakscope.measuring import measure_canaries

    found = measure_canaries(scores, included, **options)
    forms: dict[str, list[float]] = {"any": [], "gaussian": []}
    for bound in found.bounds:
        forms[bound.form].append(bound.epsilon)
    return list(zip(forms["any"], forms["gaussian"], strict=True))


def approximate_records(
    X: Array, y: Array, kernel: Any, noise_variance: float, inducing: int
) -> lood.Separation:
    """All records by the Nyström route."""
    return lood.nystrom_records(
        X, y[:, None], kernel=kernel, noise_variance=noise_variance, inducing=inducing
    )


def spectrum_pair(spectrum: Array, n: int, ridge: float, records: Array) -> laws.LawPair:
    """The laws of a design whose covariance has this spectrum."""
    from leakscope.linear.spectrum import SpectrumDesign

    design = SpectrumDesign(spectrum, n, 1.0, 1.0 / len(spectrum), ridge)
    return linear.spectrum_law_pair(design, records)


def data_model_pair(model: linear.DataModel, features: Array, fixed: Array) -> laws.LawPair:
    """The laws of a record of another world: its features, and what of the world is fixed."""
    from leakscope.linear.data_models import Query

    query = Query(features, fixed)
    return linear.data_model_law_pair(model, query, designs=1000, random_state=0)


def planned_networks(X: Array, y: Array, activations: Sequence[str], depths: Sequence[int]) -> Any:
    """Rows of ``leakscope plan network``."""
    from leakscope.settings.plan import NetworkPlanSettings

    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=y)
    dataset = leakscope.data.from_frame(frame, target="y")
    asked = NetworkPlanSettings(
        activations=tuple(activations), depths=tuple(depths), forms=("plain",)
    )
    return leakscope.plan_network(dataset, asked).networks


# --- Tolerances -----------------------------------------------------------------------------------

CLOSED = Tolerance(1e-9, 1e-14, "closed form")
TAIL = Tolerance(1e-8, 1e-300, "closed form, in logarithms")
ROOT = Tolerance(1e-7, 1e-12, "root of a closed form")
QUADRATURE = Tolerance(1e-6, 1e-9, "quadrature of a smooth function")
SOLVED = Tolerance(1e-6, 1e-8, "linear algebra of a well-conditioned matrix")
ROUNDING = Tolerance(1e-3, 1e-12, "near rounding: confirmed records keep three digits")
ITERATED = Tolerance(1e-5, 1e-7, "fixed point or optimum, iterated")
SEARCHED = Tolerance(1e-2, 1e-3, "optimum of a search")

HALF_OF_DIGITS = Tolerance(1e-3, 1e-18, "a KL of 1e-13 has half of the digits")

# THEORY 11: what atoms reach on two-component mixtures, doubled (the frozen value errs too).
DENSITY = Tolerance(1e-3, 1e-12, "THEORY 11: advantage by atoms")
DENSITY_KL = Tolerance(2e-8, 1e-12, "THEORY 11: KL by atoms")
DENSITY_AUC = Tolerance(0.0, 1e-4, "THEORY 11: AUC by atoms")
DENSITY_TPR = Tolerance(2e-3, 1e-12, "THEORY 11: TPR at 1e-3 and above by atoms")
DENSITY_TAIL = Tolerance(1e-2, 1e-12, "THEORY 11: TPR at 1e-5 by atoms")
DENSITIES = {
    "kl": DENSITY_KL,
    "kl_reverse": DENSITY_KL,
    "jeffreys": DENSITY_KL,
    "renyi": Tolerance(1e-6, 1e-10, "smooth as the KL; order 2 weighs the tails more"),
    "auc": DENSITY_AUC,
    "tpr": DENSITY_TPR,
    "tpr_tail": DENSITY_TAIL,
    "epsilon": DENSITY_TAIL,
    "delta": DENSITY_TAIL,
}


def cavity(advantage: float, reason: str) -> dict[str, Tolerance]:
    """Of all measures of a score's two normals, from the absolute one of the advantage, a.

    An advantage that is off by a has a shift off by 2.5 a standard deviations, or standard
    deviations off by 2 a; at 1e-2, 1e-3 and 1e-5 the logarithm of a TPR moves by at most 2.7, 3.4
    and 4.5 times the shift, and by 2.3, 3.1 and 4.3 times that with the standard deviations.
    """
    a = advantage
    return {
        "tolerance": Tolerance(0.0, a, reason),
        "kl": Tolerance(20 * a, a, reason),
        "tpr_at_fpr_0_01": Tolerance(12 * a, a / 10, reason),
        "tpr_at_fpr_0_001": Tolerance(20 * a, a / 100, reason),
        "tpr_tail": Tolerance(40 * a, a / 10_000, reason),
        "overlap": Tolerance(10 * a, a / 10, reason),
    }


QUADRATIC = cavity(2e-4, "cavity of a quadratic loss: rounds stop at 2e-5 of a deviation")
FAINT = {
    **cavity(1e-3, "cavity, of advantages from 1e-9 on"),
    **dict.fromkeys(("tolerance", "kl"), Tolerance(0.02, 1e-15, "rounds, of advantages of 1e-7")),
}
CURVED = cavity(1e-3, "THEORY 13: cavity of a logistic loss, 3e-5 measured, rounds stop at 3e-4")
SEPARABLE = cavity(0.015, "THEORY 13: 0.008 measured; today's deviation is 2% low")
CLASSES = cavity(0.008, "THEORY 13: softmax, 0.007 measured; Hermite points of either side")
PEOPLE = cavity(0.015, "THEORY 13: groups, 0.015 measured; sigma points of either side")
STREAMED = cavity(1e-3, "the cavity in memory, by blocks")
# Of two seeds of today's posterior: values 0.016 at most, ends 0.046, ends of the TPR 0.06.
HALVES = Tolerance(0.0, 0.02, "draws of a posterior: 0.016 between seeds", rms=True)
HALVES_ENDS = Tolerance(0.0, 0.06, "quantiles of draws: 0.046 between seeds", rms=True)
HALVES_RATES = Tolerance(0.0, 0.08, "quantiles of draws: 0.06 between seeds", rms=True)


# --- Material -------------------------------------------------------------------------------------

FPRS = np.array([0.5, 0.1, 1e-2, 1e-3])


def measured(pair: laws.LawPair) -> Arrays:
    """Every measure of a pair whose laws are known."""
    return {
        "advantage": measures.advantage(pair),
        "overlap": measures.overlap(pair),
        "auc": measures.auc(pair),
        "kl": measures.kl(pair),
        "kl_reverse": measures.kl(pair, "member_to_nonmember"),
        "jeffreys": measures.jeffreys(pair),
        "renyi": measures.renyi(pair, 2.0),
        "tpr": measures.tpr_at_fpr(pair, FPRS),
        "tpr_tail": measures.tpr_at_fpr(pair, 1e-5),
        "epsilon": measures.epsilon_at_delta(pair, 1e-5),
        "delta": measures.delta_at_epsilon(pair, 1.0),
    }


def joined(found: Sequence[Arrays]) -> Arrays:
    """The arrays of several pairs or audits, one after the other."""
    return {name: np.concatenate([np.atleast_1d(one[name]) for one in found]) for name in found[0]}


def of_table(audit: leakscope.Audit) -> Arrays:
    """The columns of an audit's table, in the order of the data."""
    table = audit.to_frame().sort_values("record_id")
    columns = ("advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001")
    return {**{name: table[name].to_numpy() for name in columns}, "confirmed": confirmed(audit)}


def of_units(audit: leakscope.Audit) -> Arrays:
    """The same with measures of the laws of every unit."""
    pair = pair_of(audit)
    return {
        **of_table(audit),
        "overlap": measures.overlap(pair),
        "kl": measures.kl(pair),
        "tpr_tail": measures.tpr_at_fpr(pair, 1e-5),
    }


@cache
def diabetes() -> tuple[Array, Array]:
    X, y = datasets.load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


@cache
def cancer() -> tuple[Array, Array]:
    """Six features of breast cancer."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[:, [0, 1, 4, 5, 8, 9]]), y


@cache
def wine() -> tuple[Array, Array]:
    X, y = datasets.load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@cache
def counts() -> tuple[Array, Array]:
    """Poisson counts of four features."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(300, 4))
    return X, rng.poisson(np.exp(0.5 + X @ [0.4, -0.3, 0.2, 0.0])).astype(float)


@cache
def plane(n: int = 120, d: int = 3) -> tuple[Array, Array]:
    """Records of a process: a smooth function with noise."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, -1] + 0.1 * rng.normal(size=n)


def logistic(C: float = 1.0, **more: Any) -> linear_model.LogisticRegression:
    exact = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}
    return linear_model.LogisticRegression(C=C, **exact, **more)


# --- Measures -------------------------------------------------------------------------------------

NORMALS = {"tpr": TAIL, "tpr_tail": TAIL, "epsilon": ROOT, "delta": TAIL, "overlap": TAIL}


@case("measures: normals", CLOSED, **NORMALS)
def normal_pairs() -> Arrays:
    """Shifts and ratios of deviations, equal ones among them."""
    shift, ratio = np.meshgrid([0.0, 0.01, 0.3, 1.0, 4.0], [0.5, 0.9, 1.0, 1.1, 1.9])
    pair = laws.LawPair(laws.Normal(shift + 7.0, 0.2 * ratio), laws.Normal(7.0, 0.2))
    shifted = laws.LawPair(laws.Normal(shift, ratio), laws.Normal(0.0, 1.0))
    return {**measured(shifted), "advantage_scaled": measures.advantage(pair)}


@case("measures: normals", CLOSED, **NORMALS)
def normal_tails() -> Arrays:
    """Advantages about 1e-7, and overlaps about 1e-9 and below (an advantage of 1 - 1e-9)."""
    shift = np.array([2.5e-7, 0.0, 1e-7, 1e-9, 1e-12, 12.2, 11.0, 0.0, 20.0, 9.0])
    ratio = np.concatenate(
        [1.0 + np.array([0.0, 4e-7, -1e-7, 1e-10, 0.0]), [1.0, 0.8, 1e9, 2.0, 1.3]]
    )
    return measured(laws.LawPair(laws.Normal(shift, ratio), laws.Normal(0.0, 1.0)))


@case("measures: normals", TAIL)
def normal_roc() -> Arrays:
    """Trade-off curves and ROCs, to FPRs of 1e-12; TPRs under 1e-12 too."""
    fpr = np.logspace(-12, 0, 25)
    pair = laws.LawPair(
        laws.Normal([0.5, 0.0, -1.0, 0.1], [1.0, 1.3, 0.6, 0.2]),
        laws.Normal([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]),
    )
    curve = measures.roc(pair, fpr)
    return {"trade_off": measures.trade_off(pair, fpr), "roc": curve.tpr}


def _mixtures(seed: int, size: int, components: int, apart: float) -> laws.LawPair:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(components), size)
    means, sigmas = rng.normal(size=(size, components)), rng.uniform(0.5, 2.0, (size, components))
    moved = means + apart * rng.normal(size=(size, components))
    return laws.LawPair(
        laws.NormalMixture(
            weights, moved, sigmas * np.exp(0.3 * apart * rng.normal(size=(size, 1)))
        ),
        laws.NormalMixture(weights, means, sigmas),
    )


@case("measures: densities", DENSITY, **DENSITIES)
def mixture_pairs() -> Arrays:
    """Two components, unlike."""
    return measured(_mixtures(0, 100, 2, 1.0))


@case("measures: densities", DENSITY, **DENSITIES)
def mixture_scales() -> Arrays:
    """One centre and 24 deviations, as the exact laws of linear have them."""
    rng = np.random.default_rng(1)
    sigmas = np.sort(rng.gamma(8.0, 0.12, (12, 24)), axis=1)
    weights, zero = rng.dirichlet(np.ones(24), 12), np.zeros((12, 24))
    factor = np.linspace(0.6, 1.6, 12)[:, None]
    return measured(
        laws.LawPair(
            laws.NormalMixture(weights, zero, factor * sigmas),
            laws.NormalMixture(weights, zero, sigmas),
        )
    )


@case(
    "measures: densities",
    DENSITY,
    **{**DENSITIES, **dict.fromkeys(("kl", "kl_reverse", "jeffreys", "renyi"), HALF_OF_DIGITS)},
)
def mixture_tiny() -> Arrays:
    """Laws that are 1e-6 and 1e-7 apart."""
    return joined([measured(_mixtures(2, 20, 2, apart)) for apart in (1e-6, 1e-7)])


@case("measures: densities", DENSITY, **DENSITIES)
def mixture_near_one() -> Arrays:
    """Components that are far apart: overlaps from 1e-3 to 1e-10."""
    shift = np.array([4.0, 6.0, 9.0, 12.0])[:, None]
    weights, centres = np.tile([0.3, 0.7], (4, 1)), np.array([0.0, 0.5]) * np.ones((4, 1))
    pair = laws.LawPair(
        laws.NormalMixture(weights, centres + shift, np.tile([1.0, 0.8], (4, 1))),
        laws.NormalMixture(weights, centres, np.tile([1.0, 0.8], (4, 1))),
    )
    return {name: value for name, value in measured(pair).items() if name != "renyi"}


def _several(seed: int, dimensions: int, size: int, apart: float) -> laws.LawPair:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, size, dimensions, dimensions)) / np.sqrt(dimensions)
    base = root[0] @ root[0].swapaxes(-1, -2) + 0.5 * np.eye(dimensions)
    other = base + apart * root[1] @ root[1].swapaxes(-1, -2)
    shift = apart * rng.normal(size=(size, dimensions))
    return laws.LawPair(
        laws.MultivariateNormal(shift, base), laws.MultivariateNormal(0.0 * shift, other)
    )


QUADRATIC_FORMS = {
    "kl": CLOSED,
    "kl_reverse": CLOSED,
    "jeffreys": CLOSED,
    "renyi": CLOSED,
    "tpr_tail": Tolerance(1e-5, 1e-12, "inversion of a characteristic function, far out"),
}


@case("measures: quadratic forms", QUADRATURE, **QUADRATIC_FORMS)
def multivariate_pairs() -> Arrays:
    """Two, three and six dimensions, unlike means and covariances."""
    return joined([measured(_several(seed, d, 6, 0.7)) for seed, d in ((3, 2), (4, 3), (5, 6))])


@case("measures: quadratic forms", QUADRATURE, **QUADRATIC_FORMS)
def multivariate_tails() -> Arrays:
    """One covariance (a shift alone), nearly one, and one that is nearly singular."""
    near = _several(6, 3, 4, 1e-3)
    base = np.broadcast_to(np.diag([1.0, 1e-4, 3.0]), (4, 3, 3))
    shift = np.array([0.1, 1.0, 4.0, 7.0])[:, None] * np.array([1.0, 0.01, 0.5])
    alone = laws.LawPair(
        laws.MultivariateNormal(shift, base), laws.MultivariateNormal(0.0 * shift, base)
    )
    return joined([measured(near), measured(alone)])


def _spikes(location: Any, other: Any, sigma: Any, other_sigma: Any) -> laws.LawPair:
    return laws.LawPair(
        laws.SpikeAndSlab(location, sigma, 1.0), laws.SpikeAndSlab(other, other_sigma, 1.0)
    )


@case("measures: densities", DENSITY, **DENSITIES)
def spikes_and_slabs() -> Arrays:
    """An estimate of the LASSO: an atom at zero and two tails."""
    rng = np.random.default_rng(7)
    place = rng.normal(size=(2, 60))
    sigma = rng.uniform(0.3, 1.5, 60)
    return measured(_spikes(place[0], place[1], sigma, sigma * rng.uniform(0.8, 1.2, 60)))


@case("measures: densities", DENSITY, **{**DENSITIES, "kl": QUADRATURE, "kl_reverse": QUADRATURE})
def spikes_in_the_tail() -> Arrays:
    """Atoms of nearly all the mass, of nearly none, and laws that are 1e-7 apart."""
    place, moved = np.array([0.0, 0.0, 6.0, 0.4]), np.array([0.1, 0.05, 6.5, 0.4 + 2.5e-7])
    sigma = np.array([0.3, 0.2, 1.0, 1.0])
    return measured(_spikes(moved, place, sigma, sigma))


def _discrete(member: Array, nonmember: Array) -> laws.LawPair:
    values = np.arange(member.shape[-1], dtype=float)
    return laws.LawPair(laws.Discrete(values, member), laws.Discrete(values, nonmember))


@case("measures: atoms", CLOSED, epsilon=ROOT)
def discrete_pairs() -> Arrays:
    """Random probabilities of 2 to 40 values."""
    rng = np.random.default_rng(8)
    sizes = (2, 5, 40)
    laws_of_size = [rng.dirichlet(np.full(size, 0.7), (2, 10)) for size in sizes]
    return joined([measured(_discrete(*both)) for both in laws_of_size])


@case("measures: atoms", CLOSED, epsilon=ROOT)
def discrete_tails() -> Arrays:
    """Values that one law never takes, rare values, and laws that are 1e-7 apart."""
    rare = np.array([1e-6, 1e-4, 0.4, 0.599899])
    member = np.array([[0.0, 0.5, 0.3, 0.2], [0.5, 0.1, 0.2, 0.2], rare, rare])
    other = np.array(
        [
            [0.1, 0.4, 0.3, 0.2],
            [0.5, 0.0, 0.3, 0.2],
            rare[[1, 0, 2, 3]],
            rare + 1e-7 * np.array([1, -1, 0, 0]),
        ]
    )
    return measured(_discrete(member, other / other.sum(axis=1, keepdims=True)))


@case(
    "measures: samples", Tolerance(0.0, 1e-9, "counts"), interval=Tolerance(0.0, 0.02, "intervals")
)
def empirical_pairs() -> Arrays:
    """Scores, with ties and without: value and interval."""
    rng = np.random.default_rng(9)
    member, other = rng.normal(0.7, 1.0, (3, 400)), rng.normal(size=(3, 500))
    member[1], other[1] = np.round(member[1], 1), np.round(other[1], 1)
    pair = laws.LawPair(laws.Empirical(member), laws.Empirical(other))
    estimates = {
        "advantage": measures.advantage(pair, random_state=0),
        "auc": measures.auc(pair),
        "tpr": measures.tpr_at_fpr(pair, 0.01),
    }
    values = {name: one.value for name, one in estimates.items()}
    return {**values, "interval": [(one.low, one.high) for one in estimates.values()]}


@case("measures: canaries", Tolerance(1e-6, 1e-8, "root of a binomial tail"))
def canaries() -> Arrays:
    """Lower bounds on epsilon from scores of canaries: guesses fixed, tried, and none that tell."""
    rng = np.random.default_rng(10)
    included = rng.random(800) < 0.5
    scores = rng.normal(size=800) + 2.5 * included
    delta = (1e-5, 1e-3)
    return {
        "fixed": canary_bounds(scores, included, delta=delta, guesses=(100, 100)),
        "tried": canary_bounds(scores, included, delta=delta),
        "certain": canary_bounds(included * 1.0 + 1e-3 * scores, included, delta=delta),
        "blind": canary_bounds(rng.normal(size=800), included, delta=delta),
    }


@case("measures: accusation", CLOSED, threshold=Tolerance(1e-5, 1e-7, "one threshold over records"))
def accusation() -> Arrays:
    """PPV, lift, a tolerable TPR, and one threshold for all records."""
    tpr, fpr = np.array([0.5, 0.02, 1e-3, 1e-5, 1.0]), np.array([0.1, 1e-2, 1e-5, 1e-6, 1e-9])
    priors = (1e-6, 0.01, 0.5)
    rng = np.random.default_rng(12)
    pair = laws.LawPair(
        laws.Normal(rng.normal(1.0, 2.0, 50), rng.uniform(0.5, 1.0, 50)),
        laws.Normal(rng.normal(0.0, 2.0, 50), rng.uniform(0.5, 1.0, 50)),
    )
    return {
        "ppv": [measures.positive_predictive_value(tpr, fpr, prior) for prior in priors],
        "lift": [measures.lift(tpr, fpr, prior) for prior in priors],
        "tolerable": [measures.tolerable_tpr(1e-3, prior, 0.5) for prior in priors],
        "threshold": list(measures.one_threshold(pair).values()),
    }


@case("measures: populations", DENSITY, kl=DENSITY_KL, auc=DENSITY_AUC, tpr=DENSITY_TAIL)
def populations() -> Arrays:
    """A record drawn from many, most of whom tell nothing, and one who tells all."""
    rng = np.random.default_rng(13)
    shift = np.concatenate([rng.exponential(0.1, 58), [3.0, 8.0]])
    pair = laws.LawPair(
        laws.Normal(shift, 1.0), laws.Normal(np.zeros(60), rng.uniform(0.9, 1.2, 60))
    )
    found = measures.population_measures(pair, rng.dirichlet(np.ones(60)))
    return {
        "advantage": found.advantage,
        "kl": [found.kl, found.kl_reverse],
        "auc": found.auc,
        "tpr": list(found.tpr_at_fpr.values()),
    }


# --- Kernels --------------------------------------------------------------------------------------


def _points() -> Array:
    """Records of which two are equal, two nearly, one is zero and one large."""
    X = np.random.default_rng(20).normal(size=(9, 5))
    X[1], X[2], X[3], X[4] = X[0], X[0] + 1e-6, 0.0, 50.0 * X[5]
    return X


@case("kernels", CLOSED)
def kernels_of_formulas() -> Arrays:
    """RBF, Matérn and linear."""
    X = _points()
    matern = {f"matern_{nu}": kernels.matern(nu, 1.3, 0.7)(X) for nu in (0.5, 1.5, 2.5)}
    plain = kernels.linear(0.5, 0.2, divide_by_features=True)(X, X[:3])
    return {"rbf": kernels.rbf(1.7, 2.0)(X), "linear": plain, **matern}


@case("kernels", CLOSED, tanh=Tolerance(1e-7, 1e-9, "dual activation by quadrature"))
def kernels_of_dense_networks() -> Arrays:
    """NNGP by activation, three layers."""
    X = _points()
    names = ("relu", "gelu", "erf", "sin", "tanh")
    return {name: kernels.nngp(3, name, 1.8, 0.1)(X) for name in names}


@case("kernels", Tolerance(1e-7, 1e-9, "thirty layers"))
def kernels_of_deep_networks() -> Arrays:
    """Thirty layers: correlations within 1e-4 of one."""
    X = _points()[[0, 2, 5, 6, 7]]
    return {name: kernels.nngp(30, name, 2.0)(X) for name in ("relu", "erf")}


@case("kernels", SOLVED)
def kernels_of_convolutions() -> Arrays:
    """Convolutions, pooling, residual blocks and layer normalisation."""
    X = np.random.default_rng(21).normal(size=(4, 6, 6, 3))
    relu_, gelu = kernels.activation("relu"), kernels.activation("gelu")
    block = kernels.residual(relu_, kernels.conv(3))
    flat = (kernels.conv(3, weight_variance=1.5, bias_variance=0.1), gelu, kernels.flatten())
    pooled = (kernels.conv(3), block, relu_, kernels.average_pool(2), kernels.global_average_pool())
    normed = (kernels.flatten(), kernels.dense(), kernels.layer_norm(), relu_)
    networks = {"flat": flat, "pooled": pooled, "normed": normed}
    return {
        name: kernels.sequential(*layers, kernels.dense())(X) for name, layers in networks.items()
    }


# --- Gaussian processes (lood) --------------------------------------------------------------------


def _separation(found: lood.Separation) -> Arrays:
    return {
        "kl": found.kl,
        "mean_distance": found.mean_distance,
        "mean_with": found.mean_with,
        "mean_without": found.mean_without,
        "variance_with": found.variance_with,
        "variance_without": found.variance_without,
        "memorisation": found.accuracy_memorisation,
        "confirmed": found.trusted,
    }


@case("process", SOLVED)
def process_records() -> Arrays:
    """All records at once, three kernels, one and two outputs."""
    X, y = plane()
    targets = np.column_stack([y, X[:, 2] ** 2])
    found = {
        "rbf": lood.all_records(kernels.rbf(1.0)(X), y, noise_variance=0.05),
        "nngp": lood.all_records(kernels.nngp(3)(X), y, noise_variance=0.01),
        "two": lood.all_records(kernels.matern(1.5, 1.0)(X), targets, noise_variance=0.1),
    }
    arrays = {f"{of}_{k}": v for of, one in found.items() for k, v in _separation(one).items()}
    # One array says what is confirmed: all of them are, of all three.
    for of in found:
        arrays.pop(f"{of}_confirmed")
    return {**arrays, "confirmed": np.logical_and.reduce([one.trusted for one in found.values()])}


@case("process", SOLVED, tpr_tail=ITERATED)
def process_audits() -> Arrays:
    """Through the front door: features of a linear kernel, and an outlier of each sort."""
    X, y = plane()
    X, y = X.copy(), y.copy()
    X[0], y[1], X[2] = 30.0, 40.0, X[3]
    return of_units(process_audit(X, y, kernels.linear(bias_variance=1.0), 0.3))


@case("process", SOLVED, tpr_tail=ITERATED)
def process_tails() -> Arrays:
    """Labels that are far off (advantage near one), and records that stand a hundredfold."""
    X, y = plane(60, 2)
    X = np.vstack([X, np.repeat(X[:1], 100, axis=0)])
    y = np.concatenate([y, np.repeat(y[:1], 100)])
    y[:4] += [30.0, 60.0, 300.0, 3.0]
    return of_units(process_audit(X, y, kernels.rbf(1.0), 0.05))


@case("process", ROUNDING)
def process_near_rounding() -> Arrays:
    """Twins and little noise: the matrix is nearly singular."""
    X, y = plane(80, 1)
    X = np.vstack([X, X[:6] + 1e-7])
    y = np.concatenate([y, y[:6] + 1e-3])
    found = {}
    for noise in (1e-4, 1e-8, 1e-11):
        one = lood.all_records(kernels.rbf(1.0)(X), y, noise_variance=noise)
        found[noise] = (one.kl, one.mean_with - one.mean_without, one.trusted)
    kl, shift, trusted = (np.stack(values, axis=1) for values in zip(*found.values(), strict=True))
    return {"kl": kl, "mean_shift": shift, "confirmed": trusted}


@case("process", SOLVED)
def process_groups() -> Arrays:
    """People with one to nine records, one of whom has most of a corner."""
    X, y = plane()
    sizes = [1, 1, 2, 3, 5, 9]
    people = np.repeat(np.arange(len(sizes) * 6), sizes * 6)[: len(y)]
    found = lood.all_groups(kernels.rbf(1.0)(X), y, people, noise_variance=0.05)
    audit = process_audit(X, y, kernels.rbf(1.0), 0.05, groups=people)
    return {**of_table(audit), "kl": found.kl, "mean_distance": found.mean_distance}


@case("process", SOLVED, approximate=Tolerance(0.1, 1e-6, "the error that the route promises"))
def process_approximate() -> Arrays:
    """Nyström with 150 of 600 records, beside the dense route on the same."""
    X, y = plane(600, 2)
    kernel = kernels.rbf(1.0)
    found = approximate_records(X, y, kernel, 0.1, 150)
    exact = lood.all_records(kernel(X), y, noise_variance=0.1)
    return {"approximate": found.kl, "exact": exact.kl, "confirmed": found.trusted}


@case("process", SOLVED)
def process_noise_path() -> Arrays:
    """From nearly no noise to nearly all."""
    X, y = plane()
    levels = np.logspace(-3, 1, 5)
    path = list(noise_path(kernels.rbf(1.0)(X), y, noise_variances=levels))
    return {"kl": [one.kl for one in path], "error": [one.prediction_error for one in path]}


@case("process", SOLVED)
def process_queries() -> Arrays:
    """Laws of the answers at queries, with and without a group."""
    X, y = plane()
    Q = np.random.default_rng(30).normal(size=(3, 3))
    found = lood.distinguish(
        X, y, leave_out=[4, 17, 60], queries=Q, kernel=kernels.rbf(1.0), noise_variance=0.05
    )
    pair = laws.LawPair(
        laws.MultivariateNormal(found.mean_with, found.covariance_with),
        laws.MultivariateNormal(found.mean_without, found.covariance_without),
    )
    several = {name: value for name, value in measured(pair).items() if "tail" not in name}
    return {
        **several,
        "mean_with": found.mean_with,
        "mean_without": found.mean_without,
        "covariance_with": found.covariance_with,
        "covariance_without": found.covariance_without,
    }


@case("process", SOLVED)
def process_influence() -> Arrays:
    """Of every record at every query, three of which are records."""
    X, y = plane()
    Q = np.vstack([X[:3], np.random.default_rng(31).normal(size=(4, 3))])
    found = lood.influence(X, y, Q, kernels.rbf(1.0), 0.05)
    return {
        "mean_distance": found.mean_distance,
        "kl": found.kl,
        "memorisation": found.memorisation,
        "kl_own": found.kl_own,
    }


@case("process", SEARCHED)
def process_query_search() -> Arrays:
    """The most telling query of two records: its LOOD, and that of the record itself."""
    X, y = plane(20, 2)
    found = [
        lood.search_query(
            X, y, leave_out=[record], kernel=kernel, noise_variance=0.05, starts=6, random_state=0
        )
        for record in (3, 11)
        for kernel in (kernels.rbf(1.5), kernels.nngp(2))
    ]
    return {"lood": [one.lood for one in found], "at_record": [one.lood_at_record for one in found]}


@case("process", SOLVED, best=SEARCHED)
def process_mean_distance() -> Arrays:
    """Gradient and Hessian at the record, far from the others, near them and among them."""
    X, y = plane(30, 2)
    points = np.array([[7.0, 0.0], [0.3, -0.2], [2.0, 2.0], X[0]])
    found = [lood.self_influence(X, y, p, 0.6, kernels.rbf(1.0), 0.01) for p in points]
    line, values = np.linspace(-2, 2, 12)[:, None], np.sin(np.linspace(-2, 2, 12))
    worst = lood.find_non_optimal_point(
        line, values, lambda s: float(np.sin(s[0])), kernels.rbf(1.0), 0.01, bounds=[(-5.0, 5.0)]
    )
    return {
        "mean_distance": [one.mean_distance for one in found],
        "gradient": [one.gradient for one in found],
        "hessian": [one.hessian for one in found],
        "best": [one.best_mean_distance for one in found]
        + [float(np.linalg.norm(worst.influence.gradient))],
    }


@case("process", SOLVED, exponent=ITERATED)
def process_activations() -> Arrays:
    """LOOD by activation and depth; how fast kernels become constant; Prop. 6.1's bound."""
    X, y = plane(40)
    found = lood.lood_by_activation(
        X, y, activations=("relu", "gelu"), depths=(1, 5), noise_variance=0.01
    )
    nearly = lood.constant_approximation(kernels.nngp(10)(X))
    return {
        "kl": [one.kl for one in found],
        "mean_distance": [one.mean_distance for one in found],
        "exponent": [lood.depth_decay(phi, 12).exponent for phi in ("relu", "gelu", "erf")],
        "chaos": [
            (one.weight_variance, one.bias_variance)
            for one in map(lood.edge_of_chaos, ("relu", "gelu", "tanh"))
        ],
        "constant": [nearly.alpha, nearly.distance, nearly.excess_bound(0.01)],
    }


@case("process", CLOSED, power=Tolerance(0.0, 0.02, "slope of a logarithm"))
def process_stationarity() -> Arrays:
    """Theorem 4.1's conditions of kernels with and without them."""
    X = plane(20)[0]
    sphere = X / np.linalg.norm(X, axis=1, keepdims=True)
    all_kernels = (kernels.rbf(1.0), kernels.matern(0.5, 1.0), kernels.linear(), kernels.nngp(2))
    found = [lood.stationarity_conditions(kernel, sphere) for kernel in all_kernels]
    return {
        "flags": [(one.normalised, one.stationary, bool(one.on_sphere)) for one in found],
        "power": [one.least_power for one in found],
    }


# --- Linear regression before training (linear) ---------------------------------------------------


def _norms(design: linear.GaussianDesign) -> linear.RecordNorms:
    """A typical record, a short one and a long one."""
    factor = np.array([1.0, 0.2, 4.0])
    return linear.RecordNorms.of(factor * design.p, factor * (design.dim - design.p))


DESIGNS = [(100, p, 3000) for p in (20, 95, 105, 150, 200, 400, 3000)]


@case("linear", CLOSED)
def linear_limit() -> Arrays:
    """Theorem 3.2 on both sides of n, near n and at p/n = 2."""
    designs = [linear.GaussianDesign(n, p, dim, 1.0) for n, p, dim in DESIGNS]
    pairs = [linear.law_pair(one, _norms(one), method="asymptotic") for one in designs]
    return {
        "sd": [(pair.member.sigma, pair.nonmember.sigma) for pair in pairs],
        "advantage": [measures.advantage(pair) for pair in pairs],
        "tpr_tail": [measures.tpr_at_fpr(pair, 1e-5) for pair in pairs],
        "error": [linear.generalization_error(one, method="asymptotic").value for one in designs],
    }


@case("linear", CLOSED)
def linear_ridge_limit() -> Arrays:
    """Theorem 4.1 as corrected and as printed, from a ridge of 1e-6 to one of 100."""
    found: dict[str, list[Any]] = {"corrected": [], "printed": [], "advantage": [], "stieltjes": []}
    for ridge in (1e-6, 0.01, 1.0, 100.0):
        for p in (50, 100, 400):
            design = linear.GaussianDesign(100, p, 3000, 1.0, ridge)
            norms = _norms(design)
            found["corrected"].append(linear.ridge_variances(design, norms))
            found["printed"].append(linear.ridge_variances(design, norms, printed=True))
            pair = linear.law_pair(design, norms, method="asymptotic")
            found["advantage"].append(measures.advantage(pair))
            found["stieltjes"].append(stieltjes(p / 100, ridge))
    return {name: np.array(values) for name, values in found.items()}


@case("linear", Tolerance(0.05, 0.015, "2,000 draws: deviation 0.005 over seeds"))
def linear_finite() -> Arrays:
    """Lemmas C.1 and C.3: exact at n = 30, least squares and ridge, by 2,000 draws."""
    designs = [
        linear.GaussianDesign(30, p, 300, 1.0, ridge)
        for p, ridge in ((15, 0.0), (28, 0.0), (40, 0.0), (90, 0.0), (20, 0.5), (90, 0.5))
    ]
    pairs = [linear.law_pair(one, _norms(one), draws=2000, random_state=0) for one in designs]
    return {"advantage": [measures.advantage(pair) for pair in pairs]}


@case("linear", CLOSED)
def linear_general_covariance() -> Arrays:
    """A spectrum of two decades, a flat one, below and above n, with ridge and without."""
    rng = np.random.default_rng(40)
    found: dict[str, list[Any]] = {"sd": [], "advantage": []}
    for p, ridge in ((60, 0.0), (400, 0.0), (60, 0.3), (400, 0.3)):
        for spectrum in (np.logspace(-1, 1, p), np.ones(p)):
            records = np.sqrt(spectrum) * rng.normal(size=(4, p)) * [[1.0], [0.3], [3.0], [1.0]]
            pair = spectrum_pair(spectrum, 100, ridge, records)
            found["sd"].append((pair.member.sigma, pair.nonmember.sigma))
            found["advantage"].append(measures.advantage(pair))
    return {name: np.array(values) for name, values in found.items()}


@case("linear", CLOSED)
def linear_output_noise() -> Arrays:
    """Lemma 4.4: noise on everybody's answers and on non-members', known labels and hidden ones."""
    design = linear.GaussianDesign(100, 400, 3000, 1.0, 0.05)
    labels = np.array([0.3, -2.0, 5.0])
    found: dict[str, list[Any]] = {"advantage": [], "tpr_tail": [], "error": []}
    for to in ("everyone", "nonmembers"):
        for sigma in (1e-3, 0.5, 3.0):
            noise = linear.OutputNoise(sigma, to)
            pairs = [
                linear.law_pair(design, _norms(design), method="asymptotic", noise=noise, **who)
                for who in ({}, {"attacker": "label_known", "labels": labels})
            ]
            found["advantage"].append([measures.advantage(pair) for pair in pairs])
            found["tpr_tail"].append([measures.tpr_at_fpr(pair, 1e-5) for pair in pairs])
            error = linear.generalization_error(design, method="asymptotic", noise=noise)
            found["error"].append(error.value)
    return {name: np.array(values) for name, values in found.items()}


@case("linear", Tolerance(0.08, 0.003, "1,000 drawn designs: deviation 0.006 over seeds"))
def linear_data_models() -> Arrays:
    """Latent space, Fourier series and random ReLU features: a typical record's advantage."""
    rng = np.random.default_rng(41)
    latent, relu_at = rng.normal(size=5), rng.normal(size=40)
    models: list[tuple[linear.DataModel, Array, Array]] = []
    for p in (20, 120):
        loadings = rng.normal(size=(p, 5))
        covariates = loadings @ latent + rng.normal(size=p)
        seen = np.column_stack([loadings, covariates])
        models.append((linear.LatentSpace(40, p, 5), latent, seen))
    models += [(linear.FourierSeries(16, p, 64), np.array([17.0]), np.empty(0)) for p in (8, 40)]
    models.append((linear.RandomRelu(30, 60, 40), relu_at, np.empty(0)))
    return {"advantage": [measures.advantage(data_model_pair(*model)) for model in models]}


@case("planning", CLOSED, advantage=Tolerance(0.0, 1e-6, "quadrature over records"), gap=QUADRATURE)
def plan_of_linear() -> Arrays:
    """The plan of a regression in the limit: both attackers, TPRs, a curve, noise for features."""
    found: dict[str, list[Any]] = {"advantage": [], "sd": [], "tpr": [], "error": []}
    for p, ridge in ((50, 0.0), (400, 0.0), (400, 1.0)):
        design = linear.GaussianDesign(100, p, 3000, 1.0, ridge)
        plan = plan_linear(design, method="asymptotic", random_state=0)
        found["advantage"].append([plan.advantage, plan.advantage_label_known, plan.auc])
        found["sd"].append([plan.sigma_member, plan.sigma_nonmember])
        found["tpr"].append(list(plan.tpr_at_fpr.values()))
        found["error"].append(plan.generalization_error)
    design = linear.GaussianDesign(100, 400, 3000, 1.0)
    curve = trade_off_curve(design, "features", [150, 300, 600])
    return {
        **{name: np.array(values) for name, values in found.items()},
        "curve": np.array([curve.advantage, curve.generalization_error]),
        "gap": planning.equivalence_gap(design, points=5),
    }


# --- The private LASSO (lasso) --------------------------------------------------------------------


def _settings(mechanism: str, noise: str = "gaussian") -> lasso.LassoSetting:
    lam, sigma = np.meshgrid([0.3, 1.0, 3.0], [1e-4, 0.1, 0.4])
    return lasso.LassoSetting(0.5, 0.1, 0.1, lam, sigma, mechanism, noise=noise)


@case("lasso", ITERATED)
def lasso_state_evolution() -> Arrays:
    """Theorem 4.1 for both mechanisms: errors, overlaps, response, free energy, the way there."""
    found: Arrays = {}
    for mechanism in ("objective", "output"):
        point = lasso.state_evolution(_settings(mechanism), unstable="mark")
        errors = lasso.prediction_errors(point)
        one = lasso.LassoSetting(0.5, 0.1, 0.1, 1.0, 0.1, mechanism)
        found |= {
            f"{mechanism}_{name}": np.asarray(value)
            for name, value in {
                "error": point.error,
                "active": point.active_fraction,
                "response": point.response,
                "overlaps": np.stack(point.overlaps),
                "free_energy": point.free_energy,
                "generalisation": errors.generalization_error,
                "training": errors.training_error,
                "steps": lasso.trajectory(one, 8).error,
            }.items()
        }
    return found


@case("lasso", CLOSED, programme=ITERATED, near=Tolerance(1e-4, 1e-7, "near the edge of stability"))
def lasso_stability() -> Arrays:
    """The edge in closed form, a programme for one dataset, and a fixed point 1% above the edge."""
    alpha = np.array([0.05, 0.3, 0.5, 0.9, 0.99])
    rng = np.random.default_rng(50)
    X, eta = rng.normal(size=(40, 90)) / np.sqrt(90), rng.normal(size=90)
    edge = lasso.stability_edge(alpha)
    near = lasso.LassoSetting(alpha[1:4], 0.1, 0.1, edge[1:4] * 1.01 * 0.5, 0.5)
    point = lasso.state_evolution(near, unstable="mark")
    return {
        "edge": edge,
        "laplace": lasso.stability_edge(alpha, "laplace"),
        "programme": lasso.stability_programme(X, eta).edge,
        "near": np.stack([point.error, point.active_fraction]),
    }


@case("lasso", ITERATED)
def lasso_divergences() -> Arrays:
    """cwOnAveKL (as corrected and as printed) and the joint one, both mechanisms, little noise."""
    found: Arrays = {}
    for mechanism in ("objective", "output"):
        point = lasso.state_evolution(_settings(mechanism), unstable="mark")
        for divergence in ("joint", "component_wise", "printed"):
            found[f"{mechanism}_{divergence}"] = lasso.onavg_kl(point, divergence)
    return found


@case("lasso", ITERATED, **{"tpr": QUADRATURE, "tpr_tail": Tolerance(1e-5, 1e-9, "far out")})
def lasso_joint_laws() -> Arrays:
    """The laws of the whole estimate, and what all measures say of them."""
    setting = lasso.LassoSetting(0.5, 0.1, 0.1, 1.0, np.array([0.02, 0.1, 0.3, 0.9]))
    return measured(lasso.joint_law_pair(lasso.state_evolution(setting)))


@case("lasso", ITERATED)
def lasso_laws_of_an_estimate() -> Arrays:
    """Eqs. (45), (46) and Claim 5.1's correction."""
    setting = lasso.LassoSetting(0.5, 0.3, 0.1, 0.5, 0.1)
    point = lasso.state_evolution(setting)
    law = lasso.law_over_data(point, [0.0, 0.5, -3.0], [0.0, 0.2, -0.1])
    overlap = lasso.noise_overlap(point)
    return {
        "law": np.stack([law.location, law.sigma, law.threshold * np.ones(3)]),
        "overlap": [float(overlap.sigma), float(overlap.overlap_error), float(overlap.both_active)],
    }


@case("lasso", ITERATED)
def lasso_laplace() -> Arrays:
    """Laplace noise in the objective and on the estimate."""
    found = {}
    for mechanism in ("objective", "output"):
        setting = lasso.LassoSetting(
            0.5, 0.1, 0.1, 1.0, np.array([0.05, 0.3]), mechanism, noise="laplace"
        )
        point = lasso.state_evolution(setting)
        found[mechanism] = np.stack(
            [point.error, point.active_fraction, lasso.onavg_kl(point, "joint")]
        )
    return found


@case("lasso", Tolerance(1e-6, 1e-7, "optimum, certified by its KKT conditions"))
def lasso_solver() -> Arrays:
    """The optimum with a linear term: wide, square, and with hardly a penalty."""
    found = {}
    for name, (n, p, lam, sigma) in {
        "wide": (60, 150, 0.5, 0.1),
        "square": (80, 80, 0.3, 0.1),
        "noisy": (60, 150, 0.6, 0.3),
    }.items():
        rng = np.random.default_rng(51)
        X = rng.normal(size=(n, p)) / np.sqrt(p)
        y = X @ (rng.normal(size=p) * (rng.random(p) < 0.1)) + 0.1 * rng.normal(size=n)
        found[name] = solve_lasso(X, y, lam, sigma * rng.normal(size=p)).coef
    return found


@case("lasso", Tolerance(1e-5, 1e-6, "message passing converges to 1e-10"))
def lasso_message_passing() -> Arrays:
    """Eqs. (17) to (34): the estimate, its field, and the estimates without each record."""
    rng = np.random.default_rng(52)
    X = rng.normal(size=(120, 240)) / np.sqrt(240)
    y = X @ (rng.normal(size=240) * (rng.random(240) < 0.1)) + 0.1 * rng.normal(size=120)
    found = lasso.message_passing(X, y, 0.3, 0.02 * rng.normal(size=240))
    return {
        "coef": found.coef,
        "loo_residuals": found.loo_residuals,
        "susceptibility": found.susceptibility,
    }


@case("planning", Tolerance(1e-3, 1e-5, "a minimum by search"), curve=ITERATED, divergence=ITERATED)
def plan_of_lasso() -> Arrays:
    """The optimal noise, error for a KL, KL for an error, and the curve between them."""
    setting = lasso.LassoSetting(0.5, 0.1, 0.1, 1.0, 0.1)
    choices = (
        planning.optimal_noise(setting),
        least_error(setting, 0.05),
        least_kl(setting, 0.1),
    )
    curve = planning.lasso_trade_off(setting, np.array([0.05, 0.2, 0.6]))
    plan = plan_lasso(setting)
    return {
        "chosen": [(one.lam, one.sigma_eta) for one in choices],
        "curve": [curve.generalization_error, curve.cw_onavg_kl, curve.joint_onavg_kl],
        "divergence": [
            plan.generalization_error,
            plan.training_error,
            plan.cw_onavg_kl,
            plan.cw_onavg_kl_paper,
            plan.joint_onavg_kl_limit,
            *plan.tpr_at_fpr.values(),
            *plan.epsilon_at_delta.values(),
            plan.advantage,
            plan.auc,
        ],
    }


@case("planning", SOLVED)
def plan_of_networks() -> Arrays:
    """Infinitely wide networks on a table: largest and median advantage, error."""
    X, y = plane(60)
    rows = planned_networks(X, y, ("relu", "gelu", "erf"), (1, 6))
    return {
        "advantage": [(one.largest_advantage, one.median_advantage) for one in rows],
        "kl": [(one.largest_kl, one.median_kl) for one in rows],
        "error": [one.error for one in rows],
    }


# --- ReLU networks (relu) -------------------------------------------------------------------------


@case("relu", CLOSED, failure=Tolerance(1e-7, 1e-300, "tail of a beta or chi-square law"))
def relu_margin_bounds() -> Arrays:
    """Theorem 4.2 as printed and corrected; Assumption 4.1's chances on sphere and normal data."""
    rng = np.random.default_rng(60)
    found: dict[str, list[Any]] = {"radius": [], "bounds": [], "failure": []}
    for dim in (100, 1000):
        x, y = relu.SphereData(dim).sample(10, random_state=1), rng.choice([-1.0, 1.0], 10)
        x = rng.normal(size=(10, dim))
        bounds = relu.margin_bounds(x, y)
        found["radius"].append(np.max(bounds.radius))
        found["bounds"].append(np.ravel(bounds.query_bound(rng.normal(size=(5, dim)))))
        for data in (relu.SphereData(dim), relu.normal_data(np.full(dim, 0.01))):
            chance = relu.near_orthogonality(data, 10)
            found["failure"].append((chance.inner_failure, chance.norm_failure))
    return {name: np.array(values, dtype=float) for name, values in found.items()}


@cache
def _networks() -> list[relu.MaxMarginNetwork]:
    """The exact networks of four training sets, one of them with two nearly equal records."""
    found = []
    for seed, n in ((0, 4), (1, 7), (2, 9)):
        rng = np.random.default_rng(61 + seed)
        found.append(relu.max_margin_network(rng.normal(size=n), rng.choice([-1.0, 1.0], n)))
    near = np.array([-1.0, 0.0, 1e-3, 1.5])
    return [*found, relu.max_margin_network(near, np.array([1.0, 1.0, -1.0, 1.0]))]


EXACT_NETWORK = Tolerance(1e-6, 1e-7, "conic programme, polished to 1e-10")


@case("relu", EXACT_NETWORK)
def relu_max_margin() -> Arrays:
    """The network of least norm: its norm and its answers."""
    x = np.linspace(-3.0, 3.0, 25)
    return {
        "primal": [one.primal for one in _networks()],
        "answers": [one.network(x) for one in _networks()],
    }


@case("relu", Tolerance(1e-6, 1e-6, "breakpoints of a conic programme's network"))
def relu_algorithm_1() -> Arrays:
    """Candidates by every piece and as printed, from weights and from answers alone."""
    found: Arrays = {}
    for place, one in enumerate(_networks()):
        for form in ("pieces", "printed"):
            candidates = relu.reconstruct(one.network, form=form).candidates
            found[f"{form}_{place}"] = np.sort([each.x for each in candidates])
        asked = relu.reconstruct_from_queries(one.network)
        found[f"queries_{place}"] = np.sort([each.x for each in asked.candidates])
    return found


@case("relu", CLOSED, auc=Tolerance(0.0, 1e-9, "counts"))
def relu_membership() -> Arrays:
    """Corollaries 4.3 to 4.5: scores and decisions of the three attackers."""
    rng = np.random.default_rng(62)
    own, new = 2.0 + 0.02 * np.abs(rng.normal(size=(3, 8))), rng.normal(size=(3, 30))
    attackers = (
        relu.KnownMargin([2.0, 2.0, 2.0]),
        relu.LeakedPoints(own[:, :1]),
        relu.BoundedMargin(1.1),
    )
    inside, outside = ([a.attack(answers) for a in attackers] for answers in (own, new))
    pairs = [scores_law_pair(i.scores, o.scores) for i, o in zip(inside, outside, strict=True)]
    return {
        "scores": [one.scores for one in outside],
        "member": [one.member for one in outside],
        "auc": [measures.auc(pair).value for pair in pairs],
    }


@case("relu", Tolerance(1e-6, 1e-9, "non-negative least squares"))
def relu_kkt() -> Arrays:
    """How far a network is from a KKT point: random ones, and an exact one moved by 1e-4."""
    rng = np.random.default_rng(63)
    best = _networks()[1]
    net = best.network
    moved = relu.TwoLayerNetwork(net.w, net.b + 1e-4 * rng.normal(size=np.shape(net.b)), net.v)
    x, y = rng.normal(size=(8, 5)), rng.choice([-1.0, 1.0], 8)
    free = relu.TwoLayerNetwork(*(rng.normal(size=shape) for shape in ((12, 5), 12, 12)))
    found = [relu.kkt_residual(moved, best.x, best.y), relu.kkt_residual(free, x, y, margin=0.5)]
    return {"residual": [one.residual for one in found], "margin": [one.margin for one in found]}


# --- One fit --------------------------------------------------------------------------------------


WORLDS: tuple[dict[str, Any], ...] = ({"fraction": 0.2}, {"question": "population"})
Material = Callable[[], tuple[Array, Array]]


def fit(
    name: str,
    tolerances: dict[str, Tolerance],
    records: Material,
    model: Any,
    worlds: Sequence[dict[str, Any]] = ({},),
) -> None:
    """Registers the audit of one fit, in several worlds one after the other."""

    def run() -> Arrays:
        X, y = records()
        return joined([of_units(fit_audit(X, y, model, **world)) for world in worlds])

    run.__name__ = f"fit_{name}"
    case("single fit", **tolerances)(run)


def _wide() -> tuple[Array, Array]:
    """More features than records: fitted exactly but for the penalty."""
    rng = np.random.default_rng(70)
    X = rng.normal(size=(80, 200))
    return X, X[:, 0] + rng.normal(size=80)


def _heavy() -> tuple[Array, Array]:
    """Outliers that carry most of their neighbours' variance, and labels that are far off."""
    X, y = (part[:150].copy() for part in diabetes())
    X[0], X[1] = 8.0, X[0] * 1.01
    X[2, 3], y[3], y[4] = 40.0, 25.0, -8.0
    return X, y


def _surprising() -> tuple[Array, Array]:
    """Labels that contradict their records: advantages up to one."""
    rng = np.random.default_rng(72)
    X = rng.normal(size=(900, 5))
    y = (rng.random(900) < expit(2.0 * X[:, 0])).astype(int)
    X[:4], y[:4] = 0.0, 0
    X[:4, 0] = [1.0, 2.0, 4.0, 6.0]
    return X, y


def _faint(records: Material) -> Material:
    """The same with every fourth record faint: without an intercept its advantage is about 1e-7."""

    def made() -> tuple[Array, Array]:
        X, y = records()
        scale = np.ones(len(y))
        scale[::4] = 10.0 ** np.random.default_rng(77).uniform(-8.0, -2.0, len(scale[::4]))
        return X * scale[:, None], y

    return made


def _digits() -> tuple[Array, Array]:
    X, y = datasets.load_digits(return_X_y=True)
    return X[:500, ::3] / 16.0, y[:500]


def _positive() -> tuple[Array, Array]:
    X, y = counts()
    return X, y + 0.5


GLM: dict[str, Any] = {"tol": 1e-10, "max_iter": 1000}
MODELS = linear_model

fit("ridge", QUADRATIC, diabetes, MODELS.Ridge(alpha=5.0))
fit("ridge_in_other_worlds", QUADRATIC, diabetes, MODELS.Ridge(alpha=5.0), WORLDS)
fit("ridge_wide", QUADRATIC, _wide, MODELS.Ridge(alpha=30.0))
fit("ridge_of_heavy_neighbours", QUADRATIC, _heavy, MODELS.Ridge(alpha=1.0))
fit("ridge_of_faint_records", FAINT, _faint(diabetes), MODELS.Ridge(5.0, fit_intercept=False))
fit("ridge_classifier", QUADRATIC, wine, MODELS.RidgeClassifier(alpha=2.0))
fit("linear", QUADRATIC, diabetes, MODELS.LinearRegression())
fit("kernel_ridge", QUADRATIC, diabetes, KernelRidge(alpha=1.0, kernel="rbf", gamma=0.05))
fit("logistic", CURVED, cancer, logistic())
fit("logistic_in_other_worlds", CURVED, cancer, logistic(0.1), WORLDS)
fit("logistic_near_separable", SEPARABLE, cancer, logistic(1e4))
fit("logistic_of_surprising_labels", CURVED, _surprising, logistic())
fit("logistic_of_faint_records", FAINT, _faint(cancer), logistic(0.1, fit_intercept=False))
fit("softmax", CLASSES, wine, logistic(0.1))
fit("softmax_of_ten_classes", CLASSES, _digits, logistic(0.01))
fit("poisson", CURVED, counts, MODELS.PoissonRegressor(alpha=0.1, **GLM))
fit("gamma", CURVED, _positive, MODELS.GammaRegressor(alpha=0.2, **GLM))
fit("tweedie", CURVED, _positive, MODELS.TweedieRegressor(power=1.5, alpha=0.2, **GLM))


@case("single fit", **QUADRATIC)
def fit_ridge_with_weights() -> Arrays:
    """Weights from nearly nothing to twenty."""
    X, y = diabetes()
    weights = np.random.default_rng(71).gamma(0.7, 1.0, len(y)) + 1e-3
    weights[0] = 20.0
    model = linear_model.Ridge(alpha=5.0).fit(X, y, sample_weight=weights)
    return of_units(fit_audit(X, y, model, sample_weight=weights))


@case("single fit", **CURVED)
def fit_head() -> Arrays:
    """A head's weights and bias alone, with the weight decay of its optimiser."""
    X, y = cancer()
    n, decay = len(y), 0.01
    fitted = linear_model.LogisticRegression(
        C=1.0 / (n * decay), fit_intercept=False, tol=1e-12, solver="newton-cholesky"
    ).fit(np.column_stack([X, np.ones(n)]), y)
    w = fitted.coef_[0]
    head = {"weight": w[None, :-1], "bias": w[-1:]}
    return of_units(fit_audit(X, y, head, weight_decay=decay))


@case("single fit", **CURVED)
def fit_logistic_seen_less() -> Arrays:
    """An attacker who sees the label alone."""
    X, y = cancer()
    return of_table(fit_audit(X, y, logistic(0.1), observes="label"))


def _people(count: int, seed: int) -> Array:
    """One to five records each, in any order."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, count)
    return rng.permutation(np.repeat(np.arange(count), sizes)[:count])


def people(
    name: str, tolerances: dict[str, Tolerance], records: Material, model: Any, seed: int
) -> None:
    """Registers the audit of one fit, of people."""

    def run() -> Arrays:
        X, y = records()
        return of_units(fit_audit(X, y, model, groups=_people(len(y), seed)))

    run.__name__ = f"people_{name}"
    case("people", **tolerances)(run)


JOINT = cavity(1e-3, "groups of a quadratic loss: a joint law, rounds stop at 2e-5")
people("ridge", JOINT, diabetes, MODELS.Ridge(alpha=20.0), 73)
people("logistic", PEOPLE, cancer, logistic(0.1), 74)
people("softmax", PEOPLE, wine, logistic(0.1), 75)
people("poisson", PEOPLE, counts, MODELS.PoissonRegressor(alpha=0.1, **GLM), 76)


@case("people", **PEOPLE)
def people_with_much() -> Arrays:
    """Somebody with forty records, somebody with copies of one, and many with one."""
    X, y = (part.copy() for part in cancer())
    groups = np.arange(len(y))
    groups[:40] = 0
    groups[40:50], X[40:50], y[40:50] = 40, X[40], y[40]
    groups[60:120] = groups[60:120] // 3 * 3
    return of_units(fit_audit(X, y, logistic(0.1), groups=groups))


def _table(X: Array, y: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(target=y)


@case("streamed", **STREAMED)
def streamed_ridge() -> Arrays:
    """Three blocks of a file."""
    return streamed_numbers(_table(*diabetes()), "ridge", alpha=5.0)


@case("streamed", **STREAMED)
def streamed_logistic() -> Arrays:
    X, y = cancer()
    return streamed_numbers(_table(X, np.where(y == 1, "b", "m")), "logistic", C=0.1)


@case("streamed", **STREAMED)
def streamed_outliers() -> Arrays:
    """A record in every block that carries its neighbours."""
    X, y = (part.copy() for part in diabetes())
    X[[10, 200, 400]] *= 12.0
    return streamed_numbers(_table(X, y), "ridge", alpha=1.0)


# --- Models of halves -----------------------------------------------------------------------------


def _halves(models: int, records: int, seed: int, tail: float = 0.0) -> tuple[Array, Array]:
    """Answers of models of halves: levels, shifts and deviations of every record's own."""
    rng = np.random.default_rng(seed)
    trained_on = rng.random((models // 2, records)) < 0.5
    trained_on = np.stack([trained_on, ~trained_on], axis=1).reshape(models, records)
    level, shift = rng.normal(3.0, 2.0, records), rng.gamma(0.5, 1.2, records)
    spread = rng.uniform(0.5, 1.5, records)
    noise = rng.normal(size=(models, records))
    noise += tail * rng.standard_t(3, size=(models, records))
    drift = 0.3 * rng.normal(size=(models, 1))
    return level + drift + shift * trained_on + spread * noise, trained_on


def _of_models(log_odds: Array, trained_on: Array) -> Arrays:
    found = few_models(log_odds, trained_on)
    tpr = found.tpr_at_fpr[0.01]
    return {
        "advantage": found.advantage.value,
        "low": found.advantage.low,
        "high": found.advantage.high,
        "tpr": tpr.value,
        "tpr_interval": np.column_stack([tpr.low, tpr.high]),
        "confirmed": confirmed_by_models(found),
    }


HALF: dict[str, Any] = {
    "confirmed_only": False,
    "low": HALVES_ENDS,
    "high": HALVES_ENDS,
    "tpr_interval": HALVES_RATES,
}


@case("halves", HALVES, **HALF)
def halves_of_few_models() -> Arrays:
    """Four models and sixteen."""
    return joined([_of_models(*_halves(models, 300, 80)) for models in (4, 16)])


@case("halves", HALVES, **HALF)
def halves_64() -> Arrays:
    return _of_models(*_halves(64, 300, 82))


@case("halves", HALVES, **HALF)
def halves_128() -> Arrays:
    """Answers with heavy tails, and some that take few values."""
    log_odds, trained_on = _halves(128, 300, 83, tail=0.5)
    log_odds[:, :30] = np.round(log_odds[:, :30])
    return _of_models(log_odds, trained_on)


@case("halves", HALVES, **HALF)
def halves_near_the_ends() -> Arrays:
    """Records that every model knows by heart, and records that none learns."""
    log_odds, trained_on = _halves(64, 200, 84)
    log_odds[:, :20] += 12.0 * trained_on[:, :20]
    log_odds[:, 20:60] = 1e-3 * np.random.default_rng(85).normal(size=(64, 40))
    return _of_models(log_odds, trained_on)


@case("halves", HALVES, **HALF)
def halves_of_people() -> Arrays:
    """Whole people are in a half or not; a person's answer is the mean of the records'."""
    people = np.sort(np.random.default_rng(86).integers(0, 150, 500))
    people = np.unique(people, return_inverse=True)[1]
    log_odds, trained_on = _halves(32, 500, 86)
    first = np.unique(people, return_index=True)[1]
    inside = trained_on[:, first]
    moved = (
        log_odds + 1.0 * (inside[:, people] & ~trained_on) - 1.0 * (~inside[:, people] & trained_on)
    )
    sizes = np.bincount(people)
    mean = np.stack([np.bincount(people, row) / sizes for row in moved])
    return _of_models(mean, inside)


# --- Beside the audit -----------------------------------------------------------------------------


def _survey() -> pd.DataFrame:
    rng = np.random.default_rng(90)
    sex = rng.choice(["f", "m"], 120)
    age = rng.uniform(20.0, 70.0, 120).round(2)
    height = 165.0 + 12.0 * (sex == "m") + rng.normal(0.0, 6.0, 120)
    ill = 0.05 * (age - 45) + 0.8 * (sex == "m") + rng.normal(size=120) > 0.3
    return pd.DataFrame(
        {
            "age": age,
            "height": height.round(1),
            "sex": sex,
            "ill": np.where(ill, "yes", "no"),
            "cost": 10.0 * age + 100.0 * (sex == "m") + 30.0 * rng.normal(size=120),
        }
    )


@case("secret", Tolerance(0.0, 2e-3, "THEORY 13: a secret by the cavity, 7e-6 measured"))
def secret_attribute() -> Arrays:
    """A category of a logistic and of a ridge regression: chances without and with the model."""
    frame = _survey()
    found = {}
    for name, target, other, model in (
        ("logistic", "ill", "cost", logistic(1.0)),
        ("ridge", "cost", "ill", linear_model.Ridge(alpha=1.0)),
    ):
        table = secret_audit(frame.drop(columns=other), target, "sex", _encoded(model))
        found[name] = table[["secret_with", "secret_without", "secret_leak"]].to_numpy()
    return found


def _encoded(model: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encode = make_column_transformer(
        (OneHotEncoder(), ["sex"]), remainder=StandardScaler(), verbose_feature_names_out=False
    )
    return make_pipeline(encode, model)


@case("leave-one-out", Tolerance(1e-5, 1e-7, "exact for ridge, sweeps otherwise"))
def left_out_of_fits() -> Arrays:
    """Predictions with and without each record: ridge, logistic, Poisson, softmax, kernel ridge."""
    X, y = diabetes()
    models = {
        "ridge": (linear_model.Ridge(alpha=5.0), *diabetes()),
        "logistic": (logistic(1.0), *cancer()),
        "poisson": (linear_model.PoissonRegressor(alpha=0.1, tol=1e-10), *counts()),
        "softmax": (logistic(0.1), *wine()),
        "kernel": (KernelRidge(alpha=1.0, kernel="rbf", gamma=0.05), X[:200], y[:200]),
    }
    found: Arrays = {}
    for name, (model, features, labels) in models.items():
        predictions = left_out(model, features, labels)
        # Of a softmax only differences of classes are told.
        for side, value in predictions.items():
            contrast = value - value[:, :1] if value.ndim == 2 else value
            found[f"{name}_{side}"] = contrast
    return found


@case("erase", Tolerance(1e-4, 1e-7, "distances to a refit"))
def erased_records() -> Arrays:
    """Kept, erased, and half erased: the effect of leaving, what is left, and the distance."""
    X, y = cancer()
    whole = fit_audit(X, y, logistic(1.0).fit(X, y))
    gone = [5, 17]
    rest = np.delete(np.arange(len(y)), gone)
    models = {
        "kept": logistic(1.0).fit(X, y),
        "half": logistic(1.0).fit(np.delete(X, 5, axis=0), np.delete(y, 5)),
        "other": logistic(1.0).fit(X[rest[1:]], y[rest[1:]]),
    }
    found = {
        name: leakscope.erase(whole, records=gone, after=model) for name, model in models.items()
    }
    return {name: [one.effect, one.left, one.distance] for name, one in found.items()}


@case("compose", Tolerance(1e-5, 1e-7, "leave-one-out coefficients"), posterior=SOLVED)
def released_with_noise() -> Arrays:
    """Coefficients with noise, and a draw of their posterior, to somebody who knows all others."""
    X, y = cancer()
    noisy = released_pair(logistic(1.0), X, y, coefficient_noise=0.05)
    X, y = diabetes()
    model = linear_model.Ridge(alpha=2.0, fit_intercept=False)
    drawn = released_pair(model, X, y, posterior_variance=0.7)
    return {
        "noisy": measures.advantage(noisy),
        "noisy_tpr": measures.tpr_at_fpr(noisy, 1e-5),
        "posterior": np.stack([measures.advantage(drawn), measures.kl(drawn)]),
    }


@case("compose", Tolerance(1e-5, 1e-8, "independent draws: divergences add"))
def composed_draws() -> Arrays:
    """Draws of a process at two noises, by one record and by all of them."""
    X, y = plane(60)
    audits = [process_audit(X, y, kernels.rbf(1.0), noise) for noise in (0.05, 0.5)]
    return {"together": composed(*audits)}


@case(
    "reconstruct",
    Tolerance(1e-4, 1e-6, "one division by a gradient's entry, at a tolerance of 1e-12"),
    bound=QUADRATURE,
)
def reconstructed_record() -> Arrays:
    """The record that all others give away, and the bound of coefficients with noise."""
    X, y = cancer()
    found = [missing_record(logistic(1.0), X, y, record) for record in (0, 19, 300)]
    return {
        "features": [features for features, _ in found],
        "label": [float(label) for _, label in found],
        "bound": reconstruction_bound(logistic(1.0), X, y, 0.5, 0.01),
    }
