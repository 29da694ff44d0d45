"""Simulation and retraining that check the laws, in runs that survive being killed."""

from leakscope.experiments.cells import Cell, Found, Progress, run_cells
from leakscope.experiments.cluster import cluster_client

__all__ = ["Cell", "Found", "Progress", "cluster_client", "run_cells"]
