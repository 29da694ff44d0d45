"""The cheapest change of an audited model that keeps every record to a target."""

from leakscope.advising.advise import advise
from leakscope.results.advice import Target as AuditTarget

__all__ = ["AuditTarget", "advise"]
