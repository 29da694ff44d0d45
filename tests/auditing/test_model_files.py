"""``audit --model FILE``: the user's own model from skops and ONNX, and what is refused."""

from __future__ import annotations

import hashlib
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from onnx import TensorProto, helper
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakscope import data
from leakscope.cli import main
from leakscope.data.models import read_model
from leakscope.errors import InputError
from leakscope.settings import ModelSettings
from tests.audits import estimator_audit, model_audit

TIGHT = {"tol": 1e-8, "max_iter": 10_000}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(model, name="mine.skops"):
    skops.io.dump(model, name)
    return name


def people():
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "age": rng.normal(40.0, 12.0, 300).round(1),
            "region": rng.choice(["north", "south", "west"], 300),
            "dose": rng.normal(size=300).round(3),
        }
    )
    odds = 0.05 * (table["age"] - 40.0) + table["dose"] + (table["region"] == "west")
    table["sick"] = np.where(rng.logistic(size=300) < odds, "yes", "no")
    table.to_csv("people.csv", index=False)
    return table


def test_a_pipeline_on_a_tables_own_columns_is_audited_as_in_memory(capsys):
    table = people()
    X, y = table[["age", "region", "dose"]], table["sick"]
    model = make_pipeline(
        make_column_transformer((StandardScaler(), ["age", "dose"]), (OneHotEncoder(), ["region"])),
        LogisticRegression(C=0.5, **TIGHT),
    ).fit(X, y)
    name = saved(model)
    assert main(["audit", "people.csv", "--target", "sick", "--model", name, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"]["name"] == "ColumnTransformer → LogisticRegression(C=0.5)"
    assert found["model"]["type"] == "Pipeline"
    assert found["model"]["file"] == name
    with open(name, "rb") as stream:
        assert found["model"]["file_sha256"] == hashlib.file_digest(stream, "sha256").hexdigest()
    own = estimator_audit(model, X, y.to_numpy())
    told = {record["record_id"]: record["advantage"] for record in found["records"]}
    np.testing.assert_allclose([told[i] for i in range(300)], own.advantage, rtol=1e-12)


@pytest.mark.parametrize("width", [0, 4])
def test_dropped_records_are_dropped_from_the_tables_own_columns(capsys, width):
    """With an id column this was refused; ids such as 0007 are as they are written."""
    table = people()
    table.insert(0, "who", [f"{7 * i:0{width}d}" if width else 7 * i for i in range(300)])
    table.loc[[3, 50], "dose"] = np.nan
    table.to_csv("people.csv", index=False)
    kept = table.dropna()
    X, y = kept[["age", "region", "dose"]], kept["sick"]
    model = make_pipeline(
        make_column_transformer((StandardScaler(), ["age", "dose"]), (OneHotEncoder(), ["region"])),
        LogisticRegression(C=0.5, **TIGHT),
    ).fit(X, y)
    words = ["--target", "sick", "--id", "who", "--missing", "drop", "--model", saved(model)]
    assert main(["audit", "people.csv", *words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    told = {record["record_id"]: record["advantage"] for record in found["records"]}
    own = estimator_audit(model, X, y.to_numpy())
    np.testing.assert_allclose([told[who] for who in kept["who"]], own.advantage, rtol=1e-9)


def test_standardised_features_are_found_out_by_the_optimum_and_verify_takes_the_run(capsys):
    X, y = load_wine(return_X_y=True)
    model = LogisticRegression(C=0.3, **TIGHT).fit(StandardScaler().fit_transform(X), y)
    arguments = ["audit", "--example", "wine", "--model", saved(model), "--run-dir", "run"]
    assert main(arguments) == 0
    assert "LogisticRegression(C=0.3), as fitted by you (mine.skops)" in " ".join(
        capsys.readouterr().out.split()
    )
    with open("run/result.json", encoding="utf-8") as stream:
        assert any("standardised" in step for step in json.load(stream)["dataset"]["steps"])
    assert main(["verify", "run", "--models", "100", "--records", "3"]) in (0, 3)
    assert "100 shadow models" in " ".join(capsys.readouterr().out.split())
    skops.io.dump(model.set_params(tol=1e-7), "mine.skops")
    assert main(["verify", "run", "--models", "100"]) == 2
    assert "is not the model that was audited" in capsys.readouterr().err


def test_other_data_are_said_with_the_gradient():
    X, y = load_breast_cancer(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    half = saved(LogisticRegression(**TIGHT).fit(scaled[:280], y[:280]))
    with pytest.raises(InputError, match=r"mine.skops: The coefficients .* gradient there is"):
        model_audit(data.read_example("breast_cancer"), ModelSettings(model=half))


@pytest.mark.parametrize("kernel", [False, True])
def test_an_imputer_and_a_gaussian_process_are_plain(kernel, capsys):
    """skops trusts neither the dtype that an imputer keeps nor kernels; both run nothing."""
    table = people()
    table["sick"] = (table["sick"] == "yes").astype(float) + 0.5 * table["dose"]
    table.loc[3, "age"] = np.nan
    table.to_csv("people.csv", index=False)
    inner = GaussianProcessRegressor(RBF(5.0) + WhiteKernel(1.0), optimizer=None)
    model = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["age", "dose"]),
            (OneHotEncoder(), ["region"]),
        ),
        inner if kernel else Ridge(2.0),
    ).fit(table[["age", "region", "dose"]], table["sick"])
    assert "numpy.dtype" in skops.io.get_untrusted_types(file=saved(model))
    line = "audit people.csv --target sick --model mine.skops --missing impute --json -"
    assert main(line.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"]["origin"] == "as fitted by you (mine.skops)"
    assert found["kind"] == "audit_model"


def test_a_file_is_a_training_too(capsys):
    """As the warning about what a model learns beside its coefficients says."""
    people()
    table = pd.read_csv("people.csv")
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3))
    saved(model.fit(table[["age", "dose"]], table["sick"]))
    line = (
        "audit people.csv --target sick --ignore region --train mine.skops --models 4 --run-dir run"
    )
    assert main(line.split()) == 0
    out = " ".join(capsys.readouterr().out.split())
    # By its steps, the last with its settings.
    assert "Examined: StandardScaler → DecisionTreeClassifier(max_depth=3), 4 models of" in out


class Own(Ridge):
    """Not scikit-learn's."""


def doubled(X):
    return 2.0 * X


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Own(), r"needs .*Own, not among the types"),
        (
            lambda: make_pipeline(FunctionTransformer(doubled), Ridge()),
            r"needs .*doubled, not among",
        ),
        (lambda: {"a": 1}, "holds a dict, not a model"),
    ],
)
def test_what_a_skops_file_may_not_hold(make, sentence):
    X, y = load_wine(return_X_y=True)
    model = make()
    name = saved(model.fit(X, y) if hasattr(model, "fit") else model)
    with pytest.raises(InputError, match=sentence):
        model_audit(data.read_example("wine"), ModelSettings(model=name))


def test_bad_files_end_with_one_sentence(here, capsys):
    (here / "text.skops").write_text("no zip")
    (here / "text.onnx").write_bytes(b"\xff\xff\xff\xff")
    with zipfile.ZipFile("empty.skops", "w") as archive:
        archive.writestr("other.json", "{}")
    (here / "model.pkl").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    for name, words in (
        ("text.skops", "is not a skops file"),
        ("empty.skops", "is not a skops file"),
        ("text.onnx", "is not an ONNX file"),
        ("gone.skops", "There is no file"),
        ("model.pkl", "reading a pickle can run any program"),
        ("forest", "input should be one of ridge"),
    ):
        assert main(["audit", "--example", "wine", "--model", name]) == 2
        err = capsys.readouterr().err
        assert words in err
        assert err.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == [
        "empty.skops", "model.pkl", "text.onnx", "text.skops"
    ]  # fmt: skip


def test_a_file_has_its_own_penalty():
    X, y = load_diabetes(return_X_y=True)
    name = saved(Ridge().fit(X, y))
    with pytest.raises(InputError, match="has its own penalty"):
        model_audit(data.read_example("diabetes"), ModelSettings(model=name, alpha=1.0))


def graph(nodes, features, constants=()):
    inputs = [helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, features])]
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.DOUBLE, None)]
    made = helper.make_graph(nodes, "model", inputs, outputs, list(constants))
    model = helper.make_model(made)
    with open("mine.onnx", "wb") as stream:
        stream.write(model.SerializeToString())
    return "mine.onnx"


def constant(name, values):
    values = np.asarray(values, dtype=np.float64)
    return helper.make_tensor(name, TensorProto.DOUBLE, values.shape, values.ravel())


def as_skl2onnx_writes_a_classifier(model, features, transform):
    scaler, inner = model[0], model[1]
    signs = (-1.0, 1.0) if len(inner.classes_) == 2 else (1.0,)
    coefficients = np.vstack([sign * inner.coef_ for sign in signs])
    intercepts = np.concatenate([sign * inner.intercept_ for sign in signs])
    nodes = [
        helper.make_node(
            "Scaler", ["X"], ["scaled"], domain="ai.onnx.ml",
            offset=scaler.mean_.tolist(), scale=(1.0 / scaler.scale_).tolist(),
        ),
        helper.make_node(
            "LinearClassifier", ["scaled"], ["label", "odds"], domain="ai.onnx.ml",
            coefficients=coefficients.ravel().tolist(), intercepts=intercepts.tolist(),
            classlabels_ints=inner.classes_.tolist(), post_transform=transform,
        ),
        helper.make_node("Normalizer", ["odds"], ["shares"], domain="ai.onnx.ml", norm="L1"),
    ]  # fmt: skip
    return graph(nodes, features)


def as_matrices(model, features):
    scaler, inner = model[0], model[1]
    nodes = [
        helper.make_node("Sub", ["X", "mean"], ["centred"]),
        helper.make_node("Div", ["centred", "sd"], ["scaled"]),
        helper.make_node("MatMul", ["scaled", "matrix"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["score"]),
        helper.make_node("ArgMax", ["score"], ["place"], axis=1),
        helper.make_node("Softmax", ["score"], ["shares"], axis=1),
    ]
    held = [("mean", scaler.mean_), ("sd", scaler.scale_), ("matrix", inner.coef_.T)]
    return graph(nodes, features, [constant(*one) for one in [*held, ("bias", inner.intercept_)]])


@pytest.mark.parametrize(
    ("example", "loader", "write"),
    [
        ("breast_cancer", load_breast_cancer,
         lambda m, d: as_skl2onnx_writes_a_classifier(m, d, "LOGISTIC")),
        ("wine", load_wine, lambda m, d: as_skl2onnx_writes_a_classifier(m, d, "SOFTMAX")),
        ("wine", load_wine, as_matrices),
    ],
)  # fmt: skip
def test_onnx_classifiers_reveal_their_penalty(example, loader, write):
    X, y = loader(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.2, **TIGHT)).fit(X, y)
    name = write(model, X.shape[1])
    found = model_audit(data.read_example(example), ModelSettings(model=name))
    assert found.model.name == "StandardScaler → LogisticRegression(C=0.2)"
    assert found.model.origin == "as fitted by you (mine.onnx; penalty found from its coefficients)"
    own = estimator_audit(model, X, y)
    # the scaler's and classifier's numbers are float32 in the file
    np.testing.assert_allclose(found.advantage, own.advantage, atol=2e-4)


def test_onnx_regressions():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    wide = StandardScaler().fit_transform(X)
    example = data.read_example("diabetes")
    inner = Ridge(alpha=30.0).fit(wide, y)
    node = helper.make_node(
        "LinearRegressor", ["X"], ["y"], domain="ai.onnx.ml",
        coefficients=inner.coef_.tolist(), intercepts=[float(inner.intercept_)],
    )  # fmt: skip
    found = model_audit(example, ModelSettings(model=graph([node], 10)))
    assert found.model.name == "Ridge(alpha=30)"
    np.testing.assert_allclose(
        found.advantage, estimator_audit(inner, wide, y).advantage, atol=1e-4
    )
    counts = PoissonRegressor(alpha=0.1, **TIGHT).fit(wide, y)
    nodes = [
        helper.make_node("Gemm", ["X", "matrix", "bias"], ["score"], transB=1),
        helper.make_node("Exp", ["score"], ["mean"]),
    ]
    held = [constant("matrix", counts.coef_[None, :]), constant("bias", [counts.intercept_])]
    found = model_audit(example, ModelSettings(model=graph(nodes, 10, held)))
    assert found.model.name == "PoissonRegressor(alpha=0.1)"
    with pytest.raises(InputError, match="not the optimum on these records"):
        model_audit(example, ModelSettings(model=graph(nodes, 10, held), alpha=100.0))
    least = Ridge(alpha=1e-9).fit(wide, y)
    held = [constant("matrix", least.coef_[None, :]), constant("bias", [least.intercept_])]
    found = model_audit(example, ModelSettings(model=graph(nodes[:1], 10, held)))
    assert found.model.name == "LinearRegression()"


def test_an_onnx_network_is_refused():
    nodes = [
        helper.make_node("MatMul", ["X", "a"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        helper.make_node("MatMul", ["positive", "b"], ["y"]),
    ]
    held = [constant("a", np.ones((13, 4))), constant("b", np.ones((4, 1)))]
    with pytest.raises(InputError, match="the node Relu cannot be read"):
        model_audit(data.read_example("wine"), ModelSettings(model=graph(nodes, 13, held)))


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([helper.make_node("LinearRegressor", ["X"], ["y"], domain="ai.onnx.ml")], "no coeff"),
        (
            [
                helper.make_node("Scaler", ["X"], ["scaled"], domain="ai.onnx.ml", scale=[1.0]),
                helper.make_node("LinearRegressor", ["scaled"], ["y"], domain="ai.onnx.ml"),
            ],
            "no offset",
        ),
    ],
)
def test_an_onnx_node_without_its_numbers(nodes, words):
    """Found by fuzzing: a KeyError."""
    with pytest.raises(InputError, match=words):
        read_model(graph(nodes, 1))
