"""What is taken away, and what is brought back."""

import base64
import gzip
import re
import shutil
import threading
import zipfile
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import h5py
import numpy as np
import pandas as pd
import pytest
from napari.components import ViewerModel
from qtpy.QtWidgets import QFileDialog, QMessageBox

from napari_embedding_game.data import read_result
from napari_embedding_game.data.dataset import AddedColumns, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import find_recent_sessions
from napari_embedding_game.session.file.saved_map import PlacedOn
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.session.timeline import count_bytes
from napari_embedding_game.ui.controls import save_menu
from napari_embedding_game.ui.game_dock import PLOTS, GameDock
from napari_embedding_game.ui.tasks import session_store
from napari_embedding_game.ui.tasks.save_dialog import OTHER_DATA, ask_save_path
from napari_embedding_game.ui.tasks.writing import NO_MAP, WritingTask
from napari_embedding_game.ui.workspace import Workspace

BUTTONS = QMessageBox.StandardButton


def test_every_format_is_written(play, dock, save, tmp_path):
    play()
    endings = (one for kinds, _ in save_menu.FORMATS.values() for one in kinds)
    for ending in endings:
        assert save(tmp_path / f"map{ending}").stat().st_size > 0, ending
        assert f"Saved map{ending}" in dock.run_controls.stage.text()
    a_save_on_the_quiet_that_fails_leaves_the_tab(dock)


def a_save_on_the_quiet_that_fails_leaves_the_tab(dock):
    dock.show()
    dock.tabs.setCurrentIndex(PLOTS)
    dock.controller.session_store.trouble.emit("The disk is full.")
    assert dock.tabs.currentIndex() == PLOTS
    told = dock.cluster_pane.message
    assert (told.text(), told.isVisible()) == ("The disk is full.", True)


def test_what_a_file_does_not_hold_is_said(
    play, dock, save, session, tmp_path, monkeypatch
):
    for seed in range(4):
        session.settings.random_state = seed
        play()
    marks = session.timeline.marks
    session.timeline.rename_mark(marks[0].number, "the one to show")
    session.clusters.make_group(np.arange(9), "T")
    monkeypatch.setattr(archive, "MAX_BYTES", count_bytes(marks) // 2)
    for ending in (".zip", ".h5ad"):
        path = save(tmp_path / f"map{ending}")
        (kept,) = archive.load_session(path).maps
        names = [mark.name for mark in kept.timeline.marks]
        n_gone = len(marks) - len(names)
        assert n_gone > 0
        assert names[0] == "the one to show"
        assert dock.run_controls.stage.text() == (
            f"Saved {path.name}. Not in the file: {n_gone} of {len(marks)} earlier "
            "maps, as those without a name are thinned beyond 0 MB, the older the more "
            "(right-click one to rename it: a named map is always kept)."
        )
    save(tmp_path / "map.csv")
    assert dock.run_controls.stage.text() == "Saved map.csv."


def test_a_file_is_replaced_if_a_person_agrees(
    play, qtbot, dock, answer, monkeypatch, tmp_path
):
    play()
    there = answer(tmp_path / "map").with_suffix(".csv")
    there.write_text("precious")
    actions, trouble = (
        dock.run_controls.save_button.menu().actions(),
        dock.data_controls.trouble,
    )
    for agrees in (False, True):
        asked = Mock(return_value=BUTTONS.Yes if agrees else BUTTONS.No)
        monkeypatch.setattr(QMessageBox, "question", asked)
        task = dock.controller.writing
        with (
            qtbot.waitSignal(task.saved)
            if agrees
            else qtbot.assertNotEmitted(task.busy_changed)
        ):
            next(one for one in actions if ".csv" in one.text()).trigger()
        assert (there.read_text() == "precious") != agrees
        assert asked.call_args[0][2] == "map.csv already exists. Replace it?"
    answer(tmp_path / ("x" * 300))  # longer than file systems take
    actions[0].trigger()
    qtbot.waitUntil(lambda: "choose another folder or name" in trouble.text())


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "cells.csv"
    rows = np.random.default_rng(0).normal(size=(40, 3))
    pd.DataFrame(rows, columns=list("abc")).to_csv(path, index=False)
    return path


@pytest.fixture
def again(engine):
    """Open a dock of another program."""
    docks = []

    def open_dock():
        workspace = Workspace(Session(engine, UNPACED))
        docks.append(GameDock(ViewerModel(), workspace, warm_up=False))
        return docks[-1]

    yield open_dock
    for dock in docks:
        dock.close()


@pytest.fixture
def named(load, play, qtbot, dock, session, table):
    """A map with a named cluster and other settings than usual."""
    load(FileSource(table))
    session.settings.repulsion = 700.0
    session.settings.max_iter = 400
    play()
    session.clusters.rename(2, "B\0 \x1bcells")  # as one pastes it
    session.selection.select_cluster(2)
    return session


def test_without_a_map_nothing_is_written_and_it_is_told(workspace, session, tmp_path):
    """As where a program asks for it, or the command line of a session."""
    task, told = WritingTask(workspace), []
    workspace.trouble.connect(told.append)

    def refuses(endings):
        for ending in endings:
            task.save(tmp_path / f"map{ending}")
            assert (told[-1], task.busy_text) == (NO_MAP, ""), ending

    refuses([".csv", ".h5ad", ".png", ".gif", ".html"])
    session.load(None)
    refuses([".zip", ".ipynb", ".txt"])
    assert not list(tmp_path.iterdir())


def test_what_is_shared_names_no_folder(
    load, play, session, dock, save, again, qtbot, table, tmp_path
):
    """Neither that of the home, which is a person's name, nor any other."""
    person = tmp_path / "home" / "ann_onymous"
    person.mkdir(parents=True)
    data = shutil.move(table, person / "cells.csv")
    measured = {"measured": {"folder": str(person / "images"), "images": []}}
    session.load(replace(load(FileSource(data)), provenance=measured))
    reference = str(person / "reference.h5ad")  # as former versions noted it
    added = AddedColumns(kind="map", reference=reference)
    session.add_columns(Dataset.with_columns, "type", {"": np.arange(40.0)}, added)
    layer = {"name": "nuclei", "path": str(person / "nuclei.tif")}
    dock.workspace.map_tree.view = lambda: {
        "layers": {"labels": layer, "images": [layer]}
    }
    play()
    cells = session.snapshot.embedding
    session.placed_on = PlacedOn(reference, cells, cells)

    share = next(
        x for x in dock.run_controls.save_button.menu().actions() if x.isCheckable()
    )
    share.setChecked(True)
    sent = tmp_path / "sent"
    sent.mkdir()
    endings = [one for kinds, _ in save_menu.FORMATS.values() for one in kinds]
    for ending in endings:
        save(sent / f"map{ending}")
    for path in sent.iterdir():
        for name, content in unpacked(path):
            assert b"ann_onymous" not in content, name

    shutil.copy(data, sent)
    other = again()
    with qtbot.waitSignal(other.controller.reading.session_opened):
        other.controller.reading.open_session(sent / "map.zip")
    assert other.workspace.session.dataset.source == sent / "cells.csv"

    share.setChecked(False)  # beside each other they are moved together
    save(person / "map.zip")
    person.rename(tmp_path / "moved")
    (kept,) = archive.load_session(tmp_path / "moved" / "map.zip").maps
    of_rows = kept.dataset.known["rows"]
    assert of_rows.path == str(tmp_path / "moved" / "cells.csv")
    path = kept.view["layers"]["labels"]["path"]
    assert path == str(tmp_path / "moved" / "nuclei.tif")


def unpacked(path):
    """Give each part of a file, with its name, as it is before it was compressed."""
    yield path.name, path.read_bytes()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as file:
            yield from (
                (f"{path.name}/{one}", file.read(one)) for one in file.namelist()
            )
    elif path.suffix == ".h5ad":
        with h5py.File(path) as file:
            held = []
            file.visititems(lambda name, item: held.append((name, item)))
            items = [(name, item) for name, item in held if hasattr(item, "dtype")]
            yield from ((name, str(item[()]).encode()) for name, item in items)
            session = path.with_suffix(".inside.zip")
            session.write_bytes(file["uns/embedding_game/session"][()].tobytes())
        yield from unpacked(session)
    elif path.suffix == ".html":
        packed = re.search(r'id="payload"[^>]*>([^<]*)<', path.read_text("utf-8"))[1]
        yield path.name, gzip.decompress(base64.b64decode(packed))


@pytest.mark.parametrize("name", ["work.zip", "map.h5ad"])
def test_a_session_goes_on_where_it_was_saved(
    qtbot, named, save, again, tmp_path, name, monkeypatch
):
    path, looked = save(tmp_path / name), []  # at all values, in which threads
    note = lambda X: looked.append(threading.current_thread())  # noqa: E731
    monkeypatch.setattr(read_result, "looks_like_counts", note)
    # The file is a stranger's, and is read in the process for files.
    here = Mock(side_effect=AssertionError("read in the window's process"))
    monkeypatch.setattr(archive, "_load_content", here)
    other = again()
    session = other.controller.session
    with qtbot.waitSignal(other.controller.reading.changed):
        other.controller.reading.open_file(path)
    qtbot.waitUntil(lambda: session.snapshot is not None)
    assert bool(looked) == path.name.endswith(".zip")  # the other has its numbers
    assert threading.main_thread() not in looked
    layers = other.controller.scene.map_layers
    world = layers.to_world(named.snapshot.embedding)
    np.testing.assert_allclose(layers.points.data, world, atol=1e-3)
    assert session.clusters.clustering.by_id[2].name == "B cells"
    assert session.selection.clusters == (2,)
    assert other.method_controls.repulsion.value == 700
    assert other.method_controls.controls["max_iter"].value == 400
    assert other.run_controls.stage.text().startswith("Opened.")
    assert other.run_controls.save_button.isVisibleTo(other)
    other.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert "B cells" in [cluster.name for cluster in session.clusters.clusters]


def test_a_session_without_its_data_is_shown_and_says_what_is_missing(
    qtbot, named, save, again, table, tmp_path
):
    named.look.color_by, named.look.limits = "b", (-1.0, 1.0)
    path = save(tmp_path / "work.zip")
    table.unlink()
    other = again()
    other.controller.reading.open_session(path)
    qtbot.waitUntil(lambda: other.controller.scene.map_layers.points is not None)
    assert "is missing" in other.data_controls.trouble.text()
    assert "40 rows, from" in other.data_controls.summary.text()
    session = other.controller.session
    assert (session.look.color_by, other.display_controls.color_by.value) == (
        "Cluster",
        "Cluster",
    )
    other.run_controls.run_button.click()
    assert "are not loaded" in other.run_controls.message.text()
    other.controller.writing.save(tmp_path / "run.gif")
    assert (
        "run of this map cannot be played again" in other.data_controls.trouble.text()
    )
    assert session.clusters.clustering.by_id[2].name == "B cells"


# On the quiet


@pytest.fixture
def saved(monkeypatch, qtbot, named, autosave_folder):
    """Have no second pass until a change is saved; return the map in that file."""
    for name in ("FIRST_MS", "SAVE_MS"):
        monkeypatch.setattr(session_store, name, 20)
    assert find_recent_sessions() == []

    def saved(change):
        before = {one: one.stat().st_mtime_ns for one in autosave_folder.iterdir()}
        change()
        found = partial(autosave_folder.glob, "[!.]*.open.zip")
        qtbot.waitUntil(
            lambda: any(x.stat().st_mtime_ns != before.get(x) for x in found())
        )
        (path,) = found()
        return archive.load_session(path).maps[0]

    return saved


def test_whatever_a_person_changes_is_saved_on_the_quiet_and_tried_again(
    qtbot, dock, named, saved, monkeypatch
):
    def broken(*_, **__):
        raise OSError("no room")

    store, look = dock.controller.session_store, named.look
    with monkeypatch.context() as full, qtbot.waitSignal(store.trouble):
        full.setattr(archive, "save_session", broken)
        look.show_names = False
    assert not saved(lambda: None).look.show_names
    for change in (
        lambda: setattr(look, "color_by", "a"),
        lambda: setattr(look, "limits", (0.5, 1.5)),
        lambda: named.selection.select_cluster(1),
        lambda: setattr(named.settings, "n_neighbors", 9),
    ):
        last = saved(change)
    present = dock.workspace.map_tree.to_saved_session().maps[0]
    given = [g.name for g in last.clusters.annotation.groups.values()]
    assert given == ["B cells"]
    for name in ("look", "selected", "settings", "view"):
        assert getattr(last, name) == getattr(present, name)
    qtbot.waitUntil(lambda: "Saved automatically at" in dock.run_controls.saved.text())
    gate, begun, told = threading.Event(), [], []

    def slow(*_, **__):
        begun.append(gate)
        gate.wait(10)

    monkeypatch.setattr(archive, "save_session", slow)
    look.show_names = True
    qtbot.waitUntil(lambda: len(begun) == 1)
    store.saved.connect(lambda: told.append(store))
    store.start_last_autosave()  # other data come: what is saved is of former ones
    gate.set()
    qtbot.waitUntil(lambda: len(begun) == 2)
    assert told == []


@pytest.fixture
def held(monkeypatch, tmp_path):
    """Writers that wait for their gate, and fail where a name says so."""
    gates = {}

    def save(saved, path, **how):
        if path.parent != tmp_path:
            return  # on the quiet
        gates.setdefault(path.name, threading.Event()).wait(10)
        if "full" in path.name:
            raise DataError(f"{path.name}: the disk is full")
        path.touch()

    monkeypatch.setattr(archive, "save_session", save)
    yield lambda name: gates.setdefault(name, threading.Event()).set()
    for gate in gates.values():
        gate.set()


def test_a_save_that_fails_while_something_is_read_is_told(
    load, qtbot, dock, named, held, table, tmp_path, monkeypatch
):
    dock.controller.writing.save(tmp_path / "full.zip")
    dock.controller.writing.save(tmp_path / "next.zip")
    load(FileSource(table))
    assert "still being written" in dock.run_controls.stage.text()
    held("full.zip")
    qtbot.waitUntil(lambda: "the disk is full" in dock.data_controls.trouble.text())
    assert "still being written" not in dock.run_controls.stage.text()
    assert "40 rows" in dock.data_controls.summary.text()
    held("next.zip")
    with qtbot.waitSignal(dock.controller.writing.saved):
        dock.controller.writing.save(tmp_path / "next.zip")
    assert dock.data_controls.trouble.text() == ""

    def come_meanwhile(*_):  # other data, while a name is asked for
        load(FileSource(table))
        return str(tmp_path / "late.csv"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", come_meanwhile)
    dock.run_controls.save_button.menu().actions()[1].trigger()
    assert dock.run_controls.message.text() == OTHER_DATA


def test_the_name_of_a_layer_is_proposed_as_windows_takes_it(monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", asked := Mock())
    asked.return_value = "", ""
    ask_save_path(
        None, Mock(dataset=SimpleNamespace(name="0 :: DAPI?")), "map", {".csv": ""}
    )
    assert asked.call_args[0][2] == "0 __ DAPI__map.csv"


def test_what_is_being_saved_is_saved_though_the_dock_is_closed(
    qtbot, dock, named, held, tmp_path, monkeypatch
):
    monkeypatch.setattr("napari_embedding_game.ui.controller.CLOSE_SECONDS", 0.0)
    dock.controller.writing.save(tmp_path / "first.zip")
    dock.close()
    assert not (tmp_path / "first.zip").exists()
    held("first.zip")
    qtbot.waitUntil((tmp_path / "first.zip").exists)


def test_closing_goes_on_whatever_one_part_raises(
    monkeypatch, viewer, dock, named, autosave_folder, caplog
):
    def broken(**how):
        raise OSError("the stick is gone")

    told = []
    dock.workspace.trouble.connect(told.append)
    monkeypatch.setattr(
        dock.controller.session_store._autosave, "make_save_job", broken
    )
    monkeypatch.setattr(dock.controller.reading, "close", broken)
    dock.close()
    assert len(told) == 1
    assert "the stick is gone" in told[0]
    assert "could not be saved when it was closed" in caplog.text
    assert dock.controller.scene.map_layers.points is None
    assert viewer.mouse_move_callbacks == []
    assert list(autosave_folder.iterdir()) == []
