"""Connect the views of the main dock with its controller.

Views know no controller: what they ask for goes up as a signal, and what they are
told comes by a setter.  Here is the one place that knows both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from napari_embedding_game.ui.canvas.brush import LARGEST, RADIUS, SMALLEST
from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    from napari_embedding_game.session.sources import Source
    from napari_embedding_game.ui.canvas.hover import Hover
    from napari_embedding_game.ui.controller import Controller
    from napari_embedding_game.ui.controls.data import DataControls
    from napari_embedding_game.ui.controls.display import DisplayControls
    from napari_embedding_game.ui.controls.method import MethodControls
    from napari_embedding_game.ui.controls.run import RunControls
    from napari_embedding_game.ui.controls.selection import SelectionControls
    from napari_embedding_game.ui.images.linked_layers import Linked, Table

Pairs = Iterator[tuple[Any, Callable[..., Any]]]
"""Signals, each with its slot."""


def connect_views(
    controller: Controller,
    data: DataControls,
    game: MethodControls,
    run: RunControls,
    look: DisplayControls,
    select: SelectionControls,
    hover: Hover,
) -> Connections:
    """Connect the views with the controller, and tell them what there is already.

    Returns
    -------
    Connections
        To be closed before the controller is.
    """
    connections = Connections()
    for pairs in (
        _of_data(controller, data),
        _of_game(controller, game),
        _of_run(controller, run),
        _of_look(controller, look),
        _of_selection(controller, select),
        _of_hover(controller, hover),
    ):
        for signal, slot in pairs:
            connections.connect(signal, slot)
    if controller.session.dataset is None:
        data.offer_recovery(controller.session_store.recovery_files())
        data.set_recent(controller.session_store.recent())
    look.set_legend(controller.scene.legend())
    select.set_brush_sizes(SMALLEST, LARGEST, RADIUS)
    return connections


def _of_data(controller: Controller, data: DataControls) -> Pairs:
    reading, store = controller.reading, controller.session_store

    def load(source: Source, linked: Linked | None, table: Table | None) -> None:
        reading.load(source, linked=linked, table=table)

    yield data.load_requested, load
    yield data.reload_requested, reading.reload
    yield data.cancel_requested, reading.cancel
    yield data.stop_requested, reading.stop
    yield data.open_session_requested, reading.open_session
    yield data.recovery_requested, reading.bring_back
    yield data.recent_requested, lambda: data.set_recent(store.recent())
    yield data.map_requested, store.open
    yield reading.session_opened, data.relink.open_again
    yield reading.asked, data.note_asked
    yield reading.loaded, data.note_loaded
    yield reading.cancelled, data.go_back
    yield reading.failed, data.go_back
    yield reading.incomplete, data.offer_to_drop_rows
    yield reading.stage_changed, data.set_stage
    yield controller.busy_changed, data.set_busy
    yield controller.trouble, data.set_trouble


def _of_game(controller: Controller, game: MethodControls) -> Pairs:
    yield game.dimensions_requested, controller.change_dimensions
    yield game.continue_requested, controller.play_on


def _of_run(controller: Controller, run: RunControls) -> Pairs:
    writing = controller.writing
    yield controller.warming_changed, run.note_warming
    yield run.play_requested, controller.play
    yield run.continue_requested, controller.play_on
    yield run.save_requested, writing.save
    yield run.panels_requested, writing.ask_for_panels
    yield run.save_session_requested, writing.save_session
    yield run.write_features_requested, writing.write_features
    yield run.copy_methods_requested, writing.copy_methods
    yield controller.reading.stage_changed, run.note_reading
    yield writing.saved, run.tell_saved
    yield writing.copied, run.tell_copied


def _of_look(controller: Controller, look: DisplayControls) -> Pairs:
    yield look.level_picked, controller.select_level
    yield look.hiding_requested, controller.hide_level
    yield look.placed, controller.place
    yield controller.scene.legend_changed, look.set_legend


def _of_selection(controller: Controller, select: SelectionControls) -> Pairs:
    brush = controller.brush

    def show_brush() -> None:
        select.show_brush(brush.is_on)
        select.show_brush_size(brush.radius)
        select.tell_brush(brush.told)

    yield select.lasso_toggled, controller.mouse.set_lasso
    yield select.brush_toggled, brush.set_on
    yield select.brush_resized, brush.set_radius
    yield brush.changed, show_brush
    yield select.embed_requested, controller.embed_selection
    yield select.show_objects_requested, controller.show_objects
    yield select.hand_requested, controller.steer_by_hand
    yield select.correction_toggled, controller.scene.show_true_neighbors
    yield controller.scene.neighbors_told, select.tell_correction
    yield controller.reading.asked, select.note_asked
    yield controller.reading.loaded, select.note_loaded


def _of_hover(controller: Controller, hover: Hover) -> Pairs:
    yield hover.trouble, controller.trouble
