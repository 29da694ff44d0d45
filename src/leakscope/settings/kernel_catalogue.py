"""The kernels that can be named: this table is the only place where their names are listed.

A new kernel is a file in ``leakscope/kernels`` and a line here.  The names that settings allow,
the help texts, the web form's choices and the estimators' checks follow from the table, and
:func:`leakscope.kernels.by_name` builds what it names.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class NamedKernel:
    """A kernel that settings can name.

    Parameters
    ----------
    factory
        What makes it: ``"module:function"``, imported when it is first asked for, or the function
        itself.
    words
        What it stands for, in a few words.
    options
        The settings that it takes, each with the factory's own name for it.
    by_name
        Defaults, by setting, that differ from the factory's when the kernel is asked for by name.

    Examples
    --------
    >>> from leakscope.settings import KERNELS
    >>> KERNELS["matern"].defaults()["smoothness"]
    1.5
    """

    factory: str | Callable[..., Any]
    words: str
    options: Mapping[str, str] = field(default_factory=dict)
    by_name: Mapping[str, Any] = field(default_factory=dict)

    def defaults(self) -> dict[str, Any]:
        """Each option's default; None where the data choose it."""
        found = _defaults_of(self.factory)
        return {
            setting: self.by_name.get(setting, found.get(parameter))
            for setting, parameter in self.options.items()
        }

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The factory's arguments from settings, those that only apply by name included."""
        return {
            self.options[setting]: value for setting, value in {**self.by_name, **given}.items()
        }


_SCALED = {"length_scale": "length_scale", "kernel_variance": "variance"}
_MATERN = {**_SCALED, "smoothness": "nu"}
_LINEAR = {"weight_variance": "weight_variance", "bias_variance": "bias_variance"}
_LAYERS = {"depth": "depth", "activation": "activation", **_LINEAR}

# Centred features need an intercept: without one the model knows that they add up to zero.
_INTERCEPT = {"bias_variance": 1.0}

KERNELS: dict[str, NamedKernel] = {
    "rbf": NamedKernel("leakscope.kernels.formulas:rbf", "smooth functions", _SCALED),
    "matern": NamedKernel("leakscope.kernels.formulas:matern", "rough functions", _MATERN),
    "linear": NamedKernel(
        "leakscope.kernels.formulas:linear", "linear regression", _LINEAR, by_name=_INTERCEPT
    ),
    "nngp": NamedKernel("leakscope.kernels.network:nngp", "a wide network", _LAYERS),
}


def kernel_options() -> tuple[str, ...]:
    """The settings that belong to kernels, in the order of the table.

    Examples
    --------
    >>> from leakscope.settings.kernel_catalogue import kernel_options
    >>> kernel_options()[:3]
    ('length_scale', 'kernel_variance', 'smoothness')
    """
    return tuple(dict.fromkeys(name for entry in KERNELS.values() for name in entry.options))


def having(option: str) -> dict[str, NamedKernel]:
    """The kernels with this option, by name."""
    return {name: entry for name, entry in KERNELS.items() if option in entry.options}


@cache
def _defaults_of(factory: str | Callable[..., Any]) -> dict[str, Any]:
    """The defaults in a factory's signature; our own are read, not imported.

    A help page shows them, and importing a kernel would load NumPy and SciPy first.
    """
    if isinstance(factory, str):
        module, _, name = factory.partition(":")
        parts = module.split(".")
        source = PACKAGE.joinpath(*parts[1:]).with_suffix(".py")
        if parts[0] == PACKAGE.name and source.is_file():
            return _written_defaults(source.read_text(encoding="utf-8"), name)
        found: Callable[..., Any] = pkgutil.resolve_name(factory)
    else:
        found = factory
    return {
        name: parameter.default
        for name, parameter in inspect.signature(found).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


def _written_defaults(source: str, function: str) -> dict[str, Any]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            named = [*node.args.posonlyargs, *node.args.args]
            values = [*[None] * (len(named) - len(node.args.defaults)), *node.args.defaults]
            pairs = [*zip(named, values, strict=True)]
            pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            return {name.arg: ast.literal_eval(value) for name, value in pairs if value is not None}
    raise LookupError(f"there is no function {function} in that kernel's file")
