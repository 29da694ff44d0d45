"""jax_privacy's bounds from one run on scores of canaries, by its own choice of threshold."""

from __future__ import annotations

from answers import read_question, write_answer
from jax_privacy.auditing import CanaryScoreAuditor


def main() -> None:
    question, data = read_question()
    level, delta = question["level"], question["delta"]
    auditors = [
        CanaryScoreAuditor(scores[coins], scores[~coins])
        for scores, coins in zip(data["scores"], data["coins"], strict=True)
    ]
    write_answer(
        {
            "theorem": [float(one.epsilon_one_run(level, delta)) for one in auditors],
            "gaussian": [float(one.epsilon_one_run_fdp(level, delta)) for one in auditors],
        }
    )


if __name__ == "__main__":
    main()
