"""Long work in parts: it goes on after a kill, here, in processes, or on a Dask cluster."""

from leakscope.running.parts import Part, run_parts

__all__ = ["Part", "run_parts"]
