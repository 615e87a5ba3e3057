"""A parent of 40 rows of which row 7 of the source is left out, and its children."""

from dataclasses import replace

import numpy as np
import pytest
from psygnal import EmitLoopError

import worlds
from napari_embedding_game.data.dataset import AddedColumns, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.measure import measure_labels_in_stages
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file import rows as file_rows
from worlds import Desk

N_SOURCE = 41


def read(space="X", n_columns=5, drop=(7,), n=N_SOURCE):
    rng = np.random.default_rng(n_columns)
    kept = ~np.isin(np.arange(n), drop)
    X = rng.normal(size=(n, n_columns))
    return worlds.rows(X, name="cells", space=space, kept=kept)


def play(session):
    worlds.play(session)
    session.stop()


def back(tree):
    tree.open(tree.path[-2].key)


def names(session):
    return {c.name: c.size for c in session.clusters.clusters if c.is_named}


def rows_named(session, name):
    labels = session.clusters.clustering.names_by_point
    return session.dataset.obs.index[labels == name].tolist()


@pytest.fixture
def desk(engine):
    desk = Desk(read(), engine)
    play(desk.session)
    desk.book.rename(1, "lymphocytes")
    return desk


@pytest.fixture
def session(desk):
    return desk.session


@pytest.fixture
def tree(desk):
    return desk.maps


@pytest.fixture
def child(tree, session):
    """The map of cluster 1 and of 10 points more, played."""
    session.selection.select_clusters([1, 2])
    tree.open_child_map(session.selection.points, "lymphocytes")
    play(session)
    return tree.current


def test_there_and_back(tree, session, child):
    assert session.dataset.obs.index[0] == "11"
    assert len(session.dataset.obs) == 20
    assert [p.title for p in tree.path] == ["cells", "lymphocytes"]
    shown = session.snapshot
    back(tree)
    assert session.dataset.obs.shape[0] == 40
    assert names(session) == {"lymphocytes": 10}
    assert session.selection.clusters == (1, 2)
    assert tree.current == ""
    tree.open(child)
    np.testing.assert_array_equal(session.snapshot.embedding, shown.embedding)
    assert [(p.key, p.parent, len(p.dataset.obs)) for p in tree.maps] == [
        ("", None, 40),
        (child, "", 20),
    ]


def test_child_maps_share_the_numbers_of_their_root(desk, tmp_path):
    np.save(tmp_path / "cells.npy", np.random.default_rng(0).normal(size=(60, 40)))
    desk.session.load(worlds.read(tmp_path / "cells.npy"))
    root = desk.session.dataset
    desk.maps.open_child_map(np.arange(0, 60, 2), "half")
    desk.maps.open_child_map(np.arange(5, 25), "part of it")
    worlds.play(desk.session)
    desk.session.stop()
    back(desk.maps)
    again = Desk.opened(desk.save(tmp_path / "work.zip"))
    for maps in (desk.maps.maps, again.maps.maps):
        assert len({id(one.dataset.matrices) for one in maps}) == 1
        for one, rows in zip(
            maps, (slice(None), slice(0, 60, 2), slice(10, 50, 2)), strict=True
        ):
            np.testing.assert_array_equal(one.dataset.X, root.X[rows])
            np.testing.assert_array_equal(one.dataset.profile, root.profile[rows])
            copied = replace(one.dataset.with_own_matrices(), notes=())
            hashes = map(file_rows.hash_map_numbers, (one.dataset, copied))
            assert len({*hashes}) == 1


def test_a_session_keeps_no_numbers_that_none_of_its_maps_shows(desk, tmp_path):
    """The root map is of another space than the map of a part."""
    adata = worlds.annotated(30, one=4, two=3)
    path = worlds.write_adata(adata, tmp_path / "cells.h5ad")
    desk.session.load(worlds.read(path, space="obsm['one']"))
    worlds.play(desk.session)
    desk.maps.open_child_map(np.arange(12), "part")
    worlds.play(desk.session)
    other = worlds.read(path, space="obsm['two']")
    desk.maps.open_new_reading(other)
    again = Desk.opened(desk.save(tmp_path / "work.zip"))
    for maps in (desk.maps, again.maps):
        parts = [one.dataset for one in maps.maps]
        assert [one.matrices.X.shape for one in parts] == [(30, 4), (30, 4), (12, 3)]
        np.testing.assert_array_equal(parts[2].X, other.X[:12])


@pytest.fixture
def elsewhere(engine):
    """All maps of another session, with settings of its own."""
    other = Desk(read(n=60), engine, n_neighbors=77)
    other.session.look.color_by = "Pressure"
    return other.maps.to_saved_session()


def test_what_cannot_be_shown_leaves_all_as_it_was(tree, session, child, elsewhere):
    session.selection.select_cluster(1)
    session.clusters.rename(1, "CD4")
    session.look.color_by, session.look.limits = "3", (0.5, 2.0)
    session.settings.repulsion = 123.0
    before, places, path = session.to_saved_map(), tree.maps, tree.path

    @session.restored.connect
    def refuse(saved):
        if saved.settings.n_neighbors == 77:
            raise ValueError("no place for 77")

    with pytest.raises(EmitLoopError, match="no place for 77"):
        tree.restore(elsewhere)
    assert [one.key for one in tree.maps] == [one.key for one in places]
    assert len(tree.path) == len(path)
    after = session.to_saved_map()
    for name in ("dataset", "settings", "record", "snapshot", "look", "selected"):
        assert getattr(after, name) == getattr(before, name), name
    assert names(session) == {"CD4": 5}
    assert session.clusters.undo_label == "Undo rename of 1"
    session.restored.disconnect(refuse)
    tree.restore(elsewhere)
    assert (len(tree.maps), session.settings.n_neighbors) == (1, 77)
    assert session.look.limits is None


def test_names_given_in_a_child_show_in_its_parent(tree, session, child):
    session.clusters.rename(0, "CD4")
    session.clusters.rename(3, "CD8")
    cd8 = rows_named(session, "CD8")
    back(tree)
    assert names(session) == {"lymphocytes": 5, "CD4": 5, "CD8": 5}
    assert rows_named(session, "CD8") == cd8
    assert session.clusters.undo_label == "Undo rename of 1"  # what was done here
    session.clusters.undo()
    assert names(session) == {"CD4": 5, "CD8": 5}
    session.clusters.redo()
    tree.open(child)
    session.clusters.make_group(np.arange(20), "both")
    back(tree)
    assert session.selection.is_empty  # the clusters that were selected are gone


def test_a_child_begins_with_the_names_of_its_parent_as_a_column(tree, session, child):
    column = session.dataset.obs["annotation"]
    counts = column.value_counts(dropna=False).to_dict()
    assert counts == {"lymphocytes": 10, np.nan: 10}
    assert names(session) == {}  # its own clusters are on show
    session.clusters.rename(session.clusters.labels[12], "CD4")
    session.look.color_by = "annotation"
    tree.open_child_map(np.arange(20), "all of them again")
    given = session.dataset.obs["annotation"]
    is_cd4 = (given == "CD4").to_numpy()
    assert is_cd4.sum() == 5
    np.testing.assert_array_equal(given[~is_cd4].isna(), column[~is_cd4].isna())
    session.clusters.annotate_by_column(given, {})
    assert names(session) == {"lymphocytes": (given == "lymphocytes").sum(), "CD4": 5}
    back(tree)
    assert session.look.color_by == "annotation"


def test_what_is_renamed_and_undone_in_a_child_follows(tree, session, child):
    session.clusters.rename(0, "CD4")
    back(tree)
    tree.open(child)
    assert session.clusters.undo_label == "Undo rename of 0"
    session.clusters.rename(0, "CD4 memory")
    back(tree)
    assert names(session) == {"lymphocytes": 5, "CD4 memory": 5}
    tree.open(child)
    session.clusters.undo()
    session.clusters.undo()
    back(tree)
    assert names(session) == {"lymphocytes": 10}


@pytest.mark.parametrize("from_file", [False, True])
def test_what_is_done_above_holds_unless_it_changes_below(
    tree, session, child, from_file
):
    session.clusters.rename(0, "CD4")
    session.clusters.rename(3, "CD8")
    back(tree)
    ids = {c.name: c.id for c in session.clusters.clusters}
    session.clusters.rename(ids["CD4"], "CD4 memory")
    session.clusters.rename(ids["CD8"], "killers")
    if from_file:
        other = Desk.restored(tree.to_saved_session())
        tree, session = other.maps, other.session
    tree.open(child)
    session.clusters.set_note(3, "a second look")
    session.clusters.make_group(np.arange(2), "naive")  # of CD4
    back(tree)
    counts = {"lymphocytes": 5, "CD4 memory": 3, "CD8": 5, "naive": 2}
    assert names(session) == counts


@pytest.mark.parametrize("opened", ["", "part1"])
def test_all_maps_of_the_same_numbers_take_over_what_else_was_read(
    tree, session, child, opened
):
    """Objects measured again in other units, of labels that were edited."""
    tree.open(opened)
    shown, path = session.snapshot, [one.key for one in tree.path]
    session.add_columns(
        Dataset.with_map_column, "score", np.arange(len(session.dataset.obs))
    )
    area = np.arange(41.0)[:, None]
    new = read()
    new = new.with_matrices(
        profile=area[new.kept],
        profile_names=("area",),
        obs=new.obs.assign(dose=new.obs.index.astype(float), score="of the file"),
        source_objects=Objects(
            np.arange(41) + 1, np.zeros((41, 4), int), np.ones(41, int)
        ),
    )
    tree.open_new_reading(new)
    assert session.snapshot is shown
    assert [one.key for one in tree.path] == path
    assert session.dataset.obs["score"].tolist() == [*range(len(session.dataset.obs))]
    for key in ("part1", "", opened):
        tree.open(key)
        dataset, rows = session.dataset, session.dataset.obs.index.astype(float)
        assert dataset.profile[:, 0].tolist() == rows.tolist()
        assert dataset.obs["dose"].tolist() == rows.tolist()
        assert dataset.objects.label_ids.tolist() == (rows + 1).tolist()
    assert "annotation" in tree.maps[1].dataset.obs
    twice = Objects(2 * np.arange(41), np.zeros((41, 4), int), np.ones(41, int))
    tree.open_new_reading(replace(read("other", 3), source_objects=twice))
    assert {one.dataset.source_objects for one in tree.maps} == {twice}


def test_names_stay_on_objects_that_are_numbered_anew():
    cell = np.pad(np.ones((3, 3), int), 1)
    grid, tones = np.arange(1, 26).reshape(5, 5), np.random.default_rng(0).random(625)

    def measured(grid):
        labels = np.kron(grid, cell)
        return finish(measure_labels_in_stages(tones.reshape(25, 25), labels))

    desk = Desk(measured(grid), n_landmarks=5).play(until=5)
    desk.book.make_group(np.arange(8, 15), "round")
    fewer = np.where(grid < 4, 0, grid - 3)
    for again in (26 - grid, fewer, np.where(grid == 12, 0, grid)):
        dataset = measured(again)
        assert not desk.maps.open_new_reading(dataset)
        codes = desk.maps.transfer_clusters(dataset).annotation.codes
        assert set(dataset.objects.label_ids[codes >= 0]) == {*again.flat[8:15]} - {0}


@pytest.mark.parametrize("in_child", [False, True])
def test_limits_changed_twice_before_a_map_is_made(tree, session, in_child):
    """Each reading has other rows, and takes the place of the one before."""
    if in_child:
        tree.open_child_map(np.arange(30), "part")
    for place, drop in enumerate([(7, 12), (3, 7, 12, 20), (7,)]):
        tree.open_new_reading(read("X", n_columns=3 + place, drop=drop))
        session.clusters.make_group(np.arange(place + 1), f"limits {place}")
        assert tree.to_saved_session() is not None
    assert names(session)["limits 2"] == 3
    assert len(session.dataset.obs) == (30 if in_child else 40)
    first = rows_named(session, "limits 2")
    tree.open("")
    assert rows_named(session, "limits 2") == first


@pytest.mark.parametrize("is_played", [False, True])
def test_rows_that_come_back_are_called_what_they_were(engine, is_played):
    desk = Desk(read(drop=()), engine)
    if is_played:
        play(desk.session)
    desk.book.make_group(np.arange(20), "T cells")
    desk.maps.open_new_reading(read(n_columns=4, drop=range(4)))
    assert names(desk.session) == {"T cells": 16}
    desk.book.make_group(np.arange(4), "naive")
    desk.maps.open_new_reading(
        read(n_columns=3, drop=()).reorder_source_rows(np.arange(41)[::-1])
    )
    assert names(desk.session) == {"T cells": 16, "naive": 4}
    assert rows_named(desk.session, "naive") == ["4", "5", "6", "7"]


def test_a_file_with_a_column_annotation_keeps_it_beside_the_names(tree, session):
    dataset = read()
    obs = dataset.obs.assign(annotation="of the file")
    session.load(replace(dataset, obs=obs))
    session.clusters.make_group(np.arange(30), "T cells")
    for rows, name in ((np.arange(35), "naive"), (np.arange(25), "memory")):
        tree.open_child_map(rows, name)
        session.clusters.make_group(np.arange(5), name)
    given = session.dataset.obs["annotation 2"].value_counts().to_dict()
    assert given == {"naive": 5, "T cells": 20}
    assert set(session.dataset.obs["annotation"]) == {"of the file"}


def test_a_column_called_like_the_annotation_gives_no_names(tree, session):
    n = len(session.dataset.obs)
    session.add_columns(Dataset.with_map_column, "annotation score", np.arange(n))
    session.clusters.make_group(np.arange(5), "T cells")
    tree.open_child_map(np.arange(20), "part")
    given = session.dataset.obs["annotation"]
    counts = given.value_counts(dropna=False).to_dict()
    assert counts == {"T cells": 5, "lymphocytes": 10, np.nan: 5}


def test_an_older_file_has_the_annotation_of_the_parent_by_its_name(session, child):
    stored = file_rows.to_stored_rows(session.dataset)
    older = {"annotation": AddedColumns(kind="map", columns=("annotation",))}
    assert dict(stored.added) != older
    dataset = file_rows.to_dataset(replace(stored, added=older))
    assert [*dataset.added_of_kind("parent")] == ["annotation"]


def test_what_is_let_go_below_has_the_name_that_it_has_above_by_now(tree, session):
    session.clusters.make_group(np.arange(40), "T")
    tree.open_child_map(np.arange(30), "part")
    session.clusters.make_group(np.arange(10), "naive")
    back(tree)
    ids = {c.name: c.id for c in session.clusters.clusters}
    session.clusters.rename(ids["T"], "CD4")
    tree.open("part1")
    session.clusters.undo()
    back(tree)
    assert names(session) == {"CD4": 40}


def test_what_is_let_go_below_is_in_no_group_that_got_the_id_of_its_own(tree, session):
    session.clusters.make_group(np.arange(40), "T")
    (former,) = (c.id for c in session.clusters.clusters if c.name == "T")
    tree.open_child_map(np.arange(30), "part")
    session.clusters.make_group(np.arange(10), "naive")
    back(tree)
    session.clusters.remove_annotation(former)
    assert session.clusters.make_group(np.arange(20, 26), "B") == former
    tree.open("part1")
    session.clusters.undo()
    back(tree)
    assert names(session) == {"T": 10, "B": 6}


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (
            lambda t: t.open_child_map(np.arange(9), "few"),
            "9 points are too few.* select 10 or",
        ),
        (lambda t: t.open("part9"), "This map is gone"),
    ],
)
def test_what_cannot_be_done_changes_nothing(tree, session, act, sentence):
    with pytest.raises(DataError, match=sentence):
        act(tree)
    assert len(tree.maps) == 1
    assert len(session.dataset.obs) == 40


def test_data_that_are_gone_are_told_once(desk, child, tmp_path, monkeypatch):
    monkeypatch.setattr(file_rows, "MAX_X", 10)
    found, troubles = archive.open_session(desk.save(tmp_path / "tree.zip"))
    assert troubles == [
        "cells was no file, so it cannot be read again: the map is shown as it was "
        "saved; load the data to play on."
    ]
    desk.maps.restore(found)
    with pytest.raises(DataError, match="are not loaded"):
        desk.maps.open_child_map(np.arange(20), "x")
