"""Reference values for two multivariate normal laws: writes multivariate_normal.json.

After simultaneous diagonalisation P0 = N(0, I) and P1 = N(mu, diag(v)); with
M(s) = E0[e^(s l)] = int p0^(1-s) p1^s known in closed form, every tail is an integral
(1/2 pi i) int M(s) e^(-s t) R(s) ds with a rational R, taken by the trapezoidal rule along a
hyperbola through the real saddle point.
"""

import sys
import time

import numpy as np
from mp_common import DELTA, INF, bracket_root, disagreement, entry, exact, trapezoid, write
from mp_pieces import Piece, PiecewiseLaws
from mpmath import mp, mpc, mpf

FPRS = [1e-1, 1e-3, 1e-5, 1e-9]
TILTS = ["0.5", "0", "-0.5"]


def reduce(member, nonmember):
    """(v, mu): variances and means of P1 in coordinates in which P0 is standard."""
    m1, c1 = mp.matrix(exact(member["mean"])), mp.matrix(exact(member["covariance"]))
    m0, c0 = mp.matrix(exact(nonmember["mean"])), mp.matrix(exact(nonmember["covariance"]))
    chol = mp.cholesky(c0)
    mp.cholesky(c1)
    inv = chol**-1
    if c1 == c0:
        shift = inv * (m1 - m0)
        return [mpf(1)] * len(shift), list(shift)
    b = inv * c1 * inv.T
    b = (b + b.T) / 2
    v, q = mp.eigsy(b)
    return list(v), list(q.T * (inv * (m1 - m0)))


class Ratio:
    """The law of l through K(s) = log M(s), real on (low, high)."""

    def __init__(self, v, mu, tilts=TILTS, spread="1"):
        self.v, self.mu = v, mu
        self.k = [x - 1 for x in v]
        self.mu2 = [m * m for m in mu]
        self.logv = [mp.log(x) for x in v]
        self.half_log = sum(self.logv) / 2
        self.high = min([x / k for x, k in zip(v, self.k, strict=True) if k > 0], default=INF)
        self.low = max([x / k for x, k in zip(v, self.k, strict=True) if k < 0], default=-INF)
        self.tilts, self.spread = [mpf(t) for t in tilts], mpf(spread)

    def swapped(self):
        """The same with the roles exchanged."""
        v = [1 / x for x in self.v]
        mu = [-m / mp.sqrt(x) for m, x in zip(self.mu, self.v, strict=True)]
        return Ratio(v, mu, self.tilts, self.spread)

    def log_m(self, s):
        """K(s) for real s, inf outside the strip."""
        total = (1 - s) * self.half_log
        for v, k, mu2 in zip(self.v, self.k, self.mu2, strict=True):
            d = v - s * k
            if d <= 0:
                return INF
            total -= mp.log(d) / 2 + s * (1 - s) * mu2 / (2 * d)
        return total

    def slopes(self, s):
        """K'(s) and K''(s) for real s."""
        first, second = -self.half_log, mpf(0)
        for v, k, mu2 in zip(self.v, self.k, self.mu2, strict=True):
            d = v - s * k
            r = k / d
            first += r / 2
            second += r * r / 2
            if mu2:
                # -s(1-s)/d has derivative ((2s-1) d - s(1-s) k)/d^2, second derivative 2v/d^3
                first += mu2 / 2 * ((2 * s - 1) * d - s * (1 - s) * k) / d**2
                second += mu2 * v / d**3
        return first, second

    def divergences(self):
        """kl, kl_reverse, renyi in closed form."""
        kl = rev = mpf(0)
        for v, k, mu2, logv in zip(self.v, self.k, self.mu2, self.logv, strict=True):
            kl += (-k / v + mu2 / v + logv) / 2
            rev += (k + mu2 - logv) / 2
        renyi = {}
        for order in (0.5, 2, 8):
            value = self.log_m(mpf(order))
            renyi[repr(order)] = value if mp.isinf(value) else value / (mpf(order) - 1)
        return {"kl": kl, "kl_reverse": rev, "renyi": renyi}

    def position(self, q):
        """A monotone map of the line onto (low, high)."""
        return _between(self.low, self.high, q)

    def saddle(self, t, poles, lo, hi):
        """Where K(c) - c t - sum log|c - pole| is least on (lo, hi)."""

        def slope(q):
            c = _between(lo, hi, q)
            return self.slopes(c)[0] - t - sum(1 / (c - p) for p in poles)

        a = b = mpf(0)
        fa = fb = slope(a)
        step = mpf(1)
        while (fa > 0) == (fb > 0):
            if fa > 0:
                b, fb = a, fa
                a -= step
                fa = slope(a)
            else:
                a, fa = b, fb
                b += step
                fb = slope(b)
            step *= mpf("1.6")
            if step > 10**5:
                raise RuntimeError("no saddle point")
        for _ in range(12):
            mid = (a + b) / 2
            if slope(mid) > 0:
                b = mid
            else:
                a = mid
        return _between(lo, hi, (a + b) / 2)

    def contour(self, t, rationals, poles, lo, hi, tol):
        """(1/2 pi i) int M e^(-st) R ds for several R; poles are those that bound (lo, hi)."""
        c = self.saddle(t, poles, lo, hi)
        near = [abs(c - x) for x in (self.low, self.high, mpf(0), mpf(1)) if not mp.isinf(x)]
        second = self.slopes(c)[1] + sum(1 / (c - p) ** 2 for p in poles)
        width = 1 / mp.sqrt(second)
        rho = min([*near, 8 * width]) * self.spread
        lin = -(t + self.half_log)
        base = self.log_m(c) - c * t
        parts = list(zip(self.v, self.k, self.mu2, strict=True))
        tilted = [p for p in parts if p[1] != 0]
        plain = sum(p[2] for p in parts if p[1] == 0)
        shift = self.half_log - base

        def integrand(s, weight):
            acc = mpc(plain)
            den = mpc(1)
            for v, k, mu2 in tilted:
                d = v - s * k
                den *= mp.sqrt(d)
                if mu2:
                    acc += mu2 / d
            expo = shift + lin * s - s * (1 - s) * acc / 2
            return mp.exp(expo) / den * weight

        def point(y, tilt):
            e = mp.exp(y)
            ch, sh = (e + 1 / e) / 2, (e - 1 / e) / 2
            return mpc(c + rho * tilt * (ch - 1), rho * sh), mpc(rho * tilt * sh, rho * ch)

        unit = min(width / rho, mpf(1))
        best = None
        for tilt in self.tilts:
            # the vertical line, along which a slow decay oscillates, only if nothing else will do
            # once deep in a valley the path may as well go straight up, where |M| only falls
            score, dead = mpf(0 if tilt else 60), False
            for y in (2, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64, 128):
                if not dead:
                    s, ds = point(y * unit, tilt)
                    size = abs(integrand(s, ds * rationals[0](s)))
                    dead = size < mpf("1e-45")
                score += mpf(-104) if dead else mp.log(size)
            if best is None or score < best[0]:
                best = (score, tilt)
        tilt = best[1]

        h = min(unit / 2, mpf("0.25"))
        sums = None
        peaks = [mpf(0)] * len(rationals)
        floor = tol / 10**3

        def sweep(start, step):
            out = [mpf(0)] * len(rationals)
            y, quiet = start, 0
            while quiet < 5:
                s, ds = point(y, tilt)
                value = integrand(s, ds)
                loud = False
                for i, r in enumerate(rationals):
                    term = r(s) * value
                    out[i] += term.imag
                    mag = abs(term)
                    peaks[i] = max(peaks[i], mag)
                    loud = loud or mag > floor * peaks[i]
                quiet = 0 if loud else quiet + 1
                y += step
                if y > 400:
                    raise RuntimeError("contour integrand does not die out")
            return out

        s, ds = point(mpf(0), tilt)
        value = integrand(s, ds)
        first = [(r(s) * value) for r in rationals]
        peaks = [abs(x) for x in first]
        sums = [x.imag / 2 + z for x, z in zip(first, sweep(h, h), strict=True)]
        old = [x * h for x in sums]
        for _ in range(10):
            sums = [x + z for x, z in zip(sums, sweep(h / 2, h), strict=True)]
            h /= 2
            new = [x * h for x in sums]
            if all(abs(a - b) <= tol * abs(b) for a, b in zip(old, new, strict=True)):
                factor = mp.exp(base) / mp.pi
                return [x * factor for x in new]
            old = new
        raise RuntimeError("contour integral did not converge")

    def upper0(self, t, tol):
        """P0(l > t) and the density of l under P0 at t."""
        return self.contour(t, [lambda s: 1 / s, lambda s: 1], [mpf(0)], mpf(0), self.high, tol)

    def upper0_rough(self, t):
        """P0(l > t) to eight digits."""
        return self.contour(t, [lambda s: 1 / s], [mpf(0)], mpf(0), self.high, mpf("1e-8"))[0]

    def upper1(self, t, tol):
        """P1(l > t)."""
        if self.slopes(mpf(1))[0] > t:
            (low,) = self.contour(t, [lambda s: 1 / (1 - s)], [mpf(1)], self.low, mpf(1), tol)
            return 1 - mp.exp(t) * low
        (up,) = self.contour(t, [lambda s: 1 / (s - 1)], [mpf(1)], mpf(1), self.high, tol)
        return mp.exp(t) * up

    def hockey(self, eps, tol):
        """P1(l > eps) - e^eps P0(l > eps), and its derivative in eps."""
        top, mass = self.contour(
            eps,
            [lambda s: 1 / (s * (s - 1)), lambda s: 1 / s],
            [mpf(0), mpf(1)],
            mpf(1),
            self.high,
            tol,
        )
        return mp.exp(eps) * top, -mp.exp(eps) * mass

    def hockey_rough(self, eps):
        """The first value of hockey to eight digits."""
        weights = [lambda s: 1 / (s * (s - 1))]
        poles = [mpf(0), mpf(1)]
        top = self.contour(eps, weights, poles, mpf(1), self.high, mpf("1e-8"))[0]
        return mp.exp(eps) * top

    def overlap(self, tol):
        """P1(l <= 0) + P0(l > 0)."""
        (out,) = self.contour(
            mpf(0), [lambda s: 1 / (s * (1 - s))], [mpf(0), mpf(1)], mpf(0), mpf(1), tol
        )
        return out

    def _solve(self, f, q0, falling_to):
        """q with log f(t(q)) = log falling_to, f decreasing in t = K'(position(q)); rough."""

        def g(q):
            return mp.log(f(self.slopes(self.position(q))[0]) / falling_to)

        a = q0
        fa = g(a)
        step = mpf(1)
        direction = 1 if fa > 0 else -1
        for _ in range(60):
            b = a + direction * step
            fb = g(b)
            if (fb > 0) != (fa > 0):
                q = bracket_root(g, a, b, fa, fb, mpf("1e-4"))
                return self.slopes(self.position(q))[0]
            a, fa = b, fb
            step *= mpf("1.5")
        raise RuntimeError("not bracketed")

    def tpr(self, alpha, tol):
        """Power at level alpha."""
        t = self._solve(self.upper0_rough, _inverse(self, mpf(1) / 2), alpha)
        for accuracy in (mpf("1e-12"), tol):
            s0, f0 = self.upper0(t, accuracy)
            t += mp.log(s0 / alpha) * s0 / f0
        s0, _ = self.upper0(t, tol)
        return self.upper1(t, tol) + mp.exp(t) * (alpha - s0)

    def epsilon(self, delta, advantage, tol):
        """Smallest eps >= 0 with hockey(eps) <= delta."""
        if advantage <= delta:
            return mpf(0)
        zero = self.saddle(mpf(0), [], mpf(0), mpf(1))  # K' = 0 lies between 0 and 1
        start = _inverse(self, zero)

        def f(t):
            return advantage - t if t <= 0 else self.hockey_rough(t)

        t = self._solve(f, start, delta)
        for accuracy in (mpf("1e-9"), mpf("1e-14"), tol, tol):
            value, slope = self.hockey(t, accuracy)
            step = mp.log(value / delta) * value / slope
            t -= step
            if abs(step) < mpf("1e-25") * abs(t):
                break
        return t

    def auc_complement(self, tol):
        """(1/4 pi) int |M(1/2 + iu)|^2/(1/4 + u^2) du, u = sinh(y)/2."""
        const = mp.exp(self.half_log)

        def f(y):
            c2 = mp.cosh(y) ** 2
            u2 = (c2 - 1) / 4
            size, expo = mpf(1), mpf(0)
            for v, k, mu2 in zip(self.v, self.k, self.mu2, strict=True):
                g = (1 + v) / 2
                d2 = g * g + u2 * k * k
                size *= d2
                expo += mu2 * g / d2
            return mp.exp(-c2 / 4 * expo) / mp.sqrt(size * c2)

        return trapezoid(f, tol) * const / (2 * mp.pi)


def _between(lo, hi, q):
    """A monotone map of the line onto (lo, hi)."""
    if mp.isinf(lo) and mp.isinf(hi):
        return mp.sinh(q) + mpf(1) / 2
    if mp.isinf(hi):
        return lo + mp.exp(q)
    if mp.isinf(lo):
        return hi - mp.exp(-q)
    e = mp.exp(-abs(q))
    off = (hi - lo) * e / (1 + e)
    return hi - off if q > 0 else lo + off


def _inverse(ratio, c):
    lo, hi = ratio.low, ratio.high
    if mp.isinf(lo) and mp.isinf(hi):
        return mp.asinh(c - mpf(1) / 2)
    if mp.isinf(hi):
        return mp.log(c - lo)
    if mp.isinf(lo):
        return -mp.log(hi - c)
    return mp.log((c - lo) / (hi - c))


def result(member, nonmember, tilts=TILTS, spread="1", tol="1e-25"):
    """All measures of one pair at the present precision."""
    ratio = Ratio(*reduce(member, nonmember), tilts, spread)
    tol = mpf(tol)
    out = ratio.divergences()
    overlap = ratio.overlap(tol**2 * 10**12)
    out |= {"overlap": overlap, "advantage": 1 - overlap}
    comp = ratio.auc_complement(tol**2 * 10**12)
    out |= {"auc_complement": comp, "auc": 1 - comp}
    out["tpr_at_fpr"] = {repr(a): ratio.tpr(mpf(a), tol) for a in FPRS}
    adv = out["advantage"]
    out["epsilon_at_delta"] = {
        repr(DELTA): {
            "member_to_nonmember": ratio.epsilon(mpf(DELTA), adv, tol),
            "nonmember_to_member": ratio.swapped().epsilon(mpf(DELTA), adv, tol),
        }
    }
    return out


def cases():
    """(tag, member, nonmember) in a fixed order."""
    rng = np.random.default_rng(99)
    out = []

    def law(mean, cov):
        cov = np.asarray(cov, dtype=float)
        cov = (cov + cov.T) / 2
        return {"mean": [float(x) for x in mean], "covariance": cov.tolist()}

    def add(tag, m1, c1, m0, c0):
        out.append((tag, law(m1, c1), law(m0, c0)))

    def spd(d, condition):
        q, _ = np.linalg.qr(rng.normal(size=(d, d)))
        eig = condition ** (np.linspace(0, 1, d) - 0.5) if d > 1 else np.array([1.0])
        return (q * eig) @ q.T * np.exp(rng.normal())

    def kernel(d, length=0.6, noise=0.05):
        x = rng.uniform(0, 3, size=d)
        return np.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * length**2)) + noise * np.eye(d)

    for shift, ratio in ((0.3, 1.0), (1.0, 1.3), (2.0, 0.6), (0.0, 2.5), (0.0, 0.4), (5.0, 1.1)):
        add("one-dimension", [shift], [[ratio]], [0.0], [[1.0]])
    for d in (1, 2, 3, 4, 5, 6):
        for size in (0.05, 1.0, 4.0):
            cov = spd(d, 10.0 ** rng.uniform(0, 4))
            cov = (cov + cov.T) / 2
            step = np.linalg.cholesky(cov) @ rng.normal(size=d)
            mean = rng.normal(size=d)
            add("equal-covariance", mean + size * step / np.sqrt(d), cov, mean, cov)
    for d in (2, 3, 4, 5, 6):
        for noise in (1.0, 0.1, 0.01):
            # the member law is the posterior after one noisy look at a record
            cov = kernel(d)
            a = rng.normal(size=d)
            a /= np.sqrt(a @ cov @ a)
            gain = cov @ a
            mean = rng.normal(size=d)
            seen = rng.normal() * 1.5
            c1 = cov - np.outer(gain, gain) / (1 + noise)
            add("rank-one", mean + gain * seen / (1 + noise), c1, mean, cov)
    for d in (1, 2, 4, 6):
        cov = kernel(d)
        a = rng.normal(size=d)
        a /= np.sqrt(a @ cov @ a)
        gain = cov @ a
        zero = np.zeros(d)
        add("rank-one-no-shift", zero, cov - np.outer(gain, gain) * 0.6, zero, cov)
        add("rank-one-reversed", gain * 0.7, cov, zero, cov - np.outer(gain, gain) * 0.8)
    for d in (1, 2, 3, 4, 6):
        for gap in (1e-9, 1e-4):
            cov = spd(d, 10.0)
            e = rng.normal(size=(d, d))
            mean = rng.normal(size=d)
            add("near-equal", mean + gap * rng.normal(size=d), cov + gap * (e + e.T) / 2, mean, cov)
    for d in (2, 3, 4, 5, 6):
        for condition in (3.0, 100.0, 1e6):
            c0 = spd(d, condition)
            q, _ = np.linalg.qr(rng.normal(size=(d, d)))
            chol = np.linalg.cholesky(c0)
            inner = (q * np.exp(rng.normal(size=d) * 0.5)) @ q.T
            m0 = rng.normal(size=d)
            add("general", m0 + chol @ rng.normal(size=d) * 0.8, chol @ inner @ chol.T, m0, c0)
    for d, condition in ((2, 1e4), (3, 1e3), (5, 1e6), (6, 1e2)):
        add("unrelated", rng.normal(size=d), spd(d, condition), np.zeros(d), spd(d, condition))
    for d, far in ((2, 14.0), (3, 20.0), (4, 30.0), (6, 42.0)):
        c0 = spd(d, 5.0)
        chol = np.linalg.cholesky(c0)
        u = rng.normal(size=d)
        u /= np.linalg.norm(u)
        add("disjoint", far * (chol @ u), c0 * 1.2 + 0.01 * np.eye(d), np.zeros(d), c0)
    for d in (2, 3, 6):
        c0 = spd(d, 20.0)
        add("scaled", np.zeros(d), 1.5 * c0, np.zeros(d), c0)
        add("scaled", np.zeros(d), c0, np.zeros(d), 4.0 * c0)
    return out


def scaled_reference(d, factor, alpha):
    """TPR for N(0, factor I) against N(0, I) through the incomplete gamma function."""
    half = mpf(d) / 2
    upper = lambda x: mp.gammainc(half, x / 2, mp.inf, regularized=True)  # noqa: E731
    lower = lambda x: mp.gammainc(half, 0, x / 2, regularized=True)  # noqa: E731
    tail = upper if factor > 1 else lower
    f = lambda q: mp.log(tail(mp.exp(q)) / alpha)  # noqa: E731
    a, b = mpf(-60), mpf(8)
    q = bracket_root(f, a, b, f(a), f(b), mpf("1e-30"))
    return tail(mp.exp(q) / factor)


def cross_check():
    """Other contour and dps, d = 1 closed form, chi-square closed form, conditioning, sampling."""
    worst = mpf(0)
    for tag, member, nonmember in cases()[::4]:
        with mp.workdps(60):
            one = result(member, nonmember)
        with mp.workdps(80):
            two = result(member, nonmember, ["0.3", "0", "-0.3"], "0.7", "1e-27")
            rel, path = disagreement(one, two)
        worst = max(worst, rel)
        if rel > mpf("1e-21"):
            print("DIFFER", tag, mp.nstr(rel, 3), path, flush=True)
    print("other contour and dps, worst relative difference", mp.nstr(worst, 3), flush=True)

    worst = mpf(0)
    with mp.workdps(60):
        for _, member, nonmember in cases():
            if len(member["mean"]) != 1:
                continue
            ours = result(member, nonmember)
            v, mu = reduce(member, nonmember)
            laws = PiecewiseLaws([Piece(mu[0], mp.sqrt(v[0]), mpf(0), mpf(1))])
            theirs = {"advantage": laws.hockey(mpf(0), False)}
            theirs["tpr_at_fpr"] = {repr(a): laws.tpr(mpf(a), mpf("1e-28")) for a in FPRS}
            theirs["epsilon_at_delta"] = {
                repr(DELTA): {
                    "member_to_nonmember": laws.epsilon(mpf(DELTA), False, mpf("1e-28")),
                    "nonmember_to_member": laws.epsilon(mpf(DELTA), True, mpf("1e-28")),
                }
            }
            theirs["auc_complement"] = laws.auc_complement(mpf("1e-25"))
            worst = max(worst, disagreement(theirs, ours)[0])
        print("d = 1 closed form, worst relative difference", mp.nstr(worst, 3), flush=True)

        worst = mpf(0)
        for d in (2, 3, 6):
            for factor in (mpf("1.5"), mpf("0.25")):
                ratio = Ratio([factor] * d, [mpf(0)] * d)
                for alpha in FPRS:
                    a = ratio.tpr(mpf(alpha), mpf("1e-25"))
                    b = scaled_reference(d, factor, mpf(alpha))
                    worst = max(worst, abs(a - b) / b)
        print("chi-square closed form, worst relative difference", mp.nstr(worst, 3), flush=True)

        worst = mpf(0)
        for v, mu in (
            ((1.7, 0.4), (0.5, -1.0)),
            ((0.3, 0.6), (1.0, 0.2)),
            ((3.0, 1.4), (0.0, 2.0)),
        ):
            v, mu = exact(list(v)), exact(list(mu))
            ratio = Ratio(v, mu)
            for t in (mpf(0), mpf("0.9")):
                with mp.workdps(30):
                    direct = conditioned(v, mu, t)
                a = ratio.upper0(t, mpf("1e-25"))[0], ratio.upper1(t, mpf("1e-25"))
                worst = max(worst, *(abs(x - y) / y for x, y in zip(a, direct, strict=True)))
        print("d = 2 by conditioning, worst relative difference", mp.nstr(worst, 3), flush=True)

    rng = np.random.default_rng(3)
    worst = 0.0
    for _, member, nonmember in cases()[5::8]:
        with mp.workdps(50):
            v, mu = reduce(member, nonmember)
            ratio = Ratio(v, mu)
            adv = float(1 - ratio.overlap(mpf("1e-20")))
            auc = float(1 - ratio.auc_complement(mpf("1e-20")))
        m1, c1 = np.array(member["mean"]), np.array(member["covariance"])
        m0, c0 = np.array(nonmember["mean"]), np.array(nonmember["covariance"])
        n = 400_000

        def log_ratio(x, m1=m1, c1=c1, m0=m0, c0=c0):
            one, nil = x - m1, x - m0
            a = np.einsum("ij,ij->i", one, np.linalg.solve(c1, one.T).T)
            b = np.einsum("ij,ij->i", nil, np.linalg.solve(c0, nil.T).T)
            return (b - a + np.linalg.slogdet(c0)[1] - np.linalg.slogdet(c1)[1]) / 2

        x1 = m1 + rng.normal(size=(n, len(m1))) @ np.linalg.cholesky(c1).T
        x0 = m0 + rng.normal(size=(n, len(m0))) @ np.linalg.cholesky(c0).T
        l1, l0 = log_ratio(x1), log_ratio(x0)
        mc_adv = (l1 > 0).mean() - (l0 > 0).mean()
        ranks = np.searchsorted(np.sort(l0), l1, "left") + np.searchsorted(np.sort(l0), l1, "right")
        worst = max(worst, abs(mc_adv - adv), abs(ranks.mean() / (2 * n) - auc))
    print("sampling, worst absolute difference", round(worst, 5))


def conditioned(v, mu, t):
    """P0(l > t) and P1(l > t) for d = 2: mp.quad over z1 of the closed form in z2."""
    piece = [Piece(m, mp.sqrt(x), mpf(0), mpf(1)) for x, m in zip(v, mu, strict=True)]
    one, two = piece
    cuts = [mpf(k) for k in range(-12, 13, 2)] + [mu[0] + k * one.r for k in range(-12, 13, 2)]
    if two.a != 0:
        # where the discriminant in z2 vanishes
        edge = two.c - two.b**2 / (4 * two.a)
        cuts += [y for pair in one.region(t - edge, True) for y in pair if not mp.isinf(y)]
    cuts = sorted(set(cuts))
    p0 = mp.quad(lambda z: mp.npdf(z) * two.masses(t - one.ratio(z), True)[0], cuts)
    p1 = mp.quad(lambda z: mp.npdf(z, one.mu, one.r) * two.masses(t - one.ratio(z), True)[1], cuts)
    return p0, p1


def main():
    """Compute, check and write."""
    start = time.time()
    pairs = []
    for tag, member, nonmember in cases():
        begin = time.time()
        with mp.workdps(60):
            try:
                pairs.append(entry(tag, member, nonmember, result(member, nonmember)))
            except RuntimeError as error:
                raise RuntimeError(f"{tag} {member} {nonmember}") from error
        if time.time() - begin > 25:
            print("slow", tag, len(member["mean"]), round(time.time() - begin, 1), flush=True)
    size = write("multivariate_normal.json", "make_multivariate_normal.py", pairs)
    print(len(pairs), "pairs", size, "bytes", round(time.time() - start), "s")


if __name__ == "__main__":
    mp.dps = 50
    if sys.argv[1:] == ["check"]:
        cross_check()
    else:
        main()
