"""How much memory is there, and a refusal before an allocation that cannot succeed."""

from __future__ import annotations

import os
from pathlib import Path

from leakscope.errors import InputError

# Where Linux says what this process has and may have.
PROCESSES = Path("/proc")
CONTROL_GROUPS = Path("/sys/fs/cgroup")

# What the interpreter, the libraries and the operating system need beside one large array.
HEADROOM_BYTES = 256 * 2**20


def available_memory() -> int | None:
    """Bytes this process may still take, or None where the system does not say.

    The least of what the machine has free, what the control groups leave (a container's limit, of
    either version), and the shell's limits of address space and of data.
    """
    found = (
        _machine_available(),
        _control_group_available(),
        _address_space_available(),
        _data_available(),
    )
    known = [size for size in found if size is not None]
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


def require_address_space(needed: int, what: str, remedy: str) -> None:
    """Refuse what reserves more address space, without taking it, than ``ulimit -v`` leaves."""
    available = _address_space_available()
    if available is not None and needed > available:
        raise InputError(
            f"{what} needs {format_bytes(needed)} of address space, but only "
            f"{format_bytes(available)} can be used here: {remedy}."
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
        lines = (PROCESSES / "meminfo").read_text(encoding="ascii").splitlines()
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
        lines = (PROCESSES / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    folders: list[tuple[Path, str, str]] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        names: tuple[tuple[str, str], ...]
        if controllers == "":
            root = CONTROL_GROUPS
            # Above the second the kernel holds a process up until nothing goes on.
            names = (("memory.max", "memory.current"), ("memory.high", "memory.current"))
        elif "memory" in controllers.split(","):
            root = CONTROL_GROUPS / "memory"
            names = (("memory.limit_in_bytes", "memory.usage_in_bytes"),)
        else:
            continue
        # Inside a container the group's path is often the host's; its root is then what counts.
        own = root / group.lstrip("/")
        places = [place for place in (own, *own.parents) if place == root or root in place.parents]
        folders += [(place, *pair) for place in places for pair in names]
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
    """What ``ulimit -v`` leaves."""
    return _limit_available("RLIMIT_AS", 0)


def _data_available() -> int | None:
    """What ``ulimit -d`` leaves, which on Linux counts all private memory."""
    return _limit_available("RLIMIT_DATA", 5)


def _limit_available(name: str, field: int) -> int | None:
    """A limit of the shell less what is used of it, a field of /proc/self/statm in pages."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    limit = resource.getrlimit(getattr(resource, name))[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        statm = (PROCESSES / "self" / "statm").read_text(encoding="ascii").split()
    except OSError:
        return limit
    return max(limit - int(statm[field]) * os.sysconf("SC_PAGE_SIZE"), 0)
