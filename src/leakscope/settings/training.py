"""The settings of an audit of a training: what is trained, how often, and where."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from leakscope.settings.setting import Positive, setting

HalfModelCount = Annotated[int, Field(ge=2, multiple_of=2)]


class TrainingSettings(BaseModel):
    """What is trained on halves of the records.

    Examples
    --------
    >>> from leakscope.settings import TrainingSettings
    >>> TrainingSettings().models
    4
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: str | None = setting(
        None,
        "Examine your own training: a function train(X, y, seed) -> predictor, or an estimator "
        "such as sklearn.ensemble:RandomForestClassifier.",
        metavar="MODULE:NAME",
    )
    models: HalfModelCount = setting(
        4, "With --train: how many models to train, each on half of the records."
    )
    time_limit: Positive | None = setting(
        None, "With --train: seconds that one model may take.", metavar="SECONDS", unset="no limit"
    )
    keep: str | None = setting(
        None,
        "With --train: where the models' answers are kept, so that nothing is trained twice.",
        metavar="DIR",
        unset="leakscope-runs/models-NAME-DIGEST",
    )
    workers: int | None = setting(None, "With --train: train in this many processes.")
    scheduler: str | None = setting(
        None, "With --train: train on the Dask cluster at this address.", metavar="ADDRESS"
    )


TRAINING_DEFAULTS = TrainingSettings()
