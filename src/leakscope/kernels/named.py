"""From a kernel's name and options to the kernel."""

from __future__ import annotations

import pkgutil
from typing import Any

from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.settings import KERNELS


def by_name(name: str, **options: Any) -> Kernel:
    """The kernel of that name, with these options and its own defaults for the others.

    Parameters
    ----------
    name
        As in :data:`leakscope.settings.KERNELS`.
    options
        Under the names that settings have for them, such as ``kernel_variance``.

    Raises
    ------
    InputError
        Where there is no such kernel, or it does not have such an option.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.by_name("matern", smoothness=2.5, length_scale=2.0)
    Matern(nu=2.5, length_scale=2.0, variance=1.0)
    """
    entry = KERNELS.get(name)
    if entry is None:
        raise InputError(f"there is no kernel {name!r}; use one of {', '.join(KERNELS)}.")
    foreign = [option for option in options if option not in entry.options]
    if foreign:
        raise InputError(
            f"{foreign[0]} is not an option of the kernel {name}, whose options are "
            f"{', '.join(entry.options)}."
        )
    kernel: Kernel = factory_of(name)(**entry.arguments(options))
    return kernel


def factory_of(name: str) -> Any:
    """The function that makes the kernel of that name."""
    factory = KERNELS[name].factory
    return pkgutil.resolve_name(factory) if isinstance(factory, str) else factory
