"""How far apart two laws, or two sets of scores, are: every measure of one pair as a result."""

from leakscope.measuring.measure import measure, measure_logits

__all__ = ["measure", "measure_logits"]
