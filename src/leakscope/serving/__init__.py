"""The page of ``leakscope serve``: commands composed from a folder, run, and their reports read."""

from leakscope.serving.server import listen

__all__ = ["listen"]
