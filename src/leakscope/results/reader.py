"""Reading a result file back: which kinds there are, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from leakscope.data import read_json
from leakscope.errors import InputError
from leakscope.results.advice import Advice
from leakscope.results.audit import Audit
from leakscope.results.audit_files import as_audit, is_audit
from leakscope.results.comparison import Comparison
from leakscope.results.decision import Decision
from leakscope.results.document import SCHEMA_VERSION, ResultDocument
from leakscope.results.measurement import Measurement
from leakscope.results.membership import MembershipAttack, ModelMembershipAttack
from leakscope.results.models_measurement import ModelsMeasurement
from leakscope.results.plan import LassoPlan, LinearPlan
from leakscope.results.query import QueryAttack
from leakscope.results.reconstruction import ReconstructAttack
from leakscope.results.run_digests import require_unchanged
from leakscope.results.verification import Verification
from leakscope.settings import first_problem

OLD_COUNT = "could_not_be_told"

KINDS: dict[str, type[ResultDocument]] = {
    "audit": Audit,
    "compare": Comparison,
    "measure": Measurement,
    "measure_models": ModelsMeasurement,
    "attack_query": QueryAttack,
    "attack_reconstruct": ReconstructAttack,
    "attack_membership": MembershipAttack,
    "attack_membership_model": ModelMembershipAttack,
    "plan_linear": LinearPlan,
    "plan_lasso": LassoPlan,
    "verify": Verification,
    "advice": Advice,
    "decision": Decision,
}

# In digits; a longer one is no version.
LONGEST_VERSION = 9


def read_result(
    path: str | Path, kinds: Mapping[str, type[ResultDocument]] = KINDS
) -> ResultDocument:
    """Read a result file and check it.

    ``kinds`` are those that may be read, by the name that the file gives; all of leakscope's own
    where left out.

    Raises
    ------
    InputError
        Where it is not one, or was written by a newer leakscope.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope import results
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "result.json")
    ...     _ = file.write_text('{"schema_version": "99", "kind": "audit"}')
    ...     results.read_result(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: ... was written by a newer leakscope (schema_version 99; this \
one reads up to 1): update leakscope to read it.
    """
    path = Path(path)
    content = read_json(path)
    require_unchanged(path.parent, (path.name,))
    version = str(content.get("schema_version", "")) if isinstance(content, dict) else ""
    kind = None
    if isinstance(content, dict):
        kind = Audit if is_audit(content) else kinds.get(str(content.get("kind")))
    if not (version.isdecimal() and len(version) <= LONGEST_VERSION):
        raise InputError(f"{path} is not a leakscope result: it has no schema_version.")
    if int(version) > int(SCHEMA_VERSION):
        raise InputError(
            f"{path} was written by a newer leakscope (schema_version {version}; this one reads "
            f"up to {SCHEMA_VERSION}): update leakscope to read it."
        )
    unknown = InputError(f"{path} is not a result of a known kind ({', '.join(kinds)}).")
    if kind is None:
        raise unknown
    content = _as_now(content)
    if kind is Audit:
        content = as_audit(content)
    try:
        # Strictly: leakscope writes numbers as numbers, and null for what is not finite.
        found = kind.model_validate_json(json.dumps(content, allow_nan=False), strict=True)
    except ValidationError as error:
        # What only one kind has stands beside the rest in the file.
        told = first_problem(error).removeprefix("details.")
        raise InputError(f"{path} is not a whole leakscope result: {told}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a leakscope result: it holds a number that is not finite."
        ) from error
    if isinstance(found, Audit) and found.kind != found.about.file_kind:
        raise unknown
    if isinstance(found, Audit) and path.name == "result.json":
        return found.read_from(path.parent)
    return found


def _as_now(content: dict[str, Any]) -> dict[str, Any]:
    """A file of an earlier version in the words of this one.

    Audits had subgroups of one column, whose name stood beside them; a check of verify that was
    inconclusive was said to be one that could not be told.
    """
    if OLD_COUNT in content:
        content = {"inconclusive" if k == OLD_COUNT else k: v for k, v in content.items()}
        checks = content.get("checks")
        if isinstance(checks, list):
            content["checks"] = [_verdict_now(check) for check in checks]
    if "by" not in content:
        return content
    column, entries = content["by"], content.get("subgroups")
    if isinstance(entries, list):
        entries = [{"column": column} | e if isinstance(e, dict) else e for e in entries]
    kept = {name: value for name, value in content.items() if name not in ("by", "subgroups")}
    return kept if entries is None else kept | {"subgroups": entries}


def _verdict_now(check: Any) -> Any:
    if not isinstance(check, dict) or check.get("verdict") != "could not be told":
        return check
    return check | {"verdict": "inconclusive"}
