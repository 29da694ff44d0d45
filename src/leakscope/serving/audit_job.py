"""What one job does: read, audit, write the report, and follow the noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, model_validator

from leakscope._numerics.json_numbers import without_non_finite
from leakscope.auditing.gate import limits_of
from leakscope.errors import InputError
from leakscope.results.kinds import named_models
from leakscope.serving.uploads import Upload
from leakscope.serving.wording import in_page_words
from leakscope.settings.audit import AUDIT_DEFAULTS, MODEL_DEFAULTS, AuditSettings, ModelSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.decide import Thresholds

if TYPE_CHECKING:
    from leakscope.data.datasets import Dataset
    from leakscope.results.audit import Audit

Text = str | None

# The choice of the form where no model is named, in its words; and a model that is like it.
STAND_IN, LIKE_STAND_IN = "stand_in", "ridge"
STAND_IN_WORDS = "fitted for you: ridge for a number, logistic for a class"

LIBRARY_FILE = "vega.js"


def model_words() -> dict[str, str]:
    """What can be audited, in the words of the form, by name."""
    return {STAND_IN: STAND_IN_WORDS, **{n: k.models[n] for n, k in named_models().items()}}


def model_fields() -> dict[str, tuple[str, ...]]:
    """The settings that the form asks for, of each model that can be named."""
    return {name: kind.form(name) for name, kind in named_models().items()}


class AuditRequest(DataSettings, Thresholds):
    """What the page asks for: an example or an upload, its columns, a model and its settings.

    ``given`` are the settings of the model, which stand beside the others in what is asked for.
    A threshold asks for advice as well: what would bring every record there;
    ``verify`` for a verification, and ``against`` for a comparison with the audit of that id.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=1000)

    example: Text = None
    upload: Text = None
    ignore: tuple[str, ...] = Field(default=(), max_length=10_000)
    model: str = STAND_IN
    given: dict[str, Any] = Field(default_factory=dict)
    verify: bool = False
    against: Text = None

    @model_validator(mode="before")
    @classmethod
    def _collected(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The model's settings together; a field that was left empty is not given."""
        names = {name for names in model_fields().values() for name in names}
        own = {name: value for name, value in values.items() if name in names}
        rest = {name: value for name, value in values.items() if name not in names}
        given = rest.get("given") or own
        return {**rest, "given": {k: v for k, v in given.items() if v not in ("", None)}}

    def settings(self) -> tuple[AuditSettings, ModelSettings]:
        """Those of the audit and of the model; one sentence where they cannot be used."""
        kinds = named_models()
        if self.model not in (STAND_IN, *kinds):
            raise InputError(f"There is no such model; there are {', '.join(kinds)}.")
        asked = () if self.model == STAND_IN else kinds[self.model].form(self.model)
        for name in self.given:
            if name not in asked:
                raise InputError(f"{name} does not go with the model that is chosen.")
        if self.model == STAND_IN:
            return AUDIT_DEFAULTS, MODEL_DEFAULTS
        found: tuple[AuditSettings, ModelSettings] = kinds[self.model].chosen(
            self.model, self.given
        )
        return found

    @property
    def stages(self) -> tuple[str, ...]:
        """What the job goes through, in order."""
        kind = named_models()[LIKE_STAND_IN if self.model == STAND_IN else self.model]
        moved = () if kind.slider is None else (kind.slider,)
        more = {"advise": limits_of(self), "verify": self.verify, "set beside": self.against}
        asked = (stage for stage, wanted in more.items() if wanted)
        return ("read", *kind.stages, "report", *moved, *asked)


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
        What the slider moves, as plain values; None where there is none.
    no_noise
        Why there is none, as a sentence.
    examined
        What was examined, as a sentence.
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
    pages: Mapping[str, Path] = field(default_factory=dict)


def run_audit(
    request: AuditRequest, upload: Upload | None, directory: Path, on_stage: Callable[[str], None]
) -> Outcome:
    """Audit what was asked for; everything that is written goes into ``directory``."""
    from leakscope.auditing.audit import audit
    from leakscope.reporting.writing import write_report
    from leakscope.results.reader import read_run

    on_stage("read")
    dataset = _dataset(request, upload)
    settings, chosen = request.settings()
    found = audit(dataset, settings=settings, chosen=chosen, on_stage=on_stage)
    on_stage("report")
    run = read_run(found.write(directory, dataset=dataset))
    report, redacted = write_report(run), write_report(run, redact=True)
    keep_library(directory.parent)
    noise, why_not = _slider(found, on_stage)
    pages = _pages(request, found, directory, on_stage)
    return Outcome(
        report=report,
        redacted=redacted,
        verdict=found.verdict,
        warnings=tuple(in_page_words(sentence) for sentence in found.warnings),
        records=found.dataset.records,
        features=found.dataset.features,
        unit=found.unit,
        noise=noise,
        no_noise=why_not,
        examined=_examined(found),
        pages=pages,
    )


def _examined(found: Audit) -> str:
    name = found.model.name[:1].upper() + found.model.name[1:]
    if found.model.stand_in:
        return (
            f"{name} stands in for your model, which was not examined: choose its kind and penalty "
            "on the first page, or name its file on the command line."
        )
    return f"{name} was fitted on these data, and that very model was examined."


def _slider(
    found: Audit, on_stage: Callable[[str], None]
) -> tuple[dict[str, Any] | None, str | None]:
    """What the slider shows, or why there is none; neither where there is nothing to move."""
    if found.about.slider is None:
        return None, None

    def tell(level: Any = None) -> None:
        on_stage(found.about.slider)

    tell()
    try:
        path = found.examined.path(on_level=tell)
    except InputError as error:
        return None, in_page_words(error)
    return (None, path) if isinstance(path, str) else (_plain(path.to_dict()), None)


def _pages(
    request: AuditRequest,
    audited: Audit,
    directory: Path,
    on_stage: Callable[[str], None],
) -> dict[str, Path]:
    """Advice, a verification and a comparison, those that were asked for."""
    found: dict[str, Path] = {}
    if limits_of(request):
        from leakscope.advising.advise import advise, target_of
        from leakscope.reporting.advice_page import write_advice

        on_stage("advise")
        advice = advise(audited, target_of(request), random_state=0)
        found["advice"] = write_advice(advice, directory / "advice.html")
    if request.verify:
        from leakscope.reporting.writing import short_html
        from leakscope.results.document import write_private
        from leakscope.verifying.verify import verify

        on_stage("verify")
        found["verification"] = directory / "verification.html"
        write_private(found["verification"], short_html(verify(audited)))
    if request.against is not None:
        from leakscope.comparing.comparison import compare
        from leakscope.reporting.comparison_page import write_comparison

        on_stage("set beside")
        before = directory.with_name(f"run-{request.against}")
        found["comparison"] = write_comparison(
            compare(before, directory), directory / "comparison.html"
        )
    return found


def keep_library(folder: Path) -> None:
    """Leave the charts' JavaScript for the server, once.

    Putting it together keeps Python's lock for seconds; here it is at hand from the report.
    """
    from leakscope.reporting.pages import chart_library
    from leakscope.results.document import write_private

    if not (folder / LIBRARY_FILE).exists():
        write_private(folder / LIBRARY_FILE, chart_library())


def _dataset(request: AuditRequest, upload: Upload | None) -> Dataset:
    from leakscope.data.sources import read_dataset, read_example

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
        raise InputError("That file is no longer there; upload it again.") from None
    except InputError as error:
        raise upload.named(error) from None
    return replace(
        dataset,
        name=PurePosixPath(upload.name).stem,
        steps=tuple(upload.without_path(step) for step in dataset.steps),
        # The file goes when the server does: nobody could read it again there.
        source=None,
    )


def _plain(value: Any) -> Any:
    """Numbers that JSON has, and ids as text that reads as it is written."""
    from leakscope.reporting.pages import shown_id

    plain = without_non_finite(value)
    for level in plain["levels"]:
        level["top"] = [[shown_id(entry[0]), *entry[1:]] for entry in level["top"]]
    return plain
