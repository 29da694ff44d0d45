"""From an audit's settings to a kernel, and from a kernel to words."""

from __future__ import annotations

from typing import Any

from leakscope import kernels
from leakscope.settings import AuditSettings


def kernel_from_settings(settings: AuditSettings) -> kernels.Kernel:
    """The kernel that the settings name, with the options they give and its own defaults.

    Raises
    ------
    InputError
        Where an option is given that the kernel does not have.

    Examples
    --------
    >>> from leakscope import auditing
    >>> from leakscope.settings import AuditSettings
    >>> auditing.kernel_from_settings(AuditSettings(kernel="matern", smoothness=2.5)).nu
    2.5
    """
    return kernels.by_name(settings.kernel, **settings.kernel_options())


def kernel_in_words(kernel: dict[str, Any]) -> str:
    """A kernel's name and what matters most of its parameters, from its description.

    Examples
    --------
    >>> from leakscope import auditing, kernels
    >>> auditing.kernel_in_words(kernels.rbf(2.0).describe())
    'rbf, length scale 2'
    """
    words = [str(kernel["name"])]
    for name in ("length_scale", "nu", "depth", "activation"):
        value = kernel.get(name)
        if isinstance(value, (int, float, str)):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)
