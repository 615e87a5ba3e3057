"""All that the dock shows, state after state, against texts that were approved."""

import re

import numpy as np
import pandas as pd
import pytest
from qtpy.QtGui import QColor
from superqt.utils import qimage_to_array

from approved import States, describe
from figure_texts import figure_lines
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import ACTIVE_STATES
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.canvas import label_layout
from napari_embedding_game.ui.canvas.frame import Frame, find_extent_without_outliers
from napari_embedding_game.ui.canvas.layers import compute_world_point_size
from napari_embedding_game.ui.canvas.projection import CanvasProjection
from napari_embedding_game.ui.controls.timeline import render_thumbnail
from napari_embedding_game.ui.game_dock import PLOTS, SELECTION
from napari_embedding_game.ui.pixels import paint_density, paint_discs
from napari_embedding_game.ui.style import coloring
from napari_embedding_game.ui.style.coloring import CLUSTER, STRETCH
from napari_embedding_game.ui.style.form_widgets import FoldingSection
from napari_embedding_game.ui.tasks.worker import count_running_workers
from napari_embedding_game.ui.widgets.plate import PlateWidget
from napari_embedding_game.ui.widgets.reference import ReferenceWidget
from napari_embedding_game.ui.widgets.teach import TeachWidget
from widget_texts import layer_lines, widget_lines
from worlds import drawn, field, raw_counts, rows

LATER = re.compile("Saved automatically|FirmnessStrip")
"""What comes on show in its own time."""


def rest(qtbot, n_games):
    """Wait until nothing is computed but by so many games; a timer may begin more."""
    for _ in range(2):
        qtbot.waitUntil(lambda: count_running_workers() <= n_games)
        qtbot.settle()


@pytest.fixture
def dataset():
    """Rows of six donors, treated or not, and of three kinds."""
    rng = np.random.default_rng(0)
    donors = np.arange(240) % 6
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(np.array(["B", "NK", "T"])[np.arange(240) % 3]),
            "donor": [f"d{one}" for one in donors],
            "condition": np.where(donors < 3, "drug", "control"),
            "counts": np.linspace(100.0, 900.5, 240),
            "x": rng.random(240),
            "y": rng.random(240),
        },
        index=[f"cell{i}" for i in range(240)],
    )
    X = rng.gamma(1.0, 1.0, (240, 6))
    X[:, 0] += 3 * (np.arange(240) < 60)
    return rows(X, obs=obs, name="cells.csv", var_names=list("abcdef"))


def test_the_dock_shows_what_was_approved(
    approve, dock, qtbot, session, engine, click_run, viewer
):
    states, layers = States(), States()

    def look(title, widget=dock):
        n_games = session.state in ACTIVE_STATES  # a finished one can go on
        rest(qtbot, n_games)
        states.add(title, [x for x in widget_lines(widget) if not LATER.search(x)])
        layers.add(title, layer_lines(viewer))

    dock.resize(420, 900)
    dock.show()
    data = session.dataset
    session.load(None)
    look("nothing is open")
    session.load(data)
    look("a table is open")
    dock.method_fold.set_expanded(True)
    dock.method_controls.more.set_expanded(True)
    look("its methods")
    session.settings.method = "tsne"
    look("another method")
    session.settings.method = "game"
    engine.gate.clear()
    session.pace = 60.0
    click_run(dock, "preparing")
    look("preparing")
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "running")
    look("running")
    dock.run_controls.pause_button.click()
    qtbot.waitUntil(lambda: session.state == "paused")
    look("paused")
    dock.run_controls.stop_button.click()
    qtbot.waitUntil(lambda: session.state == "stopped")
    look("stopped")
    session.pace = UNPACED
    click_run(dock)
    for fold in dock.findChildren(FoldingSection):
        fold.set_expanded(True)
    look("finished")
    for color in ("kind", "counts", "a", STRETCH):
        session.look.color_by = color
        look(f"coloured by {color}")
    session.look.split_by = "condition"
    look("split")
    session.look.split_by, session.look.color_by = "", CLUSTER
    session.clusters.rename(1, "cells of B")
    session.clusters.set_note(1, "a note")
    session.add_mark("mark")
    look("named")
    session.selection.select_points(np.arange(5))
    session.hand.hold_points()
    look("held")
    session.hand.release_points()
    session.selection.clear()
    session.settings.n_components = 3
    click_run(dock)
    look("in space")
    dock.display_controls.landmarks.setChecked(True)
    dock.display_controls.names.setChecked(False)
    look("with landmarks")
    dock.timeline_controls.begin_comparison(session.timeline.marks[0].number)
    look("compared")
    approve("dock", states.lines)
    approve("layers", layers.lines)


def test_selection_and_plots_are_those_approved(
    approve, inspector, qtbot, session, click_run, dock
):
    states, painted, plots = States(), [], inspector.plots
    dock.resize(420, 900)
    click_run(dock)
    details = inspector.details
    for clusters in ((0,), (0, 1)):
        session.selection.select_cluster(clusters[0])
        for one in clusters[1:]:
            session.selection.toggle_cluster(one)
        inspector.show(SELECTION)
        for place in range(details.tabs.count()):
            if details.tabs.isTabVisible(place):
                details.tabs.setCurrentIndex(place)
                qtbot.waitUntil(lambda: details.report is not None)
                if details.tabs.widget(place) is details.markers:
                    qtbot.waitUntil(lambda: details.markers.compared is not None)
                qtbot.settle()
                states.add(
                    f"{clusters}, {details.tabs.tabText(place)}", widget_lines(details)
                )
    inspector.show(PLOTS)
    for axis, name in ((plots.scatter.across, "x"), (plots.scatter.up, "a")):
        axis.setText(name)
        axis.editingFinished.emit()
    for place in filter(plots.tabs.isTabVisible, range(plots.tabs.count())):
        plots.tabs.setCurrentIndex(place)
        pane = plots.shown_pane
        qtbot.settle()
        figure = drawn(qtbot, pane).canvas.figure
        title = plots.tabs.tabText(place)
        states.add(title, widget_lines(plots))
        painted += [f"== {title}", *figure_lines(figure)]
    approve("selection_and_plots", states.lines)
    approve("plots", painted)


def test_images_counts_and_widgets_are_those_approved(
    approve, dock, qtbot, viewer, session, load, read_here, tmp_path
):
    states, painted = States(), []

    def look(title, widget=dock):
        rest(qtbot, 1)
        states.add(title, [x for x in widget_lines(widget) if not LATER.search(x)])

    dock.resize(420, 900)
    dock.show()
    session.load(None)
    image, labels = field(0, 16, (60, 60))
    viewer.add_image(image, name="stain")
    viewer.add_labels(labels, name="nuclei")
    look("an image and its labels")
    load(dock.run_controls.run_button.click)
    qtbot.waitUntil(lambda: session.state == "finished")
    look("measured")
    session.selection.select_points(np.arange(3))
    dock.tabs.setCurrentIndex(SELECTION)
    qtbot.waitUntil(lambda: dock.selection_tab.report is not None)
    look("objects are selected")
    layers = layer_lines(viewer)
    session.selection.clear()
    cells = raw_counts(60)
    cells.X[50:, 0] = 400
    cells.var_names = ["MT-CO1", *(f"g{i}" for i in range(149))]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    load(FileSource(tmp_path / "cells.h5ad"))
    panel = dock.data_controls.recipe_panel
    panel.fold.set_expanded(True)
    look("raw counts")
    for view in range(panel.cells.view.count() - 1):  # the last are doublets
        panel.cells.view.setCurrentIndex(view)
        panel.cells.view.activated.emit(view)
        figure = drawn(qtbot, panel.cells).canvas.figure
        painted += [f"== {panel.cells.view.itemText(view)}", *figure_lines(figure)]
    approve("images_and_counts", states.lines)
    approve("objects", layers)
    approve("quality", painted)


def test_widgets_are_those_approved(approve, dock, qtbot, viewer, session, click_run):
    states = States()
    click_run(dock)
    session.selection.select_cluster(0)
    for kind in (TeachWidget, PlateWidget, ReferenceWidget):
        widget = kind(viewer)
        qtbot.addWidget(widget)
        widget.show()
        qtbot.settle()
        states.add(kind.__name__, widget_lines(widget))
        if kind is TeachWidget:
            widget.new_button.click()
            qtbot.settle()
            states.add("a class", widget_lines(widget))
        widget.close()
    dock.cluster_pane.edits.suggest.trigger()
    names = dock.cluster_pane.edits.names
    qtbot.waitUntil(lambda: names.isVisible())
    qtbot.waitUntil(lambda: count_running_workers() <= 1)
    qtbot.settle()
    states.add("names", widget_lines(names))
    approve("widgets", states.lines)


def test_what_the_window_computes_is_as_approved(approve, dataset):
    """Pixels, frames, places of names and colours, without a window."""
    lines, rng = [], np.random.default_rng(0)
    y = rng.random((60, 2)).astype(np.float32)
    groups = np.arange(60) % 4 - 1

    def tell(name, value):
        lines.append(f"{name}: {describe(value)}")

    tell("groups", label_layout.find_rows_by_group(groups))
    _, rows_by_group = label_layout.find_rows_by_group(groups)
    tell("centers", label_layout.compute_centers_and_radii(y, rows_by_group))
    radii, halves = np.array([1.0, 12, 20, 60, 200]), np.full(5, 10.0)
    tell("offsets", label_layout.compute_label_offsets(radii, halves))
    places = np.array([[0.0, 0], [8, 3], [100, 5], [104, 90], [0, 0]])
    sizes = np.column_stack([halves, 3 * halves])
    zooms = label_layout.find_zooms_without_overlap(places, sizes)
    tell("zooms", zooms)
    tell(
        "opacities", label_layout.compute_label_opacities(np.array([0, 0.5, 0.9, 1, 4]))
    )
    colors = np.column_stack([y, y])
    pixels = ((24.0, 2.0), (30.0, 1.0))
    discs = y, np.full(60, 0.1, np.float32), colors, pixels, (32, 40)
    tell("discs", paint_discs(*discs).view(np.uint8))
    some = paint_discs(*discs, rows=np.arange(5), opacity=0.5)
    tell("some discs", some.view(np.uint8))
    many = np.repeat(y, 40, axis=0), np.repeat(colors, 40, axis=0)
    pixels = ((7.0, 0.0), (9.0, 0.0))
    dense = paint_density(*many, pixels, (8, 10), opacity=0.9)
    tell("density", dense.view(np.uint8))
    above = np.arange(len(many[0])) % 7 == 0
    dense = paint_density(*many, pixels, (8, 10), above=above)
    tell("density above", dense.view(np.uint8))
    tell("extent", find_extent_without_outliers(np.append(y[:, 0], [30, -20])))
    frame = Frame([np.array([[0, 0], [100.0, 50]])], 2)
    for number, factor in enumerate((1.0, 3.0, 1.0, 0.2)):
        frame.follow_extent(factor * y, is_immediate=number == 3)
        tell("frame", (frame.unit, frame.scale, frame.corners, frame.origin))
        tell("in the world", frame.to_world(y))
    boxes = ([[10, 60], [50, 90.0]], [[0, 200.0], [50, 900]], [[-9, -9.0], [-1, -1]])
    tell("overlaps", [bool(frame.overlaps_box(np.array(one))) for one in boxes])
    flat = CanvasProjection(
        np.array([[2.0, 0, 5], [0, -3, 7], [0, 0, 1]]), (0, 0, 9, 9)
    )
    space = CanvasProjection(
        np.array([[2.0, 0, 1, 5], [0, -3, 0, 7], [0, 0.1, 0.1, 4]]),
        (0, 0, 90, 90),
        np.array([0.0, 0.7, 0.7]),
    )
    solid = np.column_stack([y, y[:, :1]])
    for name, projection, at in (("flat", flat, y), ("space", space, solid)):
        seen = projection.to_pixels(at)
        tell(f"{name} pixels", seen)
        tell(f"{name} back", projection.position_at_pixel(seen[0], at[0]))
        tell(f"{name} inside", projection.contains(seen).astype(int))
        tell(f"{name} size", projection.compute_pixels_per_unit(at[:4]))
        tell(f"{name} scale", projection.pixels_per_unit)
    numbers_ = np.append(np.arange(50.0), [np.nan, np.inf, 900])
    for limits in (None, (3.0, 20.0)):
        tell("numbers", coloring.color_by_values(numbers_, limits))
        tell("changes", coloring.color_by_changes(numbers_[:51] - 9, limits))
    tell("choices", coloring.list_color_choices(dataset))
    tell("levels", coloring.find_informative_columns(dataset))
    tell("composition", coloring.composition_columns(dataset))
    for choice in ("kind", "donor", "counts", "x", "a"):
        tell(choice, coloring.color_by_column_or_feature(choice, dataset))
    for values in ([], [3.0], [0.0, 0, 0, 5], [-2.0, np.nan, 8]):
        limits = coloring.compute_percentile_limits(np.array(values, float))
        tell(
            f"limits of {values}",
            (limits, coloring.compute_value_extent(np.array(values))),
        )
    thumbnail = render_thumbnail(y, QColor("#112233"), QColor("#ffeedd"))
    tell("thumbnail", qimage_to_array(thumbnail))
    for n in (1, 100, 2_638, 70_000, 10**6, 10**7):
        tell(f"size of {n}", compute_world_point_size(n))
    approve("computed", lines)
