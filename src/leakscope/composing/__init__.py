"""What several releases about the same people give away together."""

from leakscope.composing.composition import compose

__all__ = ["compose"]
