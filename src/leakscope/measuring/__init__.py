"""How far apart two laws or two sets of scores are, and what canaries show of an epsilon."""

from leakscope.measuring.measure import measure, measure_canaries

__all__ = ["measure", "measure_canaries"]
