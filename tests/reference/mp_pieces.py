"""Laws that are normal on each of a few intervals, plus at most one atom."""

import itertools

from mp_common import INF, LevelLaws, normal_interval
from mpmath import mp, mpf


class Piece:
    """An interval on which both densities are normal; y = (x - m0)/s0 throughout."""

    def __init__(self, m1, s1, m0, s0, lo=-INF, hi=INF):
        self.r = s1 / s0
        self.mu = (m1 - m0) / s0
        r2 = self.r**2
        self.lo = lo if mp.isinf(lo) else (lo - m0) / s0
        self.hi = hi if mp.isinf(hi) else (hi - m0) / s0
        self.a = (r2 - 1) / r2 / 2
        self.b = self.mu / r2
        self.c = -self.mu * self.b / 2 - mp.log(self.r)

    def ratio(self, y):
        """The log likelihood ratio at y."""
        if mp.isinf(y):
            if self.a != 0:
                return INF * mp.sign(self.a)
            if self.b != 0:
                return INF * mp.sign(self.b) * mp.sign(y)
            return self.c
        return (self.a * y + self.b) * y + self.c

    def special_levels(self):
        """Finite levels at which the tails of l are not smooth on this piece."""
        out = [self.ratio(y) for y in (self.lo, self.hi) if not mp.isinf(y)]
        if self.a != 0:
            y = -self.b / (2 * self.a)
            if self.lo < y < self.hi:
                out.append(self.c - self.b**2 / (4 * self.a))
        elif self.b == 0:
            out.append(self.c)
        return out

    def extremes(self):
        """Infimum and supremum of l on the piece."""
        ends = [self.ratio(self.lo), self.ratio(self.hi), *self.special_levels()]
        return min(ends), max(ends)

    def region(self, t, above):
        """Intervals of y on which l > t (above) or l <= t."""
        a, b, c = self.a, self.b, self.c - t
        if a == 0:
            if b == 0:
                inside = (c > 0) == above
                cuts, first = [], inside
            else:
                cuts, first = [-c / b], (b < 0) == above
        else:
            disc = b * b - 4 * a * c
            if disc <= 0:
                cuts, first = [], (a > 0) == above
            else:
                root = mp.sqrt(disc)
                q = -(b + root) / 2 if b >= 0 else -(b - root) / 2
                cuts, first = sorted([q / a, c / q]), (a > 0) == above
        points = [-INF, *cuts, INF]
        out = []
        for lo, hi in itertools.pairwise(points):
            if first:
                lo2, hi2 = max(lo, self.lo), min(hi, self.hi)
                if lo2 < hi2:
                    out.append((lo2, hi2))
            first = not first
        return out

    def masses(self, t, above):
        """Masses of the region under nonmember and member."""
        p0 = p1 = mpf(0)
        for lo, hi in self.region(t, above):
            p0 += normal_interval(lo, hi)
            p1 += normal_interval((lo - self.mu) / self.r, (hi - self.mu) / self.r)
        return p0, p1

    def power_integral(self, s):
        """int p0^(1-s) p1^s over the piece (inf where it diverges)."""
        r2 = self.r**2
        quad = (1 - s) + s / r2
        if quad < 0:
            return INF
        if quad == 0:
            raise NotImplementedError("borderline order")
        lin = s * self.mu / r2
        const = -s * self.mu**2 / (2 * r2) + lin**2 / (2 * quad) - s * mp.log(self.r)
        width = 1 / mp.sqrt(quad)
        mean = lin / quad
        mass = normal_interval((self.lo - mean) / width, (self.hi - mean) / width)
        return mp.exp(const) * width * mass

    def mean_ratio(self, under_member):
        """int l p_i over the piece."""
        mean, sd = (self.mu, self.r) if under_member else (mpf(0), mpf(1))
        lo, hi = (self.lo - mean) / sd, (self.hi - mean) / sd
        phi_lo = mpf(0) if mp.isinf(lo) else mp.npdf(lo)
        phi_hi = mpf(0) if mp.isinf(hi) else mp.npdf(hi)
        m0 = normal_interval(lo, hi)
        m1 = phi_lo - phi_hi
        m2 = m0 + (0 if mp.isinf(lo) else lo * phi_lo) - (0 if mp.isinf(hi) else hi * phi_hi)
        e0, e1, e2 = m0, mean * m0 + sd * m1, mean**2 * m0 + 2 * mean * sd * m1 + sd**2 * m2
        return self.a * e2 + self.b * e1 + self.c * e0


class PiecewiseLaws(LevelLaws):
    """Tails of l for a list of pieces and an atom of masses (q0, q1)."""

    def __init__(self, pieces, q0=0, q1=0):
        self.pieces = pieces
        self.q0, self.q1 = mpf(q0), mpf(q1)
        self.atom_level = None
        levels = [x for p in pieces for x in p.special_levels()]
        bounds = [p.extremes() for p in pieces]
        lows, highs = [b[0] for b in bounds], [b[1] for b in bounds]
        if self.q0 > 0 and self.q1 > 0:
            self.atom_level = mp.log(self.q1 / self.q0)
            levels.append(self.atom_level)
            lows.append(self.atom_level)
            highs.append(self.atom_level)
        else:
            self.neg_inf, self.pos_inf = self.q0, self.q1
        if not levels:
            levels = [p.ratio(mpf(0)) for p in pieces]
        self.levels = sorted(set(levels))
        self.lowest, self.highest = min(lows), max(highs)

    def _total(self, t, above):
        p0 = p1 = mpf(0)
        for piece in self.pieces:
            m0, m1 = piece.masses(t, above)
            p0 += m0
            p1 += m1
        return p0, p1

    def surv(self, t):
        p0, p1 = self._total(t, True)
        p1 += self.pos_inf
        if self.atom_level is not None and self.atom_level > t:
            p0 += self.q0
            p1 += self.q1
        return p0, p1

    def cdf(self, t):
        p0, p1 = self._total(t, False)
        p0 += self.neg_inf
        if self.atom_level is not None and self.atom_level <= t:
            p0 += self.q0
            p1 += self.q1
        return p0, p1

    def atom0(self, t):
        out = mpf(0)
        if self.atom_level is not None and t == self.atom_level:
            out += self.q0
        for piece in self.pieces:
            if piece.a == 0 and piece.b == 0 and t == piece.c:
                out += normal_interval(piece.lo, piece.hi)
        return out

    def power_integral(self, s):
        """M(s) = int p0^(1-s) p1^s, atom included."""
        total = sum((p.power_integral(s) for p in self.pieces), mpf(0))
        if self.q0 > 0 and self.q1 > 0:
            total += self.q0 ** (1 - s) * self.q1**s
        elif self.q1 > 0 and s > 1:
            total = INF
        return total

    def divergences(self, orders):
        """kl, kl_reverse and the Renyi divergences."""
        kl = -sum(p.mean_ratio(False) for p in self.pieces)
        rev = sum(p.mean_ratio(True) for p in self.pieces)
        if self.atom_level is not None:
            kl -= self.q0 * self.atom_level
            rev += self.q1 * self.atom_level
        kl += INF if self.neg_inf > 0 else 0
        rev += INF if self.pos_inf > 0 else 0
        renyi = {}
        for order in orders:
            power = self.power_integral(mpf(order))
            renyi[repr(order)] = power if mp.isinf(power) else mp.log(power) / (mpf(order) - 1)
        return {"kl": kl, "kl_reverse": rev, "renyi": renyi}
