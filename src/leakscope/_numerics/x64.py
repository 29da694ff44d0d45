"""64-bit JAX inside the library, without touching the user's configuration."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def double_precision() -> AbstractContextManager[Any]:
    """A context in which JAX computes in 64 bits, in this thread only.

    The switch that JAX offers for a whole process would change the user's own programs; this one
    is local to the thread and is undone at the end of the block, also after an error.
    """
    import jax

    # jax.enable_x64 came with 0.8, when the experimental one was on its way out.
    if hasattr(jax, "enable_x64"):
        context: AbstractContextManager[Any] = jax.enable_x64(True)
        return context
    from jax import experimental

    older: AbstractContextManager[Any] = experimental.enable_x64()  # type: ignore[attr-defined, unused-ignore]
    return older
