"""Long work cut into cells: it resumes after a kill, here, in processes, or on a Dask cluster."""

from leakscope.running.cell_store import open_cells

__all__ = ["open_cells"]
