"""A pipe or a device that an answer is written to stays one, for every option that takes a path.

Nothing here touches a device of the machine: pipes and, where one may be made, a character device
of our own lie in a temporary folder.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from leakscope.cli import main
from leakscope.data.files import descriptor_of, partial_beside, write_file
from leakscope.results.document import SCHEMA_VERSION

MEASURE = ["measure", "--member", "normal:0,1.4", "--nonmember", "normal:0,0.7"]


def read_in_background(pipe: Path) -> tuple[threading.Thread, list[bytes]]:
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    return reader, found


def null_device(folder: Path) -> Path:
    """A device of our own that swallows what is written, as /dev/null does."""
    path = folder / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        path.write_bytes(b"swallowed")
    except (PermissionError, OSError):
        pytest.skip("this user or folder may not hold a device")
    return path


@pytest.mark.parametrize(
    "command",
    [
        MEASURE,
        ["plan", "linear", "--n", "20", "--p", "4", "--dim", "8", "--sigma", "1", "--draws", "20"],
        ["audit", "--example", "iris"],
    ],
    ids=lambda command: command[0],
)
def test_json_goes_through_a_pipe(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pipe = tmp_path / "answer"
    os.mkfifo(pipe)
    reader, found = read_in_background(pipe)
    assert main([*command, "--json", str(pipe)]) == 0, capsys.readouterr().err
    reader.join(30.0)
    assert json.loads(found[0])["schema_version"] == SCHEMA_VERSION
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_json_goes_through_a_device(tmp_path: Path) -> None:
    device = null_device(tmp_path)
    assert main([*MEASURE, "--json", str(device)]) == 0
    assert stat.S_ISCHR(device.lstat().st_mode)
    assert [file.name for file in tmp_path.iterdir()] == ["null"]


def test_a_link_to_a_device_stays_a_link(tmp_path: Path) -> None:
    device = null_device(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(device)
    assert main([*MEASURE, "--json", str(link)]) == 0
    assert link.is_symlink()
    assert stat.S_ISCHR(device.lstat().st_mode)


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "file.json")
    for _ in range(2):
        assert main([*MEASURE, "--json", str(link)]) == 0
        assert link.is_symlink()
        assert json.loads((tmp_path / "file.json").read_text())["kind"] == "measure"
        assert stat.S_IMODE((tmp_path / "file.json").stat().st_mode) == 0o600


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    assert main(["audit", "--example", "iris", "--run-dir", str(run)]) == 0
    return run


def test_a_page_goes_through_a_pipe(audited: Path, tmp_path: Path) -> None:
    pages = {
        "report.html": ["report", str(audited), "--output"],
        "compare.html": ["compare", str(audited), str(audited), "--html"],
    }
    for name, command in pages.items():
        pipe = tmp_path / name
        os.mkfifo(pipe)
        reader, found = read_in_background(pipe)
        assert main([*command, str(pipe)]) == 0
        reader.join(30.0)
        assert b"</html>" in found[0]
        assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_socket_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        assert main([*MEASURE, "--json", str(path)]) == 2
    assert "is a socket" in capsys.readouterr().err
    assert stat.S_ISSOCK(path.lstat().st_mode)


def test_a_disk_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "disk"
    try:
        # Numbers that no driver has: even opened, it leads nowhere.
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(240, 255))
    except PermissionError:
        pytest.skip("this user may not make a device")
    assert main([*MEASURE, "--json", str(path)]) == 2
    assert "is a disk" in capsys.readouterr().err
    assert stat.S_ISBLK(path.lstat().st_mode)


def run_leakscope(arguments: list[str], **more: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "leakscope", *arguments]
    return subprocess.run(command, timeout=900, check=False, **more)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout_by_its_names_holds_json_alone(name: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as stream:
        done = run_leakscope([*MEASURE, "--json", name], stdout=stream)
    assert done.returncode == 0
    assert json.loads((tmp_path / "out").read_bytes())["kind"] == "measure"


def test_a_shells_process_substitution_is_written(tmp_path: Path) -> None:
    words = " ".join(f"'{word}'" for word in [sys.executable, "-m", "leakscope", *MEASURE])
    script = f"{words} --json >(cat > '{tmp_path}/copy'); wait"
    subprocess.run(["bash", "-c", script], timeout=900, check=True, stdout=subprocess.DEVNULL)
    for _ in range(100):
        if (tmp_path / "copy").exists() and (tmp_path / "copy").stat().st_size:
            break
        threading.Event().wait(0.1)
    assert json.loads((tmp_path / "copy").read_bytes())["kind"] == "measure"


def test_a_closed_stdout_is_no_traceback() -> None:
    words = " ".join(f"'{word}'" for word in [sys.executable, "-m", "leakscope", *MEASURE])
    done = subprocess.run(
        ["bash", "-c", f"{words} >&-"], timeout=900, check=False, capture_output=True
    )
    assert done.returncode == 0
    assert done.stderr == b""


def test_a_full_stdout_is_one_sentence(tmp_path: Path) -> None:
    # A node of our own for the device that only ever says "full".
    node = tmp_path / "full"
    try:
        os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        descriptor = os.open(node, os.O_WRONLY)
    except PermissionError:
        pytest.skip("this user or folder may not hold a device")
    with open(descriptor, "wb") as full:
        done = run_leakscope(MEASURE, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"leakscope: stdout cannot be written: No space left on device.\n"


def test_what_a_killed_process_left_blocks_nobody(tmp_path: Path) -> None:
    """Every process of a container may have the number 1: names by process would collide."""
    path = tmp_path / "answer.json"
    first, second = partial_beside(path), partial_beside(path)
    assert first != second
    first.write_bytes(b"half")
    write_file(path, b"whole")
    assert path.read_bytes() == b"whole"


def test_another_process_s_descriptor_is_not_ours() -> None:
    assert descriptor_of(Path("/proc/1/fd/3")) == (3 if os.getpid() == 1 else None)
