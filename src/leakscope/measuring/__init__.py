"""How far apart two laws, or two sets of scores, are: every measure of one pair as a result."""

from leakscope.measuring.measure import measure

__all__ = ["measure"]
