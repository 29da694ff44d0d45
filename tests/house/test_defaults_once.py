"""Each default has one home, the settings; a kernel's name stands in its table and its file."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from project import PACKAGE
from pydantic import BaseModel

import leakscope
from leakscope import settings
from leakscope.settings import KERNELS
from leakscope.settings.advise import AdviseSettings
from leakscope.settings.attack import MembershipSettings, ReconstructSettings
from leakscope.settings.compare import CompareSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.kernel_catalogue import kernel_options
from leakscope.settings.measure import MeasureSettings
from leakscope.settings.plan import LassoPlanSettings, LinearPlanSettings
from leakscope.settings.setting import described
from leakscope.settings.verify import VerifySettings

MODELS = list(
    {
        value.__name__: value
        for file in pkgutil.iter_modules(settings.__path__, "leakscope.settings.")
        for value in vars(importlib.import_module(file.name)).values()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.model_fields
    }.values()
)

# What is nothing at all has no home.
NOTHING = (None, False, (), "")

# Literals that only look like a setting's default, with the reason.
NOT_A_CHOICE = {
    ("results/document.py", "missing"): "what a file means that was written before it was stored",
    ("linear/data_models.py", "sigma"): "of another data model, which no verb plans",
    ("lood/separation.py", "method"): "how a law was got, not how a plan is computed",
}


def homes() -> dict[str, list[Any]]:
    """Every default that is written in a settings model, by the setting's name."""
    found: dict[str, list[Any]] = {}
    for model in MODELS:
        for name, field in model.model_fields.items():
            if not field.is_required() and field.default not in NOTHING:
                found.setdefault(name, []).append(field.default)
    return found


def written_defaults(source: str) -> Iterator[tuple[int, str, Any]]:
    """Line, name and value of every literal default of a parameter or of a class's field."""
    for node in ast.walk(ast.parse(source)):
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args]
            last = given[len(given) - len(node.args.defaults) :]
            pairs = [(a.arg, d) for a, d in zip(last, node.args.defaults, strict=True)]
            keyword = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            pairs += [(a.arg, d) for a, d in keyword if d is not None]
        elif isinstance(node, ast.ClassDef):
            pairs = [
                (line.target.id, line.value)
                for line in node.body
                if isinstance(line, ast.AnnAssign)
                and isinstance(line.target, ast.Name)
                and line.value is not None
            ]
        for name, value in pairs:
            try:
                yield value.lineno, name, ast.literal_eval(value)
            except ValueError:
                continue


def same(value: Any, default: Any) -> bool:
    """Whether it is the default, as a value or as the text of an option."""
    shown = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return value == shown or (type(value) is type(default) and value == default)


def second_homes(source: str) -> list[tuple[int, str, Any]]:
    found = homes()
    return [
        (line, name, value)
        for line, name, value in written_defaults(source)
        if any(same(value, default) for default in found.get(name, ()))
    ]


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "settings"]


def test_each_default_is_written_once() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} writes {name} = {value!r}; read it from the settings"
        for path in modules()
        for line, name, value in second_homes(path.read_text(encoding="utf-8"))
        if (str(path.relative_to(PACKAGE)), name) not in NOT_A_CHOICE
    ]
    assert not wrong, "\n".join(wrong)


def test_the_check_sees_a_second_home() -> None:
    source = (
        "def f(noise_variance: float = 0.01, inducing=2000, depth=3): ...\n"
        "class Request:\n    route: str = 'auto'\n    kernel: str = DEFAULTS.kernel\n"
        "def g(*, fpr='0.1,0.01,0.001,1e-05', noise_variance=0.1): ...\n"
    )
    assert [(line, name) for line, name, _ in second_homes(source)] == [
        (1, "noise_variance"),
        (1, "inducing"),
        (3, "route"),
        (5, "fpr"),
    ]


@pytest.mark.parametrize(
    ("name", "value"), [("noise_variance", 0.01), ("inducing", 2000), ("confidence", 0.95)]
)
def test_the_settings_say_it_once(name: str, value: Any) -> None:
    assert homes()[name] == [value]


# Every verb's function and every estimator, with the models whose settings it takes.
TAKERS: dict[str, tuple[type[BaseModel], ...]] = {
    "AuditedClassifier": (settings.AuditSettings,),
    "AuditedRegressor": (settings.AuditSettings,),
    "advise": (AdviseSettings,),
    "attack_membership": (MembershipSettings,),
    "attack_reconstruct": (ReconstructSettings,),
    "audit": (settings.AuditSettings,),
    "audit_frame": (DataSettings,),
    "compare": (CompareSettings,),
    "measure": (MeasureSettings,),
    "plan_lasso": (LassoPlanSettings,),
    "plan_linear": (LinearPlanSettings,),
    "verify": (VerifySettings,),
}

# Where Python's default differs from the command line's, and why.
DIFFERS = {
    ("audit", "explain"): "an explanation may build the whole matrix again; arrays ask for it",
}


@pytest.mark.parametrize("name", TAKERS)
def test_python_has_the_defaults_of_the_command_line(name: str) -> None:
    compared = 0
    for parameter in inspect.signature(getattr(leakscope, name)).parameters.values():
        for model in TAKERS[name]:
            if parameter.name not in model.model_fields or (name, parameter.name) in DIFFERS:
                continue
            if parameter.default is inspect.Parameter.empty:
                continue
            compared += 1
            # None leaves it to the model.
            home = model.model_fields[parameter.name].default
            assert parameter.default is None or parameter.default == home, parameter.name
    assert compared


# The linear kernel shares its name with an instrument and a verb.
NAMES = set(KERNELS) - {"linear"}


def named_kernels(source: str) -> list[tuple[int, str]]:
    return [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]


def test_a_kernels_name_stands_in_the_table_and_in_its_own_file() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} names the kernel {name}"
        for path in modules()
        if path.parent.name != "kernels"
        for line, name in named_kernels(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_page_lists_the_kernels() -> None:
    for path in (PACKAGE / "serving" / "templates").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not [name for name in NAMES if f'"{name}"' in text], path.name


def test_every_kernel_option_is_described() -> None:
    for option in kernel_options():
        assert described(settings.AuditSettings, option).text.endswith("only).")
