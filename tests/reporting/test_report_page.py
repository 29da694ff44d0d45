from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from runs import HOSTILE, SHOWN, example_run, hostile_run

import leakscope
from leakscope.reporting import report
from leakscope.reporting.charts import HISTOGRAM_ARRAYS, ROC_ARRAYS
from leakscope.reporting.writing import report_html
from leakscope.results import write_run_directory
from leakscope.results.reader import read_run


class Reader(HTMLParser):
    """The page as an HTML parser sees it: elements, what stands in scripts, and visible text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif not self._inside:
            self.text += data

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return example_run(tmp_path_factory.mktemp("digits"), "digits")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return hostile_run(tmp_path_factory.mktemp("hostile"))


def data_of(page: str) -> dict:
    return json.loads(Reader(page).scripts[0])


def test_hostile_ids_are_text_and_nothing_else(hostile):
    page = report_html(read_run(hostile))
    reader = Reader(page)
    # Three scripts of ours, no picture, no handler, whatever the names say.
    assert len(reader.scripts) == 3
    assert reader.tags("img") == []
    assert reader.tags("b") == []
    assert not any(name.startswith("on") for _, found in reader.elements for name in found)
    assert reader.text.count("window.hacked=1") >= 1
    assert "{{ 7*7 }}" in reader.text
    assert "\u202e" not in page
    assert "\ufffdevil" in reader.text
    content = json.loads(reader.scripts[0])
    assert set(SHOWN) <= set(content["records"]["id"])
    assert " on <b>hostile" in reader.text


def test_nothing_is_asked_of_a_network(hostile):
    reader = Reader(report_html(read_run(hostile)))
    for _, found in reader.elements:
        for name in ("src", "href", "action"):
            value = found.get(name)
            assert value is None or value.startswith(("data:", "#")), value
    (policy,) = [
        found["content"]
        for found in reader.tags("meta")
        if found.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert policy.count("'sha256-") == 2


def test_a_page_has_its_charts_pictures_and_records(digits):
    run = read_run(digits)
    page = report_html(run)
    reader = Reader(page)
    for words in (*run.document.sentences, *run.document.checks, run.versions["numpy"]):
        assert " ".join(words.split()) in " ".join(reader.text.split()), words
    odd = run.gallery.disagreeing
    assert len(reader.tags("img")) == (12 + len(odd)) * 6
    content = data_of(page)
    assert {"histogram_advantage", "histogram_log10_kl", "roc_linear", "roc_log"} <= set(
        content["charts"]
    )
    assert content["records"]["id"] == [str(r.record_id) for r in run.document.records]


def test_charts_hold_the_runs_own_numbers(digits):
    run = read_run(digits)
    content = data_of(report_html(run))
    arrays = run.arrays((*ROC_ARRAYS, *HISTOGRAM_ARRAYS))
    bars = content["charts"]["histogram_advantage"]["data"]["values"]
    assert [bar["records"] for bar in bars] == arrays["histogram_advantage_counts"].tolist()
    assert sum(bar["records"] for bar in bars) == 1797
    points = content["charts"]["roc_linear"]["layer"][1]["data"]["values"]
    assert [point["tpr"] for point in points] == arrays["roc_tpr"].ravel().tolist()


def test_redacted_holds_no_record(hostile, digits):
    run = read_run(hostile)
    page = report_html(run, redact=True)
    for name in [*HOSTILE[:3], "person 11", "hacked=1", "evil"]:
        assert name not in page
    assert data_of(page)["records"] is None
    assert "records were ranked" in Reader(page).text
    of_digits = Reader(report_html(read_run(digits), redact=True))
    assert of_digits.tags("img") == []
    assert "aggregates only" in of_digits.text
    assert "1264" not in of_digits.text
    assert "1 warning is left out" in of_digits.text


def test_ten_thousand_records_are_under_five_megabytes(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10_000, 3))
    ids = [f"patient-{i:08d}-{'x' * 12}" for i in range(10_000)]
    y = X[:, 0] + rng.normal(size=10_000)
    kernel = leakscope.kernels.linear()
    result = leakscope.audit(X, y, kernel=kernel, sensitivity=False, record_ids=ids)
    run = read_run(write_run_directory(tmp_path / "run", result))
    path = report(run)
    assert path.stat().st_size < 3_000_000
    page = path.read_text(encoding="utf-8")
    assert len(data_of(page)["records"]["id"]) == 10_000


def test_a_measurement_and_a_verification_have_a_report(tmp_path, monkeypatch):
    """They were refused: a report was made of audits only."""
    from leakscope.cli import main

    monkeypatch.chdir(tmp_path)
    laws = ["--member", "normal:1,1", "--nonmember", "normal:0,1"]
    assert main(["measure", *laws, "--json", "result.json"]) == 0
    assert "0.382925" in report_html(read_run(tmp_path))
    assert main(["report", "result.json"]) == 0
    page = (tmp_path / "result.html").read_text()
    assert "An attacker&#39;s advantage is 0.383" in page
    assert "<script" not in page
    assert (tmp_path / "result.html").stat().st_mode & 0o777 == 0o600
    audit = "audit --example iris --read sample=40 --model rbf --run-dir run"
    assert main(audit.split()) == 0
    assert main(["verify", "run", "--records", "2", "--draws", "500", "--json", "v.json"]) == 0
    assert main(["report", "v.json", "--output", "v.html"]) == 0
    whole = (tmp_path / "v.html").read_text()
    assert "checks agree" in whole
    assert ", with it" in whole
    assert main(["report", "v.json", "--redact"]) == 0
    assert ", with it" not in (tmp_path / "v-redacted.html").read_text()
    # An audit's charts are in its run, not in its result file.
    assert main(["report", "run/result.json"]) == 2


def test_groups_subgroups_and_reasons(tmp_path):
    from leakscope.cli import main

    rng = np.random.default_rng(5)
    lines = ["person,town<b>,a,y"]
    for i, (a, y) in enumerate(rng.normal(size=(60, 2))):
        town = "ash" if i < 40 else "elm" if i < 55 else "oak&<i>"
        lines.append(f"p{i // 2},{town},{a},{y}")
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    command = ["audit", str(tmp_path / "d.csv"), "--target", "y", "--by", "town<b>", "--top", "0"]
    grouped, single = tmp_path / "grouped", tmp_path / "single"
    assert main([*command, "--group", "person", "--run-dir", str(grouped)]) == 0
    assert main([*command, "--ignore", "person", "--run-dir", str(single)]) == 0
    page = report_html(read_run(grouped))
    assert data_of(page)["records"]["size"] == [2] * 30
    reader = Reader(page)
    assert "Every group, most exposed first" in reader.text
    assert "Exposure by town<b>" in reader.text
    assert "oak&<i>" in reader.text
    assert reader.tags("i") == []
    assert "too few to compare" in reader.text
    run = read_run(single)
    reasons = Reader(report_html(run)).text
    assert run.document.explanations[0].sentence in reasons
    redacted = Reader(report_html(run, redact=True)).text
    assert "elm" in redacted
    assert "oak" not in redacted
    assert "Subgroups with fewer than ten records are left out" in redacted
    assert not any(entry.sentence in redacted for entry in run.document.explanations)


def test_the_report_of_a_plan_has_its_answer(tmp_path):
    """It began with "mechanism objective, method asymptotic, stable True" and had no picture."""
    import leakscope
    from leakscope.lasso import LassoSetting
    from leakscope.linear import GaussianDesign
    from leakscope.results import write_result

    setting = LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.2)
    plan = leakscope.plan_lasso(setting, optimize=True, target_advantage=0.1)
    text = leakscope.report(write_result(plan, tmp_path / "lasso.json")).read_text()
    assert 'id="chart-kl_sigma_eta"' in text
    assert "sensitive as the data" not in text
    design = GaussianDesign(100, 400, 3000, 1.0)
    linear = leakscope.plan_linear(
        design, method="asymptotic", target_advantage=0.3, curve={"p": [50, 400]}
    )
    text = leakscope.report(write_result(linear, tmp_path / "linear.json")).read_text()
    assert 'id="chart-leakage_features"' in text
