"""A model without some of its records: checked, or made."""

from leakscope.erasing.erase import erase

__all__ = ["erase"]
