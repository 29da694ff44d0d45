"""Reference values for two normal mixtures: writes normal_mixture.json."""

import bisect
import itertools
import random
import sys
import time

from mp_common import INF, LevelLaws, bracket_root, disagreement, entry, exact, measures, write
from mpmath import mp, mpf

REACH = 60


class Mixture:
    """Components (weight, mean, sigma) with the weights normalised exactly."""

    def __init__(self, spec):
        w, m, s = (exact(spec[k]) for k in ("weights", "means", "sigmas"))
        total = sum(w)
        self.parts = [(a / total, b, c) for a, b, c in zip(w, m, s, strict=True)]
        norm = mp.sqrt(2 * mp.pi)
        self.fast = [(a / (c * norm), b, 1 / c**2) for a, b, c in self.parts]

    def density(self, x):
        """The density and its first two derivatives."""
        p = d1 = d2 = mpf(0)
        for height, mean, prec in self.fast:
            z = x - mean
            g = z * prec
            e = height * mp.exp(-z * g / 2)
            p += e
            e1 = e * g
            d1 -= e1
            d2 += e1 * g - e * prec
        return p, d1, d2

    def tails(self, x):
        """For each component P(Z > |z|)/1 with z the standardised x, and the sign of z."""
        out = []
        root2 = mp.sqrt(2)
        for _, mean, sigma in self.parts:
            z = (x - mean) / sigma
            out.append((mp.erfc(abs(z) / root2) / 2, z >= 0))
        return out

    def interval(self, lo, hi):
        """Mass between two sets of tails (None for an infinite end)."""
        total = mpf(0)
        for i, (w, _, _) in enumerate(self.parts):
            a, apos = lo[i] if lo is not None else (mpf(0), False)
            b, bpos = hi[i] if hi is not None else (mpf(0), True)
            if apos and bpos:
                total += w * (a - b)
            elif not apos and not bpos:
                total += w * (b - a)
            else:
                total += w * (1 - a - b)
        return total


class MixtureLaws(LevelLaws):
    """Tails of l, through all critical points of l and one root on each monotone branch."""

    def __init__(self, member, nonmember, density=1, offset=0.0):
        self.p1, self.p0 = Mixture(member), Mixture(nonmember)
        parts = self.p1.parts + self.p0.parts
        self.even = all(m == 0 for _, m, _ in parts)
        smax = max(s for _, _, s in parts)
        self.end = REACH * smax + max(abs(m) for _, m, _ in parts)
        self.start = mpf(0) if self.even else -self.end
        self.reach = self.end
        self._critical_points(self._grid(parts, density, offset))
        flats = self._flat_ends()
        inner = list(self.knots[1:-1]) + ([self.knots[0]] if self.even else [])
        levels = [self.ratio(x)[0] for x in inner]
        ends = [(self.knots[-1], flats[1])]
        if not self.even:
            ends.append((self.knots[0], flats[0]))
        levels += [self.ratio(x)[0] for x, flat in ends if flat]
        every = [self.ratio(x)[0] for x in self.knots]
        self.lowest, self.highest = min(every), max(every)
        for x, flat in ends:
            if not flat and self.ratio(x)[0] == self.lowest:
                self.lowest = -INF
            if not flat and self.ratio(x)[0] == self.highest:
                self.highest = INF
        if not levels:
            levels = [self.ratio(mpf(0))[0]]
        self.levels = sorted(set(levels))

    def ratio(self, x):
        """l and its first two derivatives."""
        p, p1, p2 = self.p1.density(x)
        q, q1, q2 = self.p0.density(x)
        a, b = p1 / p, q1 / q
        slope = a - b
        if abs(slope) < mp.eps * 10**6 * (abs(a) + abs(b)):
            slope = mpf(0)  # not resolved
        return mp.log(p / q), slope, p2 / p - a * a - q2 / q + b * b

    def _flat_ends(self):
        """Whether l tends to a constant at -inf and at +inf."""
        out = []
        for sign in (-1, 1):
            tops = [max((s, sign * m) for _, m, s in law.parts) for law in (self.p0, self.p1)]
            out.append(tops[0] == tops[1])
        return out

    def _grid(self, parts, density, offset):
        """Points at the scale of every component and of every change of leading component."""
        points = set()
        fine = [k / 10 for k in range(81)] + [8 + 0.5 * k for k in range(1, 65)]
        for _, m, s in parts:
            for k in fine:
                for j in range(density):
                    step = (k + (j + offset) * 0.1 / density) * s
                    points |= {m + step, m - step}
        for i, (wi, mi, si) in enumerate(parts):
            for wj, mj, sj in parts[:i]:
                a = (1 / sj**2 - 1 / si**2) / 2
                b = mi / si**2 - mj / sj**2
                c = mj**2 / sj**2 / 2 - mi**2 / si**2 / 2 + mp.log(wi * sj / (wj * si))
                if a == 0:
                    roots = [-c / b] if b != 0 else []
                else:
                    disc = b * b - 4 * a * c
                    roots = []
                    if disc > 0:
                        q = -(b + (1 if b >= 0 else -1) * mp.sqrt(disc)) / 2
                        roots = [q / a, c / q]
                for x in roots:
                    if abs(x) < self.end:
                        width = 1 / max(abs(2 * a * x + b), 1 / max(si, sj))
                        points |= {x + (mpf(k) + offset) / 4 * width for k in range(-20, 21)}
        points = sorted(x for x in points if self.start < x < self.end)
        smin = min(s for _, _, s in parts)
        kept = [self.start]
        for x in points:
            if x - kept[-1] > smin / 1000:
                kept.append(x)
        return [*kept, self.end]

    def _critical_points(self, grid):
        values = [self.ratio(x) for x in grid]
        # where l has become constant at an end, the range stops
        while values[-1][1] == 0 and len(grid) > 2:
            grid.pop()
            values.pop()
        while not self.even and values[0][1] == 0 and len(grid) > 2:
            grid.pop(0)
            values.pop(0)
        self.start, self.end = grid[0], grid[-1]
        slope = lambda x: self.ratio(x)[1]  # noqa: E731
        curve = lambda x: self.ratio(x)[2]  # noqa: E731
        # where l'' changes sign, l' may cross zero twice between two grid points
        extra = []
        for (a, va), (b, vb) in itertools.pairwise(zip(grid, values, strict=True)):
            if va[2] * vb[2] < 0 and va[1] * vb[1] > 0:
                near = min(abs(va[1]), abs(vb[1]))
                if (b - a) * max(abs(va[2]), abs(vb[2])) * 8 > near:
                    x = bracket_root(curve, a, b, va[2], vb[2], abs(va[2]) * mpf("1e-12"))
                    extra.append((x, self.ratio(x)))
        table = sorted([*zip(grid, values, strict=True), *extra], key=lambda p: p[0])
        knots = [table[0]]
        sloped = [row for row in table if row[1][1] != 0]
        for (a, va), (b, vb) in itertools.pairwise(sloped):
            if va[1] * vb[1] < 0:
                tol = max(abs(va[1]), abs(vb[1])) * mpf(10) ** (5 - mp.dps)
                x = bracket_root(slope, a, b, va[1], vb[1], tol)
                knots.append((x, self.ratio(x)))
        knots.append(table[-1])
        self.knots = [k[0] for k in knots]
        self.branches = []
        for (a, va), (b, vb) in itertools.pairwise(knots):
            inside = [(x, v[0]) for x, v in table if a < x < b]
            rows = [(a, va[0]), *inside, (b, vb[0])]
            if vb[0] < va[0]:
                rows = rows[::-1]
            self.branches.append(([r[1] for r in rows], [r[0] for r in rows], va[2], vb[2], a, b))

    def _root(self, branch, t):
        """The x on a monotone branch with l(x) = t, by safeguarded Halley steps; None if none."""
        levels, xs, curve_a, curve_b, a, b = branch
        if not levels[0] < t < levels[-1]:
            return None
        i = bisect.bisect_left(levels, t)
        lo, hi = xs[i - 1], xs[i]
        x = lo + (hi - lo) * (t - levels[i - 1]) / (levels[i] - levels[i - 1])
        at_low, at_high = i == 1, i == len(levels) - 1
        for end, curve, hit in ((a, curve_a, a in (lo, hi)), (b, curve_b, b in (lo, hi))):
            if hit and (at_low or at_high) and curve != 0:
                top = levels[0] if xs[0] == end else levels[-1]
                arg = 2 * (t - top) / curve
                if arg > 0 and abs(self._slope_at(end)) == 0:
                    guess = end + (1 if end == a else -1) * mp.sqrt(arg)
                    if min(lo, hi) < guess < max(lo, hi):
                        x = guess
        if lo > hi:
            lo, hi, rising = hi, lo, False
        else:
            rising = True
        width = hi - lo
        noise = mp.eps * 4096 * (1 + abs(t))
        goal = width * mpf(10) ** (-(mp.dps - 6) / mpf(3))
        for _ in range(300):
            value, d1, d2 = self.ratio(x)
            value -= t
            if abs(value) <= noise:
                return x
            if (value < 0) == rising:
                lo = x
            else:
                hi = x
            denominator = 2 * d1 * d1 - value * d2
            new = x - 2 * value * d1 / denominator if denominator != 0 else lo - 1
            if not lo < new < hi:
                new = (lo + hi) / 2
                if new in (lo, hi):
                    return new
                x = new
                continue
            step = abs(new - x)
            x = new
            if step < goal and step * 10**6 < abs(x - a) and step * 10**6 < abs(x - b):
                # cubic convergence: the next step would be below the working precision
                return x if step < goal / 1000 else self._newton(x, t)
            if step < (abs(x) + width) * mp.eps * 16:
                return x
        raise RuntimeError("root did not converge")

    def _newton(self, x, t):
        value, d1, _ = self.ratio(x)
        return x - (value - t) / d1

    def _slope_at(self, end):
        """0 for a critical point, 1 for an end of the range (or an even start is critical)."""
        if end == self.knots[-1] or (end == self.knots[0] and not self.even):
            return 1
        return 0

    def regions(self, t, above=True):
        """Intervals on which l > t (above) or l <= t, adjacent ones joined."""
        out = []
        for branch in self.branches:
            levels, xs, _, _, a, b = branch
            rising = xs[0] == a
            if levels[0] >= t or levels[-1] <= t:
                part = (a, b) if (levels[0] >= t) == above else None
            else:
                x = self._root(branch, t)
                part = (x, b) if rising == above else (a, x)
            if part is None:
                continue
            if out and out[-1][1] == part[0]:
                out[-1] = (out[-1][0], part[1])
            else:
                out.append(part)
        return out

    def _masses(self, t, above, which):
        intervals = self.regions(t, above)
        out = []
        for law in which:
            total = mpf(0)
            for a, b in intervals:
                lo = None if a == self.start and not self.even else law.tails(a)
                hi = None if b == self.end else law.tails(b)
                total += law.interval(lo, hi)
            out.append(2 * total if self.even else total)
        return out

    def surv(self, t):
        return self._masses(t, True, (self.p0, self.p1))

    def cdf(self, t):
        return self._masses(t, False, (self.p0, self.p1))


class _Only0(LevelLaws):
    """The nonmember tail alone (half the work for the AUC)."""

    def __init__(self, laws):
        self.laws = laws
        self.levels, self.lowest, self.highest = laws.levels, laws.lowest, laws.highest

    def surv(self, t):
        return [*self.laws._masses(t, True, (self.laws.p0,)), None]

    def cdf(self, t):
        return [*self.laws._masses(t, False, (self.laws.p0,)), None]


def gauss_legendre(n):
    """Nodes and weights on (-1, 1)."""
    out = []
    for k in range(1, n + 1):
        x = mp.cos(mp.pi * (k - mpf(1) / 4) / (n + mpf(1) / 2))
        for _ in range(200):
            p0, p1 = mpf(1), x
            for j in range(2, n + 1):
                p0, p1 = p1, ((2 * j - 1) * x * p1 - (j - 1) * p0) / j
            slope = n * (x * p1 - p0) / (x * x - 1)
            dx = p1 / slope
            x -= dx
            if abs(dx) < mp.eps * 8:
                break
        out.append((x, 2 / ((1 - x * x) * slope**2)))
    return out


RULES = {}


def divergences(laws, orders=(0.5, 2, 8), tol="1e-26"):
    """kl, kl_reverse, renyi by adaptive Gauss-Legendre quadrature of integrands of one sign."""
    key = mp.dps
    if key not in RULES:
        RULES[key] = gauss_legendre(28)
    rule = RULES[key]
    tol = mpf(tol)
    s1 = max(s for _, _, s in laws.p1.parts)
    s0 = max(s for _, _, s in laws.p0.parts)
    finite = [a for a in orders if mpf(a) / s1**2 + (1 - mpf(a)) / s0**2 > 0]

    def integrands(x):
        p, q = laws.p1.density(x)[0], laws.p0.density(x)[0]
        log = mp.log(p / q)
        out = [p - q - q * log, p * log - p + q]
        for a in finite:
            power = q * mp.exp(a * log)
            out.append(power - q - a * (p - q))
            if a == 0.5:
                out.append(power)
        return out

    count = 2 + len(finite) + (0.5 in finite)

    def panel(a, b):
        half, mid = (b - a) / 2, (a + b) / 2
        total = [mpf(0)] * count
        for x, w in rule:
            for i, v in enumerate(integrands(mid + half * x)):
                total[i] += w * v
        return [half * v for v in total]

    parts = laws.p1.parts + laws.p0.parts
    reach = laws.reach
    cuts = set(laws.knots)
    for _, m, s in parts:
        for k in (0, 1, 2, 3, 4.5, 6, 8, 11, 15, 21, 30, 43):
            cuts |= {m + k * s, m - k * s}
    for a in finite:
        # far out the integrand of order a is a normal bump, wide if a is near its limit
        for sign in (-1, 1):
            (s1, m1), (s0, m0) = (
                max((s, sign * m) for _, m, s in law.parts) for law in (laws.p1, laws.p0)
            )
            quad = a / s1**2 + (1 - a) / s0**2
            middle = sign * (a * m1 / s1**2 + (1 - a) * m0 / s0**2) / quad
            width = 1 / mp.sqrt(quad)
            reach = max(reach, abs(middle) + 25 * width)
            for k in (0, 1, 2, 3, 4.5, 6, 8, 11, 15, 20, 25):
                cuts |= {middle + k * width, middle - k * width}
    start = mpf(0) if laws.even else -reach
    cuts = sorted(x for x in {start, reach, *cuts} if start <= x <= reach)
    merged = [cuts[0]]
    smin = min(s for _, _, s in parts)
    for x in cuts[1:]:
        if x - merged[-1] > smin / 4:
            merged.append(x)
    stack = []
    total = [mpf(0)] * count
    for a, b in itertools.pairwise(merged):
        value = panel(a, b)
        stack.append((a, b, value, 0))
        total = [u + v for u, v in zip(total, value, strict=True)]
    rough = [abs(v) for v in total]
    total = [mpf(0)] * count

    def refine(items):
        while items:
            a, b, whole, depth = items.pop()
            if depth == 0 and all(abs(v) <= tol * r for v, r in zip(whole, rough, strict=True)):
                # Gauss sums of one-signed integrands: a tiny panel stays tiny, but look once more
                mid = (a + b) / 2
                peek = [abs(v) for v in integrands(mid)]
                if all(p * (b - a) <= tol * r for p, r in zip(peek, rough, strict=True)):
                    continue
            mid = (a + b) / 2
            left, right = panel(a, mid), panel(mid, b)
            both = [u + v for u, v in zip(left, right, strict=True)]
            gap = max(
                abs(u - v) / r if r else mpf(0) for u, v, r in zip(whole, both, rough, strict=True)
            )
            if gap < tol:
                for i, v in enumerate(both):
                    total[i] += v
            elif depth > 40:
                raise RuntimeError("divergence quadrature did not converge")
            else:
                items += [(a, mid, left, depth + 1), (mid, b, right, depth + 1)]

    refine(stack)
    # an order near its limit of existence has a very wide integrand
    for sign in (1,) if laws.even else (1, -1):
        a, b = reach, 2 * reach
        while True:
            lo, hi = (a, b) if sign > 0 else (-b, -a)
            value = panel(lo, hi)
            peek = [abs(v) * a for v in integrands(sign * a)]
            size = max(
                max(abs(v), p) / r if r else mpf(0)
                for v, p, r in zip(value, peek, rough, strict=True)
            )
            if size < tol:
                break
            refine([(lo, hi, value, 1)])
            a, b = b, 2 * b
    if laws.even:
        total = [2 * v for v in total]
    renyi = {}
    spot = 2
    for a in orders:
        if a not in finite:
            renyi[repr(a)] = INF
            continue
        excess = total[spot]
        spot += 1
        if a == 0.5:
            power = total[spot]
            spot += 1
            log = mp.log(power) if power < mpf("0.5") else mp.log1p(excess)
        else:
            log = mp.log1p(excess)
        renyi[repr(a)] = log / (mpf(a) - 1)
    return {"kl": total[0], "kl_reverse": total[1], "renyi": renyi}


def result(member, nonmember, density=1, offset=0.0, auc_tol="1e-24"):
    """All measures of one pair at the present precision."""
    laws = MixtureLaws(member, nonmember, density, offset)
    out = measures(laws, mpf("1e-28"))
    out |= divergences(laws)
    with mp.workdps(max(mp.dps - 14, 36)):
        comp = _Only0(laws).auc_complement(mpf(auc_tol))
    return out | {"auc_complement": comp, "auc": 1 - comp}, len(laws.knots) - 2


def cases():
    """(tag, member, nonmember) in a fixed order."""
    rng = random.Random(4242)
    out = []

    def law(weights, means, sigmas):
        return {
            "weights": [float(w) for w in weights],
            "means": [float(m) for m in means],
            "sigmas": [float(s) for s in sigmas],
        }

    def normal(s, m=0.0):
        return law([1.0], [m], [s])

    def loguniform(lo, hi):
        return lo * (hi / lo) ** rng.random()

    def weights(n):
        raw = [rng.uniform(0.1, 1) for _ in range(n)]
        return [w / sum(raw) for w in raw]

    def scale_mixture(n, spread, base=1.0):
        sig = [base * spread ** (k / max(n - 1, 1) - 0.5) for k in range(n)]
        sig = [s * loguniform(0.95, 1.05) for s in sig]
        return law(weights(n), [0.0] * n, sig)

    def moment_sigma(spec):
        w, s = spec["weights"], spec["sigmas"]
        return (sum(a * b * b for a, b in zip(w, s, strict=True)) / sum(w)) ** 0.5

    def add(tag, member, nonmember):
        out.append((tag, member, nonmember))

    for spread in (1.1, 1.3, 1.8, 3.0, 5.0, 10.0):
        for n in (2, 3, 5):
            mix = scale_mixture(n, spread, loguniform(0.1, 10))
            add("scale-vs-normal", normal(moment_sigma(mix) * loguniform(0.6, 1.1)), mix)
            mix = scale_mixture(n, spread, loguniform(0.1, 10))
            if n != 5:
                add("normal-vs-scale", mix, normal(moment_sigma(mix) * loguniform(0.7, 1.2)))
    for spread in (1.1, 1.5, 2.5, 4.0, 7.0, 10.0):
        mix = scale_mixture(rng.choice([3, 4, 6]), spread)
        add("scale-vs-normal", normal(moment_sigma(mix)), mix)
    for spread in (1.2, 2.0, 4.0, 8.0):
        for n in (2, 4, 6):
            one = scale_mixture(n, spread)
            two = scale_mixture(max(2, n - 1), spread * loguniform(0.8, 1.2), loguniform(0.8, 1.3))
            add("scale-vs-scale", one, two)
    for k in range(12):
        n = rng.choice([1, 2, 3])
        base = (
            scale_mixture(n, 3.0)
            if k % 2
            else law(
                weights(n),
                [rng.gauss(0, 2) for _ in range(n)],
                [loguniform(0.5, 2) for _ in range(n)],
            )
        )
        other = {key: list(v) for key, v in base.items()}
        field = rng.choice(["weights", "means", "sigmas"]) if n > 1 and k % 2 == 0 else "sigmas"
        j = rng.randrange(n)
        other[field][j] += loguniform(1e-9, 1e-8) * rng.choice([-1, 1])
        add("near-equal", other, base)
    for k in range(14):
        n1, n0 = rng.choice([1, 2, 3, 4]), rng.choice([2, 3])
        gap = (4.0, 8.0, 16.0)[k % 3]
        means0 = [gap * i + rng.gauss(0, 0.3) for i in range(n0)]
        means1 = [gap * i * rng.choice([1.0, 0.5]) + rng.gauss(0, 0.3) for i in range(n1)]
        one = law(weights(n1), means1, [loguniform(0.4, 1.6) for _ in range(n1)])
        add("separated", one, law(weights(n0), means0, [loguniform(0.4, 1.6) for _ in range(n0)]))
    for k in range(12):
        tiny = (1e-9, 1e-6, 1e-12)[k % 3]
        wide = (5.0, 20.0, 100.0, 2.0)[k % 4]
        mix = law([1.0 - tiny, tiny], [0.0, 0.0], [1.0, wide])
        if k < 4:
            add("tiny-weight", normal(loguniform(0.8, 1.2)), mix)
        elif k < 8:
            add("tiny-weight", mix, normal(loguniform(0.8, 1.2), rng.choice([0.0, 0.4])))
        else:
            other = law([1.0 - tiny, tiny], [0.3, 0.0], [1.0, wide * rng.choice([1.0, 1.5])])
            add("tiny-weight", other, mix)
    for _ in range(18):
        n1, n0 = rng.randrange(1, 4), rng.randrange(1, 4)
        add(
            "general",
            law(
                weights(n1),
                [rng.gauss(0, 1.5) for _ in range(n1)],
                [loguniform(0.5, 2) for _ in range(n1)],
            ),
            law(
                weights(n0),
                [rng.gauss(0, 1.5) for _ in range(n0)],
                [loguniform(0.5, 2) for _ in range(n0)],
            ),
        )
    for n in (2, 3):
        base = law(weights(n), [0.0] * n, [1.0, 2.5, 4.0][:n])
        other = dict(base, weights=weights(n))
        add("same-components", other, base)
        base = law(weights(n), [0.0, 1.0, 3.0][:n], [1.0, 0.5, 0.7][:n])
        other = dict(base, weights=weights(n))
        add("same-components", other, base)
    for far in (12.0, 25.0, 42.0):
        add("disjoint", law([0.3, 0.7], [far, far + 3], [1.0, 0.5]), scale_mixture(2, 1.5, 0.9))
        add("disjoint", normal(0.8, -far), law([0.9, 0.1], [0.0, far], [1.0, 1.0]))
    for m1, r in ((0.0, 1.4), (0.6, 0.7), (2.0, 1.0), (0.1, 1.01)):
        add("one-component", normal(r, m1), normal(1.0))
    # weights that do not sum to one; unsorted sigmas; two equal components
    add("unnormalised", law([2.0, 5.0, 1.0], [0.0, 0.5, -1.0], [1.0, 0.6, 2.0]), normal(1.1))
    add("six-and-six", scale_mixture(6, 6.0), scale_mixture(6, 3.0, 1.2))
    for sigma in (0.9, 1.2, 1.6, 2.0):
        # the normal lies between the components: l rises, then falls on each side
        add("two-crossings", normal(sigma), law([0.6, 0.4], [0.0, 0.0], [0.7, 2.4]))
    add(
        "unnormalised",
        law([1e-3, 3e-3], [0.0, 0.0], [2.0, 0.5]),
        law([7.0, 7.0], [0.0, 0.0], [1.0, 1.0]),
    )
    return out


def direct(member, nonmember):
    """Advantage, kl and AUC complement in plain x-quadrature with mp.quad."""
    laws = MixtureLaws(member, nonmember)
    parts = laws.p1.parts + laws.p0.parts
    cuts = {
        m + k * s
        for _, m, s in parts
        for k in (-20, -12, -8, -5, -3, -2, -1, 0, 1, 2, 3, 5, 8, 12, 20)
    }
    cuts |= {x for x in laws.knots if not laws.end <= abs(x)}
    for level in [*laws.levels, mpf(0)]:
        roots = {x for pair in laws.regions(level) for x in pair if abs(x) < laws.end}
        cuts |= roots
        if laws.even:
            cuts |= {-x for x in roots}
    if laws.even:
        cuts |= {-x for x in cuts}
    cuts = sorted(cuts)
    one = lambda x: laws.p1.density(x)[0]  # noqa: E731
    nil = lambda x: laws.p0.density(x)[0]  # noqa: E731
    tv = mp.quad(lambda x: abs(one(x) - nil(x)), cuts) / 2
    kl = mp.quad(lambda x: -nil(x) * mp.log(one(x) / nil(x)), cuts)
    comp = mp.quad(lambda x: nil(x) * laws.cdf(mp.log(one(x) / nil(x)))[1], cuts, maxdegree=5)
    return {"advantage": tv, "kl": kl, "auc_complement": comp}


def cross_check(number=5):
    """A denser, shifted grid at another dps for every sixth pair; direct quadrature for a few."""
    everything = cases()
    worst = mpf(0)
    for tag, member, nonmember in everything[::6]:
        with mp.workdps(60):
            one, n1 = result(member, nonmember)
        with mp.workdps(80):
            two, n2 = result(member, nonmember, 2, 0.37, "1e-25")
            rel, path = disagreement(one, two)
        worst = max(worst, rel)
        if n1 != n2 or rel > mpf("1e-21"):
            print("DIFFER", tag, n1, n2, mp.nstr(rel, 3), path, member, nonmember, flush=True)
    print("second dps and grid, worst relative difference", mp.nstr(worst, 3), flush=True)
    rng = random.Random(8)
    small = [c for c in everything if c[0] in ("scale-vs-normal", "general", "one-component")]
    worst = mpf(0)
    for _, member, nonmember in rng.sample(small, number):
        with mp.workdps(24):
            theirs = direct(member, nonmember)
        with mp.workdps(50):
            ours, _ = result(member, nonmember)
            for key, value in theirs.items():
                rel = abs(value - ours[key]) / ours[key]
                worst = max(worst, rel)
                print(key, mp.nstr(rel, 3), flush=True)
    print("direct quadrature, worst relative difference", mp.nstr(worst, 3))


def main():
    """Compute, check and write."""
    start = time.time()
    pairs = []
    most = 0
    for tag, member, nonmember in cases():
        begin = time.time()
        with mp.workdps(60):
            value, crossings = result(member, nonmember)
            pairs.append(entry(tag, member, nonmember, value))
        most = max(most, crossings)
        if time.time() - begin > 12:
            print("slow", tag, crossings, round(time.time() - begin, 1), flush=True)
    size = write("normal_mixture.json", "make_normal_mixture.py", pairs)
    print(
        len(pairs),
        "pairs",
        size,
        "bytes",
        round(time.time() - start),
        "s, at most",
        most,
        "critical points",
    )


if __name__ == "__main__":
    mp.dps = 50
    if sys.argv[1:] == ["check"]:
        cross_check()
    else:
        main()
