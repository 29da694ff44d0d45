"""Networks that generalise and leak: relu, Appendix C (Theorem C.1), on mixtures of normal laws.

    python benchmarks/relu_generalise.py

n = 20 records in d dimensions, components with unit covariance.  ``two``: means mu and -mu, one
for each label.  ``four``: means mu1, -mu1 (label 1), mu2, -mu2 (label -1), orthogonal, as in Xu et
al. (2023).  A network of width 100 is trained to its KKT point on each of ten sets; its accuracy
on 1,000 fresh records stands beside the attack of Cor. 4.3 on its members against them.
"""

from __future__ import annotations

import numpy as np

from leakscope import measures, relu

N, DIM, SETS, FRESH = 20, 2000, 10, 1000
SIZES = (0.0, 25.0, 100.0, 300.0, 900.0)


def drawn(
    kind: str, count: int, squared: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Records and labels of a mixture whose means have this squared length."""
    which = rng.integers(0, 2 if kind == "two" else 4, count)
    axis, sign = (0, which) if kind == "two" else (which // 2, which % 2)
    x = rng.standard_normal((count, DIM))
    x[np.arange(count), axis] += np.sqrt(squared) * (2.0 * sign - 1.0)
    labels = 2.0 * sign - 1.0 if kind == "two" else 1.0 - 2.0 * axis
    return x, labels


def main() -> None:
    """The table."""
    plan = relu.TrainingPlan(width=100, steps=4000)
    print("mixture  |mu|^2  covered  on margin  residual  accuracy          AUC     TPR at 1%")
    for kind in ("two", "four"):
        for squared in SIZES:
            rng = np.random.default_rng(int(squared))
            sets = [drawn(kind, N, squared, rng) for _ in range(SETS)]
            x, y = (np.stack(part) for part in zip(*sets, strict=True))
            trained = relu.train(x, y, plan, random_state=0)
            fresh, truth = drawn(kind, FRESH, squared, rng)
            answers = trained.outputs(fresh)
            right = (truth * answers > 0.0).mean(axis=1)
            attack = relu.KnownMargin(trained.margin)
            members = attack.attack(trained.margins * trained.y).scores
            pair = relu.scores_law_pair(members.ravel(), attack.attack(answers).scores.ravel())
            covered = np.mean([relu.margin_bounds(*one).covered for one in sets])
            on = (trained.margins <= 1.01 * trained.margin[:, None]).mean()
            error = right.std(ddof=1) / np.sqrt(SETS)
            print(
                f"{kind:8s} {squared:6.0f} {covered:8.1f} {on:10.3f} {trained.residual.max():9.1e}"
                f"  {right.mean():.3f} +- {error:.3f}   {float(measures.auc(pair).value):.4f}  "
                f"{float(measures.tpr_at_fpr(pair, 0.01).value):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
