"""Options that come from settings models: each field has one, with its default and its meaning."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer

from leakscope import InputError
from leakscope.cli import app, main
from leakscope.cli.options import Options, Verb, with_options
from leakscope.settings import AuditSettings, QuerySettings
from leakscope.settings.advise import AdviseSettings
from leakscope.settings.attack import MembershipSettings, ReconstructSettings
from leakscope.settings.compare import CompareSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.measure import MeasureSettings
from leakscope.settings.plan import (
    LassoDesignSettings,
    LassoPlanSettings,
    LinearDesignSettings,
    LinearPlanSettings,
    NetworkPlanSettings,
)
from leakscope.settings.setting import described
from leakscope.settings.verify import RetrainingSettings, VerifySettings


def parameters(*words: str) -> dict[str, Any]:
    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    return {parameter.name: parameter for parameter in command.params}


VERBS = [
    (("audit",), DataSettings, ()),
    (("audit",), AuditSettings, ("explain",)),
    (("attack", "query"), QuerySettings, ()),
    (("compare",), CompareSettings, ()),
    (("measure",), MeasureSettings, ()),
    (("attack", "reconstruct"), ReconstructSettings, ()),
    (("attack", "membership"), MembershipSettings, ()),
    (("verify",), VerifySettings, ()),
    (("verify",), RetrainingSettings, ()),
    (("advise",), AdviseSettings, ()),
    (("plan", "linear"), LinearDesignSettings, ()),
    (("plan", "linear"), LinearPlanSettings, ()),
    (("plan", "lasso"), LassoDesignSettings, ()),
    (("plan", "lasso"), LassoPlanSettings, ()),
    (("plan", "network"), NetworkPlanSettings, ()),
]


@pytest.mark.parametrize(
    ("words", "model", "name"),
    [
        pytest.param(words, model, name, id=f"{' '.join(words)}-{name}")
        for words, model, without in VERBS
        for name in model.model_fields
        if name not in without
    ],
)
def test_each_field_is_an_option_with_its_default(words, model, name):
    found, told = parameters(*words)[name], described(model, name)
    assert told.option in found.opts
    assert told.text in found.help
    assert found.required == told.required
    if told.kind is tuple or told.default is None:
        assert found.default is None
        assert told.shown_default is None or f"[default: {told.shown_default}]" in found.help
    else:
        assert type(told.default)(found.default) == told.default


def verb() -> tuple[Verb, list[dict[str, Any]]]:
    calls: list[dict[str, Any]] = []

    @with_options(
        data=Options(DataSettings, without=("by",)),
        search=Options(QuerySettings, texts={"starts": "So many."}),
    )
    def look(
        *,
        data: DataSettings,
        search: QuerySettings,
        loud: Annotated[bool, typer.Option("--loud")] = False,
    ) -> None:
        """Look for it."""
        calls.append({"data": data, "search": search, "loud": loud})

    return look, calls


def run(*words: str) -> list[dict[str, Any]]:
    function, calls = verb()
    small = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    small.command()(function)
    small(args=list(words), standalone_mode=False)
    return calls


def test_the_verb_gets_checked_settings():
    words = ("--id", "name", "--ignore", "a", "--ignore", "b", "--box", "0,255", "--loud")
    (call,) = run(*words, "--starts", "3")
    assert call["data"] == DataSettings(id_column="name", ignore=("a", "b"))
    assert call["search"] == QuerySettings(starts=3, box=(0.0, 255.0))
    assert call["loud"] is True


def test_left_out_means_the_default():
    assert run() == [{"data": DataSettings(), "search": QuerySettings(), "loud": False}]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--missing", "guess"),
            "--missing must be one of error, drop, impute, but it is 'guess'.",
        ),
        (("--box", "1"), "--box must be two numbers, LOW,HIGH, but it is '1'."),
        (("--box", "a,b"), "--box must be two numbers, LOW,HIGH, but it is 'a,b'."),
        (("--box", "2,1"), "--box: input should rise from LOW to HIGH"),
        (("--starts", "0"), "--starts: input should be greater than or equal to 1, but it is 0."),
    ],
)
def test_what_is_wrong_is_one_sentence(words, sentence):
    with pytest.raises(InputError) as caught:
        run(*words)
    assert str(caught.value).startswith(sentence)


def test_a_verb_may_say_less_than_the_model():
    function, _ = verb()
    found = function.__signature__.parameters
    assert found["starts"].annotation.__metadata__[0].help == "So many."
    assert "by" not in found
    assert function.__doc__ == "Look for it."


def test_a_query_is_searched_at_a_noise_that_is_a_number(capsys):
    words = ["attack", "query", "--example", "wine", "--record", "1"]
    assert main([*words, "--noise-variance", "marginal_likelihood"]) == 2
    assert "--noise-variance must be a number" in capsys.readouterr().err
