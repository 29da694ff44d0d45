"""From a kernel's description, as a result stores it, back to the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leakscope.errors import InputError
from leakscope.kernels.activations import Activation
from leakscope.kernels.kernel import Kernel
from leakscope.kernels.named import factory_of
from leakscope.settings import KERNELS


def from_description(description: Mapping[str, Any]) -> Kernel:
    """The kernel whose ``describe()`` this is, every parameter to its last digit.

    Parameters
    ----------
    description
        Of a kernel that settings can name; others, such as a network with convolutions, are not
        read back.

    Raises
    ------
    InputError
        Where it is not the description of such a kernel.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.from_description(kernels.rbf(length_scale=2.0).describe())
    RBF(length_scale=2.0, variance=1.0)
    """
    name = description.get("name")
    if not isinstance(name, str) or name not in KERNELS:
        raise InputError(
            f"a kernel is read back from its description where it is one of "
            f"{', '.join(KERNELS)}, but this one is called {name!r}."
        )
    options = {key: value for key, value in description.items() if key != "name"}
    given = options.get("activation")
    if isinstance(given, str) and (named := re.fullmatch(r"(\w+)\(([^()]+)\)", given)):
        options["activation"] = Activation(named[1], float(named[2]))
    try:
        kernel: Kernel = factory_of(name)(**options)
    except (TypeError, ValueError) as error:
        raise InputError(f"this is not the description of a kernel {name}: {error}.") from error
    if kernel.describe() != dict(description):
        raise InputError(f"this is not the description of a kernel {name}: {dict(description)}.")
    return kernel
