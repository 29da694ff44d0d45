"""Trainings of the user's own, networks and trees: laws from a few models of halves."""

from leakscope.subjects.training.subject import Training as Training
