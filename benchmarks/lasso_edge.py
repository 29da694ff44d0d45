"""The closed-form stability edge against the mean of the linear programme's lambda_c.

    python benchmarks/lasso_edge.py [p] [draws]

sigma_eta = 1, X ~ N(0, 1/p); p = 1000 and 8 draws for each alpha unless told otherwise (a few
minutes).  Wanted: within 2%.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from leakscope.lasso import stability_edge
from leakscope.lasso.stability import stability_programme


def main() -> None:
    p = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    draws = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    print(
        f"p = {p}, {draws} draws\n"
        "alpha  closed form  mean lambda_c  std. error  difference  seconds"
    )
    for alpha in (0.3, 0.5, 0.7):
        start = time.perf_counter()
        edges = []
        for seed in range(draws):
            rng = np.random.default_rng([seed, int(100 * alpha)])
            X = rng.standard_normal((int(alpha * p), p)) / np.sqrt(p)
            edges.append(stability_programme(X, rng.standard_normal(p)).edge)
        limit = float(stability_edge(alpha))
        mean, error = np.mean(edges), np.std(edges, ddof=1) / np.sqrt(draws)
        print(
            f"{alpha:5g}  {limit:11.4f}  {mean:13.4f}  {error:10.4f}  {mean / limit - 1:+9.2%}  "
            f"{time.perf_counter() - start:7.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
