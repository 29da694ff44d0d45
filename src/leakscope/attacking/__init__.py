"""What an attacker really gets out of a model or its answers."""

from leakscope.attacking.score_attacks import likelihood_ratio, loss_threshold, relative

__all__ = ["likelihood_ratio", "loss_threshold", "relative"]
