from __future__ import annotations

import pytest

from leakscope import InputError
from leakscope._numerics import memory


def test_something_is_known_here():
    available = memory.available_memory()
    assert available is None or available > 0


def test_the_tightest_limit_counts(monkeypatch):
    monkeypatch.setattr(memory, "_machine_available", lambda: 10 * 10**9)
    monkeypatch.setattr(memory, "_control_group_available", lambda: 2 * 10**9)
    monkeypatch.setattr(memory, "_address_space_available", lambda: None)
    assert memory.available_memory() == 2 * 10**9


def test_refusal_names_size_and_remedy(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 10**9)
    memory.require_memory(3 * 10**9, "this", "nothing")
    with pytest.raises(
        InputError, match=r"the matrix needs 80 GB of memory, but only 3\.73 GB .*: use fewer\."
    ):
        memory.require_memory(80 * 10**9, "the matrix", "use fewer")


def test_nothing_is_refused_where_nothing_is_known(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.require_memory(10**30, "this", "nothing")


@pytest.mark.parametrize(
    ("size", "text"),
    [(12, "12 bytes"), (1500, "1.5 kB"), (2 * 10**9, "2 GB"), (10**18, "1e+03 PB")],
)
def test_sizes_for_people(size, text):
    assert memory.format_bytes(size) == text


def test_control_group_limit_is_read(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("600000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 100000\n")
    folders = [(tmp_path, "memory.max", "memory.current")]
    monkeypatch.setattr(memory, "_control_group_folders", lambda: folders)
    assert memory._control_group_available() == 500000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._control_group_available() is None
