"""Advice as a whole: every option applied by hand and audited again, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from refits import refitted_pair, small_model

from leakscope import kernels
from leakscope.defences import (
    Advice,
    AuditedModel,
    AuditTarget,
    Option,
    advise,
    merged_measures,
)
from leakscope.errors import InputError

TARGET = AuditTarget("advantage", 0.3)
GROUPS = np.repeat(np.arange(12), 3)


@pytest.fixture(scope="module")
def model() -> AuditedModel:
    return small_model(36, noise=0.1)


@pytest.fixture(scope="module")
def advice(model: AuditedModel) -> Advice:
    return advise(model, TARGET, repeats=2)


def _by_hand(model: AuditedModel, option: Option) -> float:
    """The worst record with the option applied, refitted record by record."""
    defence = option.defence
    if defence.merges:
        assert defence.rows is not None
        return float(merged_measures(model, defence.rows, TARGET).max())
    X, y = defence.training_set(model.features, model.targets)
    applied = AuditedModel(X, y, model.kernel, defence.noise_variance)
    return max(
        float(
            TARGET.measured(
                refitted_pair(applied, [record], output_variance=defence.output_variance)
            )
        )
        for record in range(len(X))
    )


def test_every_option_does_what_it_says(model: AuditedModel, advice: Advice) -> None:
    assert {"output noise", "kernel noise", "fewer features", "dropping", "merging"} <= {
        option.name for option in advice.options
    }
    for option in advice.options:
        assert _by_hand(model, option) == pytest.approx(option.worst, rel=1e-5), option.name
        assert option.meets == (option.worst <= TARGET.value)
        expected = "own" if option.defence.output_variance > 0.0 else "any"
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


def test_output_noise_for_any_question_is_more(model: AuditedModel, advice: Advice) -> None:
    anywhere = advise(model, TARGET, repeats=2, questions="any")
    sd = {
        which: next(o for o in found.options if o.name == "output noise").setting["output_sd"]
        for which, found in (("own", advice), ("any", anywhere))
    }
    assert sd["any"] > sd["own"]
    note = next(o for o in advice.options if o.name == "output noise").notes[1]
    assert f"{sd['any']:.4g} does for one question anywhere" in note
    assert all(option.questions == "any" for option in anywhere.options)


def test_groups_are_advised_on_without_merging() -> None:
    model = small_model(36, groups=GROUPS, noise=0.1)
    advice = advise(model, TARGET, folds=4, repeats=1)
    assert advice.unit == "group"
    assert "merging" not in {option.name for option in advice.options}
    assert advice.notes
    option = next(o for o in advice.options if o.name == "kernel noise")
    assert option.meets
    worst = max(
        float(
            TARGET.measured(
                refitted_pair(
                    model,
                    np.flatnonzero(model.labels == group).tolist(),
                    noise=option.defence.noise_variance,
                )
            )
        )
        for group in range(12)
    )
    assert worst == pytest.approx(option.worst, rel=1e-5)


def test_a_scale_of_the_kernel_is_the_kernel_scaled(model: AuditedModel) -> None:
    arguments = (model.features, model.targets)
    scaled = AuditedModel(*arguments, kernels.rbf(1.3), 0.1, kernel_scale=2.5)
    direct = AuditedModel(*arguments, kernels.rbf(1.3, variance=2.5), 0.1)
    assert scaled.laws().measured(TARGET) == pytest.approx(direct.laws().measured(TARGET))
    assert scaled.reach == direct.reach == 2.5


def test_a_linear_kernel_has_no_bound_elsewhere() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    model = AuditedModel(X, y, kernels.linear(), 0.01)
    advice = advise(model, AuditTarget("advantage", 0.2), repeats=1)
    noise = next(option for option in advice.options if option.name == "output noise")
    assert "without bound" in noise.notes[1]
    with pytest.raises(InputError, match="rbf and matern kernels only"):
        advise(model, AuditTarget("advantage", 0.2), questions="any")


def test_a_target_that_is_met_needs_nothing(model: AuditedModel) -> None:
    advice = advise(model, AuditTarget("advantage", 0.9999), repeats=1)
    assert advice.options == ()
    assert advice.best is None
    assert "already" in advice.sentence


def test_the_same_seed_the_same_price(model: AuditedModel) -> None:
    prices = [
        [o.cost for o in advise(model, TARGET, repeats=1, random_state=seed).options]
        for seed in (5, 5, 6)
    ]
    assert prices[0] == prices[1] != prices[2]


def test_stages_are_told_in_order(model: AuditedModel) -> None:
    told: list[str] = []
    advise(model, TARGET, repeats=1, on_stage=told.append)
    assert told == ["audit", "output noise", "kernel noise", "features", "dropping", "merging"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": np.zeros(5)}, "records by features"),
        ({"targets": np.zeros(3)}, "must be"),
        ({"features": np.full((36, 2), np.nan)}, "finite numbers"),
        ({"noise_variance": 0.0}, "noise_variance must be positive"),
        ({"groups": np.zeros(4)}, "one whole number a record"),
        ({"task": "ranking"}, "regression or classification"),
    ],
)
def test_what_cannot_be_audited_is_refused(
    model: AuditedModel, change: dict[str, object], words: str
) -> None:
    whole: dict[str, object] = {
        "features": model.features,
        "targets": model.targets,
        "kernel": model.kernel,
        "noise_variance": 0.1,
    }
    with pytest.raises(InputError, match=words):
        AuditedModel(**(whole | change))  # type: ignore[arg-type]


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
    with pytest.raises(InputError, match="6 kernel matrices"):
        AuditedModel(np.zeros((3000, 1)), np.zeros(3000), kernels.rbf(1.0), 0.1)
