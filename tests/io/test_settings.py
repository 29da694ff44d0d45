from __future__ import annotations

import pytest

from leakscope import InputError, io


@pytest.mark.parametrize(
    ("model", "values", "sentence"),
    [
        (io.AuditSettings, {"noise_variance": -1}, "noise_variance: .* greater than 0.*-1"),
        (io.AuditSettings, {"noise_variance": float("nan")}, "noise_variance: .*finite"),
        (
            io.AuditSettings,
            {"noise_variance": "guess"},
            "number or one of marginal_likelihood, leav",
        ),
        (
            io.AuditSettings,
            {"kernel": "magic"},
            "kernel: input should be 'rbf', .*but it is 'magic'",
        ),
        (io.AuditSettings, {"depth": 0}, "depth: .*greater than or equal to 1"),
        (
            io.AuditSettings,
            {"route": "scenic"},
            "route: .*'auto', 'dense', 'features', 'fitc' or 'device'",
        ),
        (io.AuditSettings, {"scaling": "some"}, "scaling: .*'standard' or 'none'"),
        (io.AuditSettings, {"length": 1.0}, "length: extra inputs are not permitted"),
        (io.AuditSettings, {"seed": -1}, "seed: "),
        (io.MeasureSettings, {"fpr": (0.1, 2.0)}, r"fpr, entry 1 .*less than 1, but it is 2\.0"),
        (io.MeasureSettings, {"fpr": (float("nan"),)}, r"fpr, entry 0 "),
        (io.MeasureSettings, {"fpr": ()}, "fpr: "),
        (io.MeasureSettings, {"delta": (0.0,)}, r"delta, entry 0 .*greater than 0"),
        (io.MeasureSettings, {"confidence": 1.0}, "confidence: .*less than 1"),
    ],
)
def test_one_sentence(model, values, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        io.validated(model, **values)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("given", "kept"),
    [(0.5, 0.5), ("0.5", 0.5), ("1e-3", 1e-3), ("leave_one_out", "leave_one_out")],
)
def test_noise_variance_is_a_number_or_a_criterion(given, kept):
    assert io.AuditSettings(noise_variance=given).noise_variance == kept


def test_none_means_the_default():
    assert io.validated(io.AuditSettings, length_scale=None, seed=None) == io.AuditSettings()
