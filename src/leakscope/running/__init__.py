"""Long work cut into cells: it resumes after a kill, here, in processes, or on a Dask cluster."""

from leakscope.running.cell_store import CellStore, open_cells, read_cells
from leakscope.running.cells import cluster_client

__all__ = [
    "CellStore",
    "cluster_client",
    "open_cells",
    "read_cells",
]

# For other rooms until they import from the file.
from leakscope.running.cell_store import FinishedCell as FinishedCell
from leakscope.running.cells import Cell as Cell
from leakscope.running.cells import Found as Found
from leakscope.running.cells import OnProgress as OnProgress
from leakscope.running.cells import Progress as Progress
from leakscope.running.cells import duration as duration
from leakscope.running.cells import run_cells as run_cells
from leakscope.running.own_code import TimeLimitError as TimeLimitError
from leakscope.running.own_code import load_by_name as load_by_name
from leakscope.running.own_code import seeded as seeded
from leakscope.running.own_code import staying as staying
