"""From an advice to one HTML page, in the style of the report; it names no record."""

from __future__ import annotations

from pathlib import Path

from leakscope.reporting.advice_charts import TALLEST, error_against_leakage
from leakscope.reporting.embedding import chart_library, script_digest, script_json
from leakscope.reporting.templating import part, template
from leakscope.reporting.writing import require_report_path
from leakscope.results import Advice, write_private


def advice_html(document: Advice) -> str:
    """The advice as one page that needs nothing else.

    Examples
    --------
    >>> from leakscope.results import Advice
    >>> from leakscope.reporting import advice_html
    >>> numbers = dict.fromkeys(("worst", "median", "error", "stderr", "cost", "cost_stderr"), 0.1)
    >>> own = {"name": "as audited", "setting": {}, "meets": True, "questions": "any", "notes": [],
    ...        "sentence": "", "curve": [], "split_stderr": None, "r_squared": 0.9,
    ...        "accuracy": None, **numbers}
    >>> dataset = {"name": "<b>", "records": 9, "features": 1, "outputs": 1, "target_name": "y",
    ...            "steps": []}
    >>> target = {"measure": "advantage", "value": 0.2}
    >>> document = Advice(
    ...     leakscope_version="1", settings={}, provenance={}, assumptions=[], timing={},
    ...     warnings=[], dataset=dataset, target=target, target_label="advantage", unit="record",
    ...     sentence="Met already.", own=own, options=[], notes=[])
    >>> page = advice_html(document)
    >>> "Met already." in page, "Defences for <b>" in page
    (True, False)
    """
    drawn = {"error_against_leakage": error_against_leakage(document)} if document.options else {}
    library, own = chart_library(), part("report.js")
    page: str = template("advice.html").render(
        document=document,
        rows=[document.own, *document.options],
        settings={option.name: option.setting_words for option in document.options},
        classes=document.own.accuracy is not None,
        squared=document.own.r_squared is not None,
        drawn=drawn,
        tallest=TALLEST,
        data=script_json({"charts": drawn, "records": None}),
        style=part("report.css"),
        scripts=(library, own),
        digests=" ".join(script_digest(source) for source in (library, own)),
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def write_advice(document: Advice, path: str | Path) -> Path:
    """Write the page of an advice, mode 0600, whole or not at all; where it was written.

    Examples
    --------
    >>> from leakscope.reporting import write_advice
    >>> write_advice(None, "advice.png")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: advice.png does not end in .html; a report is an HTML file.
    """
    path = Path(path)
    require_report_path(path)
    write_private(path, advice_html(document))
    return path
