"""How far apart two laws, or two sets of scores, are: every measure of one pair as a result."""

from leakscope.measuring.logits import measure_logits
from leakscope.measuring.measure import measure

__all__ = ["measure", "measure_logits"]
