"""SACRO-ML's likelihood-ratio attack (LiRA): a score for every member from shadow models."""

from __future__ import annotations

import logging
import time

import numpy as np
from answers import read_question, write_answer
from sacroml.attacks.likelihood_attack import LIRAAttack
from sacroml.attacks.target import Target
from targets import target

logging.disable(logging.CRITICAL)


def main() -> None:
    question, data = read_question()
    start = time.perf_counter()
    model = target(question["target"], 0).fit(data["X"], data["y"])
    attacked = Target(
        model=model,
        dataset_name="adult",
        X_train=data["X"],
        y_train=data["y"],
        X_test=data["X_other"],
        y_test=data["y_other"],
    )
    attack = LIRAAttack(
        n_shadow_models=question["shadow_models"],
        mode="online-carlini",
        write_report=False,
        report_individual=True,
        output_dir="outputs",
    )
    attack.attack(attacked)
    n = len(data["y"])
    found = attack.result
    # How far apart a record's two laws are, which is what an audit asks; and the attack's own
    # score of this one model.
    inside, outside = np.array(found["in_mean"][:n]), np.array(found["out_mean"][:n])
    spread = np.sqrt(
        0.5 * (np.array(found["in_std"][:n]) ** 2 + np.array(found["out_std"][:n]) ** 2)
    )
    write_answer(
        {
            "seconds": time.perf_counter() - start,
            "LiRA, distance of in and out": ((inside - outside) / spread).tolist(),
            "LiRA, member score": np.array(found["member_prob"][:n]).tolist(),
        }
    )


if __name__ == "__main__":
    main()
