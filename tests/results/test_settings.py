from __future__ import annotations

import pytest

from leakscope import InputError, settings


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
        (
            settings.AuditSettings,
            {"route": "scenic"},
            "route: .*'auto', 'dense', 'features', 'fitc' or 'device'",
        ),
        (settings.AuditSettings, {"scaling": "some"}, "scaling: .*'standard' or 'none'"),
        (settings.AuditSettings, {"length": 1.0}, "length: extra inputs are not permitted"),
        (settings.AuditSettings, {"seed": -1}, "seed: "),
        (
            settings.MeasureSettings,
            {"fpr": (0.1, 2.0)},
            r"fpr, entry 1 .*less than 1, but it is 2\.0",
        ),
        (settings.MeasureSettings, {"fpr": (float("nan"),)}, r"fpr, entry 0 "),
        (settings.MeasureSettings, {"fpr": ()}, "fpr: "),
        (settings.MeasureSettings, {"delta": (0.0,)}, r"delta, entry 0 .*greater than 0"),
        (settings.MeasureSettings, {"confidence": 1.0}, "confidence: .*less than 1"),
    ],
)
def test_one_sentence(model, values, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        settings.validated(model, **values)
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
        settings.validated(settings.AuditSettings, length_scale=None, seed=None)
        == settings.AuditSettings()
    )
