"""Files of any size: the linear Gaussian process of their records, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from leakscope.data.datasets import Dataset
from leakscope.errors import InputError
from leakscope.results.advice import Target
from leakscope.results.audit import Audit, ExaminedModel
from leakscope.results.process_words import kernel_in_words
from leakscope.subjects.laws import Rows, UnitLaws
from leakscope.subjects.pricing import Folds, Terms
from leakscope.subjects.process.changes import OWN_POINTS, not_resolved
from leakscope.subjects.process.subject import (
    ProcessLaws,
    laws_of_separation,
    level_sentence,
    whose_noise,
)
from leakscope.subjects.stream import changes
from leakscope.subjects.stream.answers import AnsweredInFiles, answered_laws
from leakscope.subjects.stream.changes import StreamLaws
from leakscope.subjects.stream.details import StreamDetails
from leakscope.subjects.subject import Asked, Stages, Wanted, stored_provenance

TOO_MANY = (
    "the records of this audit were streamed and are not held in memory; audit a sample for that"
)


class Stream(AnsweredInFiles):
    """A streamed audit with the answers about every record, some at a time."""

    name = "stream"
    file_kind = "audit_streamed"
    words = "a Gaussian process on streamed records"
    basis = "assumed"
    ranked_by = "kl"
    screen = ("kl", "advantage", "auc", "leverage", "trusted")
    page = ("kl", "advantage", "auc", "mean_distance", "leverage", "trusted")
    Details = StreamDetails

    def __init__(self, audit: Audit, directory: Path) -> None:
        self.audit, self.directory = audit, directory
        self.ids = audit.record_ids
        self.dataset, self.settings = audit.dataset, audit.settings

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        """Never of what is in memory; files are streamed by :func:`audit_streamed`."""
        return False

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> Stream:
        """There is none in memory."""
        raise InputError(f"{TOO_MANY}.")

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> Stream:
        """The answers, which lie beside the result."""
        place = audit.directory
        if place is None:
            raise InputError(
                "the answers of a streamed audit lie in its run directory; name that directory."
            )
        return cls(audit, place)

    @property
    def model(self) -> ExaminedModel:
        """The kernel and the noise, in words."""
        return self.audit.model

    def laws(self, stage: Stages) -> StreamLaws:
        """Of all records, which are read some at a time."""
        return StreamLaws(
            trust=self.audit.trust,
            provenance=stored_provenance(self.audit),
            stream=self,
        )

    def blocks(self) -> Iterator[ProcessLaws]:
        """The laws of every record, in the records' order, some at a time."""
        for found in answered_laws(self.directory, self.audit):
            yield laws_of_separation(found)

    # What can be changed of it, and what that costs (:mod:`leakscope.subjects.stream.changes`).

    def for_advice(self, wanted: Wanted) -> Stream:
        """As it is; nothing is trained again."""
        changes.require_usual(wanted.settings)
        super().for_advice(wanted)
        return self

    def folds(self, wanted: Wanted) -> None:
        """None: the price is by leave-one-out."""
        return

    def held_out(self, folds: Folds | None, kept: Rows | None = None) -> changes.LeaveOneOut:
        """What the others predict of every record, and how surely, which is among the answers."""
        return changes.leave_one_out(self.blocks())

    def terms(self, wanted: Wanted, folds: Folds | None) -> Terms:
        """Squared error of draws, by leave-one-out."""
        return changes.TERMS

    def cannot_tell(self, laws: UnitLaws, target: Target) -> str:
        """What float64 does not resolve."""
        which = f"{laws.untrusted:,} of {laws.units:,} records"
        return not_resolved(which, self.audit.details.noise_variance, target)

    def noise_notes(self, laws: UnitLaws, target: Target) -> tuple[str, ...]:
        """A linear kernel has no bound elsewhere."""
        return (f"{OWN_POINTS}, and with this kernel there is no bound on how much.",)

    def holds_at(self, noise: float) -> Literal["own", "any"]:
        """Without noise on the answers no question tells more."""
        return "own" if noise > 0.0 else "any"

    @classmethod
    def answer(cls, audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
        """What was examined, how exposed records are at which noise, and who is so at both."""
        told: StreamDetails = audit.details
        other = told.noise_of_data
        levels = level_sentence(
            told.noise_variance,
            told.worst.get("advantage") or 0.0,
            audit.median_advantage or 0.0,
            other,
        )
        examined = (
            f"A Gaussian process ({kernel_in_words(told.kernel)}) on {audit.dataset.name}, "
            f"{audit.dataset.records:,} records, streamed; your model was not examined."
        )
        words = (
            "Read the ranks: how exposed records are depends on the noise, "
            f"{whose_noise(told.noise_chosen_by)}: {levels} 99.9% of all records have an advantage "
            f"of at most {told.advantage_quantiles.get('0.999', np.nan):.2g}"
        )
        if other is not None:
            words += f", and {other.top_ten_kept} of the ten most exposed are so at both"
        words += "."
        if told.untrusted:
            words += f" float64 does not resolve {told.untrusted} records: raise noise_variance."
        return (examined, words)

    @classmethod
    def attacker(cls, audit: Audit) -> str:
        """What other fits give away."""
        return "A deterministic fit gives more away than one draw of this process."

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """What float64 does not resolve."""
        return "not resolved by float64", "raise --noise-variance"

    @classmethod
    def facts(cls, audit: Audit) -> dict[str, Any]:
        """The kernel as used, and the noise."""
        told = audit.details
        return {
            **{f"kernel {name}": value for name, value in told.kernel.items()},
            "noise_variance as used": told.noise_variance,
        }
