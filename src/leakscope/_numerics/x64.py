"""64-bit JAX inside the library, without touching the user's configuration."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from leakscope._numerics.memory import require_address_space
from leakscope.errors import required

# What JAX reserves before it computes anything, measured on two cores, and with each further core
# for its threads; under a smaller ``ulimit -v`` it ends the process with a signal.
RESERVED_BYTES, RESERVED_BYTES_PER_CORE = 1_300_000_000, 150_000_000


def double_precision() -> AbstractContextManager[Any]:
    """A context in which JAX computes in 64 bits, in this thread only.

    The switch that JAX offers for a whole process would change the user's own programs; this one
    is local to the thread and is undone at the end of the block, also after an error.
    """
    require_jax()
    import jax

    # jax.enable_x64 came with 0.8, when the experimental one was on its way out.
    if hasattr(jax, "enable_x64"):
        context: AbstractContextManager[Any] = jax.enable_x64(True)
        return context
    from jax import experimental

    older: AbstractContextManager[Any] = experimental.enable_x64()  # type: ignore[attr-defined, unused-ignore]
    return older


@cache
def require_jax(what: str = "This computation") -> None:
    """Refuse what is computed with JAX where that is not installed, or cannot start."""
    require_address_space(
        RESERVED_BYTES + RESERVED_BYTES_PER_CORE * (os.cpu_count() or 1),
        "JAX, which computes network kernels,",
        "raise ulimit -v, or limit the memory with a control group, which counts what is used",
    )
    required("jax", what)
