"""Models of complementary halves: drawn, trained, and what they show of every record."""

from leakscope.halves.estimate import FewModels, few_models

__all__ = ["FewModels", "few_models"]
