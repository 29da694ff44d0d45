"""What advice looks like: options ranked by what they cost, each with its curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from leakscope.advising.applied_defence import Defence
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.released_error import ReleasedError
from leakscope.laws import Assumption

if TYPE_CHECKING:
    import pandas as pd

PRIVACY_OF_CHOOSING = (
    "To choose a defence by looking at private data has a privacy cost of its own, which no number "
    "here counts: what is chosen, and which records are dropped or merged, depends on the records."
)
CONSTANT_TARGET = (
    "The target is the same for every record: there is no variance to compare an error with, so "
    "that R2 has no value; errors and costs are in squared units of the target as used."
)
MODEL_FAMILY = (
    "The advice speaks of a Gaussian process with the audit's kernel, one draw of which is "
    "released; your model was not examined.  leakscope verify compares the audit with models that "
    "are really trained."
)


@dataclass(frozen=True)
class CurvePoint:
    """One setting on the way: the worst and the median unit's measure, and the error there.

    Examples
    --------
    >>> from leakscope.advising import CurvePoint
    >>> CurvePoint({"output_sd": 0.5}, worst=0.2, median=0.01, error=float("inf")).to_dict()
    {'setting': {'output_sd': 0.5}, 'worst': 0.2, 'median': 0.01, 'error': None}
    """

    setting: Mapping[str, float]
    worst: float
    median: float
    error: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "setting": dict(self.setting),
            "worst": _plain(self.worst),
            "median": _plain(self.median),
            "error": _plain(self.error),
        }


@dataclass(frozen=True)
class Option:
    """One way to meet the target, or the best that this way can do.

    Attributes
    ----------
    name, setting
        Which way, and its numbers by name.
    meets
        Whether the worst unit meets the target.
    worst, median
        The target's measure of the worst and the median unit.
    error, stderr
        Cross-validated squared error of a released answer, and the standard error over folds.
    cost, cost_stderr, split_stderr
        The error minus that of the audit's own setting on the same folds; its standard error
        over folds (other records) and over repetitions (another split); the last is None where
        there is one repetition.
    r_squared, accuracy
        One minus the error over the target's variance, None where the target does not vary; the
        share of right classes, None for a quantity.
    sentence, notes
        In words.
    questions
        ``any``: the target is met wherever the model is asked, also at many points at once where
        there is no output noise; ``own``: against one question at the record's own point.
    curve
        Leakage and error along the way.
    defence
        What to apply.
    released
        The error fold by fold.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> from leakscope.advising import AuditedModel, AuditTarget, advise
    >>> X = np.linspace(0.0, 3.0, 40)[:, None]
    >>> model = AuditedModel(X, np.sin(X[:, 0]), kernels.rbf(1.0), noise_variance=0.001)
    >>> best = advise(model, AuditTarget("advantage", 0.1)).best
    >>> best.meets, best.worst <= 0.1
    (True, True)
    """

    name: str
    setting: Mapping[str, float]
    meets: bool
    worst: float
    median: float
    cost: float
    cost_stderr: float
    split_stderr: float | None
    r_squared: float | None
    sentence: str
    curve: tuple[CurvePoint, ...]
    questions: Literal["own", "any"]
    defence: Defence
    released: ReleasedError
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """Cross-validated squared error of a released answer."""
        return self.released.error

    @property
    def stderr(self) -> float:
        """Of the error, over folds."""
        return self.released.stderr

    @property
    def accuracy(self) -> float | None:
        """Share of right classes, None for a quantity."""
        return self.released.accuracy

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite becomes ``None``."""
        numbers = {
            name: _plain(getattr(self, name))
            for name in (
                "worst",
                "median",
                "error",
                "stderr",
                "cost",
                "cost_stderr",
                "split_stderr",
                "r_squared",
                "accuracy",
            )
        }
        return {
            "name": self.name,
            "setting": {name: _plain(value) for name, value in self.setting.items()},
            "meets": self.meets,
            **numbers,
            "questions": self.questions,
            "sentence": self.sentence,
            "notes": list(self.notes),
            "curve": [point.to_dict() for point in self.curve],
        }


@dataclass(frozen=True)
class Advice:
    """Options, the cheapest that meets the target first, and those that cannot meet it last.

    Attributes
    ----------
    target
        What was asked for.
    unit
        ``record`` or ``group``.
    own
        The audit's own setting, priced the same way.
    options
        Ranked.
    warnings
        Always shown.
    notes
        What was not searched, and why.
    assumptions
        What the numbers rest on.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> from leakscope.advising import AuditedModel, AuditTarget, advise
    >>> X = np.linspace(0.0, 3.0, 40)[:, None]
    >>> model = AuditedModel(X, np.sin(X[:, 0]), kernels.rbf(1.0), noise_variance=0.001)
    >>> advice = advise(model, AuditTarget("advantage", 0.1))
    >>> sorted(advice.to_frame()["option"])[:3]
    ['as audited', 'dropping', 'fewer features']
    >>> "privacy cost of its own" in advice.warnings[0]
    True
    """

    target: AuditTarget
    unit: str
    own: Option
    options: tuple[Option, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    assumptions: tuple[Assumption, ...]

    @property
    def best(self) -> Option | None:
        """The cheapest option that meets the target."""
        first = self.options[0] if self.options else None
        return first if first is not None and first.meets else None

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.own.meets:
            return (
                f"The audit's own setting meets {self.target.words} already: the worst "
                f"{self.unit} has {self.target.shown(self.own.worst)}."
            )
        if self.best is None:
            return f"No option that was tried meets {self.target.words}."
        return f"Cheapest: {self.best.name}. {self.best.sentence}"

    def to_frame(self) -> pd.DataFrame:
        """A table, the audit's own setting first, then the options as ranked."""
        import pandas as pd

        rows = [
            {
                "option": option.name,
                "setting": setting_words(option.setting),
                "meets": option.meets,
                "questions": option.questions,
                "worst": option.worst,
                "median": option.median,
                "error": option.error,
                "cost": option.cost,
                "cost_stderr": option.cost_stderr,
                "r_squared": option.r_squared,
                "accuracy": option.accuracy,
            }
            for option in (self.own, *self.options)
        ]
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "target": {
                "measure": self.target.measure,
                "value": self.target.value,
                "fpr": self.target.fpr if self.target.measure == "tpr" else None,
                "delta": self.target.delta if self.target.measure == "epsilon" else None,
            },
            "unit": self.unit,
            "own": self.own.to_dict(),
            "options": [option.to_dict() for option in self.options],
            "sentence": self.sentence,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


def setting_words(setting: Mapping[str, float]) -> str:
    """A setting on one line.

    Examples
    --------
    >>> from leakscope.advising.advice import setting_words
    >>> setting_words({"dropped": 12, "output_sd": 0.25})
    'dropped 12, output sd 0.25'
    """
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in setting.items())


def _plain(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
