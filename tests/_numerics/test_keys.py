from __future__ import annotations

import numpy as np
import pytest

from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError


def test_same_key_same_numbers_in_any_order() -> None:
    key = Key(11).child(3)
    first = key.generator().random(5)
    Key(11).child(4).generator().random(100)
    np.testing.assert_array_equal(first, Key(11, (3,)).generator().random(5))


def test_children_differ_from_each_other_and_from_the_parent() -> None:
    keys = [Key(1), Key(1).child(0), Key(1).child(1), Key(1).child(0, 0), Key(2)]
    draws = {float(key.generator().random()) for key in keys}
    assert len(draws) == len(keys)


def test_numbers_are_fixed_for_good() -> None:
    sequence = np.random.SeedSequence(5, spawn_key=(1, 2))
    expected = np.random.Generator(np.random.Philox(sequence)).random(3)
    np.testing.assert_array_equal(Key(5).child(1, 2).generator().random(3), expected)


def test_as_key() -> None:
    assert as_key(None) == as_key(0) == Key(0)
    assert as_key(np.int64(4)) == Key(4)
    assert as_key(Key(4, (1,))) == Key(4, (1,))
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    assert as_key(one) == as_key(other)
    assert as_key(one) != Key(as_key(np.random.default_rng(3)).entropy)


@pytest.mark.parametrize("bad", [-1, 1.5, "seed", True])
def test_bad_random_state_is_refused(bad: object) -> None:
    with pytest.raises(InputError):
        as_key(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("label", [-1, 2**32, 0.5])
def test_bad_label_is_refused(label: int) -> None:
    with pytest.raises(InputError, match="label"):
        Key(0).child(label)
