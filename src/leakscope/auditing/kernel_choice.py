"""From an audit's settings to a kernel, and from a kernel to words."""

from __future__ import annotations

from typing import Any

from leakscope import kernels
from leakscope.errors import InputError
from leakscope.settings import AuditSettings

# Which settings belong to which kernel, by the name of the factory's parameter.
OPTIONS: dict[str, dict[str, str]] = {
    "rbf": {"length_scale": "length_scale", "kernel_variance": "variance"},
    "matern": {
        "length_scale": "length_scale",
        "kernel_variance": "variance",
        "smoothness": "nu",
    },
    "linear": {"weight_variance": "weight_variance", "bias_variance": "bias_variance"},
    "nngp": {
        "depth": "depth",
        "activation": "activation",
        "weight_variance": "weight_variance",
        "bias_variance": "bias_variance",
    },
}


def kernel_from_settings(settings: AuditSettings) -> kernels.Kernel:
    """The kernel that the settings name, with the options they give and its own defaults.

    Raises
    ------
    InputError
        Where an option is given that the kernel does not have.
    """
    options = OPTIONS[settings.kernel]
    given = {
        name: getattr(settings, name)
        for name in dict.fromkeys(name for table in OPTIONS.values() for name in table)
        if getattr(settings, name) is not None
    }
    foreign = [name for name in given if name not in options]
    if foreign:
        raise InputError(
            f"{foreign[0]} is no option of the kernel {settings.kernel}, whose options are "
            f"{', '.join(options)}."
        )
    # Centred features need an intercept: without one the model knows that they add up to zero.
    if settings.kernel == "linear":
        given.setdefault("bias_variance", 1.0)
    # The networks' kernels need JAX, which is imported only when one is asked for.
    factory: Any = getattr(kernels, settings.kernel, None)
    if factory is None:
        raise InputError(f"this version of leakscope has no kernel {settings.kernel}.")
    kernel: kernels.Kernel = factory(**{options[name]: value for name, value in given.items()})
    return kernel


def in_words(kernel: dict[str, Any]) -> str:
    """A kernel's name and what matters most of its parameters, from its description."""
    words = [str(kernel["name"])]
    for name in ("length_scale", "nu", "depth", "activation"):
        value = kernel.get(name)
        if isinstance(value, (int, float, str)):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)
