"""A kernel, a reader and an attack for leakscope, found by entry points (see pyproject.toml)."""
