"""A viewer with the docks in it, driven by the fake engine, and no thread left."""

from functools import partial

import pytest
from napari.components import ViewerModel

from napari_embedding_game.session import autosave
from napari_embedding_game.session.run import UNPACED, Pace
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.dock import GameDock
from napari_embedding_game.ui.inspector import InspectorDock
from napari_embedding_game.ui.worker import running_workers

PATIENCE_MS = 20_000
"""How long a test waits for what must come: other tests run beside it."""


@pytest.fixture
def qtbot(qtbot):
    """Wait longer than pytest-qt does by itself."""
    qtbot.waitUntil = partial(qtbot.waitUntil, timeout=PATIENCE_MS)
    return qtbot


@pytest.fixture(autouse=True)
def no_thread_left(qtbot):
    yield
    qtbot.waitUntil(lambda: running_workers() == 0)


@pytest.fixture(autouse=True)
def autosave_folder(tmp_path_factory, monkeypatch):
    """A folder for what is saved on the quiet, instead of the user's own."""
    folder = tmp_path_factory.mktemp("autosave")
    monkeypatch.setenv(autosave.FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
def session(engine, dataset):
    session = Session(engine, UNPACED)
    session.load(dataset)
    return session


@pytest.fixture
def viewer():
    """A viewer without a window, which is made in no time."""
    return ViewerModel()


@pytest.fixture
def dock(qtbot, viewer, session, engine):
    dock = GameDock(viewer, session, warm_up=False)
    qtbot.addWidget(dock)
    yield dock
    engine.gate.set()
    dock.shut_down()


@pytest.fixture
def inspector(qtbot, viewer, session):
    inspector = InspectorDock(viewer, session)
    qtbot.addWidget(inspector)
    yield inspector
    inspector.shut_down()


@pytest.fixture
def window(make_napari_viewer):
    """A viewer with its window, which is not shown."""
    return make_napari_viewer()


@pytest.fixture
def docked(window, session, engine):
    """The main dock in a window."""
    dock = GameDock(window, session, warm_up=False)
    window.window.add_dock_widget(dock, name="game")
    yield dock
    engine.gate.set()
    dock.player.keeper.close()


@pytest.fixture
def click_run(qtbot, session):
    """Click on Run in a dock and wait for a state."""

    def start(dock, until="finished"):
        dock.run.run.native.click()
        qtbot.waitUntil(lambda: session.state == until)
        return dock.player.layers

    return start


@pytest.fixture
def play(dock, click_run):
    return lambda until="finished": click_run(dock, until)


@pytest.fixture
def slow(session):
    """Have the session play so slowly that the test can do something meanwhile."""
    session._pace = Pace(seconds=60, shortest=60, deadline=600)
