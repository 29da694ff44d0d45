"""The words of a report, each explained once."""

from __future__ import annotations

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("record", "A row of the training data."),
    (
        "member, nonmember",
        "The record was, or was not, used in training. A test that says “member” of a nonmember is "
        "a false positive.",
    ),
    (
        "law",
        "The probability distribution of what an attacker sees; training is random, so the answer "
        "of a model is too. Each record has two: with it in the training set and without it.",
    ),
    (
        "advantage",
        "The best test’s true-positive rate minus its false-positive rate: 0 is guessing, 1 is "
        "certainty.",
    ),
    (
        "KL",
        "The Kullback–Leibler divergence of the law without the record from the law with it, in "
        "nats. Records are ranked by it; it goes on growing where the advantage is close to 1.",
    ),
    ("AUC", "The area under the ROC of the best test: 0.5 is guessing, 1 is certainty."),
    (
        "ROC",
        "The true-positive rate of the best test against its false-positive rate. The logarithmic "
        "one shows attackers who accuse rarely but are nearly always right.",
    ),
    (
        "KL from label, KL from features",
        "The two parts of the KL: the shift in mean, which depends on the record’s label, and the "
        "drop in variance, which depends on its features only. A large second part means that the "
        "record stands alone.",
    ),
    (
        "noise variance",
        "How random training is assumed to be, in squared units of the target as used. It sets the "
        "level of every number; the ranks depend on it far less.",
    ),
    (
        "rank range",
        "The best and the worst rank of a record as the noise variance is swept; “kernels”, "
        "as the kernel is changed.",
    ),
    (
        "kernel",
        "Which functions the model is thought to prefer: smooth ones, rough ones, straight lines, "
        "those of very wide networks.",
    ),
    (
        "disagreement",
        "How far a label lies from what the other records predict, in standard deviations of that "
        "prediction. A wrong label stands out by it.",
    ),
    (
        "trusted",
        "Whether double precision is estimated to resolve the record’s KL to a relative 1e-8; of "
        "an approximate audit, whether its interval is as narrow as was asked for.",
    ),
    (
        "similarity",
        "The kernel’s correlation of two records: 1 is the same record to the kernel, 0 unrelated.",
    ),
)
