"""Reading a result file back: which kinds there are, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from leakscope.errors import InputError
from leakscope.io.advice_results import AdviceDocument
from leakscope.io.attack_results import QueryDocument
from leakscope.io.audit_results import AuditDocument
from leakscope.io.compare_results import CompareDocument
from leakscope.io.json_files import read_json
from leakscope.io.measure_results import MeasureDocument
from leakscope.io.membership_results import MembershipDocument
from leakscope.io.plan_results import LassoPlanDocument, LinearPlanDocument
from leakscope.io.reconstruction_results import ReconstructDocument
from leakscope.io.reproduction_results import ReproductionDocument
from leakscope.io.results import SCHEMA_VERSION, ResultDocument
from leakscope.io.settings import first_problem
from leakscope.io.verify_results import VerifyDocument

KINDS: dict[str, type[ResultDocument]] = {
    "audit": AuditDocument,
    "compare": CompareDocument,
    "measure": MeasureDocument,
    "attack_query": QueryDocument,
    "attack_reconstruct": ReconstructDocument,
    "attack_membership": MembershipDocument,
    "plan_linear": LinearPlanDocument,
    "plan_lasso": LassoPlanDocument,
    "reproduction": ReproductionDocument,
    "verify": VerifyDocument,
    "advice": AdviceDocument,
}

# In digits; a longer one is no version.
LONGEST_VERSION = 9


def read_result(path: str | Path) -> ResultDocument:
    """Read a result file and check it.

    Raises
    ------
    InputError
        Where it is not one, or was written by a newer leakscope.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "result.json")
    ...     _ = file.write_text('{"schema_version": "99", "kind": "audit"}')
    ...     io.read_result(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: ... was written by a newer leakscope (schema_version 99; this \
one reads up to 1): update leakscope to read it.
    """
    path = Path(path)
    content = read_json(path)
    version = str(content.get("schema_version", "")) if isinstance(content, dict) else ""
    kind = KINDS.get(str(content.get("kind"))) if isinstance(content, dict) else None
    if not (version.isdecimal() and len(version) <= LONGEST_VERSION):
        raise InputError(f"{path} is not a leakscope result: it has no schema_version.")
    if int(version) > int(SCHEMA_VERSION):
        raise InputError(
            f"{path} was written by a newer leakscope (schema_version {version}; this one reads "
            f"up to {SCHEMA_VERSION}): update leakscope to read it."
        )
    if kind is None:
        raise InputError(f"{path} is not a result of a known kind ({', '.join(KINDS)}).")
    try:
        # Strictly: leakscope writes numbers as numbers, and null for what is not finite.
        return kind.model_validate_json(json.dumps(content, allow_nan=False), strict=True)
    except ValidationError as error:
        raise InputError(
            f"{path} is not a whole leakscope result: {first_problem(error)}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a leakscope result: it holds a number that is not finite."
        ) from error
