"""All of Adult under the rbf kernel: the dense audit by tiles, by a LAPACK that works, and refits.

    OPENBLAS_NUM_THREADS=2 python benchmarks/adult_dense.py audit adult.data --save tiles.npz
    OPENBLAS_NUM_THREADS=2 OPENBLAS_CORETYPE=Haswell \
        python benchmarks/adult_dense.py audit adult.data --lapack --save lapack.npz
    python benchmarks/adult_dense.py refit adult.data tiles.npz --count 200 --save refits.npz
    python benchmarks/adult_dense.py compare tiles.npz refits.npz

`audit` times kernel, factorisation and every record's laws.  `refit` takes records out, one by one,
and factorises what is left anew, by PyTorch on a GPU where there is one; nothing of leakscope is
used.  `compare` shows how far two audits are apart.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from pathlib import Path

import numpy as np

NOISE = 0.01
NUMBERS = (0, 2, 4, 10, 11, 12)


def encoded(path: str, records: int) -> tuple[np.ndarray, np.ndarray]:
    """As `leakscope audit` has it: numbers standardised, categories as indicators, two classes."""
    with Path(path).open() as stream:
        rows = [[cell.strip() for cell in row] for row in csv.reader(stream) if len(row) == 15]
    columns = list(zip(*rows[:records], strict=True))
    parts = []
    for place, column in enumerate(columns[:-1]):
        if place in NUMBERS:
            values = np.array(column, dtype=np.float64)
            parts.append(((values - values.mean()) / values.std())[:, None])
        else:
            names, codes = np.unique(column, return_inverse=True)
            parts.append(np.eye(len(names))[codes])
    classes = np.unique(columns[-1], return_inverse=True)[1]
    return np.hstack(parts), classes - 0.5


def audit(asked: argparse.Namespace) -> None:
    from leakscope import kernels, lood
    from leakscope._numerics import cholesky, probes

    if asked.lapack:
        # Not the products: NumPy's syrk dies at 32,561 rows with Haswell's kernels too.
        cholesky.ONE_PIECE = 10**9
    X, y = encoded(asked.data, asked.records)
    kernel = kernels.rbf().resolved(X)
    start, cpu = time.perf_counter(), time.process_time()
    matrix = kernel(X)
    made = time.perf_counter()
    found = lood.all_records(matrix, y, noise_variance=NOISE, overwrite=True)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    way = "LAPACK" if asked.lapack else "tiles"
    print(
        f"{way}, {len(X)} records, {probes.blas_in_use()}: "
        f"kernel {made - start:.1f} s, laws {done - made:.1f} s, CPU "
        f"{time.process_time() - cpu:.0f} s, peak {peak:.1f} GB, trusted "
        f"{found.trusted.mean():.4f}",
        flush=True,
    )
    np.savez(asked.save, kl=found.kl, length_scale=kernel.length_scale)


def refit(asked: argparse.Namespace) -> None:
    import torch

    with np.load(asked.audit) as stored:
        kl, length_scale = stored["kl"], float(stored["length_scale"])
    X, y = encoded(asked.data, len(kl))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    order = np.argsort(-kl)
    chosen = np.unique(
        [*order[: asked.count // 4], *np.random.default_rng(0).permutation(len(kl))[: asked.count]]
    )[: asked.count]
    rows = torch.tensor(X, device=device)
    targets = torch.tensor(y, device=device)
    norms = (rows**2).sum(1)
    K = rows @ rows.T.clone()
    K.mul_(-2.0).add_(norms[:, None]).add_(norms[None, :]).clamp_(min=0.0)
    K.mul_(-0.5 / length_scale**2).exp_().fill_diagonal_(1.0)

    def posterior(kept: torch.Tensor, place: int) -> tuple[float, float]:
        M = K[kept][:, kept]
        M.diagonal().add_(NOISE)
        L = torch.linalg.cholesky(M)
        del M
        right = torch.stack([K[kept, place], targets[kept]], 1)
        half = torch.linalg.solve_triangular(L, right, upper=False)
        return float(half[:, 0] @ half[:, 1]), float(1.0 - half[:, 0] @ half[:, 0])

    entering = np.arange(len(kl))
    if asked.order:
        entering = np.random.default_rng(asked.order).permutation(len(kl))
    everything = torch.tensor(entering, device=device)
    M = K[everything][:, everything]
    M.diagonal().add_(NOISE)
    L = torch.linalg.cholesky(M)
    del M
    right = torch.cat([K[:, torch.tensor(chosen, device=device)], targets[:, None]], 1)[everything]
    half = torch.linalg.solve_triangular(L, right, upper=False)
    del L
    known, start = np.empty(len(chosen)), time.perf_counter()
    for place, record in enumerate(chosen.tolist()):
        mean_with = float(half[:, place] @ half[:, -1])
        variance_with = float(1.0 - half[:, place] @ half[:, place])
        kept = everything[everything != record]
        mean, variance = posterior(kept, record)
        ratio = variance / variance_with
        shift = (mean - mean_with) ** 2 / variance_with
        known[place] = 0.5 * (ratio - 1.0 - np.log(ratio) + shift)
    seconds = time.perf_counter() - start
    print(
        f"{len(chosen)} of {len(kl)} records taken out and refitted on {device} in {seconds:.0f} "
        f"s: {_apart(kl[chosen], known)}",
        flush=True,
    )
    np.savez(asked.save, records=chosen, kl=known)


def compare(asked: argparse.Namespace) -> None:
    with np.load(asked.one) as one, np.load(asked.other) as other:
        known, kl = other["kl"], one["kl"]
        records = other["records"] if "records" in other else np.arange(len(known))
        error = one["error"][records] if "error" in one else None
        kl = kl if "records" in one else kl[records]
    print(f"{len(known)} records: {_apart(kl, known)}")
    if error is None:
        return
    trusted = error < 1e-8
    print(f"{trusted.sum()} of them trusted: {_apart(kl[trusted], known[trusted])}")
    within = np.abs(kl / known - 1.0) <= error
    print(f"within its own error estimate: {within.sum()} of {len(known)}")


def _apart(kl: np.ndarray, known: np.ndarray) -> str:
    apart = np.abs(kl / known - 1.0)
    return f"KL differs by {np.median(apart):.1e} (median), {apart.max():.1e} (most)"


def main() -> None:
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(required=True)
    audited = verbs.add_parser("audit")
    audited.add_argument("data")
    audited.add_argument("--records", type=int, default=32561)
    audited.add_argument("--lapack", action="store_true")
    audited.add_argument("--save", default="audit.npz")
    audited.set_defaults(work=audit)
    again = verbs.add_parser("refit")
    again.add_argument("data")
    again.add_argument("audit")
    again.add_argument("--count", type=int, default=200)
    again.add_argument("--order", type=int, default=0, help="another order, for its own rounding")
    again.add_argument("--save", default="refits.npz")
    again.set_defaults(work=refit)
    both = verbs.add_parser("compare")
    both.add_argument("one")
    both.add_argument("other")
    both.set_defaults(work=compare)
    asked = parser.parse_args()
    asked.work(asked)


if __name__ == "__main__":
    main()
