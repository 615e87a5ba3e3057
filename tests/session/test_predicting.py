"""Labels of an open map from a reference: told, written, stored and read again."""

from types import SimpleNamespace

import anndata
import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.dataset import AddedColumns
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.prediction import UNLIKE, PredictedLabels
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.notebook.export import write_code
from napari_embedding_game.session.reference.labels import (
    describe_confidence,
    load_reference,
    place_cells,
)
from napari_embedding_game.session.reference.mapping import map_cells
from worlds import Desk, cells, read

pytest.importorskip("scanpy", reason="the recipe is scanpy's")
pytestmark = pytest.mark.filterwarnings("ignore:The points were still moving")

RECIPE = Recipe(min_genes=5, min_cells=2, n_top_genes=100, n_comps=8)


def test_who_has_most_votes_and_is_unlike_all_is_counted():
    labels, figures = pd.Categorical([*"ABAB"]), np.zeros(4, np.float32)
    votes = np.array([0.79, 0.8, 0.9, 1], np.float32)
    how = AddedColumns(kind="predicted", reference="ref.h5ad", label="kind")
    found = PredictedLabels(how, labels, votes, figures, figures, votes == 1)
    told = describe_confidence(found, SimpleNamespace(name="ref.h5ad"))
    assert told.startswith("kind of ref.h5ad for 4 cells: 75% with at least 80% of the")
    assert told.endswith("1 (25%) are unlike anything in it.")


def written(path, n, kinds, seed, genes=slice(None)):
    """Write counts of cells, of which one is left out by the recipe."""
    adata = cells(n, kinds, seed, "cell_type")
    adata.X = adata.X.toarray()
    adata.X[3] = 0
    adata[:, genes].copy().write_h5ad(path)
    return path


def played(path):
    dataset = read(path, space="X", recipe=RECIPE)
    return Desk(dataset, max_iter=30, n_landmarks=12).play()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A saved map, and the counts of new cells with one more kind."""
    folder = tmp_path_factory.mktemp("reference")
    data = written(folder / "known.h5ad", 260, "ABC", 0)
    session = played(data).session
    write_result(session.dataset, session.to_result(), folder / "reference.h5ad")
    order = np.random.default_rng(1).permutation(150)
    written(folder / "new.h5ad", 160, "ABCD", 1, order)
    return folder


@pytest.fixture(scope="module")
def reference(files):
    return finish(load_reference(files / "reference.h5ad"))


@pytest.fixture
def desk(files):
    return played(files / "new.h5ad")


@pytest.fixture
def placed(desk, reference):
    return finish(place_cells(desk.session.dataset, reference, "cell_type"))


def test_cells_lie_where_transform_places_them(desk, placed, reference):
    session, tree, known = desk.session, desk.maps, reference
    own = session.snapshot
    tree.open_placed_map(placed)
    new = anndata.read_h5ad(session.dataset.source)[session.dataset.kept].copy()
    mapped = finish(map_cells(known, "new", new))
    # Sums of sparse and dense rows are rounded differently.
    np.testing.assert_allclose(session.snapshot.embedding, mapped.positions, atol=0.02)
    assert session.placed_on is placed.saved.placed_on
    np.testing.assert_array_equal(session.placed_on.cells, known.fitted.points)
    low, high = session.placed_on.corners
    assert (session.placed_on.cells >= low).all()
    assert (session.snapshot.embedding <= high).all()
    assert [place.title for place in tree.path] == ["new.h5ad", "On reference.h5ad"]
    assert session.look.color_by == "cell_type_predicted_or_unlike"
    obs = session.dataset.obs
    told, truth = obs[session.look.color_by].astype(str), obs["cell_type"].astype(str)
    assert (told[truth == "D"] == UNLIKE).mean() > 0.8
    assert (told == truth)[truth != "D"].mean() > 0.8
    assert sum(cluster.size for cluster in session.clusters.clusters) == len(obs)
    tree.open("")
    assert session.snapshot is own
    assert session.placed_on is None
    assert "cell_type_predicted" in session.dataset.obs


def test_files_have_the_places_and_say_of_what(desk, placed, tmp_path):
    session, tree = desk.session, desk.maps
    tree.open_placed_map(placed)
    write_result(session.dataset, session.to_result(), tmp_path / "placed.h5ad")
    adata = anndata.read_h5ad(tmp_path / "placed.h5ad")
    places = adata.obsm["X_embedding_game"][session.dataset.kept]
    np.testing.assert_array_equal(places, session.snapshot.embedding)
    record = adata.uns["embedding_game"]["parameters"]
    assert record["placed_on"].endswith("reference.h5ad")
    write_code(tree.to_saved_session(), tmp_path / "methods.txt")
    methods = (tmp_path / "methods.txt").read_text()
    assert "placed on the map of a reference (reference.h5ad, 259 cells)" in methods
    write_code(tree.to_saved_session(), tmp_path / "map.ipynb")
    script = (tmp_path / "map.ipynb").read_text()
    assert "where they were placed on the map of `reference.h5ad`" in script
    assert 'tl.replay(adata, \\"map_run.zip\\"' in script
