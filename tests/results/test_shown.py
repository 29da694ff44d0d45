"""Every result in short: one line as its repr, HTML in a notebook, Markdown; texts are escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import leakscope
from leakscope import kernels, lood
from leakscope.results.columns import COLUMNS, text_with_ends
from leakscope.results.shown import LONGEST

HOSTILE = "<script>alert(1)</script>|`*_\x1b[31m"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


@pytest.fixture(scope="module")
def audits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = X[:, 0] + rng.normal(size=90)
    ids = [HOSTILE, *(f"r{i}" for i in range(89))]
    return [
        leakscope.audit(X, y, model=lood.Process(kernels.rbf(1.0), 0.1), record_ids=ids),
        leakscope.audit(X, y, model=Ridge(alpha=10.0).fit(X, y), record_ids=ids),
    ]


def test_an_audit_has_a_short_repr_and_a_table(audits):
    """The repr of an audit was every array of it, thousands of numbers."""
    for result in audits:
        assert len(repr(result)) <= LONGEST + 40
        assert "\n" not in repr(result)
        assert "array(" not in repr(result)
        for shown in (result, result):
            tags = parsed(shown._repr_html_())
            assert "script" not in tags.found
            assert tags.found.count("tr") == 11
            assert result.verdict.split(".")[0] in " ".join(tags.text)
            assert "\x1b" not in shown._repr_html_() + shown.to_markdown() + repr(shown)
        assert result.in_short().rows == result.in_short().rows


def test_markdown_has_one_row_per_record_whatever_they_are_called(audits):
    for result in audits:
        lines = result.to_markdown().splitlines()
        rows = [line for line in lines if line.startswith("|")]
        assert len(rows) == 12
        bars = {line.replace("\\|", "").count("|") for line in rows}
        assert len(bars) == 1
        assert "<script>" not in result.to_markdown()


def test_the_numbers_in_short_are_the_result_s():
    found = leakscope.measure("normal:1,1", "normal:0,1")
    table = dict(found.in_short().rows)
    assert float(table["AUC"]) == pytest.approx(found.auc, rel=1e-5)
    assert float(table["TPR at FPR 0.01"]) == pytest.approx(found.tpr_at_fpr["0.01"], rel=1e-5)


@pytest.mark.parametrize("what", ["ranks", "advantage", "kl", "roc"])
def test_every_plot_is_drawn(audits, what):
    for result in audits:
        assert result.plot(what).to_dict()["width"] == 480
    with pytest.raises(leakscope.InputError):
        audits[0].plot("pie")


def test_a_shift_of_an_answer_that_hardly_varies_has_no_digits() -> None:
    """Nearest neighbours showed shifts of +1920.56 standard deviations."""
    text = COLUMNS["shift_in_sd"].text
    assert [text({"shift_in_sd": x}) for x in (0.876, -99.9, 1920.56, -1e9)] == [
        "+0.88",
        "-99.90",
        ">+100",
        "<-100",
    ]


def test_what_has_no_number_is_a_dash_and_near_certainty_is_said_once() -> None:
    """On the screen a counted record's shift was "+nan", and an interval "1.00 to 1.00"."""
    assert COLUMNS["shift_in_sd"].text({"shift_in_sd": float("nan")}) == "-"
    row = {"advantage": 0.9991, "advantage_low": 0.998, "advantage_high": 0.9999}
    assert text_with_ends(COLUMNS["advantage"], row) == "0.9991 (>0.99)"
    row["advantage_low"] = 0.5
    assert text_with_ends(COLUMNS["advantage"], row) == "0.9991 (0.50 to >0.99)"
