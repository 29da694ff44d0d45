"""Filled forms become command lines that the command line's own parser reads as they were meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from leakscope.cli import app
from leakscope.errors import InputError
from leakscope.serving.commands import VERBS, composed, forms

PARSERS: Any = typer.main.get_command(app)
FORMS = forms(PARSERS.commands)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "data.csv").write_text("a,y\n1,2\n")
    return tmp_path


def parsed(command: tuple[str, ...]) -> dict[str, Any]:
    verb, *words = command
    context = PARSERS.commands[verb].make_context(verb, words)
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name).name == "COMMANDLINE"
    }
    texts = {
        name: [str(entry) for entry in value] if isinstance(value, (list, tuple)) else value
        for name, value in given.items()
    }
    return {
        name: str(value)
        if isinstance(value, (Path, int, float)) and value not in (True, False)
        else value
        for name, value in texts.items()
    }


FILLED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "audit",
        {"file": "data.csv", "target": "y", "group_column": "a", "model": "mine:train"},
        {"run_dir": "leakscope-runs/data-1"},
    ),
    (
        "audit",
        {
            **{
                "file": "-x.csv",
                "target": "-1",
                "group_column": "",
                "ignore": ["a b", "-c", "$(d)"],
            },
            **{"explain": True, "set_": ["alpha=0.1", "observes=residual"]},
        },
        {"run_dir": "leakscope-runs/-x-1", "group_column": None},
    ),
    ("report", {"run": "run", "redact": True, "beside": ["first.json", "second.json"]}, {}),
    ("verify", {"result": "run", "records": "3"}, {"json_path": "run/verify.json"}),
    (
        "advise",
        {"run": "run", "target_advantage": "0.2", "tries": ["depth=1,2"]},
        {"html": "run/advise.html", "json_path": "run/advise.json"},
    ),
    (
        "compare",
        {"first": "other", "second": "run", "fail_if_worse": True},
        {"html": "run/compare.html", "json_path": "run/compare.json"},
    ),
    (
        "decide",
        {
            "runs": ["run", "run/verify.json"],
            "threshold_tpr": "0.01",
            "each_row": "--because 'we' know; all",
        },
        {"output": "leakscope-runs/decision-1"},
    ),
]


@pytest.mark.parametrize(("verb", "values", "places"), FILLED)
def test_a_command_says_what_the_form_does(
    verb: str, values: dict[str, Any], places: dict[str, Any], folder: Path
) -> None:
    wanted = {name: value for name, value in (values | places).items() if value is not None}
    assert parsed(composed(FORMS[verb], values, folder)[0]) == wanted


def test_the_report_follows_an_audit_and_a_verification(folder: Path) -> None:
    (folder / "leakscope-runs" / "data-1").mkdir(parents=True)
    audit = composed(FORMS["audit"], {"file": "data.csv", "group_column": ""}, folder)
    assert audit[1] == ("report", "leakscope-runs/data-2")
    assert composed(FORMS["verify"], {"result": "run"}, folder)[1] == ("report", "run")
    assert len(composed(FORMS["report"], {"run": "run"}, folder)) == 1


def test_every_option_of_every_verb_is_a_field() -> None:
    assert list(FORMS) == list(VERBS)
    for verb, form in FORMS.items():
        assert {field.name for field in form.fields} == {
            p.name for p in PARSERS.commands[verb].params
        }


def test_a_field_says_what_its_setting_does() -> None:
    fields = {field.name: field for field in FORMS["audit"].fields}
    assert list(fields)[:4] == ["file", "target", "id_column", "task"]
    assert fields["seed"].default == "0"
    assert list(fields["task"].choices) == ["regression", "classification"]
    assert fields["explain"].flag
    assert fields["ignore"].multiple


def test_whose_the_rows_are_must_be_answered(folder: Path) -> None:
    with pytest.raises(InputError) as refused:
        composed(FORMS["audit"], {"file": "data.csv", "target": "y"}, folder)
    assert refused.value.option == "group_column"
    assert "--group" not in composed(FORMS["audit"], {"example": "iris"}, folder)[0]


@pytest.mark.parametrize(
    ("verb", "values"),
    [
        ("audit", {"file": "../data.csv", "group_column": ""}),
        ("audit", {"file": "/etc/passwd", "group_column": ""}),
        ("audit", {"file": "link/x.csv", "group_column": ""}),
        ("audit", {"file": "data.csv", "group_column": "", "model": "run/../../m.skops"}),
        ("audit", {"file": "data.csv", "group_column": "", "run_dir": "../run"}),
        ("audit", {"file": "data\0.csv", "group_column": ""}),
        ("audit", {"file": 3, "group_column": ""}),
        ("audit", {"file": ["data.csv", "data.csv"], "group_column": ""}),
        ("audit", {"file": "data.csv", "group_column": "", "explain": "no"}),
        ("audit", {"file": "data.csv", "group_column": "", "--help": "x"}),
        ("audit", {"group_column": ""}),
        ("report", {}),
        ("report", {"run": "run", "output": "/tmp/report.html"}),
        ("decide", {"runs": ["run", "link"]}),
    ],
)
def test_what_leads_out_or_is_no_field_is_refused(
    verb: str, values: dict[str, Any], folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (folder / "link").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(InputError):
        composed(FORMS[verb], values, folder)
