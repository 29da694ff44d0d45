"""Leave-one-out under a Gaussian process: leakscope against refitting scikit-learn's regressor."""

from __future__ import annotations

import numpy as np
from rows import Row, least
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from leakscope import kernels, lood

RECORDS, FEATURES, NOISE, LENGTH = 2000, 20, 0.01, 4.0
REFITS = 3


def compare() -> list[Row]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(RECORDS, FEATURES)), rng.normal(size=RECORDS)

    def audit() -> lood.Separation:
        return lood.all_records(kernels.rbf(LENGTH)(X), y, noise_variance=NOISE)

    seconds, laws = least(audit, 3)
    pair = laws.law_pair()

    def refit(record: int) -> tuple[float, float, float, float]:
        found: list[float] = []
        everyone = np.arange(RECORDS)
        for train in (everyone, np.delete(everyone, record)):
            model = GaussianProcessRegressor(RBF(LENGTH), alpha=NOISE, optimizer=None)
            model.fit(X[train], y[train])
            mean, deviation = model.predict(X[record : record + 1], return_std=True)
            found += [float(mean[0]), float(deviation[0])]
        return found[0], found[1], found[2], found[3]

    one, _ = least(lambda: refit(0), 1)
    off = 0.0
    for record in range(REFITS):
        mean_with, spread_with, mean_without, spread_without = refit(record)
        # A law pair is centred at the mean without the record.
        shift = pair.member.mean[record] - pair.nonmember.mean[record]
        off = max(
            off,
            abs(shift - (mean_with - mean_without)),
            abs(pair.member.sigma[record] - spread_with),
            abs(pair.nonmember.sigma[record] - spread_without),
        )
    return [
        Row(
            f"both laws of each of {RECORDS} records, RBF",
            "scikit-learn GaussianProcessRegressor, two fits per record (scaled from one)",
            one * RECORDS,
            seconds,
            f"largest difference {off:.1e} on {REFITS} records",
        )
    ]
