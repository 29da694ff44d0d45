"""Output noise and training noise, against refits and direct searches."""

from __future__ import annotations

import re

import numpy as np
import pytest
from refits import (
    advised,
    joint,
    least_output_noise,
    measured,
    posterior,
    refitted_pair,
    small_model,
)
from scipy import optimize

from leakscope import kernels, lood, measures
from leakscope.advising import AuditTarget, advise
from leakscope.advising.options import Advising
from leakscope.errors import InputError
from leakscope.laws import Empirical, LawPair, Normal
from leakscope.subjects.laws import UnitLaws
from leakscope.subjects.process.changes import enough_noise, falls
from leakscope.subjects.process.subject import laws_of_separation
from leakscope.subjects.subject import Scan, Wanted

TARGETS = (
    AuditTarget("advantage", 0.2),
    AuditTarget("tpr", 0.02, fpr=0.001),
    AuditTarget("epsilon", 1.0, delta=1e-3),
)


def least_kernel_noise(model: lood.ProcessOnRecords, target: AuditTarget) -> Scan:
    """The levels of training noise that advice tries, and the least that meets the target."""
    wanted = Wanted(target)
    advising = Advising(advised(model), wanted)
    change = next(iter(advising.subject.changes(wanted)))
    return advising.scanned(change)[0]


def enough_variance(laws: lood.Separation, advantage: float, reach: float | None = None) -> float:
    return laws_of_separation(laws, reach=reach).enough_noise(advantage)


GROUPS = np.repeat(np.arange(10), [1, 3, 2, 1, 2, 4, 3, 2, 4, 2])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.measure)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("variance", [0.0, 0.2, 5.0])
def test_noised_laws_are_those_of_refits(
    target: AuditTarget, outputs: int, variance: float
) -> None:
    model = small_model(outputs=outputs)
    found = measured(target, model.separation().noised(variance))
    for record in (0, 7, 23):
        pair = refitted_pair(model, [record], output_variance=variance)
        assert found[record] == pytest.approx(float(measured(target, pair)), rel=1e-6)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("variance", [0.0, 0.3])
def test_noised_laws_of_groups_are_those_of_refits(outputs: int, variance: float) -> None:
    model = small_model(outputs=outputs, groups=GROUPS)
    target = AuditTarget("advantage", 0.2)
    found = measured(target, model.separation().noised(variance))
    for group in (0, 1, 5):
        rows = np.flatnonzero(model.labels == group).tolist()
        pair = refitted_pair(model, rows, output_variance=variance)
        assert found[group] == pytest.approx(float(measured(target, pair)), rel=1e-6)


@pytest.mark.parametrize(
    ("target", "groups"),
    [*((target, None) for target in TARGETS), (TARGETS[0], GROUPS)],
    ids=["advantage", "tpr", "epsilon", "advantage of groups"],
)
def test_least_output_noise_is_the_direct_search(
    target: AuditTarget, groups: np.ndarray | None
) -> None:
    model = small_model(groups=groups)
    units = [np.flatnonzero(model.labels == unit).tolist() for unit in range(model.units)]

    def excess(log_variance: float) -> float:
        noise = float(np.exp(log_variance))
        worst = max(
            float(measured(target, refitted_pair(model, rows, output_variance=noise)))
            for rows in units
        )
        return worst - target.value

    variance = least_output_noise(model.separation(), target)
    direct = np.exp(optimize.brentq(excess, np.log(variance) - 1.0, np.log(variance) + 1.0))
    assert variance == pytest.approx(direct, rel=1e-5)
    assert measured(target, model.separation().noised(variance)).max() <= target.value


def test_no_noise_where_the_target_is_met() -> None:
    laws = small_model().separation()
    assert least_output_noise(laws, AuditTarget("advantage", 0.999999)) == 0.0


def test_noise_smaller_than_the_training_noise_is_found() -> None:
    laws = small_model().separation()
    target = AuditTarget(
        "advantage", float(measured(AuditTarget("advantage", 0.5), laws).max()) - 1e-6
    )
    variance = least_output_noise(laws, target)
    assert 0.0 < variance < 1e-3 * laws.noise_variance
    assert measured(target, laws.noised(variance)).max() <= target.value


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("noise", [0.05, 0.7, 30.0])
def test_noise_levels_are_refits(outputs: int, noise: float) -> None:
    model, target = small_model(outputs=outputs), AuditTarget("advantage", 0.2)
    found = measured(target, model.at_noise(noise))
    for record in (0, 7, 23):
        pair = refitted_pair(model, [record], noise=noise)
        assert found[record] == pytest.approx(float(measured(target, pair)), rel=1e-6)


def test_noise_levels_of_groups_are_refits() -> None:
    model, target = small_model(groups=GROUPS), AuditTarget("advantage", 0.2)
    found = measured(target, model.at_noise(0.4))
    for group in (0, 5, 8):
        rows = np.flatnonzero(model.labels == group).tolist()
        expected = measured(target, refitted_pair(model, rows, noise=0.4))
        assert found[group] == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.measure)
def test_least_kernel_noise_is_the_first_that_meets_the_target(target: AuditTarget) -> None:
    model = small_model(groups=None)

    def worst(noise: float) -> float:
        return max(
            float(measured(target, refitted_pair(model, [record], noise=noise)))
            for record in range(model.units)
        )

    scan = least_kernel_noise(model, target)
    assert scan.found is not None
    assert worst(scan.found) <= target.value * (1.0 + 1e-6)
    assert worst(scan.found * (1.0 - 1e-4)) > target.value
    # No lower level on a grid of its own meets it either.
    for noise in np.geomspace(model.noise_variance, 0.999 * scan.found, 7):
        assert worst(float(noise)) > target.value
    assert falls(scan) == bool(np.all(np.diff(scan.worst) <= 1e-9))


def test_an_exposure_that_rises_with_the_training_noise_is_told() -> None:
    rng = np.random.default_rng(13)
    X = rng.normal(size=(int(rng.integers(4, 12)), 1)) * rng.choice([0.3, 1, 3])
    y = rng.normal(size=len(X)) * rng.choice([0.1, 1, 10])
    noise = float(10 ** rng.uniform(-4, 0))
    model = lood.ProcessOnRecords(X, y, kernels.rbf(1.0), noise)
    scan = least_kernel_noise(model, AuditTarget("advantage", 0.965))
    assert scan.found is not None
    assert not falls(scan)
    assert scan.rises


def test_simulated_answers_meet_the_target() -> None:
    """The likelihood-ratio attack on drawn answers, noise added, has the promised advantage."""
    model, target = small_model(), AuditTarget("advantage", 0.2)
    variance = least_output_noise(model.separation(), target)
    record = int(np.argmax(measured(target, model.separation().noised(variance))))
    pair = refitted_pair(model, [record])
    rng = np.random.default_rng(1)
    scores = []
    for law in (pair.member, pair.nonmember):
        assert isinstance(law, Normal)
        answers = law.mean + law.sigma * rng.standard_normal(40_000)
        answers += np.sqrt(variance) * rng.standard_normal(40_000)
        known = refitted_pair(model, [record], output_variance=variance)
        scores.append(known.member.log_density(answers) - known.nonmember.log_density(answers))
    estimate = measures.advantage(LawPair(Empirical(scores[0]), Empirical(scores[1])))
    assert isinstance(estimate, measures.Estimate)
    width = float(estimate.high - estimate.low) / 3.92
    assert abs(float(estimate.value) - target.value) < 4.0 * width


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("advantage", 1.0), "between 0 and 1"),
        (("tpr", 0.001), "which guessing reaches"),
        (("epsilon", 0.0), "above 0"),
        (("auc", 0.7), "one of advantage, tpr, epsilon"),
    ],
)
def test_targets_that_make_no_sense_are_refused(arguments: tuple[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        AuditTarget(*arguments)  # type: ignore[arg-type]


def test_laws_of_some_units() -> None:
    laws = small_model(groups=GROUPS).separation()
    target = AuditTarget("advantage", 0.2)
    chosen = np.array([5, 0, 8])
    assert measured(target, laws.some(chosen)) == pytest.approx(measured(target, laws)[chosen])
    assert isinstance(laws, lood.Separation)


@pytest.mark.parametrize("outputs", [1, 2])
def test_no_question_anywhere_tells_more_than_the_bound(outputs: int) -> None:
    """With noise on the answers a question beside the record can tell more than its own point."""
    model, target, variance = small_model(outputs=outputs), AuditTarget("advantage", 0.2), 0.5
    own = measured(target, model.separation().noised(variance))
    bound = measured(target, model.separation().noised(variance, model.reach))
    rng = np.random.default_rng(4)
    everyone, more = np.arange(24), 0
    for record in (0, 7, 23):
        others = np.delete(everyone, record)
        for step in np.linspace(-0.5, 1.5, 9):
            asked = model.features[record] * (1.0 + step) + 0.05 * rng.normal(size=2)
            member, nonmember = (
                joint(*posterior(model.features[t], model.targets[t], asked[None], 0.05), variance)
                for t in (everyone, others)
            )
            found = float(measured(target, LawPair(member, nonmember)))
            assert found <= bound[record] + 1e-9
            more += found > own[record] + 1e-6
    assert more > 0
    enough = least_output_noise(model.separation(), target, model.reach)
    assert enough > least_output_noise(model.separation(), target)
    assert measured(target, model.separation().noised(enough, model.reach)).max() <= target.value


@pytest.mark.parametrize("value", [1e-5, 1e-9])
def test_small_targets_are_met_by_the_shift_over_the_noise(value: float) -> None:
    """Much noise leaves two normal laws of one variance: the advantage is shift/sqrt(2 pi v)."""
    model, target = small_model(), AuditTarget("advantage", value)
    pairs = [refitted_pair(model, [record]) for record in range(model.units)]
    shift = max(abs(float(pair.member.mean - pair.nonmember.mean)) for pair in pairs)  # type: ignore[union-attr]
    variance = least_output_noise(model.separation(), target)
    assert variance == pytest.approx(shift**2 / (2.0 * np.pi * value**2), rel=1e-4)
    assert variance > 1e9 * model.noise_variance


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["records", "groups"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("advantage", [0.3, 1e-3, 1e-7])
def test_what_is_enough_by_a_bound_is_enough(
    advantage: float, outputs: int, groups: np.ndarray | None
) -> None:
    target = AuditTarget("advantage", advantage)
    for seed, noise in ((0, 0.05), (1, 1e-4), (2, 3.0)):
        model = small_model(outputs=outputs, groups=groups, seed=seed, noise=noise)
        laws = model.separation()
        for reach in (None, 1.0):
            enough = enough_variance(laws, advantage, reach)
            assert measured(target, laws.noised(enough, reach)).max() <= advantage
        laws = model.at_noise(enough_noise(model, advantage))
        assert measured(target, laws).max() <= advantage


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.measure)
def test_an_advantage_is_enough_for_every_measure(target: AuditTarget) -> None:
    laws = small_model().separation()
    noised = laws.noised(enough_variance(laws, target.enough_advantage))
    assert measured(target, noised).max() <= target.value


def test_training_noise_is_sought_as_far_as_the_laws_ask() -> None:
    model, target = small_model(noise=1e-7), AuditTarget("advantage", 1e-5)
    scan = least_kernel_noise(model, target)
    assert scan.found is not None
    assert scan.found > 1e10 * model.noise_variance
    worst = max(
        float(measured(target, refitted_pair(model, [record], noise=scan.found)))
        for record in range(model.units)
    )
    assert worst == pytest.approx(target.value, rel=1e-3)


def output_noise_notes(target: AuditTarget) -> str:
    options = advise(small_model(), target, repeats=1).options
    option = next(option for option in options if option.name == "output noise")
    assert not option.meets
    return " ".join(option.notes)


def test_noise_that_float64_does_not_hold_is_told() -> None:
    target = AuditTarget("advantage", 1e-80)
    assert least_output_noise(small_model().separation(), target) is None
    assert "overflow float64" in output_noise_notes(target)


def test_a_measure_that_is_not_resolved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    target, plain = AuditTarget("advantage", 1e-5), UnitLaws.measured
    monkeypatch.setattr(UnitLaws, "measured", lambda self, asked: plain(self, asked) + 1e-4)
    assert least_output_noise(small_model().separation(), target) is None
    words = r"has too few digits to show advantage .* by a bound \(Pinsker\)"
    assert re.search(words, output_noise_notes(target))
