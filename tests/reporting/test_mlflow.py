"""Logging to MLflow: aggregates only, unless records are asked for; against the released MLflow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import leakscope
from leakscope.errors import InputError
from leakscope.reporting import log_to_mlflow, mlflow_metrics

rng = np.random.default_rng(1)
X = rng.normal(size=(90, 2))
Y = X[:, 0] + rng.normal(size=90)
IDS = [f"patient-{i}" for i in range(90)]


@pytest.fixture(scope="module")
def audited():
    return leakscope.audit(X, Y, model=Ridge(alpha=10.0).fit(X, Y), record_ids=IDS)


def test_the_aggregates_are_the_result_s(audited):
    found = mlflow_metrics(audited)
    assert found["largest_advantage"] == audited.advantage.max()
    assert found["median_advantage"] == np.median(audited.advantage)
    assert found["exposed"] == np.count_nonzero(audited.advantage >= 0.1)
    assert found["largest_tpr_at_fpr_0.001"] == audited.tpr_at_fpr[0.001].max()
    assert not any("patient" in name for name in found)


def test_without_mlflow_it_is_one_sentence(audited, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError, match=r"pip install 'leakscope\[mlflow\]'"):
        log_to_mlflow(audited)


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip("mlflow")
    # MLflow 3 asks for a database where nobody says that files will do.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.set_tracking_uri((tmp_path / "tracking").as_uri())
        found.set_experiment("leakscope")
        yield found
    found.set_tracking_uri(None)


def everything(folder):
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def test_an_audit_is_logged_without_its_records(mlflow, audited, tmp_path):
    name = log_to_mlflow(audited)
    run = mlflow.get_run(name)
    assert run.info.status == "FINISHED"
    told = {key.removeprefix("leakscope/"): value for key, value in run.data.metrics.items()}
    assert told == pytest.approx(mlflow_metrics(audited))
    assert run.data.params["leakscope/question"] == "pool"
    assert run.data.tags["leakscope/model"] == "Ridge(alpha=10)"
    assert "patient-" not in everything(tmp_path / "tracking")


def test_records_are_logged_where_they_are_asked_for(mlflow, audited, tmp_path):
    with mlflow.start_run() as own:
        assert log_to_mlflow(audited, records=True) == own.info.run_id
        assert mlflow.active_run() is not None
    assert "patient-7" in everything(tmp_path / "tracking")


def test_a_measurement_and_a_verification_are_logged(mlflow, audited):
    found = leakscope.measure("normal:1,1", "normal:0,1")
    run = mlflow.get_run(log_to_mlflow(found))
    assert run.data.metrics["leakscope/auc"] == pytest.approx(found.auc)
    checked = leakscope.verify(audited, records=2, models=20)
    run = mlflow.get_run(log_to_mlflow(checked, prefix="check"))
    assert run.data.metrics["check/agrees"] == checked.agrees
