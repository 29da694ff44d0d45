"""Advice as a whole: every option applied by hand and audited again, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from refits import measured, refitted_pair, small_model

from leakscope import kernels, lood
from leakscope.advising import AuditTarget, advise, defence_of
from leakscope.errors import InputError
from leakscope.results import Advice
from leakscope.results.advice import AdviceOption

TARGET = AuditTarget("advantage", 0.3)
GROUPS = np.repeat(np.arange(12), 3)


@pytest.fixture(scope="module")
def model() -> lood.ProcessOnRecords:
    return small_model(36, noise=0.1)


@pytest.fixture(scope="module")
def advice(model: lood.ProcessOnRecords) -> Advice:
    return advise(model, TARGET, repeats=2)


def _by_hand(model: lood.ProcessOnRecords, option: AdviceOption) -> float:
    """The worst record with the option applied, refitted record by record."""
    defence = defence_of(option, model)
    X, y = defence.training_set(model.features, model.targets)
    applied = lood.ProcessOnRecords(X, y, model.kernel, defence.noise_variance)
    return max(
        float(
            measured(
                TARGET, refitted_pair(applied, [record], output_variance=defence.output_variance)
            )
        )
        for record in range(len(X))
    )


def test_every_option_does_what_it_says(model: lood.ProcessOnRecords, advice: Advice) -> None:
    assert {"output noise", "kernel noise", "fewer features", "dropping"} <= {
        option.name for option in advice.options
    }
    for option in advice.options:
        assert _by_hand(model, option) == pytest.approx(option.worst, rel=1e-5), option.name
        assert option.meets == (option.worst <= TARGET.value)
        expected = "own" if option.setting.get("output_sd") else "any"
        assert option.questions == expected
        assert option.error == pytest.approx(advice.own.error + option.cost)
        assert option.r_squared == pytest.approx(1.0 - option.error / np.var(model.targets))


def test_curves_fall_to_the_target(advice: Advice) -> None:
    for option in advice.options:
        if option.name in ("output noise", "kernel noise", "dropping"):
            assert option.curve[0].worst == pytest.approx(advice.own.worst, rel=1e-8)
            assert option.curve[0].error == pytest.approx(advice.own.error, rel=1e-8)
        if option.meets:
            assert min(point.worst for point in option.curve) <= TARGET.value


def test_output_noise_for_any_question_is_more(
    model: lood.ProcessOnRecords, advice: Advice
) -> None:
    anywhere = advise(model, TARGET, repeats=2, questions="any")
    sd = {
        which: next(o for o in found.options if o.name == "output noise").setting["output_sd"]
        for which, found in (("own", advice), ("any", anywhere))
    }
    assert sd["any"] > sd["own"]
    note = next(o for o in advice.options if o.name == "output noise").notes[1]
    assert f"{sd['any']:.4g} is enough for one question anywhere" in note
    assert all(option.questions == "any" for option in anywhere.options)


def test_groups_are_advised_on() -> None:
    model = small_model(36, groups=GROUPS, noise=0.1)
    advice = advise(model, TARGET, folds=4, repeats=1)
    assert advice.unit == "group"
    option = next(o for o in advice.options if o.name == "kernel noise")
    assert option.meets
    worst = max(
        float(
            measured(
                TARGET,
                refitted_pair(
                    model,
                    np.flatnonzero(model.labels == group).tolist(),
                    noise=defence_of(option, model).noise_variance,
                ),
            )
        )
        for group in range(12)
    )
    assert worst == pytest.approx(option.worst, rel=1e-5)


def test_a_scale_of_the_kernel_is_the_kernel_scaled(model: lood.ProcessOnRecords) -> None:
    arguments = (model.features, model.targets)
    scaled = lood.ProcessOnRecords(*arguments, kernels.rbf(1.3), 0.1, kernel_scale=2.5)
    direct = lood.ProcessOnRecords(*arguments, kernels.rbf(1.3, variance=2.5), 0.1)
    assert measured(TARGET, scaled.separation()) == pytest.approx(
        measured(TARGET, direct.separation())
    )
    assert scaled.reach == direct.reach == 2.5


def test_a_linear_kernel_has_no_bound_elsewhere() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    model = lood.ProcessOnRecords(X, y, kernels.linear(), 0.01)
    advice = advise(model, AuditTarget("advantage", 0.2), repeats=1)
    noise = next(option for option in advice.options if option.name == "output noise")
    assert "no bound on how much" in noise.notes[1]
    with pytest.raises(InputError, match="rbf and matern kernels only"):
        advise(model, AuditTarget("advantage", 0.2), questions="any")


def test_a_target_that_is_met_needs_nothing(model: lood.ProcessOnRecords) -> None:
    advice = advise(model, AuditTarget("advantage", 0.9999), repeats=1)
    assert advice.options == []
    assert advice.best is None
    assert "already" in advice.sentence


def test_the_same_seed_the_same_price(model: lood.ProcessOnRecords) -> None:
    prices = [
        [o.cost for o in advise(model, TARGET, repeats=1, random_state=seed).options]
        for seed in (5, 5, 6)
    ]
    assert prices[0] == prices[1] != prices[2]


def test_stages_are_told_in_order(model: lood.ProcessOnRecords) -> None:
    told: list[str] = []
    advise(model, TARGET, repeats=1, on_stage=told.append)
    assert told == ["audit", "output noise", "kernel noise", "fewer features", "dropping"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": np.zeros(5)}, "records by features"),
        ({"targets": np.zeros(3)}, "must be"),
        ({"features": np.full((36, 2), np.nan)}, "finite numbers"),
        ({"noise_variance": 0.0}, "noise_variance must be positive"),
        ({"groups": np.zeros(4)}, "one whole number per record"),
        ({"task": "ranking"}, "regression or classification"),
    ],
)
def test_what_cannot_be_audited_is_refused(
    model: lood.ProcessOnRecords, change: dict[str, object], words: str
) -> None:
    whole: dict[str, object] = {
        "features": model.features,
        "targets": model.targets,
        "kernel": model.kernel,
        "noise_variance": 0.1,
    }
    with pytest.raises(InputError, match=words):
        lood.ProcessOnRecords(**(whole | change))  # type: ignore[arg-type]


def test_too_few_records_are_refused() -> None:
    with pytest.raises(InputError, match="at least 4 records"):
        advise(small_model(3), TARGET)


def test_four_records_are_enough() -> None:
    advice = advise(small_model(4, noise=0.01), TARGET, folds=2, repeats=1)
    assert advice.options


def test_a_matrix_that_does_not_fit_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from leakscope._numerics import memory

    monkeypatch.setattr(memory, "available_memory", lambda: 300 * 2**20)
    model = lood.ProcessOnRecords(np.zeros((3000, 1)), np.zeros(3000), kernels.rbf(1.0), 0.1)
    with pytest.raises(InputError, match="6 kernel matrices"):
        advise(model, TARGET)


def test_a_target_that_does_not_vary_has_no_r_squared() -> None:
    model = small_model(12)
    # 0.1 summed twelve times is not 1.2: the variance of what is constant is not always 0.
    constant = lood.ProcessOnRecords(model.features, np.full(12, 0.1), model.kernel, 0.05)
    advice = advise(constant, TARGET, repeats=1)
    assert constant.total_variance == 0.0
    assert all(option.r_squared is None for option in (advice.own, *advice.options))
    assert all(np.isfinite(option.cost) for option in advice.options)
    assert any("the same for every record" in note for note in advice.notes)
    assert advise(model, TARGET, repeats=1).notes == []


def test_fewer_records_than_folds_are_left_out_one_by_one() -> None:
    advice = advise(small_model(4, noise=0.01), TARGET, repeats=1)
    assert (advice.settings["repeats"], advice.settings["folds"]) == (1, 4)
    assert advise(small_model(12), TARGET, repeats=1).settings["folds"] == 5
    with pytest.raises(InputError, match="folds must be from 2 to the 4"):
        advise(small_model(4, noise=0.01), TARGET, folds=5)


def test_a_small_target_keeps_every_option() -> None:
    target = AuditTarget("advantage", 1e-5)
    model = small_model(noise=1e-4)
    found = {option.name: option for option in advise(model, target, repeats=1).options}
    assert found["output noise"].meets
    assert found["kernel noise"].meets
    assert 0.99e-5 < found["output noise"].worst <= 1e-5


def test_an_option_that_is_not_found_is_listed_beside_the_others() -> None:
    target = AuditTarget("advantage", 1e-80)
    options = advise(small_model(8), target, repeats=1).options
    found = {option.name: option for option in options}
    assert {"output noise", "kernel noise", "fewer features", "dropping"} <= set(found)
    assert not found["output noise"].meets
    assert "overflow float64" in " ".join(found["output noise"].notes)
    assert "Was not shown to meet" in found["output noise"].sentence
    assert "Does not meet" in found["dropping"].sentence
    # A pair is listed only where its own numbers are trusted to meet the target.
    assert all(found[name].meets and found[name].worst <= 1e-80 for name in found if " + " in name)


def test_the_notes_of_dropping_are_of_the_row_that_is_shown() -> None:
    model = small_model(seed=4)
    options = advise(model, TARGET, repeats=1).options
    dropping = next(option for option in options if option.name == "dropping")
    gone = int(dropping.setting["dropped"])
    assert 0 < gone < 12
    others = model.units - gone
    assert dropping.notes[0] == f"This makes 10 of the {others} other records more exposed."
    assert "Dropping stopped at 12 of 24 records" in dropping.notes[1]
    assert dropping.worst < min(point.worst for point in dropping.curve) + 1e-9


def test_dropping_that_never_helps_drops_none() -> None:
    """Records that are alike cover each other: the fewer, the more exposed."""
    X, y = np.linspace(0.0, 0.01, 12)[:, None], np.zeros(12)
    model = lood.ProcessOnRecords(X, y, kernels.rbf(1.0), 0.1)
    options = advise(model, AuditTarget("advantage", 0.01), repeats=1).options
    dropping = next(option for option in options if option.name == "dropping")
    assert dropping.setting == {"dropped": 0.0}


def test_what_is_nearly_certain_is_not_called_certain() -> None:
    model = small_model(noise=1e-6)
    options = advise(model, TARGET, repeats=1).options
    worst = [option for option in options if option.worst >= 0.99995]
    assert worst
    assert all("worst record at >0.9999" in option.sentence for option in worst)
    assert AuditTarget("epsilon", 1.0).shown(float("inf")) == "infinite"
