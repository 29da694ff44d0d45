"""Two audits side by side."""

from leakscope.comparing.comparison import compare

__all__ = ["compare"]
