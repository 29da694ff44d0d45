"""The settings of an audit: the process, the model or the training that is examined."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from leakscope.errors import InputError
from leakscope.settings.kernel_catalogue import KERNELS, kernel_options
from leakscope.settings.process import PROCESSES
from leakscope.settings.setting import (
    Depth,
    Names,
    Natural,
    NotNegative,
    Positive,
    Reachable,
    reachable,
    setting,
    validated,
)

CRITERIA = ("marginal_likelihood", "leave_one_out")


def _noise_variance(value: Any) -> Any:
    """A positive number, or the name of the criterion that is to choose it."""
    if value in CRITERIA:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise PydanticCustomError(
            "noise", f"input should be a number or one of {', '.join(CRITERIA)}"
        ) from None
    if not math.isfinite(number):
        raise PydanticCustomError("noise", "input should be a finite number")
    if number <= 0.0:
        raise PydanticCustomError("noise", "input should be greater than 0")
    return reachable(number)


def _kernel_name(value: str) -> str:
    if value not in KERNELS:
        *first, last = map(repr, KERNELS)
        raise PydanticCustomError("kernel", f"input should be {', '.join(first)} or {last}")
    return value


def _kernels() -> dict[str, str]:
    return {name: entry.words for name, entry in KERNELS.items()}


Scaling = Literal["standard", "none"]
RouteChoice = Literal["auto", "dense", "features", "nystrom", "device"]
NoiseVariance = Annotated[float | str, BeforeValidator(_noise_variance)]
KernelName = Annotated[str, AfterValidator(_kernel_name), Names(_kernels)]


class AuditSettings(BaseModel):
    """The settings of an audit.

    Examples
    --------
    >>> from leakscope.settings import AuditSettings
    >>> AuditSettings().noise_variance
    0.01
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scaling: Scaling = setting(
        "standard",
        "standard (mean 0, variance 1) or none.",
        metavar="HOW",
    )
    kernel: KernelName = setting("rbf", "Covariance.")
    length_scale: Reachable | None = setting(
        None,
        "In units of the features as used.",
        unset="the median distance",
    )
    kernel_variance: Reachable | None = setting(None, "At distance zero.")
    smoothness: Reachable | None = setting(None, "Smoothness nu.")
    depth: Depth | None = setting(None, "Hidden layers.")
    activation: str | None = setting(None, "Such as relu, gelu, erf or tanh.")
    weight_variance: Reachable | None = setting(None, "Prior variance.")
    bias_variance: NotNegative | None = setting(None, "Prior variance.")
    noise_variance: NoiseVariance = setting(
        0.01,
        "In squared units of the target as used; or marginal_likelihood or leave_one_out.",
        metavar="NUMBER",
    )
    fit_kernel_scale: bool = setting(False, "That criterion chooses the kernel's scale too.")
    sensitivity: bool = setting(
        True,
        "Ranks under other noises and kernels.",
    )
    route: RouteChoice = setting(
        "auto",
        "dense, features, nystrom, device or auto.",
    )
    inducing: int = setting(2000, "Records that stand for all (nystrom only).", ge=2)
    error: float = setting(
        0.1,
        "Of a KL that is trusted (nystrom only).",
        gt=0.0,
        lt=1.0,
    )
    seed: Natural = setting(
        0,
        "Of folds and trainings.",
        metavar="NUMBER",
    )
    explain: Natural = setting(10, "How many of the most exposed records to explain.")

    def kernel_options(self) -> dict[str, Any]:
        """The kernel's options that were given."""
        values = {name: getattr(self, name) for name in kernel_options()}
        return {name: value for name, value in values.items() if value is not None}

    def of_process(self) -> tuple[str, ...]:
        """Those given that only a Gaussian process has; any of them asks for its audit.

        Examples
        --------
        >>> from leakscope.settings import AuditSettings
        >>> AuditSettings(seed=1).of_process(), AuditSettings(kernel="rbf").of_process()
        ((), ('kernel',))
        """
        given = self.model_fields_set - {"scaling", "seed", "explain"}
        return tuple(name for name in type(self).model_fields if name in given)


AUDIT_DEFAULTS = AuditSettings()


ModelName = Literal["ridge", "linear", "logistic", "poisson", "kernel_ridge"]
ModelQuestion = Literal["pool", "population"]
SecretPrior = Literal["imputed", "shares"]
ModelObserves = Literal["log_odds", "prediction", "residual", "label", "probabilities"]
# What a model's file ends in.
MODEL_FILES = (".skops", ".safetensors")
# Models of kinds that were registered (leakscope.results.kinds), which can be named too.
REGISTERED: set[str] = set()
# The user's own code: an estimator, its class or a training function.
_IN_A_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def _model_choice(text: str) -> str:
    suffix = Path(text).suffix.lower()
    if text in get_args(ModelName) or text in PROCESSES:
        return text
    if text in REGISTERED or suffix in MODEL_FILES:
        return text
    if _IN_A_MODULE.fullmatch(text):
        return text
    if suffix in (".pkl", ".pickle", ".joblib", ".sav"):
        raise PydanticCustomError(
            "pickle",
            "reading a pickle can run any program, so leakscope reads none; save the model with "
            "skops.io.dump and name the .skops file",
        )
    raise PydanticCustomError(
        "model",
        f"input should be one of {', '.join((*get_args(ModelName), *PROCESSES))}, a .skops or "
        ".safetensors file, or module:Name of an estimator or a training function",
    )


ModelChoice = Annotated[str, AfterValidator(_model_choice)]
Fraction = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]


def _decades(low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(10.0 ** (low + (high - low) * place / (count - 1)) for place in range(count))


# Leave-one-out chooses a penalty that is left out among these, in thirds of a decade where one fit
# is one factorisation: C of logistic regression, alpha of the others.
PENALTIES: dict[str, tuple[float, ...]] = {
    "ridge": _decades(-3.0, 5.0, 25),
    "kernel_ridge": _decades(-4.0, 3.0, 22),
    "logistic": _decades(-4.0, 4.0, 9),
    "poisson": _decades(-5.0, 2.0, 8),
}

# Where no model is given one is fitted from so many records on, and up to so many coefficients of
# several classes.
STAND_IN_RECORDS = 20
STAND_IN_COEFFICIENTS = 20_000


class ModelSettings(BaseModel):
    """Which model is examined, and what is asked of it.

    Examples
    --------
    >>> from leakscope.settings import ModelSettings
    >>> ModelSettings(model="logistic").question
    'pool'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: ModelChoice | None = setting(
        None,
        "Yours: an estimator or training function, module:Name, such as sklearn.svm:SVC; or a "
        ".skops or .safetensors file; or ridge, linear, logistic, poisson or kernel_ridge.",
        metavar="MODEL",
        unset="a stand-in, ridge or logistic",
    )
    C: Reachable | None = setting(
        None,
        "Inverse penalty (logistic only).",
        option="--C",
        unset="by leave-one-out",
    )
    alpha: Reachable | None = setting(
        None,
        "Penalty (of others but linear).",
        unset="by leave-one-out",
    )
    gamma: Reachable | None = setting(
        None,
        "Of the kernel (kernel_ridge only).",
        unset="by distances",
    )
    weight_decay: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = setting(
        None,
        "That a linear head was trained with.",
        unset="found",
    )
    question: ModelQuestion = setting(
        "pool",
        "Others: pool (drawn from these) or population.",
    )
    fraction: Fraction | None = setting(
        None,
        "Share that is trained on.",
        unset="pool: 0.5, else 1",
    )
    observes: ModelObserves | None = setting(
        None,
        "Seen: log_odds, label or probabilities; prediction or residual.",
        unset="the first",
    )
    answer_noise: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = setting(
        None,
        "Fresh normal noise on answers, as advise says.",
        metavar="SD",
    )

    secret: str | None = setting(
        None,
        "What is told of each value in this column.",
        metavar="COLUMN",
    )
    secret_prior: SecretPrior = setting(
        "imputed",
        "Known without a model: imputed or shares.",
    )
    secret_within: Positive | None = setting(
        None, "Of numbers: how near a guess must come.", unset="exact"
    )
    secret_values: tuple[float, ...] | None = setting(
        None,
        "Of numbers: guess among these, such as 0,10,20.",
    )

    @property
    def named(self) -> ModelName | None:
        """The name of a model that leakscope fits; None where there is none, or a file."""
        return cast(ModelName, self.model) if self.model in get_args(ModelName) else None

    @property
    def file(self) -> Path | None:
        """The model's file, where it comes from one."""
        found = None if self.model is None else Path(self.model)
        return found if found is not None and found.suffix.lower() in MODEL_FILES else None

    @property
    def code(self) -> str | None:
        """``module:Name`` of the user's own, where the model is named so."""
        known = self.model is None or self.named is not None or self.file is not None
        if known or self.model in REGISTERED:
            return None
        return self.model


MODEL_DEFAULTS = ModelSettings()


HalfModelCount = Annotated[int, Field(ge=2, multiple_of=2)]


class TrainingSettings(BaseModel):
    """What is trained on halves of the records.

    Examples
    --------
    >>> from leakscope.settings.audit import TrainingSettings
    >>> TrainingSettings(models=16).models
    16
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: str | None = setting(
        None,
        "A function train(X, y, seed), or an estimator.",
        metavar="MODULE:NAME",
    )
    models: HalfModelCount | None = setting(
        None,
        "How many, each of half of the records.",
        metavar="NUMBER",
        unset="64 to 1024, until they confirm 95%",
    )
    minutes: Positive | None = setting(
        None,
        "Train no more models than fit in so long, and four at least.",
        metavar="NUMBER",
        unset="10",
    )
    time_limit: Positive | None = setting(
        None, "What one model may take.", metavar="SECONDS", unset="no limit"
    )
    keep: str | None = setting(
        None,
        "Where answers are kept, so that none is trained twice.",
        metavar="DIR",
    )
    workers: int | None = setting(None, "Train in this many processes.")
    scheduler: str | None = setting(
        None,
        "Train, or stream, on the Dask cluster at this address.",
        metavar="ADDRESS",
        option="--cluster",
    )


TRAINING_DEFAULTS = TrainingSettings()


# Parameters of --model that --set takes, beside those of a Gaussian process
# (:mod:`leakscope.settings.process`): of a model that leakscope fits, and of every fitted model.
NAMED_KEYS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "logistic": ("C",),
    "kernel_ridge": ("alpha", "gamma"),
}
FIT_KEYS = ("observes", "answer_noise", "weight_decay", "secret_within", "secret_values")


def keys_of(model: str | None) -> tuple[str, ...]:
    """What ``--set`` takes for a model's name; for none, for the stand-in.

    Examples
    --------
    >>> from leakscope.settings.audit import keys_of
    >>> keys_of("logistic")[:2], "depth" in keys_of("nngp")
    (('C', 'observes'), True)
    """
    if model in PROCESSES:
        return tuple(PROCESSES[model].model_fields)
    own = NAMED_KEYS.get(model or "", ("alpha",)) if model in get_args(ModelName) else ()
    return (*own, *FIT_KEYS)


def settings_by_name(
    given: Mapping[str, Any],
) -> tuple[AuditSettings, ModelSettings, TrainingSettings]:
    """Settings, each given the fields that it has; a name that none has is refused."""
    homes: tuple[type[BaseModel], ...] = (AuditSettings, ModelSettings, TrainingSettings)
    names = {name: home for home in reversed(homes) for name in home.model_fields}
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, 1)
            meant = f"; did you mean {near[0]}" if near else ""
            raise InputError(f"there is no setting {name}{meant}.", option=name)
    split = [{k: v for k, v in given.items() if names[k] is home} for home in homes]
    first, second, third = (validated(home, **own) for home, own in zip(homes, split, strict=True))
    return first, second, third  # type: ignore[return-value]
