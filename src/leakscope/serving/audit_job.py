"""What one job does: read, audit, write the report, and follow the noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from leakscope._numerics.json_numbers import without_non_finite
from leakscope.errors import InputError
from leakscope.serving.uploads import Upload
from leakscope.serving.wording import in_page_words
from leakscope.settings import (
    AuditSettings,
    DataSettings,
    KernelName,
    ModelName,
    ModelSettings,
    NoiseVariance,
)

if TYPE_CHECKING:
    from leakscope.auditing import AuditResult, ModelAuditResult
    from leakscope.data import Dataset

Text = str | None

# A field that was left empty is not given.
Penalty = Annotated[
    Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None,
    BeforeValidator(lambda value: None if value == "" else value),
]

# What is audited, in the words of the form; what is not here goes by the model's name.
STAND_IN, PROCESS = "stand_in", "process"
MODEL_WORDS = {
    STAND_IN: "fitted for you: ridge for a number, logistic for a class",
    "ridge": "ridge regression",
    "linear": "linear regression",
    "logistic": "logistic regression",
    "poisson": "Poisson regression, for counts",
    "kernel_ridge": "kernel ridge regression",
    PROCESS: "a Gaussian process (an infinitely wide network)",
}

LIBRARY_FILE = "vega.js"

DEFAULTS = AuditSettings()


class AuditRequest(DataSettings):
    """What the page asks for: an example or an upload, its columns, a model, a few settings.

    ``advantage`` asks for advice as well: what would bring every record's advantage there;
    ``verify`` for a verification, and ``against`` for a comparison with the audit of that id.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=1000)

    example: Text = None
    upload: Text = None
    ignore: tuple[str, ...] = Field(default=(), max_length=10_000)
    kernel: KernelName = DEFAULTS.kernel
    noise_variance: NoiseVariance = DEFAULTS.noise_variance
    model: ModelName | Literal["stand_in", "process"] = "stand_in"
    penalty: Penalty = None
    advantage: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    verify: bool = False
    against: Text = None

    def settings(self) -> AuditSettings:
        """The settings of the audit; those of the kernel are of a Gaussian process only."""
        if self.model != PROCESS:
            return AuditSettings()
        return AuditSettings(**{name: getattr(self, name) for name in FORM_SETTINGS})

    def chosen(self) -> ModelSettings:
        """The model, where one is named, with its penalty."""
        if self.model in (STAND_IN, PROCESS):
            return ModelSettings()
        given: dict[str, Any] = {"model": self.model}
        if self.penalty is not None:
            given["C" if self.model == "logistic" else "alpha"] = self.penalty
        return ModelSettings(**given)

    @property
    def stages(self) -> tuple[str, ...]:
        """What the job goes through, in order."""
        own = PROCESS_STAGES if self.model == PROCESS else FITTED_STAGES
        more = {"advise": self.advantage, "verify": self.verify, "set beside": self.against}
        return (*own, *(stage for stage, asked in more.items() if asked))


# A test compares them with those of the audit, which the server's own process does not import.
FITTED_STAGES = ("read", "check", "fit", "laws", "measure", "option", "report")
PROCESS_STAGES = (
    "read",
    "check",
    "kernel",
    "factorise",
    "sensitivity",
    "conditions",
    "measure",
    "compare",
    "explain",
    "report",
    "noise",
)

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
    examined
        What was examined, as a sentence.
    fitted
        Whether it was a fitted model.
    pages
        What else was asked for, as pages: ``advice``, ``verification``, ``comparison``.
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
    examined: str = ""
    fitted: bool = False
    pages: Mapping[str, Path] = field(default_factory=dict)


def run_audit(
    request: AuditRequest, upload: Upload | None, directory: Path, on_stage: Callable[[str], None]
) -> Outcome:
    """Audit what was asked for; everything that is written goes into ``directory``."""
    from leakscope.auditing import ModelAuditResult, audit_by_settings, write_run
    from leakscope.reporting import write_report
    from leakscope.results import read_run

    on_stage("read")
    dataset = _dataset(request, upload)
    result = audit_by_settings(dataset, request.settings(), request.chosen(), on_stage=on_stage)
    on_stage("report")
    own = isinstance(result, ModelAuditResult)
    if isinstance(result, ModelAuditResult):
        written = result.write(directory)
    else:
        written = write_run(result, directory, dataset=dataset)
    run = read_run(written)
    report, redacted = write_report(run), write_report(run, redact=True)
    keep_library(directory.parent)
    noise, why_not = _noise(result, dataset, on_stage)
    pages = _pages(request, result, directory, on_stage)
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
        examined=_examined(result),
        fitted=own,
        pages=pages,
    )


def _examined(result: AuditResult | ModelAuditResult) -> str:
    from leakscope.auditing import ModelAuditResult

    if not isinstance(result, ModelAuditResult):
        return "For a Gaussian process with this kernel; your model was not examined."
    if result.model.stand_in:
        return (
            f"{result.model.name} stands in for your model, which was not examined: choose its "
            "kind and penalty on the first page, or name its file on the command line."
        )
    return f"{result.model.name} was fitted on these data, and examined itself."


def _noise(
    result: AuditResult | ModelAuditResult, dataset: Dataset, on_stage: Callable[[str], None]
) -> tuple[dict[str, Any] | None, str | None]:
    """What the slider shows, or why there is none."""
    from leakscope.auditing import ModelAuditResult, audit_noise_path, noise_path_unavailable

    if isinstance(result, ModelAuditResult):
        return None, None
    on_stage("noise")
    why_not = noise_path_unavailable(result)
    if why_not is not None:
        return None, why_not
    try:
        path = audit_noise_path(result, dataset, on_level=lambda level: on_stage("noise"))
    except InputError as error:
        return None, in_page_words(str(error))
    return _plain(path.to_dict()), None


def _pages(
    request: AuditRequest,
    result: AuditResult | ModelAuditResult,
    directory: Path,
    on_stage: Callable[[str], None],
) -> dict[str, Path]:
    """Advice, a verification and a comparison, those that were asked for."""
    from leakscope.advising import AuditTarget, advise
    from leakscope.comparing import compare
    from leakscope.reporting import short_html, write_advice, write_comparison
    from leakscope.results import write_private
    from leakscope.verifying import verify

    found: dict[str, Path] = {}
    if request.advantage is not None:
        on_stage("advise")
        advice = advise(result, AuditTarget("advantage", request.advantage), random_state=0)
        found["advice"] = write_advice(advice, directory / "advice.html")
    if request.verify:
        on_stage("verify")
        found["verification"] = directory / "verification.html"
        write_private(found["verification"], short_html(verify(result)))
    if request.against is not None:
        on_stage("set beside")
        before = directory.with_name(f"run-{request.against}")
        comparison = compare(before, directory)
        found["comparison"] = write_comparison(comparison, directory / "comparison.html")
    return found


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
