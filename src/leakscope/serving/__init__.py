"""The audit as a local web page: who may ask, uploads, jobs, pages."""

from leakscope.serving.limits import Limits
from leakscope.serving.server import serve

__all__ = ["Limits", "serve"]
