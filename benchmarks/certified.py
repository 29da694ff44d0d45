"""The Nyström route's claims against exact answers, at sizes that no dense audit holds.

    python benchmarks/certified.py audit --records 200000 --kind table --out table200k.npz
    python benchmarks/certified.py solve table200k.npz --out solved200k.npz     # with a GPU
    python benchmarks/certified.py fitc table200k.npz --out fitc200k.npz
    python benchmarks/certified.py compare table200k.npz solved200k.npz fitc200k.npz
    python benchmarks/certified.py dense --records 20000

``audit`` runs the product on records made on the spot, writes what it says of 300 of them (half
drawn at random, half the most exposed).  ``solve`` needs torch only: it solves the same 300 by
conjugate gradients in float64, all n^2 kernel values anew at each step, with a preconditioner of
its own.  ``fitc`` is the route that was replaced, and ``dense`` compares all records with the dense
route.

The laws: ``table`` has 20 correlated columns of 5 factors in 8 clusters, a little noise of their
own, and one in 5,000 records far from all others; the label is a smooth function of the factors
with 30% noise, which is the noise variance.  ``isotropic`` has 20 independent normal columns, which
no few records stand for, with the same noise.  Columns are scaled to variance 1, and the length
scale is the median distance.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

NOISE = 0.3
ASKED = 300
FEATURES = 20


def made(records: int, kind: str, seed: int = 0) -> tuple[Any, Any]:
    """The records, their columns scaled, and labels of variance 1."""
    rng = np.random.default_rng(seed)
    loading = rng.normal(size=(5, FEATURES)) * np.array([1.0, 0.8, 0.6, 0.45, 0.35])[:, None]
    weights, bends = rng.normal(size=(5, 6)), rng.normal(size=6)
    if kind == "isotropic":
        X = rng.normal(size=(records, FEATURES))
        factors = X[:, :5].copy()
    else:
        shares = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
        centres = 1.5 * rng.normal(size=(8, 5))
        factors = centres[rng.choice(8, records, p=shares)] + rng.normal(size=(records, 5))
        X = factors @ loading + 0.05 * rng.normal(size=(records, FEATURES))
        far = rng.choice(records, max(5, records // 5000), replace=False)
        X[far] += 3.0 * rng.normal(size=(len(far), FEATURES))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = np.sin(0.7 * factors @ weights) @ bends + 0.2 * factors[:, 0] * factors[:, 1]
    signal = (signal - signal.mean()) / signal.std()
    y = np.sqrt(1.0 - NOISE) * signal + np.sqrt(NOISE) * rng.normal(size=records)
    return X, (y - y.mean()) / y.std()


def kl_of(leverage: Any, a: Any) -> Any:
    """KL(without || with) of one output."""
    x = leverage / (1.0 - leverage)
    return 0.5 * (x - np.log1p(x)) + 0.5 * x * a**2 * NOISE / (1.0 - leverage)


def fitc_kl(process: Any, inducing: int) -> Any:
    """The route that was replaced: E's diagonal kept, the rest of it taken as zero."""
    from leakscope.lood.nystrom import Inducing, first_rows

    basis = Inducing.of(process, first_rows(process, inducing))
    inner, right = np.eye(inducing), np.zeros(inducing)
    y, s2 = process.targets, process.noise_variance
    for some in basis.blocks():
        phi = basis.features(process.features[some])
        spread = np.maximum(1.0 - np.einsum("ij,ij->i", phi, phi), 0.0) + s2
        scaled = (phi / spread[:, None]).T
        inner += scaled @ phi
        right += scaled @ y[some]
    inverse = np.linalg.inv(inner)
    fitted, found = inverse @ right, np.empty(process.records)
    for some in basis.blocks():
        phi = basis.features(process.features[some])
        left = np.maximum(1.0 - np.einsum("ij,ij->i", phi, phi), 0.0)
        seen = np.einsum("ij,ij->i", phi @ inverse, phi) / (left + s2)
        a = (y[some] - phi @ fitted) / (left + s2)
        found[some] = kl_of((left + s2 * seen) / (left + s2), a)
    return found


def process_of(records: int, kind: str) -> Any:
    from leakscope import kernels, lood

    X, y = made(records, kind)
    return lood.ProcessOnRecords(X, y, kernels.rbf(), noise_variance=NOISE)


def audit(told: argparse.Namespace) -> None:
    from leakscope.lood.nystrom import certified_records

    process = process_of(told.records, told.kind)
    start, cpu = time.perf_counter(), time.process_time()
    found = certified_records(process, inducing=told.inducing)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    low, high = found.laws.interval
    kl = found.laws.kl
    print(f"{told.records} {told.kind}: {wall:.0f} s, CPU {cpu:.0f} s, {peak:.1f} GB")
    print(found.certificate.sentence(), flush=True)
    # Who may be among the hundred most exposed: those whose KL may reach the hundredth's least.
    may = np.flatnonzero(high >= np.sort(low)[-100])
    may = may[np.argsort(-kl[may], kind="stable")]
    first = np.union1d(may[: ASKED // 2], np.argsort(-kl, kind="stable")[: ASKED // 2])[:ASKED]
    drawn = np.random.default_rng(99).permutation(np.setdiff1d(np.arange(told.records), first))
    rows = np.concatenate([first, drawn[: ASKED - len(first)]])
    if told.asked is not None:
        earlier = np.load(told.asked)
        rows, first = earlier["rows"], earlier["rows"][earlier["first"]]
    np.savez(
        told.out,
        rows=rows,
        first=np.isin(rows, first),
        kl=kl[rows],
        low=low[rows],
        high=high[rows],
        trusted=found.laws.trusted[rows],
        may=may,
        top=np.argsort(-kl, kind="stable")[:100],
        records=told.records,
        kind=told.kind,
        length_scale=process.kernel.length_scale,
        checked=process.features[:, 0].sum() + process.targets[::7].sum(),
        inducing=len(found.certificate.rows),
        seconds=[wall, cpu],
        trusted_share=found.laws.trusted.mean(),
        claimed=found.certificate.claimed,
    )


def fitc(told: argparse.Namespace) -> None:
    """The same records by the route that was replaced, with as many inducing records."""
    asked = np.load(told.audited)
    process = process_of(int(asked["records"]), str(asked["kind"]))
    start = time.perf_counter()
    kl = fitc_kl(process, int(asked["inducing"]))
    print(f"fitc: {time.perf_counter() - start:.0f} s")
    np.savez(told.out, kl=kl[asked["rows"]], top=np.argsort(-kl, kind="stable")[:100])


def solve(told: argparse.Namespace) -> None:
    """Block conjugate gradients on the device; nothing of the package is used."""
    import torch

    asked = np.load(told.audited)
    X, y = made(int(asked["records"]), str(asked["kind"]))
    if not np.isclose(X[:, 0].sum() + y[::7].sum(), float(asked["checked"]), atol=1e-6):
        raise SystemExit("the records made here are not those that were audited")
    rows, n = asked["rows"], len(X)
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    Z = torch.tensor(X / float(asked["length_scale"]), dtype=torch.float64, device=where)
    half = 0.5 * (Z**2).sum(1, keepdim=True)
    one = torch.ones_like(half)
    left, right = torch.cat([Z, -half, one], 1), torch.cat([Z, one, -half], 1)
    step = max(1024, int(told.tile // n))

    def kernel(some: Any, other: Any) -> Any:
        return (left[some] @ right[other].T).exp_()

    everything = slice(0, n)
    chosen = torch.randperm(n, generator=torch.Generator().manual_seed(5))[: min(told.rank, n // 2)]
    chosen = chosen.to(where)
    corner = kernel(chosen, chosen)
    corner.diagonal().add_(1e-8)
    lower = torch.linalg.cholesky(corner)
    phi = torch.empty((n, len(chosen)), dtype=torch.float64, device=where)
    for start in range(0, n, 65536):
        some = slice(start, min(start + 65536, n))
        phi[some] = torch.linalg.solve_triangular(lower, kernel(chosen, some), upper=False).T
    gram = phi.T @ phi
    gram.diagonal().add_(NOISE)
    root = torch.linalg.cholesky(gram)

    def nearer(columns: Any) -> Any:
        return (columns - phi @ torch.cholesky_solve(phi.T @ columns, root)) / NOISE

    def times(columns: Any) -> Any:
        out = NOISE * columns
        for start in range(0, n, step):
            some = slice(start, min(start + step, n))
            out[some] += kernel(some, everything) @ columns
        return out

    columns = torch.zeros((n, len(rows) + 1), dtype=torch.float64, device=where)
    columns[:, 0] = torch.tensor(y, device=where)
    columns[torch.tensor(rows, device=where), torch.arange(1, len(rows) + 1, device=where)] = 1.0
    found, rest = torch.zeros_like(columns), columns.clone()
    near = nearer(rest)
    ahead, product = near.clone(), (rest * near).sum(0)
    begun = time.perf_counter()
    for turn in range(told.steps):
        moved = times(ahead)
        size = product / (ahead * moved).sum(0)
        found += size * ahead
        rest -= size * moved
        near = nearer(rest)
        before, product = product, (rest * near).sum(0)
        ahead = near + (product / before) * ahead
        lengths = rest.norm(dim=0)
        print(
            f"step {turn + 1}: y {lengths[0]:.2e}, others {lengths[1:].max():.2e}, "
            f"{time.perf_counter() - begun:.0f} s",
            flush=True,
        )
        if lengths[0] < told.tolerance and lengths[1:].max() < 1e-4:
            break
        if time.perf_counter() - begun > told.seconds:
            break
    at = torch.tensor(rows, device=where)
    own = torch.arange(1, len(rows) + 1, device=where)
    # e^T M^{-1} e lies above this by at most ||r||^2/s2; y's own bound is sqrt(m/s2) ||r||.
    m = found[at, own] + (rest[:, 1:] * found[:, 1:]).sum(0)
    np.savez(
        told.out,
        a=found[at, 0].cpu().numpy(),
        m=m.cpu().numpy(),
        error_m=(rest[:, 1:].norm(dim=0) ** 2 / NOISE).cpu().numpy(),
        error_a=(torch.sqrt(m / NOISE) * rest[:, 0].norm()).cpu().numpy(),
        seconds=time.perf_counter() - begun,
        steps=turn + 1,
    )


def compare(told: argparse.Namespace) -> None:
    asked, exact, beside = (dict(np.load(path)) for path in told.results)
    asked["fitc"] = beside["kl"]
    h, a = 1.0 - NOISE * exact["m"], exact["a"]
    truth = kl_of(h, a)
    sure = np.maximum(
        np.abs(kl_of(h - NOISE * exact["error_m"], np.maximum(np.abs(a) - exact["error_a"], 0.0))),
        0.0,
    )
    print(f"the exact answers' own error: at most {np.max(1.0 - sure / truth):.1e} of the KL")
    told_apart(asked, truth)
    rows = asked["rows"].tolist()
    missing = np.setdiff1d(asked["may"], rows)
    top = {rows[i] for i in np.argsort(-truth, kind="stable")[:100]}
    print(
        f"top 100 of the exact: {len(top & set(asked['top'].tolist()))} in common, fitc "
        f"{len(top & set(beside['top'].tolist()))}; {len(asked['may'])} records may be among "
        f"them by their intervals, {len(missing)} of these were not solved"
    )


def told_apart(asked: Any, truth: Any) -> None:
    slack = 1e-7 * truth
    held = (asked["low"] <= truth + slack) & (truth <= asked["high"] + slack)
    claimed = np.maximum(asked["high"] / asked["kl"] - 1.0, 1.0 - asked["low"] / asked["kl"])
    for name, some in (
        ("random", ~asked["first"]),
        ("most exposed", asked["first"]),
        ("all", np.ones(len(truth), dtype=bool)),
    ):
        error = np.abs(asked["kl"] / truth - 1.0)[some]
        beside = np.abs(asked["fitc"] / truth - 1.0)[some]
        print(
            f"{name}: {some.sum()} records, claim holds for {held[some].mean():.4f}; claimed "
            f"{np.median(claimed[some]):.2%} (median) {claimed[some].max():.2%} (largest), true "
            f"{np.median(error):.2%} {error.max():.2%}, trusted {asked['trusted'][some].mean():.3f}"
            f", fitc {np.median(beside):.2%} {beside.max():.2%}"
        )


def dense(told: argparse.Namespace) -> None:
    from leakscope import lood
    from leakscope.lood.nystrom import certified_records

    process = process_of(told.records, told.kind)
    start = time.perf_counter()
    found = certified_records(process, inducing=told.inducing)
    print(
        f"nystrom {time.perf_counter() - start:.0f} s: {found.certificate.sentence()}", flush=True
    )
    low, high = found.laws.interval
    kl, beside = found.laws.kl, fitc_kl(process, len(found.certificate.rows))
    start = time.perf_counter()
    truth = lood.all_records(
        process.fresh_matrix(), process.targets, noise_variance=NOISE, overwrite=True
    ).kl
    print(f"dense {time.perf_counter() - start:.0f} s", flush=True)
    first = np.zeros(told.records, dtype=bool)
    first[np.argsort(-truth, kind="stable")[:200]] = True
    trusted = found.laws.trusted
    told_apart(
        {"low": low, "high": high, "kl": kl, "fitc": beside, "first": first, "trusted": trusted},
        truth,
    )
    top = [set(np.argsort(-values, kind="stable")[:100].tolist()) for values in (truth, kl, beside)]
    print(f"top 100 in common: {len(top[0] & top[1])}, fitc {len(top[0] & top[2])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("audit", "dense"):
        verb = verbs.add_parser(name)
        verb.add_argument("--records", type=int, default=20_000)
        verb.add_argument("--kind", choices=["table", "isotropic"], default="table")
        verb.add_argument("--inducing", type=int, default=2000)
        if name == "audit":
            verb.add_argument("--out", type=Path, required=True)
            verb.add_argument("--asked", type=Path, help="of the records of an earlier run")
    verb = verbs.add_parser("solve")
    verb.add_argument("audited", type=Path)
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--rank", type=int, default=6000)
    verb.add_argument("--steps", type=int, default=60)
    verb.add_argument("--seconds", type=float, default=330.0)
    verb.add_argument("--tolerance", type=float, default=1e-4)
    verb.add_argument("--tile", type=float, default=2e9)
    verb = verbs.add_parser("compare")
    verb.add_argument("results", type=Path, nargs=3, metavar="AUDITED SOLVED FITC")
    verb = verbs.add_parser("fitc")
    verb.add_argument("audited", type=Path)
    verb.add_argument("--out", type=Path, required=True)
    told = parser.parse_args()
    verbs_by_name = {"audit": audit, "solve": solve, "fitc": fitc, "compare": compare}
    {**verbs_by_name, "dense": dense}[told.verb](told)


if __name__ == "__main__":
    main()
