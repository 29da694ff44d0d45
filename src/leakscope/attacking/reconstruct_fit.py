"""A record that a fitted model was trained on, from the model and everybody else's records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from leakscope import __version__
from leakscope.data.models import read_model
from leakscope.data.sources import raw_features, read_dataset
from leakscope.errors import InputError
from leakscope.fitted.from_sklearn import from_sklearn
from leakscope.fitted.problem import FittedModel
from leakscope.fitted.reconstruction import (
    NEAR,
    Reconstruction,
    every_record,
    reconstruct,
    rero_bound,
)
from leakscope.fitted.refits import Unwrapped, unwrapped
from leakscope.results.attacks import FitReconstructAttack
from leakscope.results.audit import ExaminedModel
from leakscope.results.document import AssumptionEntry
from leakscope.settings.attack import FIT_RECONSTRUCT_DEFAULTS, FitReconstructSettings
from leakscope.single_fit.leave_one_out import leave_one_out
from leakscope.single_fit.problem import ConvexProblem
from leakscope.subjects.fit.models import labels_for, plain_parameters

Records = tuple[ArrayLike, ArrayLike] | str | Path


def reconstruct_from_fit(
    model: Any,
    known: Records | None,
    data: Records | None,
    settings: FitReconstructSettings = FIT_RECONSTRUCT_DEFAULTS,
) -> FitReconstructAttack:
    """The missing record of ``known``, or with ``data`` alone every record of it in turn."""
    start = time.perf_counter()
    if known is None and data is None:
        raise InputError(
            "give the records that the attacker knows (--known), or all of them (--data) to see "
            "how many could be found."
        )
    if known is None:
        found = _every(model, data, settings)
    else:
        found = _missing(model, known, data, settings)
    return FitReconstructAttack(
        leakscope_version=__version__,
        settings=settings.model_dump(),
        assumptions=[
            AssumptionEntry(
                statement="the attacker knows every other record exactly, and the penalty",
                holds=None,
                evidence="what is missing from the optimum's equation is then this record's force",
            )
        ],
        provenance={
            "question": "what does the model say about a record, to somebody who knows all others?",
            "method": "exact" if settings.noise == 0.0 else "first order in the noise",
            "source": "Balle, Cherubin, Hayes 2022",
        },
        timing={"attack": time.perf_counter() - start},
        warnings=[],
        **found,
    )


# Reading.


def _read(
    model: Any, records: Records, settings: FitReconstructSettings
) -> tuple[Any, Any, NDArray[Any], tuple[str, ...], ExaminedModel]:
    """The estimator, the records as it takes them, their labels, their names, and what it is."""
    X: Any
    if isinstance(records, tuple):
        if isinstance(model, (str, Path)):
            raise InputError(
                "arrays go with a fitted estimator; with a model's file, give files of records."
            )
        X, y = records[0], np.ravel(np.asarray(records[1]))
        columns = tuple(str(name) for name in getattr(X, "columns", range(np.shape(X)[1])))
        return model, X, y, columns, _examined(model, X, None, None)
    if not isinstance(model, (str, Path)):
        raise InputError("records in files go with a model's file; for an estimator give arrays.")
    file = read_model(model)
    task: Any = "classification" if file.classifies else "regression"
    dataset = read_dataset(records, target=settings.target, id_column=settings.id_column, task=task)
    y = labels_for(file, dataset)
    X = dataset.features
    names = dataset.feature_names
    estimator = file.estimator
    wanted = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if wanted:
        X, names = raw_features(dataset, wanted), tuple(wanted)
    return estimator, X, y, names, _examined(estimator, X, file.path.name, file.sha256)


def _examined(estimator: Any, X: Any, name: str | None, sha256: str | None) -> ExaminedModel:
    inner = unwrapped(estimator, X).inner
    return ExaminedModel(
        type=type(estimator).__name__,
        name=type(inner).__name__,
        origin="as fitted by you" if name is None else f"from {name}",
        parameters=plain_parameters(inner),
        file=name,
        file_sha256=sha256,
    )


def _problem(estimator: Any, X: Any, y: NDArray[Any]) -> tuple[ConvexProblem, Unwrapped]:
    described = from_sklearn(estimator, X, y, at_optimum=False)
    if not isinstance(described, FittedModel):
        raise InputError(
            f"{described.name} is not smooth, so its coefficients do not determine the record; the "
            "attack is for ridge, logistic and Poisson models."
        )
    if described.problems[0].X is None:
        raise InputError(
            f"{described.name} keeps its training records in its file: they can be read without an "
            "attack."
        )
    if len(described.problems) > 1:
        raise InputError(f"{described.name} fits each class on its own; the attack is for one fit.")
    return described.problems[0], unwrapped(estimator, X)


# One missing record.


def _missing(
    model: Any, known: Records, data: Records | None, settings: FitReconstructSettings
) -> dict[str, Any]:
    estimator, X, y, names, examined = _read(model, known, settings)
    problem, found = _problem(estimator, X, y)
    answer = reconstruct(problem, missing=settings.missing, noise=settings.noise)
    raw, names, units = _in_file_units(found, answer, names)
    told: dict[str, Any] = {
        "model": examined,
        "known": len(y),
        "determined": answer.determined,
        "features": dict(zip(names, raw, strict=True)),
        "units": units,
        "label": _label(answer, found.inner),
    }
    if answer.sd is not None:
        sd = answer.sd
        for scale in (getattr(step, "scale_", None) for step in found.steps):
            if scale is not None and len(scale) == len(sd) == len(names):
                sd = sd * scale
        told["sds"] = dict(zip(names, sd.tolist(), strict=True))
    if data is not None and answer.determined in ("record", "direction"):
        told |= _checked(model, data, settings, answer)
    told["verdict"] = _verdict(told, len(y), settings)
    return told


def _in_file_units(
    found: Unwrapped, answer: Reconstruction, names: tuple[str, ...]
) -> tuple[list[float | str], tuple[str, ...], str]:
    """Back through the pipeline's steps where each can be undone; else as it reaches the model."""
    # A standard deviation has no counterpart in a category.
    mixed = answer.sd is not None and any(isinstance(s, ColumnTransformer) for s in found.steps)
    if answer.determined == "record" and not mixed:
        try:
            raw = answer.x[None]
            for step in reversed(found.steps):
                raw = _undone(step, raw)
            if raw.shape[1] == len(names):
                values = [v if isinstance(v, str) else float(v) for v in raw[0]]
                return values, names, "as in the file"
        except Exception:  # of the user's own steps: whatever they raise, the model's units stay
            pass
    width = len(answer.x)
    reaching: Any = names
    if len(names) != width:
        try:
            for step in found.steps:
                reaching = step.get_feature_names_out(reaching)
        except Exception:  # of the user's own steps, which need not name anything
            reaching = ()
    if len(reaching) != width:
        reaching = range(width)
    return answer.x.tolist(), tuple(map(str, reaching)), "as they reach the model"


def _undone(step: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """What a step was given; of a ColumnTransformer, which cannot say, what each part was given."""
    if isinstance(step, Pipeline):
        for _, inner in reversed(step.steps):
            rows = rows if inner in (None, "passthrough") else _undone(inner, rows)
        return rows
    if isinstance(step, SimpleImputer) and not step.add_indicator:
        return rows  # What was empty is told as it was filled in.
    if not isinstance(step, ColumnTransformer):
        return np.asarray(step.inverse_transform(rows))
    given = [str(name) for name in step.feature_names_in_]
    whole = np.full((len(rows), len(given)), None, dtype=object)
    for name, part, columns in step.transformers_:
        if part != "drop":
            block = rows[:, step.output_indices_[name]]
            chosen = np.array(given)[columns] if isinstance(columns, slice) else columns
            places = [given.index(c) if isinstance(c, str) else int(c) for c in chosen]
            whole[:, places] = block if part == "passthrough" else _undone(part, block)
    if (whole == None).any():  # noqa: E711
        raise ValueError("dropped columns cannot be told")
    return whole


def _label(answer: Reconstruction, inner: Any) -> str | float | None:
    if answer.label is None or not hasattr(inner, "classes_"):
        return answer.label
    return str(inner.classes_[int(answer.label)])


def _checked(
    model: Any, data: Records, settings: FitReconstructSettings, answer: Reconstruction
) -> dict[str, Any]:
    """Beside the record that is really missing."""
    estimator, X, y, _, _ = _read(model, data, settings)
    design = np.asarray(unwrapped(estimator, X).design, dtype=np.float64)
    if len(design) != 1:
        raise InputError(f"--data holds {len(design)} records; give the one that is missing.")
    truth = design[0]
    length = max(float(np.linalg.norm(truth)), 1e-300)
    cosine = abs(float(truth @ answer.x)) / length / max(float(np.linalg.norm(answer.x)), 1e-300)
    if answer.determined == "direction":
        return {"cosine": min(cosine, 1.0)}
    told = _label(answer, unwrapped(estimator, X).inner)
    right = str(told) == str(y[0]) if isinstance(told, str) else None
    if isinstance(told, float):
        right = bool(abs(told - float(y[0])) <= NEAR * max(abs(float(y[0])), 1e-300))
    error = float(np.linalg.norm(answer.x - truth)) / length
    return {"error": error, "cosine": min(cosine, 1.0), "label_right": right}


def _verdict(told: dict[str, Any], known: int, settings: FitReconstructSettings) -> str:
    determined = told["determined"]
    if determined == "nothing":
        return f"No record is missing: the {known} known records alone explain the model."
    if determined == "sum":
        return (
            f"{settings.missing} records are missing from the {known} known: the model reveals "
            "their weighted mean (below) and nothing more."
        )
    if determined == "direction":
        words = "The missing record's features up to one factor: the model has no intercept."
    else:
        words = "The missing record, features and label, as the optimum's equation has it."
    if told.get("error") is not None:
        words += f" It is off by {told['error']:.2g} of the record's length."
    if settings.noise > 0.0:
        return f"{words} With noise on the coefficients each feature has the sd below."
    return (
        f"{words} It is right if the solver reached the optimum; one that stopped early gives "
        "something that looks like a record but is not."
    )


# Every record in turn.


def _every(model: Any, data: Any, settings: FitReconstructSettings) -> dict[str, Any]:
    estimator, X, y, _, examined = _read(model, data, settings)
    problem, found = _problem(estimator, X, y)
    every = every_record(problem)
    tolerance = every.needed / float(problem.sample_weights.sum())
    told: dict[str, Any] = {
        "model": examined,
        "known": len(y) - 1,
        "determined": "record",
        "records": len(y),
        "found": every.found,
        "labels_right": float(np.mean(every.right)),
        "gradient": every.gradient,
        "gradient_needed": every.needed,
        "tolerance_needed": tolerance,
    }
    solver = str(getattr(found.inner, "solver", "")) or type(found.inner).__name__
    words = (
        f"Somebody who knows all other records finds {every.found:.1%} of the {len(y)} records to "
        f"within {NEAR:.0%}, and {told['labels_right']:.1%} of the labels. "
    )
    if settings.noise > 0.0:
        moved = leave_one_out(problem).moved
        assert moved is not None
        kappa = settings.kappa or 1.0 / len(y)
        bound = rero_bound(kappa, moved, settings.noise)
        told |= {"kappa": kappa, "rero_bound": float(bound.max())}
        words = (
            f"With noise of sd {settings.noise:g} on every coefficient nobody, whatever they know "
            f"of the others, finds a record with a chance above {bound.max():.3g} (without the "
            f"model {kappa:.3g})."
        )
    elif every.found < 0.5:
        words += (
            f"The others are hidden only because {solver} stopped early: fitted to a tolerance of "
            f"about {tolerance:.1g} half of them would be found. That is no protection."
        )
    else:
        words += "The fit is exact, and so is the attack; noise on the coefficients stops it."
    return {**told, "verdict": words}
