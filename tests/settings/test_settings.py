from __future__ import annotations

import pytest
from pydantic import BaseModel

from leakscope import InputError, settings
from leakscope.settings.measure import MeasureSettings
from leakscope.settings.setting import described, validated


@pytest.mark.parametrize(
    ("model", "values", "sentence"),
    [
        (settings.AuditSettings, {"noise_variance": -1}, "noise_variance: .* greater than 0.*-1"),
        (settings.AuditSettings, {"noise_variance": float("nan")}, "noise_variance: .*finite"),
        (
            settings.AuditSettings,
            {"noise_variance": "guess"},
            "number or one of marginal_likelihood, leav",
        ),
        (
            settings.AuditSettings,
            {"kernel": "magic"},
            "kernel: input should be 'rbf', .*but it is 'magic'",
        ),
        (settings.AuditSettings, {"depth": 0}, "depth: .*greater than or equal to 1"),
        (settings.AuditSettings, {"depth": 1000}, "depth: .*less than or equal to 256"),
        (
            settings.AuditSettings,
            {"route": "scenic"},
            "route: .*'auto', 'dense', 'features', 'nystrom' or 'device'",
        ),
        (settings.AuditSettings, {"scaling": "some"}, "scaling: .*'standard' or 'none'"),
        (
            settings.AuditSettings,
            {"length": 1.0},
            r"no setting length; did you mean length_scale\?",
        ),
        (settings.AuditSettings, {"seed": -1}, "seed: "),
        (
            MeasureSettings,
            {"fpr": (0.1, 2.0)},
            r"fpr, entry 1 .*less than 1, but it is 2\.0",
        ),
        (MeasureSettings, {"fpr": (float("nan"),)}, r"fpr, entry 0 "),
        (MeasureSettings, {"fpr": ()}, "fpr: "),
        (MeasureSettings, {"delta": (0.0,)}, r"delta, entry 0 .*greater than 0"),
        (MeasureSettings, {"confidence": 1.0}, "confidence: .*less than 1"),
    ],
)
def test_one_sentence(model, values, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        validated(model, **values)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("given", "kept"),
    [(0.5, 0.5), ("0.5", 0.5), ("1e-3", 1e-3), ("leave_one_out", "leave_one_out")],
)
def test_noise_variance_is_a_number_or_a_criterion(given, kept):
    assert settings.AuditSettings(noise_variance=given).noise_variance == kept


def test_none_means_the_default():
    assert (
        validated(settings.AuditSettings, length_scale=None, seed=None) == settings.AuditSettings()
    )


MODELS = [
    value
    for name in settings.__all__
    if isinstance(value := getattr(settings, name), type) and issubclass(value, BaseModel)
]


WITH_DEFAULTS = [
    model
    for model in MODELS
    if not any(field.is_required() for field in model.model_fields.values())
]


@pytest.mark.parametrize("model", WITH_DEFAULTS, ids=lambda model: model.__name__)
def test_every_default_is_within_its_own_bounds(model):
    assert validated(model, **model().model_dump()) == model()


@pytest.mark.parametrize(
    ("model", "name"),
    [pytest.param(m, n, id=f"{m.__name__}.{n}") for m in MODELS for n in m.model_fields],
)
def test_every_setting_says_what_it_is_in_a_sentence(model, name):
    text = described(model, name).text
    assert text.endswith(".")
    assert 5 < len(text) < 250


def test_where_a_kernels_own_default_is_shown():
    told = described(settings.AuditSettings, "weight_variance")
    assert told.text == "Prior variance (linear and nngp only)."
    assert told.shown_default == "1 for linear, 2 for nngp"
    scale = described(settings.AuditSettings, "length_scale")
    assert scale.shown_default == "the median distance"
