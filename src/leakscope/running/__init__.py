"""Long work cut into cells: it resumes after a kill, here, in processes, or on a Dask cluster."""

from leakscope.running.cell_store import CellStore, FinishedCell, open_cells, read_cells
from leakscope.running.cells import Cell, Found, OnProgress, Progress, duration, run_cells
from leakscope.running.cluster import cluster_client
from leakscope.running.own_code import TimeLimitError, load_by_name, seeded, staying

__all__ = [
    "Cell",
    "CellStore",
    "FinishedCell",
    "Found",
    "OnProgress",
    "Progress",
    "TimeLimitError",
    "cluster_client",
    "duration",
    "load_by_name",
    "open_cells",
    "read_cells",
    "run_cells",
    "seeded",
    "staying",
]
