"""One report for every kind of model: the same parts, each kind's own sections, and its checks."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier

import leakscope
from leakscope.auditing import audit_streamed
from leakscope.errors import InputError
from leakscope.reporting.exports import sacro_individual
from leakscope.reporting.writing import report_html
from leakscope.results import Audit, Run
from leakscope.results.reader import read_run

RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60)
IDS = [f"person-{i}" for i in range(60)]

KINDS = ("process", "nystrom", "groups", "fit", "training", "stream")


def audited(kind: str, folder: Any) -> None:
    options: dict[str, Any] = {"record_ids": IDS}
    if kind == "stream":
        # Few records are not streamed.
        many = np.random.default_rng(5).normal(size=(600, 4))
        frame = pd.DataFrame(many, columns=["a", "b", "c", "y"])
        frame["who"] = [f"person-{i}" for i in range(len(frame))]
        frame.to_parquet(folder / "records.parquet")
        audit_streamed(
            folder / "records.parquet", target="y", id_column="who", directory=folder / kind
        )
        return
    if kind == "groups":
        options = {"groups": [f"person-{i // 2}" for i in range(60)], "kernel": "rbf"}
    elif kind == "process":
        options |= {"kernel": "rbf", "explain": 3}
    elif kind == "nystrom":
        options |= {"kernel": "rbf", "route": "nystrom", "inducing": 20}
    elif kind == "fit":
        options |= {"model": Ridge(alpha=1.0).fit(X, Y), "explain": 3}
    elif kind == "training":
        options |= {"train": DecisionTreeClassifier(min_samples_leaf=5)}
    target = (Y > 0).astype(int) if kind == "training" else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leakscope.audit(X, target, **options).write(folder / kind)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("kinds")
    for kind in KINDS:
        audited(kind, folder)
    return {kind: read_run(folder / kind) for kind in KINDS}


def audit_of(run: Run) -> Audit:
    assert isinstance(run.document, Audit)
    return run.document


def text_of(page: str) -> str:
    body = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    plain = re.sub(r"<[^>]*>", " ", body)
    for sign, written in (("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        plain = plain.replace(sign, written)
    return " ".join(plain.split())


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="report-data">(.*?)</script>', page)
    assert found is not None
    told: dict[str, Any] = json.loads(found.group(1))
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_answer_table_and_the_check_of_each_record(runs: dict[str, Run], kind: str) -> None:
    audit, page = audit_of(runs[kind]), report_html(runs[kind])
    text, records = text_of(page), data_of(page)["records"]
    for sentence in (*audit.sentences, *audit.checks):
        assert " ".join(sentence.split()) in text
    assert records["id"] == [str(one) for one in audit.ranking()]
    assert records["advantage"] == pytest.approx(audit.advantage[audit.order], rel=1e-4)
    # Which check each record passed, by its number in the list.
    for place, row in enumerate(audit.order.tolist()):
        told, why = records["check"][place], audit.trust.why(row)
        if told.isdigit():
            assert audit.checks[int(told) - 1] == why
        else:
            assert why.startswith("its interval holds" if told == "interval only" else told)
        assert records["confirmed"][place] == told.isdigit()
    counted = dict(re.findall(r"<tr><td>([^<]*)</td><td>[^<]*</td><td class=\"n\">(\d+)", page))
    for told in set(records["check"]):
        assert int(counted[told]) == records["check"].count(told)
    if audit.doubt is not None:
        assert audit.doubt in text


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_s_own_sections_are_drawn(runs: dict[str, Run], kind: str) -> None:
    audit, page = audit_of(runs[kind]), report_html(runs[kind])
    text, charts = text_of(page), data_of(page)["charts"]
    for section in audit.about.sections(audit):
        assert section.title in text
        for headings, rows in section.tables:
            for cell in (*headings, *rows[0]):
                assert " ".join(cell.split()) in text
        for chart in section.charts:
            assert f'id="chart-{chart.name}"' in page
            assert chart.name in charts
    assert "histogram_advantage" in charts
    # A KL that has no interval is not drawn beside advantages that have one.
    # A stream counts its advantages alone.
    exact = kind != "stream" and ("advantage_low" not in audit.table or "kl_low" in audit.table)
    assert ("histogram_log10_kl" in charts) == exact


@pytest.mark.parametrize("kind", KINDS)
def test_redacted_pages_name_nobody(runs: dict[str, Run], kind: str) -> None:
    audit, page = audit_of(runs[kind]), report_html(runs[kind], redact=True)
    assert "person-" not in page
    assert data_of(page)["records"] is None
    for section in audit.about.sections(audit):
        assert (section.title in text_of(page)) == (not section.names)
        for chart in section.charts:
            assert chart.name in page
    # How many passed which check is an aggregate, and stays.
    assert all(" ".join(check.split()) in text_of(page) for check in audit.checks)


def test_the_glossary_has_the_words_that_the_page_uses(runs: dict[str, Run]) -> None:
    words = {
        kind: set(re.findall(r"<dt>([^<]*)</dt><dd>[A-Z]", report_html(run)))
        for kind, run in runs.items()
    }
    assert all({"advantage", "confirmed", "law"} <= found for found in words.values())
    assert {kind for kind, found in words.items() if "KL" not in found} == {"training"}
    assert "shift" in words["fit"]
    assert "kernel" not in words["fit"]
    assert "noise variance" in words["process"]
    assert "shift" not in words["process"]


def test_any_audit_of_records_goes_to_sacro(runs: dict[str, Run], tmp_path: Path) -> None:
    found = leakscope.audit(X, Y, kernel="rbf", sensitivity=False)
    block = sacro_individual(found)
    assert block["advantage"] == pytest.approx(found.advantage)
    assert len(sacro_individual(audit_of(runs["fit"]))["advantage"]) == audit_of(runs["fit"]).units
    for kind in ("groups", "stream"):
        with pytest.raises(InputError, match="lists every record"):
            sacro_individual(audit_of(runs[kind]))
