"""The audit as a small local web page: ``leakscope serve``.

A file or an example in, progress stage by stage, the report of :mod:`leakscope.report` as it is,
and a slider for the noise.  One person's own server: it listens on this machine only, and every
request must bring the secret that the terminal printed.  Needs the extra ``web``.
"""

from leakscope.web.limits import Limits
from leakscope.web.security import Access

__all__ = ["Access", "Limits"]
