"""What holds for every test: examples that repeat, and no silence about what was skipped.

Hypothesis draws the same examples every time: a test must not pass or fail by chance.

Tests that share a fixture of their module run on one worker (``pytest --dist loadgroup``).

A test that needs a component, such as a browser or PyTorch, is skipped where that is missing, and
the last line of the summary says how to have it run.  Under ``LEAKSCOPE_REQUIRE_ALL=1``, as in
``.ci/run``, such a skip is a failure: a green run then means that every test has run.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")

# pytest raises the log level, at which older JAX says on stderr which accelerators are absent.
logging.getLogger("jax").setLevel(logging.WARNING)

REQUIRE_ALL = "LEAKSCOPE_REQUIRE_ALL"

# What a skip says, and how the test is had to run.  A skip that says nothing of these is for want
# of something that only the platform can give, such as a control group of one's own.
COMPONENTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("chromium",), "apt-get install chromium"),
    (("torch",), "pip install torch (the CPU build is enough)"),
    (("playwright", "distributed", "dask", "polars", "PIL", "safetensors", "cvxpy",
      "lightgbm", "xgboost"),
     "pip install 'leakscope[test]'"),
)  # fmt: skip


def remedy_of(reason: str) -> str | None:
    """How a skipped test is had to run; None where the platform itself cannot run it."""
    low = reason.lower()
    for words, remedy in COMPONENTS:
        if any(word.lower() in low for word in words):
            return remedy
    return None


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    found = report.longrepr
    text = str(found[2]) if isinstance(found, tuple) else str(found)
    return text.removeprefix("Skipped: ")


def refused(reason: str) -> str | None:
    """Why a skip is a failure here; None where it is not."""
    if os.environ.get(REQUIRE_ALL, "") in ("", "0"):
        return None
    remedy = remedy_of(reason)
    return None if remedy is None else f"{REQUIRE_ALL} is set, and {reason}; {remedy}."


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a fixture of their module or folder go to one worker, which makes it once.

    Where the fixture has parameters, each of its values is a group of its own.
    """
    for item in items:
        found = getattr(item, "_fixtureinfo", None)
        shared = {
            name: made[-1]
            for name, made in (found.name2fixturedefs if found else {}).items()
            if made[-1].scope in ("module", "session") and made[-1].baseid not in ("", "tests")
        }
        if shared:
            chosen = getattr(getattr(item, "callspec", None), "indices", {})
            values = [str(chosen[name]) for name in shared if name in chosen]
            widest = min((made.baseid for made in shared.values()), key=len)
            item.add_marker(pytest.mark.xdist_group("-".join([widest, *values])))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    outcome = yield
    _refuse(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    outcome = yield
    _refuse(outcome.get_result())


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    # An expected failure is reported as skipped too.
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        wrong = refused(skip_reason(report))
        if wrong is not None:
            report.outcome, report.longrepr = "failed", wrong


def pytest_terminal_summary(terminalreporter: Any) -> None:
    remedies = Counter(
        remedy_of(skip_reason(report)) for report in terminalreporter.stats.get("skipped", [])
    )
    said = [
        f"{count} {'modules or tests' if count > 1 else 'module or test'} "
        + ("that this platform cannot run" if remedy is None else f"(to run: {remedy})")
        for remedy, count in remedies.items()
    ]
    if said:
        terminalreporter.write_line(f"Skipped: {'; '.join(said)}.")
    _frozen_numbers(terminalreporter)


def _frozen_numbers(terminalreporter: Any) -> None:
    """How far the numbers of tests/reference/frozen.npz moved, by engine."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    rows = [dict(report.user_properties).get("frozen") for report in reports]
    largest: dict[str, tuple[float, float]] = {}
    for row in filter(None, rows):
        share, apart = largest.get(row["engine"], (0.0, 0.0))
        largest[row["engine"]] = (max(share, row["share"]), max(apart, row["difference"]))
    if largest:
        said = [f"{name} {apart:.1e} ({share:.2g})" for name, (share, apart) in largest.items()]
        before, now, new = (sum(row["confirmed"][i] for row in rows if row) for i in range(3))
        terminalreporter.write_line(
            f"Frozen numbers, largest difference (share of what is tolerated): {', '.join(said)}. "
            f"Confirmed: {before:,} frozen, {now:,} now, {new:,} of them new."
        )


@pytest.fixture(autouse=True, scope="session")
def few_halves() -> Iterator[None]:
    """Without ``--models`` four models are trained; tests of their number undo that."""
    from leakscope.halves import train

    usual, train.USUAL, train.MOST = (train.USUAL, train.MOST), 4, 4
    yield
    train.USUAL, train.MOST = usual
