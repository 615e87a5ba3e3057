"""A map that the data came with: shown, doubted, played on from, saved and opened."""

import anndata
import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import NearestNeighbors

from napari_embedding_game import tl
from napari_embedding_game.data.errors import DataError
from worlds import play, read, rows, session_of


@pytest.fixture(scope="module")
def cells():
    rng = np.random.default_rng(0)
    kind = np.arange(300) % 3
    X = 8 * rng.normal(size=(3, 10))[kind] + rng.normal(size=(300, 10))
    apart = np.array([[0, 0], [9, 0], [0, 9]])[kind] + rng.normal(size=(300, 2))
    apart[7] = apart[8]  # a cell of kind 1 among those of kind 2
    obs = pd.DataFrame({"cell_type": pd.Categorical(np.array([*"abc"])[kind])})
    obs.index = [f"cell{i}" for i in range(300)]
    maps = {"X_umap": apart, "X_tsne": 3 * rng.normal(size=(300, 3))}
    return anndata.AnnData(obs=obs, obsm={"X_pca": X, "spatial": apart, **maps})


@pytest.fixture
def path(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def shown(session, name="X_umap"):
    session.settings.choose_method("given")
    session.given_map = name
    return played(session, session.begin())


def played(session, run):
    play(session, run)
    session.note_run_ended(run)
    return session.snapshot


def opened(path, **options):
    return session_of(read(path, **options))


def test_it_is_shown_in_its_shape_with_the_colours_of_the_file(path, cells):
    session = opened(path)
    assert list(session.given_maps) == ["X_tsne", "X_umap"]  # and places are none
    assert session.dataset.space == "obsm['X_pca']"
    snapshot = shown(session)
    assert session.run.pace == 0.0  # nobody waits for what does not move
    for found, given in zip(snapshot.embedding.T, cells.obsm["X_umap"].T, strict=True):
        assert np.corrcoef(found, given)[0, 1] > 0.99999
    assert session.look.color_by == "cell_type"
    assert np.argmax(snapshot.stretch) == 7
    session.restore(session.to_saved_map())
    again = played(session, session.begin()).embedding  # and not the first map
    assert np.array_equal(again, snapshot.embedding)
    assert shown(session, "X_tsne").embedding.shape == (300, 3)
    session.load(rows(np.eye(9)))
    assert session.settings.method == "game"  # of other data a map is made


def test_the_game_plays_on_from_it_and_mends_it(path):
    session = opened(path)
    before = shown(session).embedding
    session.settings.choose_method("game")
    after = played(session, session.continue_run()).embedding
    kinds = session.dataset.obs["cell_type"].cat.codes.to_numpy()
    middles = np.array([after[kinds == k].mean(axis=0) for k in range(3)])
    assert np.linalg.norm(after[7] - middles, axis=1).argmin() == kinds[7]
    old = np.array([before[kinds == k].mean(axis=0) for k in range(3)])
    assert np.corrcoef(old.ravel(), middles.ravel())[0, 1] > 0.9


def test_the_columns_of_a_map_in_a_table_are_no_measurements(tmp_path):
    rng = np.random.default_rng(0)
    columns = ["area", "UMAP_1", "red", "UMAP_2", "marker_1", "marker_2"]
    table = pd.DataFrame(rng.normal(size=(40, 6)), columns=columns)
    table.to_csv(tmp_path / "t.csv", index=False)
    session = opened(tmp_path / "t.csv")
    assert session.dataset.var_names == ("area", "red", "marker_1", "marker_2")
    found = shown(session).embedding
    assert np.corrcoef(found[:, 0], table["UMAP_1"])[0, 1] > 0.99999


def test_without_a_map_or_with_gaps_the_way_out_is_named(path, tmp_path, cells):
    session = opened(path)
    session.dataset.obs.loc["cell3", "X_umap 1"] = np.nan
    with pytest.raises(DataError, match="no place for 1 of the points"):
        shown(session)
    without = cells.copy()
    del without.obsm["X_umap"], without.obsm["X_tsne"]
    without.write_h5ad(tmp_path / "none.h5ad")
    with pytest.raises(DataError, match="came without a map"):
        shown(opened(tmp_path / "none.h5ad"))


@pytest.mark.parametrize("space", ["X_tsne", "obsp['distances']"])
def test_true_neighbours_are_searched_in_the_space_that_is_chosen(
    path, cells, tmp_path, space
):
    near = NearestNeighbors(n_neighbors=15).fit(cells.obsm["X_pca"])
    cells = cells.copy()
    cells.obsp["distances"] = near.kneighbors_graph(mode="distance")
    cells.write_h5ad(tmp_path / "graph.h5ad")
    stretch = shown(opened(tmp_path / "graph.h5ad", space=space)).stretch
    # The cell that is misplaced is so by its neighbours in the components alone.
    assert (np.argmax(stretch) == 7) == (space != "X_tsne")


def test_new_cells_come_onto_a_published_map_which_stays(cells):
    cells, rng = cells.copy(), np.random.default_rng(1)
    published = cells.obsm["X_umap"].copy()
    rows = rng.permutation(300)[:60]
    new = anndata.AnnData(obs=cells.obs.iloc[rows])
    noise = 0.1 * rng.normal(size=(60, 10))
    new.obsm["X_pca"] = cells.obsm["X_pca"][rows] + noise
    new.obsm["X_pca"][:5] += 90
    tl.map_onto_reference(new, cells, "cell_type")
    np.testing.assert_array_equal(cells.obsm["X_umap"], published)
    right = new.obs["cell_type_predicted"].astype(str) == new.obs["cell_type"]
    assert right[5:].mean() > 0.95
    assert new.obs["unlike_reference"].tolist() == [True] * 5 + [False] * 55
    kinds = cells.obs["cell_type"].cat.codes.to_numpy()
    middles = np.array([published[kinds == k].mean(axis=0) for k in range(3)])
    away = np.linalg.norm(new.obsm["X_umap"][5:] - middles[kinds[rows[5:]]], axis=1)
    assert np.median(away) < 2  # of kinds 9 apart
    assert new.uns["embedding_game_reference"]["map"] == "X_umap"
