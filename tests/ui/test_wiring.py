"""Which request of a view reaches the controller, and what each view is told."""

from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, call

import pytest
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.ui.canvas.brush import MapBrush
from napari_embedding_game.ui.canvas.hover import Hover
from napari_embedding_game.ui.controller import Controller
from napari_embedding_game.ui.controls.data import DataControls
from napari_embedding_game.ui.controls.display import DisplayControls
from napari_embedding_game.ui.controls.method import MethodControls
from napari_embedding_game.ui.controls.run import RunControls
from napari_embedding_game.ui.controls.selection import SelectionControls
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.images.relink import Relinker
from napari_embedding_game.ui.tasks.reading import ReadingTask
from napari_embedding_game.ui.tasks.session_store import SessionStore
from napari_embedding_game.ui.tasks.writing import WritingTask
from napari_embedding_game.ui.wiring import connect_views

PATH = Path("map.h5ad")
SOURCE, LINKED, TABLE, OPTIONS, LOADED, STAGE, LEGEND, FILE = (
    SimpleNamespace() for _ in range(8)
)


class Recorder(QObject):
    """Has signals; every other name that the real class has is a ``Mock``."""

    real: type

    def __init__(self):
        super().__init__()
        self.calls = Mock(spec=self.real)

    def __getattr__(self, name):
        return getattr(self.calls, name)


class DataView(Recorder):
    real = DataControls
    load_requested = Signal(object, object, object)
    reload_requested = Signal(object, object, object)
    cancel_requested = Signal()
    stop_requested = Signal()
    open_session_requested = Signal(object)
    recovery_requested = Signal(object)
    image_found = Signal()
    folder_located = Signal(object)
    recent_requested = Signal()
    map_requested = Signal(str)
    preparation_offered = Signal(bool)
    troubled = Signal()
    mixable_changed = Signal(object)


class GameView(Recorder):
    real = MethodControls
    dimensions_requested = Signal(int)
    continue_requested = Signal()


class RunView(Recorder):
    real = RunControls
    play_requested = Signal()
    continue_requested = Signal()
    carried_requested = Signal()
    save_requested = Signal(object)
    panels_requested = Signal(object)
    save_session_requested = Signal(object)
    copy_methods_requested = Signal()
    write_features_requested = Signal()
    mended = Signal()


class LookView(Recorder):
    real = DisplayControls
    answered = Signal()
    level_picked = Signal(int, bool)
    hiding_requested = Signal(str, int)
    placed = Signal(object)


class SelectionView(Recorder):
    real = SelectionControls
    lasso_toggled = Signal(bool)
    brush_toggled = Signal(bool)
    brush_resized = Signal(int)
    embed_requested = Signal(object, object)
    show_objects_requested = Signal()
    hand_requested = Signal(str)
    correction_toggled = Signal(bool)
    trouble = Signal(str)

    def note_asked(self, source):  # a Mock would take the layers as well
        self.calls.note_asked(source)


class HoverView(Recorder):
    real = Hover
    trouble = Signal(str)


class Reading(Recorder):
    real = ReadingTask
    asked = Signal(object, bool, object, object)
    loaded = Signal(object, object)
    cancelled = Signal()
    failed = Signal()
    incomplete = Signal()
    stage_changed = Signal(object)
    busy_changed = Signal()
    trouble = Signal(str)


class Relink(Recorder):
    real = Relinker
    changed = Signal(object)
    differs = Signal(str, bool)


class Writing(Recorder):
    real = WritingTask
    saved = Signal(str)
    copied = Signal(str)
    busy_changed = Signal()
    trouble = Signal(str)


class Brush(Recorder):
    real = MapBrush
    switched = Signal(bool)
    resized = Signal(int)
    told = Signal(str)
    sizes = (4, 200, 24)


class MockController(Recorder):
    real = Controller
    legend_changed = Signal(object)
    busy_changed = Signal(str)
    correction_told = Signal(str)
    trouble = Signal(str)
    warming_changed = Signal(bool)

    def __init__(self, dataset=None):
        super().__init__()
        self.reading, self.writing = Reading(), Writing()
        self.relink = Relink()
        self.session_store = Mock(spec=SessionStore)
        self.session_store.recovery_files.return_value = [FILE]
        self.session_store.recent.return_value = [(PATH, "Digits")]
        self.brush = Brush()
        self.pointing, self.drawing = Mock(), Mock()
        self.session = SimpleNamespace(dataset=dataset)


MOCKS = (DataView, GameView, RunView, LookView, SelectionView, HoverView)

ASKED = [
    (
        "data.load_requested",
        (SOURCE, LINKED, TABLE),
        "reading.load",
        call(SOURCE, linked=LINKED, table=TABLE),
    ),
    (
        "data.reload_requested",
        (OPTIONS, LINKED, None),
        "reading.reload",
        call(OPTIONS, LINKED, None),
    ),
    ("data.cancel_requested", (), "reading.cancel", call()),
    ("data.stop_requested", (), "reading.stop", call()),
    ("data.open_session_requested", (PATH,), "reading.open_session", call(PATH)),
    ("data.recovery_requested", (FILE,), "reading.bring_back", call(FILE)),
    ("data.recent_requested", (), "session_store.recent", call()),
    ("data.map_requested", ("map 2",), "session_store.open", call("map 2")),
    ("data.image_found", (), "relink.take_image", call()),
    ("data.folder_located", (PATH,), "relink.open_folder", call(PATH)),
    ("game.dimensions_requested", (3,), "change_dimensions", call(3)),
    ("game.continue_requested", (), "play_on", call()),
    ("run.play_requested", (), "play", call()),
    ("run.continue_requested", (), "play_on", call()),
    ("run.carried_requested", (), "play_carried", call()),
    ("run.save_requested", (PATH,), "writing.save", call(PATH)),
    ("run.panels_requested", (None,), "writing.ask_for_panels", call(None)),
    ("run.save_session_requested", (PATH,), "writing.save_session", call(PATH)),
    ("run.write_features_requested", (), "writing.write_features", call()),
    ("run.copy_methods_requested", (), "writing.copy_methods", call()),
    ("look.level_picked", (3, True), "select_level", call(3, True)),
    ("look.hiding_requested", ("hide", 3), "hide_level", call("hide", 3)),
    ("look.placed", ("cells",), "place", call("cells")),
    ("select.lasso_toggled", (True,), "pointing.set_lasso", call(True)),
    ("select.brush_toggled", (True,), "brush.set_on", call(True)),
    ("select.brush_resized", (30,), "brush.set_radius", call(30)),
    (
        "select.embed_requested",
        (SOURCE, OPTIONS),
        "embed_selection",
        call(SOURCE, OPTIONS),
    ),
    ("select.embed_requested", (None, None), "embed_selection", call(None, None)),
    ("select.show_objects_requested", (), "show_objects", call()),
    ("select.hand_requested", ("hold",), "steer_by_hand", call("hold")),
    ("select.correction_toggled", (True,), "show_true_neighbors", call(True)),
]
"""A signal, its values, the method that it reaches, and the call of it."""

TOLD = [
    (
        "reading.asked",
        (SOURCE, True, LINKED, TABLE),
        "data.note_asked",
        call(SOURCE, True, LINKED, TABLE),
    ),
    (
        "reading.asked",
        (SOURCE, True, LINKED, TABLE),
        "select.calls.note_asked",
        call(SOURCE),
    ),
    ("reading.loaded", (SOURCE, LOADED), "data.note_loaded", call(SOURCE, LOADED)),
    ("reading.loaded", (SOURCE, LOADED), "select.note_loaded", call(SOURCE, LOADED)),
    ("reading.cancelled", (), "data.go_back", call()),
    ("reading.failed", (), "data.go_back", call()),
    ("reading.incomplete", (), "data.offer_to_drop_rows", call()),
    ("reading.stage_changed", (STAGE,), "data.set_stage", call(STAGE)),
    ("reading.stage_changed", (None,), "data.set_stage", call(None)),
    ("reading.stage_changed", (STAGE,), "run.note_reading", call(STAGE)),
    ("warming_changed", (True,), "run.note_warming", call(True)),
    ("relink.changed", (LEGEND,), "data.set_missing", call(LEGEND)),
    (
        "relink.differs",
        ("1 is gone", True),
        "data.tell_changed",
        call("1 is gone", True),
    ),
    ("busy_changed", ("Reading …",), "data.set_busy", call("Reading …")),
    ("trouble", ("No space left.",), "data.set_trouble", call("No space left.")),
    ("writing.saved", ("a.csv",), "run.tell_saved", call("a.csv")),
    ("writing.copied", ("it",), "run.tell_copied", call("it")),
    ("legend_changed", (LEGEND,), "look.set_legend", call(LEGEND)),
    ("brush.switched", (True,), "select.show_brush", call(True)),
    ("brush.resized", (30,), "select.show_brush_size", call(30)),
    ("brush.told", ("2 selected.",), "select.tell_brush", call("2 selected.")),
    ("correction_told", ("2 drawn in",), "select.tell_correction", call("2 drawn in")),
]
"""A signal of the controller, its values, the setter, and the call of it."""


class Wired:
    """A mock of the controller and of each view, connected."""

    def __init__(self, controller):
        self.controller = controller
        self.views = SimpleNamespace(
            data=DataView(),
            game=GameView(),
            run=RunView(),
            look=LookView(),
            select=SelectionView(),
            hover=HoverView(),
        )
        self.connections = connect_views(controller, **vars(self.views))
        self.first = list(self.views.look.calls.mock_calls)
        """What the look was told before anything happened."""
        self.views.look.calls.reset_mock()
        self.sizes = list(self.views.select.calls.mock_calls)
        """What the selection was told then."""
        self.views.select.calls.reset_mock()


@pytest.fixture
def wired(qapp):
    return Wired(MockController())


def names_of_signals(owner):
    return {name for name, value in vars(owner).items() if isinstance(value, Signal)}


@pytest.mark.parametrize("mock", [*MOCKS, Reading, Writing, Brush, MockController])
def test_the_mocks_have_the_signals_of_what_they_stand_for(mock):
    assert names_of_signals(mock) == names_of_signals(mock.real)


@pytest.mark.parametrize(("signal", "values", "method", "expected"), ASKED)
def test_what_a_view_asks_for_reaches_the_controller(
    wired, signal, values, method, expected
):
    attrgetter(signal)(wired.views).emit(*values)
    assert attrgetter(method)(wired.controller).mock_calls == [expected]


@pytest.mark.parametrize(("signal", "values", "setter", "expected"), TOLD)
def test_what_the_controller_tells_reaches_the_view(
    wired, signal, values, setter, expected
):
    attrgetter(signal)(wired.controller).emit(*values)
    assert attrgetter(setter)(wired.views).mock_calls == [expected]


def test_no_request_of_a_view_is_left_out(wired):
    asked = {signal for signal, *_ in ASKED}
    elsewhere = {"look.answered", "run.mended", "select.trouble", "hover.trouble"}
    # The dock hands these to another view.
    elsewhere |= {"data.mixable_changed", "data.preparation_offered", "data.troubled"}
    declared = {
        f"{name}.{signal}"
        for name, view in vars(wired.views).items()
        for signal in names_of_signals(type(view))
    }
    assert asked | elsewhere == declared


@pytest.mark.parametrize("view", ["select", "hover"])
def test_trouble_of_a_view_is_told_as_that_of_the_controller(wired, view):
    heard = []
    wired.controller.trouble.connect(heard.append)
    getattr(wired.views, view).trouble.emit("A picture is missing.")
    assert heard == ["A picture is missing."]
    wired.views.data.set_trouble.assert_called_once_with("A picture is missing.")


def test_recent_maps_are_listed_when_the_menu_asks_for_them(wired):
    wired.views.data.set_recent.assert_not_called()
    wired.views.data.recent_requested.emit()
    wired.views.data.set_recent.assert_called_once_with([(PATH, "Digits")])


def test_what_a_crash_left_behind_is_offered_where_there_are_no_data(wired):
    wired.views.data.offer_recovery.assert_called_once_with([FILE])
    busy = Wired(MockController(dataset=object()))
    busy.controller.session_store.recovery_files.assert_not_called()
    busy.views.data.offer_recovery.assert_not_called()


def test_the_legend_that_there_is_already_is_shown(qapp):
    controller = MockController()
    controller.drawing.legend.return_value = LEGEND
    wired = Wired(controller)
    assert wired.first == [call.set_legend(LEGEND)]
    assert wired.sizes == [call.set_brush_sizes(4, 200, 24)]


def test_once_closed_neither_side_hears_of_the_other(wired):
    before = len(wired.views.data.calls.mock_calls)
    wired.connections.close()
    for signal, values, _, _ in ASKED:
        attrgetter(signal)(wired.views).emit(*values)
    for signal, values, _, _ in TOLD:
        attrgetter(signal)(wired.controller).emit(*values)
    assert wired.controller.calls.mock_calls == []
    assert wired.controller.reading.calls.mock_calls == []
    assert wired.controller.writing.calls.mock_calls == []
    assert len(wired.views.data.calls.mock_calls) == before
    for name in ("run", "look", "select", "hover"):
        assert getattr(wired.views, name).calls.mock_calls == []


def heard_from(signal):
    heard = []
    signal.connect(lambda *values: heard.append(values))
    return heard


def test_the_data_section_passes_on_what_is_asked_inside_it(qtbot, viewer, workspace):
    session, maps, linked = workspace.session, workspace.maps, workspace.linked
    data = DataControls(viewer, session, maps, workspace.loading, linked)
    qtbot.addWidget(data)
    for inner, outer, values in (
        (data.way.map_requested, data.map_requested, ("map 2",)),
        (data.recovery_banner.recovery_requested, data.recovery_requested, (FILE,)),
        (data.measure.wanted, data.load_requested, (SOURCE, LINKED, None)),
        (data.open_menu.aboutToShow, data.recent_requested, ()),
    ):
        heard = heard_from(outer)
        inner.emit(*values)
        assert heard == [values]


def test_the_run_section_passes_on_what_the_save_menu_asks_for(qtbot, session):
    run = RunControls(session, LinkedLayers())
    qtbot.addWidget(run)
    for name, values in (
        ("save_requested", (PATH,)),
        ("save_session_requested", (PATH,)),
        ("write_features_requested", ()),
        ("copy_methods_requested", ()),
    ):
        heard = heard_from(getattr(run, name))
        getattr(run.save, name).emit(*values)
        assert heard == [values]


def test_the_selection_section_asks_for_a_map_with_the_space_chosen_inside_it(
    qtbot, workspace
):
    select = SelectionControls(workspace.session, workspace.maps, workspace.linked)
    qtbot.addWidget(select)
    heard = heard_from(select.embed_requested)
    select.note_loaded(SOURCE, SimpleNamespace(spaces=["X", "obsm['a']"], columns=()))
    select.embed.changed.emit(True)
    assert heard == [(SOURCE, None)]
    select.note_asked(None)
    select.embed.changed.emit(True)
    assert heard[1:] == [(None, None)]
