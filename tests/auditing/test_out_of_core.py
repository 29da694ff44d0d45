from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leakscope import InputError, kernels, lood, measures
from leakscope.auditing import audit_out_of_core
from leakscope.auditing.record_passes import tree
from leakscope.running import cluster_client

NOISE = 0.3
COLUMNS = [f"x{j}" for j in range(7)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 7)) * rng.gamma(1.0, 1.0, size=(2000, 1))
    return X, X[:, 0] + rng.normal(size=2000)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    place = tmp_path_factory.mktemp("records")
    X, y = data
    for number, rows in enumerate(np.array_split(np.arange(len(y)), 4)):
        frame = pd.DataFrame(X[rows], columns=COLUMNS)
        frame["y"], frame["name"] = y[rows], [f"r{row}" for row in rows]
        frame.to_parquet(place / f"{number}.parquet", row_group_size=190, index=False)
    return place


def same(table, laws) -> None:
    pair = laws.law_pair()
    expected = {
        "kl": laws.kl,
        "kl_reverse": measures.kl(pair, "member_to_nonmember"),
        "advantage": measures.advantage(pair),
        "auc": measures.auc(pair),
        "mean_distance": laws.mean_distance,
        "leverage": laws.leverage,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(table[name], values, rtol=1e-10, atol=1e-300, err_msg=name)
    assert np.array_equal(table["trusted"], laws.trusted)


def test_parquet_files_as_in_memory(data, folder, tmp_path):
    X, y = data
    steps = []
    found = audit_out_of_core(
        folder,
        "y",
        noise_variance=NOISE,
        output=tmp_path / "o.parquet",
        record_id="name",
        block_bytes=56 * 50,
        on_progress=steps.append,
    )
    table = found.to_frame()
    known = lood.audit_features(X, y, NOISE)
    same(table, known)
    assert table["record_id"].tolist() == [f"r{row}" for row in range(2000)]
    assert found.largest[0][0] == f"r{np.argmax(known.kl)}"
    assert found.mean_kl == pytest.approx(known.kl.mean(), rel=1e-12)
    assert (steps[-1].done, steps[-1].total) == (24, 24)
    assert steps[-1].seconds_left == 0.0
    assert (tmp_path / "o.parquet").stat().st_mode & 0o777 == 0o600
    asked = json.loads(pq.read_schema(tmp_path / "o.parquet").metadata[b"leakscope"])
    assert asked["noise_variance"] == NOISE
    assert json.loads(json.dumps(found.to_dict()))["records"] == 2000


def test_dask_arrays_and_several_outputs(data, tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = data
    both = np.column_stack([y, -2.0 * y + X[:, 1]])
    found = audit_out_of_core(
        da.from_array(X, chunks=(300, 3)),
        da.from_array(both, chunks=(450, 1)),
        noise_variance=NOISE,
        output=tmp_path / "o.parquet",
    )
    same(found.to_frame(), lood.audit_features(X, both, NOISE))
    assert found.outputs == 2


def test_a_kernel_and_lists_of_numbers(data, tmp_path):
    X, y = data
    kernel = kernels.linear(bias_variance=0.5)
    inside = tmp_path / "in"
    inside.mkdir()
    for number, flexible in enumerate((True, False)):
        rows = slice(1000 * number, 1000 * (number + 1))
        fixed = pa.FixedSizeListArray.from_arrays(pa.array(X[rows].ravel()), 7)
        vectors = fixed.cast(pa.list_(pa.float64())) if flexible else fixed
        pq.write_table(pa.table({"v": vectors, "y": y[rows]}), inside / f"{number}.parquet")
    found = audit_out_of_core(
        inside, "y", noise_variance=NOISE, output=tmp_path / "o.parquet", kernel=kernel
    )
    dense = lood.all_records(kernel(X), y, noise_variance=NOISE)
    np.testing.assert_allclose(found.to_frame()["kl"], dense.kl, rtol=1e-8)
    assert found.features == 8


def test_flags_as_in_memory(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 6)) * 10.0 ** np.arange(6.0)
    y = rng.normal(size=300)
    known = lood.audit_features(X, y, 1e-7)
    found = audit_out_of_core(
        X, y, noise_variance=1e-7, output=tmp_path / "o.parquet", block_bytes=2**10
    )
    assert found.untrusted == np.count_nonzero(~known.trusted) > 0
    flag = next(a for a in found.provenance.assumptions if "float64" in a.statement)
    assert flag.holds is False
    assert f"{found.untrusted} of 300" in flag.evidence


def test_a_cluster_gives_the_very_same_numbers(data, folder, tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = data
    sources = {"files": (folder, "y"), "dask": (da.from_array(X, chunks=(300, 7)), y)}
    with cluster_client(workers=2) as client:
        for name, (source, target) in sources.items():
            tables = [
                audit_out_of_core(
                    source,
                    target,
                    noise_variance=NOISE,
                    output=tmp_path / f"{name}.parquet",
                    features=COLUMNS if name == "files" else None,
                    client=where,
                    in_flight=3,
                ).to_frame()
                for where in (None, client)
            ]
            # BLAS may run with another number of threads in a worker.
            pd.testing.assert_frame_equal(*tables, check_exact=False, rtol=1e-12)
        broken = X.copy()
        broken[1500, 2] = np.nan
        with pytest.raises(InputError, match="not finite in row 1500"):
            audit_out_of_core(
                da.from_array(broken, chunks=(300, 7)),
                y,
                noise_variance=NOISE,
                output=tmp_path / "broken.parquet",
                client=client,
            )
    assert not (tmp_path / "broken.parquet").exists()


def test_the_tree_adds_everything_once_in_an_order_of_its_own():
    for count in range(1, 20):
        terms = [(str(i),) for i in range(count)]
        added = tree(iter(terms), lambda a, b: a + b)
        assert added == tuple(str(i) for i in range(count))


def test_nothing_is_left_of_a_run_that_fails_half_way(data, tmp_path):
    X, y = data[0].copy(), data[1]
    X[1500] = 0.0
    (tmp_path / "o.parquet").write_text("before")
    with pytest.raises(InputError, match="row 1500 are all zero"):
        audit_out_of_core(
            X, y, noise_variance=NOISE, output=tmp_path / "o.parquet", block_bytes=2**12
        )
    assert [path.name for path in tmp_path.iterdir()] == ["o.parquet"]
    assert (tmp_path / "o.parquet").read_text() == "before"


def test_refusals(data, folder, tmp_path):
    X, y = data
    out = tmp_path / "o.parquet"
    cases = [
        ((folder, "z"), {"record_id": "name"}, "no column 'z'"),
        ((folder, "y"), {}, "column 'name' holds"),
        ((folder, y), {}, "name of a column"),
        ((tmp_path / "none", "y"), {}, "no file or folder"),
        ((tmp_path, "y"), {"output": tmp_path.parent / "o.parquet"}, "no file that ends"),
        ((folder, "y"), {"output": folder / "o.parquet"}, "among the records"),
        ((X, y), {"output": tmp_path / "o.csv"}, "ends in .parquet"),
        ((X, y[:-1]), {}, "targets' shape"),
        ((X, y), {"noise_variance": 0.0}, "positive"),
        ((X, y), {"record_id": "name"}, "an array has none"),
        ((X, y), {"kernel": kernels.rbf(1.0)}, "finitely many features"),
    ]
    for (source, target), changes, message in cases:
        asked = {"noise_variance": NOISE, "output": out} | changes
        with pytest.raises(InputError, match=message):
            audit_out_of_core(source, target, **asked)
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(InputError, match="not a Parquet file"):
        audit_out_of_core(tmp_path / "x.parquet", "y", noise_variance=1.0, output=out)
    pq.write_table(pa.table({"x": [1.0, None], "y": [0.0, 1.0]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="'x' has 1 missing"):
        audit_out_of_core(tmp_path / "x.parquet", "y", noise_variance=1.0, output=out)
    assert not out.exists()
