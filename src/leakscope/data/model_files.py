"""A fitted model from a .skops or .onnx file; a pickle is never read."""

from __future__ import annotations

import hashlib
import io
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope._numerics.memory import require_memory
from leakscope.data.onnx_linear import LinearArrays, read_onnx_linear
from leakscope.data.reasons import reason
from leakscope.data.regular_files import require_file
from leakscope.errors import InputError


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model as a file holds it: an estimator (skops) or its coefficients (ONNX).

    Examples
    --------
    >>> from pathlib import Path
    >>> from leakscope.data import ModelFile
    >>> ModelFile(Path("mine.skops"), "ab12", estimator="an estimator").path.name
    'mine.skops'
    """

    path: Path
    sha256: str
    estimator: Any = None
    linear: LinearArrays | None = None

    @property
    def classifies(self) -> bool:
        """Whether it predicts classes."""
        if self.linear is not None:
            return self.linear.classes is not None
        from sklearn.base import is_classifier

        return bool(is_classifier(self.estimator))


def read_model(path: str | Path) -> ModelFile:
    """Read a fitted scikit-learn model, without running anything that the file brings along.

    Parameters
    ----------
    path
        A .skops file, whose types must all be among those that skops trusts and whose model is
        scikit-learn's own; or an .onnx file of a linear, logistic, softmax or Poisson regression.

    Examples
    --------
    >>> from leakscope import data
    >>> data.read_model("model.pkl")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: model.pkl: a pickle can run any program when it is read, so none
    is; save the model with skops.io.dump, and name the .skops file.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".skops", ".onnx"):
        raise InputError(
            f"{path}: a pickle can run any program when it is read, so none is; save the model "
            "with skops.io.dump, and name the .skops file."
        )
    size = require_file(path)
    require_memory(2 * size, f"the model {path}", "use a smaller model")
    content = path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    if suffix == ".onnx":
        return ModelFile(path, sha256, linear=read_onnx_linear(path, content))
    return ModelFile(path, sha256, estimator=_from_skops(path, content))


def _from_skops(path: Path, content: bytes) -> Any:
    try:
        import skops.io
    except ImportError:
        raise InputError(
            "A .skops file needs the package skops; install leakscope[skops]."
        ) from None
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        require_memory(2 * unpacked, f"what {path} unpacks to", "use a smaller model")
        foreign = skops.io.get_untrusted_types(data=content)
        if any(name.startswith("sklearn.tree.") for name in foreign):
            raise InputError(
                f"{path} holds trees, which change their structure when a record leaves; "
                "leakscope audit --train audits them by a few models."
            )
        if foreign:
            raise InputError(
                f"{path} needs {', '.join(foreign[:3])}, which is not among the types of "
                "scikit-learn that skops trusts, so it is not read; save a plain scikit-learn "
                "model or Pipeline."
            )
        with warnings.catch_warnings():
            # Written by another version of scikit-learn: its coefficients are checked anyway.
            warnings.simplefilter("ignore")
            estimator = skops.io.loads(content, trusted=[])
    except InputError:
        raise
    except Exception as error:  # zipfile's, json's, and whatever a type's own state stumbles over
        raise InputError(f"{path} is not a skops file of a model ({reason(error)}).") from error
    if not type(estimator).__module__.startswith("sklearn.") or not hasattr(estimator, "fit"):
        raise InputError(f"{path} holds a {type(estimator).__name__}, not a model of scikit-learn.")
    return estimator
