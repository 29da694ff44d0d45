"""A run directory written before there was a Process: read by every verb, and the same numbers.

``old_run`` is what ``leakscope audit --example iris --noise-variance marginal_likelihood
--fit-kernel-scale --no-sensitivity --top 0`` wrote then.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import leakscope
from leakscope import data
from leakscope.cli import main
from leakscope.results.reader import read_run
from leakscope.settings import AuditSettings
from leakscope.subjects.subject import opened
from tests.audits import process_audit

OLD = Path(__file__).parent / "old_run"


def arrays():
    with np.load(OLD / "arrays.npz") as stored:
        return dict(stored)


@pytest.fixture
def old(tmp_path):
    return shutil.copytree(OLD, tmp_path / "old")


def test_an_audit_gives_the_same_numbers():
    run = read_run(OLD)
    told = run.document.settings
    known = {name: told[name] for name in AuditSettings.model_fields if name in told}
    result = process_audit(data.read_example("iris"), AuditSettings(**known))
    stored = arrays()
    found = {name: getattr(result, name) for name in ("kl", "kl_reverse", "advantage", "auc")}
    # The search for the noise stops within 1e-6 of its logarithm, and rounding says where: on
    # another processor 3e-11 away, which moved a KL by 3e-10.  With the stored noise see below.
    for name, values in (found | dict(result.laws.arrays)).items():
        np.testing.assert_allclose(values, stored[name], rtol=1e-8, atol=1e-9, err_msg=name)
    assert result.laws.separation.noise_variance == pytest.approx(
        run.document.details.noise_variance, rel=1e-9
    )


def test_the_process_is_that_of_the_run():
    document = read_run(OLD).document
    subject = opened(document)
    process, ids = subject.process, subject.ids
    stored = arrays()
    laws = process.separation()
    np.testing.assert_allclose(laws.kl, stored["kl"], rtol=1e-10)
    assert process.kernel.length_scale == document.details.kernel["length_scale"]
    assert process.kernel_scale == document.details.kernel["fitted_scale"]
    assert (process.task, process.units, ids[:2]) == ("classification", 150, (0, 1))
    # What the settings left open is chosen again where the features are others.
    fewer = process.with_features(process.features[:, :1])
    assert fewer.kernel.length_scale != process.kernel.length_scale


def test_every_verb_reads_it(old, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(old)]) == 0
    assert main(["compare", str(old), str(old)]) == 0
    assert main(["verify", str(old), "--draws", "400", "--records", "2"]) == 0
    capsys.readouterr()
    assert main(["advise", str(old), "--target-advantage", "0.9999", "--repeats", "1"]) == 0
    assert "already" in capsys.readouterr().out
    assert leakscope.advise(old, leakscope.AuditTarget("advantage", 0.9999), repeats=1).own.meets


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ({"name": "rbf"}, "not the description"),
        ({"name": "rbf", "length_scale": "x", "variance": 1.0}, "kernel cannot be used"),
        ({"name": "secret"}, "called 'secret'"),
        ({}, "called None"),
        ({"name": "rbf", "length_scale": 1.0, "variance": 1.0, "fitted_scale": -1.0}, "is -1"),
        ({"name": "rbf", "length_scale": 1.0, "variance": 1.0, "more": 1}, "not the description"),
    ],
)
def test_a_kernel_that_is_not_one_is_refused(kernel, words):
    document = read_run(OLD).document
    details = document.details.model_copy(update={"kernel": kernel})
    changed = document.model_copy(update={"details": details})
    with pytest.raises(leakscope.InputError, match=words):
        opened(changed)
