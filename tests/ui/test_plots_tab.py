"""The tab of plots: shown, clicked, dragged on and saved."""

import threading

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QRubberBand

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import ExpressionPlot, ViolinPlot
from napari_embedding_game.data.palette import make_point_colors
from napari_embedding_game.ui.game_dock import MAP, PLOTS
from napari_embedding_game.ui.inspector import expression_pane, markers_pane
from worlds import choose, color_at, drag, drawn

LEFT = Qt.MouseButton.LeftButton
NONE, SHIFT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def cells(dataset):
    """Four groups of ten cells, each with a gene of its own; e is 0 in half of them."""
    values = 0.2 + np.random.default_rng(0).random((40, 5)).astype(np.float32) / 2
    values[np.arange(40), np.arange(40) // 10] += 3
    values[20:, 4] = 0
    return dataset.with_matrices(profile=values, has_expression=True)


@pytest.fixture
def open_plot(qtbot, session, inspector, play, cells):
    """Play the cells, and open a plot by its name."""

    def open_(name, data=cells):
        session.load(data)
        play()
        inspector.resize(600, 700)
        inspector.show(PLOTS)
        tabs = inspector.plots.tabs
        names = [tabs.tabText(place) for place in range(tabs.count())]
        tabs.setCurrentIndex(names.index(name))
        return tabs.currentWidget()

    return open_


@pytest.fixture
def held(monkeypatch):
    """Hold what a module works out while the event is cleared."""

    def hold(module, name):
        gate, work = threading.Event(), getattr(module, name)
        gate.set()

        def wait(*values, **options):
            gate.wait(20)
            return (yield from work(*values, **options))

        monkeypatch.setattr(module, name, wait)
        return gate

    return hold


def click(qtbot, pane, x, y, key=NONE):
    canvas = drawn(qtbot, pane)
    QTest.mouseClick(canvas.canvas, LEFT, key, canvas.position_to_pixel(x, y))


def tip_at(qtbot, pane, x, y):
    canvas = drawn(qtbot, pane)
    for shift in (1, 0):
        QTest.mouseMove(
            canvas.canvas, canvas.position_to_pixel(x, y) + QPoint(0, shift)
        )
    return canvas.canvas.toolTip()


# Volcano


def test_a_gene_of_the_volcano_colours_the_map(qtbot, open_plot, session, inspector):
    pane, markers = open_plot("Volcano"), inspector.details.markers
    assert pane.state.text().startswith("Select two or more")
    session.selection.select_cluster(1)
    qtbot.waitUntil(lambda: markers.result is not None)
    assert markers.result.names[0] == session.dataset.profile_names[1]
    places = pane.canvas.plot.compute_gene_positions()
    assert places[0, 0] > 1  # higher in the selection
    click(qtbot, pane, *places[0])
    assert session.look.color_by == markers.result.names[0]
    click(qtbot, pane, -places[0, 0], places[0, 1])  # where no gene is
    assert session.look.color_by == markers.result.names[0]
    assert pane.state.text().startswith("10 cells against 30. Use p-values to rank")
    former, clicked = markers.result.names[0], []

    def click_while_the_former_plot_is_seen():
        if markers.result.names[0] != former:
            place = pane.canvas.position_to_pixel(
                *pane.canvas.plot.compute_gene_positions()[0]
            )
            clicked.append(QTest.mouseClick(pane.canvas.canvas, LEFT, NONE, place))

    markers.compared_changed.connect(click_while_the_former_plot_is_seen)
    session.selection.select_cluster(2)
    qtbot.waitUntil(lambda: len(clicked) > 0)
    assert session.look.color_by == former


def test_a_plot_saved_while_another_comparison_runs_has_its_own_title(
    qtbot, open_plot, session, dock, answer, held, tmp_path
):
    gate = held(markers_pane, "iter_markers")
    pane = open_plot("Volcano")
    session.selection.select_cluster(0)
    qtbot.waitUntil(lambda: pane.canvas.plot is not None)
    gate.clear()
    session.selection.select_cluster(2)
    assert pane.state.text() == "Comparing …"
    assert dock.selection_tab.markers.saved.isHidden()  # a table has no title
    alone = answer(tmp_path / "volcano.svg")
    dock.plots_tab.save_button.click()
    gate.set()
    text = alone.read_text()
    assert "0 against all the rest" in text
    assert "2 against all the rest" not in text
    assert len(list(session.comparisons)) == 1  # what was saved


# Genes by clusters


@pytest.fixture
def dots(qtbot, open_plot):
    pane = open_plot("Expression")
    qtbot.waitUntil(lambda: pane.result is not None)
    return pane


def test_a_column_chooses_its_cluster_and_a_gene_colours_the_map(
    qtbot, dots, session, dock, answer, tmp_path
):
    canvas = drawn(qtbot, dots).canvas
    assert canvas.width() < 400  # of 600: dots grow no further
    own, other = (dots.canvas.position_to_pixel(*place) for place in ((0, 0), (3, 0)))
    assert color_at(canvas, own) != color_at(canvas, other)
    path = answer(tmp_path / "plot.svg")
    dock.plots_tab.save_button.click()
    assert all(f">{gene}</text>" in path.read_text() for gene in dots.result.genes)
    assert dots.state.text() == "Saved as plot.svg."
    said = []
    session.message_changed.connect(said.append)
    answer(tmp_path / "none/plot.pdf")
    dock.plots_tab.save_button.click()
    assert "could not be written" in said[0]
    first, second, third = [one.id for one in session.clusters.clusters[:3]]
    assert f"{dots.result.genes[1]} in {first}" in tip_at(qtbot, dots, 0, 1)
    click(qtbot, dots, 1, -0.7)  # its name, above the dots
    assert session.selection.clusters == (second,)
    click(qtbot, dots, 2, 0, CONTROL)
    assert set(session.selection.clusters) == {second, third}
    click(qtbot, dots, 0, 1)
    assert session.selection.clusters == (first,)
    click(qtbot, dots, -0.8, 0)
    assert session.look.color_by == dots.result.genes[0]
    click(qtbot, dots, -0.8, -0.7)  # nothing is there
    assert session.look.color_by == dots.result.genes[0]


def test_plots_are_shown_larger_in_a_window_and_go_back(
    qtbot, dots, session, dock, inspector, dataset
):
    plots = dock.plots_tab
    small = drawn(qtbot, dots).canvas.height()
    for ends in ("key", "button", "data", "dock"):
        QTest.mouseClick(plots.larger_button, LEFT)
        assert dots.isVisible()
        assert plots.tabs.window() is plots.window_of_plots
        assert plots.in_window.isVisibleTo(dock)
        plots.window_of_plots.resize(1200, 1000)
        qtbot.waitUntil(lambda: dots.canvas.canvas.height() > small)
        inspector.show(MAP)  # whatever tab is in front
        name = f"Seen with {ends}"
        session.clusters.rename(session.clusters.clusters[0].id, name)
        qtbot.waitUntil(lambda name=name: dots.canvas.plot.groups[0] == name)
        inspector.show(PLOTS)
        if ends == "key":
            QTest.keyClick(plots.window_of_plots, Qt.Key.Key_Escape)
        elif ends == "button":
            QTest.mouseClick(plots.larger_button, LEFT)
        elif ends == "data":
            session.load(dataset)
            inspector_plays_again(qtbot, session, dock)
        else:
            dock.close()
        assert not plots.window_of_plots.isVisible()
        assert plots.tabs.window() is dock.window()


def inspector_plays_again(qtbot, session, dock):
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    dock.tabs.setCurrentIndex(PLOTS)
    expression = dock.plots_tab.expression
    qtbot.waitUntil(lambda: expression.result is not None)


def test_names_and_clusters_are_followed(qtbot, dots, session, held):
    before = dots.result
    first, second = [one.id for one in session.clusters.clusters[:2]]
    session.clusters.rename(first, "T cells")
    qtbot.waitUntil(lambda: dots.canvas.plot.groups[0] == "T cells")
    assert dots.result is before  # nothing was found anew
    session.clusters.merge([first, second])
    qtbot.waitUntil(lambda: sorted(dots.result.sizes) == [10, 10, 20])
    session.clusters.undo()
    qtbot.waitUntil(lambda: [*dots.result.sizes] == 4 * [10])
    gate = held(expression_pane, "iter_cluster_expression")
    gate.clear()
    third = session.clusters.clusters[2].id
    session.clusters.merge([first, second])
    session.clusters.rename(third, "B cells")
    gate.set()
    qtbot.waitUntil(lambda: sorted(dots.result.sizes) == [10, 10, 20])
    assert "B cells" in dots.canvas.plot.groups
    gate.clear()
    session.clusters.undo()
    session.clusters.undo()
    qtbot.waitUntil(lambda: dots._expression_jobs.is_busy)
    session.load(None)  # what was found of data that are gone is not shown
    gate.set()
    qtbot.waitUntil(lambda: not dots._expression_jobs.is_busy)
    assert dots.result is None


def test_groups_are_of_a_column_or_of_clusters_by_it(qtbot, dots, session):
    kinds = session.dataset.obs["kind"]
    dots.genes.setText("a, b")
    choose(dots.groups_choice, "kind")
    qtbot.waitUntil(lambda: dots.canvas.plot.groups == ("B", "T"))
    place = session.dataset.profile_names.index(dots.result.genes[0])
    mean = session.dataset.profile[kinds == "B", place].mean()
    assert dots.result.summary.means[0, 0] == pytest.approx(mean, rel=1e-5)
    click(qtbot, dots, 1, 0)
    np.testing.assert_array_equal(session.selection.points, kinds == "T")
    choose(dots.groups_choice, "Clusters by kind")
    qtbot.waitUntil(lambda: len(dots.canvas.plot.groups) == 8)
    first = session.clusters.clusters[0]
    assert dots.canvas.plot.groups[0] == f"{first.name} · B"
    dots.genes.clear()
    QTest.keyClicks(dots.genes, "e, A, nope")
    QTest.keyClick(dots.genes, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: dots.result.genes == ("e", "a"))
    assert dots.state.text() == "Not in the data: nope."
    dots.scaled.click()
    dots.genes.setText("nope")
    dots.compare_groups()
    qtbot.waitUntil(lambda: dots.result is None)
    assert "separated by commas" in dots.state.text()
    assert dots.canvas.plot is None


def test_the_same_genes_are_shown_as_a_heatmap_and_as_violins(
    qtbot, dots, session, answer, dock, tmp_path
):
    dots.genes.setText("a, b")
    dots.compare_groups()
    qtbot.waitUntil(lambda: dots.result.genes == ("a", "b"))
    result = dots.result
    for kind, cls in (("Heatmap", ExpressionPlot), ("Violins", ViolinPlot)):
        choose(dots.kind, kind)
        drawn(qtbot, dots)
        assert type(dots.canvas.plot) is cls
        assert dots.result is result  # nothing was found anew
        first = session.clusters.clusters[0].id
        # The canvas may get another size, as the plot has.
        qtbot.waitUntil(lambda: f"b in {first}" in tip_at(qtbot, dots, 0, 1))  # noqa: B023
        path = answer(tmp_path / f"{kind}.svg")
        dock.plots_tab.save_button.click()
        assert ">b</text>" in path.read_text()
    # A violin is where the points of its cluster are, in the range of all.
    column = session.dataset.profile[:, session.dataset.profile_names.index("a")]
    low, high = column.min(), column.max()
    np.testing.assert_allclose(result.ranges[0], [low, high])
    for group, cluster in enumerate(session.clusters.clusters):
        density = result.densities[group, 0]
        middle = column[session.clusters.clustering.rows_in_cluster(cluster.id)].mean()
        place = density @ (np.arange(len(density)) + 0.5) / len(density)
        assert density.sum() == pytest.approx(1, abs=0.01)
        assert place == pytest.approx((middle - low) / (high - low), abs=0.02)
    assert dots.canvas.plot.spans.tolist() == [[0, 1], [0, 1]]
    dots.scaled.click()
    spans = dots.canvas.plot.spans
    assert (spans.min(), spans.max()) == (0, 1)
    share = (high - low) / np.ptp(result.ranges)
    assert np.ptp(spans[0]) == pytest.approx(share)


def test_a_running_game_is_waited_for_and_other_data_are_forgotten(
    qtbot, dots, session, dataset, engine, dock
):
    genes = dots.result.genes
    engine.gate.clear()
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: dots.state.text().startswith("The clusters still move"))
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "finished" and dots.state.text() == "")
    assert dots.result.genes == genes
    dock.tabs.setCurrentIndex(MAP)
    session.load(dataset)  # while nobody looks
    assert dots.result is dots.canvas.plot is dots.canvas.axes is None


# Gene against gene


def name(pane, across, up):
    for field, text in ((pane.across, across), (pane.up, up)):
        field.clear()
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)


def test_a_gate_selects_its_cells_on_the_map(qtbot, open_plot, session, dock, dataset):
    scatter = open_plot("Scatter")
    dock.plots_tab.save_button.click()
    assert scatter.state.text().startswith("Nothing is drawn yet")
    name(scatter, "A", "b")
    assert scatter.across.text() == "a"
    offered = scatter.across.completer().popup().grab().toImage()
    assert offered.pixelColor(2, 2).lightness() < 128  # in the colours of the theme
    assert scatter.state.text().startswith("Correlation (Pearson) -0.")
    drag(qtbot, scatter, (2, 0), (3.9, 1))
    assert session.selection.rows.tolist() == list(range(10))
    selected_points_have_their_colour_and_others_are_grey(qtbot, scatter, session)
    assert scatter.state.text() == "10 of 40 points in the gate, 25%."
    drag(qtbot, scatter, (0.1, 2), (1, 3.9), SHIFT)
    assert session.selection.rows.tolist() == list(range(20))
    session.selection.select_cluster(0)  # elsewhere: what is drawn is no gate any more
    assert scatter.state.text().startswith("Correlation")
    drag(qtbot, scatter, (2, 2), (3, 3))
    assert session.selection.is_empty
    canvas, begin = drawn(qtbot, scatter), QPoint(100, 100)
    QTest.mousePress(canvas.canvas, LEFT, pos=begin)
    QTest.mouseMove(canvas.canvas, 2 * begin)
    assert canvas.findChild(QRubberBand).isVisible()
    QTest.mouseRelease(canvas.canvas, LEFT, pos=begin)  # where it was pressed
    assert not canvas.findChild(QRubberBand).isVisible()
    session.selection.select_cluster(0)
    click(qtbot, scatter, 1, 1)
    assert session.selection.is_empty
    what_is_no_axis_is_told_and_a_new_score_is_one(qtbot, scatter, session, dataset)


def selected_points_have_their_colour_and_others_are_grey(qtbot, scatter, session):
    canvas = drawn(qtbot, scatter)
    own, other = (
        color_at(
            canvas.canvas, canvas.position_to_pixel(*session.dataset.profile[row, :2])
        )
        for row in (3, 13)
    )
    wanted = make_point_colors(session.clusters.clustering)[3, :3]
    np.testing.assert_allclose(own.getRgbF()[:3], wanted, atol=0.1)
    red, green, blue, _ = other.getRgb()
    assert max(red, green, blue) - min(red, green, blue) < 30


def what_is_no_axis_is_told_and_a_new_score_is_one(qtbot, scatter, session, dataset):
    name(scatter, "a", "kind")
    assert 'no gene, score or column of numbers "kind"' in scatter.state.text()
    scatter.up.clear()
    scatter.up.editingFinished.emit()
    assert scatter.state.text().startswith("Type two names")
    session.add_columns(Dataset.with_map_column, "mine", np.arange(40.0))
    assert "mine" in scatter.names.stringList()
    name(scatter, "mine", "a")
    drag(qtbot, scatter, (-0.5, 0), (9.5, 3.8))
    assert session.selection.rows.tolist() == list(range(10))
    session.load(dataset)  # without it: nobody asked for what is not there
    scatter.update_view()
    assert (scatter.across.text(), scatter.up.text()) == ("", "a")
    assert scatter.state.text().startswith("Type two names")
