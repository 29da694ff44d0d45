"""Activation functions, by name: what a layer applies to each of its units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope.errors import InputError

# Names whose expectation over two jointly normal inputs is a formula, and the parameter, if any.
CLOSED_FORMS: dict[str, tuple[str, float] | None] = {
    "identity": None,
    "relu": None,
    "leaky_relu": ("alpha", 0.01),
    "gelu": None,
    "erf": None,
    "sin": None,
}

# Names that are integrated numerically, as any other function is.
INTEGRATED: dict[str, tuple[str, float] | None] = {"tanh": None, "elu": ("alpha", 1.0)}

NAMES = (*CLOSED_FORMS, *INTEGRATED)


@dataclass(frozen=True)
class Activation:
    """An activation function: a name that is known, or a function of one's own.

    Parameters
    ----------
    name
        ``identity``, ``relu``, ``leaky_relu``, ``gelu``, ``erf``, ``sin`` (closed forms),
        ``tanh``, ``elu`` (integrated), or the name to show for ``function``.
    alpha
        The slope of ``leaky_relu`` below zero, the depth of ``elu``; None for the others.
    function
        Applied to each unit, written with ``jax.numpy``; it is integrated over the normal law, to
        about 1e-10 where it is smooth but perhaps at zero, less where it breaks elsewhere.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.Activation("leaky_relu", alpha=0.1).has_closed_form
    True
    >>> kernels.Activation("tanh").has_closed_form
    False
    """

    name: str
    alpha: float | None = None
    function: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.function is not None:
            return
        if self.name not in NAMES:
            raise InputError(
                f"there is no activation called {self.name!r}: use one of {', '.join(NAMES)}, or "
                "a function written with jax.numpy."
            )
        parameter = {**CLOSED_FORMS, **INTEGRATED}[self.name]
        if parameter is None:
            if self.alpha is not None:
                raise InputError(f"the activation {self.name} has no alpha.")
        elif self.alpha is None:
            object.__setattr__(self, "alpha", parameter[1])
        elif not np.isfinite(self.alpha):
            raise InputError(f"{self.name}: alpha must be finite, but it is {self.alpha}.")

    @property
    def has_closed_form(self) -> bool:
        """Whether the expectation over two normal inputs is a formula."""
        return self.function is None and self.name in CLOSED_FORMS

    def describe(self) -> str:
        """The name with its parameter, for results."""
        return self.name if self.alpha is None else f"{self.name}({self.alpha:g})"


def as_activation(
    value: str | Activation | Callable[[Any], Any], alpha: float | None = None
) -> Activation:
    """An :class:`Activation` from a name, a function, or one that is already made.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.as_activation("relu").name
    'relu'
    """
    if isinstance(value, Activation):
        return value
    if isinstance(value, str):
        return Activation(value, alpha)
    if callable(value):
        return Activation(getattr(value, "__name__", "function"), alpha, value)
    raise InputError(
        f"an activation is a name or a function, but this is a {type(value).__name__}."
    )
