"""A map of many rows: fitted on some, all others placed, here and on a cluster."""

import json
import os
import signal
import time
from pathlib import Path
from unittest.mock import Mock

import anndata
import numpy as np
import pandas as pd
import pytest
import zarr
from anndata import AnnData
from scipy.sparse import csr_matrix

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data import lazy_recipe
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.lazy_rows import LazyRows
from napari_embedding_game.papers.reproductions.metrics import knn_accuracy
from napari_embedding_game.session import large_fit
from worlds import read
from worlds import write_adata as written

N, RARE = 3_000, 12


@pytest.fixture(scope="module")
def cells():
    """Three groups, and one of 12 rows far from them."""
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(3, 8)) * 6
    X = middles[rng.integers(3, size=N)] + rng.normal(size=(N, 8))
    X[:RARE] = rng.normal(size=8) * 20 + rng.normal(size=(RARE, 8))
    return rng.permutation(X).astype(np.float32)


def obs_of(n):
    return pd.DataFrame(index=pd.RangeIndex(n).astype(str))


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(large_fit, "CHUNK", 250)


@pytest.fixture(scope="module", params=["anndata.zarr", "anndata.h5ad", "array.zarr"])
def file(request, cells, tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / request.param
    if request.param == "array.zarr":
        zarr.save_array(str(path), cells)
        return path
    obs = pd.DataFrame({"donor": pd.Categorical(["a", "b", "c"] * (N // 3))})
    obs.index = [f"cell{i}" for i in range(N)]
    written(AnnData(np.zeros((N, 1), np.float32), obs, obsm={"X_pca": cells}), path)
    return path


def test_rows_that_cannot_be_read_in_parts_are_told(tmp_path, cells):
    written(AnnData(csr_matrix(cells)), tmp_path / "sparse.zarr")
    with pytest.raises(DataError, match="X is no dense table of numbers"):
        LazyRows(tmp_path / "sparse.zarr")
    wrong = cells.copy()
    wrong[2321, 3] = np.nan
    zarr.save_array(str(tmp_path / "nan.zarr"), wrong)
    rows = LazyRows(tmp_path / "nan.zarr")
    rows.read_range(0, 2000)
    with pytest.raises(DataError, match="first in row 2,322"):
        rows.read_range(2000, 2500)


def test_the_reference_keeps_rare_groups(cells, file, small_chunks):
    is_rare = np.linalg.norm(cells, axis=1) > 35
    assert is_rare.sum() == RARE
    rows = LazyRows(file)
    for seed in range(2):
        drawn = large_fit.sample_reference_rows(rows, 300, seed)
        assert len(np.unique(drawn)) == len(drawn) == 300
        assert (np.diff(drawn) > 0).all()
        # At random there would be 1.2 of them.
        assert is_rare[drawn].sum() >= 6
        assert np.array_equal(drawn, large_fit.sample_reference_rows(rows, 300, seed))
    np.testing.assert_array_equal(rows.take_rows(drawn, 700), cells[drawn])
    assert len(large_fit.sample_reference_rows(rows, 10**9)) == N


def test_all_rows_are_placed_as_transform_places_them(
    command_line, cells, file, small_chunks, tmp_path
):
    out = tmp_path / "map.zarr"
    arguments = f"fit {file} -o {out} --reference 800 --max-iter 60 --n-jobs 1 --json"
    done = command_line(*arguments.split())
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["n_points"], facts["reference"]) == (N, 800)
    found = anndata.read_zarr(out)
    record = found.uns["embedding_game"]
    assert record["map_hash"] == facts["map_hash"]
    assert record["parameters"]["max_iter"] == 60
    drawn = large_fit.sample_reference_rows(LazyRows(file), 800, 0)
    model = EmbeddingGame(random_state=0, max_iter=60, n_jobs=1).fit(cells[drawn])
    np.testing.assert_array_equal(record["landmarks"], model.landmarks_)
    places = found.obsm["X_embedding_game"]
    np.testing.assert_array_equal(places, model.transform(cells))
    np.testing.assert_array_equal(places[drawn], model.embedding_)
    for name in ("stretch", "isolation"):
        figures = found.obs[f"embedding_game_{name}"].to_numpy()
        fitted = getattr(model, f"{name}_")
        np.testing.assert_array_equal(figures[drawn], fitted)
        assert np.isfinite(figures).all()
        others = np.delete(figures, drawn)
        assert np.median(others) == pytest.approx(np.median(fitted), rel=0.25)
    if file.name.startswith("anndata"):
        assert found.obs_names[7] == "cell7"
        assert found.obs["donor"].tolist()[:3] == ["a", "b", "c"]
    assert len(read(out).obs) == N  # by the window, too
    landmarks = found.obs["embedding_game_landmark"].to_numpy()
    np.testing.assert_array_equal(landmarks[drawn], model.labels_)
    clusters = found.obs["embedding_game_cluster"].astype(int).to_numpy()
    assert clusters.min() >= 0
    assert len(np.unique(clusters)) < len(np.unique(landmarks))
    for landmark in np.unique(landmarks):
        assert len(np.unique(clusters[landmarks == landmark])) == 1
    again = command_line(*arguments.split())
    assert (again.exit_code, "--force" in again.output) == (2, True)
    forced = command_line(*arguments.split(), "--force", "--n-clusters", "3")
    assert forced.exit_code == 0, forced.output
    found = anndata.read_zarr(out)
    assert found.obs["embedding_game_cluster"].nunique() == 3


def test_a_result_that_cannot_take_its_place_is_kept(cells, tmp_path, monkeypatch):
    zarr.save_array(str(tmp_path / "some.zarr"), cells[:200])
    model = EmbeddingGame(max_iter=5, random_state=0).fit(cells[:200])
    monkeypatch.setattr(Path, "rename", Mock(side_effect=PermissionError))
    rows, out = LazyRows(tmp_path / "some.zarr"), tmp_path / "map.zarr"
    arguments = rows, model, out, {}, map, obs_of(200), np.arange(200)
    with pytest.raises(DataError, match=r"whole result is in \.map\.zarr\.part"):
        large_fit.write_placed_rows(*arguments)
    kept = anndata.read_zarr(tmp_path / ".map.zarr.part")
    np.testing.assert_array_equal(kept.obsm["X_embedding_game"], model.embedding_)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["-o", "map.h5ad"], "has to end in .zarr"),
        (["-o", "map.zarr", "--recipe"], "holds no raw counts"),
        (["-o", "map.zarr", "--missing", "drop"], "leave out --missing"),
        (["-o", "map.zarr", "--space", "X_umap"], 'no space "X_umap"'),
        (["-o", "map.zarr", "--metric", "manhattan"], "under the distance"),
    ],
)
def test_what_cannot_be_done_in_parts_is_told(
    command_line, cells, tmp_path, monkeypatch, more, says
):
    monkeypatch.chdir(tmp_path)
    written(AnnData(cells[:50]), tmp_path / "cells.zarr")
    done = command_line("fit", "cells.zarr", "--reference", "40", *more)
    assert done.exit_code == 2
    assert says in done.output
    assert not (tmp_path / "map.zarr").exists()


def test_a_scheduler_without_a_reference_is_told(command_line, tmp_path):
    out = str(tmp_path / "map.h5ad")
    done = command_line("fit", "x.zarr", "-o", out, "--scheduler", "a:1")
    assert (done.exit_code, "give both" in done.output) == (2, True)


# --- On a cluster -------------------------------------------------------------------


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as workers:
        yield workers


def test_a_worker_that_is_killed_loses_nothing(cells, small_chunks, tmp_path, cluster):
    zarr.save_array(str(tmp_path / "cells.zarr"), cells)
    rows = LazyRows(tmp_path / "cells.zarr")
    model = EmbeddingGame(random_state=0, max_iter=60).fit(cells[:800])
    rest = obs_of(N), np.arange(800)
    large_fit.write_placed_rows(rows, model, tmp_path / "here.zarr", {}, map, *rest)
    pids = [worker.pid for worker in cluster.workers.values()]
    seen = []
    with large_fit.open_cluster_map(cluster.scheduler_address) as run:

        def run_and_kill(work, begins, ends):
            def slowly(begin, end):
                time.sleep(0.3)
                return (*work(begin, end), os.getpid())

            for *found, pid in run(slowly, begins, ends):
                if len(seen) == 2:
                    os.kill(pids[0], signal.SIGKILL)
                seen.append(pid)
                yield found

        out = tmp_path / "there.zarr"
        large_fit.write_placed_rows(rows, model, out, {}, run_and_kill, *rest)
    assert len(seen) == 12
    # It did not live to do its half.
    assert seen.count(pids[0]) <= 3
    one, other = (anndata.read_zarr(tmp_path / x) for x in ("here.zarr", "there.zarr"))
    pd.testing.assert_frame_equal(one.obs, other.obs)
    np.testing.assert_array_equal(*(x.obsm["X_embedding_game"] for x in (one, other)))


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(large_fit, "_PATIENCE", 0.5)
    with (
        pytest.raises(InputError, match="No Dask scheduler answers at tcp://localhost"),
        large_fit.open_cluster_map("tcp://localhost:9"),
    ):
        pass


def test_counts_go_through_the_recipe_in_parts(command_line, tmp_path, monkeypatch):
    monkeypatch.setattr(lazy_recipe, "CHUNK", 100)
    rng = np.random.default_rng(0)
    rates = rng.gamma(2.0, 2.0, (3, 400))
    kinds = rng.integers(3, size=600)
    counts = rng.poisson(rates[kinds]).astype(np.float32)
    counts[::100, 5:] = 0  # too few genes
    adata = AnnData(csr_matrix(counts))
    path = written(adata, tmp_path / "counts.h5ad")
    out = tmp_path / "map.zarr"
    command = ["fit", str(path), "-o", str(out), "--recipe", "--reference", "200"]
    done = command_line(*command, "--max-iter", "60", "--quiet")
    assert done.exit_code == 0, done.output
    found = anndata.read_zarr(out)
    rows = found.obs["embedding_game_row"].to_numpy()
    assert len(rows) == 594
    assert not set(rows) & set(range(0, 600, 100))
    assert found.obs_names.tolist() == rows.astype(str).tolist()
    facts = found.uns["embedding_game"]["parameters"]
    assert facts["recipe"]["cells_left_out"] == 6
    assert (facts["input"], facts["space"]) == ("counts.h5ad", "X")
    assert knn_accuracy(found.obsm["X_embedding_game"], kinds[rows]) > 0.95
    assert sorted(p.name for p in tmp_path.iterdir()) == ["counts.h5ad", "map.zarr"]
