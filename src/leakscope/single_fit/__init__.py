"""Both laws of every record, or group of records, from one convex fit."""

from __future__ import annotations

from leakscope.single_fit.cavity import Cavity, solve_cavity
from leakscope.single_fit.laws import ScoreMoments, score_moments
from leakscope.single_fit.losses import Loss
from leakscope.single_fit.problem import ConvexProblem

__all__ = ["Cavity", "ConvexProblem", "Loss", "ScoreMoments", "score_moments", "solve_cavity"]
