"""A viewer with the docks in it, driven by the fake engine, and no thread left."""

import gc
import importlib.util
import itertools
from contextlib import suppress
from functools import partial
from pathlib import Path
from weakref import WeakSet, ref

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.utils.colormaps.standardize_color import transform_color
from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QPoint, Qt, QTimer
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QFileDialog

from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.projection import layer_projection
from napari_embedding_game.ui.compat import find_canvas_widget
from napari_embedding_game.ui.game_dock import SELECTION, GameDock
from napari_embedding_game.ui.images.object_colors import COLOR
from napari_embedding_game.ui.tasks.worker import count_running_workers
from napari_embedding_game.ui.tour import Tour
from napari_embedding_game.ui.workspace import make_workspace

PATIENCE_MS = 60_000
"""How long a test waits for what must come: other tests run beside it."""
MANY_OBJECTS = 60_000
"""As many are looked through in 20 ms."""
LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


PUT_OFF = WeakSet()
"""Timers of what is done a little later."""


class NotedTimer(QTimer):
    """A timer that :func:`settle` knows."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        PUT_OFF.add(self)


@pytest.fixture(autouse=True)
def timers_are_noted(monkeypatch):
    monkeypatch.setattr("superqt.utils._throttler.QTimer", NotedTimer)


def settle(qtbot):
    """Wait until nothing that was put off is left to be done.

    Twice: what was due may have put something off.
    """

    def is_at_rest():
        alive = [timer for timer in PUT_OFF if isalive(timer)]
        return not any(map(QTimer.isActive, alive))

    for _ in range(2):
        turn = []
        QTimer.singleShot(0, lambda turn=turn: turn.append(True))
        qtbot.waitUntil(lambda turn=turn: bool(turn) and is_at_rest())
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def qtbot(qtbot):
    """Wait longer than pytest-qt does, and let a widget be gone at the end."""
    qtbot.waitUntil = partial(qtbot.waitUntil, timeout=PATIENCE_MS)
    qtbot.waitSignal = partial(qtbot.waitSignal, timeout=PATIENCE_MS)
    qtbot.settle = partial(settle, qtbot)
    made = []
    qtbot.addWidget = lambda widget: made.append(ref(widget))
    yield qtbot
    for widget in (one() for one in made):
        if widget is not None:
            with suppress(RuntimeError):  # a dock deletes itself when it is closed
                widget.agrees = True  # to be closed, where a test let it refuse
                widget.close()
                widget.deleteLater()


@pytest.fixture(autouse=True)
def no_thread_left(qtbot):
    yield
    qtbot.waitUntil(lambda: count_running_workers() == 0)


@pytest.fixture(autouse=True)
def collects_late(monkeypatch):
    """Leave out the collection after each closed dock, 0.3 s of the processor."""
    monkeypatch.setattr("napari_embedding_game.ui.map_widget.CLOSED_MS", 3_600_000)


@pytest.fixture(autouse=True)
def every_mouse_move_counts(monkeypatch):
    """Let vispy take moves that follow within 10 ms, as they do on a busy machine.

    It leaves them out, and the last one of a mouse that stops may be among them.
    """
    monkeypatch.setattr("vispy.app.base.default_timer", itertools.count(1).__next__)


@pytest.fixture(autouse=True)
def no_tour(monkeypatch):
    """Take the tour for seen, and write nothing into the user's settings."""
    monkeypatch.setattr(Tour, "begin_if_unseen", lambda tour: None)


@pytest.fixture(autouse=True)
def no_warm_up(monkeypatch):
    """Load the engine where it runs: the warm-up of a dock outlives most tests."""
    warm_up = "napari_embedding_game.ui.controller._compile_and_warm_up"
    monkeypatch.setattr(warm_up, lambda compilers: None)


@pytest.fixture(autouse=True)
def garbage_is_new():
    """Have full collections look at no more than the last tests have made.

    What was imported is half a million objects, and takes 0.3 s each time: a third of
    the time of a test with a window, as napari collects for each layer that goes.
    """
    if len(gc.get_objects()) > MANY_OBJECTS:
        gc.collect()
        gc.freeze()


@pytest.fixture
def session(engine, dataset):
    session = Session(engine, UNPACED)
    session.load(dataset)
    return session


@pytest.fixture
def workspace(viewer, session):
    """What the docks of the session share."""
    return make_workspace(viewer, session)


@pytest.fixture
def viewer():
    """A viewer without a window, which is made in no time."""
    return ViewerModel()


@pytest.fixture
def dock(qtbot, viewer, workspace, engine):
    dock = GameDock(viewer, workspace, warm_up=False)
    qtbot.addWidget(dock)
    yield dock
    engine.gate.set()
    dock.close()


class Inspector:
    """What a dock shows of clusters, selection and plots."""

    def __init__(self, dock):
        self.dock, self.workspace = dock, dock.workspace
        self.clusters, self.plots = dock.cluster_pane, dock.plots_tab
        self.details = dock.selection_tab
        self._tab = SELECTION
        self._selection = dock.workspace.session.selection
        self._selection.changed.connect(self._look, max_args=0)

    def _look(self):
        """Open the tab once something is selected: one that is closed hears nothing."""
        if not self._selection.is_empty:
            self.show(self._tab)

    @property
    def report(self):
        return self.dock.selection_tab.report

    def show(self, tab=SELECTION):
        self._tab = tab
        self.dock.show()
        self.dock.tabs.setCurrentIndex(tab)

    def resize(self, width, height):
        self.dock.resize(width, height)


@pytest.fixture
def inspector(dock):
    return Inspector(dock)


@pytest.fixture
def window(make_napari_viewer, monkeypatch):
    """A viewer with its window, which is not shown; it is napari's current one."""
    viewer = make_napari_viewer()
    monkeypatch.setattr("napari.current_viewer", lambda: viewer)
    return viewer


@pytest.fixture
def docked(window, workspace, engine):
    """The main dock in a window."""
    dock = GameDock(window, workspace, warm_up=False)
    window.window.add_dock_widget(dock, name="game")
    yield dock
    engine.gate.set()
    dock.controller.session_store.close()


class Seen:
    """A shown window with the dock in it, and the mouse over its canvas."""

    def __init__(self, viewer, dock, qtbot):
        self.viewer, self.dock, self.native = viewer, dock, find_canvas_widget(dock)
        self._qtbot = qtbot

    @property
    def layers(self):
        return self.dock.controller.scene.map_layers

    def pixels(self, places, layer=None):
        """Where positions of the map, or places of another layer, are drawn."""
        drawn = self.layers.projection()
        if layer is not None:
            drawn = layer_projection(self.viewer, layer, includes_slices=True)
        pixels = drawn.to_pixels(np.atleast_2d(np.asarray(places, float)))
        return [QPoint(*pixel) for pixel in np.round(pixels).astype(int).tolist()]

    def press(self, pixels, key=NONE):
        """Press at the first pixel, and drag through the others."""
        QTest.mouseMove(self.native, QPoint(2, 2))  # where it was it tells nothing
        self.move(pixels[:1])
        QTest.mousePress(self.native, LEFT, key, pixels[0])
        self.move(pixels)

    def move(self, pixels):
        for pixel in pixels:
            self._qtbot.wait(15)  # vispy drops a move within 10 ms of another
            QTest.mouseMove(self.native, pixel)

    def drag(self, pixels, key=NONE):
        """Press at the first pixel, and let go at the last."""
        self.press(pixels, key)
        QTest.mouseRelease(self.native, LEFT, key, pixels[-1])

    def click(self, pixel, key=NONE):
        QTest.mouseClick(self.native, LEFT, key, pixel)

    def key(self, key, modifier=NONE):
        QTest.keyClick(self.native, key, modifier)


@pytest.fixture
def look_at(qtbot):
    """The mouse over the canvas of a window with a dock."""
    return lambda viewer, dock: Seen(viewer, dock, qtbot)


@pytest.fixture
def seen(look_at, make_napari_viewer, workspace, qtbot, click_run):
    """A shown window with a map, for real clicks on its canvas.

    Windows are dear: what can be asked of one after another is.
    """
    viewer = make_napari_viewer(show=True)
    dock = GameDock(viewer, workspace, warm_up=False)
    viewer.window.add_dock_widget(dock, name="game")
    click_run(dock)
    qtbot.settle()
    yield look_at(viewer, dock)
    dock.controller.session_store.close()


@pytest.fixture
def click_run(qtbot, session):
    """Click on Run in a dock, wait for a state, and open what is folded."""

    def start(dock, until="finished"):
        dock.run_controls.run_button.click()
        qtbot.waitUntil(lambda: session.state == until)
        for fold in (dock.data_fold, dock.method_fold, dock.look_fold):
            fold.set_expanded(True)
        return dock.controller.scene.map_layers

    return start


@pytest.fixture
def play(dock, click_run):
    return lambda until="finished": click_run(dock, until)


@pytest.fixture
def load(qtbot, dock):
    """Have a source read, or do something, and wait for what is loaded."""

    def load(what):
        with qtbot.waitSignal(dock.controller.reading.loaded):
            what() if callable(what) else dock.controller.reading.load(what)
        QApplication.processEvents()
        return dock.workspace.session.dataset

    return load


@pytest.fixture
def answer(monkeypatch):
    """Answer each question for a file or a folder by a path, or by "": cancelled."""

    def answer(path):
        for question in ("getOpenFileName", "getSaveFileName"):
            monkeypatch.setattr(QFileDialog, question, lambda *_: (str(path), ""))
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(path))
        return path

    return answer


@pytest.fixture
def save(qtbot, dock, answer):
    """Choose in the menu what the ending of a path says, and wait for the file."""

    def save(path):
        words = "Session" if path.suffix == ".zip" else path.suffix
        actions = dock.run_controls.save_button.menu().actions()
        answer(path)
        with qtbot.waitSignal(dock.controller.writing.saved):
            next(a for a in actions if words in a.text()).trigger()
        return path

    return save


@pytest.fixture
def slow(session):
    """Have the session play so slowly that the test can do something meanwhile."""
    session.pace = 60.0


@pytest.fixture(scope="session")
def person_at_the_window():
    """The module ``tools/person.py``: what a person does in a window."""
    path = Path(__file__).parents[2] / "tools" / "person.py"
    spec = importlib.util.spec_from_file_location("person", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def person(make_napari_viewer, qtbot, person_at_the_window):
    """Somebody at a window of 1,500 pixels with the dock, who has little time."""
    person = person_at_the_window.Person(make_napari_viewer(show=True))
    person.viewer.window.resize(1500, 950)
    person.session.pace = 0.5  # seconds, where a window has 2
    person.session.settings.max_iter = 100
    yield person
    person.dock.close()
    qtbot.waitUntil(lambda: count_running_workers() == 0, timeout=60_000)


@pytest.fixture
def from_menu(person_at_the_window):
    """Trigger an entry of a menu by the texts that lead to it, as a person does."""
    return person_at_the_window.trigger


@pytest.fixture
def lit():
    """Which labels of a layer are shown in the colour of what is selected."""

    def lit(layer):
        finest = layer.data[0] if layer.multiscale else layer.data
        labels = np.unique(np.asarray(finest))
        colors = layer.colormap.map(labels)
        return labels[np.isclose(colors, transform_color(COLOR)).all(axis=1)].tolist()

    return lit
