"""The dock as a person uses it: clicks in, states and texts out."""

import gc
import threading
from unittest.mock import MagicMock

import numpy as np
import pytest
from qtpy.QtCore import QEvent, QMimeData, QObject, QPoint, QPointF, Qt, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QApplication,
    QProgressBar,
    QScrollArea,
    QWidget,
)
from superqt import QCollapsible

from napari_embedding_game.core import settings as choices
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.run.engine import CoreEngine
from napari_embedding_game.session.sources import LoadResult
from napari_embedding_game.ui.controls.method import (
    AUTOMATICALLY,
    MethodControls,
)
from napari_embedding_game.ui.controls.method_choices import AUTOMATIC
from napari_embedding_game.ui.controls.run import STOPPED, WORDS_MS
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.style.busy_bar import STEP_MS, STEPS, BusyBar, move_bar
from napari_embedding_game.ui.style.coloring import of_column
from napari_embedding_game.ui.style.colors import to_hex
from napari_embedding_game.ui.style.texts import NO_PRESSURE
from napari_embedding_game.ui.tasks.gc_guard import AFTER_CLOSE_MS, GcGuard
from napari_embedding_game.ui.tasks.worker import Worker
from napari_embedding_game.ui.workspace import Workspace

STEPPED = ("optimistic", "adaptive_rates")


def test_run_is_the_first_click(play, session, dock):
    assert dock.run.run.text == "Run"
    figures = (dock.run.status, dock.run.squeezed, dock.run.curve)
    assert all(widget.isHidden() for widget in figures)  # there is nothing to tell
    layers = play()
    assert not any(widget.isHidden() for widget in figures)
    for layer, positions in (
        (layers.points, session.snapshot.embedding),
        (layers.landmarks, session.snapshot.landmarks),
    ):
        np.testing.assert_allclose(layer.data, layers.to_world(positions), atol=1e-3)
    assert dock.run.run.text == "Run again"
    assert "Finished" in dock.run.stage.text()
    assert dock.run.squeezed.text().startswith("25% of points crowded")


def role_of(button):
    return button.native.property("role") or ""


def test_one_button_is_to_be_pressed_next(dock, play, session):
    data, run = dock.data, dock.run
    assert role_of(run.run) == "main"
    assert role_of(data.open_button) == ""
    assert "Press Run" in run.stage.text()
    run.note_offer(True)
    assert role_of(run.run) == ""
    assert "Prepare the data" in run.stage.text()
    run.note_offer(False)
    play()
    assert role_of(run.run) == ""
    session.load(None)
    assert role_of(data.open_button) == "main"
    assert dock.look.isHidden()


def test_run_and_what_goes_wrong_are_seen_wherever_the_dock_is_scrolled(dock):
    inside = dock.findChild(QScrollArea).widget()
    run = dock.run
    for seen in (run.run.native, run.pause.native, run.stage, run.message):
        assert not inside.isAncestorOf(seen)
        assert dock.isAncestorOf(seen)
    assert inside.isAncestorOf(run.curve)


def test_a_file_is_dropped_on_the_dock(dock, tmp_path, qtbot):
    path = tmp_path / "cells.csv"
    path.write_text("a,b\n" + "\n".join(f"{i},{i % 3}" for i in range(20)))
    with qtbot.waitSignal(dock.controller.reading.loaded):
        drop(dock, path)
    assert dock.data.title.text() == "cells.csv"
    drop(dock, tmp_path / "absent.csv")
    qtbot.waitUntil(lambda: "absent.csv" in dock.data.trouble.text())
    wanted = MagicMock()
    dock.data.open_session_requested.connect(wanted)
    drop(dock, tmp_path / "earlier.zip")
    wanted.assert_called_once_with(tmp_path / "earlier.zip")


def drop(dock, path):
    files = QMimeData()
    files.setUrls([QUrl.fromLocalFile(str(path))])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    copied = Qt.DropAction.CopyAction, files, left, none
    enter = QDragEnterEvent(QPoint(5, 5), *copied)
    QApplication.sendEvent(dock, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(dock, QDropEvent(QPointF(5, 5), *copied))


def test_a_game_of_many_points_is_on_a_grid_until_landmarks_are_chosen(
    play, session, dock, dataset, engine, monkeypatch
):
    monkeypatch.setattr(choices, "MANY_POINTS", len(dataset.obs))
    session.load(dataset)
    approximation = dock.game.controls["approximation"]
    assert approximation.value == "mesh"
    play()
    assert engine.games[-1].approximation == "mesh"
    assert session.settings.approximation is None
    approximation.value = "landmarks"
    assert session.steered.approximation == "landmarks"
    assert not session.stale
    monkeypatch.undo()


def test_without_data_there_is_a_hint_and_nothing_to_run(viewer, engine):
    from napari_embedding_game.session.session import Session
    from napari_embedding_game.ui.game_dock import GameDock

    dock = GameDock(viewer, Workspace(Session(engine)), warm_up=False)
    assert "Open a table" in dock.data.summary.text()
    assert not dock.run.run.enabled
    dock.close()


def test_what_can_be_pressed_in_each_state(play, qtbot, session, dock, engine):
    def enabled():
        run = dock.run
        buttons = (run.run, run.pause, run.step, run.stop, run.save)
        return "".join("x" if button.enabled else "." for button in buttons)

    assert enabled() == "x...."
    engine.gate.clear()
    play("preparing")
    assert enabled() == "x..x."
    session.run.pause()
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "paused")
    assert enabled() == "xxxx."
    assert dock.run.pause.text == "Resume"
    dock.run.stop.native.click()
    assert enabled() == "x...x"


def test_pause_step_and_resume_by_click(play, qtbot, session, dock, engine):
    engine.gate.clear()
    play("preparing")
    session.run.pause()
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "paused")
    first = session.snapshot.iteration
    dock.run.step.native.click()
    qtbot.waitUntil(lambda: session.snapshot.iteration > first)
    assert session.state == "paused"
    dock.run.pause.native.click()
    qtbot.waitUntil(lambda: session.state == "finished")


def test_the_slider_steers_the_finished_game(play, qtbot, session, dock, engine):
    play()
    dock.game.repulsion_slider.value = 3.0
    assert dock.game.paper_lambda.text() == "default 300  ·  λ = 25"
    qtbot.waitUntil(lambda: session.snapshot.iteration == 70)
    assert engine.games[-1].repulsion == 1000.0
    assert dock.game.repulsion.value == 1000.0


def test_a_stopped_game_is_steered_as_a_finished_one(
    play, qtbot, session, dock, engine
):
    engine.gate.clear()
    play("preparing")
    session.run.pause()
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "paused")
    QTest.mouseClick(dock.run.stop.native, Qt.MouseButton.LeftButton)
    assert dock.run.stage.text() == STOPPED
    before = session.snapshot.iteration
    for widget, value in (
        (dock.game.repulsion, 600),
        (dock.game.controls["n_landmarks"], 30),
    ):
        widget.value = value
        assert session.state == "preparing"
        qtbot.waitUntil(lambda: session.state == "finished")
        session.stop()
    played = engine.games[-1]
    assert (played.repulsion, played.n_landmarks) == (600.0, 30)
    assert session.snapshot.iteration != before
    told = [mark.label for mark in session.timeline.marks]
    assert "Repulsion 300 to 600" in told
    session.look_back(session.timeline.marks[0].number)
    dock.game.repulsion.value = 70  # of an earlier moment: Continue is what plays on
    assert session.state == "stopped"


def test_number_and_slider_of_the_repulsion_agree(dock, session):
    dock.game.repulsion.value = 70
    assert session.settings.repulsion == 70
    assert dock.game.repulsion_slider.value == pytest.approx(np.log10(70), abs=0.01)
    assert dock.game.paper_lambda.text() == "default 300  ·  λ = 1.75"


def test_pca_is_in_the_list_with_its_own_edges_and_nothing_to_steer(dock, session):
    game = dock.game
    game.controls["affinity"].value = "uniform"
    assert "inner_products" not in game.controls["affinity"].choices
    game.controls["method"].value = "pca"
    listed = game.controls["method"].native.currentText()
    assert listed == "From the papers > PCA by attraction and repulsion"
    assert game.controls["affinity"].choices == ("auto", "inner_products")
    assert session.settings.affinity == "auto"
    assert not game.repulsion.enabled
    assert game.paper_lambda.text() == "cannot be steered"
    game.controls["affinity"].value = "inner_products"
    game.controls["method"].value = "pca_low_rank"
    assert game.controls["affinity"].value == "inner_products"
    game.controls["method"].value = "game"
    assert game.controls["affinity"].value == session.settings.affinity == "auto"
    assert "inner_products" not in game.controls["affinity"].choices


def test_entropic_edges_are_asked_for_their_perplexity_and_others_for_neighbours(
    dock, session
):
    def shown():
        asked = {
            "neighbours": game.controls["n_neighbors"],
            "perplexity": game.controls["perplexity"],
        }
        return [n for n, w in asked.items() if not w.native.isHidden()]

    game = dock.game
    assert shown() == ["neighbours"]
    game.controls["method"].value = "tsne"
    assert shown() == ["perplexity"]
    game.controls["perplexity"].value = 12
    assert session.settings.value.perplexity == 12
    game.controls["affinity"].value = "uniform"
    assert shown() == ["neighbours"]
    game.controls["affinity"].value = "auto"
    game.controls["method"].value = "game"
    assert shown() == ["neighbours"]
    session.settings.method = "ssne"
    game.show_settings()
    assert shown() == ["perplexity"]


@pytest.mark.parametrize(
    ("method", "idle"),
    [
        ("pca", {"learning_rate"}),
        ("tsne", set()),
    ],
)
def test_what_has_no_say_in_a_method_cannot_be_changed(dock, method, idle):
    game = dock.game
    game.controls["method"].value = method
    asked = {"learning_rate", "landmark_learning_rate", "schedule", "max_iter"}
    content = game.more.content()  # folded away, so that none of them acts
    idling = {n for n in asked if not game.controls[n].native.isEnabledTo(content)}
    assert idling == idle
    assert game.repulsion.enabled == (method == "tsne")


def test_without_landmarks_the_reason_is_told(dock):
    game = dock.game
    assert "Not landmarks" not in game.controls["approximation"].tooltip
    game.controls["method"].value = "umap"
    assert "landmarks" not in game.controls["approximation"].choices
    assert "infinite where two points meet" in game.controls["approximation"].tooltip
    assert game.paper_lambda.text() == "default 5"
    game.controls["method"].value = "tsne"
    assert game.paper_lambda.text() == "default 1"
    assert "Not landmarks" not in game.controls["approximation"].tooltip


def test_pca_comes_to_rest_without_pressure(play, session, dock):
    dock.game.controls["method"].value = "pca"
    play()
    assert "come to rest" in dock.run.stage.text()
    assert dock.run.squeezed.text() == NO_PRESSURE


def test_settings_of_a_restored_map_are_shown_with_its_edges(dock, session):
    session.settings.choose_method("pca")
    session.settings.affinity = "inner_products"
    dock.game.show_settings()
    assert dock.game.controls["method"].value == "pca"
    assert dock.game.controls["affinity"].value == "inner_products"


def test_every_setting_of_the_engine_has_its_control(dock, session):
    game, settings = dock.game, session.settings
    game.controls["approximation"].value = "sampled_edges"
    game.controls["n_landmarks"].value = 80
    game.controls["n_neighbors"].value = 30
    game.controls["learning_rate"].value = 0.2
    game.controls["landmark_learning_rate"].value = 0.4
    game.controls["momentum"].value = 0.0
    game.controls["max_iter"].value = 900
    game.controls["schedule"].value = "paper"
    game.controls["affinity"].value = "uniform"
    game.controls["metric"].value = "cosine"
    game.controls["init"].value = "pca"
    game.controls["random_state"].value = 5
    game.controls["device"].value = "cpu"
    assert (settings.approximation, settings.n_landmarks) == ("sampled_edges", 80)
    assert (settings.learning_rate, settings.landmark_learning_rate) == (0.2, 0.4)
    assert (settings.momentum, settings.max_iter) == (0.0, 900)
    assert isinstance(settings.max_iter, int)
    start = settings.value
    assert (start.n_neighbors, start.metric, start.init) == (30, "cosine", "pca")
    assert (start.affinity, start.random_state, start.device) == ("uniform", 5, "cpu")
    game.controls["max_iter"].value = 0
    game.controls["momentum"].value = game.controls["momentum"].min
    assert (settings.max_iter, settings.momentum) == (None, None)
    texts = {name: game.controls[name].native.text() for name in AUTOMATICALLY}
    automatic = dict.fromkeys(("momentum", "max_iter"), AUTOMATIC)
    assert texts == {
        "learning_rate": "0.20",
        "landmark_learning_rate": "0.40",
        **automatic,
    }
    settings.momentum = 0.5
    game.controls["momentum"].value = -0.02  # which nobody can mean
    assert settings.momentum is None


def test_an_optimiser_is_chosen_and_run(docked, qtbot, session, click_run):
    session._engine = CoreEngine()
    game = docked.game
    docked.method_fold.expand(animate=False)
    game.more.expand()
    assert "homotopy" not in game.controls["optimizer"].choices
    game.controls["optimizer"].value = "spectral_direction"
    game.controls["affinity"].value = "lle"  # of which some push
    assert game.controls["optimizer"].choices == ("game", "lbfgs", *STEPPED)
    assert game.controls["optimizer"].value == session.settings.optimizer == "game"
    game.controls["affinity"].value = "auto"
    game.controls["method"].value = "ee"
    assert len(game.controls["optimizer"].choices) == 7
    game.controls["optimizer"].value = "pressured_points"
    assert game.controls["approximation"].value == "exact"
    of_the_players = (
        game.controls["learning_rate"],
        game.controls["landmark_learning_rate"],
        game.controls["schedule"],
    )
    assert not any(w.enabled for w in (game.controls["approximation"], *of_the_players))
    assert game.repulsion.enabled
    docked.run.run.native.click()
    qtbot.waitUntil(lambda: session.state == "finished", timeout=60_000)
    before = session.snapshot
    assert session.played.settings.optimizer == "pressured_points"
    game.controls["optimizer"].value = "homotopy"
    assert session.snapshot is before
    assert not game.stale.isHidden()
    game.controls["method"].value = "umap"
    assert game.controls["optimizer"].choices == ("game", *STEPPED)
    assert session.settings.optimizer == "game"
    assert all(w.enabled for w in of_the_players)
    session.stop()


def test_work_of_which_nobody_knows_the_end_is_told_without_one(
    dock, session, make_snapshot
):
    session.dataset_changed.emit(session.dataset)
    dock.run._tell_snapshot(make_snapshot(iteration=1_200, n_iter=0))
    assert dock.run.status.text().startswith("1,200 iterations")
    assert dock.run.bar.value == 0
    dock.run._tell_snapshot(make_snapshot(iteration=10, n_iter=50))
    assert dock.run.status.text().startswith("10 of 50 iterations")
    assert (dock.run.bar.value, dock.run.bar.max) == (10, 50)


def test_what_needs_a_restart_says_so(play, dock):
    play()
    assert dock.game.stale.isHidden()
    dock.game.controls["n_neighbors"].value = 30
    assert not dock.game.stale.isHidden()
    assert dock.game.continue_stale.native.isVisibleTo(dock)
    dock.game.controls["method"].value = "pca"
    assert not dock.game.continue_stale.native.isVisibleTo(dock)
    assert "Run again makes one" in dock.game.stale.text()
    dock.game.controls["method"].value = "game"
    play()
    assert dock.game.stale.isHidden()
    assert not dock.game.continue_stale.native.isVisibleTo(dock)


def test_other_neighbours_are_used_without_a_restart(play, qtbot, dock, session):
    play()
    drawn, run = dock.controller.layers.points, session.run
    dock.game.controls["n_neighbors"].value = 30
    QTest.mouseClick(dock.game.continue_stale.native, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: session.run is not run and session.state == "finished")
    assert session.played.settings.n_neighbors == 30
    assert session.played.is_branch
    assert dock.controller.layers.points is drawn
    assert dock.game.stale.isHidden()


def test_a_dock_that_is_opened_again_shows_what_is_set(
    play, qtbot, viewer, dock, session
):
    play()
    session.look.color_by = "c"  # a gene, which the list offers only while it is chosen
    session.settings.learning_rate = 0.5
    session.settings.n_neighbors = 30
    dock.close()
    again = GameDock(viewer, dock.workspace, warm_up=False)
    qtbot.addWidget(again)
    try:
        assert again.look.color_by.value == "c"
        assert again.game.controls["learning_rate"].value == 0.5
        assert not again.game.stale.isHidden()
        colors = of_column("c", session.dataset).rgba
        session.selection.select_points(np.arange(5))
        shown = again.controller.layers.points.face_color
        np.testing.assert_allclose(shown[:5], colors[:5], atol=1e-6)
        assert len(np.unique(shown[:, :3], axis=0)) > 4  # not those of the clusters
    finally:
        again.close()


@pytest.mark.parametrize("error", [RuntimeError("CUDA error"), MemoryError()])
def test_a_failure_is_told_and_the_dock_usable_again(
    play, qtbot, session, dock, engine, error
):
    engine.fail_at, engine.error = 30, error
    layers = play("failed")
    assert not dock.run.message.isHidden()
    assert dock.run.message.property("role") == "error"
    world = layers.to_world(session.snapshot.embedding)
    np.testing.assert_allclose(layers.points.data, world, atol=1e-3)
    assert session.snapshot.iteration == 20
    engine.fail_at = None
    play()
    assert dock.run.message.isHidden()


def test_what_the_engine_knows_to_mend_is_mended_with_a_click(
    play, dock, engine, session, qtbot
):
    engine.warning = "The points are collapsing: raise the repulsion."
    engine.remedy = {"repulsion": 900.0, "landmark_learning_rate": None}
    play()
    mend = dock.run.mend
    assert mend.native.isVisibleTo(dock)
    assert mend.text == "Run again with Repulsion 900"  # the rate is automatic already
    engine.warning, engine.remedy = "", {}
    QTest.mouseClick(mend.native, Qt.MouseButton.LeftButton)
    assert session.settings.repulsion == 900
    assert dock.game.repulsion.value == 900
    qtbot.waitUntil(lambda: session.state == "finished")
    assert engine.games[-1].repulsion == 900
    assert not mend.native.isVisibleTo(dock)
    assert not dock.run.message.isVisibleTo(dock)


def test_without_a_remedy_there_is_no_button(play, dock, engine, session):
    assert not dock.run.mend.native.isVisibleTo(dock)
    engine.warning = "The points are collapsing."
    play()
    assert not dock.run.mend.native.isVisibleTo(dock)
    session.say("Something else.")
    assert not dock.run.mend.native.isVisibleTo(dock)


def test_a_warning_of_the_game_is_shown(play, dock, engine):
    engine.warning = "The points are collapsing: raise the repulsion."
    play()
    assert dock.run.message.text() == engine.warning
    assert dock.run.message.property("role") == "warning"


def test_every_control_explains_itself(dock):
    kinds = ("QSpinBox", "QDoubleSpinBox", "QComboBox", "QPushButton", "QSlider")
    dock.game.more.expand()
    silent = [
        w
        for w in dock.findChildren(QWidget)
        if w.metaObject().className() in kinds
        and w.isVisibleTo(dock)
        and not w.toolTip()
        and not w.parentWidget().toolTip()
        and not isinstance(w.parentWidget(), QCollapsible)
    ]
    assert silent == []


def test_escape_in_the_dock_clears_the_selection(play, qtbot, session, dock):
    play()
    session.selection.select(1)
    qtbot.keyClick(dock, Qt.Key.Key_Escape)
    assert session.selection.clusters == ()


def test_themes_change_while_running(play, viewer, dock):
    play()
    dark = dock.styleSheet()
    viewer.theme = "light"
    assert dock.styleSheet() != dark


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
        return LoadResult(dataset=self.dataset, spaces=["X", "obsm['X_pca']"])


def test_a_refused_file_says_why_keeps_the_data_and_offers_a_way_out(
    qtbot, session, dock, dataset
):
    source = Table(dataset)
    before = session.dataset
    dock.controller.reading.load(source)
    qtbot.waitUntil(lambda: not dock.data.trouble.isHidden())
    assert dock.data.trouble.text() == (
        "cells.csv has 3 missing values in 2 of 42 rows: leave them out (tick the box "
        "below)."
    )
    assert session.dataset is before
    assert not dock.data.drop.native.isHidden()
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.data.drop.native.click()
    assert dock.data.trouble.isHidden()
    assert source.asked == [(None, "error"), (None, "drop")]
    assert "40 rows × 5 values, from X" in dock.data.summary.text()


@pytest.mark.parametrize("error", [DataError("No map."), InputError("No map.")])
def test_what_is_refused_after_reading_is_told(qtbot, dock, dataset, error):
    def refuse():
        raise error

    dock.controller.reading.load(
        Table(dataset), ReadOptions(missing="drop"), then=refuse
    )
    qtbot.waitUntil(lambda: not dock.data.trouble.isHidden())
    assert dock.data.trouble.text() == "No map."


def test_another_space_is_read_at_once(qtbot, dock, dataset):
    source = Table(dataset)
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.controller.reading.load(source, ReadOptions(missing="drop"))
    assert list(dock.data.space.choices) == ["X", "obsm['X_pca']"]
    with qtbot.waitSignal(dock.controller.trouble):
        dock.data.space.value = "obsm['X_pca']"
    qtbot.waitUntil(lambda: len(source.asked) == 2)
    assert source.asked[-1][0] == "obsm['X_pca']"


def test_the_newest_of_two_wishes_is_loaded(qtbot, session, dock, dataset):
    import threading

    gate = threading.Event()

    class Slow(Table):
        def read(self, options):
            yield Stage("Waiting")
            gate.wait(5)
            raise DataError("too late")

    dock.controller.reading.load(Slow(dataset))
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.controller.reading.load(Table(dataset), ReadOptions(missing="drop"))
    gate.set()
    qtbot.wait(50)
    assert dock.data.trouble.isHidden()


def test_the_table_of_the_selected_layer(qtbot, viewer, session, dock):
    viewer.add_points(
        np.zeros((20, 2)),
        features={"area": np.arange(20.0), "shape": np.sqrt(np.arange(20))},
        name="nuclei",
    )
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.data.layer_button.native.click()
    assert session.dataset.X.shape == (20, 2)


def test_a_layer_without_a_table_is_explained(viewer, dock):
    viewer.add_image(np.zeros((8, 8)))
    dock.data.layer_button.native.click()
    assert "Select a layer with a table" in dock.data.trouble.text()


def test_the_result_is_saved(play, qtbot, session, dock, tmp_path, dataset):
    import anndata

    play()
    with qtbot.waitSignal(dock.controller.writing.saved):
        dock.controller.writing.save(tmp_path / "map.h5ad")
    written = anndata.read_h5ad(tmp_path / "map.h5ad")
    assert written.obsm["X_embedding_game"].shape == (40, 2)
    assert list(written.obs_names) == list(dataset.obs.index)
    assert "Saved map.h5ad" in dock.run.stage.text()
    # In scanpy the clusters have the colours that they have here.
    names = list(written.obs["embedding_game_cluster"].cat.categories)
    colors = written.uns["embedding_game_cluster_colors"]
    for cluster in session.clusters.clusters:
        (row, *_) = session.clusters.clustering.rows(cluster.id)
        shown = dock.controller.layers.points.face_color[row]
        assert to_hex(shown) == colors[names.index(cluster.name)]


def test_a_result_that_cannot_be_saved_says_why(play, qtbot, dock, tmp_path):
    play()
    with qtbot.waitSignal(dock.controller.busy_changed):
        dock.controller.writing.save(tmp_path / "no folder" / "map.h5ad")
    qtbot.waitUntil(lambda: not dock.data.trouble.isHidden())


def test_stop_during_the_search_is_told_and_another_run_can_begin(
    play, qtbot, session, dock, engine
):
    engine.gate.clear()
    play("preparing")
    qtbot.waitUntil(lambda: dock.run.stage.text() == "Finding neighbours …")
    dock.run.stop.native.click()
    assert dock.run.stage.text() == "Stopped before there was a map."
    assert (dock.run.run.text, dock.run.run.enabled) == ("Run", True)
    assert (dock.run.bar.native.value(), dock.run.bar.native.maximum()) == (0, 100)
    assert not dock.run.stop.enabled
    dock.run.run.native.click()
    qtbot.waitUntil(lambda: "earlier work" in dock.run.stage.text())
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "finished")


class Paints(QObject):
    """Counts how often a widget is drawn."""

    def __init__(self, widget):
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched, event):
        self.count += event.type() == QEvent.Type.Paint
        return False


def test_a_bar_that_moves_is_drawn_later(qtbot):
    bar = QProgressBar()
    qtbot.addWidget(bar)
    bar.show()
    qtbot.waitExposed(bar)
    qtbot.wait(20)
    paints = Paints(bar)
    for value in range(10, 60, 10):
        move_bar(bar, value, 80)
    assert paints.count == 0
    qtbot.waitUntil(lambda: paints.count > 0)
    assert (bar.value(), bar.maximum()) == (50, 80)


def test_work_without_an_end_moves_its_bar_a_few_times_a_second(qtbot):
    bar = QProgressBar()
    qtbot.addWidget(bar)
    bar.show()
    qtbot.waitExposed(bar)
    sweep = BusyBar(bar)
    sweep.begin()
    qtbot.wait(20)
    paints = Paints(bar)
    qtbot.wait(4 * STEP_MS)
    assert paints.count <= 6
    qtbot.waitUntil(lambda: paints.count >= 1)
    # It has been full and empties.
    qtbot.waitUntil(lambda: bar.property("invertedAppearance"))
    assert bar.maximum() == STEPS
    sweep.end()
    move_bar(bar, 30, 100)
    qtbot.wait(2 * STEP_MS)
    assert (bar.value(), bar.maximum()) == (30, 100)
    assert not bar.property("invertedAppearance")


def test_words_that_wait_for_their_turn_are_dropped_when_the_run_stops(
    slow, play, qtbot, session, dock
):
    play("running")
    qtbot.waitUntil(lambda: dock.run._progress is not None)
    for _ in range(3):  # the first is told at once, the others wait
        session.progressed.emit(dock.run._progress)
    dock.run.stop.native.click()
    qtbot.waitUntil(lambda: session.state == "stopped")
    qtbot.wait(2 * WORDS_MS)
    assert dock.run.stage.text() == STOPPED


def test_full_collections_wait_for_the_end_of_the_run(slow, play, dock, monkeypatch):
    collected = []

    class DueForAll:
        get_threshold = staticmethod(lambda: (700, 10, 10))
        get_count = staticmethod(lambda: (10_000, 100, 100))
        collect = staticmethod(lambda which=2: collected.append(which))

    play("running")
    monkeypatch.setattr(GcGuard, "_was_enabled", True)
    with monkeypatch.context() as patched:
        patched.setattr("napari_embedding_game.ui.tasks.gc_guard.gc", DueForAll)
        dock.controller._gc_guard.collect()
        assert collected == [1]
        dock.run.pause.native.click()
        dock.controller._gc_guard.collect()
        assert collected == [1, 2]


def test_garbage_is_collected_in_the_thread_of_the_window_alone(qtbot, dock):
    threads = set()

    class Circle:
        def __init__(self):
            self.myself = self

        def __del__(self):
            threads.add(threading.current_thread())

    assert not gc.isenabled()
    Worker(lambda: [Circle() for _ in range(20_000)] and None).begin()
    qtbot.waitUntil(lambda: bool(threads))
    assert threads == {threading.main_thread()}


def test_after_the_last_dock_python_collects_again(qtbot, monkeypatch):
    monkeypatch.setattr(GcGuard, "_open", set())
    monkeypatch.setattr(GcGuard, "_is_ours", False)
    was_enabled = gc.isenabled()
    gc.enable()
    one, other = GcGuard(), GcGuard()
    assert not gc.isenabled()
    one.close()
    qtbot.wait(3 * AFTER_CLOSE_MS)
    assert not gc.isenabled()
    other.close()
    qtbot.waitUntil(gc.isenabled)
    if not was_enabled:
        gc.disable()


def test_a_warm_up_that_fails_is_told_to_developers(viewer, monkeypatch, qtbot, caplog):
    from napari_embedding_game.session.session import Session
    from napari_embedding_game.ui.game_dock import GameDock

    def fail():
        raise RuntimeError("no index")

    monkeypatch.setattr("napari_embedding_game.ui.controller.engine.warm_up", fail)
    dock = GameDock(viewer, Workspace(Session()))
    qtbot.waitUntil(lambda: "could not be warmed up" in caplog.text)
    assert "no index" in caplog.text
    dock.close()


@pytest.mark.parametrize("end", ["fails", "is stopped"])
def test_a_run_that_ends_before_its_map_leaves_no_empty_layers(
    play, qtbot, session, dock, engine, viewer, end
):
    engine.gate.clear()
    play("preparing")
    qtbot.waitUntil(lambda: len(viewer.layers) == 2)
    assert not any(layer.visible for layer in viewer.layers)
    if end == "fails":
        engine.fail_at = 0
    else:
        dock.run.stop.native.click()
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state in ("failed", "stopped"))
    qtbot.waitUntil(lambda: not viewer.layers)


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
    before = session.capture()
    settings = session.settings
    for name, value in ODD.items():
        setattr(settings, name, value)
    saved = session.capture()
    session.restore(before)
    session.restore(saved)
    again = GameDock(viewer, dock.workspace, warm_up=False)
    qtbot.addWidget(again)
    for opened in (dock, again):
        controls = {widget.name: widget for widget in opened.game.controls}
        shown = {**controls, "repulsion": opened.game.repulsion}
        assert {name: shown[name].value for name in ODD} == ODD
    assert {name: getattr(settings, name) for name in ODD} == ODD
    again.close()


@pytest.mark.parametrize("approximation", [None, "landmarks", "sampled_edges"])
@pytest.mark.parametrize("optimizer", ["spectral_direction", "homotopy", "game"])
@pytest.mark.parametrize("method", ["umap", "pca", "game"])
def test_a_dock_opens_with_settings_that_contradict_each_other(
    qtbot, session, method, optimizer, approximation
):
    settings = session.settings
    settings.method, settings.optimizer = method, optimizer
    settings.approximation = approximation
    before = settings.value
    part = MethodControls(session)
    qtbot.addWidget(part)
    assert settings.value == before
    part.controls["method"].value = "tsne"  # the way out of any contradiction
