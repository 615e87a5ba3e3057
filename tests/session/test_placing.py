"""Cells of an open map, placed on that of a reference: a map of its own in the tree."""

from dataclasses import replace

import anndata
import numpy as np
import pytest

from napari_embedding_game.data.export.writers import write
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.predicted import UNLIKE
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.recipe import apply_recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.notebook.export import write_code
from napari_embedding_game.session.reference.labels import load_reference, place_cells
from napari_embedding_game.session.reference.mapping import map_cells
from worlds import cells as cells_of
from worlds import play, session_of

pytest.importorskip("scanpy", reason="the recipe is scanpy's")
pytestmark = pytest.mark.filterwarnings("ignore:The points were still moving")

RECIPE = Recipe(min_genes=5, min_cells=2, n_top_genes=100, n_comps=8)


def counts(n, kinds, seed):
    return cells_of(n, kinds, seed, "cell_type")


def played(dataset):
    session = session_of(dataset, max_iter=20, n_landmarks=12)
    play(session)
    return session


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A saved map of three kinds, and its file."""
    path = tmp_path_factory.mktemp("reference") / "known.h5ad"
    known = from_anndata(counts(260, "ABC", 0), "known")
    session = played(finish(apply_recipe(known, RECIPE)))
    write(session.dataset, session.result(), path)
    return finish(load_reference(path))


@pytest.fixture(scope="module")
def new_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("new") / "new.h5ad"
    counts(120, "ABCD", 1).write_h5ad(path)
    return path


@pytest.fixture
def tree(new_file):
    new = from_anndata(anndata.read_h5ad(new_file), "new")
    return MapTree(played(replace(new, source=new_file)))


@pytest.fixture
def cells(tree, reference):
    return finish(place_cells(tree._session.dataset, reference, "cell_type"))


def test_cells_lie_where_transform_places_them(tree, cells, reference):
    session, known = tree._session, reference
    own = session.snapshot
    tree.place(cells)
    new = anndata.read_h5ad(session.dataset.source)
    mapped = finish(map_cells(known, "new", new))
    # Sums of sparse and dense rows are rounded differently.
    np.testing.assert_allclose(session.snapshot.embedding, mapped.places, atol=0.02)
    assert session.behind is cells.on
    np.testing.assert_array_equal(session.behind.cells, known.model.embedding_)
    names = np.array(session.behind.names)[session.behind.codes]
    assert names.tolist() == known.dataset.obs["cell_type"].astype(str).tolist()
    low, high = session.behind.corners
    assert (session.behind.cells >= low).all()
    assert (session.snapshot.embedding <= high).all()
    assert [place.title for place in tree.path] == ["new", "On known.h5ad"]
    assert session.look.color_by == "cell_type_predicted_or_unlike"
    obs = session.dataset.obs
    told, truth = obs[session.look.color_by].astype(str), obs["cell_type"].astype(str)
    assert (told[truth == "D"] == UNLIKE).mean() > 0.8
    assert (told == truth)[truth != "D"].mean() > 0.8
    assert sum(cluster.size for cluster in session.clusters.clusters) == len(obs)
    tree.back()
    assert session.snapshot is own
    assert session.behind is None
    assert "cell_type_predicted" in session.dataset.obs


def test_what_is_played_there_is_a_branch_that_can_be_taken_back(tree, cells):
    session = tree._session
    tree.place(cells)
    placed = session.snapshot.embedding
    play(session, session.play_on())
    assert not np.array_equal(session.snapshot.embedding, placed)
    assert session.behind is None
    session.look_back(session.timeline.marks[0].number)
    np.testing.assert_array_equal(session.snapshot.embedding, placed)
    assert session.behind is cells.on


def test_names_given_there_are_given_to_the_cells(tree, cells):
    session = tree._session
    tree.place(cells)
    first = session.clusters.clusters[0]
    session.clusters.rename(first.id, "lymphocytes")
    tree.back()
    named = [c for c in session.clusters.clusters if c.name == "lymphocytes"]
    assert [c.size for c in named] == [first.size]


def test_files_have_the_places_and_say_of_what(tree, cells, tmp_path):
    session = tree._session
    tree.place(cells)
    write(session.dataset, session.result(), tmp_path / "placed.h5ad")
    adata = anndata.read_h5ad(tmp_path / "placed.h5ad")
    places = adata.obsm["X_embedding_game"]
    np.testing.assert_array_equal(places, session.snapshot.embedding)
    record = adata.uns["embedding_game"]["parameters"]
    assert record["placed_on"].endswith("known.h5ad")
    write_code(tree.capture(), tmp_path / "methods.txt")
    methods = (tmp_path / "methods.txt").read_text()
    assert "placed on the map of a reference (known.h5ad, 260 cells)" in methods
    write_code(tree.capture(), tmp_path / "map.ipynb")
    script = (tmp_path / "map.ipynb").read_text()
    assert "where they were placed on the map of `known.h5ad`" in script
    assert 'tl.replay(adata, \\"map_run.zip\\"' in script
