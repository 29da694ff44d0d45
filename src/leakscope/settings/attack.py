"""The settings of ``leakscope attack``: the search for a query, networks, members of a pool."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from leakscope.settings.setting import Count, Natural, Probability, Reachable, setting

ReconstructForm = Literal["pieces", "printed", "moments"]
MarginKnowledge = Literal["margin", "leaked", "bounded"]


class ReconstructSettings(BaseModel):
    """How training records are reconstructed from a network."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    margin: float | None = setting(
        None,
        "The margin: the least y f(x) over the training records.",
        unset="the largest that fits the weights",
    )
    form: ReconstructForm = setting(
        "pieces",
        "pieces: every linear piece; printed: Algorithm 1 as printed; moments: what the "
        "multipliers allow.",
    )
    black_box: bool = setting(False, "Use the network's answers alone, not its weights.")
    tolerance: float = setting(1e-8, "How near the margin, as a share of it, counts as on it.")


class FitReconstructSettings(BaseModel):
    """What the attacker of a fitted model's missing record knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str | None = setting(
        None, "Of a fitted model: the column that it predicts.", metavar="COLUMN"
    )
    id_column: str | None = setting(
        None, "Of a fitted model: the column of ids.", option="--id", metavar="COLUMN"
    )
    missing: Count = setting(1, "Of a fitted model: how many records --known lacks.")
    noise: Annotated[float, Field(ge=0.0)] = setting(
        0.0, "Of a fitted model: the sd of normal noise on every coefficient."
    )
    kappa: Probability | None = setting(
        None,
        "Of a fitted model, with --noise: the chance of naming a record without the model.",
        unset="one in as many as there are records",
    )


class MembershipSettings(BaseModel):
    """What the attacker of a network's members knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    knowledge: MarginKnowledge | None = setting(
        None,
        "What the attacker knows: margin (its value), leaked (points one of which was trained on) "
        "or bounded (a lower bound of the margin).",
        unset="what --margin, --leaked, --lower-bound or --data say, else that one of the queries "
        "was trained on",
    )
    margin: float | None = setting(
        None,
        "The margin: the least y f(x) over the training records (margin only).",
        unset="that of --data",
    )
    lower_bound: float | None = setting(
        None, "What the margin exceeds (bounded only).", unset="1/e"
    )
    tolerance: float = setting(
        0.5, "How far from the margin, as a share of it, counts as on it (margin and leaked only)."
    )


class PoolAttackSettings(BaseModel):
    """What the attacker of a fitted model's members knows of it and of its records."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str | None = setting(
        None, "With --pool: the column that the model predicts.", metavar="COLUMN"
    )
    id_column: str | None = setting(
        None, "With --pool: the column of ids.", option="--id", metavar="COLUMN"
    )
    answers: str | None = setting(
        None,
        "With --pool: the column of the queries with the model's answers, predictions or "
        "probabilities of the record's own class.",
        metavar="COLUMN",
        unset="those of the model's file",
    )
    C: Reachable | None = setting(None, "With --pool: inverse penalty of logistic.", option="--C")
    alpha: Reachable | None = setting(None, "With --pool: penalty of ridge or poisson.")
    fraction: Probability | None = setting(
        None, "With --pool: the share of the pool that the model was trained on.", unset="0.5"
    )
    prior: Probability = setting(
        0.5, "With --pool: how likely a query was a member before its answer was seen."
    )


RECONSTRUCT_DEFAULTS = ReconstructSettings()
FIT_RECONSTRUCT_DEFAULTS = FitReconstructSettings()
MEMBERSHIP_DEFAULTS = MembershipSettings()
POOL_ATTACK_DEFAULTS = PoolAttackSettings()


SearchObjective = Literal["kl", "mean_distance"]


def _rising(box: tuple[float, float]) -> tuple[float, float]:
    if not box[0] < box[1]:
        raise PydanticCustomError("box", "input should rise from LOW to HIGH")
    return box


class QuerySettings(BaseModel):
    """The settings of a query search."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queries: Count = setting(1, "How many queries are asked together.")
    objective: SearchObjective = setting(
        "kl",
        "What a query should make large: kl (how much gives the record away) or mean_distance (how "
        "far the record moves the mean answer).",
    )
    starts: Count = setting(
        8, "How many starting points, every second one near a record that the attacker knows."
    )
    steps: Count = setting(300, "Steps from each start.")
    box: Annotated[tuple[float, float], AfterValidator(_rising)] | None = setting(
        None,
        "Least and largest value of a query's features in the file's units, such as 0,255.",
        metavar="LOW,HIGH",
        unset="each feature's range",
    )
    normalise_channels: Count | None = setting(
        None,
        "The model normalises its inputs by the mean and deviation of its own training set, for so "
        "many channels (3 for RGB pixels, channels last), in place of scaling.",
    )
    seed: Natural = setting(0, "Seed of the starts.", metavar="NUMBER")


QUERY_DEFAULTS = QuerySettings()
