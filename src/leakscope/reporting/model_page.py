"""What the report of a fitted model has that other reports have not."""

from __future__ import annotations

from typing import Any

from leakscope.reporting.glossary import GLOSSARY
from leakscope.results import ModelAuditDocument

HOLDS = {True: "yes", False: "no", None: "cannot tell"}

# The words of the glossary that mean the same on such a page, and those that are its own.
WORDS = ("record", "member, nonmember", "advantage", "AUC", "ROC")
OWN_WORDS = (
    (
        "law",
        "The probability distribution of what an attacker sees, over the training sets that the "
        "question allows. Each record has two: with it in the training set and without it.",
    ),
    (
        "TPR at an FPR",
        "The share of members that the best test finds when it accuses this share of nonmembers. "
        "Records are ranked by advantage; an attacker who must be sure looks at these.",
    ),
    (
        "KL",
        "The Kullback–Leibler divergence of the law without the record from the law with it, in "
        "nats.",
    ),
    (
        "shift",
        "How far the record’s own presence moves its score on average, in standard deviations of "
        "the score over training sets without it.",
    ),
    (
        "trusted",
        "Not where one other record carries more than 40% of the variance of a record’s score, or "
        "where the computation did not settle.",
    ),
)


def model_parts(document: ModelAuditDocument, *, redact: bool) -> dict[str, Any]:
    """The answer in sentences, and the words of such a page."""
    return {
        "answer": document.answer_without_ids if redact else document.answer,
        "glossary": [*(entry for entry in GLOSSARY if entry[0] in WORDS), *OWN_WORDS],
    }
