"""What an attacker really gets out of a model or its answers."""

from leakscope.attacking.membership import attack_membership
from leakscope.attacking.query import attack_query
from leakscope.attacking.reconstruct import attack_reconstruct
from leakscope.attacking.score_attacks import likelihood_ratio, lira, rmia

__all__ = [
    "attack_membership",
    "attack_query",
    "attack_reconstruct",
    "likelihood_ratio",
    "lira",
    "rmia",
]
