"""From a kernel's name and options, or from its description in a result, to the kernel."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any

from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.settings.kernel_catalogue import KERNELS


def by_name(name: str, **options: Any) -> Kernel:
    """The kernel of that name, with these options and its own defaults for the others.

    ``name`` is one of :data:`leakscope.settings.KERNELS`; options go under the names that settings
    have for them, such as ``kernel_variance``.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.by_name("matern", smoothness=2.5, length_scale=2.0)
    Matern(nu=2.5, length_scale=2.0, variance=1.0)
    """
    if name not in KERNELS:
        raise InputError(f"there is no kernel {name!r}; use one of {', '.join(KERNELS)}.")
    entry = KERNELS[name]
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


def from_description(description: Mapping[str, Any]) -> Kernel:
    """The kernel whose ``describe()`` this is, every parameter to its last digit.

    Only a kernel that settings can name is read back; a network with convolutions, say, is not.
    """
    name = description.get("name")
    if not isinstance(name, str) or name not in KERNELS:
        raise InputError(
            f"a kernel is read back from its description where it is one of "
            f"{', '.join(KERNELS)}, but this one is called {name!r}."
        )
    options = {key: value for key, value in description.items() if key != "name"}
    try:
        kernel: Kernel = factory_of(name)(**options)
    except (TypeError, ValueError) as error:
        raise InputError(f"this is not the description of a kernel {name}: {error}.") from error
    if kernel.describe() != dict(description):
        raise InputError(f"this is not the description of a kernel {name}: {dict(description)}.")
    return kernel
