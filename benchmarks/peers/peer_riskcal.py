"""riskcal and dp-accounting on Gaussian pairs: advantage, TPR at FPR, epsilon at delta."""

from __future__ import annotations

import time

from answers import read_question, write_answer
from dp_accounting.pld import privacy_loss_distribution as pld
from riskcal import analysis


def main() -> None:
    question, data = read_question()
    distances, rates = data["distances"], data["rates"]
    delta = question["delta"]
    start = time.perf_counter()
    closed = {
        "advantage": [float(analysis.get_advantage_from_gdp(mu)) for mu in distances],
        "tpr": [(1.0 - analysis.get_beta_from_gdp(mu, rates)).tolist() for mu in distances],
    }
    closed_seconds = time.perf_counter() - start
    start = time.perf_counter()
    losses = [pld.from_gaussian_mechanism(1.0 / mu) for mu in distances]
    epsilon = [float(loss.get_epsilon_for_delta(delta)) for loss in losses]
    accounting_seconds = time.perf_counter() - start
    start = time.perf_counter()
    direct = {
        "advantage": [float(analysis.get_advantage_from_pld(loss)) for loss in losses],
        "tpr": [(1.0 - analysis.get_beta_from_pld(loss, alpha=rates)).tolist() for loss in losses],
    }
    direct_seconds = time.perf_counter() - start
    write_answer(
        {
            "closed": closed,
            "closed seconds": closed_seconds,
            "epsilon": epsilon,
            "accounting seconds": accounting_seconds,
            "direct": direct,
            "direct seconds": direct_seconds + accounting_seconds,
        }
    )


if __name__ == "__main__":
    main()
