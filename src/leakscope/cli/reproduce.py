"""``leakscope reproduce``: the papers' figures, theory beside simulation, with verdicts.

The figures are made by the package `papers`, which stands beside ``src`` in a clone of the
repository and is not in the wheel.
"""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leakscope.cli.options import JsonPath
from leakscope.cli.output import STDOUT, answer, emit_json, say, show, steps, table
from leakscope.errors import InputError
from leakscope.settings.setting import key_values

if TYPE_CHECKING:
    from papers import Figure
    from papers.result import ReproductionDocument

SUMMARY = "The papers' figures made again, with a verdict on each claim."
EPILOG = "Example: leakscope reproduce linear-2a"

PAPERS = ("linear", "relu", "lasso", "lood")


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Figures, such as linear-2b; a paper's name for all of its; all.  Without a "
            "name: the list.",
            metavar="NAME...",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="The paper's size, or one of seconds to a minute.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="A folder for numbers, pictures and a page over all that it holds; figures that "
            "it has already are not made again.  [default: leakscope-runs/TIME-reproduce-NAME]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Make figures that DIR has already, too.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the paper's images (cifar10_car_plane.npz), for figures that use "
            "them.  [default: scikit-learn's digits]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Another value of one of the figure's parameters, such as n=500; repeatable.",
            metavar="NAME=NUMBER",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
    seed: Annotated[int, typer.Option(help="Random seed.", metavar="NUMBER")] = 0,
) -> None:
    """Make a figure again: its numbers, its picture, and a verdict on each claim of the paper.

    A claim holds, holds with the erratum (docs/errata.md), does not hold, or is inconclusive at
    this size; the verdict is computed from the numbers beside it.
    """
    if seed < 0:
        raise InputError(f"--seed must be zero or above, but it is {seed}.")
    _load_papers()
    from papers import figures

    if not names:
        _list(figures())
        return
    wanted = _wanted(names, figures())
    if json_path is not None and len(wanted) != 1:
        raise InputError(f"--json takes one figure, and these are {len(wanted)}; see --output.")
    knobs = _knobs(set_ or [])
    for figure in wanted:
        figure.turned(knobs)
    from leakscope.data.files import is_folder, require_usable_name
    from leakscope.results.run_directory import default_run_directory

    name = wanted[0].name if len(wanted) == 1 else "figures"
    folder = output if output is not None else default_run_directory("reproduce", name)
    require_usable_name(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --output needs a folder.")
    if data is not None and not is_folder(data):
        raise InputError(f"there is no folder {data} with data.")
    size: Literal["full", "quick"] = "full" if full else "quick"
    _make_all(wanted, size, folder, again, data, json_path, seed, knobs)


def _knobs(texts: list[str]) -> dict[str, float]:
    """``n=500`` and the like, by name."""
    try:
        return {name: float(value) for name, value in key_values(texts, "--set").items()}
    except (TypeError, ValueError):
        raise InputError("--set needs a name and a number, such as n=500.") from None


def _roots() -> tuple[Path, ...]:
    """Where a clone may be: around this very package (an editable install), or right here."""
    return Path(__file__).resolve().parents[3], Path.cwd()


def _load_papers() -> None:
    """Make ``import papers`` work, from the clone that has it; refuse where there is none.

    The package is loaded by its file, and the path stays as it is: a folder of that name
    elsewhere is not taken for it, and the clone's other folders do not become importable.
    """
    if hasattr(sys.modules.get("papers"), "find_figure"):
        return
    for root in _roots():
        door = root / "papers" / "__init__.py"
        if door.is_file() and (root / "src" / "leakscope" / "__init__.py").is_file():
            break
    else:
        raise InputError(
            "the papers' figures are not part of the installed package: clone leakscope's "
            "repository, and run `leakscope reproduce` or `make figures` in its folder."
        )
    spec = importlib.util.spec_from_file_location("papers", door)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["papers"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules["papers"])
    except BaseException:
        del sys.modules["papers"]
        raise


def _make_all(
    wanted: list[Figure],
    size: Literal["full", "quick"],
    folder: Path,
    again: bool,
    data: Path | None,
    json_path: str | None,
    seed: int,
    knobs: dict[str, float],
) -> None:
    from papers import figures, is_made, read_reproduction, write_gallery, write_reproduction
    from papers import reproduce as make

    how: dict[str, Any] = {"size": size, "random_state": seed, "data": data, "knobs": knobs}
    failed: dict[str, Exception] = {}
    for number, figure in enumerate(wanted, start=1):
        document = None if again else read_reproduction(figure.name, folder)
        if document is not None and is_made(document, **how):
            say(f"{figure.name} is in {folder} already (--again makes it anew).")
        else:
            try:
                with steps(f"{figure.name} ({number} of {len(wanted)})") as progress:
                    document = make(figure, **how, on_step=progress.stage)
            except Exception as error:
                # The others are made all the same; a figure asked for alone fails as it is.
                if len(wanted) == 1 or not isinstance(error, InputError):
                    raise
                failed[figure.name] = error
                say(f"{figure.name} was not made: {error}")
                continue
            _make_folder(folder)
            write_reproduction(document, folder)
        emit_json(document, json_path)
        if json_path != STDOUT:
            answer(page(document) + "\n")
    if folder.is_dir():
        there = [read_reproduction(figure.name, folder) for figure in figures()]
        write_gallery([document for document in there if document is not None], folder)
        if json_path != STDOUT:
            show(f"Pictures and numbers: {folder}\n")
    if failed:
        raise InputError(
            f"{len(failed)} of {len(wanted)} figures were not made: {', '.join(failed)}; the "
            "reasons stand above; the same command makes those that are missing."
        )


def page(document: ReproductionDocument) -> str:
    """What a person sees: the figure's name, each claim and what was found."""
    lines = [
        f"{document.name}: {document.title} ({document.provenance['where']}; "
        f"{document.timing['make']:.1f} s)",
        "",
    ]
    for claim in document.claims:
        verdict = claim.verdict + (f" ({claim.erratum})" if claim.erratum else "")
        lines += textwrap.wrap(f"{verdict}: {claim.text} [{claim.where}]", 92)
        lines += textwrap.wrap(claim.measured, 92, initial_indent="    ", subsequent_indent="    ")
    for note in document.notes:
        lines += ["", *textwrap.wrap(f"Note: {note}", 92)]
    return "\n".join([*lines, ""])


def _list(known: tuple[Figure, ...]) -> None:
    rows = [[figure.name, figure.where.ljust(12), figure.title] for figure in known]
    width = max(len(row[2]) for row in rows)
    rows = [[row[0], row[1], row[2].ljust(width)] for row in rows]
    answer(table(["figure", "where".ljust(12), "what".ljust(width)], rows) + "\n")


def _wanted(names: list[str], known: tuple[Figure, ...]) -> list[Figure]:
    from papers import find_figure

    found: dict[str, Figure] = {}
    for name in names:
        if name == "all" or name in PAPERS:
            found |= {f.name: f for f in known if name in ("all", f.paper)}
        else:
            found[name] = find_figure(name)
    return list(found.values())


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}.") from error
