"""What released answers cost, against scikit-learn's refits and simulated answers."""

from __future__ import annotations

import numpy as np
import pytest
from refits import posterior, small_model

from leakscope import lood
from leakscope.errors import InputError
from leakscope.subjects.pricing import Folds, ReleasedError
from leakscope.subjects.process.defence import Defence


def _by_hand(model: lood.ProcessOnRecords, defence: Defence, folds: Folds) -> np.ndarray:
    """Squared error of a released answer, fold by fold, by refitting."""
    found = np.empty((len(folds.number), folds.count))
    for repeat, number in enumerate(folds.number):
        for fold in range(folds.count):
            train, test = np.flatnonzero(number != fold), np.flatnonzero(number == fold)
            kept = None
            if defence.kept is not None:
                kept = np.flatnonzero(np.isin(train, defence.kept))
            inside = Defence(defence.noise_variance, 0.0, defence.components, kept)
            X, y = inside.training_set(model.features[train], model.outputs[train])
            asked = inside.features(model.features[test])
            mean, covariance = posterior(X, y, asked, defence.noise_variance)
            spread = np.diag(covariance) + defence.output_variance
            squared = np.mean((mean - model.outputs[test]) ** 2, axis=1) + spread
            found[repeat, fold] = squared.mean()
    return found


DEFENCES = {
    "none": Defence(0.05),
    "output": Defence(0.05, output_variance=0.4),
    "kernel": Defence(0.7),
    "features": Defence(0.05, components=np.array([[1.0], [0.5]])),
    "dropped": Defence(0.05, kept=np.arange(3, 24)),
}


@pytest.mark.parametrize("name", DEFENCES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_error_is_that_of_refits(name: str, outputs: int) -> None:
    model, defence = small_model(outputs=outputs), DEFENCES[name]
    folds = Folds.of(model.labels, count=4, repeats=2, random_state=3)
    found = defence.held_out(model, folds).released(np.sqrt(defence.output_variance))
    assert found.by_fold == pytest.approx(_by_hand(model, defence, folds), rel=1e-7)
    assert found.sizes.sum() == 48


def test_cost_is_paired_and_its_standard_errors_are_over_folds_and_repetitions() -> None:
    own = ReleasedError(np.array([[1.0, 2.0], [1.5, 2.5]]), np.array([[5, 5], [5, 5]]))
    other = ReleasedError(np.array([[2.0, 4.0], [2.5, 3.5]]), np.array([[5, 5], [5, 5]]))
    cost, stderr, split = other.cost(own)
    assert cost == pytest.approx(1.25)
    assert stderr == pytest.approx(np.sqrt(np.mean([np.var([1, 2], ddof=1) / 2, 0.0])))
    assert split == pytest.approx(np.std([1.5, 1.0], ddof=1) / np.sqrt(2))


@pytest.mark.parametrize("classes", [2, 4])
def test_accuracy_is_that_of_drawn_answers(classes: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    named = rng.integers(0, classes, size=40)
    y = named - 0.5 if classes == 2 else np.eye(classes)[named] - 1.0 / classes
    model = lood.ProcessOnRecords(X, y, small_model().kernel, 0.1, task="classification")
    folds = Folds.of(model.labels, count=4, repeats=1, random_state=0)
    held = Defence(0.1).held_out(model, folds)
    found = held.released(np.sqrt(0.2))
    draws = 20_000
    spread = np.sqrt(held.variance[0] + 0.2)[:, None, None]
    answers = held.mean[0][:, None, :] + spread * rng.standard_normal(
        (40, draws, model.outputs.shape[1])
    )
    guess = (answers[:, :, 0] > 0).astype(int) if classes == 2 else np.argmax(answers, axis=2)
    right = np.mean(guess == named[:, None])
    assert found.accuracy == pytest.approx(right, abs=4.0 * 0.5 / np.sqrt(40 * draws))


def test_folds_hold_whole_groups_and_every_record_once() -> None:
    groups = np.repeat(np.arange(10), 3)
    folds = Folds.of(groups, count=5, repeats=3, random_state=1)
    for number in folds.number:
        assert np.bincount(number).tolist() == [6] * 5
        assert all(len(set(number[groups == group])) == 1 for group in range(10))
    assert not np.array_equal(folds.number[0], folds.number[1])
    again = Folds.of(groups, count=5, repeats=3, random_state=1)
    assert np.array_equal(folds.number, again.number)


def test_folds_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="from 2 to the 4 units"):
        Folds.of(np.arange(4), count=5)


def test_an_empty_training_part_answers_the_prior() -> None:
    model = small_model(6)
    folds = Folds.of(model.labels, count=2, repeats=1, random_state=0)
    # Only the records of fold 0 are kept.
    kept = np.flatnonzero(folds.number[0] == 0)
    held = Defence(0.05, kept=kept).held_out(model, folds)
    asked = folds.number[0] == 0
    assert held.mean[0][asked] == pytest.approx(np.zeros((int(asked.sum()), 1)))
    assert held.variance[0][asked] == pytest.approx(np.ones(int(asked.sum())))
