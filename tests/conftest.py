"""Hypothesis draws the same examples every time: a test must not pass or fail by chance."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")
