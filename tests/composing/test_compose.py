"""``leakscope compose``: what several releases about the same people give away together."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope import InputError, measures
from leakscope.cli import main
from leakscope.fitted.joint import Release, joint_laws
from leakscope.results.reader import read_result
from leakscope.subjects import opened

RNG = np.random.default_rng(2)
N, KEPT = 160, 110
X = RNG.normal(size=(N, 4)) * [1.0, 3.0, 0.2, 1.0] + 5.0
Y = X[:, 0] + RNG.normal(size=N)
IDS = [f"p{i:03d}" for i in range(N)]


def audited(count: int, alpha: float = 2.0, **more: Any) -> leakscope.Audit:
    X_, y_ = X[:count], Y[:count]
    return quietly(X_, y_, model=Ridge(alpha=alpha).fit(X_, y_), record_ids=IDS[:count], **more)


def quietly(*given: Any, **more: Any) -> leakscope.Audit:
    """So few records are not all trusted, which is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return leakscope.audit(*given, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables, the second with more people and in another order, and a run of each."""
    place = tmp_path_factory.mktemp("releases")
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=Y, who=IDS)
    table[:KEPT].to_csv(place / "january.csv", index=False)
    table.sample(frac=1.0, random_state=0).to_csv(place / "june.csv", index=False)
    for name in ("january", "june"):
        options = ["--target", "y", "--id", "who", "--model", "ridge", "--alpha", "2"]
        run = ["audit", str(place / f"{name}.csv"), *options, "--run-dir", str(place / name)]
        assert main(run) == 0
    return place


def test_runs_of_growing_data_with_a_scaling_of_each(folder: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    runs = [str(folder / "january"), str(folder / "june")]
    assert main(["compose", *runs, "--json", str(answer)]) == 0
    found = read_result(answer)
    assert found.kind == "compose"
    assert len(found.records) == N
    # The scalers, which each audit learns from its own table, by hand.
    releases = []
    for count in (KEPT, N):
        centre, scale = X[:count].mean(0), X[:count].std(0)
        Z = (X - centre) / scale
        inside = np.arange(N) < count
        y = (Y - Y[:count].mean()) / Y[:count].std()
        releases.append(Release(Ridge(alpha=2.0).fit(Z[inside], y[inside]), Z, y, inside))
    expected = np.asarray(measures.advantage(joint_laws(releases).law_pair()))
    seen = {record.record_id: record for record in found.records}
    assert [seen[name].together for name in IDS] == pytest.approx(expected, abs=1e-6)
    joined = [seen[name] for name in IDS[KEPT:]]
    assert all(record.alone[0] is None and record.releases == 1 for record in joined)
    assert np.mean([record.together > record.alone[1] for record in joined]) > 0.95
    assert found.records[0].together == found.largest
    assert found.records[0].tpr_at_fpr_0_01 is not None


def test_a_budget_ends_with_its_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(folder / "january"), str(folder / "june")]
    assert main(["compose", *runs, "--budget", "0.999"]) == 0
    assert "None are above the budget" in " ".join(capsys.readouterr().out.split())
    assert main(["compose", *runs, "--budget", "0.05", "--top", "2"]) == 3
    assert "above the budget of 0.05" in capsys.readouterr().err


def test_data_that_moved(folder: Path, tmp_path: Path) -> None:
    runs = [str(folder / "january"), str(folder / "june")]
    there = []
    for name in ("january.csv", "june.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
        there += ["--data", str(tmp_path / name)]
    assert main(["compose", *runs, *there]) == 0


def test_audits_in_memory_and_two_penalties() -> None:
    one, two = audited(N, 2.0), audited(N, 50.0)
    found = leakscope.compose(one, two, budget=0.2)
    assert len(found.releases) == 2
    assert found.largest >= found.largest_alone - 1e-3
    assert found.above is not None
    assert found.above + (found.above_untrusted or 0) >= (found.above_alone or 0) - 1
    assert "2 releases" in found.verdict


def test_pipelines_of_named_columns() -> None:
    """Each has a scaler of its own, and takes the columns as they were read."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    audits = [
        quietly(
            frame[:count],
            Y[:count],
            model=make_pipeline(StandardScaler(), Ridge(alpha=2.0)).fit(frame[:count], Y[:count]),
            record_ids=IDS[:count],
        )
        for count in (KEPT, N)
    ]
    found = {one.record_id: one.together for one in leakscope.compose(*audits).records}
    releases = []
    for count in (KEPT, N):
        Z, inside = (X - X[:count].mean(0)) / X[:count].std(0), np.arange(N) < count
        releases.append(Release(Ridge(alpha=2.0).fit(Z[inside], Y[inside]), Z, Y, inside))
    expected = np.asarray(measures.advantage(joint_laws(releases).law_pair()))
    assert [found[name] for name in IDS] == pytest.approx(expected, abs=1e-6)


def test_three_releases() -> None:
    two = leakscope.compose(audited(100), audited(N))
    three = leakscope.compose(audited(100), audited(130), audited(N))
    by_id = [{record.record_id: record.together for record in one.records} for one in (two, three)]
    # Who joined with the last release hides among fewer than before.
    more = [by_id[1][name] >= by_id[0][name] - 1e-6 for name in IDS[130:]]
    assert np.mean(more) == 1.0


def test_draws_of_processes_multiply() -> None:
    """Independent given the records: divergences add."""
    audits = [
        quietly(X[:30], Y[:30], kernel="rbf", noise_variance=noise, record_ids=IDS[:30])
        for noise in (0.5, 2.0)
    ]
    subjects = [opened(audit) for audit in audits]
    rows = np.tile(np.arange(30), (2, 1))
    rows[1, 3] = -1
    pair = type(subjects[0]).composed(subjects, rows).pair
    alone = [dict(zip(a.record_ids, np.asarray(a.kl), strict=True)) for a in audits]
    expected = [
        alone[0][name] + (alone[1][name] if i != 3 else 0.0) for i, name in enumerate(IDS[:30])
    ]
    assert np.asarray(measures.kl(pair)) == pytest.approx(np.array(expected), rel=1e-6)
    found = leakscope.compose(*audits)
    assert any("assumed" in sentence for sentence in found.warnings)
    assert all(max(record.alone) <= record.together + 1e-9 for record in found.records)


def test_equal_normals_add_in_squares() -> None:
    """Gaussian differential privacy: the epsilon of mus is that of the root of their squares."""
    from leakscope.laws import LawPair, MultivariateNormal, Normal

    mus = np.array([0.3, 0.8, 0.4])
    joint = LawPair(MultivariateNormal(mus, np.eye(3)), MultivariateNormal(0.0 * mus, np.eye(3)))
    one = LawPair(Normal(np.linalg.norm(mus), 1.0), Normal(0.0, 1.0))
    for delta in (1e-3, 1e-6):
        both = [float(np.asarray(measures.epsilon_at_delta(pair, delta))) for pair in (joint, one)]
        assert both[0] == pytest.approx(both[1], rel=1e-7)


def refused(words: str, *releases: Any) -> None:
    with pytest.raises(InputError, match=words):
        leakscope.compose(*releases)


def test_what_cannot_be_composed(folder: Path, tmp_path: Path) -> None:
    one = audited(N)
    refused("two or more", one)
    refused("kind measure", one, leakscope.measure("normal:1,1", "normal:0,1"))
    unnamed = quietly(X[:KEPT], Y[:KEPT], model=Ridge().fit(X[:KEPT], Y[:KEPT]))
    refused("row numbers", one, unnamed)
    refused("another fraction", one, audited(N, fraction=0.7))
    labels = (Y.mean() < Y).astype(int)
    classes = quietly(
        X, labels, model=LogisticRegression(tol=1e-8, max_iter=1000).fit(X, labels), record_ids=IDS
    )
    refused("other labels", one, classes)
    three = np.digitize(Y, [4.5, 5.5])
    several = quietly(X, three, model=LogisticRegression(max_iter=2000), record_ids=IDS)
    refused("release 1, .*one output", several, several)
    kernels = [
        quietly(X[:n], Y[:n], model=KernelRidge(kernel="rbf", gamma=0.1), record_ids=IDS[:n])
        for n in (KEPT, N)
    ]
    refused("release 1, .*models with a kernel", *kernels)
    process = quietly(X, Y, kernel="rbf", noise_variance=1.0, record_ids=IDS)
    refused("one kind", one, process)
    strangers = quietly(
        X[:KEPT], Y[:KEPT], model=Ridge().fit(X[:KEPT], Y[:KEPT]),
        record_ids=[f"q{i}" for i in range(KEPT)],
    )  # fmt: skip
    refused("no record is in two", one, strangers)
    moved = X + np.where(np.arange(N) == 3, 0.5, 0.0)[:, None]
    other = quietly(
        moved[:KEPT], Y[:KEPT], model=Ridge().fit(moved[:KEPT], Y[:KEPT]), record_ids=IDS[:KEPT]
    )
    refused("record 'p003' has other features", other, one)


def test_bad_options_end_with_status_two(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(folder / "january"), str(folder / "june")]
    for more in (["--budget", "2"], ["--top", "-1"]):
        answer = tmp_path / "answer.json"
        assert main(["compose", *runs, *more, "--json", str(answer)]) == 2
        assert more[0] in capsys.readouterr().err
        assert not answer.exists()
    assert main(["compose", runs[0]]) == 2
    assert main(["compose", *runs, "--data", str(folder / "january.csv")]) == 2
    assert "--data" in capsys.readouterr().err
    assert main(["compose", runs[0], str(tmp_path / "nowhere")]) == 2


def test_a_page_without_ids(folder: Path, tmp_path: Path) -> None:
    answer, page = tmp_path / "answer.json", tmp_path / "page.html"
    runs = [str(folder / "january"), str(folder / "june")]
    assert main(["compose", *runs, "--json", str(answer)]) == 0
    assert json.loads(answer.read_text(encoding="utf-8"))["verdict"].startswith("Whoever sees")
    assert main(["report", str(answer), "--redact", "--output", str(page)]) == 0
    assert "p0" not in page.read_text(encoding="utf-8").split("<body")[1]
