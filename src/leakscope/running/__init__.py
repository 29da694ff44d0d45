"""Long work cut into cells: it resumes after a kill, here, in processes, or on a Dask cluster."""

from leakscope.running.cell_store import CellStore, FinishedCell, open_cells, read_cells
from leakscope.running.cells import Cell, Found, OnProgress, Progress, run_cells
from leakscope.running.cluster import cluster_client

__all__ = [
    "Cell",
    "CellStore",
    "FinishedCell",
    "Found",
    "OnProgress",
    "Progress",
    "cluster_client",
    "open_cells",
    "read_cells",
    "run_cells",
]
