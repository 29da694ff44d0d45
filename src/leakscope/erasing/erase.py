"""From an audit and records that were to go to what a model really is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from leakscope import __version__
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.models import read_model, write_model
from leakscope.errors import InputError
from leakscope.results.audit import Audit
from leakscope.results.document import AssumptionEntry, ResultDocument
from leakscope.results.erasure import Erasure
from leakscope.results.reader import Run, result_of
from leakscope.subjects.subject import ErasedModel, opened

Audited = ResultDocument | Run | str | Path


def erase(
    result: Audited,
    *,
    records: Sequence[RecordId],
    after: Any = None,
    before: Any = None,
    save: str | Path | None = None,
    data: str | Path | Dataset | None = None,
) -> Erasure:
    """Check that a model has forgotten some records, or make the one that has.

    For a fitted model the check is exact: at the optimum without the records the gradient over all
    others vanishes, so that a file which kept them, dropped others, used another penalty or a
    scaler that saw them is told apart.  For a training two models are compared by their answers.

    Parameters
    ----------
    result
        An audit of the model: in memory, a run, or the path of a run directory or a result file.
    records
        The ids of the records to erase; of an audit of groups, those of the groups.
    after
        The model that claims to have forgotten them: an estimator, or a .skops file.  Where left
        out, the exact fit without them is made.
    before
        Of a training: the model with all records.  An audited fit is the model before itself.
    save
        Where to write the exact fit, a .skops file; only without ``after``.
    data
        Where the data are now, or the dataset itself, where the result does not say.

    Returns
    -------
    Erasure
        What the model is, what is left of the records, what else saw them, and who is more exposed.

    Raises
    ------
    InputError
        Where a record is not there, or the model is of another kind than the one audited.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> X, y = load_diabetes(return_X_y=True)
    >>> audit = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))
    >>> leakscope.erase(audit, records=[169], after=Ridge(alpha=0.1).fit(X, y)).found
    'kept'
    >>> leakscope.erase(audit, records=[169]).met
    True
    """
    start = time.perf_counter()
    audit = result_of(result)
    if not isinstance(audit, Audit):
        raise InputError("erase needs the audit of the model from which records are to be erased.")
    if save is not None and after is not None:
        raise InputError(
            "save writes the exact fit without the records; leave out the model after (--after)."
        )
    subject = opened(audit, data)
    ids = subject.ids
    units = _places(ids, records, audit.unit)
    after, file = _model(after)
    before, _ = _model(before)
    found = subject.erased(units, audit, after, before)
    if save is not None:
        file = write_model(found.estimator, save).name
    names = [ids[unit] for unit in units.tolist()]
    others = 0 if found.lacking is None else len(np.setdiff1d(found.lacking, units))
    lacking = None if found.lacking is None else [ids[i] for i in found.lacking]
    met = {"erased": True, "cannot tell": None}.get(found.found, False)
    if found.found == "other penalty":
        met = not found.told["penalty_kept"]
    return Erasure(
        leakscope_version=__version__,
        settings={"records": names, "after": file if after is not None else None},
        provenance={
            "question": "is this model the one trained without these records?",
            "method": "exact" if "effect" in found.told or found.made else "compared",
        },
        assumptions=[
            AssumptionEntry(
                statement="the records that stay are those of the audit",
                holds=True,
                evidence="the data's digest is that of the audit"
                if audit.dataset.source is not None
                else "they are in memory",
            )
        ],
        timing={"erase": time.perf_counter() - start},
        warnings=list(found.notes),
        dataset=audit.dataset,
        model=audit.model,
        records=names,
        rows=len(units),
        made=found.made,
        file=file,
        found=found.found,
        met=met,
        lacking=lacking,
        verdict=_verdict(found, audit, len(units), others),
        **found.told,
    )


def _places(ids: Sequence[RecordId], records: Sequence[RecordId], unit: str) -> Any:
    """Which units they are, in the order of the data, each once."""
    if not records:
        raise InputError("name the records to erase, by their ids (--record).")
    places = {str(name): row for row, name in enumerate(ids)}
    for name in records:
        if str(name) not in places:
            raise InputError(
                f"the audit has no {unit} {name!r}; the first of {len(ids)} is {ids[0]!r}."
            )
    return np.array(list(dict.fromkeys(places[str(name)] for name in records)), dtype=np.intp)


def _model(given: Any) -> tuple[Any, str | None]:
    if not isinstance(given, (str, Path)):
        return given, None
    file = read_model(given)
    if file.estimator is None:
        raise InputError(f"{file.path.name}: a model after an erasure is read from .skops files.")
    try:
        check_is_fitted(file.estimator)
    except NotFittedError:
        raise InputError(
            f"{file.path.name}: tree models are compiled code and are not read from files; pass "
            "the models themselves to leakscope.erase in Python."
        ) from None
    return file.estimator, file.path.name


def _verdict(found: ErasedModel, audit: Audit, units: int, others: int) -> str:
    """What the model is; it names nobody, so that it can stand on any page."""
    who = _counted("the", units, audit.unit)
    told = found.told
    if found.made:
        return f"This is the exact fit without {who}."
    if "p_value" in told:
        chance = f"p = {told['p_value']:.2g}; it would see an erasure with {told['power']:.0%}"
        return {
            "erased": f"A test sees that {who} left ({chance} chance).",
            "kept": f"Not erased: a test sees nothing of {who} leaving ({chance} chance).",
        }.get(found.found, f"A test cannot tell whether {who} left ({chance} chance).")
    if found.found == "erased":
        words = f"Erased: this model is the fit without {who}"
        if "trace" in told:
            words += f"; {abs(told['trace']):.1%} of the effect is left"
        return words + (
            f"; {_counted('', others, audit.unit, 'other')} left too." if others else "."
        )
    if found.found == "traces":
        saw = ", ".join(one.part for one in told["traces"] if one.saw)
        return f"Not erased: the coefficients are those without {who}, but this saw it: {saw}."
    if found.found == "kept":
        return f"Not erased: this model is still the fit with {who}."
    if found.found == "other records":
        return f"Not erased: this model lacks {_counted('', others, audit.unit, 'other')} instead."
    if found.found == "other penalty":
        kept = "still with" if told["penalty_kept"] else "without"
        return (
            f"Another model: it was fitted with {told['penalty_factor']:.4g} times the penalty, "
            f"{kept} {who}. Audit it as it is."
        )
    return f"Cannot tell whether {who} left."


def _counted(article: str, count: int, unit: str, kind: str = "") -> str:
    words = [article, "" if count == 1 and article else str(count), kind, unit]
    return " ".join(filter(None, words)) + ("" if count == 1 else "s")
