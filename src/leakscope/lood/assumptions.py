"""What every answer of this room is about and assumes, in words that travel with its numbers."""

from __future__ import annotations

from dataclasses import replace

from leakscope.laws import Assumption, Method, Provenance
from leakscope.lood.release import Release


def common_assumptions(noise_variance: float, *, group: bool = False) -> tuple[Assumption, ...]:
    """The assumptions that the analysis makes of the model, the noise and the attacker."""
    record = "group" if group else "record"
    place = "at the queries" if group else "at the record"
    return (
        Assumption(
            statement="the model is a Gaussian process with this kernel and squared loss, and the "
            f"attacker sees a draw of its latent function {place}",
            holds=None,
            evidence="no trained model was examined",
        ),
        Assumption(
            statement="noise_variance describes the randomness of training",
            holds=None,
            evidence=f"it was set to {noise_variance:g}, in squared units of the target, and sets "
            "the level of every number; read the ranks",
        ),
        Assumption(
            statement=f"scaling, encoding, kernel and noise stay as they are when the {record} "
            "leaves",
            holds=True,
            evidence="they are fixed in this computation",
        ),
        Assumption(
            statement=f"the attacker knows every other record and the {record} in question",
            holds=None,
            evidence="the strongest attacker is assumed",
        ),
    )


def leaving_out(
    source: str,
    noise_variance: float,
    *more: Assumption,
    group: bool = False,
    method: Method = "exact",
) -> Provenance:
    """The room's one question: a latent function trained with a record, or a group, and without."""
    return Provenance(
        question="leave_one_out",
        adjacency="removed",
        observes="latent",
        random=("training",),
        attacker_knows_label=True,
        method=method,
        source=source,
        assumptions=(*common_assumptions(noise_variance, group=group), *more),
    )


def released_answers(latent: Provenance, release: Release, unit: str) -> Provenance:
    """The question where an answer is seen instead of the latent function itself."""
    place = "anywhere, by a bound" if release.reach is not None else f"at the {unit}"
    what = "a draw of the latent function" if release.what == "draw" else "the posterior mean"
    added = Assumption(
        statement=f"the attacker sees one answer {place}, {what} plus independent Gaussian noise "
        f"of variance {release.noise_variance:g}",
        holds=None,
        evidence="as the release is set; further answers with fresh noise compose",
    )
    common = len(common_assumptions(1.0))
    # Of a mean, training is not random: the first two assumptions are about that.
    kept = latent.assumptions[0 if release.what == "draw" else 2 : common]
    return replace(
        latent,
        observes="prediction",
        random=("training", "output_noise") if release.what == "draw" else ("output_noise",),
        assumptions=(*kept, added, *latent.assumptions[common:]),
    )
