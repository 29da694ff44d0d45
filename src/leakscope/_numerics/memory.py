"""How much memory is there, and a refusal before an allocation that cannot succeed."""

from __future__ import annotations

import os
from pathlib import Path

from leakscope.errors import InputError

# What the interpreter, the libraries and the operating system need beside one large array.
HEADROOM_BYTES = 256 * 2**20


def available_memory() -> int | None:
    """Bytes this process may still take, or None where the system does not say.

    The least of what the machine has free, what the control group (a container's limit) leaves,
    and the address-space limit of the shell.
    """
    known = [
        size
        for size in (_machine_available(), _control_group_available(), _address_space_available())
        if size is not None
    ]
    return min(known) if known else None


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse, in one sentence, what does not fit.

    Parameters
    ----------
    needed
        Bytes that are about to be allocated.
    what
        What needs them, as the subject of a sentence.
    remedy
        What the user can do about it, as the end of a sentence.

    Raises
    ------
    InputError
        When fewer bytes are available, the interpreter's own needs set apart.
    """
    available = available_memory()
    if available is None:
        return
    usable = max(available - HEADROOM_BYTES, 0)
    if needed > usable:
        raise InputError(
            f"{what} needs {format_bytes(needed)} of memory, but only {format_bytes(usable)} "
            f"can be used here: {remedy}."
        )


def format_bytes(size: int) -> str:
    """A size for people: ``1.5 GB`` (decimal units)."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if amount < 1000.0:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.3g} {unit}"
        amount /= 1000.0
    return f"{amount:.3g} PB"


def _machine_available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError, AttributeError):
            return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _control_group_available() -> int | None:
    """What is left under the tightest memory limit of this process's control groups."""
    left: list[int] = []
    for folder, limit_file, usage_file in _control_group_folders():
        limit = _read_number(folder / limit_file)
        usage = _read_number(folder / usage_file)
        if limit is None or usage is None:
            continue
        left.append(max(limit - usage + _reclaimable_cache(folder), 0))
    return min(left) if left else None


def _control_group_folders() -> list[tuple[Path, str, str]]:
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    folders: list[tuple[Path, str, str]] = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, names = Path("/sys/fs/cgroup"), ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root = Path("/sys/fs/cgroup/memory")
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        # Inside a container the group's path is often the host's; its root is then what counts.
        own = root / group.lstrip("/")
        folders += [(f, *names) for f in {own, *own.parents} if f == root or root in f.parents]
    return folders


def _reclaimable_cache(folder: Path) -> int:
    try:
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    for line in lines:
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(value)
    return 0


def _read_number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _address_space_available() -> int | None:
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        used_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return limit
    return max(limit - used_pages * os.sysconf("SC_PAGE_SIZE"), 0)
