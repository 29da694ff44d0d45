"""The numbers people read are those of the laws beside them, and a run knows itself."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

import leakscope
from leakscope import kernels, lood, results
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.results.columns import Table
from leakscope.results.reader import read_run
from leakscope.results.run_directory import DIGESTS_FILE
from leakscope.verifying.stored_numbers import require_stored_numbers


@functools.cache
def documents() -> dict[str, results.Audit]:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    several = np.eye(3)[rng.integers(0, 3, 60)] - 1 / 3
    far = 1e6 + y
    nystrom = lood.Process(kernels.rbf(8.0), 0.1, route="nystrom", inducing=50)
    with pytest.warns(UserWarning, match="this audit is approximate"):
        approximate = leakscope.audit(X, y, model=nystrom)
    rbf = lood.Process(kernels.rbf())
    features = lood.Process(kernels.linear(bias_variance=1.0), route="features")
    return {
        "rbf": leakscope.audit(X, y, model=rbf),
        "little noise": leakscope.audit(X, y, model=lood.Process(kernels.rbf(), 1e-6)),
        "much noise": leakscope.audit(X, y, model=lood.Process(kernels.rbf(), 1e4)),
        "far from zero": leakscope.audit(X, far, model=rbf),
        "several outputs": leakscope.audit(X, several, model=rbf),
        "features": leakscope.audit(X, y, model=features),
        "nystrom": approximate,
    }


@pytest.mark.parametrize("name", ["rbf", "little noise", "much noise", "far from zero",
                                  "several outputs", "features", "nystrom"])  # fmt: skip
def test_an_audit_s_own_numbers_pass(name: str) -> None:
    document = documents()[name]
    assert any(record.confirmed for record in document.records) == (name != "nystrom")
    assert document.details.route == (name if name in ("features", "nystrom") else "dense")
    require_stored_numbers(document)


def with_last(audit: results.Audit, quantity: str, factor: float) -> results.Audit:
    """The same with one number of the least exposed changed."""
    values = np.array(audit.table.columns[quantity])
    values[audit.order[-1]] *= factor
    table = Table({**audit.table.columns, quantity: values}, audit.order)
    return audit.model_copy(update={"table": table})


def turned(audit: results.Audit) -> results.Audit:
    table = Table(audit.table.columns, audit.order[::-1])
    return audit.model_copy(update={"table": table})


@pytest.fixture(scope="module")
def examined() -> results.Audit:
    X, y = load_diabetes(return_X_y=True)
    return leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))


@pytest.mark.parametrize(
    "quantity",
    ["kl", "kl_reverse", "advantage", "auc", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001"],
)
@pytest.mark.parametrize("factor", [0.0, 0.999])
def test_one_changed_number_of_a_fitted_model_is_found(
    quantity: str, factor: float, examined: results.Audit
) -> None:
    require_stored_numbers(examined)
    with pytest.raises(InputError, match="but its means and variances give"):
        require_stored_numbers(with_last(examined, quantity, factor))


def test_the_order_the_median_and_the_count_of_a_fitted_model_are_checked(
    examined: results.Audit,
) -> None:
    with pytest.raises(InputError, match="stands after"):
        require_stored_numbers(turned(examined))
    with pytest.raises(InputError, match="the median advantage is 0, but its records' is"):
        require_stored_numbers(examined.model_copy(update={"median_advantage": 0.0}))
    with pytest.raises(InputError, match="says that 0 records are exposed, but its records say"):
        require_stored_numbers(examined.model_copy(update={"exposed": 0}))


def test_verify_of_a_fitted_model_measures_its_numbers_again(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "model"
    line = [
        "audit",
        str(runs / "data.csv"),
        "--target",
        "y",
        "--model",
        "ridge",
        "--set",
        "alpha=1",
    ]
    assert main([*line, "--run-dir", str(place)]) == 0
    assert main(["verify", str(place), "--models", "20", "--records", "2"]) in (0, 3)
    capsys.readouterr()
    without_exposure(place, forget_digest=True)
    assert main(["verify", str(place), "--models", "20", "--records", "2"]) == 2
    assert "the file was changed after it was written" in capsys.readouterr().err


@pytest.mark.parametrize("quantity", ["kl", "kl_reverse", "advantage", "auc"])
@pytest.mark.parametrize("name", ["rbf", "several outputs", "far from zero"])
@pytest.mark.parametrize("factor", [0.0, 0.999])
def test_one_changed_number_is_found(name: str, quantity: str, factor: float) -> None:
    with pytest.raises(InputError, match="but its means and variances give"):
        require_stored_numbers(with_last(documents()[name], quantity, factor))


def test_the_order_and_the_median_are_checked() -> None:
    document = documents()["rbf"]
    with pytest.raises(InputError, match="stands after"):
        require_stored_numbers(turned(document))
    calm = document.model_copy(update={"median_advantage": 0.0})
    with pytest.raises(InputError, match="the median advantage is 0, but its records' is"):
        require_stored_numbers(calm)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    lines = [f"{i % 9},{rng.normal()},{rng.normal()},{rng.normal()}" for i in range(45)]
    (folder / "data.csv").write_text("g,a,b,y\n" + "\n".join(lines) + "\n")
    common = ["audit", str(folder / "data.csv"), "--target", "y", "--model", "rbf"]
    assert main([*common, "--ignore", "g", "--run-dir", str(folder / "records")]) == 0
    assert main([*common, "--group", "g", "--run-dir", str(folder / "groups")]) == 0
    other = [*common, "--ignore", "g", "--set", "noise_variance=0.5"]
    assert main([*other, "--run-dir", str(folder / "other")]) == 0
    return folder


@pytest.fixture
def run(runs: Path, tmp_path: Path) -> Callable[[str], Path]:
    def copied(name: str) -> Path:
        return Path(shutil.copytree(runs / name, tmp_path / name))

    return copied


def without_exposure(run: Path, *, forget_digest: bool) -> None:
    """Every kl and advantage set to 0, as the review did."""
    file = run / "result.json"
    content = json.loads(file.read_text())
    for record in content["records"]:
        record |= {"kl": 0.0, "advantage": 0.0}
    content |= {"median_advantage": 0.0, "exposed": 0}
    file.write_text(json.dumps(content))
    if forget_digest:
        (run / DIGESTS_FILE).unlink()


@pytest.mark.parametrize("unit", ["records", "groups"])
def test_verify_finds_a_run_whose_numbers_were_set_to_zero(
    unit: str, run: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = run(unit)
    assert main(["verify", str(place)]) == 0
    capsys.readouterr()
    without_exposure(place, forget_digest=True)
    assert main(["verify", str(place)]) == 2
    said = capsys.readouterr().err
    assert "has kl 0, but its means and variances give" in said


@pytest.mark.parametrize("command", ["verify", "report", "advise", "compare"])
def test_a_changed_run_is_refused_by_its_digest(
    command: str, run: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = run("records")
    without_exposure(place, forget_digest=False)
    more = {"advise": ["--target-advantage", "0.2"], "compare": [str(place)]}
    assert main([command, str(place), *more.get(command, [])]) == 2
    assert "result.json was changed after the run was written" in capsys.readouterr().err


def test_a_missing_file_and_a_changed_table_are_seen(run: Callable[[str], Path]) -> None:
    place = run("records")
    (place / "arrays.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"arrays.npz was changed after the run was written"):
        read_run(place)
    (place / "arrays.npz").unlink()
    with pytest.raises(InputError, match=r"is not whole: arrays\.npz is missing"):
        read_run(place)


@pytest.mark.parametrize("text", ["[]", '{"result.json": 3}', '{"../x": "' + "0" * 64 + '"}'])
def test_odd_digests_are_refused(text: str, run: Callable[[str], Path]) -> None:
    place = run("records")
    (place / DIGESTS_FILE).write_text(text)
    with pytest.raises(InputError):
        read_run(place)


def test_a_run_of_the_former_kind_is_read_and_said_to_be_one(
    run: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = run("records")
    (place / DIGESTS_FILE).unlink()
    assert not read_run(place).has_digest
    assert main(["report", str(place)]) == 0
    assert "has no checksum" in capsys.readouterr().err


def test_another_run_s_verification_is_refused(
    run: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = run("records"), run("other")
    assert main(["verify", str(own), "--json", str(own / "verify.json")]) == 0
    assert read_run(own).verification is not None
    shutil.copy(own / "verify.json", other)
    capsys.readouterr()
    assert main(["report", str(other)]) == 2
    assert "verify.json verifies another" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("advantage", 7.0), ("advantage", -0.1), ("auc", 1.5)])
def test_what_is_no_fraction_is_refused(
    name: str, value: float, run: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = run("records")
    content = json.loads((place / "result.json").read_text())
    content["records"][0][name] = value
    (place / "result.json").write_text(json.dumps(content))
    (place / DIGESTS_FILE).unlink()
    assert main(["report", str(place)]) == 2
    assert f"records: {name}" in capsys.readouterr().err
