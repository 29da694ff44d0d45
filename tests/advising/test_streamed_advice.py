"""Advice on streamed audits: the noise of the advice in memory, from the answers alone."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope import auditing
from leakscope.advising import AuditTarget
from leakscope.cli import main
from leakscope.data import read_dataset
from leakscope.errors import InputError
from leakscope.settings import AuditSettings
from leakscope.subjects.laws import measure_of
from leakscope.subjects.stream import answers
from leakscope.subjects.stream import changes as stream_changes

LINEAR = AuditSettings(kernel="linear", sensitivity=False, explain=0, noise_variance=0.02)
RECORDS = 900


@pytest.fixture(scope="module", params=["quantity", "three classes"])
def streamed(request, tmp_path_factory):
    """A run, and the same audit in memory."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(RECORDS, 4)) * rng.gamma(1.0, size=(RECORDS, 1))
    y = X[:, 0] - X[:, 1] + rng.normal(size=RECORDS)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    data = {"target": "y"}
    if request.param == "three classes":
        frame["y"] = np.array(["low", "middle", "high"])[np.digitize(y, [-1.0, 1.0])]
        data["task"] = "classification"
    place = tmp_path_factory.mktemp("streamed")
    frame.to_parquet(place / "r.parquet", row_group_size=200, index=False)
    auditing.audit_streamed(
        place / "r.parquet", directory=place / "run", settings=LINEAR, cell_records=300, **data
    )
    return place / "run", leakscope.audit(
        read_dataset(place / "r.parquet", **data), settings=LINEAR
    )


def test_the_laws_are_those_of_memory(streamed, monkeypatch):
    run, known = streamed
    monkeypatch.setattr(answers, "AT_ONCE", 170)
    parts = list(answers.answered_laws(run, leakscope.Audit.open(run)))
    assert len(parts) > 4
    for name in ("kl", "leverage", "variance_without"):
        found = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_allclose(found, getattr(known.laws.separation, name), rtol=1e-8)
    noised = measure_of(AuditTarget("tpr", 0.5, fpr=0.01))
    found = np.concatenate([part.noised(0.3).measured(noised) for part in parts])
    np.testing.assert_allclose(found, known.laws.separation.noised(0.3).measured(noised), rtol=1e-7)


@pytest.mark.parametrize(
    "target",
    [
        AuditTarget("advantage", 0.15),
        AuditTarget("tpr", 0.02, fpr=0.01),
        AuditTarget("epsilon", 0.8, delta=1e-3),
    ],
    ids=lambda target: target.measure,
)
@pytest.mark.parametrize("carried", [3, 10_000])
def test_the_least_noise_is_that_of_memory(target, carried, streamed, monkeypatch):
    run, known = streamed
    # With three records to begin with others must join the search.
    monkeypatch.setattr(stream_changes, "CARRIED", carried)
    advice = leakscope.advise(run, target)
    (option,) = advice.options
    least = known.laws.least_noise(target)
    assert option.setting["output_sd"] == pytest.approx(np.sqrt(least), rel=1e-4)
    assert option.meets
    assert option.worst <= target.value
    at = known.laws.separation.noised(option.setting["output_sd"] ** 2).measured(measure_of(target))
    assert option.worst == pytest.approx(at.max(), rel=1e-6)
    assert option.median == pytest.approx(np.median(at), rel=1e-6)
    # By leave-one-out: what the others predict of a record, and how surely.
    error = np.mean(known.laws.separation.residual**2) + np.mean(
        known.laws.separation.variance_without
    )
    assert advice.own.error == pytest.approx(error, rel=1e-8)
    assert option.cost == pytest.approx(option.setting["output_sd"] ** 2, rel=1e-9)
    worst = [point.worst for point in option.curve]
    assert worst == sorted(worst, reverse=True)
    assert worst[0] == advice.own.worst > target.value
    assert any("audit again with a larger --noise-variance" in note for note in advice.notes)


def test_the_command(streamed, capsys):
    run, _ = streamed
    assert main(["advise", str(run), "--target-advantage", "0.15"]) == 0
    out = capsys.readouterr()[0]
    assert "output noise" in out
    assert len(out.splitlines()) <= 30
    assert main(["advise", str(run / "result.json"), "--target-advantage", "0.9999"]) == 0
    assert "meets advantage <= 0.9999 already" in " ".join(capsys.readouterr()[0].split())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"folds": 3}, "priced by leave-one-out"),
        ({"check": 100}, "leave --check out"),
        ({"questions": "any"}, "questions anywhere"),
    ],
)
def test_refusals(more, words, streamed):
    with pytest.raises(InputError, match=words):
        leakscope.advise(streamed[0], AuditTarget("advantage", 0.15), **more)


def test_answers_that_are_gone(streamed, tmp_path):
    shutil.copytree(streamed[0], tmp_path / "run")
    (tmp_path / "run" / "answers" / "0000001.parquet").unlink()
    with pytest.raises(InputError, match="the run is not whole"):
        leakscope.advise(tmp_path / "run", AuditTarget("advantage", 0.15))
