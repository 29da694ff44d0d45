"""The page of how every estimator of scikit-learn is answered is what is so."""

from __future__ import annotations

import importlib.util
import re
import warnings
from typing import Any

import pytest
import sklearn

import leakscope
from leakscope.errors import InputError
from leakscope.fitted.paired import family_of
from leakscope.fitted.refits import innermost
from tests.house.project import ROOT


def loaded() -> Any:
    """The script that makes the page."""
    place = ROOT / "benchmarks" / "any_estimator.py"
    spec = importlib.util.spec_from_file_location("any_estimator", place)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


MAKER = loaded()
PAGE = MAKER.PAGE.read_text(encoding="utf-8")
ROWS = {
    found[1]: (found[2], found[3])
    for found in re.finditer(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", PAGE, flags=re.MULTILINE)
}
TABLES = MAKER.tables()


def made(task: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        # Of estimators that will be gone.
        warnings.simplefilter("ignore")
        return dict(MAKER.instances(task))


ESTIMATORS = {task: made(task) for task in TABLES}
# Smooth models whose choices move with the records, or that are not their optimum on these tables,
# and paired fits that no record passes.
NOT_ONE_FIT = {
    "CategoricalNB": "passed on",
    "GaussianProcessRegressor": "passed on",
    "LogisticRegressionCV": "passed on",
    "RidgeClassifierCV": "paired fits",
    "SGDRegressor": "passed on",
}
REFUSED = [name for name, (_, how) in ROWS.items() if how.startswith("refused")]


@pytest.mark.parametrize("task", TABLES)
def test_every_estimator_is_sent_where_the_page_says(task: str) -> None:
    X, y = TABLES[task]
    for name, estimator in ESTIMATORS[task].items():
        if name not in ROWS:
            assert f"scikit-learn {sklearn.__version__}." not in PAGE, f"the page lacks {name}"
            continue
        kind, how = ROWS[name]
        assert MAKER.routed(estimator, X, y) == kind, name
        family = family_of(innermost(estimator)) if kind == "fit" else None
        paired = family is not None and not family.counted
        own = NOT_ONE_FIT.get(name, "paired fits" if paired else "one fit")
        allowed = own if kind == "fit" else "models"
        assert re.search(f"{allowed}|^refused", how), f"{name}: {how}"


def test_nearly_all_are_answered() -> None:
    assert len(ROWS) >= 95
    assert len(REFUSED) <= 15


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_would_help(name: str) -> None:
    task = next(task for task, found in ESTIMATORS.items() if name in found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError) as caught:
            leakscope.audit(*TABLES[task], model=ESTIMATORS[task][name], models=4)
    assert re.search(r"[;:,] (or )?(set|give|use|drop|raise|add|audit)\b", str(caught.value))


@pytest.mark.parametrize(
    "name",
    [
        "RidgeClassifierCV",
        "RidgeCV",
        "LogisticRegressionCV",
        "CategoricalNB",
        "GaussianNB",
        "KNeighborsClassifier",
        "SGDRegressor",
        "ExtraTreeClassifier",
    ],
)
def test_some_are_answered_as_the_page_says(name: str) -> None:
    task = next(task for task, found in ESTIMATORS.items() if name in found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = leakscope.audit(*TABLES[task], model=ESTIMATORS[task][name], models=4)
    kind, how = ROWS[name]
    # How many models there are is a matter of the machine.
    assert re.sub(r"^\d+ models", "models", MAKER.method(found, kind)) == re.sub(
        r"^\d+ models", "models", how
    )
