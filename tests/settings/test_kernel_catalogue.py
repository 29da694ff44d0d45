"""The table of kernels: what it says is what the factories are, and one line adds a kernel."""

from __future__ import annotations

import inspect
import pkgutil
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import leakscope
from leakscope import InputError, kernels
from leakscope.cli import main
from leakscope.settings import KERNELS, AuditSettings, NamedKernel
from leakscope.settings.setting import described, validated


@pytest.mark.parametrize("name", KERNELS)
def test_options_are_settings_and_parameters_of_the_factory(name):
    entry = KERNELS[name]
    factory = pkgutil.resolve_name(str(entry.factory))
    parameters = inspect.signature(factory).parameters
    assert set(entry.options) <= set(AuditSettings.model_fields)
    assert set(entry.options.values()) <= set(parameters)
    assert set(entry.by_name) <= set(entry.options)
    # Read from the file without importing it, and as Python has them.
    for setting, parameter in entry.options.items():
        expected = entry.by_name.get(setting, parameters[parameter].default)
        assert entry.defaults()[setting] == expected


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_by_name_has_the_defaults_that_the_help_shows(name):
    entry = KERNELS[name]
    told = kernels.by_name(name).describe()
    assert told["name"] == name
    for setting, default in entry.defaults().items():
        assert told[entry.options[setting]] == default


def test_a_kernel_that_is_not_there():
    with pytest.raises(InputError, match=r"there is no kernel 'magic'; use one of rbf, .*nngp\.$"):
        kernels.by_name("magic")
    with pytest.raises(InputError, match="depth is not an option of the kernel rbf"):
        kernels.by_name("rbf", depth=2)


@dataclass(frozen=True)
class Cosine:
    """k(x, z) = cosine of their difference, summed over features: a stand-in for one's own."""

    period: float = 7.0

    def __call__(self, X: Any, Z: Any = None) -> Any:
        left = np.asarray(X, dtype=float)
        right = left if Z is None else np.asarray(Z, dtype=float)
        return np.cos((left[:, None] - right[None]) * 2 * np.pi / self.period).sum(axis=2)

    def diagonal(self, X: Any) -> Any:
        return np.full(np.shape(X)[0], float(np.shape(X)[1]))

    def resolved(self, X: Any) -> Cosine:
        return self

    def describe(self) -> dict[str, Any]:
        return {"name": "cosine", "period": self.period}


@pytest.fixture
def cosine(monkeypatch):
    """The one line."""
    entry = NamedKernel(Cosine, "repeating functions", {"length_scale": "period"})
    monkeypatch.setitem(KERNELS, "cosine", entry)


@pytest.mark.usefixtures("cosine")
class TestOneLineMore:
    @pytest.mark.parametrize("verb", [["audit"], ["attack", "query"]], ids=" ".join)
    def test_in_the_help(self, verb, capsys):
        assert main([*verb, "--help"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert "nngp (a wide network) or cosine (repeating functions)" in told
        assert "(rbf, matern and cosine only). [7]" in told

    def test_on_the_command_line(self, tmp_path, capsys):
        words = ["audit", "--example", "iris", "--model", "cosine", "--set", "noise_variance=0.5"]
        assert main([*words, "--run-dir", str(tmp_path / "run")]) == 0
        assert "cosine" in capsys.readouterr().out

    def test_from_settings(self):
        chosen = AuditSettings(kernel="cosine", length_scale=3.0)
        assert kernels.by_name(chosen.kernel, **chosen.kernel_options()) == Cosine(3.0)

    def test_in_an_estimator(self):
        X = np.arange(12.0).reshape(-1, 1)
        model = leakscope.AuditedRegressor(Cosine(5.0), noise_variance=0.1)
        assert model.fit(X, np.sin(X[:, 0])).result_.details.kernel["period"] == 5.0


def test_without_the_line_it_is_refused():
    with pytest.raises(InputError, match="kernel: input should be 'rbf', "):
        validated(AuditSettings, kernel="cosine")
    assert "cosine" not in described(AuditSettings, "kernel").text
