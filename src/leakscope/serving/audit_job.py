"""What one job does: read, audit, write the report, and follow the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from leakscope._numerics.json_numbers import without_non_finite
from leakscope.errors import InputError
from leakscope.serving.uploads import Upload
from leakscope.serving.wording import in_page_words
from leakscope.settings import AuditSettings, DataSettings, KernelName, NoiseVariance

if TYPE_CHECKING:
    from leakscope.data import Dataset

Text = str | None

LIBRARY_FILE = "vega.js"

DEFAULTS = AuditSettings()


class AuditRequest(DataSettings):
    """What the page asks for: an example or an upload, its columns, and a few settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=1000)

    example: Text = None
    upload: Text = None
    ignore: tuple[str, ...] = Field(default=(), max_length=10_000)
    kernel: KernelName = DEFAULTS.kernel
    noise_variance: NoiseVariance = DEFAULTS.noise_variance

    def settings(self) -> AuditSettings:
        """The settings of the audit; what the page does not ask for is at its default."""
        return AuditSettings(**{name: getattr(self, name) for name in FORM_SETTINGS})


# The settings of an audit that the page asks for.
FORM_SETTINGS = tuple(
    name for name in AuditRequest.model_fields if name in AuditSettings.model_fields
)


@dataclass(frozen=True)
class Outcome:
    """What a finished audit leaves for the page.

    Attributes
    ----------
    report, redacted
        The two report files.
    verdict, warnings
        In words.
    records, features, unit
        What was audited.
    noise
        :class:`leakscope.auditing.noise_path.NoisePath` as plain values; None where there is none.
    no_noise
        Why there is none, as a sentence.
    """

    report: Path
    redacted: Path
    verdict: str
    warnings: tuple[str, ...]
    records: int
    features: int
    unit: str
    noise: dict[str, Any] | None
    no_noise: str | None


def run_audit(
    request: AuditRequest, upload: Upload | None, directory: Path, on_stage: Callable[[str], None]
) -> Outcome:
    """Audit what was asked for; everything that is written goes into ``directory``."""
    from leakscope.auditing import (
        audit_dataset,
        audit_noise_path,
        noise_path_unavailable,
        write_run,
    )
    from leakscope.reporting import write_report
    from leakscope.results import read_run

    on_stage("read")
    settings = request.settings()
    dataset = _dataset(request, upload)
    result = audit_dataset(dataset, settings, on_stage=on_stage)
    on_stage("report")
    run = read_run(write_run(result, directory, dataset=dataset))
    report, redacted = write_report(run), write_report(run, redact=True)
    keep_library(directory.parent)
    on_stage("noise")
    noise, why_not = None, noise_path_unavailable(result)
    if why_not is None:
        try:
            path = audit_noise_path(result, dataset, on_level=lambda level: on_stage("noise"))
            noise = _plain(path.to_dict())
        except InputError as error:
            why_not = in_page_words(str(error))
    return Outcome(
        report=report,
        redacted=redacted,
        verdict=result.verdict,
        warnings=tuple(in_page_words(sentence) for sentence in result.warnings),
        records=result.dataset.records,
        features=result.dataset.features,
        unit=result.unit,
        noise=noise,
        no_noise=why_not,
    )


def keep_library(folder: Path) -> None:
    """Leave the charts' JavaScript for the server, once.

    Putting it together keeps Python's lock for seconds; here it is at hand from the report.
    """
    from leakscope.reporting import chart_library
    from leakscope.results import write_private

    if not (folder / LIBRARY_FILE).exists():
        write_private(folder / LIBRARY_FILE, chart_library())


def _dataset(request: AuditRequest, upload: Upload | None) -> Dataset:
    from leakscope.data import read_dataset, read_example

    if upload is None:
        if request.example is None:
            raise InputError("Choose an example, or upload a file.")
        return read_example(
            request.example, by=request.by, sample=request.sample, sample_seed=request.sample_seed
        )
    try:
        columns = {name: getattr(request, name) for name in DataSettings.model_fields}
        dataset = read_dataset(upload.path, **columns)
    except FileNotFoundError:
        raise InputError("That file is no longer held; upload it again.") from None
    except InputError as error:
        raise InputError(upload.without_path(str(error))) from None
    return replace(
        dataset,
        name=PurePosixPath(upload.name).stem,
        steps=tuple(upload.without_path(step) for step in dataset.steps),
        # The file goes when the server does: nobody could read it again there.
        source=None,
    )


def _plain(value: Any) -> Any:
    """Numbers that JSON has, and ids as text that reads as it is written."""
    from leakscope.reporting import shown_id

    plain = without_non_finite(value)
    for level in plain["levels"]:
        level["top"] = [[shown_id(entry[0]), *entry[1:]] for entry in level["top"]]
    return plain
