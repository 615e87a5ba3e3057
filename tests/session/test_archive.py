"""Sessions to files and back: all that was shown, or a sentence."""

import json
import zipfile
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from napari_embedding_game.data import samples
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.table_join import JoinRequest, LabelImage
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file import (
    archive,
    map_text,
    origin,
)
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.run.replay import replay, same
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import FileSource


def play(session, until):
    run = session.begin()
    for frame in run.frames():
        session.receive(run, frame)
        # How many iterations lie between two frames depends on the machine.
        if frame.snapshot and 0 < frame.snapshot.iteration < until:
            session.settings.repulsion = 500.0
        if frame.snapshot and frame.snapshot.iteration >= until:
            session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 200 rows, two of them with gaps, and a session on it."""
    folder = tmp_path_factory.mktemp("work")
    X, _ = make_blobs(200, 4, centers=6, random_state=0)
    table = pd.DataFrame(X.astype(np.float32), columns=list("abcd"))
    table.loc[[3, 50], "b"] = np.nan
    table.to_csv(folder / "cells.csv", index=False)
    session = Session(pace=UNPACED)
    session.load(read(folder / "cells.csv", missing="drop"))
    for name, value in {"n_landmarks": 15, "max_iter": 60, "n_neighbors": 6}.items():
        setattr(session.settings, name, value)
    play(session, until=60)
    session.clusters.set_n_clusters(6)
    one, two, *_ = session.clusters.clusters
    session.clusters.rename(one.id, "T cells")
    session.clusters.recolor(two.id, "#00ff00")
    session.clusters.annotate(two.id, "look\nagain")
    session.clusters.make_cluster(np.arange(9), "doublets")
    session.clusters.set_n_clusters(4)
    session.selection.select_points(np.array([1, 5, 77]))
    session.look.size_by = "Pressure"
    session.look.color_by, session.look.limits = "a", (-2.5, 4.0)
    session.settings.n_neighbors = 9
    saved = session.capture(view={"camera": {"zoom": 2.5, "center": [0, 1.5]}})
    archive.save(SavedSession(maps=(saved,)), folder / "work.zip")
    return folder, session, saved


def assert_same_map(found, expected):
    for name in ("key", "title", "parent", "settings", "record", "energies"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.look == expected.look
    assert found.view == expected.view
    assert found.selected == expected.selected
    for name in ARRAYS:
        one, other = getattr(found.snapshot, name), getattr(expected.snapshot, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    for part in fields(expected.snapshot):
        if part.name not in ARRAYS:
            ours = getattr(found.snapshot, part.name)
            assert ours == getattr(expected.snapshot, part.name), part.name
    assert found.book.edits == expected.book.edits
    assert found.book.numbers == expected.book.numbers
    np.testing.assert_array_equal(found.book.automatic, expected.book.automatic)


ARRAYS = ("embedding", "landmarks", "labels", "pressure", "stretch")
ARRAYS += ("neighbors", "isolation")


def test_everything_comes_back(folder):
    path, session, saved = folder
    found = archive.load(path / "work.zip").maps[0]
    assert_same_map(found, saved)
    assert found.dataset.obs.index.tolist() == saved.dataset.obs.index.tolist()
    assert found.view == {"camera": {"zoom": 2.5, "center": [0, 1.5]}}
    np.testing.assert_array_equal(found.drawn, session.selection.points)


def test_a_restored_session_shows_the_same_and_goes_on(folder):
    path, session, _ = folder
    found = finish(archive.with_data(archive.load(path / "work.zip").maps[0], path))
    other, heard = Session(pace=UNPACED), []
    other.restored.connect(heard.append)
    other.restore(found, found.dataset)
    assert heard == [found]
    assert other.state == "stopped"
    assert other.clusters.clusters == session.clusters.clusters
    assert other.settings.value == session.settings.value
    assert other.look == session.look
    assert other.selection.rows.tolist() == [1, 5, 77]
    assert other.energies == session.energies
    ours, theirs = other.result(), session.result()
    assert ours.parameters == theirs.parameters
    assert ours.point_names().tolist() == theirs.point_names().tolist()
    for book in (other.clusters, session.clusters):
        book.set_n_clusters(6)
    assert other.clusters.clusters == session.clusters.clusters
    session.clusters.undo()
    again = other.capture(view=found.view)
    assert again.record == found.record
    play(other, until=60)
    assert "doublets" in {c.name for c in other.clusters.clusters}


def test_the_recorded_run_can_be_replayed(folder):
    path, session, _ = folder
    found = finish(archive.with_data(archive.load(path / "work.zip").maps[0], path))
    assert len(found.record.steered) == 1
    assert same(replay(found.dataset.X, found.record), session.snapshot)


def copied(folder, tmp_path):
    for name in ("cells.csv", "work.zip"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return archive.load(tmp_path / "work.zip").maps[0]


def test_data_that_lie_beside_the_session_file_are_found(folder, tmp_path):
    found = copied(folder[0], tmp_path)
    moved = replace(found, origin=replace(found.origin, path="/gone/cells.csv"))
    assert finish(archive.with_data(moved, tmp_path)).dataset.source.parent == tmp_path


def test_missing_or_changed_data_are_told_and_the_map_is_shown(folder, tmp_path):
    found = copied(folder[0], tmp_path)
    away = replace(found, origin=replace(found.origin, path="/gone/cells.csv"))
    with (tmp_path / "cells.csv").open("a") as file:
        file.write("1,2,3,4\n")
    with pytest.raises(DataError, match=r"cells\.csv has changed"):
        finish(archive.with_data(away, tmp_path))
    (tmp_path / "cells.csv").unlink()
    with pytest.raises(DataError, match=r"cells\.csv is missing: put it back"):
        finish(archive.with_data(away, tmp_path))
    session = Session()
    session.restore(away)
    assert session.snapshot.iteration == 60
    session.clusters.rename(session.clusters.clusters[0].id, "still editable")
    saved = SavedSession(maps=(session.capture(),))
    assert saved.maps[0].origin == away.origin  # or the data could never be found again
    rows = session.dataset
    assert rows.notes == (rows.missing_reason,)
    session.dataset = replace(rows, notes=(*rows.notes, "something else"))
    with pytest.raises(DataError, match="are not loaded"):
        MapTree(session).embed(np.arange(50), "some")
    with pytest.raises(DataError, match="are not loaded"):
        session.begin()


def test_data_read_in_another_way_are_not_mistaken(folder, tmp_path):
    found = copied(folder[0], tmp_path)
    other = replace(found, origin=replace(found.origin, x_sha256="0" * 64))
    with pytest.raises(DataError, match="gives other numbers"):
        finish(archive.with_data(other, tmp_path))


def stored(dataset, path):
    session = Session()
    session.load(dataset)
    archive.save(SavedSession(maps=(session.capture(),)), path)
    return archive.load(path).maps[0]


def test_a_map_without_a_run(tmp_path, dataset):
    found = stored(dataset, tmp_path / "early.zip")
    assert (found.snapshot, found.record, found.energies) == (None, None, ())


def test_data_without_a_file_are_stored_with_the_map(tmp_path, dataset):
    objects = Objects(np.arange(40) + 3, np.arange(160).reshape(40, 4))
    measured = replace(dataset, source_objects=objects).subset(np.arange(40) != 5)
    found = finish(
        archive.with_data(stored(measured, tmp_path / "x.zip"), tmp_path)
    ).dataset
    np.testing.assert_array_equal(found.X, measured.X)
    assert found.var_names == measured.var_names
    np.testing.assert_array_equal(found.objects.label_ids, measured.objects.label_ids)
    np.testing.assert_array_equal(found.objects.boxes, measured.objects.boxes)


def test_data_without_a_file_that_are_large_are_not(tmp_path, dataset, monkeypatch):
    monkeypatch.setattr(map_text, "LARGEST_X", 100)
    found = stored(dataset, tmp_path / "x.zip")
    with pytest.raises(DataError, match="was no file"):
        finish(archive.with_data(found, tmp_path))


def test_a_sample_is_read_again(tmp_path):
    digits = samples.digits()
    found = stored(digits, tmp_path / "x.zip")
    assert found.dataset.X.shape == (1797, 0)
    np.testing.assert_array_equal(
        finish(archive.with_data(found, tmp_path)).dataset.X, digits.X
    )


def test_chosen_columns_and_parts_are_read_again(folder, tmp_path):
    path = folder[0] / "cells.csv"
    some = read(path, columns=["a", "d"], missing="drop")
    part = some.subset(np.arange(len(some.obs)) % 3 == 0)
    found = finish(
        archive.with_data(stored(part, tmp_path / "x.zip"), tmp_path)
    ).dataset
    np.testing.assert_array_equal(found.X, part.X)
    assert found.obs.index.tolist() == part.obs.index.tolist()


@pytest.mark.parametrize("most", [1000, 1])
def test_a_table_read_without_repetitions_is_read_again(
    folder, tmp_path, monkeypatch, most
):
    monkeypatch.setattr(origin, "_MOST_COLUMNS", most)
    table = pd.read_csv(folder[0] / "cells.csv").dropna().assign(e=lambda t: t["a"] / 9)
    table.to_csv(tmp_path / "cells.csv", index=False)
    once = read(tmp_path / "cells.csv", duplicates="drop")
    found = finish(
        archive.with_data(stored(once, tmp_path / "x.zip"), tmp_path)
    ).dataset
    np.testing.assert_array_equal(found.X, once.X)
    assert found.var_names == once.var_names == ("a", "b", "c", "d")
    assert found.space == once.space


def test_the_data_file_is_never_overwritten(folder):
    path, _, saved = folder
    with pytest.raises(DataError, match="is the data file itself"):
        archive.save(SavedSession(maps=(saved,)), path / "cells.csv")


def table_of_ten(path):
    rows = np.random.default_rng(0).normal(size=(10, 2))
    pd.DataFrame(rows, columns=list("ab")).to_csv(path, index=False)
    return read(path)


def test_a_session_is_saved_while_its_data_are_away(tmp_path):
    path = tmp_path / "stick" / "cells.csv"
    path.parent.mkdir()
    whole = table_of_ten(path)
    content = path.read_bytes()
    path.unlink()
    (tmp_path / "x.zip").touch()
    found = stored(whole, tmp_path / "x.zip")
    assert found.origin.sha256 == ""
    path.write_bytes(content)
    back = finish(archive.with_data(found, tmp_path)).dataset
    np.testing.assert_array_equal(back.X, whole.X)
    assert stored(whole, tmp_path / "x.zip").origin.sha256 == whole.sha256()
    assert stored(back, tmp_path / "x.zip").origin.sha256 == whole.sha256()


def test_a_file_is_read_once_for_all_its_parts(tmp_path, monkeypatch):
    hashed = []
    inner = origin.source_sha256
    monkeypatch.setattr(
        origin, "source_sha256", lambda path: hashed.append(path) or inner(path)
    )
    path = tmp_path / "cells.csv"
    whole = table_of_ten(path)
    parts = [whole, *(whole.subset(np.arange(10) != i) for i in range(3))]
    expected = {origin.origin_of(part).sha256 for part in parts[:2]}
    with path.open("a") as file:
        file.write("1,2\n")
    assert {origin.origin_of(parts[2]).sha256} != expected
    again = origin.origin_of(parts[2])
    path.unlink()
    assert origin.origin_of(parts[3]).sha256 == again.sha256
    assert hashed == [path, path]


def test_data_that_cannot_be_read_are_told(folder, tmp_path, monkeypatch):
    found = copied(folder[0], tmp_path)

    def broken(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(origin, "source_sha256", broken)
    with pytest.raises(DataError, match="cannot be read"):
        finish(archive.with_data(found, tmp_path))


# Files from elsewhere


def rewritten(source, target, changes):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name in changes:
                content = changes[name](content)
            if content is not None:
                new.writestr(name, content)
    return target


def text(**changes):
    def change(content):
        values = json.loads(content)
        for path, value in changes.items():
            target = values
            *parents, last = path.split("__")
            for parent in parents:
                target = target[int(parent) if parent.isdigit() else parent]
            target[int(last) if last.isdigit() else last] = value
        return json.dumps(values).encode()

    return change


MAP = "maps/0.json"


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("session.json", text(version=3), "written by a later version"),
        ("session.json", text(version=1), "written by a version before"),
        ("session.json", text(format="a picture"), "Invalid enum value 'a picture'"),
        ("session.json", text(maps=[]), "holds no map"),
        ("session.json", text(current="elsewhere"), "that was shown is missing"),
        ("session.json", lambda _: None, r"session\.json is missing"),
        (MAP, lambda _: None, r"maps/0\.json is missing"),
        (MAP, lambda _: b"[1, 2]", "Expected `object`"),
        (MAP, text(dataset__names=[]), "its rows: "),
        (MAP, text(origin__n_source_rows=10**12), "its rows"),
        (MAP, text(parent="x"), "its maps"),
        (MAP, text(book__edits__joined={"5": 6, "6": 5}), "merged clusters"),
        (MAP, text(book__edits__given={"5": {"color": "red"}}), "its colours"),
        (MAP, text(book__edits__given={"-5": {"name": "x"}}), "its clusters"),
        (MAP, text(book__edits__n_clusters=-1), "its clusters"),
        (MAP, text(record__n_iter=1), "out of order"),
        (MAP, text(snapshot__energy=None), r"Expected `float`, got `null` .*energy"),
        (MAP, text(snapshot__embedding={"array": 999}), "array of the file"),
        (MAP, text(snapshot__embedding={"array": -1}), "array of the file"),
        (MAP, text(snapshot__labels=None), "array of the file"),
        (MAP, text(settings__method="zzz"), "updated: .*'zzz'"),
        (MAP, text(settings__init="zzz"), "updated: .*'zzz'"),
        (MAP, text(settings__approximation="zzz"), "Invalid enum value 'zzz'"),
        (
            MAP,
            text(settings__method="pca", settings__optimizer="lbfgs"),
            "updated: .*lbfgs",
        ),
        (MAP, text(settings__n_components=-5), "n_components .* not -5"),
        (MAP, text(settings__n_neighbors=0), "n_neighbors .* not 0"),
        (MAP, text(settings__random_state=-1), "random_state .* not -1"),
        (MAP, text(settings__repulsion=-3.0), "repulsion .* not -3.0"),
        (MAP, text(settings__max_iter=0), "max_iter .* not 0"),
        (MAP, text(record__steered__0__settings__method="zzz"), "updated: .*'zzz'"),
        (MAP, text(look__limits=[2.0, 1.0]), "its colours"),
        (MAP, text(look__color_by=3), r"look: Expected `str`, got `int` .*color_by"),
        (MAP, text(snapshot__remedy={"sauce": 3}), "its remedy"),
        (MAP, text(snapshot__remedy={"max_iter": 0}), "its remedy"),
    ],
)  # fmt: skip
def test_texts_that_do_not_fit(folder, tmp_path, name, change, sentence):
    path = rewritten(folder[0] / "work.zip", tmp_path / "x.zip", {name: change})
    with pytest.raises(DataError, match=rf"^x\.zip .*{sentence}"):
        archive.load(path)


def array(change):
    def changed(content):
        import io

        found = np.load(io.BytesIO(content), allow_pickle=False)
        out = io.BytesIO()
        np.save(out, change(found))
        return out.getvalue()

    return changed


def put(value):
    def change(found):
        found = found.copy()
        found.flat[0] = value
        return found

    return array(change)


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("snapshot__embedding", put(np.nan)),
        ("snapshot__embedding", array(lambda a: a.astype(np.float64))),
        ("snapshot__landmarks", put(np.inf)),
        ("snapshot__labels", put(10**6)),
        ("snapshot__labels", put(-1)),
        ("snapshot__labels", array(lambda a: a[1:])),
        ("snapshot__stretch", array(lambda a: a[1:])),
        ("snapshot__stretch", put(np.nan)),
        ("snapshot__isolation", put(-1)),
        ("snapshot__isolation", array(lambda a: a[1:])),
        ("snapshot__neighbors", put(10**6)),
        ("snapshot__neighbors", put(-2)),
        ("snapshot__neighbors", array(lambda a: a[1:])),
        ("dataset__kept", put(False)),
        ("merging__graph__parts__1", put(10**6)),
        ("merging__graph__parts__2", put(3)),
        ("merging__tree__leader", put(10**6)),
        ("merging__tree__born", array(lambda a: np.full_like(a, 5))),
        ("merging__tree__levels", put(-1)),
        ("book__of_landmarks", array(lambda a: a[1:])),
        ("book__edits__by_hand", array(lambda a: a[1:])),
    ],
)
def test_arrays_that_do_not_fit(folder, tmp_path, where, change):
    with zipfile.ZipFile(folder[0] / "work.zip") as file:
        place = json.loads(file.read(MAP))
    for part in where.split("__"):
        place = place[int(part) if part.isdigit() else part]
    changes = {f"arrays/{place['array']}.npy": change}
    path = rewritten(folder[0] / "work.zip", tmp_path / "x.zip", changes)
    with pytest.raises(DataError, match="is damaged"):
        archive.load(path)


def test_a_file_of_an_earlier_version_is_told_as_such(tmp_path):
    head = {"format": "napari-embedding-game session", "version": 1, "n_maps": 1}
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as file:
        file.writestr("session.json", json.dumps(head))
        file.writestr("maps/0/map.json", "{}")
        file.writestr("maps/0/kept.npy", b"")
    with pytest.raises(DataError, match=r"by a version before 0\.4: open it with that"):
        archive.load(tmp_path / "old.zip")


def test_a_list_of_sessions_reads_no_arrays(folder, tmp_path):
    changes = {f"arrays/{n}.npy": lambda _: b"nothing" for n in range(9)}
    path = rewritten(folder[0] / "work.zip", tmp_path / "x.zip", changes)
    told = archive.summary(path)
    assert (told.title, told.n_points, told.n_names) == ("cells.csv", 198, 2)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_damage_gives_a_sentence_or_the_same_map(folder, tmp_path, data):
    content = bytearray((folder[0] / "work.zip").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "damaged.zip"
    path.write_bytes(content)
    found = loaded(path)
    if isinstance(found, DataError):
        assert "damaged.zip" in str(found)
    else:
        assert_same_map(found.maps[0], folder[2])


def loaded(path):
    try:
        return archive.load(path)
    except DataError as error:
        return error


def test_a_file_that_was_joined_with_labels_stays_so(tmp_path):
    labels = np.kron(np.arange(1, 31).reshape(5, 6), np.ones((3, 3), int))
    values = np.random.default_rng(0).normal(size=(31, 3))
    frame = pd.DataFrame(values, columns=list("abc"))
    frame["label"] = np.arange(31)[::-1]  # the last is about the background
    frame.to_csv(tmp_path / "cells.csv", index=False)
    request = JoinRequest((LabelImage("cells", labels),), is_guess=True)
    source = FileSource(tmp_path / "cells.csv", request)
    session = Session(pace=UNPACED)
    session.load(finish(source.read(ReadOptions())).dataset)
    saved = SavedSession(maps=(session.capture(),))
    archive.save(saved, tmp_path / "work.zip")
    opened, troubles = archive.open_session(tmp_path / "work.zip")
    dataset = opened.maps[0].dataset
    assert troubles == []
    assert dataset.X.shape == (30, 3)
    assert dataset.objects.label_ids.tolist() == list(range(30, 0, -1))
    assert dataset.provenance["linked"] == {"column": "label"}
