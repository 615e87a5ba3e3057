"""The session file: whatever a person saw or made comes back, or a sentence tells."""

import io
import json
import os
import pickle
import shutil
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

import worlds
from napari_embedding_game.data import samples
from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.dataset import AddedColumns, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.gene_sets import GeneSet, score_genes, with_score_column
from napari_embedding_game.data.images.join import JoinRequest
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.loader import load
from napari_embedding_game.data.prediction import PredictedLabels, with_predicted_labels
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.data.spatial_table import SpatialTable
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session import learned_classes
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.file import archive, codec, rows
from napari_embedding_game.session.file.autosave import Autosave, find_recent_sessions
from napari_embedding_game.session.file.saved_map import PlacedOn, ShownComparison
from napari_embedding_game.session.run.replay import is_same_layout
from napari_embedding_game.session.sources import AnnDataSource, FileSource
from worlds import Desk, play, replay

N = 80
SHORT = {"n_landmarks": 9, "max_iter": 30, "n_neighbors": 6}


def numbers(n=N):
    return make_blobs(n, 4, centers=4, random_state=0)[0].astype(np.float32)


def obs():
    """Metadata of every kind."""
    i = np.arange(N)
    stage = pd.Categorical(
        np.array(["late", "early"])[i % 2], ["early", "late", "never"], ordered=True
    )
    columns = {
        "well": np.array(["A01", "A02", "B01", "B02"])[i // 20],
        "text": [f"text {n}" for n in i],
        "dose": np.array([0.0, 0.5, 1.0, np.nan])[i // 20],
        "stage": stage,
        "far": np.where(i == 3, np.inf, 2.5),
        "huge": i + 2**60,
        "maybe": pd.array([True, None] * (N // 2), dtype="boolean"),
        "count": pd.array([1, None, 3, 2**60] * (N // 4), dtype="Int64"),
        "day": pd.to_datetime(["2024-05-01", None] * (N // 2)),
        "true": np.array([True, None, False, True] * (N // 4), dtype=object),
    }
    return pd.DataFrame(columns, index=[f"cell{n // 2}" for n in i])


def of_layer(**parts):
    """Rows that no file has, with names that come twice."""
    X = numbers()
    return Dataset.from_rows(
        name="layer", X=X, obs=obs(), var_names="abcd", space="X", **parts
    )


def table(folder, **options):
    frame = pd.DataFrame(numbers(), columns=list("abcd"))
    frame.loc[[3, 50], "b"] = np.nan
    frame["e"] = frame["a"] / 9
    frame.to_csv(folder / "cells.csv", index=False)
    return finish(load(folder / "cells.csv", missing="drop", **options))


def genes():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.5, 2, (1, 200)), (N, 200)).astype(np.float32)
    X[:, 0], X[5, 0] = 1, 900
    names = pd.DataFrame(index=["MT-CO1", *(f"g{i}" for i in range(199))])
    cells = pd.DataFrame(index=[f"c{i}" for i in range(N)])
    return anndata.AnnData(sp.csr_matrix(X), cells, names)


LIMITS = Recipe(min_genes=20, max_mito=30.0, n_top_genes=50, n_comps=5)


def counts(folder):
    adata = genes()
    adata.obsm["X_pca"] = numbers()
    adata.write_h5ad(folder / "cells.h5ad")
    return folder / "cells.h5ad"


def recipe(folder):
    dataset = finish(load(counts(folder), space="X", recipe=LIMITS))
    assert len(dataset.obs) == N - 1
    return dataset


def recipe_alone(folder):
    """Nobody chose X, and the file of the map has components since."""
    genes().write_h5ad(folder / "cells.h5ad")
    return finish(load(folder / "cells.h5ad", recipe=LIMITS))


def table_of_counts(folder):
    genes().to_df().to_csv(folder / "cells.csv")
    dataset = finish(load(folder / "cells.csv", recipe=LIMITS))
    assert len(dataset.obs) == N - 1
    return dataset


def of_anndata(adata, **options):
    """The table of a layer, which no file has, called like a sample."""
    table = SpatialTable(adata, None, "")
    source = AnnDataSource(table, "digits")
    return finish(source.read(ReadOptions(**options))).dataset


def layer_of_genes(folder):
    adata = genes()[:, np.random.default_rng(0).permutation(200)].copy()
    assert not adata.X.has_sorted_indices
    adata.obs["kind"] = pd.Categorical(["T", "B"] * (N // 2))
    adata.uns["kind_colors"] = np.array(["#ff0000", "#00ff00"])
    adata.obsm["X_pca"] = numbers()
    adata.obsm["X_pca"][7] = np.nan
    dataset = of_anndata(adata)
    assert len(dataset.obs) == N - 1
    return dataset


def layer_of_counts(folder):
    return of_anndata(genes(), recipe=LIMITS)


def layer_of_sparse_rows(folder):
    return of_anndata(genes(), space="X")


def layer_with_batches(folder):
    adata = genes()
    adata.obs["batch"] = pd.Categorical(["a", "b"] * (N // 2))
    adata.obsm["X_pca"] = numbers()
    return of_anndata(adata, batch_key="batch")


def joined(folder):
    labels = np.kron(np.arange(1, N).reshape(-1, 1), np.ones((3, 3), int))
    frame = pd.DataFrame(numbers(), columns=list("abcd"))
    frame["label"] = np.arange(N)[::-1]  # the last is about the background
    frame.to_csv(folder / "cells.csv", index=False)
    request = JoinRequest("cells", labels, is_guess=True)
    return finish(FileSource(folder / "cells.csv", request).read(ReadOptions())).dataset


def measured(folder):
    objects = Objects(np.arange(N) + 3, np.arange(4 * N).reshape(N, 4), np.arange(N))
    values = numbers() * 7
    return of_layer(
        source_objects=objects,
        kept=np.arange(N) != 5,
        profile=values,
        profile_names=["area", "length", "mean", "sum"],
    )


def names_and_looks(desk, session):
    session.clusters.set_n_clusters(5)
    one, two, *_ = session.clusters.clusters
    session.clusters.rename(one.id, "T cells")
    session.clusters.recolor(two.id, "#00ff00")
    session.clusters.set_note(two.id, "look\nagain")
    session.clusters.make_group(np.arange(9), "doublets")
    session.clusters.set_n_clusters(4)
    session.selection.select_points(np.array([1, 5, 30]))
    session.look.show_names = False
    session.look.color_by, session.look.limits = "a", (-2.5, 4.0)
    session.settings.n_neighbors = 9
    maps, here = desk.maps, desk.maps.current
    camera = {"zoom": 2.5, "center": [0, 1.5]}
    maps.view = lambda: {"camera": camera} if maps.current == here else {}


def pinned_and_branched(desk, session):
    def steer():
        session.settings.repulsion = 400.0
        session.hand.hold_points(np.arange(20))

    play(session, at=0, then=steer)
    session.settings.repulsion = 200.0
    play(session, session.continue_run())
    session.settings.random_state = 5
    play(session)
    session.timeline.rename_mark(session.timeline.marks[1].number, "the one to show")
    session.show_mark(session.timeline.marks[2].number)


def in_space(desk, session):
    session.settings.n_components = 3
    play(session)


def split(desk, session):
    session.look.split_by = "well"


def taught(desk, session):
    for name, at in (("one", 0), ("two", 40)):
        session.clusters.make_group(np.arange(at, at + 6), name)
    dataset, said = session.dataset, session.clusters.state.annotation
    examples = learned_classes.choose_example_rows(dataset, said)
    learned = finish(learned_classes.learn_from_examples(dataset, examples))
    session.add_columns(learned_classes.add_class_columns, "taught", learned, examples)


def predicted_and_placed(desk, session):
    n = len(session.dataset.obs)
    figures = [np.linspace(0, 1, n, dtype=np.float32) for _ in range(3)]
    codes = np.arange(n, dtype=np.int32) % 3 - 1
    how = AddedColumns(kind="predicted", reference="ref.h5ad", label="kind")
    labels = pd.Categorical.from_codes(codes, ["A", "B"])
    session.add_columns(
        with_predicted_labels, PredictedLabels(how, labels, *figures, codes == 0)
    )
    places = session.snapshot.embedding
    on = PlacedOn("ref.h5ad", places, places)
    session.placed_on = on


def looked_at(desk, session):
    n = len(session.dataset.obs)
    inside = np.arange(n) < 20
    session.comparisons = (
        ShownComparison(title="a", inside=inside, outside=None, method="t-test"),
    )
    session.add_columns(Dataset.with_map_column, "Stability", np.linspace(0, 1, n))


def child(desk, session):
    desk.maps.open_child_map(np.arange(len(session.dataset.obs)) < 40, "part")
    session.settings.n_neighbors = 5
    play(session)
    names_and_looks(desk, session)


def scored(desk, session):
    genes = GeneSet("T cells", tuple(session.dataset.profile_names[:3]))
    session.add_columns(
        with_score_column, genes, score_genes(session.dataset, genes)[0]
    )


def neighbours(folder):
    cells = anndata.AnnData(obsm={"X_pca": numbers()})
    cells.obsp["distances"] = kneighbors_graph(numbers(), 9, mode="distance")
    cells.write_h5ad(folder / "cells.h5ad")
    return finish(load(folder / "cells.h5ad", space="distances"))


SCENARIOS = {
    "table, gaps left out": (table, names_and_looks),
    "table, columns": (lambda at: table(at, columns=["a", "d"]), child),
    "table": (table, looked_at),
    "raw counts": (recipe, scored),
    "raw counts, part": (recipe, child),
    "raw counts alone": (recipe_alone, child),
    "table of counts": (table_of_counts, names_and_looks),
    "layer of genes": (layer_of_genes, looked_at),
    "layer of counts": (layer_of_counts, names_and_looks),
    "layer of sparse rows": (layer_of_sparse_rows, child),
    "layer with batches": (layer_with_batches, looked_at),
    "PCA given": (lambda at: finish(load(counts(at))), taught),
    "joined with labels": (joined, names_and_looks),
    "objects, plate, texts": (measured, child),
    "every kind of column": (lambda at: of_layer(), split),
    "pinned": (lambda at: of_layer(), pinned_and_branched),
    "in space": (lambda at: of_layer(), in_space),
    "taught": (lambda at: of_layer(), taught),
    "predicted": (lambda at: of_layer(), predicted_and_placed),
    "looked at": (lambda at: of_layer(), looked_at),
    "neighbours given": (neighbours, names_and_looks),
    "sample": (lambda at: samples.digits(), looked_at),
}
AGAIN = {"known"}
"""What was worked out, which is not saved."""
ELSEWHERE = {"images"}


def assert_same(one, other, place="map", omit=frozenset()):
    """Compare any two values of a session, all that is in them."""
    if isinstance(one, pd.DataFrame):
        how = {"check_index_type": False, "check_column_type": one.shape[1] > 0}
        pd.testing.assert_frame_equal(one, other, **how, obj=place)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(other, one, err_msg=place)
        assert one.dtype == other.dtype or one.dtype == object, place
    elif isinstance(one, pd.Index):
        assert list(one) == list(other), place
    elif sp.issparse(one):
        assert_same(one.toarray(), other.toarray(), place)
    elif isinstance(one, LandmarkMerge):
        assert_same(one.graph, other.graph, place)
        assert_same(one.tree, other.tree, place)
    elif isinstance(one, Dataset):
        for part in ("X", "profile", "second_X"):
            values = (getattr(each, part) for each in (one, other))
            assert_same(*values, f"{place}.{part}")
        assert_same_fields(one, other, place, {*omit, "matrices", "matrix_rows"})
    elif is_dataclass(one):
        assert_same_fields(one, other, place, omit)
    elif isinstance(one, Mapping):
        assert set(one) == set(other), place
        for key in one:
            assert_same(one[key], other[key], f"{place}.{key}", omit)
    elif isinstance(one, list | tuple) and not isinstance(one, str):
        assert len(one) == len(other), place
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{place}[{i}]", omit)
    else:
        assert one == other or one is other or one != one, place


def assert_same_fields(one, other, place, omit):
    if getattr(one, "source", True) is None:  # no file is read again
        omit = {*omit, "row_hashes"}
    for part in fields(one):
        if part.name not in AGAIN | ELSEWHERE | omit:
            values = (getattr(each, part.name) for each in (one, other))
            assert_same(*values, f"{place}.{part.name}", omit)


def assert_same_maps(desk, path):
    again = Desk.opened(path)
    assert_same(desk.maps.to_saved_session().maps, again.maps.to_saved_session().maps)
    assert again.maps.current == desk.maps.current
    for place in again.maps.maps:
        for one in (desk, again):
            one.maps.open(place.key)
        shown, found = desk.book, again.book
        assert [c.name for c in shown.clusters] == [c.name for c in found.clusters]
        for one, other in zip(shown.clusters, found.clusters, strict=True):
            assert replace(one, id=0) == replace(other, id=0)
            rows_ = shown.clustering.rows_in_cluster(one.id)
            np.testing.assert_array_equal(
                found.clustering.rows_in_cluster(other.id), rows_
            )
    return again


def world(folder, name):
    make, act = SCENARIOS[name]
    desk = Desk(make(folder), **SHORT).play()
    act(desk, desk.session)
    return desk


NOT_IN_H5AD = {"name", "source", "read_options", "level_colors", "key", "parent"}
NOT_IN_H5AD |= {"row_hashes", "notes"}  # of other parts, and on what the file holds
NOT_IN_H5AD |= {"quality", "var_names"}  # components are called after their key of obsm
"""The file itself has the data, and no other map."""


def in_h5ad(desk, path):
    """Save the map on show for scanpy, and return what that reads."""
    content, _ = archive.pack_shown_map_for_h5ad(desk.maps.to_saved_session(), path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        result = replace(desk.session.to_result(), session=content)
        write_result(desk.session.dataset, result, path)
        return anndata.read_h5ad(path)


def assert_same_in_h5ad(desk, path):
    session, saved = desk.session, desk.maps.to_saved_session()
    dataset, adata = session.dataset, in_h5ad(desk, path)
    places = adata.obsm["X_embedding_game"][dataset.kept]
    np.testing.assert_array_equal(places, session.snapshot.embedding)
    obs = adata.obs[dataset.kept]
    names = session.clusters.clustering.names_by_point.tolist()
    assert obs["embedding_game_cluster"].tolist() == names
    for name in dataset.added_columns:
        assert obs[name].astype(str).tolist() == dataset.obs[name].astype(str).tolist()
    opened = Desk.opened(path)
    twice = in_h5ad(opened, path.with_name("twice.h5ad"))
    pd.testing.assert_frame_equal(twice.obs, adata.obs)
    path = opened.save(path.with_suffix(".zip"))
    (found,) = Desk.opened(path).maps.to_saved_session().maps
    one = saved[saved.current]
    tables = {part: getattr(found.dataset, part) for part in ("obs", "source_obs")}
    for part, read in tables.items():
        if read is not None:  # the file has what was found out, too
            tables[part] = read[list(getattr(one.dataset, part))]
    found = replace(found, dataset=replace(found.dataset, **tables))
    assert_same(one, found, omit=NOT_IN_H5AD)


@pytest.mark.parametrize("name", SCENARIOS)
def test_everything_survives(tmp_path, name, read_here):
    desk = world(tmp_path, name)
    again = assert_same_maps(desk, desk.save(tmp_path / "work.zip"))
    assert_same_in_h5ad(desk, tmp_path / "map.h5ad")
    Autosave(again.maps.to_saved_session).make_closing_job()()
    (path,) = find_recent_sessions()
    assert_same_maps(desk, path)
    # Without its data the map is there, and stays what it is when it is saved again.
    for source in tmp_path.glob("cells.*"):
        source.unlink()
        opened, troubles = archive.open_session(tmp_path / "work.zip")
        assert "is missing: put it back" in troubles[0]
        lost = Desk.restored(opened)
        lost.save(tmp_path / "again.zip")
        stored, kept = (
            archive.load_session(tmp_path / f"{name}.zip") for name in ("work", "again")
        )
        for one, other in zip(stored.maps, kept.maps, strict=True):
            assert_same(one.dataset.known[rows.ROWS], other.dataset.known[rows.ROWS])
            assert_same(one.snapshot, other.snapshot)
        with pytest.raises(DataError, match="are not loaded"):
            lost.session.begin()


@pytest.fixture(scope="module")
def steered(tmp_path_factory):
    """A map with a run that was steered, a branch and a new run."""
    folder = tmp_path_factory.mktemp("steered")
    return world(folder, "pinned").save(folder / "work.zip")


def test_every_mark_is_replayed_and_played_on(steered):
    session = Desk.opened(steered).session
    marks = session.timeline.marks
    some = [m for m in marks if m.record.warm_start or m.record.forced]
    for mark in (marks[-1], *some):
        assert is_same_layout(replay(session.dataset.X, mark.record), mark.snapshot)
    shown = session.timeline.current.number
    play(session, session.continue_run())
    assert session.timeline.newest.parent == shown
    assert len({id(mark.snapshot.neighbors) for mark in marks}) == 1  # shared


# The file of a map in other hands


def saved_as_h5ad(folder, name):
    """Save the map of a scenario for scanpy: return it, what scanpy reads, the file."""
    desk, path = world(folder, name), folder / "map.h5ad"
    return desk, in_h5ad(desk, path), path


def by_name(session):
    """Return what a person sees of each row, by its name."""
    table = pd.DataFrame(session.snapshot.embedding, session.dataset.obs.index)
    columns = {"cluster": session.clusters.clustering.names_by_point}
    return table.assign(**columns, X=list(map(bytes, session.dataset.X))).sort_index()


@pytest.mark.parametrize(
    "name", ["raw counts, part", "table", "table, gaps left out", "PCA given"]
)
def test_a_sorted_file_with_new_columns_is_matched_by_name(tmp_path, name, read_here):
    desk, adata, path = saved_as_h5ad(tmp_path, name)
    order = np.random.default_rng(0).permutation(adata.n_obs)
    adata.obs["leiden"] = pd.Categorical(adata.obs_names.str[-1])
    adata[order].write_h5ad(path)
    session = Desk.opened(path).session
    pd.testing.assert_frame_equal(by_name(session), by_name(desk.session))
    obs = session.dataset.obs
    assert (obs["leiden"] == obs.index.str[-1]).all()
    play(session, session.continue_run())
    assert session.snapshot.finished
    write_result(session.dataset, session.to_result(), tmp_path / "again.h5ad")
    obs = anndata.read_h5ad(tmp_path / "again.h5ad").obs
    assert (obs["leiden"] == obs.index.str[-1]).all()


def test_what_scanpy_has_added_to_the_file_of_a_map_is_not_replaced(
    tmp_path, read_here
):
    desk, adata, path = saved_as_h5ad(tmp_path, "table")
    in_h5ad(desk, path)
    adata.obs["cell_type"] = "T"
    adata.write_h5ad(path)
    with pytest.raises(DataError, match=r"obs\['cell_type'\], which"):
        in_h5ad(desk, path)
    adata.obsm["X_umap"] = adata.obsm["X_embedding_game"]
    adata.raw = adata
    adata.write_h5ad(path)
    for one in (desk, Desk.opened(path)):
        with pytest.raises(DataError, match=r"obsm\['X_umap'\]"):
            in_h5ad(one, path)
    assert "X_umap" in anndata.read_h5ad(path).obsm


def test_a_map_of_another_maps_file_and_its_part_are_read_once(
    tmp_path, read_here, monkeypatch
):
    _, adata, path = saved_as_h5ad(tmp_path, "PCA given")
    desk, paths = Desk.opened(path), []
    child(desk, desk.session)
    desk.save(tmp_path / "work.zip")
    order = np.random.default_rng(0).permutation(adata.n_obs)
    adata[order].write_h5ad(path)

    def read_once(path, read, *values, here=rows.read_in_process):
        paths.append(path)
        return (yield from here(path, read, *values))

    monkeypatch.setattr(rows, "read_in_process", read_once)
    assert_same_maps(desk, tmp_path / "work.zip")
    assert paths == [path]


def test_a_file_keeps_the_components_it_came_with(tmp_path, read_here):
    _, adata, path = saved_as_h5ad(tmp_path, "raw counts")
    keys = {"X_pca", "X_pca_embedding_game", "X_embedding_game"}
    for name in ("again", "and_again"):
        assert set(adata.obsm) == keys
        np.testing.assert_array_equal(adata.obsm["X_pca"], numbers())
        assert "X_pca_embedding_game" in adata.uns[KEY]["projection"]["space"]
        desk, path = Desk.opened(path), tmp_path / f"{name}.h5ad"
        adata = in_h5ad(desk, path)


@pytest.mark.parametrize("step", [1, -1])
def test_rows_whose_names_were_made_unique_are_the_same(tmp_path, read_here, step):
    desk, adata, path = saved_as_h5ad(tmp_path, "every kind of column")
    adata.obs_names_make_unique()
    adata.obs["name"] = names = adata.obs_names.astype(str)
    adata[::step].write_h5ad(path)
    session, shown = Desk.opened(path).session, desk.session.snapshot
    np.testing.assert_array_equal(session.snapshot.embedding, shown.embedding)
    kept = session.dataset.kept
    assert session.dataset.obs["name"].astype(str).tolist() == [*names[kept]]


def test_other_rows_or_numbers_are_opened_as_data(tmp_path, read_here):
    _, adata, _ = saved_as_h5ad(tmp_path, "PCA given")
    changed = adata.copy()
    changed.obsm["X_pca"][0] = 7
    _, table, _ = saved_as_h5ad(tmp_path, "table, gaps left out")
    for one in (adata[:50], changed, table[4:50]):
        one.write_h5ad(tmp_path / "other.h5ad")
        opened, (trouble,) = archive.open_session(tmp_path / "other.h5ad")
        assert "It was opened as data" in trouble
        assert len(opened.maps[0].dataset.obs) == one.n_obs
        assert opened.maps[0].snapshot is None


def test_other_rows_under_the_same_names_are_opened_as_data(tmp_path, read_here):
    _, adata, path = saved_as_h5ad(tmp_path, "table")
    names, order = adata.obs_names, np.random.default_rng(0).permutation(adata.n_obs)
    adata = adata[order].copy()
    adata.obs_names, adata.obs["kind"] = names, "T"
    adata.write_h5ad(path)
    opened, (trouble,) = archive.open_session(path)
    assert trouble.startswith(
        "map.h5ad has changed since it was read: its rows stand in another order, "
        "which their names do not show. It was opened as data: "
    )
    assert opened.maps[0].snapshot is None


def test_names_are_categories_with_colors_as_scanpy_plots_them(tmp_path, read_here):
    desk, adata, _ = saved_as_h5ad(tmp_path, "joined with labels")
    said = adata.obs["embedding_game_annotation"]
    assert {"T cells", "doublets"} < {*said.cat.categories}
    colors = adata.uns["embedding_game_annotation_colors"]
    assert len(colors) == len(said.cat.categories)
    known, names = said[desk.session.dataset.kept], desk.book.clustering.names_by_point
    assert (known.dropna() == np.asarray(names)[known.notna()]).all()


# Data that are elsewhere, changed or large


def test_a_layer_keeps_all_its_rows_and_colors(tmp_path, read_here):
    path = world(tmp_path, "layer of genes").save(tmp_path / "work.zip")
    desk = Desk.opened(path)
    assert (desk.session.dataset.column_noun, desk.session.dataset.row_noun) == (
        "gene",
        "cell",
    )
    adata = in_h5ad(desk, tmp_path / "map.h5ad")
    assert adata.obs_names[7] == "c7"
    assert adata.obs["kind"].tolist() == ["T", "B"] * (N // 2)
    assert adata.uns["kind_colors"].tolist() == ["#ff0000", "#00ff00"]
    assert adata.X[7].nnz == 0


def test_ranges_and_whole_numbers_with_gaps_come_back(tmp_path, read_here):
    made = {
        "range": pd.cut(np.arange(N), 4),
        "whole": np.array([1, None, 3, 2**60 + 1] * (N // 4), dtype=object),
    }
    dataset = of_layer()
    table = dataset.obs.assign(**made)
    path = Desk(replace(dataset, obs=table)).save(tmp_path / "work.zip")
    found = Desk.opened(path).session.dataset.obs
    assert found["range"].astype(str).tolist() == table["range"].astype(str).tolist()
    assert found["range"].cat.ordered
    assert found["whole"].dropna().tolist() == table["whole"].dropna().tolist()


@pytest.mark.parametrize("stores", [np.asarray, sp.csr_matrix])
def test_genes_too_large_for_a_session_are_left_out_and_told(
    tmp_path, monkeypatch, stores
):
    monkeypatch.setattr(rows, "MAX_X", 4 * 4 * N)
    adata = anndata.AnnData(stores(np.ones((N, 9), np.float32)))
    adata.obsm["X_pca"] = numbers()
    path = Desk(of_anndata(adata)).save(tmp_path / "work.zip")
    for _ in range(2):
        desk = Desk.opened(path)
        dataset = desk.session.dataset
        assert "too large for a session file" in dataset.notes[0]
        assert dataset.profile_names == ()
        assert dataset.column_noun == "column"
        np.testing.assert_array_equal(dataset.X, numbers())
        desk.save(path)


def test_data_beside_the_session_are_found_and_changed_ones_refused(tmp_path):
    (tmp_path / "away").mkdir()
    world(tmp_path / "away", "table, gaps left out").save(tmp_path / "away/work.zip")
    (tmp_path / "away").rename(tmp_path / "here")
    with pytest.raises(DataError, match="rename the file"):
        finish(FileSource(tmp_path / "caf\udce9.csv").read(ReadOptions()))
    path = tmp_path / "here" / "work.zip"
    (saved,) = archive.load_session(path).maps
    known = saved.dataset.known
    assert known[rows.ROWS].prepared is None  # the file has the numbers
    for where in (known[rows.ROWS].path, r"C:\data\cells.csv"):  # of another system
        known[rows.ROWS] = replace(known[rows.ROWS], path=where)
        found = finish(archive.read_map_data(saved, path.parent, {}))
        assert found.dataset.source.parent == path.parent
    wide = anndata.AnnData(numbers(), obsm={"X_lda": numbers()[:, :3]})
    wide.write_h5ad(tmp_path / "here/cells.h5ad")
    for name, how in (
        ("cells.csv", ReadOptions(columns=["b", "d"], missing="drop")),
        ("cells.h5ad", ReadOptions(space="X_lda")),
    ):  # as if they had been taken by default
        once = finish(FileSource(tmp_path / "here" / name).read(how)).dataset
        space = {"cells.csv": "columns of cells.csv"}.get(name, once.space)
        usual = replace(how, space=None, columns=None)
        once = replace(once, space=space, read_options=usual)
        Desk(once, **SHORT).play().save(tmp_path / "once.zip")
        again = Desk.opened(tmp_path / "once.zip").session.dataset
        assert again.var_names == once.var_names
    with (path.parent / "cells.csv").open("a") as file:
        file.write("1,2,3,4,5\n")
    _, (trouble,) = archive.open_session(path)
    assert "gives other numbers" in trouble
    assert "(it now has 81 rows instead of 80)" in trouble
    desk = Desk.restored(archive.load_session(path))
    assert desk.session.snapshot.finished
    desk.book.rename(desk.book.clusters[0].id, "still editable")


def test_a_file_that_was_sorted_has_the_same_order_in_all_maps(tmp_path, read_here):
    path, gaps = tmp_path / "cells.h5ad", numbers()
    gaps[[3, 9, 30]] = np.nan
    adata = anndata.AnnData(numbers(), obsm={"X_b": gaps})
    adata.write_h5ad(path)
    desk = Desk(worlds.read(path, space="X"), **SHORT).play()
    desk.book.make_group(np.array([3]), "rare")
    desk.maps.open_new_reading(worlds.read(path, space="X_b", missing="drop"))
    desk.save(tmp_path / "work.zip")
    adata[::-1].write_h5ad(path)
    again = Desk.opened(tmp_path / "work.zip")
    again.maps.open_new_reading(worlds.read(path, space="X"))
    assert again.maps.current == ""


def test_counts_may_be_sorted_and_not_changed_though_components_are_kept(tmp_path):
    desk, path = world(tmp_path, "raw counts"), tmp_path / "work.zip"
    known = desk.session.dataset
    desk.maps.open_new_reading(
        known.with_matrices(X=known.X * np.float32(1.001))
    )  # digits of another
    desk.save(path)  # computer
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad")
    adata[::-1].write_h5ad(tmp_path / "cells.h5ad")
    again = Desk.opened(path)
    for one in (desk, again):
        one.maps.open("")
    pd.testing.assert_frame_equal(by_name(again.session), by_name(desk.session))
    changed = adata.X.toarray()
    changed[9] = changed[8]
    adata.X = sp.csr_matrix(changed)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    _, (trouble,) = archive.open_session(path)
    assert "gives other numbers" in trouble


# Files that are damaged, or lie about what they hold


def test_undo_and_redo_go_on_in_a_file_that_is_opened(tmp_path, monkeypatch):
    desk, path = world(tmp_path, "sample"), tmp_path / "work.zip"
    clusters = desk.session.clusters
    for first, name in enumerate(("one", "two", "three", "four")):
        clusters.make_group(np.arange(first, 9), name)
    clusters.undo()
    again = Desk.opened(desk.save(path)).session.clusters
    for step in ("undo", "undo", "redo", "redo", "redo"):
        for one in (clusters, again):
            getattr(one, step)()
        assert (
            again.clustering.names_by_point.tolist()
            == clusters.clustering.names_by_point.tolist()
        )

    room = 2 * clusters.labels.nbytes  # beside what is on show
    monkeypatch.setattr(archive, "MAX_UNDO_BYTES", room)
    told = archive.save_session(desk.maps.to_saved_session(), path)
    assert told == (
        "Not in the file: 2 steps of undo and redo, as the farthest are left out "
        "beyond 0 MB."
    )
    again = Desk.opened(path).session.clusters
    for _ in range(3):
        again.undo()
    assert {c.name for c in again.clusters if c.is_named} == {"one", "two"}

    assert b"four" in path.read_bytes()
    clusters.undo()
    told = archive.save_session(desk.maps.to_saved_session(), path, is_shared=True)
    assert told.startswith("Not in the file: 4 steps of undo and redo, which may")
    assert b"four" not in path.read_bytes()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    desk = world(folder, "raw counts")
    for act in (names_and_looks, pinned_and_branched, predicted_and_placed):
        act(desk, desk.session)
    path = desk.save(folder / "work.zip")
    return path, archive.load_session(path)


def rewritten(source, target, change):
    """Write a file again with other parts: JSON as values, arrays as they are."""
    with np.load(source) as file:
        parts = dict(file)
    for name in ("session", "maps"):
        parts[name] = json.loads(parts[name].tobytes())
    change(parts)
    for name in ("session", "maps"):
        text = json.dumps(parts[name]).encode()
        parts[name] = np.frombuffer(text, np.uint8)
    with target.open("wb") as file:
        np.savez(file, **parts)
    return target


def at(place, path):
    for part in path:
        place = place[int(part) if part.isdigit() else part]
    return place


def put(path, value):
    def change(parts):
        *parents, last = path.split(".")
        place = at(parts, parents)
        place[int(last) if last.isdigit() else last] = value

    return change


def of_array(path, alter):
    def change(parts):
        number = at(parts, path.split("."))["array"]
        parts["changed"] = alter(parts[number].copy())
        put(f"{path}.array", "changed")(parts)

    return change


def first(value):
    def alter(found):
        found.flat[0] = value
        return found

    return alter


def strayed(end):
    """Return what lets rows of a sparse matrix lie far outside its arrays."""

    def alter(indptr):
        indptr[1:] = 10**9
        indptr[-1] = end
        return indptr

    return alter


def shorter(found):
    return found[1:]


DAMAGES = [
    ("session.version", 99, "another version"),
    ("session.format", "a picture", "Invalid enum value 'a picture'"),
    ("session.maps", [], "holds no map"),
    ("session.current", "elsewhere", "that was shown is missing"),
    ("maps", {}, "Expected `array`"),
    ("maps.0.dataset.names", [], "its rows"),
    ("maps.0.parent", "x", "its maps"),
    ("maps.0.record.n_iter", -1, "out of order"),
    ("maps.0.snapshot.energy", None, r"Expected `float`, got `null` .*energy"),
    ("maps.0.snapshot.embedding", {"array": "999"}, "999.npy is missing"),
    ("maps.0.snapshot.labels", None, "Expected `object`"),
    ("maps.0.settings.method", "zzz", "updated: .*'zzz'"),
    ("maps.0.look.color_by", 3, r"Expected `str`, got `int` .*look.color_by"),
    ("maps.0.timeline.marks.1.settings.repulsion", -1.0, "repulsion"),
    ("maps.0.clusters.n_clusters", -1, "its clusters"),
    ("maps.0.clusters.own.groups", {"5": {"name": "x"}}, "its annotation"),
]
OF_ARRAYS = [
    ("snapshot.embedding", first(np.nan)),
    ("snapshot.embedding", lambda a: a.astype(str)),
    ("snapshot.labels", first(10**6)),
    ("snapshot.labels", first(-1)),
    ("snapshot.stretch", shorter),
    ("snapshot.isolation", first(-1)),
    ("snapshot.neighbors", first(10**6)),
    ("dataset.kept", first(False)),
    ("dataset.prepared.projection.loadings", lambda a: a[:, 1:]),
    ("merging.graph.indices", first(10**6)),
    *(("merging.graph.indptr", strayed(end)) for end in (-5, -1, 0)),
    ("merging.tree.leader", first(10**6)),
    ("merging.tree.born", lambda a: np.full_like(a, 5)),
    ("merging.tree.levels", first(-1)),
]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [(put(path, value), sentence) for path, value, sentence in DAMAGES]
    + [(of_array(f"maps.0.{path}", alter), "damaged") for path, alter in OF_ARRAYS],
)
def test_what_does_not_fit_is_told_in_a_sentence(saved, tmp_path, change, sentence):
    path = rewritten(saved[0], tmp_path / "x.zip", change)
    with pytest.raises(DataError, match=rf"^x\.zip .*{sentence}"):
        archive.load_session(path)


@pytest.mark.parametrize(
    ("kind", "part"),
    [("layer of sparse rows", "sparse_X"), ("layer of genes", "genes")],
)
def test_sparse_numbers_that_point_outside_are_refused(tmp_path, kind, part):
    path = world(tmp_path, kind).save(tmp_path / "work.zip")
    for end in (-5, -1, 0):
        change = of_array(f"maps.0.dataset.{part}.indptr", strayed(end))
        rewritten(path, tmp_path / "x.zip", change)
        with pytest.raises(DataError, match=r"^x\.zip is damaged"):
            archive.load_session(tmp_path / "x.zip")


@pytest.mark.parametrize(
    "column", [{}, {"empty": [None] * 100_000}], ids=["none", "empty"]
)
def test_tables_of_many_rows_without_values_are_read_again(tmp_path, column):
    table, path = pd.DataFrame(column, index=range(100_000)), tmp_path / "x.zip"
    with path.open("wb") as file:
        codec.write_parts(file, {"table": table})
    found = codec.read_part(path, "table", pd.DataFrame)
    assert found.shape == table.shape
    assert found.isna().all(axis=None)


def feather(table, **options):
    """Return what stores other columns in place of those that were worked out."""
    content = io.BytesIO()
    pyarrow.feather.write_feather(table, content, **options)

    def change(parts):
        number = at(parts, ["maps", "0", "dataset", "worked_out"])["array"]
        parts[number] = np.frombuffer(content.getvalue(), np.uint8)

    return change


def many(values, n):
    return pa.chunked_array([values] * n)


ZEROS, LETTERS = pa.array(np.zeros(1_000_000)), pa.array(["x"] * 1_000)
TABLES = {
    "packed": (pa.table({"a": many(ZEROS, 20)}), {"compression": "zstd"}),
    "packed levels": (
        pa.table({"a": pa.DictionaryArray.from_arrays(np.zeros(80, int), LETTERS)}),
        {"compression": "lz4"},
    ),
    "gaps without end": (pa.table({"a": many(pa.nulls(1_000_000), 30)}), {}),
    "views of one text": (
        pa.table({"a": pa.array(["x" * 1_000] * 80, pa.string_view())}),
        {},
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_in_a_session_unpacks_to_no_more_than_it_is(saved, tmp_path, kind):
    table, options = TABLES[kind]
    change = feather(table, **{"compression": "uncompressed", **options})
    rewritten(saved[0], tmp_path / "x.zip", change)
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match=r"x\.zip is damaged \(a table in it"):
        archive.load_session(tmp_path / "x.zip")
    assert pa.total_allocated_bytes() <= before


def test_the_same_numbers_in_another_shape_have_another_fingerprint():
    numbers = np.arange(200, dtype=np.float32)
    shapes = ((40, 5), (20, 10))
    one, two = (rows.hash_map_numbers(worlds.rows(numbers.reshape(s))) for s in shapes)
    assert one != two
    assert one == rows.hash_map_numbers(worlds.rows(numbers.reshape(40, 5)))


def test_a_name_in_a_session_has_no_control_characters(saved, tmp_path):
    def change(parts):
        for group in at(parts, ["maps", "0", "clusters", "own", "groups"]).values():
            group["name"] = f"{group['name']}\0\x1bcells"

    path = rewritten(saved[0], saved[0].with_name("x.zip"), change)
    desk = Desk.opened(path)
    names = [group.name for group in desk.book.state.annotation.groups.values()]
    assert names
    assert all(name.endswith(" cells") and name.isprintable() for name in names)
    assert set(names) < set(in_h5ad(desk, tmp_path / "x.h5ad").obs[f"{KEY}_cluster"])


SERVERS = [r"\\evil.org\share\cells.csv", "//evil.org/share/cells.csv"]
SERVERS += [r"\\?\UNC\evil.org\share\cells.csv"]


@pytest.mark.parametrize("place", SERVERS)
def test_no_server_is_asked_for_the_data_of_a_session(tmp_path, monkeypatch, place):
    path = world(tmp_path, "table").save(tmp_path / "work.zip")
    rewritten(path, tmp_path / "x.zip", put("maps.0.dataset.path", place))
    stat, asked = os.stat, []

    def note(place, *args, **options):
        asked.append(str(place))
        return stat(place, *args, **options)

    monkeypatch.setattr(os, "stat", note)
    Desk.opened(tmp_path / "x.zip")  # it lies beside the session
    (tmp_path / "cells.csv").unlink()
    _, (trouble,) = archive.open_session(tmp_path / "x.zip")
    monkeypatch.undo()
    assert "another computer (evil.org)" in trouble
    assert not [one for one in asked if one.startswith(("//", r"\\"))]


def test_an_energy_beyond_all_numbers_does_not_keep_a_file_shut(saved, tmp_path):
    shown = saved[1].maps[0]
    far = replace(shown, snapshot=replace(shown.snapshot, energy=np.inf))
    archive.save_session(
        replace(saved[1], maps=(far, *saved[1].maps[1:])), tmp_path / "x.zip"
    )
    found = archive.load_session(tmp_path / "x.zip").maps[0].snapshot
    assert found.energy > 1e300
    assert is_same_layout(found, far.snapshot)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_damage_gives_a_sentence_or_the_same_map(saved, tmp_path, data):
    content = bytearray(saved[0].read_bytes())
    last = len(content) - 1
    list_of_parts = st.integers(last - 400, last)
    place = data.draw(st.integers(0, last) | list_of_parts)
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "damaged.zip"
    path.write_bytes(content)
    with suppress(DataError):
        assert_same(saved[1].maps, archive.load_session(path).maps)


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("code was run",))


def npy(text):
    text = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def objects():
    out = io.BytesIO()
    np.save(out, np.array([Evil()], object), allow_pickle=True)
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        objects(),
        pickle.dumps(Evil()),
        b"",
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000, 3), }"),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -3), }"),
        npy("__import__('os').abort()"),
        npy("{'descr': '<f4'"),
        b"\x93NUMPY\x01\x00\xff\xff",
    ],
)
@pytest.mark.parametrize("name", ["session", "0"])
def test_what_is_no_array_of_numbers_is_never_run(saved, tmp_path, content, name):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(saved[0]) as old, zipfile.ZipFile(path, "w") as new:
        for one in old.namelist():
            new.writestr(one, content if one == f"{name}.npy" else old.read(one))
    with pytest.raises(DataError, match=r"x\.zip is damaged"):
        archive.load_session(path)


def test_a_bomb_is_not_unpacked_and_other_files_are_told(tmp_path):
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("session.npy", bytes(10_000_000))
    with pytest.raises(DataError, match="may unpack to more"):
        archive.load_session(bomb)
    shutil.make_archive(str(tmp_path / "other"), "zip", tmp_path, "bomb.zip")
    for name, told in (("other.zip", "is no session"), ("gone.zip", "is not there")):
        with pytest.raises(DataError, match=told):
            archive.load_session(tmp_path / name)
    (tmp_path / "old.zip").write_bytes(b"x")
    with pytest.raises(DataError, match="could not be read as a session file"):
        archive.load_session(tmp_path / "old.zip")
