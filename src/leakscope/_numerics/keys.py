"""Explicit random keys: the same key gives the same numbers wherever and whenever it is used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.errors import InputError

DEFAULT_ENTROPY = 0


@dataclass(frozen=True)
class Key:
    """A random key: a seed and the path of integer labels that led here from it.

    A key has no state.  Nothing is consumed by drawing from it, so the numbers depend on the key
    alone and never on what ran before, on how many processes ran it, or in which order.  Parts of
    a computation that must be independent of each other get children with different labels.
    Whatever takes a ``random_state`` takes a key too.

    Parameters
    ----------
    entropy : int
        The seed, a non-negative integer of any size.
    path : tuple of int
        The labels of the children taken so far; each is a non-negative integer below 2**32.

    Examples
    --------
    >>> from leakscope.laws import Key
    >>> key = Key(7)
    >>> key.child(2, 5) == key.child(2).child(5)
    True
    >>> bool(key.generator().random() == key.generator().random())
    True
    >>> bool(key.child(0).generator().random() == key.child(1).generator().random())
    False
    """

    entropy: int
    path: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not _is_integer(self.entropy) or self.entropy < 0:
            raise InputError(
                f"Key: entropy must be a non-negative integer, but it is {self.entropy!r}."
            )
        for label in self.path:
            if not _is_integer(label) or not 0 <= label < 2**32:
                raise InputError(
                    f"Key: every label must be an integer from 0 to 2**32 - 1, "
                    f"but one is {label!r}."
                )
        object.__setattr__(self, "entropy", int(self.entropy))
        object.__setattr__(self, "path", tuple(int(label) for label in self.path))

    def child(self, *labels: int) -> Key:
        """Return the key one step further down for every label given."""
        return Key(self.entropy, (*self.path, *labels))

    def generator(self) -> np.random.Generator:
        """Return a fresh generator (Philox) that starts at this key's own stream."""
        sequence = np.random.SeedSequence(self.entropy, spawn_key=self.path)
        return np.random.Generator(np.random.Philox(sequence))


def as_key(random_state: int | np.random.Generator | Key | None) -> Key:
    """Turn what a user may pass as ``random_state`` into a key.

    An integer is the seed itself; ``None`` is the fixed seed 0, so that results repeat unless the
    user asks otherwise; a NumPy generator gives up one 64-bit integer (and so moves on by one
    draw); a key is returned as it is.
    """
    if random_state is None:
        return Key(DEFAULT_ENTROPY)
    if isinstance(random_state, Key):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return Key(int(random_state.integers(2**64, dtype=np.uint64)))
    if _is_integer(random_state):
        return Key(int(random_state))
    raise InputError(
        "random_state must be an integer, a NumPy generator, a Key or None, "
        f"but it is of type {type(random_state).__name__}."
    )


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
