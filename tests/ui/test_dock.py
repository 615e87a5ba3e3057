"""The dock as a person uses it: clicks in, states and texts out."""

import numpy as np
from qtpy.QtCore import QEvent, QMimeData, QObject, QPoint, QPointF, Qt, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QPushButton, QWidget

import worlds
from napari_embedding_game.data.errors import MissingValuesError
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.ui.controls.data import NO_TABLE
from napari_embedding_game.ui.controls.method import AUTOMATICALLY
from napari_embedding_game.ui.controls.settings_form import AUTOMATIC
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.style.coloring import color_by_column_or_feature

LEFT = Qt.MouseButton.LeftButton


def main_buttons(dock):
    """The texts of the buttons that are seen in the colour of what comes next."""
    buttons = dock.findChildren(QPushButton)
    return [
        button.text()
        for button in buttons
        if button.property("role") == "main" and button.isVisibleTo(dock)
    ]


def test_one_button_is_to_be_pressed_next_and_does_all_that_is_needed(
    load, dock, play, session, qtbot, tmp_path, viewer
):
    assert main_buttons(dock) == ["Run"]
    assert "Press Run" in dock.run_controls.stage.text()
    play()
    assert main_buttons(dock) == []
    session.load(None)
    assert main_buttons(dock) == ["Open…"]
    assert not dock.display_controls.isVisibleTo(dock)
    layer = viewer.add_labels(worlds.field(0, 16, (60, 60))[1])
    assert main_buttons(dock) == ["Measure and run"]
    QTest.mouseClick(dock.run_controls.run_button, LEFT)
    qtbot.waitUntil(lambda: session.state == "finished")
    assert len(session.dataset.objects) == 16
    viewer.layers.remove(layer)
    np.save(tmp_path / "counts.npy", worlds.raw_counts().X.astype(int))
    load(lambda: drop(dock, tmp_path / "counts.npy"))
    assert main_buttons(dock) == ["Prepare and run"]
    assert dock.run_controls.plain_button.isVisibleTo(dock)
    dock.data_controls.recipe_panel.numbers["min_genes"].value = 20
    dock.data_controls.recipe_panel.numbers["n_comps"].value = 7
    QTest.mouseClick(dock.run_controls.run_button, LEFT)
    qtbot.waitUntil(lambda: session.state == "finished")
    assert session.dataset.X.shape == (60, 7)
    assert not dock.run_controls.plain_button.isVisibleTo(dock)


def test_a_file_is_dropped_on_the_dock(load, dock, tmp_path, qtbot):
    path = tmp_path / "cells.csv"
    lines = (f"{i},{i % 3},{20 - i},{i}" for i in range(20))
    path.write_text("a,b,y_centroid,x_centroid\n" + "\n".join(lines))
    load(lambda: drop(dock, path))
    assert dock.data_controls.title.text() == "cells.csv"
    assert "Tissue: x_centroid, y_centroid in µm." in dock.data_controls.summary.text()
    drop(dock, tmp_path / "absent.csv")
    qtbot.waitUntil(lambda: "absent.csv" in dock.data_controls.trouble.text())
    drop(dock, tmp_path / "earlier.zip")
    qtbot.waitUntil(lambda: "earlier.zip" in dock.data_controls.trouble.text())


def drop(dock, path):
    files = QMimeData()
    files.setUrls([QUrl.fromLocalFile(str(path))])
    none = Qt.KeyboardModifier.NoModifier
    copied = Qt.DropAction.CopyAction, files, LEFT, none
    enter = QDragEnterEvent(QPoint(5, 5), *copied)
    QApplication.sendEvent(dock, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(dock, QDropEvent(QPointF(5, 5), *copied))


def test_what_can_be_pressed_in_each_state(play, qtbot, session, dock, engine):
    def shown():
        run = dock.run_controls
        buttons = (run.run_button, run.pause_button, run.stop_button, run.save_button)
        return "".join("x" if b.isVisibleTo(dock) else "." for b in buttons)

    assert shown() == "x..."
    engine.gate.clear()
    play("preparing")
    assert shown() == "..x."
    session.run.pause()
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "paused")
    assert shown() == ".xx."
    assert dock.run_controls.pause_button.text() == "Resume"
    assert main_buttons(dock) == ["Resume"]
    dock.run_controls.pause_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert shown() == "x..x"
    assert dock.run_controls.run_button.text() == "Run again"
    assert "Finished" in dock.run_controls.stage.text()
    assert dock.trust_controls.figures.frame.loc["pressured_share"].iloc[2] == "25%"
    layers, shot = dock.controller.scene.map_layers, session.snapshot
    for layer, places in (
        (layers.points, shot.embedding),
        (layers.landmarks, shot.landmarks),
    ):
        np.testing.assert_allclose(layer.data, layers.to_world(places), atol=1e-3)
    session.selection.select_cluster(1)
    play()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert session.selection.is_empty


def test_what_needs_a_restart_says_so_as_pca_with_its_own_edges(dock, session, play):
    play()
    game, run = dock.method_controls, dock.run_controls
    method, affinity = game.controls["method"], game.controls["affinity"]
    assert (game.repulsion.min, game.repulsion.max) == (10, 10_000)  # 300 by default
    assert game.stale.isHidden()
    game.controls["n_neighbors"].value = 30
    assert game.stale.text().endswith("with these, Continue plays on from it.")
    assert run.continue_button.isVisibleTo(dock)
    affinity.value = "uniform"
    assert "inner_products" not in affinity.choices
    method.value = "pca"
    listed = method.native.currentText()
    assert listed == "From the papers > PCA by attraction and repulsion"
    assert not run.continue_button.isVisibleTo(dock)
    assert game.stale.text().endswith("Run again makes one with these.")
    assert affinity.choices == ("auto", "inner_products")
    assert session.settings.affinity == "auto"
    assert not game.repulsion.native.isVisibleTo(game.steering)
    for name in ("learning_rate", "large_picture"):
        assert game.controls[name].native.isHidden()
    play()
    assert "Finished" in run.stage.text()
    assert dock.trust_controls.figures.frame.loc["pressured_share"].iloc[2] == "–"
    affinity.value = "inner_products"
    method.value = "game"
    assert affinity.value == session.settings.affinity == "auto"
    assert "inner_products" not in affinity.choices
    play()
    assert game.stale.isHidden()
    assert not run.continue_button.isVisibleTo(dock)


CHOSEN = {
    "approximation": "sampled_edges",
    "large_picture": 2.5,
    "n_landmarks": 80,
    "n_neighbors": 30,
    "learning_rate": 0.2,
    "landmark_learning_rate": 0.4,
    "momentum": 0.0,
    "max_iter": 900,
    "schedule": "paper",
    "affinity": "uniform",
    "metric": "cosine",
    "init": "pca",
    "random_state": 5,
    "device": "cpu",
}


def test_every_setting_of_the_engine_has_its_control(dock, session):
    game, settings = dock.method_controls, session.settings
    for name, value in CHOSEN.items():
        game.controls[name].value = value
    assert {name: getattr(settings.value, name) for name in CHOSEN} == CHOSEN
    assert isinstance(settings.max_iter, int)
    game.controls["max_iter"].value = 0
    game.controls["momentum"].value = game.controls["momentum"].min
    assert (settings.max_iter, settings.momentum) == (None, None)
    texts = {name: game.controls[name].native.text() for name in AUTOMATICALLY}
    assert texts == {
        "learning_rate": "0.20",
        "landmark_learning_rate": "0.40",
        **dict.fromkeys(("momentum", "max_iter"), AUTOMATIC),
    }
    settings.momentum = 0.5
    game.controls["momentum"].value = -0.02  # which nobody can mean
    assert settings.momentum is None


def test_a_dock_that_is_opened_again_shows_what_is_set(
    play, qtbot, viewer, dock, session
):
    play()
    session.look.color_by = "c"  # a gene, which the list offers only while it is chosen
    session.settings.learning_rate = 0.5
    session.settings.n_neighbors = 30
    dock.close()
    session.look.split_by = "a column of former data"
    shown_alone = []

    class Watcher(QObject):
        def eventFilter(self, watched, event):
            if event.type() == QEvent.Type.Show and isinstance(watched, QWidget):
                shown_alone.extend([watched] * watched.isWindow())
            return False

    QApplication.instance().installEventFilter(watcher := Watcher())
    again = GameDock(viewer, dock.workspace, warm_up=False)
    QApplication.instance().removeEventFilter(watcher)
    qtbot.addWidget(again)
    try:
        assert not shown_alone
        assert again.display_controls.color_by.value == "c"
        assert again.display_controls.split_by.value == session.look.split_by == ""
        assert again.method_controls.controls["learning_rate"].value == 0.5
        assert not again.method_controls.stale.isHidden()
        colors = color_by_column_or_feature("c", session.dataset).rgba
        session.selection.select_points(np.arange(5))
        shown = again.controller.scene.map_layers.points.face_color
        np.testing.assert_allclose(shown[:5], colors[:5], atol=1e-6)
        assert len(np.unique(shown[:, :3], axis=0)) > 4  # not those of the clusters
        session.look.color_by = "kind"
        assert len(again.display_controls.legend.level_table.frame) == 2
        assert again.run_controls.run_button.text() == "Run again"
        again.run_controls.run_button.click()
        qtbot.waitUntil(lambda: session.state == "finished")
        assert [layer.name for layer in viewer.layers] == ["embedding", "landmarks"]
    finally:
        again.close()


def test_a_failure_is_told_and_mended_and_the_dock_usable_again(
    play, qtbot, session, dock, engine
):
    for error in (RuntimeError("CUDA error"), MemoryError()):
        engine.fail_at, engine.error = 30, error
        layers = play("failed")
        assert not dock.run_controls.message.isHidden()
        assert dock.run_controls.message.property("role") == "error"
        world = layers.to_world(session.snapshot.embedding)
        np.testing.assert_allclose(layers.points.data, world, atol=1e-3)
        assert session.snapshot.iteration == 20
        engine.fail_at = None
        play()
        assert dock.run_controls.message.isHidden()
    engine.warning = "The points are collapsing: raise the repulsion."
    engine.remedy = {"repulsion": 900.0, "landmark_learning_rate": None}
    play()
    mend = dock.run_controls.remedy_button
    assert mend.isVisibleTo(dock)
    assert mend.text() == "Run with Repulsion 900"  # the rate is automatic already
    assert dock.run_controls.message.text() == engine.warning
    assert dock.run_controls.message.property("role") == "warning"
    engine.warning, engine.remedy = "", {}
    QTest.mouseClick(mend, LEFT)
    assert session.settings.repulsion == 900
    assert dock.method_controls.repulsion.value == 900
    qtbot.waitUntil(lambda: session.state == "finished")
    assert engine.games[-1].repulsion == 900
    assert not mend.isVisibleTo(dock)
    assert not dock.run_controls.message.isVisibleTo(dock)


# Data


class Table:
    """A source that is refused until rows with missing values are left out."""

    name = "cells.csv"

    def __init__(self, dataset):
        self.dataset = dataset
        self.asked = []

    def read(self, options):
        yield Stage("Reading")
        self.asked.append((options.space, options.missing))
        if options.missing == "error":
            raise MissingValuesError(
                "cells.csv has 3 missing values in 2 of 42 rows: leave them out"
            )
        return ReadResult(dataset=self.dataset, spaces=["X", "obsm['X_pca']"])


def test_a_refused_file_says_why_keeps_the_data_and_offers_a_way_out(
    load, qtbot, session, dock, dataset
):
    source = Table(dataset)
    before = session.dataset
    dock.controller.reading.load(source)
    qtbot.waitUntil(lambda: not dock.data_controls.trouble.isHidden())
    assert dock.data_controls.trouble.text() == (
        "cells.csv has 3 missing values in 2 of 42 rows: leave them out (tick the box "
        "below)."
    )
    assert session.dataset is before
    assert dock.controller.reading.latest_request is None  # Run is of the data on show
    assert not dock.data_controls.drop_box.isHidden()
    load(dock.data_controls.drop_box.click)
    assert dock.data_controls.trouble.isHidden()
    assert source.asked == [(None, "error"), (None, "drop")]
    assert dock.data_controls.summary.text() == (
        "40 rows × 5 values, from X\nGroups: kind. Numbers: counts."
    )
    dock.controller.reading.load(other := Table(dataset))
    qtbot.waitUntil(lambda: not dock.data_controls.trouble.isHidden())
    assert not dock.data_controls.drop_box.isChecked()  # as it is of the data on show
    load(dock.data_controls.drop_box.click)
    assert other.asked == [(None, "error"), (None, "drop")]


def test_the_table_of_the_selected_layer(load, qtbot, viewer, session, dock, play):
    viewer.add_points(
        np.zeros((20, 2)),
        features={"area": np.arange(20.0), "shape": np.sqrt(np.arange(20))},
        name="nuclei",
    )
    load(dock.data_controls.start_panel.layer_button.click)
    assert session.dataset.X.shape == (20, 2)
    before = session.dataset
    play()
    assert viewer.layers.selection.active is dock.controller.scene.map_layers.points
    dock.data_controls.start_panel.layer_button.click()  # the map itself is no source
    assert dock.data_controls.trouble.text() == NO_TABLE
    assert session.dataset is before


ODD = {
    "n_landmarks": 5_000,
    "n_neighbors": 500,
    "perplexity": 0.5,
    "metric": "chebyshev",
    "device": "cuda:1",
    "repulsion": 1e-3,
    "learning_rate": 0.0004,
    "landmark_learning_rate": 25.0,
    "momentum": 0.995,
    "max_iter": 50_000,
}
"""Settings that a session file or a program can hold, and nobody chooses here."""


def test_settings_that_nobody_can_choose_are_shown_and_left_alone(
    viewer, qtbot, dock, session
):
    before = session.to_saved_map()
    settings = session.settings
    for name, value in ODD.items():
        setattr(settings, name, value)
    saved = session.to_saved_map()
    session.restore(before)
    session.restore(saved)
    again = GameDock(viewer, dock.workspace, warm_up=False)
    qtbot.addWidget(again)
    for opened in (dock, again):
        controls = {widget.name: widget for widget in opened.method_controls.controls}
        shown = {**controls, "repulsion": opened.method_controls.repulsion}
        assert {name: shown[name].value for name in ODD} == ODD
    assert {name: getattr(settings, name) for name in ODD} == ODD
    again.close()
