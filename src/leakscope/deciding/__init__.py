"""The record that a person signs: runs of one model, what is declared, and what they add up to."""

from leakscope.deciding.check import check_record
from leakscope.deciding.decide import decide

__all__ = ["check_record", "decide"]
