"""Reference values for two soft-thresholded normal laws: writes spike_and_slab.json."""

import random
import sys
import time

from mp_common import INF, entry, exact, measures, normal_interval, stable, write
from mp_pieces import Piece, PiecewiseLaws
from mpmath import mp, mpf


def laws_of(member, nonmember):
    """The two half lines and the atom at the present precision."""
    keys = ("location", "sigma", "threshold")
    m1, s1, t1 = exact([member[k] for k in keys])
    m0, s0, t0 = exact([nonmember[k] for k in keys])
    q1 = normal_interval((-t1 - m1) / s1, (t1 - m1) / s1)
    q0 = normal_interval((-t0 - m0) / s0, (t0 - m0) / s0)
    right = Piece(m1 - t1, s1, m0 - t0, s0, mpf(0), INF)
    left = Piece(m1 + t1, s1, m0 + t0, s0, -INF, mpf(0))
    return PiecewiseLaws([left, right], q0, q1)


def result(member, nonmember):
    """All measures but the AUC."""
    laws = laws_of(member, nonmember)
    return measures(laws, mpf("1e-30")) | laws.divergences([0.5, 2, 8])


def auc(member, nonmember):
    """AUC and its complement by quadrature over the level."""
    comp = laws_of(member, nonmember).auc_complement(mpf("1e-26"))
    return {"auc_complement": comp, "auc": 1 - comp}


def cases():
    """(tag, member, nonmember) in a fixed order."""
    rng = random.Random(77)
    out = []

    def law(location, sigma, threshold):
        values = (float(location), float(sigma), float(threshold))
        return dict(zip(("location", "sigma", "threshold"), values, strict=True))

    def add(tag, member, nonmember):
        out.append((tag, law(*member), law(*nonmember)))

    def loguniform(lo, hi):
        return lo * (hi / lo) ** rng.random()

    def sign():
        return rng.choice([-1, 1])

    add("identical", (0.2, 1.0, 0.5), (0.2, 1.0, 0.5))
    for shift in (1e-4, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.5, 1.0):
        for t in (0.1, 1.0, 2.5):
            add("shift", (shift, 1.0, t), (0.0, 1.0, t))
            m = rng.gauss(0, 1.5)
            add("shift", (m - shift, 1.0, t), (m, 1.0, t))
    for _ in range(70):
        s, m = loguniform(0.01, 10), rng.gauss(0, 1)
        t = s * rng.uniform(0.05, 3)
        add("typical", (s * m + s * loguniform(1e-4, 1) * sign(), s, t), (s * m, s, t))
    for _ in range(40):
        s, m = loguniform(0.1, 10), rng.gauss(0, 1)
        t = s * rng.uniform(0.05, 2.5)
        s1, t1 = s * loguniform(0.7, 1.4), t * loguniform(0.7, 1.4)
        add("all-differ", (s * m + s * loguniform(1e-3, 2) * sign(), s1, t1), (s * m, s, t))
    for _ in range(12):
        s, t = loguniform(0.1, 10), rng.uniform(0.1, 2)
        add("scale-only", (0.0, s * loguniform(0.5, 2), t * s), (0.0, s, t * s))
    for _ in range(10):
        s, m, t = loguniform(0.1, 10), rng.gauss(0, 1), rng.uniform(0.1, 2)
        add("threshold-only", (m * s, s, t * s * loguniform(0.5, 2)), (m * s, s, t * s))
    for _ in range(6):
        m, s = rng.gauss(0, 1), loguniform(0.3, 3)
        add("no-atom", (m + s * loguniform(1e-3, 2), s * loguniform(0.8, 1.3), 0.0), (m, s, 0.0))
    # atom mass about 1 - 1e-9: threshold 6.1 sigma; about 1e-12: threshold 1.25e-12 sigma
    for shift in (1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0):
        add("heavy-atom", (shift, 1.0, 6.1), (0.0, 1.0, 6.1))
        add("heavy-atom", (shift, 1.0, 7.2), (-0.1, 1.0, 7.2))
        add("heavy-atom", (0.1, 1.0 + shift / 4, 6.1), (0.0, 1.0, 6.1))
        add("light-atom", (shift, 1.0, 1.25e-12), (0.0, 1.0, 1.25e-12))
        add("light-atom", (shift, 1.0 + shift / 3, 2e-12), (0.0, 1.0, 1e-12))
        add("light-atom", (7.0 + shift, 1.0, 0.3), (7.0, 1.0, 0.3))
    for ratio in (1.0001, 1.5, 3.0, 10.0, 30.0, 100.0):
        m = rng.gauss(0, 1)
        add("sigma-ratio", (m, ratio, 0.7), (0.0, 1.0, 0.7))
        add("sigma-ratio", (m * ratio, 1.0, 0.7), (0.0, ratio, 0.7))
        add("sigma-ratio", (m * ratio, ratio, 0.7 * ratio), (0.0, 1.0, 0.2))
    for far in (8.0, 20.0, 40.0, 1000.0):
        for shift in (1e-3, 0.5, 3.0):
            add("far-out", (far + shift, 1.0, 1.0), (far, 1.0, 1.0))
            add("far-out", (-far - shift, 1.2, 1.1), (-far, 1.0, 1.0))
    for far in (6.0, 14.0, 25.0, 42.0):
        add("disjoint", (far, 1.0, 0.5), (0.0, 1.0, 0.5))
        add("disjoint", (far / 2, 1.0, 1.0), (-far / 2, 1.0, 1.0))
        add("disjoint", (0.0, 0.1, far / 10), (far, 1.0, far / 10))
    for _ in range(14):
        s, m, t = loguniform(0.1, 10), rng.gauss(0, 1), rng.uniform(0.1, 2)
        gap = loguniform(1e-10, 1e-8)
        kind = rng.randrange(3)
        member = [m * s, s, t * s]
        member[kind] += gap * s * sign()
        add("near-equal", member, (m * s, s, t * s))
    for shift in (0.1, 1.0):
        for m in (0.0, 1.5, -30.0):
            add("singular-atom", (m + shift, 1.0, 0.4), (m, 1.0, 0.0))
            add("singular-atom", (m + shift, 1.1, 0.0), (m, 1.0, 2.0))
    for _ in range(8):
        s = loguniform(1e-9, 1e-5) if rng.random() < 0.5 else loguniform(1e5, 1e9)
        m, t = rng.gauss(0, 1) * s, rng.uniform(0.1, 2) * s
        add("odd-scale", (m + s * rng.uniform(-1, 1), s * loguniform(0.7, 1.4), t), (m, s, t))
    return out


def cross_check(number=12):
    """Direct quadrature of a sample in x: advantage, kl, renyi 0.5 and the AUC."""
    rng = random.Random(6)
    tags = ("typical", "all-differ", "sigma-ratio", "scale-only", "threshold-only")
    sample = rng.sample([c for c in cases() if c[0] in tags], number)
    worst = mpf(0)
    for _, member, nonmember in sample:
        with mp.workdps(30):
            ref = result(member, nonmember) | auc(member, nonmember)
            laws = laws_of(member, nonmember)
            tv = abs(laws.q1 - laws.q0)
            kl = laws.q0 * mp.log(laws.q0 / laws.q1)
            bc = mp.sqrt(laws.q0 * laws.q1)
            _f0, f1 = laws.cdf(laws.atom_level)
            comp = laws.q0 * (f1 - laws.q1 / 2)
            for piece in laws.pieces:
                p0 = mp.npdf
                p1 = lambda y, p=piece: mp.npdf(y, p.mu, p.r)  # noqa: E731
                cuts = {m + k * s for m, s in ((0, 1), (piece.mu, piece.r)) for k in range(-14, 15)}
                for level in [*laws.levels, mpf(0)]:
                    cuts |= {y for pair in piece.region(level, True) for y in pair}
                if piece.a != 0:
                    cuts.add(-piece.b / (2 * piece.a))
                cuts |= {piece.lo, piece.hi}
                cuts = sorted(y for y in cuts if piece.lo <= y <= piece.hi and not mp.isinf(y))
                tv += mp.quad(lambda y: abs(p1(y) - p0(y)), cuts)  # noqa: B023
                kl += mp.quad(lambda y: p0(y) * mp.log(p0(y) / p1(y)), cuts)  # noqa: B023
                bc += mp.quad(lambda y: mp.sqrt(p0(y) * p1(y)), cuts)  # noqa: B023
                comp += mp.quad(
                    lambda y: p0(y) * laws.cdf(piece.ratio(y))[1],  # noqa: B023
                    cuts,
                    maxdegree=7,
                )
            for name, ours, theirs in (
                ("advantage", ref["advantage"], tv / 2),
                ("kl", ref["kl"], kl),
                ("renyi", ref["renyi"]["0.5"], -2 * mp.log(bc)),
                ("auc", ref["auc_complement"], comp),
            ):
                rel = abs(ours - theirs) / abs(ours)
                worst = max(worst, rel)
                if rel > mpf("1e-18"):
                    print(name, member, nonmember, mp.nstr(rel, 3))
    print("cross-check by quadrature, worst relative difference", mp.nstr(worst, 3))


def main():
    """Compute, check and write."""
    start = time.time()
    pairs = []
    for tag, member, nonmember in cases():
        begin = time.time()
        value = stable(lambda m=member, n=nonmember: result(m, n))
        value |= stable(lambda m=member, n=nonmember: auc(m, n), dps=(40, 55, 80), need="1e-22")
        with mp.workdps(60):
            pairs.append(entry(tag, member, nonmember, value))
        if time.time() - begin > 5:
            print("slow", tag, member, nonmember, round(time.time() - begin, 1), flush=True)
    size = write("spike_and_slab.json", "make_spike_and_slab.py", pairs)
    print(len(pairs), "pairs", size, "bytes", round(time.time() - start), "s")


if __name__ == "__main__":
    mp.dps = 50
    if sys.argv[1:] == ["check"]:
        cross_check()
    else:
        main()
