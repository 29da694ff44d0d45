"""Shared parts of the reference-value scripts: quadrature, root finding, measures, output.

Everything here works on the law of the log likelihood ratio l = log p1/p0 through its tails
S_i(t) = P_i(l > t) and F_i(t) = P_i(l <= t), each given as a sum of positive terms.
"""

import itertools
import json
from pathlib import Path

import mpmath
from mpmath import mp, mpf

HERE = Path(__file__).resolve().parent
FPRS = [1e-1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12]
DELTA = 1e-5
ORDERS = [0.5, 2, 8]
DIGITS = 20
INF = mpf("inf")


def fmt(x, digits=DIGITS):
    """A number as a decimal string in scientific notation, or "inf"."""
    x = mpf(x)
    if mp.isinf(x):
        return "inf" if x > 0 else "-inf"
    if mp.isnan(x):
        raise ValueError("nan")
    if x == 0:
        return "0.0"
    return mp.nstr(x, digits, strip_zeros=False, min_fixed=0, max_fixed=0)


def exact(value):
    """The same structure with every double turned into the mpf of exactly that double."""
    if isinstance(value, (list, tuple)):
        return [exact(v) for v in value]
    return mpf(float(value))


def normal_interval(lo, hi):
    """P(lo < Z < hi), Z standard normal, as accurate in the tails as in the middle."""
    if lo >= hi:
        return mpf(0)
    if hi <= 0:
        lo, hi = -hi, -lo
    root2 = mp.sqrt(2)
    if lo >= 0:
        upper = mpf(0) if hi == INF else mp.erfc(hi / root2)
        return (mp.erfc(lo / root2) - upper) / 2
    left = mpf(1) if lo == -INF else mp.erf(-lo / root2)
    right = mpf(1) if hi == INF else mp.erf(hi / root2)
    return (left + right) / 2


def bracket_root(f, a, b, fa, fb, ftol, maxiter=2000):
    """Root of f in [a, b] (f changes sign) by Chandrupatla's method; stops at |f| < ftol."""
    if fa == 0:
        return a
    if fb == 0:
        return b
    if (fa > 0) == (fb > 0):
        raise ValueError(f"no sign change on [{mp.nstr(a, 8)}, {mp.nstr(b, 8)}]")
    c, fc = a, fa
    step = mpf(1) / 2
    best = (min(abs(fa), abs(fb)), a if abs(fa) < abs(fb) else b)
    for _ in range(maxiter):
        x = a + step * (b - a)
        fx = f(x)
        if abs(fx) < best[0]:
            best = (abs(fx), x)
        if abs(fx) < ftol or x in (a, b):
            return best[1]
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, b = b, a
            fc, fb = fb, fa
        a, fa = x, fx
        step = mpf(1) / 2
        if fb not in (fa, fc) and fa != fc:
            xi = (a - b) / (c - b)
            phi = (fa - fb) / (fc - fb)
            if phi * phi < xi and (1 - phi) ** 2 < 1 - xi:
                step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (
                    fc - fb
                )
        small = mp.eps * 4
        step = min(max(step, small), 1 - small)
    raise RuntimeError("bracket_root did not end")


def trapezoid(f, tol, h=None, floor=None, max_halvings=11, center=0):
    """Trapezoidal sum of f over the whole line, halving the step until two sums agree to tol.

    f must be analytic near the line and must die out (at least exponentially) both ways;
    the sum runs outwards from ``center`` until ``quiet`` successive terms are below the floor.
    """
    h = mpf(1) / 2 if h is None else mpf(h)
    floor = tol / 1000 if floor is None else floor
    total = f(mpf(center))
    peak = abs(total)

    def sweep(start, step):
        nonlocal peak
        out = mpf(0)
        for sign in (1, -1):
            x = start
            quiet = 0
            while quiet < 8:
                term = f(center + sign * x)
                out += term
                mag = abs(term)
                peak = max(peak, mag)
                quiet = quiet + 1 if mag <= floor * peak else 0
                x += step
                if x > 5000:
                    raise RuntimeError("trapezoid does not die out")
        return out

    total += sweep(h, h)
    previous = total * h
    for _ in range(max_halvings):
        total += sweep(h / 2, h)
        h /= 2
        value = total * h
        if abs(value - previous) <= tol * abs(value):
            return value
        previous = value
    raise RuntimeError("trapezoid did not converge")


class NotConverged(RuntimeError):
    """A quadrature rule ran out of halvings."""


def _double_exponential(f, transform, tol, scale_hint, halvings):
    """Double exponential rule: f times the weight, summed until converged against the hint."""
    floor = tol / 10**4
    h = mpf(1) / 4

    def term(q):
        x, w = transform(q)
        return f(x) * w if w != 0 else mpf(0)

    def sweep(start, step):
        out = mpf(0)
        peak = mpf(0)
        for sign in (1, -1):
            q = start
            quiet = 0
            while quiet < 4 and q < 9:
                value = term(sign * q)
                out += value
                peak = max(peak, abs(value))
                ref = max(peak, scale_hint)
                quiet = quiet + 1 if abs(value) <= floor * ref and q > 2 else 0
                q += step
        return out

    total = term(mpf(0)) + sweep(h, h)
    previous = total * h
    for _ in range(halvings):
        total += sweep(h / 2, h)
        h /= 2
        value = total * h
        if abs(value - previous) <= tol * max(abs(value), scale_hint):
            return value
        previous = value
    raise NotConverged("double exponential rule did not converge")


def quad_finite(f, a, b, tol, scale_hint, depth=0):
    """Tanh-sinh on (a, b), split where it is slow; algebraic end points are fine."""
    half, mid = (b - a) / 2, (a + b) / 2
    halfpi = mp.pi / 2

    def transform(q):
        e = mp.exp(2 * halfpi * mp.sinh(-abs(q)))
        off = 2 * half * e / (1 + e)
        x = mid if q == 0 else (b - off if q > 0 else a + off)
        return x, half * halfpi * mp.cosh(q) * 4 * e / (1 + e) ** 2

    try:
        return _double_exponential(f, transform, tol, scale_hint, 5)
    except NotConverged:
        if depth > 60:
            raise
    left = quad_finite(f, a, mid, tol, scale_hint, depth + 1)
    return left + quad_finite(f, mid, b, tol, max(scale_hint, abs(left)), depth + 1)


def quad_tail(f, a, scale, sign, tol, scale_hint):
    """Exp-sinh on (a, inf) for sign 1, on (-inf, a) for sign -1."""
    halfpi = mp.pi / 2

    def transform(q):
        e = scale * mp.exp(halfpi * mp.sinh(q))
        return a + sign * e, e * halfpi * mp.cosh(q)

    return _double_exponential(f, transform, tol, scale_hint, 9)


class LevelLaws:
    """The law of l under both hypotheses; a subclass supplies the tails.

    ``levels``: finite levels, ascending, at which the tails are not smooth, plus any helpful
    ordinary level; at least one.  ``lowest`` and ``highest``: infimum and supremum of l over the
    continuous part and the atoms with both masses positive.  ``pos_inf``: P1(l = +inf), and
    ``neg_inf``: P0(l = -inf).
    """

    levels: list
    lowest = -INF
    highest = INF
    pos_inf = mpf(0)
    neg_inf = mpf(0)

    def surv(self, t):
        """(P0(l > t), P1(l > t))."""
        raise NotImplementedError

    def cdf(self, t):
        """(P0(l <= t), P1(l <= t))."""
        raise NotImplementedError

    def atom0(self, t):
        """P0(l = t) where t is one of the levels."""
        return mpf(0)

    def threshold(self, alpha, ftol):
        """A level t with P0(l > t) = alpha, or the atom level at which it jumps over alpha."""
        levels = self.levels
        below = None
        above = None
        for level in levels:
            s0 = self.surv(level)[0]
            if s0 <= alpha <= s0 + self.atom0(level):
                return level
            if s0 > alpha:
                below = level
            elif above is None:
                above = level

        def g(t):
            s0 = self.surv(t)[0]
            return mp.log(s0 / alpha) if s0 > 0 else mpf(-(10**6))

        if below is None:
            if 1 - self.neg_inf <= alpha:
                return -INF
            if above <= self.lowest:
                return above
            to_t = lambda q: above - mp.exp(q)  # noqa: E731
        elif above is None:
            if self.highest <= below:
                raise RuntimeError("no level left")
            to_t = lambda q: below + mp.exp(q)  # noqa: E731
        else:
            to_t = lambda q: below + (above - below) / (1 + mp.exp(-q))  # noqa: E731
        f = lambda q: g(to_t(q))  # noqa: E731
        lo, flo = mpf(0), f(mpf(0))
        step = mpf(4)
        rising = below is None
        for _ in range(60):
            direction = 1 if (flo < 0) == rising else -1
            hi = lo + direction * step
            fhi = f(hi)
            if (fhi > 0) != (flo > 0):
                return to_t(bracket_root(f, lo, hi, flo, fhi, ftol))
            lo, flo = hi, fhi
            step *= mpf("1.5")
        raise RuntimeError("threshold not bracketed")

    def tpr(self, alpha, ftol):
        """Power of the level-alpha Neyman-Pearson test."""
        t = self.threshold(alpha, ftol)
        if t == -INF:
            return mpf(1)
        s0, s1 = self.surv(t)
        return s1 + mp.exp(t) * (alpha - s0)

    def hockey(self, eps, swapped):
        """sup_A P1(A) - e^eps P0(A), or with the roles exchanged."""
        if swapped:
            f0, f1 = self.cdf(-eps)
            return f0 - mp.exp(eps) * f1
        s0, s1 = self.surv(eps)
        return s1 - mp.exp(eps) * s0

    def epsilon(self, delta, swapped, ftol):
        """Smallest eps >= 0 with hockey(eps) <= delta."""
        at_zero = self.hockey(mpf(0), swapped)
        if at_zero <= delta:
            return mpf(0)
        if (self.neg_inf if swapped else self.pos_inf) >= delta:
            return INF

        def f(eps):
            value = self.hockey(eps, swapped)
            return mp.log(value / delta) if value > 0 else mpf(-(10**6))

        lo, flo = mpf(0), mp.log(at_zero / delta)
        hi = delta
        while True:
            fhi = f(hi)
            if fhi <= 0:
                return bracket_root(f, lo, hi, flo, fhi, ftol)
            lo, flo = hi, fhi
            hi *= 4

    def auc_complement(self, tol):
        """1 - AUC = (1/2) int e^t P0(l > t)^2 dt, which also counts atoms by half."""
        levels = list(self.levels)
        levels = [x for x in levels if self.lowest <= x <= self.highest]
        if self.lowest < 0 < self.highest:
            levels.append(mpf(0))
        crude = mpf("1e-2")
        if self.highest == INF:
            for alpha in ("1e-4", "1e-12"):
                s = self.surv(max(levels))[0]
                if s > 0:
                    levels.append(self.threshold(s * mpf(alpha), crude))
        if self.lowest == -INF:
            mirror = _Mirror(self)
            for alpha in ("1e-4", "1e-12"):
                s = self.cdf(min(levels))[0] - self.neg_inf
                if s > 0:
                    low = -mirror.threshold(s * mpf(alpha) + self.neg_inf, crude)
                    if low > min(levels) - 20:
                        levels.append(low)
        levels = sorted(set(levels))

        def f(t):
            return mp.exp(t) * self.surv(t)[0] ** 2

        values = [f(x) for x in levels]
        hint = max(values)  # int f >= f(t) for every t, as f(u) >= f(t) e^(u - t) for u < t
        total = mpf(0)
        first = levels[0]
        if self.lowest == -INF:
            total += quad_tail(f, first, mpf(1), -1, tol, hint)
        else:
            total += mp.exp(first) * (1 - self.neg_inf) ** 2
        for a, b in itertools.pairwise(levels):
            total += quad_finite(f, a, b, tol, max(hint, abs(total)))
        last = levels[-1]
        if self.highest == INF and values[-1] > 0:
            scale = max(last - levels[-2], mpf("1e-30")) / 4 if len(levels) > 1 else mpf(1)
            total += quad_tail(f, last, scale, 1, tol, max(hint, abs(total)))
        return total / 2


class _Mirror(LevelLaws):
    """P0(l < t) seen as an upper tail, to find low quantiles with the same code."""

    def __init__(self, laws):
        self.laws = laws
        self.levels = sorted(-x for x in laws.levels)
        self.lowest, self.highest = -laws.highest, -laws.lowest

    def surv(self, t):
        return self.laws.cdf(-t)


def measures(laws, ftol, fprs=None):
    """The measures that need only the tails of l; a dictionary of mpf numbers."""
    s0, s1 = laws.surv(mpf(0))
    f0, f1 = laws.cdf(mpf(0))
    advantage = s1 - s0 if s0 < mpf("0.5") else f0 - f1
    out = {
        "advantage": advantage,
        "overlap": f1 + s0,
        "tpr_at_fpr": {repr(a): laws.tpr(mpf(a), ftol) for a in fprs or FPRS},
        "epsilon_at_delta": {
            repr(DELTA): {
                "member_to_nonmember": laws.epsilon(mpf(DELTA), False, ftol),
                "nonmember_to_member": laws.epsilon(mpf(DELTA), True, ftol),
            }
        },
    }
    return out


def flatten(tree, prefix=""):
    """(path, number) of every leaf."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from flatten(value, f"{prefix}/{key}")
    else:
        yield prefix, tree


def disagreement(one, two):
    """Largest relative difference between two result dictionaries, and where it is."""
    worst = (mpf(0), "")
    b = dict(flatten(two))
    for path, x in flatten(one):
        y = b[path]
        if x == y:
            continue
        rel = INF if mp.isinf(x) or mp.isinf(y) else abs(x - y) / max(abs(x), abs(y))
        worst = max(worst, (rel, path))
    return worst


def stable(compute, dps=(60, 90, 140, 220, 400), need="1e-23"):
    """compute() at growing dps until two successive results agree to ``need``."""
    previous = None
    for d in dps:
        with mp.workdps(d):
            current = compute()
            if previous is not None:
                rel, path = disagreement(previous, current)
                if rel < mpf(need):
                    return current
        previous = current
    raise RuntimeError(f"precision not reached: {mp.nstr(rel, 5)} at {path}")


def sanity(tag, r):
    """Cheap inequalities that every pair obeys."""
    slack = mpf("1e-18")
    adv, ovl = r["advantage"], r["overlap"]

    def check(ok, what):
        if not ok:
            raise AssertionError(f"{tag}: {what}: {r}")

    check(0 <= adv <= 1 and 0 <= ovl <= 1, "range")
    check(abs(adv + ovl - 1) < slack, "advantage + overlap")
    for key in ("kl", "kl_reverse"):
        check(r[key] * (1 + slack) >= 2 * adv**2, "Pinsker " + key)
        if not mp.isinf(r[key]):
            check(ovl * (1 + slack) >= mp.exp(-r[key]) / 2, "Bretagnolle-Huber " + key)
    ren = r["renyi"]
    check(ren["0.5"] <= r["kl_reverse"] * (1 + slack), "renyi 0.5 <= kl_reverse")
    check(ren["0.5"] <= r["kl"] * (1 + slack), "renyi 0.5 <= kl")
    check(r["kl_reverse"] <= ren["2"] * (1 + slack), "kl_reverse <= renyi 2")
    check(ren["2"] <= ren["8"] * (1 + slack), "renyi 2 <= renyi 8")
    if not mp.isinf(ren["0.5"]):
        bc = mp.exp(-ren["0.5"] / 2)
        check(1 - bc <= adv * (1 + slack) + mpf("1e-40"), "Hellinger below")
        check(adv**2 <= (1 - bc**2) * (1 + slack) + mpf("1e-40"), "Hellinger above")
    auc, comp = r["auc"], r["auc_complement"]
    check(abs(auc + comp - 1) < slack, "auc + complement")
    # the ROC curve is concave and touches height adv above the diagonal
    check(comp <= ovl / 2 * (1 + slack), "auc below")
    check(comp * (1 + slack) >= ovl**2 / 2, "auc above")
    last = mpf(1)
    for fpr, tpr in sorted(r["tpr_at_fpr"].items(), key=lambda kv: -float(kv[0])):
        a = mpf(float(fpr))
        check(tpr * (1 + slack) >= a, "tpr >= fpr")
        check(tpr <= min(mpf(1), a + adv) * (1 + slack), "tpr <= fpr + advantage")
        check(tpr <= last * (1 + slack), "tpr monotone")
        last = tpr
    for eps in r["epsilon_at_delta"][repr(DELTA)].values():
        check((eps == 0) == (adv <= mpf(DELTA)), "epsilon is 0 iff advantage <= delta")


def render(tree, digits=DIGITS):
    """The result with numbers as strings."""
    if isinstance(tree, dict):
        return {key: render(value, digits) for key, value in tree.items()}
    return fmt(tree, digits)


ORDER = [
    "advantage",
    "overlap",
    "kl",
    "kl_reverse",
    "renyi",
    "auc",
    "auc_complement",
    "tpr_at_fpr",
    "epsilon_at_delta",
]


def entry(tag, member, nonmember, result, digits=DIGITS):
    """One element of "pairs"."""
    sanity(tag, result)
    body = {key: render(result[key], digits) for key in ORDER}
    return {"tag": tag, "member": member, "nonmember": nonmember, **body}


def write(name, made_by, pairs, dps=50, digits=DIGITS, **extra):
    """Write one reference file, one pair per line."""
    head = {
        "made_by": f"tests/reference/{made_by}",
        "mpmath": mpmath.__version__,
        "dps": dps,
        "digits": digits,
        **extra,
    }
    lines = ",\n".join(json.dumps(p, separators=(",", ":")) for p in pairs)
    text = json.dumps(head, indent=0)[:-2] + ',\n"pairs": [\n' + lines + "\n]\n}\n"
    json.loads(text)
    (HERE / name).write_text(text)
    return len(text)
