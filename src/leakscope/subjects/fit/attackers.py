"""The same fit against three attackers: an outsider, LiRA's, and an insider.

A number belongs to an attacker.  The more of the other records they know, the less hides a record:
an attacker who knows all of them can tell for certain, where the fit is deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from numpy.typing import NDArray

from leakscope import fitted
from leakscope.errors import InputError
from leakscope.fitted.problem import FittedModel
from leakscope.results.audit import AgainstAttacker
from leakscope.settings.decide import ATTACKERS
from leakscope.subjects.laws import summed_up

# The others are worked out where one is quick: records times squared coefficients of one output,
# records times coefficients of several classes.
MOST_WORK, MOST_WORK_OF_CLASSES = 2e9, 2e6


def against_attackers(
    model: FittedModel,
    laws: fitted.FittedLaws,
    columns: Mapping[str, NDArray[Any]],
    noise: float = 0.0,
) -> list[AgainstAttacker]:
    """One row for each attacker; that of the audit alone where the others would take long.

    ``columns`` are the measures of the audit's own ``laws``.
    """
    asked = (laws.question, laws.fraction)
    named = {(question, fraction): name for name, (question, fraction, _) in ATTACKERS.items()}
    if laws.question == "known_others":
        return []
    wanted = list(named) if _quick(model) else []
    if asked not in wanted:
        wanted.append(asked)
    rows = []
    for question, fraction in wanted:
        found, measured = laws, columns
        if (question, fraction) != asked:
            try:
                found = fitted.laws_of(
                    model, question=cast(Any, question), fraction=fraction, observes=laws.observes
                )
                found = found.noised(noise)
                if laws.check is not None:
                    found = found.checked_as(laws.check)
                measured = {}
            except InputError:
                # Such a training set determines no fit; the others say enough.
                continue
        rows.append(_row(named.get((question, fraction), "as asked"), found, measured))
    return rows


def _quick(model: FittedModel) -> bool:
    problem = model.problems[0]
    if problem.X is None:
        return problem.records**3 <= MOST_WORK
    records, features = problem.X.shape
    if problem.loss == "softmax":
        return bool(records * features * problem.classes <= MOST_WORK_OF_CLASSES)
    return bool(len(model.problems) * records * min(features, records) ** 2 <= MOST_WORK)


def _row(
    name: str, laws: fitted.FittedLaws, columns: Mapping[str, NDArray[Any]]
) -> AgainstAttacker:
    return AgainstAttacker(
        attacker=name,
        question=laws.question,
        fraction=laws.fraction,
        **summed_up(laws.law_pair(), laws.confirmed, columns),
    )
