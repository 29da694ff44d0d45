"""The record that a person signs: runs of one model, what is declared, and what they add up to."""

from leakscope.deciding.decide import check_record, decide

__all__ = ["check_record", "decide"]
