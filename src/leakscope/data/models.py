"""Models from files: a fitted one (.skops), a linear head (.safetensors), or a two-layer
ReLU network as plain arrays.

Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.data.arrays import read_arrays
from leakscope.data.files import read_json, require_file, told_as, write_file
from leakscope.errors import InputError, required


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model as a file holds it: an estimator, or the arrays of a linear head."""

    path: Path
    sha256: str | None = None
    estimator: Any = None
    head: Mapping[str, NDArray[Any]] | None = None

    @property
    def classifies(self) -> bool:
        """Whether it predicts classes; of a head with one output the target says."""
        if self.head is not None:
            return any(each.ndim == 2 and len(each) > 1 for each in self.head.values())
        from sklearn.base import is_classifier

        return bool(is_classifier(self.estimator))


def read_model(path: str | Path) -> ModelFile:
    """Read a fitted scikit-learn model, without running anything that the file brings along.

    Parameters
    ----------
    path
        A .skops file, whose types must all be among those that skops trusts, or plain
        (:data:`PLAIN`), and whose model is scikit-learn's own; or a .safetensors file with the
        weight and the bias of a linear head.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".skops", ".safetensors"):
        raise InputError(
            f"{path}: reading a pickle can run any program, so leakscope reads none; save the "
            "model with skops.io.dump, and name the .skops file."
        )
    size = require_file(path)
    require_memory(2 * size, f"the model {path}", "use a smaller model")
    content = path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    if suffix == ".safetensors":
        return ModelFile(path, sha256, head=_safetensors(path))
    return ModelFile(path, sha256, estimator=_from_skops(path, content))


# What skops does not trust by itself, and what reading it does: the dtype of an empty array that an
# imputer keeps, and classes of scikit-learn in plain Python that hold numbers and run nothing (one
# of them a list of columns, in scikit-learn before 1.7).
PLAIN = (
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    *(
        f"sklearn.gaussian_process.kernels.{name}"
        for name in (
            *("CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation"),
            *("Hyperparameter", "Matern", "PairwiseKernel", "Product", "RBF", "RationalQuadratic"),
            *("Sum", "WhiteKernel"),
        )
    ),
)


def _from_skops(path: Path, content: bytes) -> Any:
    required("skops", "Reading a .skops file")
    import skops.io

    with told_as(f"{path} is not a skops file of a model"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        require_memory(2 * unpacked, f"what {path} unpacks to", "use a smaller model")
        foreign = _foreign(content)
        if foreign and all(name.startswith("sklearn.") for name in foreign):
            # Trees and the like are compiled, and not trusted; the parameters are plain.
            content = _recipe(content)
            foreign = _foreign(content)
        if foreign:
            raise InputError(
                f"{path} needs {', '.join(foreign[:3])}, not among the types of scikit-learn that "
                "are known to run nothing, so it is not read; save a model or Pipeline of its own "
                "classes, or name what trains it (--model module:Name)."
            )
        with warnings.catch_warnings():
            # Written by another version of scikit-learn: its coefficients are checked anyway.
            warnings.simplefilter("ignore")
            estimator = skops.io.loads(content, trusted=list(PLAIN))
    if not type(estimator).__module__.startswith("sklearn.") or not hasattr(estimator, "fit"):
        raise InputError(f"{path} holds a {type(estimator).__name__}, not a model of scikit-learn.")
    return estimator


def _foreign(content: bytes) -> list[str]:
    """Types in a skops file that are neither trusted by skops nor plain."""
    import skops.io

    return [name for name in skops.io.get_untrusted_types(data=content) if name not in PLAIN]


def _recipe(content: bytes) -> bytes:
    """A skops file without what scikit-learn's estimators learned: their parameters alone."""
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(found, "w") as left:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "schema.json":
                data = json.dumps(_unlearned(json.loads(data))).encode()
            left.writestr(name, data)
    return found.getvalue()


def _unlearned(node: Any) -> Any:
    """A part of a skops schema; what ``fit`` adds ends in an underscore, or begins with one."""
    if isinstance(node, list):
        return [_unlearned(each) for each in node]
    if not isinstance(node, dict):
        return node
    held = node.get("content")
    own = str(node.get("__module__", "")).startswith("sklearn.")
    if own and isinstance(held, dict) and isinstance(held.get("content"), dict):
        kept = [name for name in held["content"] if not (name.endswith("_") or name[0] == "_")]
        kinds = dict(zip(held["content"], held["key_types"]["content"], strict=True))
        types = {**held["key_types"], "content": [kinds[name] for name in kept]}
        content = {name: _unlearned(held["content"][name]) for name in kept}
        return {**node, "content": {**held, "content": content, "key_types": types}}
    return {name: _unlearned(each) for name, each in node.items()}


def write_model(estimator: Any, path: str | Path) -> Path:
    """Write a scikit-learn model as a .skops file for its owner only, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".skops":
        raise InputError(f"{path}: a model is written as a .skops file; name one.")
    required("skops", "Writing a .skops file")
    import skops.io

    write_file(path, skops.io.dumps(estimator))
    return path


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """The parts of f(x) = sum over j of v_j relu(w_j . x + b_j), as a file holds them.

    ``w`` is k x d, ``b`` and ``v`` have length k; ``notes`` say what had to be taken for granted.
    """

    w: FloatArray
    b: FloatArray
    v: FloatArray
    name: str
    notes: tuple[str, ...] = ()


def read_network(path: str | Path) -> NetworkArrays:
    """Read .safetensors, .npz or .json: arrays w, b and v, or the layers of a state_dict."""
    path = Path(path)
    suffix = path.suffix.lower()
    reader = READERS.get(suffix)
    if reader is None:
        raise InputError(
            f"{path}: networks are read from {' and '.join(READERS)} files (safetensors.torch."
            "save_file, numpy.savez); leakscope reads no pickle, which can run any program."
        )
    require_file(path)
    with told_as(f"{path} cannot be read"):
        found = reader(path)
    for name, array in (("w", found.w), ("b", found.b), ("v", found.v)):
        bad = ~np.isfinite(array)
        if bad.any():
            place = [int(i) for i in np.argwhere(bad)[0]]
            raise InputError(
                f"{path}: the weights must be finite, but {name}{place} is {array[tuple(place)]}."
            )
    return found


def _read_json(path: Path) -> NetworkArrays:
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a JSON object of arrays of numbers.")
    with told_as(f"{path} is not a JSON object of arrays of numbers"):
        arrays = {str(name): np.asarray(value) for name, value in content.items()}
    return _from_names(path, arrays)


def _safetensors(path: Path) -> dict[str, NDArray[Any]]:
    required("safetensors", "Reading a .safetensors file")
    import safetensors.numpy

    with told_as(f"{path} is not a safetensors file"):
        arrays: dict[str, NDArray[Any]] = safetensors.numpy.load_file(path)
    return arrays


READERS: dict[str, Callable[[Path], NetworkArrays]] = {
    ".safetensors": lambda path: _from_names(path, _safetensors(path)),
    ".npz": lambda path: _from_names(path, read_arrays(path)),
    ".json": _read_json,
}


def _from_names(path: Path, arrays: Mapping[str, NDArray[Any]]) -> NetworkArrays:
    """Arrays w, b and v, or the weights and biases of two linear layers, in the names' order."""
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"{path}: {name} holds {array.dtype} values, not numbers.")
    if {"w", "b", "v"} <= set(arrays):
        more = sorted(set(arrays) - {"w", "b", "v"})
        if more:
            raise InputError(
                f"{path} holds {more[0]!r} besides w, b and v; save these three alone."
            )
        return _checked(path, arrays["w"], arrays["b"], arrays["v"], None, ())
    names = sorted(arrays, key=_natural)
    weights = [name for name in names if name.endswith("weight")]
    others = [name for name in names if name not in weights and not name.endswith("bias")]
    if others or not weights:
        raise InputError(
            f"{path} must hold arrays w, b and v, or the weights and biases of two linear layers, "
            f"but it holds {', '.join(names[:6]) or 'nothing'}."
        )
    if len(weights) != 2:
        raise InputError(
            f"{path} has {len(weights)} layers ({', '.join(weights[:6])}); the theory covers "
            "networks with two."
        )
    hidden, output = (name.removesuffix("weight") for name in weights)
    if f"{hidden}bias" not in arrays:
        raise InputError(f"{path} has no {hidden}bias; the hidden layer must have a bias.")
    stray = [
        n for n in names if n.endswith("bias") and n.removesuffix("bias") not in (hidden, output)
    ]
    if stray:
        raise InputError(f"{path} holds {stray[0]}, which belongs to neither of its two layers.")
    return _checked(
        path,
        arrays[f"{hidden}weight"],
        arrays[f"{hidden}bias"],
        arrays[f"{output}weight"],
        arrays.get(f"{output}bias"),
        ("the file does not say so, but the hidden activation was taken to be ReLU",),
    )


def _checked(
    path: Path,
    w: NDArray[Any],
    b: NDArray[Any],
    v: NDArray[Any],
    output_bias: NDArray[Any] | None,
    notes: tuple[str, ...],
) -> NetworkArrays:
    """Shapes that fit, one output, and an output bias of zero."""
    w, b, v = (np.asarray(part, dtype=np.float64) for part in (w, b, v))
    if w.ndim == 1:
        w = w[:, None]
    if v.ndim == 2 and v.shape[0] == 1:
        v = v[0]
    if v.ndim == 2 and v.shape[0] > 1 and w.ndim == 2 and v.shape[1] == len(w):
        raise InputError(f"{path} has {v.shape[0]} outputs; the theory covers networks with one.")
    if w.ndim != 2 or not w.size or b.shape != (len(w),) or v.shape != (len(w),):
        raise InputError(
            f"{path}: w must be k x d and b and v of length k, but their shapes are {w.shape}, "
            f"{b.shape} and {v.shape}."
        )
    if output_bias is not None and np.any(np.asarray(output_bias) != 0.0):
        raise InputError(
            f"{path} has an output bias of {float(np.ravel(output_bias)[0]):g}; the theory covers "
            "networks whose output bias is zero."
        )
    return NetworkArrays(w, b, v, path.stem, notes)


def _natural(name: str) -> list[tuple[int, int | str]]:
    """net.10 after net.2."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts]
