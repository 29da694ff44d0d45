from __future__ import annotations

import stat

import numpy as np
import pytest

from leakscope.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "iris"
    assert (
        main(
            [
                "audit",
                "--example",
                "iris",
                "--kernel",
                "rbf",
                "--run-dir",
                str(folder),
                "--top",
                "0",
            ]
        )
        == 0
    )
    return folder


def test_it_goes_into_the_run_directory(run, capsys):
    assert main(["report", str(run)]) == 0
    file = run / "report.html"
    out, err = capsys.readouterr()
    assert out.startswith(f"Report: {file} (1.")
    assert "as sensitive as the data" in out
    assert err == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    # A second one takes its place.
    assert main(["report", str(run)]) == 0


def test_redacted_elsewhere(run, tmp_path, capsys):
    file = tmp_path / "for-others.html"
    assert main(["report", str(run), "--redact", "--output", str(file)]) == 0
    assert "aggregates only" in capsys.readouterr().out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert main(["report", str(run), "--redact"]) == 0
    assert (run / "report-redacted.html").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "There is no run directory nowhere."),
        (
            ["{run}/result.json"],
            "whose charts are in other files of its folder; name the run directory.",
        ),
        (["{tmp}"], "is not a run directory: it holds no result.json."),
        (["{run}", "--output", "{tmp}/a.pdf"], "does not end in .html; a report is an HTML file."),
        (["{run}", "--output", "{tmp}/no/a.html"], "There is no folder"),
        (["{run}", "--output", "{tmp}/folder.html"], "is a folder; a report needs a file name."),
    ],
)
def test_refusals(run, tmp_path, capsys, arguments, sentence):
    (tmp_path / "folder.html").mkdir()
    words = [word.format(run=run, tmp=tmp_path) for word in arguments]
    assert main(["report", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("result.json", b'{"kind": "audit"', "is not JSON"),
        ("result.json", b'{"kind": "audit", "schema_version": "2"}', "is not a whole leakscope"),
        ("settings.json", b"[", "is not JSON"),
        ("verify.json", b"{}", "is not a leakscope result"),
        ("gallery.json", b'{"pictures": 3}', "is not a gallery"),
        ("arrays.npz", b"PK\x03\x04nonsense", "not an .npz archive of numbers"),
        ("arrays.npz", b"", "not an .npz archive of numbers"),
    ],
)
def test_a_damaged_run_is_refused_whole(run, tmp_path, capsys, name, content, sentence):
    import shutil

    damaged = tmp_path / "run"
    shutil.copytree(run, damaged, ignore=shutil.ignore_patterns("*.html"))
    (damaged / "digests.json").unlink()
    (damaged / name).write_bytes(content)
    assert main(["report", str(damaged)]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1
    assert list(damaged.glob("*.html")) == []


def test_a_picture_that_leads_elsewhere_is_refused(run, tmp_path, capsys):
    import shutil

    damaged = tmp_path / "run"
    shutil.copytree(run, damaged)
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\nsecret")
    text = (
        '{"pictures": [{"record_id": 1, "target": "a", "file": "../secret.png", "rank": 1, '
        '"neighbours": []}]}'
    )
    (damaged / "gallery.json").write_text(text)
    assert main(["report", str(damaged)]) == 2
    assert "is not a gallery" in capsys.readouterr().err
    (damaged / "gallery.json").write_text(text.replace("../secret", "page"))
    (damaged / "page.png").write_bytes(b"<script>")
    assert main(["report", str(damaged)]) == 2
    assert "page.png is not a PNG picture." in capsys.readouterr().err


def test_pickled_arrays_are_refused(run, tmp_path, capsys):
    import shutil

    damaged = tmp_path / "run"
    shutil.copytree(run, damaged)
    (damaged / "digests.json").unlink()
    np.savez(damaged / "arrays.npz", roc_fpr=np.array([{}], dtype=object))
    assert main(["report", str(damaged)]) == 2
    assert "not an .npz archive of numbers" in capsys.readouterr().err
