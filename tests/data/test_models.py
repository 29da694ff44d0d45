"""Networks from files: every format gives the same arrays, and what is not one is refused."""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
import pytest

from leakscope import relu
from leakscope.data import read_network
from leakscope.errors import InputError

RNG = np.random.default_rng(0)
W, B, V = RNG.standard_normal((5, 3)), RNG.standard_normal(5), RNG.standard_normal(5)


def same(found):
    np.testing.assert_allclose(found.w, W)
    np.testing.assert_allclose(found.b, B)
    np.testing.assert_allclose(found.v, V)


def test_npz(tmp_path):
    np.savez(tmp_path / "net.npz", w=W, b=B, v=V)
    found = read_network(tmp_path / "net.npz")
    same(found)
    assert found.name == "net"
    assert found.notes == ()


def test_json(tmp_path):
    arrays = {"w": W.tolist(), "b": B.tolist(), "v": V.tolist()}
    (tmp_path / "net.json").write_text(json.dumps(arrays))
    same(read_network(tmp_path / "net.json"))
    for text in ("[1, 2]", "no json", '{"w": [[1, 2], [3]], "b": [1], "v": [1]}'):
        (tmp_path / "net.json").write_text(text)
        with pytest.raises(InputError, match=r"not JSON|not a JSON object of arrays"):
            read_network(tmp_path / "net.json")


def test_npz_of_one_input_as_a_vector(tmp_path):
    np.savez(tmp_path / "net.npz", w=B, b=B, v=V)
    assert read_network(tmp_path / "net.npz").w.shape == (5, 1)


def test_npz_and_safetensors_by_layer_names(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = {"2.weight": V[None], "0.weight": W, "0.bias": B, "2.bias": np.zeros(1)}
    np.savez(tmp_path / "net.npz", **arrays)
    safetensors.save_file(arrays, tmp_path / "net.safetensors")
    for name in ("net.npz", "net.safetensors"):
        found = read_network(tmp_path / name)
        same(found)
        assert "ReLU" in found.notes[0]


def test_layers_are_in_the_order_of_their_numbers(tmp_path):
    np.savez(tmp_path / "net.npz", **{"l.10.weight": V[None], "l.2.weight": W, "l.2.bias": B})
    same(read_network(tmp_path / "net.npz"))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"w": W, "b": B[:4], "v": V}, r"w must be k x d .* \(5, 3\), \(4,\) and \(5,\)"),
        ({"w": W, "b": B, "v": np.where(np.arange(5) == 2, np.nan, V)}, r"v\[2\] is nan"),
        ({"w": W, "b": B, "v": V, "c": V}, "'c' besides"),
        ({"a": W}, "must hold arrays w, b and v"),
        ({"1.weight": W}, "has 1 layers"),
        ({"1.weight": W, "1.bias": B, "2.weight": W, "3.weight": W}, "has 3 layers"),
        ({"1.weight": W, "2.weight": V[None]}, "no 1.bias"),
        ({"1.weight": W, "1.bias": B, "2.weight": np.ones((4, 5))}, "4 outputs"),
        ({"1.weight": W, "1.bias": B, "2.weight": V[None], "2.bias": [0.5]}, "output bias of 0.5"),
        ({"1.weight": W, "1.bias": B, "2.weight": V[None], "9.bias": B}, "9.bias, which belongs"),
        ({"w": np.array(["a"]), "b": B, "v": V}, "not numbers"),
        ({"w": np.zeros((0, 3)), "b": [], "v": []}, "w must be k x d"),
    ],
)
def test_other_shapes_are_refused_with_the_reason(tmp_path, arrays, words):
    np.savez(tmp_path / "net.npz", **arrays)
    with pytest.raises(InputError, match=words):
        read_network(tmp_path / "net.npz")


def test_pickles_are_never_read(tmp_path):
    (tmp_path / "net.pkl").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(InputError, match="no pickle"):
        read_network(tmp_path / "net.pkl")
    np.savez(tmp_path / "net.npz", w=np.array([object()]), b=B, v=V)
    with pytest.raises(InputError, match=r"not an .npz archive of numbers"):
        read_network(tmp_path / "net.npz")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_files_that_are_something_else(tmp_path, suffix):
    (tmp_path / f"net{suffix}").write_bytes(b"this is not a network at all, is it?")
    with pytest.raises(InputError, match=f"net{suffix} is not an? "):
        read_network(tmp_path / f"net{suffix}")
    (tmp_path / f"empty{suffix}").write_bytes(b"")
    with pytest.raises(InputError):
        read_network(tmp_path / f"empty{suffix}")


def test_missing_files_and_suffixes(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        read_network(tmp_path / "net.npz")
    with pytest.raises(InputError, match="are read from"):
        read_network(tmp_path / "net.txt")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_network(tmp_path / "folder.npz")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("net.safetensors", "safetensors", "models"),
    ],
)
def test_a_missing_package_is_one_sentence(tmp_path, monkeypatch, name, module, extra):
    (tmp_path / name).write_bytes(b"something")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"leakscope\[{extra}\]"):
        read_network(tmp_path / name)


def test_scikit_learn_networks_in_memory():
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    x, y = RNG.standard_normal((40, 2)), RNG.choice([0, 1], 40)
    model = MLPRegressor(hidden_layer_sizes=(6,), random_state=0).partial_fit(x, y)
    with pytest.raises(InputError, match="output bias of"):
        relu.network_from_sklearn(model)
    model.intercepts_[1][:] = 0.0
    np.testing.assert_allclose(relu.network_from_sklearn(model)(x), model.predict(x))
    classifier = MLPClassifier(hidden_layer_sizes=(6,), random_state=0).partial_fit(
        x, y, classes=[0, 1]
    )
    classifier.intercepts_[1][:] = 0.0
    chance = 1.0 / (1.0 + np.exp(-relu.network_from_sklearn(classifier)(x)))
    np.testing.assert_allclose(chance, classifier.predict_proba(x)[:, 1])


def test_other_scikit_learn_models_are_refused():
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    x, y = RNG.standard_normal((30, 2)), RNG.choice([0, 1, 2], 30)
    deep = MLPRegressor(hidden_layer_sizes=(4, 4)).partial_fit(x, y)
    tanh = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh").partial_fit(x, y)
    several = MLPClassifier(hidden_layer_sizes=(4,)).partial_fit(x, y, classes=[0, 1, 2])
    for model, words in (
        (deep, "2 hidden layers"),
        (tanh, "activation is tanh"),
        (several, "output is a softmax"),
        (LinearRegression().fit(x, y), "fitted MLPRegressor"),
        (MLPRegressor(), "fitted MLPRegressor"),
    ):
        with pytest.raises(InputError, match=words):
            relu.network_from_sklearn(model)
