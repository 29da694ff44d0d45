from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.linear_model import Ridge

import leakscope
from leakscope.data import read_example
from leakscope.results.audit_run import report_arrays
from leakscope.settings import AuditSettings
from tests.audits import process_audit


@pytest.fixture(scope="module")
def digits():
    dataset, settings = read_example("digits"), AuditSettings(sensitivity=False)
    return dataset, settings, process_audit(dataset, settings)


def test_rocs_are_those_of_the_ranked_records(digits):
    _, _, result = digits
    arrays = report_arrays(result)
    assert arrays["roc_ranks"].tolist() == [1, 180, 899]
    fpr = arrays["roc_fpr"]
    for rank, tpr in zip(arrays["roc_ranks"], arrays["roc_tpr"], strict=True):
        row = result.order[rank - 1]
        # The area and the largest distance from the diagonal are known independently.
        assert trapezoid(tpr, fpr) == pytest.approx(result.auc[row], abs=1e-3)
        assert np.max(tpr - fpr) == pytest.approx(result.advantage[row], abs=5e-3)
        assert (np.diff(tpr) >= 0.0).all()


def test_histograms_count_every_record(digits):
    _, _, result = digits
    arrays = report_arrays(result)
    for name in ("advantage", "log10_kl"):
        edges, counts = (arrays[f"histogram_{name}_{part}"] for part in ("edges", "counts"))
        assert len(edges) == len(counts) + 1
        assert counts.sum() == 1797
    above = np.count_nonzero(result.advantage >= 0.5)
    assert arrays["histogram_advantage_counts"][20:].sum() == above
    assert arrays["histogram_log10_kl_left_out"] == 0


def test_three_records_are_enough():
    result = leakscope.audit(
        np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0]), kernel="rbf"
    )
    assert report_arrays(result)["roc_ranks"].tolist() == [1, 2]


def test_pictures_and_their_neighbours(digits):
    dataset, _settings, result = digits
    files = result.examined.pictures(result, dataset)
    gallery = json.loads(files["gallery.json"])["pictures"]
    assert [shown["record_id"] for shown in gallery] == list(result.ranking()[:12])
    scaled = (dataset.features - dataset.features.mean(axis=0)) / np.where(
        dataset.features.std(axis=0) > 0, dataset.features.std(axis=0), 1.0
    )
    first = gallery[0]
    # An RBF's most similar records are the nearest ones.
    distances = np.linalg.norm(scaled - scaled[first["record_id"]], axis=1)
    nearest = np.argsort(distances)[1:6].tolist()
    assert [shown["record_id"] for shown in first["neighbours"]] == nearest
    scale = result.details.kernel["length_scale"]
    assert first["neighbours"][0]["similarity"] == pytest.approx(
        np.exp(-0.5 * (distances[nearest[0]] / scale) ** 2), rel=1e-6
    )
    assert first["target"] == str(dataset.target[first["record_id"]])
    assert all(files[shown["file"]].startswith(b"\x89PNG") for shown in gallery)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("asked", [{"model": Ridge()}, {"train": Ridge(), "models": 4}])
def test_pictures_of_models_without_a_kernel(digits, asked, tmp_path):
    """Only Gaussian processes had pictures in their reports."""
    dataset = replace(
        digits[0],
        features=digits[0].features[:60],
        target=digits[0].features[:60, 20] + 0.01 * np.arange(60.0),
        record_ids=digits[0].record_ids[:60],
        task="regression",
    )
    result = leakscope.audit(dataset, **asked)
    gallery = json.loads(result.examined.pictures(result, dataset)["gallery.json"])["pictures"]
    assert [shown["record_id"] for shown in gallery] == list(result.ranking()[:12])
    first = gallery[0]["record_id"]
    distances = np.linalg.norm(dataset.features - dataset.features[first], axis=1)
    nearest = np.argsort(distances, kind="stable")[1:6].tolist()
    assert [shown["record_id"] for shown in gallery[0]["neighbours"]] == nearest
    # Around the mean picture, a similarity is a cosine.
    centred = dataset.features - dataset.features.mean(axis=0)
    sides = centred[[first, nearest[0]]]
    cosine = float(sides[0] @ sides[1] / np.prod(np.linalg.norm(sides, axis=1)))
    assert gallery[0]["neighbours"][0]["similarity"] == pytest.approx(cosine, rel=1e-9)
    page = leakscope.report(result.write(tmp_path / "run", dataset=dataset)).read_text()
    assert "The most exposed, and those most like them" in page


def test_a_table_of_64_columns_is_no_picture(digits):
    dataset, _settings, result = digits
    mixed = dataset.features[:, np.random.default_rng(3).permutation(64)]
    assert result.examined.pictures(result, replace(dataset, features=mixed)) == {}
    assert result.examined.pictures(result, read_example("iris")) == {}


def test_the_sentences_without_ids_name_nobody():
    X, y = np.array([[0.0], [0.1], [0.2], [3.0]]), np.array([1.0, 1.1, 0.9, -1.0])
    result = leakscope.audit(X, y, noise_variance=0.1, record_ids=["a1", "b2", "c3", "outlier"])
    assert "outlier" in result.verdict
    assert result.sentences_without_ids is not None
    without = " ".join(result.sentences_without_ids)
    assert "outlier" not in without
    assert "4 records were ranked" in without
