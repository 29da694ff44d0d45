"""Gaussian processes: what one draw gives away about each record (the lood paper)."""

from leakscope.subjects.process.subject import GaussianProcess as GaussianProcess
