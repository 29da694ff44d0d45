"""What was removed, by the name that somebody may still type, and what to use instead."""

from __future__ import annotations

from collections.abc import Sequence

REMOVED = {
    "--check": "advise counts each option against refits of the changed model by itself",
    "--split": "save the split as a Parquet file",
    "influence": "take lood.influence in Python, or leakscope attack query",
    "--points": "no theorem covers several inputs; take leakscope attack membership",
    "--measure": "in Python a function of audit.law_pair() is any measure",
    "--attack": "give leakscope measure the attack's scores (--member-scores, --nonmember-scores)",
    **dict.fromkeys(
        (
            "--recipient",
            "--release",
            "--access",
            "--because",
            "--conditions",
            "--approver",
            "--expires",
            "--reason",
        ),
        "declare it in a file (leakscope decide --template prints one) and give --declare FILE",
    ),
    **{
        f"--{name}": f"give --set {key}=VALUE with --model"
        for name, key in {
            "C": "C", "alpha": "alpha", "gamma": "gamma", "observes": "observes",
            "answer-noise": "answer_noise", "weight-decay": "weight_decay",
            "noise-variance": "noise_variance", "length-scale": "length_scale", "depth": "depth",
            "activation": "activation", "route": "route", "inducing": "inducing",
            "scaling": "scaling", "secret-within": "secret_within",
            "secret-values": "secret_values",
        }.items()
    },
    **{
        f"--{name}": f"give --read {key}"
        for name, key in {
            "missing": "missing=drop or missing=impute", "na-values": "na_values=TEXT",
            "decimal": "decimal=,", "no-header": "header=no", "sample": "sample=COUNT",
        }.items()
    },
    **dict.fromkeys(("--begin", "--climb"), "starts are drawn from the box and near known records"),
    **{
        f"--{name}": f"give --set {key}=VALUE with --model"
        for name, key in {
            "kernel-variance": "variance", "smoothness": "nu", "weight-variance": "weight_variance",
            "bias-variance": "bias_variance",
        }.items()
    },
    "--questions": "advice on a process is for questions at the records' own points",
    "--kernel": "give --model rbf, matern, linear_kernel or nngp",
    "--train": "give --model, which takes a training too",
    "--question": "give --attacker pool, outsider or insider",
    "--fraction": "give --attacker pool, outsider or insider",
    "--fail-above": "give --threshold-advantage or --threshold-tpr",
    "--scheduler": "give --cluster",
    "--stream": "files that are too large, and folders of .parquet, are streamed by themselves",
    "--no-sensitivity": "the sweep over noises and kernels is part of the audit of a process",
    "--picture": "the numbers are in --json",
    "--target-ppv": "take measures.tolerable_tpr, and --target-tpr",
}  # fmt: skip


def replacements(arguments: Sequence[str]) -> list[str]:
    """A sentence for each argument that was removed."""
    names = dict.fromkeys(argument.partition("=")[0] for argument in arguments)
    return [f"{name} was removed; {REMOVED[name]}." for name in names if name in REMOVED]
