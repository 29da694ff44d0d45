from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope import InputError, kernels, lood, measures
from leakscope.data import read_example
from leakscope.kernels.formulas import RBF, median_length_scale
from leakscope.lood.noise import choose_noise
from leakscope.settings import AuditSettings
from leakscope.subjects import arrays as audit_checks
from leakscope.subjects.process import GaussianProcess
from tests.audits import process_audit


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    X[17], y[17] = [6.0, 6.0, 6.0], 4.0
    return X, y


@pytest.fixture(scope="module")
def result(data):
    return leakscope.audit(*data, kernel=kernels.rbf(2.0), noise_variance=0.1)


def test_the_planted_outlier_is_first(result):
    assert result.ranking()[0] == 17
    frame = result.to_frame()
    assert tuple(frame.columns) == ("record_id", *GaussianProcess.usual)
    assert frame["record_id"].iloc[0] == 17
    assert frame["kl"].is_monotonic_decreasing


def test_numbers_are_consistent(result):
    frame = result.to_frame()
    np.testing.assert_allclose(frame["kl"], frame["kl_label_free"] + frame["kl_label"], rtol=1e-10)
    assert frame["advantage"].between(0, 1).all()
    assert frame["auc"].between(0.5, 1).all()
    # Pinsker, and the paper's direction is the larger one at a single query.
    assert (frame["advantage"] <= np.sqrt(frame["kl"] / 2) + 1e-12).all()
    assert (frame["kl"] >= frame["kl_reverse"] * (1 - 1e-9)).all()
    # Measures that are made in one pass may be rounded otherwise.
    np.testing.assert_allclose(measures.kl(result.law_pair()), result.kl, rtol=1e-14)


def test_kl_is_the_closed_form(data, result):
    """THEORY's form in m = [M^-1]_ii, written out here and nowhere in the package."""
    X, y = data
    noise = 0.1
    inverse = np.linalg.inv(kernels.rbf(2.0)(X) + noise * np.eye(len(y)))
    m, a = np.diagonal(inverse), inverse @ y
    rho = 1 / (noise * m)
    kl = (rho - 1 - np.log(rho)) / 2 + a**2 * (1 - noise * m) / (2 * noise * m**2)
    np.testing.assert_allclose(result.kl, kl, rtol=1e-9)


def test_arrays_are_never_preprocessed(data):
    X, y = data
    kernel = kernels.rbf(2.0)
    as_given = leakscope.audit(X, y, kernel=kernel, noise_variance=0.1)
    shifted = leakscope.audit(X, y + 5.0, kernel=kernel, noise_variance=0.1)
    assert not np.allclose(as_given.kl, shifted.kl)
    before = X.copy()
    leakscope.audit(X, y, kernel="rbf")
    np.testing.assert_array_equal(X, before)


def test_default_kernel_is_recorded_with_what_was_chosen(data):
    result = leakscope.audit(*data, kernel="rbf")
    assert result.details.kernel["name"] == "rbf"
    assert result.details.kernel["length_scale"] == pytest.approx(median_length_scale(data[0]))
    assert result.laws.separation.noise_variance == 0.01


def test_ids_and_pandas_input(data):
    X, y = data
    ids = [f"p{i}" for i in range(60)]
    result = leakscope.audit(pd.DataFrame(X), pd.Series(y), record_ids=ids, kernel="rbf")
    assert result.ranking()[0] == "p17"


def test_several_outputs(data):
    X, y = data
    result = leakscope.audit(X, np.column_stack([y, -y]), noise_variance=0.1)
    frame = result.to_frame()
    assert {"mean_with_0", "mean_with_1", "mean_without_1"} <= set(frame.columns)
    np.testing.assert_allclose(
        result.kl, result.laws.separation.kl_label_free + result.laws.separation.kl_label, rtol=1e-8
    )
    assert len(result.records[0].mean_with) == 2


def test_document_is_json_and_sorted(result):
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [r["record_id"] for r in content["records"]] == list(result.ranking())
    assert content["provenance"]["question"] == "leave_one_out"
    assert set(content["timing"]) == set(GaussianProcess.stages) - {"explain"}
    told = content["details"]
    assert (told["route"], told["noise_chosen_by"]) == ("dense", "user")
    levels = told["sweep"]
    assert (levels[0]["noise_variance"], levels[-1]["noise_variance"]) == (
        pytest.approx(0.01),
        pytest.approx(1.0),
    )


def test_the_verdict_keeps_to_its_words(data, result):
    for text in (result.verdict, leakscope.audit(*data, noise_variance=1e4).verdict):
        assert "your model was not examined" in text
        assert "A Gaussian process (rbf" in text
        assert "noise_variance" in text
        assert "safe" not in text.lower()
        # An assumed noise gives ranks and a range, never a count of the exposed.
        assert "depends on the noise, which is assumed" in text
        assert "the data would choose" in text
        assert "records give an attacker" not in text
        assert "a deterministic fit, such as kernel ridge, gives each record away" in text
    assert "Record 17 ranks first of 60" in result.verdict


def test_cannot_tell():
    X = np.repeat(np.linspace(0, 1, 20)[:, None], 2, axis=0)
    y = np.random.default_rng(0).normal(size=40)
    with pytest.warns(UserWarning, match="different target"):
        result = leakscope.audit(X, y, kernel=kernels.rbf(3.0), noise_variance=1e-11)
    assert not result.laws.confirmed.all()
    assert "Cannot tell" in result.verdict


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X, y: (with_entry(X, (3, 1), np.nan), y), "X holds nan in row 3, column 1"),
        (lambda X, y: (with_entry(X, (3, 1), np.inf), y), "X holds inf in row 3, column 1"),
        (lambda X, y: (X, with_entry(y, 5, np.nan)), "y holds nan in row 5"),
        (
            lambda X, y: (with_entry(X.astype(object), (2, 0), "red"), y),
            "X holds 'red' in row 2, co",
        ),
        (lambda X, y: (X, y[:-1]), "X has 60 records and y has 59"),
        (lambda X, y: (X[:1], y[:1]), "needs at least two; X has 1"),
        (lambda X, y: (X[:, 0], y), "two dimensions"),
        (lambda X, y: (X[:, :0], y), "X has no features"),
        (lambda X, y: (X, y.reshape(3, 4, 5)), "one target per record"),
        (lambda X, y: (X + 1j, y), "complex"),
        (lambda X, y: (np.ones_like(X), y), "all equal"),
    ],
)
def test_refusals_name_the_place(data, change, sentence):
    with pytest.raises(InputError, match=sentence):
        leakscope.audit(*change(*data), kernel="rbf")


def with_entry(array, where, value):
    changed = array.copy()
    changed[where] = value
    return changed


def test_more_refusals(data):
    X, y = data
    with pytest.raises(InputError, match="the kernel cannot tell these 60 records apart"):
        leakscope.audit(X, y, kernel=kernels.rbf(1e9))
    with pytest.raises(InputError, match="noise_variance"):
        leakscope.audit(X, y, noise_variance=-1.0)
    with pytest.raises(InputError, match="record_ids holds 1 twice, in rows 0 and 59"):
        leakscope.audit(X, y, record_ids=[1, *range(2, 60), 1])
    with pytest.raises(InputError, match="60 records and 2 record_ids"):
        leakscope.audit(X, y, record_ids=[1, 2])
    with pytest.raises(InputError, match=r"must be one from leakscope\.kernels"):
        leakscope.audit(X, y, kernel=1.0)


def test_too_large_is_refused_with_the_size(data, monkeypatch):
    monkeypatch.setattr("leakscope._numerics.memory.available_memory", lambda: 256 * 2**20)
    with pytest.raises(InputError, match="kernel matrix of 60 records"):
        leakscope.audit(*data, kernel="rbf")


def test_oddities_warn(data):
    X, y = data
    constant = np.column_stack([X, np.ones(60)])
    with pytest.warns(UserWarning, match="1 of 4 columns of X is constant and says nothing: 3"):
        result = leakscope.audit(constant, y, kernel="rbf")
    assert len(result.warnings) == 1
    X = X.copy()
    X[5] = X[4]
    with pytest.warns(UserWarning, match="1 record repeats.* first 5 after 4"):
        leakscope.audit(X, y, kernel="rbf")
    y = y.copy()
    y[5] = y[4]
    assert audit_checks.oddities(X, y, tuple(range(60))) == ()
    assert "the same for every record" in audit_checks.oddities(X, np.ones(60), tuple(range(60)))[0]


def test_diabetes_level_is_set_by_the_noise():
    diabetes = read_example("diabetes")
    medians = [
        float(np.median(process_audit(diabetes, AuditSettings(noise_variance=v)).advantage))
        for v in (1e-4, 0.01, 0.5)
    ]
    assert medians[0] > 0.99
    assert 0.7 < medians[1] < 0.9
    assert medians[2] < 0.15


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_classes(name):
    result = process_audit(read_example(name), AuditSettings())
    assert result.dataset.outputs == (3 if name == "iris" else 1)
    assert np.isfinite(result.advantage).all()


def test_many_outputs_are_measured_in_parts(data, monkeypatch):
    X, y = data
    targets = np.column_stack([y, -y, y**2])
    whole = leakscope.audit(X, targets, noise_variance=0.1)
    monkeypatch.setattr(sys.modules["leakscope.lood.separation"], "PAIRS_AT_ONCE", 7)
    parts = leakscope.audit(X, targets, noise_variance=0.1)
    np.testing.assert_allclose(parts.advantage, whole.advantage, rtol=1e-12)


def test_a_read_only_kernel_matrix_is_no_obstacle(data):
    class Locked(RBF):
        def __call__(self, X, Z=None):
            matrix = super().__call__(X, Z)
            matrix.setflags(write=False)
            return matrix

    X, y = data
    locked = leakscope.audit(X, y, kernel=Locked(2.0), noise_variance=0.1)
    open_ = leakscope.audit(X, y, kernel=kernels.rbf(2.0), noise_variance=0.1)
    np.testing.assert_array_equal(locked.kl, open_.kl)


@pytest.mark.parametrize("name", ["rbf", "matern", "linear", "nngp"])
def test_every_kernel_by_name(name):
    result = process_audit(read_example("iris"), AuditSettings(kernel=name, sensitivity=False))
    assert result.details.kernel["name"] == name
    assert np.isfinite(result.kl).all()


def test_options_belong_to_their_kernel():
    with pytest.raises(InputError, match="depth is not an option of the kernel rbf"):
        process_audit(read_example("iris"), AuditSettings(depth=3))
    deep = process_audit(
        read_example("iris"),
        AuditSettings(kernel="nngp", depth=5, activation="relu", bias_variance=0.1),
    )
    assert (deep.details.kernel["depth"], deep.details.kernel["bias_variance"]) == (5, 0.1)
    assert "depth 5" in deep.verdict


def test_ten_classes():
    result = process_audit(read_example("digits"), AuditSettings())
    assert result.dataset.outputs == 10
    assert result.laws.confirmed.all()


def test_a_very_large_noise_is_no_reason_to_doubt():
    """It said "cannot tell: raise it" of records that nobody can tell apart, at a noise of 1e10."""
    settings = AuditSettings(noise_variance=1e10, sensitivity=False)
    result = process_audit(read_example("diabetes"), settings)
    assert result.laws.confirmed.all()
    assert result.advantage.max() < 1e-6
    assert "Cannot tell" not in result.verdict
    assert "raise it" not in result.verdict


def test_ranks_range_over_the_noise(data):
    frame = leakscope.audit(*data, model=lood.Process(kernels.rbf(2.0), 0.1)).to_frame()
    places = []
    for level in 0.1 * 10.0 ** np.linspace(-1, 1, 5):
        alone = leakscope.audit(*data, model=lood.Process(kernels.rbf(2.0), level))
        places.append([alone.ranking().index(i) + 1 for i in frame["record_id"]])
    np.testing.assert_array_equal(np.min(places, axis=0), frame["rank_low"])
    np.testing.assert_array_equal(np.max(places, axis=0), frame["rank_high"])


@pytest.mark.parametrize("criterion", ["marginal_likelihood", "leave_one_out"])
def test_the_data_choose_the_noise(data, criterion):
    X, y = data
    kernel = kernels.rbf(2.0)
    result = leakscope.audit(X, y, model=lood.Process(kernel, criterion))
    expected = choose_noise(kernel(X), y, criterion=criterion)
    assert result.details.noise_variance == expected.noise_variance
    assert result.details.noise_chosen_by == criterion


def test_linear_kernels_go_through_feature_space(data):
    quick, dense = (
        leakscope.audit(*data, model=lood.Process(kernels.linear(), 0.1, route))
        for route in ("auto", "dense")
    )
    assert (quick.details.route, dense.details.route) == ("features", "dense")
    np.testing.assert_allclose(quick.kl, dense.kl, rtol=1e-9)
    with pytest.raises(InputError, match="finitely many features"):
        leakscope.audit(*data, model=lood.Process(kernels.rbf(), 0.1, "features"))


def test_an_approximation_confirms_nobody(data):
    with pytest.warns(UserWarning, match="approximate"):
        result = leakscope.audit(*data, model=lood.Process(kernels.rbf(2.0), 0.1, "nystrom", 40))
    assert result.provenance["method"] == "approximate"
    assert result.unconfirmed == 60
    assert "cannot tell" in result.verdict
