"""``leakscope advise``: the cheapest change that keeps every record below a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import DataNow, Html, JsonPath, Options, numbers, with_options
from leakscope.cli.output import STDOUT, show, steps, table, warn, with_json, wrapped
from leakscope.errors import InputError
from leakscope.settings.advise import TARGET_DELTA, TARGET_FPR, AdviseSettings

if TYPE_CHECKING:
    from leakscope.results import Advice
    from leakscope.results.advice import AdviceOption, Target

SUMMARY = "The cheapest change that keeps every record below a target."
EPILOG = "Example: leakscope advise diabetes-run --target-advantage 0.2"

OWN_POINT = (
    "Asked at own: the target is met if the attacker asks once, about the record itself; noisy "
    "answers to other questions may tell more (--questions any). Asked at any: it is met whatever "
    "the attacker asks, or, with noise on the answers, for any one question."
)


@with_options(settings=Options(AdviseSettings, without=("folds", "repeats")))
def advise(
    *,
    run: Annotated[
        Path,
        typer.Argument(
            help="A run directory of leakscope audit, or its result.json.", metavar="RUN"
        ),
    ],
    target_advantage: Annotated[
        float | None,
        typer.Option(
            "--target-advantage",
            "--threshold-advantage",
            help="No record's advantage above this.",
            show_default=False,
        ),
    ] = None,
    target_tpr: Annotated[
        float | None,
        typer.Option(
            "--target-tpr",
            "--threshold-tpr",
            help=f"No record's true-positive rate at {100 * TARGET_FPR:g}% FPR above this.",
            show_default=False,
        ),
    ] = None,
    target_epsilon: Annotated[
        float | None,
        typer.Option(
            help=f"No record's epsilon at delta {TARGET_DELTA:g} above this.", show_default=False
        ),
    ] = None,
    data: DataNow = None,
    settings: AdviseSettings,
    html: Html = None,
    json_path: JsonPath = None,
) -> None:
    """Which changes keep every record below a target, and what each costs in error.

    Give one target.  It tries noise on the answers, a larger penalty (of a Gaussian process: more
    training noise), fewer features, dropping the most exposed records, and each of these together
    with noise on the answers.  Cross-validation says what each costs; the cheapest comes first.
    Of models of halves: options of the training that --try names, each trained as often as the
    audit did.
    """
    from leakscope.advising import advise as advise_on
    from leakscope.reporting.advice_page import write_advice
    from leakscope.reporting.pages import require_report_path

    target = _target(target_advantage, target_tpr, target_epsilon)
    if html is not None:
        require_report_path(html)
    with steps("Advice") as progress:
        found = advise_on(
            run,
            target,
            data=data,
            most_dropped=settings.most_dropped,
            questions=settings.questions,
            tries=_tries(settings.tries),
            random_state=settings.seed,
            on_stage=progress.stage,
        )
    warn(found)
    with with_json(found, json_path):
        if html is not None:
            write_advice(found, html)
    if json_path != STDOUT:
        show(_page(found) + "\n")
        if html is not None:
            show(f"\nPage: {html} (names no record)\n")


def _target(advantage: float | None, tpr: float | None, epsilon: float | None) -> Target:
    from leakscope.results.advice import Target

    given = {"advantage": advantage, "tpr": tpr, "epsilon": epsilon}
    targets = [Target(name, value) for name, value in given.items() if value is not None]  # type: ignore[arg-type]
    if len(targets) != 1:
        raise InputError("Give one target: --target-advantage, --target-tpr or --target-epsilon.")
    return targets[0]


def _tries(texts: Sequence[str]) -> dict[str, list[float]]:
    """``epochs=5,10`` as a name with its values, whole numbers kept whole."""
    found: dict[str, list[float]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not sign or not name.strip():
            raise InputError(f"--try needs NAME=VALUES, such as epochs=5,10, but it is {text!r}.")
        read = numbers(values, "--try")
        found.setdefault(name.strip(), []).extend(int(v) if v.is_integer() else v for v in read)
    return found


def _page(found: Advice) -> str:
    """What a person sees."""
    from leakscope.results.shown import certain, digits

    def measured(value: float | None) -> str:
        # Four decimals would hide what a small target is about.
        small = value is not None and 0.0 < value < 1e-3
        return digits(value, infinite=True) if epsilon or small else certain(value)

    own, unit, epsilon = found.own, found.unit, found.target.measure == "epsilon"
    whose = "" if found.model is None else f", {found.model.name}"
    levels = "the numbers of some are not confirmed."
    if own.confirmed:
        levels = f"the worst has {measured(own.worst)}, the median {measured(own.median)}."
    heading = (
        f"{found.dataset.name}{whose}: no {unit} may have {found.target_label} above "
        f"{found.target.value:g}; as audited {levels}"
    )
    error = "error" if found.loss == "squared error" else found.loss
    columns: dict[str, Callable[[AdviceOption], str]] = {
        "option": lambda option: option.name,
        "setting": lambda option: option.setting_words,
        "meets": lambda option: option.met_words,
        "asked at": lambda option: option.questions,
        "worst": lambda option: measured(option.worst),
        "interval": _between,
        "median": lambda option: measured(option.median),
        error: lambda option: digits(option.error, infinite=True),
        "cost": lambda option: _signed(option, option.cost, "+.3g"),
        "+-": lambda option: _signed(option, option.cost_stderr, ".1g"),
        "R2": lambda option: digits(option.r_squared, most=3),
        "accuracy": lambda option: "-" if option.accuracy is None else f"{option.accuracy:.1%}",
    }
    questions = {option.questions for option in (own, *found.options)}
    # Only classes have an accuracy, and only squared errors an R2.
    unused = {
        "asked at": questions == {"own"},
        "interval": own.worst_high is None,
        "accuracy": own.accuracy is None,
        "R2": own.r_squared is None,
        **dict.fromkeys((error, "cost", "+-"), own.error is None),
    }
    shown = {name: column for name, column in columns.items() if not unused.get(name)}
    rows = [[column(option) for column in shown.values()] for option in (own, *found.options)]
    parts = [wrapped(heading), table(list(shown), rows), wrapped(found.sentence)]
    parts += [wrapped(note) for option in found.options[:1] for note in option.notes]
    parts += [wrapped(_again(found.best))] if found.best is not None else []
    parts += [wrapped(f"{o.name}: {o.check.sentence}") for o in found.options if o.check]
    parts += [wrapped(OWN_POINT)] if questions == {"own", "any"} else []
    unmet = [option for option in found.options if not option.meets]
    parts += [wrapped(f"{o.name}: {' '.join([o.sentence, *o.notes])}") for o in unmet]
    parts += [wrapped(note) for note in found.notes]
    return "\n\n".join(filter(None, parts))


# What an audit's own settings are called, of those that advice changes.
AGAIN = {"C": "C", "alpha": "alpha", "output_sd": "answer_noise"}


def _again(option: AdviceOption) -> str:
    """How to audit the changed model; nothing where that is no matter of the audit's options."""
    settings = option.setting
    if not settings or not settings.keys() <= AGAIN.keys() or option.worst_high is not None:
        return ""
    words = " ".join(f"--set {AGAIN[name]}={value:.6g}" for name, value in settings.items())
    return f"To have it on record: audit again as before, with {words}, and decide on that run."


def _signed(option: AdviceOption, value: float | None, form: str) -> str:
    """A number of an option; of the audit's own setting there is none."""
    return "-" if value is None or not option.setting else f"{value:{form}}"


def _between(option: AdviceOption) -> str:
    """The ends of the worst record's interval."""
    low, high = option.worst_low, option.worst_high
    return "-" if low is None or high is None else f"{low:.2f} to {high:.2f}"
