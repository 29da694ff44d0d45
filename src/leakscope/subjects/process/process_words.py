"""A Gaussian process in words, from the description of its kernel."""

from __future__ import annotations

from typing import Any


def kernel_in_words(kernel: dict[str, Any]) -> str:
    """A kernel's name and what matters most of its parameters, from its description."""
    words = [str(kernel.get("name", "kernel"))]
    for name in ("length_scale", "nu", "depth", "activation"):
        value = kernel.get(name)
        if isinstance(value, (int, float, str)):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)


def process_model(kernel: dict[str, Any], noise_variance: Any) -> dict[str, Any]:
    """What was examined, as every audit says it."""
    level = noise_variance if isinstance(noise_variance, (int, float)) else float("nan")
    return {
        "type": "GaussianProcess",
        "name": f"a Gaussian process ({kernel_in_words(kernel)})",
        "origin": f"a stand-in, noise variance {level:.4g}",
        "parameters": {},
        "stand_in": True,
    }
