"""Planted outliers, flipped labels and copies, where an audit must and must not see them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakscope.data import read_example
from leakscope.settings import AuditSettings
from tests.audits import process_audit

# The noise that the data choose: 0.01 is far below what diabetes' labels scatter by, and then
# every odd label stands out more than an odd place.
SETTINGS = {
    name: AuditSettings(sensitivity=False, explain=5, noise_variance="marginal_likelihood")
    for name in ("breast_cancer", "diabetes")
}


def planted(data, *, row, features=None, target=None, copies=0, groups=False):
    X, y = data.features.copy(), data.target.copy()
    if features is not None:
        X[row] = features
    if target is not None:
        y[row] = target
    X = np.vstack([X, *[X[row]] * copies])
    y = np.append(y, [y[row]] * copies)
    people = tuple(range(len(data.features))) + (row,) * copies
    changed = replace(
        data,
        features=X,
        target=y,
        record_ids=tuple(range(len(X))),
        source=None,
        group=people if groups else None,
    )
    return process_audit(changed, SETTINGS[data.name])


def outlier(data, row):
    signs = np.random.default_rng(row).choice([-6.0, 6.0], size=data.features.shape[1])
    return data.features[row] + signs * data.features.std(axis=0)


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
def test_a_planted_outlier_is_in_the_top_hundredth_and_its_copy_hides_it(name):
    data = read_example(name)
    count = len(data.features)
    for row in (3, 77, 200, 310):
        place = outlier(data, row)
        alone = planted(data, row=row, features=place)
        rank = alone.ranking().index(row) + 1
        assert rank <= np.ceil(count / 100)
        if rank <= 5:
            why = alone.explanations[rank - 1]
            assert why.share_from_label < 0.5
        twice = planted(data, row=row, features=place, copies=1)
        assert twice.ranking().index(row) + 1 > 0.05 * count
        together = planted(data, row=row, features=place, copies=1, groups=True)
        assert together.ranking().index(row) + 1 <= np.ceil(count / 100)
        assert together.table.of("size")[row] == 2
        # Two copies are one record with half the noise: they give away more than one did.
        assert together.kl[row] > alone.kl[row]


def at_leverage(data, quantile, count=5):
    """The rows whose leverage is nearest to this quantile of all."""
    leverage = planted(data, row=0).laws.separation.leverage
    return np.argsort(np.abs(leverage - np.quantile(leverage, quantile)))[:count].tolist()


def test_a_wrong_target_is_in_the_top_hundredth():
    """Diabetes: four standard deviations to the other side, for records of ordinary leverage."""
    data = read_example("diabetes")
    centre, scale = data.target.mean(), data.target.std()
    for row in [*at_leverage(data, 0.5), *at_leverage(data, 0.9)]:
        wrong = data.target[row] - 4.0 * scale * np.sign(data.target[row] - centre)
        result = planted(data, row=row, target=wrong)
        rank = result.ranking().index(row) + 1
        assert rank <= np.ceil(len(data.features) / 100)
        why = result.explanations[rank - 1]
        assert why.disagreement > 2.0
        assert "from what the other records say" in why.sentence


def test_a_flipped_label_is_in_the_top_hundredth_where_the_model_listens():
    """Breast cancer: most flipped labels of high leverage; the next test has the others."""
    data = read_example("breast_cancer")
    ranks = []
    for row in at_leverage(data, 0.9, count=20):
        result = planted(data, row=row, target=1 - data.target[row])
        ranks.append(result.ranking().index(row) + 1)
    assert np.mean(np.array(ranks) <= np.ceil(len(data.features) / 100)) >= 0.75
    assert max(ranks) <= 0.02 * len(data.features)


def test_flipped_labels_in_a_crowd_rise_but_need_not_reach_the_top():
    """A label among many like records hardly moves the model: what it gives away stays small."""
    data = read_example("breast_cancer")
    before = planted(data, row=0).ranking()
    rows = np.random.default_rng(0).permutation(len(data.features))[:12].tolist()
    ranks = []
    for row in rows:
        result = planted(data, row=row, target=1 - data.target[row])
        ranks.append(result.ranking().index(row) + 1)
        assert ranks[-1] < before.index(row) + 1
    assert np.median(ranks) <= 0.05 * len(data.features)


def test_a_flipped_label_among_like_records_stands_out_by_its_disagreement():
    """By KL it does not, because it hardly moves the model."""
    data = read_example("breast_cancer")
    for row in at_leverage(data, 0.5):
        result = planted(data, row=row, target=1 - data.target[row])
        by_disagreement = result.to_frame().sort_values("disagreement", ascending=False)
        assert row in by_disagreement["record_id"].head(6).tolist()
        y = (
            result.laws.separation.mean_without
            + result.laws.separation.mean_shift / result.laws.separation.leverage
        )
        label = 0.5 if data.target[row] == 0 else -0.5
        assert y[row] == pytest.approx(label)
