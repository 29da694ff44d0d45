"""The advantage in the other data models: known components, shared designs, both attackers."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import linear, measures
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal, NormalMixture
from leakscope.linear import OutputNoise
from leakscope.linear.data_models import design_moments
from leakscope.measures import scored_advantage
from leakscope.planning import data_model_advantage, plan_linear


def test_a_known_component_is_counted_once_and_whole() -> None:
    """0.7 N(0, 1) + 0.3 N(0, s^2) against N(0, 1), s drawn: TV is 0.3 times that of the parts."""
    rng = np.random.default_rng(0)
    sigmas = rng.uniform(0.1, 0.3, 400)
    weights = np.r_[0.7, np.full(400, 0.3 / 400)]
    pair = LawPair(Normal(0.0, 1.0), NormalMixture.scale(np.r_[1.0, sigmas], weights))
    rest = LawPair(Normal(0.0, 1.0), NormalMixture.scale(sigmas))
    found = scored_advantage(pair, designs=400)
    assert found.value == pytest.approx(0.3 * scored_advantage(rest).value, rel=1e-3)
    assert found.value == pytest.approx(
        float(measures.advantage(pair)), abs=4.0 * found.stderr + 1e-3
    )
    assert found.stderr == pytest.approx(0.3 * scored_advantage(rest).stderr, rel=0.05)


def test_designs_must_share_the_components_evenly() -> None:
    pair = LawPair(Normal(0.0, 1.0), NormalMixture.scale(np.array([1.0, 2.0, 3.0, 4.0])))
    with pytest.raises(InputError, match="4 components cannot be those of 3 designs"):
        scored_advantage(pair, designs=3)


@pytest.mark.parametrize(
    "model",
    [
        linear.LatentSpace(20, 12, 4),
        linear.LatentSpace(20, 40, 4),
        linear.FourierSeries(12, 20, times=64, convention="published"),
        linear.RandomRelu(20, 40, 100, convention="published"),
    ],
)
def test_standard_errors_are_honest(model: linear.DataModel) -> None:
    query = model.query(3)
    found = [
        data_model_advantage(model, query, designs=120, random_state=Key(seed))
        for seed in range(20)
    ]
    spread = np.std([one.value for one in found], ddof=1)
    claimed = np.mean([one.stderr for one in found])
    # 16 repetitions know their spread to 18%; evenly spread designs may be better than claimed
    assert spread < 1.7 * claimed + 1e-6


def test_shared_designs_beat_designs_of_ones_own() -> None:
    model = linear.FourierSeries(12, 4, times=64)
    pair = linear.data_model_law_pair(model, model.query(3), designs=500, random_state=1)
    shared = scored_advantage(pair, designs=500)
    assert shared.stderr < 0.8 * scored_advantage(pair).stderr


def test_who_knows_the_label() -> None:
    latent = linear.LatentSpace(20, 12, 4)
    query = latent.query(3)
    hidden, known = (
        data_model_advantage(latent, query, attacker=who, designs=300, random_state=1)  # type: ignore[arg-type]
        for who in ("label_hidden", "label_known")
    )
    assert known.value > hidden.value + 4.0 * np.hypot(hidden.stderr, known.stderr)
    wide = linear.LatentSpace(20, 40, 4)
    with pytest.raises(InputError, match="data_model_advantage"):
        linear.data_model_law_pair(wide, wide.query(0), attacker="label_known", designs=10)
    # noise on the answers brings the label-known attacker below 1, and not below the other one
    noisy = [
        data_model_advantage(
            wide,
            wide.query(0),
            attacker=who,  # type: ignore[arg-type]
            noise=OutputNoise(1.0),
            designs=200,
            random_state=1,
        ).value
        for who in ("label_hidden", "label_known")
    ]
    assert noisy[0] < noisy[1] < 0.9


def test_a_series_that_repeats_itself_hides_members_among_their_repeats() -> None:
    """Noise-free and exact: he errs just where another time brought the record's row."""
    model = linear.FourierSeries(12, 20, times=64, convention="published", rounding=False)
    query = model.query(1)
    known = data_model_advantage(model, query, attacker="label_known", designs=50, random_state=0)
    assert known.value == pytest.approx(1.0 - model.settled(query), abs=1e-12)
    hidden = data_model_advantage(model, query, designs=50, random_state=0)
    assert hidden.value < known.value


def test_designs_that_see_nothing_of_a_record_are_no_error() -> None:
    """One record in 4,000 meets no active unit (linear.md's own size): that was an error."""
    model = linear.RandomRelu(20, 12, 40)
    (_, nonmember), _ = design_moments(model, model.query(1), designs=300, random_state=11)
    assert np.count_nonzero(nonmember[0] == 0.0) == 4
    found = data_model_advantage(
        model, model.query(1), attacker="label_known", designs=300, random_state=11
    )
    assert 0.3 < found.value < 0.6


@pytest.mark.parametrize(("n", "p"), [(4, 4), (4, 3)])
def test_few_units_against_fits(n: int, p: int) -> None:
    """Records that no unit sees, and designs that do not interpolate though p = n: the test that
    the laws choose, on whole fits."""
    model = linear.RandomRelu(n, p, 12)
    query, rng, fits = model.query(1), np.random.default_rng(n + p), 2000
    sd = np.sqrt(model.label_variance(query))

    def seen(own: bool) -> np.ndarray:
        rows = []
        for _ in range(fits):
            z = rng.permutation(query.features) * rng.choice([-1.0, 1.0], 12)
            Z, V = rng.standard_normal((n, 12)), rng.standard_normal((12, p))
            V /= np.linalg.norm(V, axis=1, keepdims=True)
            beta = rng.standard_normal(12) / np.sqrt(12.0)
            label, y = z @ beta + rng.standard_normal(), Z @ beta + rng.standard_normal(n)
            if own:
                Z[0], y[0] = z, label
            fit = np.linalg.lstsq(np.maximum(Z @ V, 0.0), y, rcond=None)[0]
            rows.append((label, np.maximum(z @ V, 0.0) @ fit))
        return np.array(rows)

    def called(told: np.ndarray) -> float:
        pair = linear.data_model_law_pair(
            model, query, attacker="label_known", labels=told[:, 0] / sd, designs=100
        )
        return float(
            (pair.member.log_density(told[:, 1]) > pair.nonmember.log_density(told[:, 1])).mean()
        )

    found = data_model_advantage(model, query, attacker="label_known", designs=800, random_state=1)
    gained = called(seen(True)) - called(seen(False))
    assert abs(found.value - gained) < 4.0 * (np.sqrt(0.5 / fits) + found.stderr)


def test_a_plan_of_a_latent_space_is_what_refits_give() -> None:
    """Error and spreads against labels drawn and models refitted, record by record."""
    model = linear.LatentSpace(20, 8, 4)
    plan = plan_linear(model, records=30, draws=10, random_state=0)
    rng = np.random.default_rng(1)
    squares = np.empty((3, 2000))
    for trial in range(squares.shape[1]):
        loadings, beta = rng.standard_normal((8, 4)), rng.standard_normal(4) / 2.0
        latent = rng.standard_normal((21, 4))
        features = latent @ loadings.T + rng.standard_normal((21, 8))
        labels = latent @ beta + rng.standard_normal(21)
        fresh = features[0] @ np.linalg.lstsq(features[1:], labels[1:], rcond=None)[0]
        member = features[0] @ np.linalg.lstsq(features[:20], labels[:20], rcond=None)[0]
        squares[:, trial] = (labels[0] - fresh) ** 2, fresh**2, member**2
    spread = squares.std(axis=1) / np.sqrt(squares.shape[1])
    found = [
        (plan.generalization_error, plan.generalization_error_stderr),
        *(
            (sigma**2, 2.0 * sigma * stderr)
            for sigma, stderr in (
                (plan.sigma_nonmember, plan.sigma_nonmember_stderr),
                (plan.sigma_member, plan.sigma_member_stderr),
            )
        ),
    ]
    for (value, own), mean, stderr in zip(found, squares.mean(axis=1), spread, strict=True):
        assert abs(value - mean) < 4.0 * np.hypot(own, stderr)


def test_a_plan_of_a_fourier_series_counts_what_is_settled() -> None:
    """A time whose row another time brings is predicted: refits, the settled share in them."""
    model = linear.FourierSeries(12, 6, times=32, convention="published", rounding=False)
    plan = plan_linear(model, records=16, draws=12, random_state=0)
    rng = np.random.default_rng(2)
    rows = model._rows(np.arange(32))
    errors = []
    for _ in range(3000):
        times = rng.permutation(32)[:13]
        labels = rows[times] @ rng.standard_normal(6) / np.sqrt(6)
        fit = np.linalg.lstsq(rows[times[1:]], labels[1:], rcond=None)[0]
        errors.append((labels[0] - rows[times[0]] @ fit) ** 2)
    stderr = np.hypot(np.std(errors) / np.sqrt(3000), plan.generalization_error_stderr)
    assert abs(plan.generalization_error - np.mean(errors)) < 4.0 * stderr
    # the label-known attacker misses exactly what is predicted unseen
    assert plan.advantage_label_known < 1.0


def test_a_plan_of_another_world_refuses_what_it_has_not() -> None:
    model = linear.LatentSpace(20, 8, 4)
    with pytest.raises(InputError, match="asymptotic law"):
        plan_linear(model, method="asymptotic")
    with pytest.raises(InputError, match="least squares"):
        plan_linear(model, curve="ridge", records=2, draws=8)
    with pytest.raises(InputError, match="records must be 2 or more"):
        plan_linear(model, records=1)
