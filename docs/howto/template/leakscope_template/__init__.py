"""A kernel and a reader for leakscope, found by their entry points (see pyproject.toml)."""
