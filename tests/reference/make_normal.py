"""Reference values for two normal laws: writes normal.json."""

import random
import sys
import time

from mp_common import entry, exact, measures, stable, trapezoid, write
from mp_pieces import Piece, PiecewiseLaws
from mpmath import mp, mpf


def auc_complement(mu, r):
    """1 - AUC for N(mu, r^2) against N(0, 1) by the integral of |M(1/2 + iu)|^2."""
    if r == 1:
        return mp.erfc(abs(mu) / 2) / 2
    v = r * r
    g, h = (1 + v) / 2, 1 - v

    def f(y):
        # u = sinh(y)/2, so that 1/4 + u^2 = cosh(y)^2/4
        c = mp.cosh(y)
        size = g * g + h * h * (c * c - 1) / 4
        return mp.exp(-c * c / 4 * mu * mu * g / size) / mp.sqrt(size) / c

    tol = mpf(10) ** -min(mp.dps - 8, 40)
    return trapezoid(f, tol) * r / (2 * mp.pi)


def result(member, nonmember):
    """All measures of one pair at the present precision."""
    m1, s1 = exact([member["mean"], member["sigma"]])
    m0, s0 = exact([nonmember["mean"], nonmember["sigma"]])
    piece = Piece(m1, s1, m0, s0)
    laws = PiecewiseLaws([piece])
    out = measures(laws, mpf("1e-30"))
    out |= laws.divergences([0.5, 2, 8])
    comp = auc_complement(piece.mu, piece.r)
    return out | {"auc_complement": comp, "auc": 1 - comp}


def cases():
    """(tag, member, nonmember) in a fixed order."""
    rng = random.Random(20240611)
    out = []

    def add(tag, m1, s1, m0=0.0, s0=1.0):
        out.append(
            (tag, {"mean": float(m1), "sigma": float(s1)}, {"mean": float(m0), "sigma": float(s0)})
        )

    def loguniform(lo, hi):
        return lo * (hi / lo) ** rng.random()

    add("identical", 0.3, 1.7, 0.3, 1.7)
    for shift in (
        1e-10,
        1e-8,
        1e-6,
        1e-4,
        1e-3,
        0.01,
        0.1,
        0.3,
        0.7,
        1,
        1.5,
        2,
        3,
        4,
        5,
        7,
        10,
        15,
        20,
        30,
        40,
        50,
        60,
    ):
        add("equal-sigma", shift, 1.0)
    for _ in range(22):
        s, m = loguniform(1e-4, 1e4), rng.gauss(0, 10)
        add("equal-sigma", m + s * loguniform(1e-3, 10) * rng.choice([-1, 1]), s, m, s)
    gaps = (1e-9, 1e-7, 1e-5, 1e-3, 0.01, 0.05, 0.2, 0.5, 1, 2, 5, 9, 30, 99, 999, 1e4, 1e6 - 1)
    for gap in gaps:
        add("equal-mean", 0.0, 1.0 + gap)
        add("equal-mean", 0.0, 1.0, 0.0, 1.0 + gap)
    for _ in range(16):
        s, m = loguniform(1e-3, 1e3), rng.gauss(0, 5)
        add("equal-mean", m, s * loguniform(0.5, 2), m, s)
    for _ in range(60):
        s, m = loguniform(0.01, 100), rng.gauss(0, 3)
        s1 = s * loguniform(0.4, 2.5)
        add("typical", m + s * loguniform(0.01, 4) * rng.choice([-1, 1]), s1, m, s)
    for gap in (1e-9, 1e-6, 1e-3, 0.03, 0.3):
        for shift in (1e-10, 1e-6, 1e-3, 0.1, 1.0, 3.0):
            add("far-edge", shift, 1.0 + gap)
            add("far-edge", -shift, 1.0, 0.0, 1.0 + gap)
    for shift in (5.0, 12.0, 25.0, 60.0):
        for ratio in (1 + 1e-9, 1.001, 1.1, 2.0, 10.0, 1000.0):
            add("far-shift", shift, ratio)
            add("far-shift", -shift * ratio, 1.0, 0.0, ratio)
    for _ in range(12):
        shift = loguniform(3e-10, 5e-9) * rng.choice([-1, 1, 0])
        add("near-equal", shift, 1.0 + loguniform(3e-10, 5e-9) * rng.choice([-1, 1]))
    # overlap of equal sigmas is erfc(shift/(2 sqrt 2))
    for shift, tag in ((14.27, "1e-12"), (26.2, "1e-40"), (42.3, "1e-100"), (60.2, "1e-200")):
        add("disjoint-" + tag, shift, 1.0)
        add("disjoint-" + tag, -shift * 0.9, 1.3, 0.0, 0.5)
        add("disjoint-" + tag, 7.0 + shift * 0.05, 0.04, 7.0, 0.06)
    for _ in range(14):
        s = 1e-3 * loguniform(0.3, 3)
        add("big-offset", 1e6 + s * rng.uniform(-4, 4), s * loguniform(0.8, 1.25), 1e6, s)
    for _ in range(8):
        s = loguniform(1e-12, 1e-6)
        add("tiny-scale", s * rng.uniform(-3, 3), s * loguniform(0.5, 2), 0.0, s)
    for _ in range(8):
        s = loguniform(1e6, 1e12)
        add("huge-scale", s * rng.uniform(-3, 3), s * loguniform(0.5, 2), 0.0, s)
    for exponent in range(1, 7):
        r = 10.0**exponent
        add("ratio", rng.uniform(-3, 3), r)
        add("ratio", rng.uniform(-3, 3) * r, 1.0, 0.0, r)
        add("ratio", rng.uniform(-3, 3) * r, r, 0.0, 1.0)
    return out


def cross_check(number=12):
    """Direct quadrature of a sample: advantage, kl, renyi 2 and the other AUC formula."""
    rng = random.Random(5)
    sample = rng.sample([c for c in cases() if c[0] in ("typical", "equal-mean", "ratio")], number)
    worst = mpf(0)
    with mp.workdps(40):
        for _, member, nonmember in sample:
            ref = result(member, nonmember)
            m1, s1 = exact([member["mean"], member["sigma"]])
            m0, s0 = exact([nonmember["mean"], nonmember["sigma"]])
            piece = Piece(m1, s1, m0, s0)
            laws = PiecewiseLaws([piece])
            cuts = {m + k * s for m, s in ((m0, s0), (m1, s1)) for k in (*range(-14, 15, 2), 20)}
            cuts |= {
                m0 + s0 * y for lo_hi in piece.region(mpf(0), True) for y in lo_hi if abs(y) < 99
            }
            cuts = sorted(cuts)
            p1 = lambda x, m=m1, s=s1: mp.npdf(x, m, s)  # noqa: E731
            p0 = lambda x, m=m0, s=s0: mp.npdf(x, m, s)  # noqa: E731
            tv = mp.quad(lambda x: abs(p1(x) - p0(x)), cuts) / 2  # noqa: B023
            kl = mp.quad(lambda x: p0(x) * mp.log(p0(x) / p1(x)), cuts)  # noqa: B023
            comp = laws.auc_complement(mpf("1e-25"))
            for ours, theirs in (
                (ref["advantage"], tv),
                (ref["kl"], kl),
                (ref["auc_complement"], comp),
            ):
                worst = max(worst, abs(ours - theirs) / abs(ours))
    print("cross-check by quadrature, worst relative difference", mp.nstr(worst, 3))


def main():
    """Compute, check and write."""
    start = time.time()
    pairs = []
    for tag, member, nonmember in cases():
        value = stable(lambda m=member, n=nonmember: result(m, n))
        with mp.workdps(60):
            pairs.append(entry(tag, member, nonmember, value))
    size = write("normal.json", "make_normal.py", pairs)
    print(len(pairs), "pairs", size, "bytes", round(time.time() - start), "s")


if __name__ == "__main__":
    mp.dps = 50
    if sys.argv[1:] == ["check"]:
        cross_check()
    else:
        main()
