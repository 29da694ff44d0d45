"""The settings of ``leakscope plan``: the design that is planned, and what is asked about it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from leakscope.settings.measure import MEASURE_DEFAULTS
from leakscope.settings.setting import Natural, setting

LinearMethod = Literal["exact", "asymptotic", "simulated"]
LinearModel = Literal["gaussian", "latent", "fourier", "relu"]
LinearConvention = Literal["text", "published"]
LinearAttacker = Literal["label_known", "label_hidden"]
LinearKnob = Literal["p", "ridge", "noise", "noise_nonmembers", "answers", "all"]
LassoMechanism = Literal["objective", "output"]
LassoNoise = Literal["gaussian", "laplace"]
LassoDivergence = Literal["joint", "component_wise", "printed"]
LassoKnob = Literal["sigma_eta", "lam", "all"]


class LinearDesignSettings(BaseModel):
    """Least squares or ridge on Gaussian records: the training set, the model, its answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n: int = setting(..., "Records in the training set.")
    p: int = setting(..., "Features the model uses.")
    dim: int = setting(
        ...,
        "All features there are, D; of a latent space its latent features, of a Fourier series its "
        "times.",
    )
    model: LinearModel = setting(
        "gaussian",
        "Gaussian records, or the paper's other worlds: latent (space), fourier (series) or relu "
        "(random features).",
    )
    convention: LinearConvention = setting(
        "text",
        "Of the other worlds: as the paper's text has them, or as the code behind its published "
        "figures.",
    )
    sigma: float = setting(1.0, "Standard deviation of the label noise.")
    ridge: float = setting(0.0, "lambda in X'X + n lambda I; 0 is (minimum-norm) least squares.")
    output_noise: float = setting(0.0, "Standard deviation of noise on every answer.")
    answers: int = setting(1, "Fresh answers the attacker gets to one question.")
    memoise: bool = setting(False, "A repeated question gets the same answer, noise and all.")


class LinearPlanSettings(BaseModel):
    """What is asked about a linear design."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: LinearMethod = setting(
        "exact",
        "exact (finite n), asymptotic (Thm 3.2 and corrected Thm 4.1) or simulated (whole "
        "matrices).",
    )
    target_advantage: float | None = setting(
        None, "Find the largest p, and the least noise on every answer, that meet it."
    )
    attacker: LinearAttacker = setting(
        "label_known", "Whom the target is met against: label_known or label_hidden."
    )
    curve: LinearKnob | None = setting(
        None,
        "Leakage and error along a knob: p, ridge, noise (on every answer), noise_nonmembers "
        "(Lemma 4.4), answers or all.",
        metavar="KNOB",
    )
    settings: tuple[float, ...] | None = setting(
        None, "The knob's settings, separated by commas.", unset="a range"
    )
    fpr: tuple[float, ...] = setting(
        MEASURE_DEFAULTS.fpr, "False-positive rates, as fractions separated by commas."
    )
    draws: int | None = setting(None, "Random designs.", unset="4000 exact, 200 simulated")
    records: int = setting(20, "Records that the other worlds are averaged over.")
    seed: Natural = setting(0, "Seed of the random designs.", metavar="NUMBER")


class LassoDesignSettings(BaseModel):
    """A private LASSO in the limit of many records and coefficients."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alpha: float | None = setting(None, "n/p, records per coefficient.", unset="that of --data")
    rho: float | None = setting(
        None, "Share of non-zero true coefficients.", metavar="FRACTION", unset="that of --data"
    )
    sigma_xi: float | None = setting(
        None,
        "Standard deviation of the label noise; the unit is that of a non-zero coefficient.",
        unset="that of --data",
    )
    lam: float | None = setting(
        None,
        "lambda in ||y - Xb||^2/2 + lambda ||b||_1.",
        unset="that of least error on --data",
    )
    sigma_eta: float = setting(..., "Standard deviation of the privacy noise.")
    mechanism: LassoMechanism = setting(
        "objective", "objective (noise times b in the objective) or output (noise on b)."
    )
    noise: LassoNoise = setting(
        "gaussian", "Law of the privacy noise: gaussian, or laplace of the same sd."
    )


class LassoPlanSettings(BaseModel):
    """What is asked about a private LASSO."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    optimize: bool = setting(
        False,
        "Find the noise with the best balance of error and divergence (nearest to the origin), and "
        "the curve.",
    )
    target_error: float | None = setting(
        None, "Find lambda, noise and mechanism with the least KL at this error or less."
    )
    target_advantage: float | None = setting(
        None, "The same with the least error at this advantage or less."
    )
    target_epsilon: float | None = setting(
        None, "The same at this average epsilon or less, at the smallest --delta."
    )
    delta: tuple[float, ...] = setting(
        (1e-3, 1e-5), "Where the average epsilon is given, separated by commas."
    )
    fpr: tuple[float, ...] = setting(
        MEASURE_DEFAULTS.fpr, "False-positive rates, as fractions separated by commas."
    )
    curve: LassoKnob | None = setting(
        None, "Error and leakage along a knob: sigma_eta, lam or all.", metavar="KNOB"
    )
    settings: tuple[float, ...] | None = setting(
        None, "The knob's settings, separated by commas.", unset="a range"
    )


NETWORK_FORMS = ("plain", "residual", "convolution", "pooling")


def _forms(names: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in NETWORK_FORMS]
    if unknown:
        raise PydanticCustomError(
            "form", f"there is no form {unknown[0]!r}; there are {', '.join(NETWORK_FORMS)}"
        )
    return names


class NetworkPlanSettings(BaseModel):
    """Which networks are compared, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    activations: tuple[str, ...] = setting(
        ("relu", "gelu", "erf"),
        "Activation functions, such as relu, gelu, erf or tanh; repeatable.",
        option="--activation",
        metavar="NAME",
        min_length=1,
    )
    # Compiling grows faster than the depth: 16 layers take seconds, 64 minutes.
    depths: tuple[Annotated[int, Field(ge=1, le=32)], ...] = setting(
        (1, 3, 10), "Hidden layers, separated by commas.", metavar="LIST", min_length=1
    )
    forms: Annotated[tuple[str, ...], AfterValidator(_forms)] = setting(
        ("plain", "residual"),
        "plain, residual (skips around hidden layers), and of pictures convolution or pooling "
        "(convolutions, flattened or averaged over pixels); repeatable.",
        option="--form",
        metavar="NAME",
        min_length=1,
    )
    equal_scale: bool = setting(
        True,
        "Multiply each kernel to a mean prior variance of 1, so that shapes are compared and not "
        "sizes; --no-equal-scale keeps each network's own, with weight variance 2 and no bias.",
    )


NETWORK_PLAN_DEFAULTS = NetworkPlanSettings()
LINEAR_PLAN_DEFAULTS = LinearPlanSettings()
LASSO_PLAN_DEFAULTS = LassoPlanSettings()
