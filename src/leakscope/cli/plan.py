"""``leakscope plan linear|lasso|network``: leakage and error before training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.options import (
    DatasetFile,
    Example,
    JsonPath,
    Options,
    dataset_from,
    in_options,
    with_options,
)
from leakscope.cli.output import (
    STDOUT,
    Guarded,
    show,
    told_page,
    with_json,
    write_page,
)
from leakscope.errors import InputError
from leakscope.settings.audit import AuditSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.plan import (
    LassoDesignSettings,
    LassoPlanSettings,
    LinearDesignSettings,
    LinearPlanSettings,
    NetworkPlanSettings,
)
from leakscope.settings.setting import described

if TYPE_CHECKING:
    from leakscope.linear import DataModel, GaussianDesign
    from leakscope.results import ResultDocument

SUMMARY = "Before training: what a design gives away, and what meets a target."
LINEAR_EXAMPLE = "Example: leakscope plan linear --n 100 --p 400 --dim 3000 --sigma 1"
LASSO_EXAMPLE = (
    "Example: leakscope plan lasso --alpha 0.5 --rho 0.1 --sigma-xi 0.1 --lam 1 --sigma-eta 0.2"
)
NETWORK_EXAMPLE = "Example: leakscope plan network --example wine --activation relu --depths 1,5"
LINEAR, LASSO = Options(LinearDesignSettings), Options(LassoDesignSettings)
TABLE = Options(
    DataSettings,
    without=("id_column", "task", "group_column", "by", "sample", "sample_seed"),
)

Page = Annotated[
    Path | None,
    typer.Option(
        help="Write a page with the curves over every knob.",
        metavar="FILE.html",
        show_default=False,
    ),
]

NetworkPage = Annotated[
    Path | None,
    typer.Option(help="Write a page with the chart.", metavar="FILE.html", show_default=False),
]

app = typer.Typer(
    name="plan",
    help="Before training: how much a planned model would give away, and what it would cost to "
    "keep to a target.",
    epilog=LINEAR_EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _plan() -> None:
    pass


@app.command(
    "linear",
    cls=Guarded,
    short_help="Least squares or ridge on Gaussian records.",
    epilog=LINEAR_EXAMPLE,
)
@with_options(design=LINEAR, settings=Options(LinearPlanSettings))
def linear(
    *,
    design: LinearDesignSettings,
    settings: LinearPlanSettings,
    html: Page = None,
    json_path: JsonPath = None,
) -> None:
    """How much least squares or ridge would give away about a typical record, and its error.

    Coefficients are Gaussian, and so are records unless --model names another world.  Two
    attackers: one sees x0 and the prediction, one the record's label too.
    """
    outside = [level for level in settings.fpr if not 0.0 <= level <= 1.0]
    if outside:
        raise InputError(f"--fpr takes fractions from 0 to 1, but one is {outside[0]:g}.")
    along = _along(settings, html, "p")
    from leakscope.linear import OutputNoise
    from leakscope.planning import plan_linear
    from leakscope.planning.reachable import require_reachable

    told = {one.option: getattr(design, one.name) for one in LINEAR.described()}
    # The ridge has a bound of its own.
    require_reachable(
        {
            option: value
            for option, value in told.items()
            if option != "--ridge" and not isinstance(value, str)
        }
    )
    require_reachable({"--target-advantage": settings.target_advantage})
    noise = OutputNoise(design.output_noise, answers=design.answers, memoised=design.memoise)
    with in_options(linear):
        world = _world(design)
    _answer(
        linear,
        lambda: plan_linear(
            world,
            method=settings.method,
            noise=noise if design.output_noise > 0.0 else None,
            fpr=settings.fpr,
            draws=settings.draws,
            target_advantage=settings.target_advantage,
            attacker=settings.attacker,
            curve=along,
            records=settings.records,
            random_state=settings.seed,
        ),
        html,
        json_path,
    )


def _world(design: LinearDesignSettings) -> GaussianDesign | DataModel:
    """What is planned: Gaussian records, or another of the paper's worlds."""
    if design.model == "gaussian":
        from leakscope.linear import GaussianDesign

        return GaussianDesign(design.n, design.p, design.dim, design.sigma, ridge=design.ridge)
    if design.ridge > 0.0:
        raise InputError(f"--ridge belongs to --model gaussian; {design.model} is least squares.")
    from leakscope import linear as worlds

    sizes, convention = (design.n, design.p, design.dim), design.convention
    if design.model == "latent":
        return worlds.LatentSpace(*sizes, design.sigma, convention)
    if design.model == "fourier":
        return worlds.FourierSeries(*sizes, convention)
    return worlds.RandomRelu(*sizes, design.sigma, convention)


@app.command(
    "lasso",
    cls=Guarded,
    short_help="LASSO with objective or output perturbation.",
    epilog=LASSO_EXAMPLE,
)
@with_options(design=LASSO, table=TABLE, settings=Options(LassoPlanSettings))
def lasso(
    *,
    design: LassoDesignSettings,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A table from which alpha, rho, sigma_xi, lam and the signal are estimated, its "
            "columns and target standardised; --lam and --sigma-eta are then in its units.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    table: DataSettings,
    settings: LassoPlanSettings,
    html: Page = None,
    json_path: JsonPath = None,
) -> None:
    """How much a private LASSO would give away about a typical record, and its errors.

    For many records and coefficients, X ~ N(0, 1/p), in the limit.  A typical-case divergence is
    not a differential-privacy guarantee.
    """
    targets = {
        f"--target-{name}": getattr(settings, f"target_{name}")
        for name in ("error", "advantage", "epsilon")
    }
    for option, value in targets.items():
        if value is not None and not value > 0.0:
            raise InputError(f"{option} must be above zero, but it is {value:g}.")
    given = [option for option, value in targets.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"Give one target: {' or '.join(given)}, not several.")
    along = _along(settings, html, "lam")
    from leakscope.lasso import LassoSetting
    from leakscope.planning import plan_lasso, plan_lasso_of
    from leakscope.planning.reachable import require_reachable

    told = {one.option: getattr(design, one.name) for one in LASSO.described()}
    missing = [option for option, value in told.items() if value is None]
    if data is None and missing:
        raise InputError(
            f"{missing[0]} is missing; give it, or --data FILE --target COLUMN, from which alpha, "
            "rho, sigma_xi and lam are estimated."
        )
    if data is None and table.model_fields_set:
        name = described(DataSettings, sorted(table.model_fields_set)[0]).option
        raise InputError(f"{name} belongs to --data; name a file.")
    require_reachable(
        {option: value for option, value in told.items() if not isinstance(value, str)}
    )
    asked: dict[str, Any] = {
        "delta": settings.delta,
        "fpr": settings.fpr,
        "optimize": settings.optimize or html is not None,
        "target_error": settings.target_error,
        "target_advantage": settings.target_advantage,
        "target_epsilon": settings.target_epsilon,
        "curve": along,
    }
    if data is None:
        _answer(lasso, lambda: plan_lasso(LassoSetting(**dict(design)), **asked), html, json_path)
        return
    estimated = {"alpha", "rho", "sigma_xi"} & design.model_fields_set
    if estimated:
        option = described(LassoDesignSettings, sorted(estimated)[0]).option
        raise InputError(f"{option} is estimated from --data; leave one of them out.")
    read = dataset_from(table, data, None)
    _answer(
        lasso,
        lambda: plan_lasso_of(
            read,
            design.sigma_eta,
            lam=design.lam,
            mechanism=design.mechanism,
            noise=design.noise,
            **asked,
        ),
        html,
        json_path,
    )


@app.command(
    "network",
    cls=Guarded,
    short_help="Infinitely wide networks on your records: which gives away least.",
    epilog=NETWORK_EXAMPLE,
)
@with_options(
    data=Options(DataSettings, without=("group_column", "by")),
    networks=Options(NetworkPlanSettings),
    settings=Options(
        AuditSettings,
        without=tuple(
            name for name in AuditSettings.model_fields if name not in ("scaling", "noise_variance")
        ),
        texts={"noise_variance": "The noise on the target, in squared units of it as used."},
    ),
)
def network(
    *,
    file: DatasetFile = None,
    example: Example = None,
    data: DataSettings,
    networks: NetworkPlanSettings,
    settings: AuditSettings,
    html: NetworkPage = None,
    json_path: JsonPath = None,
) -> None:
    """How much networks of several activations, depths and forms would give away about records.

    Every network is infinitely wide and Bayesian (its NNGP kernel), on the same records: the
    largest and the median advantage beside the error of each label from the others.
    """
    _require_page(html)
    from leakscope.planning import plan_network

    dataset = dataset_from(data, file, example)
    _answer(network, lambda: plan_network(dataset, networks, settings), html, json_path)


def _require_page(html: Path | None) -> None:
    """Refuse, before any work is done, a file that no page can go to."""
    if html is not None:
        from leakscope.reporting.pages import require_report_path

        require_report_path(html)


def _along(settings: LinearPlanSettings | LassoPlanSettings, html: Path | None, knob: str) -> Any:
    """The curve that is asked for; a page has all of them."""
    if settings.curve is None and settings.settings is not None:
        raise InputError(f"--settings belongs to --curve: name the knob, such as --curve {knob}.")
    _require_page(html)
    if settings.curve is None:
        return None if html is None else "all"
    return settings.curve if settings.settings is None else {settings.curve: settings.settings}


def _answer(
    command: Callable[..., None],
    plan: Callable[[], ResultDocument],
    html: Path | None,
    json_path: str | None,
) -> None:
    """The plan for people, for machines, and as a page."""
    with in_options(command):
        found = plan()
    with with_json(found, json_path):
        if html is not None:
            write_page(found, html)
    if json_path != STDOUT:
        show(told_page(found) + "\n")
        if html is not None:
            show(f"\nPage: {html} ({html.stat().st_size / 1e6:.1f} MB)\n")
