"""The inspector: a table of all clusters, and what is inside the chosen ones."""

import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_embedding_game.data.formats.tables import from_features
from napari_embedding_game.data.images.measure import measure
from napari_embedding_game.session.cluster_report import Contrast
from napari_embedding_game.ui.game_dock import MAP, PLOTS
from napari_embedding_game.ui.inspector import (
    dot_plot_pane,
    markers_pane,
    selection_tab,
)
from napari_embedding_game.ui.inspector.bar_charts import ROW, ContrastBars
from napari_embedding_game.ui.inspector.cluster_table import ID_ROLE
from napari_embedding_game.ui.inspector.volcano import told_p
from napari_embedding_game.ui.style.theme import LOWER, theme_colors
from napari_embedding_game.ui.tasks.figure_panels import FigureChoice


@pytest.fixture
def played(qtbot, play, inspector):
    """The views of a finished map."""
    play()
    qtbot.waitUntil(lambda: inspector.clusters.table.model().rowCount() == 4)
    return inspector


def report_of(qtbot, inspector, clusters):
    def arrived():
        return inspector.report is not None and inspector.report.clusters == clusters

    qtbot.waitUntil(arrived)
    return inspector.report


def test_a_selected_cluster_is_described(qtbot, played, session):
    assert played.details.hint.text().startswith("Click a group on the map")
    session.selection.select(1)
    report = report_of(qtbot, played, (1,))
    assert report.size == 10
    assert played.details.title.text() == "Cluster 1"
    assert "10 points  ·  25.0% of all" in played.details.numbers.text()
    assert [share.level for share in report.composition] == ["B", "T"]
    session.selection.toggle(3)
    assert report_of(qtbot, played, (1, 3)).size == 20
    assert played.details.title.text() == "2 clusters: 1, 3"
    session.selection.clear()
    assert played.report is None


def test_the_newest_of_many_selections_is_shown(qtbot, played, session):
    for cluster in (0, 1, 2, 3):
        session.selection.select(cluster)
    report_of(qtbot, played, (3,))
    assert played.details.title.text() == "Cluster 3"


def test_another_column_composes_the_cluster(qtbot, played, session):
    session.selection.select(0)
    report_of(qtbot, played, (0,))
    played.details.column.value = "counts"
    qtbot.waitUntil(lambda: played.report.column == "counts")
    assert played.report.composition[0].level.startswith("100 to")


def test_the_composition_follows_colour_by(played, dock):
    dock.look.color_by.value = "counts"
    assert played.details.column.value == "counts"


def test_a_row_of_the_table_selects_its_cluster(played, session):
    table = played.clusters.table
    table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    table.selectRow(0)
    assert session.selection.clusters == (3,)
    session.selection.select(1)
    rows = table.selectionModel().selectedRows()
    assert [table.model().data(row) for row in rows] == ["1"]


def test_the_table_counts_all_points(played):
    model = played.clusters.table.clusters
    sizes = [int(model.data(model.index(row, 1))) for row in range(model.rowCount())]
    assert sizes == [10, 10, 10, 10]


def test_images_are_shown_and_drawn_again(qtbot, play, inspector, session, dataset):
    images = np.arange(40, dtype=np.uint8)[:, None, None] * np.ones((1, 8, 8), np.uint8)
    session.load(replace(dataset, images=images))
    play()
    session.selection.select(0)
    first = report_of(qtbot, inspector, (0,)).draw.tolist()
    shown = inspector.details.thumbnails.pictures.rows
    assert sorted(shown) == np.flatnonzero(session.clusters.labels == 0).tolist()
    tabs = inspector.details.tabs
    assert [tabs.tabText(place) for place in range(tabs.count())] == ["Pictures"]
    assert inspector.details.tabs.currentWidget() is inspector.details.thumbnails
    inspector.details.another.native.click()
    qtbot.waitUntil(lambda: inspector.report.draw.tolist() != first)


def test_texts_are_shown(qtbot, play, inspector, session, dataset):
    session.load(replace(dataset, texts=[f"text {i}" for i in range(40)]))
    play()
    session.selection.select(0)
    report = report_of(qtbot, inspector, (0,))
    assert inspector.details.texts.item(0).text() == f"text {report.draw[0]}"


def test_a_clicked_text_selects_its_point_and_the_list_stays(
    qtbot, play, inspector, session, dataset
):
    session.load(replace(dataset, texts=[f"text {i}" for i in range(40)]))
    play()
    session.selection.select(0)
    report = report_of(qtbot, inspector, (0,))
    inspector.resize(900, 300)
    inspector.show()
    inspector.details.tabs.setCurrentWidget(inspector.details.texts)
    texts = inspector.details.texts
    place = texts.visualItemRect(texts.item(2)).center()
    QTest.mouseClick(texts.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert session.selection.rows.tolist() == [report.draw[2]]
    assert texts.count() == 10
    assert inspector.details.title.text() == "Cluster 0"
    session.selection.select_points(report.draw[[4]])  # as a click in the image does
    assert [item.text() for item in texts.selectedItems()] == [f"text {report.draw[4]}"]
    other = int(np.flatnonzero(session.clusters.labels == 1)[0])
    session.selection.select_points(np.array([other]))
    qtbot.waitUntil(lambda: texts.count() == 1)
    assert texts.item(0).text() == f"text {other}"


def test_a_report_that_fails_is_told(qtbot, played, session, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no memory map")

    monkeypatch.setattr(selection_tab, "cluster_report", broken)
    session.selection.select(0)
    qtbot.waitUntil(lambda: "no memory map" in played.details.hint.text())


def test_a_picture_selects_its_point_and_stays_among_the_others(
    qtbot, play, inspector, session, dataset
):
    session.load(replace(dataset, images=np.zeros((40, 8, 8), np.uint8)))
    play()
    inspector.resize(1200, 300)
    inspector.show()
    session.selection.select(1)
    report_of(qtbot, inspector, (1,))
    view = inspector.details.thumbnails
    view.doItemsLayout()
    place = view.visualRect(view.pictures.index(2)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert session.selection.rows.tolist() == [view.pictures.rows[2]]
    assert view.pictures.rowCount() == 10
    session.selection.select_points(view.pictures.rows[[7]])
    assert [index.row() for index in view.selectedIndexes()] == [7]
    picked = session.selection.rows[0]
    inspector.details.another.native.click()  # as any update, it keeps the cluster
    qtbot.waitUntil(lambda: view.pictures.rows[7] != picked)
    assert view.pictures.rowCount() == 10
    assert [i.row() for i in view.selectedIndexes()] == view.pictures.places([picked])
    session.selection.select_points(np.array([2, 12, 22]))
    qtbot.waitUntil(lambda: view.pictures.rowCount() == 3)
    assert not inspector.clusters.table.selectionModel().hasSelection()


def test_selected_points_are_described(qtbot, played, session):
    session.selection.select_points(np.array([3, 4, 15]))
    qtbot.waitUntil(lambda: played.report is not None)
    assert played.report.size == 3
    assert played.details.title.text() == "Selected points"
    session.selection.select_points(np.array([7]))
    qtbot.waitUntil(lambda: played.details.title.text() == "cell7")


def test_a_rename_shows_in_title_and_table(qtbot, played, session, dock):
    session.selection.select(2)
    report_of(qtbot, played, (2,))
    played.clusters.edits.name(2, "T cells")
    session.clusters.annotate(2, "CD3 high")
    qtbot.waitUntil(lambda: played.details.title.text() == "T cells")
    assert played.details.note.text() == "CD3 high"
    model = played.clusters.table.model()
    names = lambda: [model.index(row, 0).data() for row in range(4)]  # noqa: E731
    qtbot.waitUntil(lambda: "T cells" in names())


def test_a_name_that_is_taken_is_explained_below_the_tabs(qtbot, played, session):
    session.clusters.rename(1, "T cells")
    played.show()
    session.selection.select(2)
    report_of(qtbot, played, (2,))
    title = played.details.title
    qtbot.waitUntil(title.isVisible)
    title.selectAll()
    QTest.keyClicks(title, "T cells")
    QTest.keyClick(title, Qt.Key.Key_Return)
    assert "already a cluster called T cells" in played.clusters.message.text()
    assert played.clusters.message.isVisible()
    assert title.text() == "Cluster 2"


def test_the_column_that_the_clusters_explain_best_is_told_first(
    qtbot, inspector, session, dataset, play
):
    parts = pd.Categorical.from_codes(np.arange(40) // 10, list("wxyz"))
    session.load(replace(dataset, obs=dataset.obs.assign(part=parts)))
    play()
    session.selection.select(1)
    assert [s.level for s in report_of(qtbot, inspector, (1,)).composition] == ["x"]
    inspector.details.column.value = "kind"  # what a person chooses stays
    play()
    assert inspector.details.column.value == "kind"


def test_of_measured_objects_the_differences_are_told_and_no_genes(
    qtbot, inspector, session, play
):
    labels = np.kron(np.arange(1, 10).reshape(3, 3), np.ones((4, 4), int))
    session.load(measure(labels % 5 + 0.5, labels))
    play()
    session.selection.select(0)
    inspector.show()
    tabs = inspector.details.tabs
    assert tabs.tabText(tabs.currentIndex()) == "Differences"
    seen = {tabs}
    for place in range(tabs.count()):
        tabs.setCurrentIndex(place)
        seen |= {w for w in tabs.findChildren(QWidget) if w.isVisible()}
    for widget in seen:
        for say in ("text", "toolTip", "placeholderText"):
            told = getattr(widget, say, str)()
            assert "gene" not in str(told).lower(), told
    dots = inspector.plots.dot_plot
    assert session.dataset.profile_names[0] in dots.genes.placeholderText()


def test_the_slider_merges_clusters_everywhere(qtbot, played, session, dock):
    slider = played.clusters.slider
    assert (slider.slider.value(), slider.number.value()) == (2, 4)
    slider.slider.setFocus()
    QTest.keyClick(slider.slider, Qt.Key.Key_Left)
    qtbot.waitUntil(lambda: len(session.clusters.clusters) == 3)
    qtbot.waitUntil(lambda: played.clusters.table.model().rowCount() == 3)
    colors = dock.controller.layers.points.face_color
    assert len(np.unique(colors, axis=0)) == 3
    slider.number.selectAll()
    QTest.keyClick(slider.number, Qt.Key.Key_2)
    session.clusters.changed.emit()  # as each frame of a running game does
    assert slider.number.text() == "2"
    QTest.keyClick(slider.number, Qt.Key.Key_Return)
    assert session.clusters.n_clusters == 2
    slider.number.setValue(4)
    assert session.clusters.n_clusters is None


def test_a_running_game_leaves_the_table_where_it_was_scrolled(qtbot, played, session):
    many = np.arange(40, dtype=np.int32)
    session.clusters.receive(many, 40)
    played.show(MAP)
    qtbot.waitUntil(lambda: played.clusters.table.model().rowCount() == 40)
    lowest = played.clusters.table.model().index(39, 0).data(ID_ROLE)
    bar = played.clusters.table.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)  # it is laid out
    session.selection.select(lowest)
    assert bar.value() > 0
    bar.setValue(0)
    played.clusters.refresh()
    assert bar.value() == 0
    assert session.selection.clusters == (lowest,)


def test_measures_from_0_to_1_are_no_expression():
    shares = np.linspace(0, 1, 80).reshape(40, 2) ** [1, 3]
    table = from_features(pd.DataFrame(shares, columns=["red", "blue"]), "nuclei")
    assert table.profile.min() == 0
    assert not table.expression.is_log1p


def test_what_expression_is_compared_is_shown(qtbot, dataset, session, inspector, play):
    counts = np.random.default_rng(0).poisson(3.0, (40, 5)).astype(np.float32)
    session.load(replace(dataset, profile=counts, has_expression=True))
    play()
    inspector.show()
    inspector.details.tabs.setCurrentWidget(inspector.details.markers)
    session.selection.select(0)
    qtbot.waitUntil(lambda: inspector.details.markers.result is not None)
    told = "Expression: counts, normalised to 10,000 per cell, log1p."
    assert told in inspector.details.markers.state.toolTip()
    found = inspector.details.markers.result
    inside = session.selection.points
    share = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 1e4)
    means = np.expm1(share[inside].mean(axis=0)), np.expm1(share[~inside].mean(axis=0))
    expected = np.log2(means[0] / means[1])[found.columns]
    np.testing.assert_allclose(found.logfoldchanges, expected, rtol=1e-3, atol=1e-4)


def test_a_gene_of_the_markers_colours_the_map(qtbot, played, session, dock):
    played.show()
    played.details.tabs.setCurrentWidget(played.details.markers)
    session.selection.select(0)
    qtbot.waitUntil(lambda: played.details.markers.result is not None)
    found = played.details.markers.result
    state = played.details.markers.state
    assert state.text() == "10 points against 30. p-values only rank."
    assert "prove nothing" in state.toolTip()
    played.resize(500, 400)  # where the sentence is not cut, but takes two lines
    qtbot.waitUntil(lambda: state.height() >= state.heightForWidth(state.width()))
    assert found.n_inside == 10
    assert found.n_outside == 30
    played.details.markers.table.selectRow(0)
    assert session.look.color_by == str(found.names[0]) == dock.look.color_by.value
    against = played.details.markers.against
    against.setCurrentIndex(against.findText("against cluster 3"))
    against.activated.emit(against.currentIndex())
    qtbot.waitUntil(lambda: played.details.markers.result.n_outside == 10)
    session.selection.select_points(np.array([1]))
    assert played.details.markers.result is None
    assert played.details.markers.state.text().startswith("Select two or more")
    assert state.isVisible()


def test_bars_of_differences_grow_to_both_sides(qtbot):
    bars = ContrastBars()
    qtbot.addWidget(bars)
    bars.set_theme(theme_colors("dark"))
    bars.set_contrasts(
        [Contrast("up", 3.0, 1.0, 2.0), Contrast("down", 1.0, 3.0, -2.0)]
    )
    bars.resize(400, 2 * ROW)
    picture = bars.grab().toImage()
    blue = theme_colors("dark").line
    line = [x for x in range(400) if picture.pixelColor(x, 10) == blue]
    lower = [x for x in range(400) if picture.pixelColor(x, ROW + 10) == LOWER]
    assert max(lower) <= min(line)
    assert len(lower) == pytest.approx(len(line), abs=3)


@pytest.fixture
def show_markers(session, inspector, play):
    """Play data with expression and open the tab of the markers."""

    def show(dataset):
        session.load(replace(dataset, has_expression=True))
        play()
        inspector.resize(900, 300)
        inspector.show()
        inspector.details.tabs.setCurrentWidget(inspector.details.markers)
        return inspector.details.markers

    return show


def test_any_two_of_many_levels_are_compared(qtbot, session, show_markers, dataset):
    obs = dataset.obs.assign(donor=list("abcdefgh") * 5)
    pane = show_markers(replace(dataset, obs=obs))
    session.selection.select_points(np.arange(32))
    assert pane.levels.isHidden()
    index = pane.against.findText("donor: one level against another")
    pane.against.setCurrentIndex(index)
    pane.against.activated.emit(index)
    assert not pane.levels.isHidden()
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_outside == 28)
    boxes = pane.levels.one, pane.levels.other
    assert [box.currentText() for box in boxes] == ["a (4)", "all others"]
    assert boxes[1].count() == 8  # all others, and seven levels
    boxes[1].setCurrentIndex(boxes[1].findData("g"))
    boxes[1].activated.emit(boxes[1].currentIndex())
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_outside == 4)
    assert pane.plot().title == "donor: a against g"
    pane.kept.trigger()
    boxes[0].setCurrentIndex(boxes[0].findData("g"))
    boxes[0].activated.emit(boxes[0].currentIndex())
    assert pane.levels.pair == ("g", "")  # no level against itself
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_outside == 28)
    assert [one.title for one in session.comparisons] == ["donor: a against g"]
    session.selection.select_points(np.arange(16))  # too few of each level
    assert pane.levels.isHidden()


def test_two_conditions_are_compared_plotted_and_saved(
    qtbot, session, dock, show_markers, dataset, tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    values = rng.random((40, 5)).astype(np.float32)
    values[::2, 2] += 3
    obs = dataset.obs.assign(stim=["STIM", "CTRL"] * 20)
    pane = show_markers(replace(dataset, obs=obs, profile=values))
    session.selection.select_points(np.arange(30))
    qtbot.waitUntil(lambda: pane.result is not None)
    index = pane.against.findText("stim: STIM against CTRL")
    pane.against.setCurrentIndex(index)
    pane.against.activated.emit(index)
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_inside == 15)
    top = str(pane.result.names[0])
    assert top == str(session.dataset.profile_names[2])
    assert pane.state.text() == "15 points against 15. p-values only rank."
    assert "not independent" in pane.state.toolTip()
    QTest.mouseClick(pane.plotted, Qt.MouseButton.LeftButton)
    assert pane.pages.currentWidget() is pane.volcano
    place = pane.volcano.place(0)
    assert place.x() > pane.volcano.width() / 2  # higher in STIM
    assert top in pane.volcano.told(0)
    QTest.mouseClick(pane.volcano, Qt.MouseButton.LeftButton, pos=place.toPoint())
    assert session.look.color_by == top
    path = tmp_path / "table.csv"
    monkeypatch.setattr(
        "napari_embedding_game.ui.tasks.save_dialog.QFileDialog.getSaveFileName",
        lambda *_: (str(path), ""),
    )
    pane.saved.trigger()
    assert len(path.read_text().splitlines()) == 6
    assert "Saved" in pane.state.text()
    pane.by_means.trigger()
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.method == "t-test")
    pane.aside.trigger()
    session.selection.select_points(np.arange(30, 40))
    qtbot.waitUntil(lambda: pane.result is not None)
    index = pane.against.findText("against the 30 points set aside")
    pane.against.setCurrentIndex(index)
    pane.against.activated.emit(index)
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_outside == 30)


@pytest.fixture
def held(monkeypatch):
    """Hold what a module of the Inspector works out while the event is cleared."""

    def hold(module, name):
        gate, work = threading.Event(), getattr(module, name)
        gate.set()

        def wait(*values, **options):
            gate.wait(20)
            return (yield from work(*values, **options))

        monkeypatch.setattr(module, name, wait)
        return gate

    return hold


def test_a_plot_saved_while_another_comparison_runs_has_its_own_title(
    qtbot, session, dock, show_markers, dataset, tmp_path, monkeypatch, held
):
    gate = held(markers_pane, "iter_markers")
    pane = show_markers(dataset)
    session.selection.select(0)
    qtbot.waitUntil(lambda: pane.result is not None)
    gate.clear()
    session.selection.select(2)
    assert pane.state.text() == "Comparing …"
    alone, page = tmp_path / "volcano.svg", tmp_path / "page.svg"
    monkeypatch.setattr(
        "napari_embedding_game.ui.tasks.save_dialog.QFileDialog.getSaveFileName",
        lambda *_: (str(alone), ""),
    )
    pane.drawn.trigger()
    choice = FigureChoice(has_clusters=False, has_volcano=True)
    with qtbot.waitSignal(dock.controller.writing.saved, timeout=60_000):
        dock.controller.writing.save_panels(choice, page)
    gate.set()
    for path in (alone, page):
        text = path.read_text()
        assert "0 against all the rest" in text
        assert "2 against all the rest" not in text
    assert len(list(session.comparisons)) == 1  # what was saved


def test_a_dot_plot_keeps_its_names_while_other_rows_are_compared(
    qtbot, session, inspector, play, dataset, held
):
    gate = held(dot_plot_pane, "iter_cluster_expression")
    sides = pd.Categorical(["left"] * 25 + ["right"] * 15)
    session.load(replace(dataset, obs=dataset.obs.assign(side=sides)))
    play()
    inspector.show()
    inspector.show(PLOTS)
    pane = inspector.plots.dot_plot

    def choose(words):
        pane.rows.setCurrentText(words)
        pane.rows.activated.emit(pane.rows.currentIndex())

    pane.genes.setText("a, b")
    choose("kind")
    qtbot.waitUntil(lambda: pane.plot() is not None and pane.plot().groups[0] == "B")
    gate.clear()
    choose("side")
    pane.scaled.toggle()  # which draws what there is
    assert pane.plot().groups == ("B", "T")
    gate.set()
    qtbot.waitUntil(lambda: pane.plot().groups == ("left", "right"))


def test_the_notebook_tells_what_was_kept_or_saved_and_not_what_was_clicked(
    qtbot, session, dock, show_markers, dataset, tmp_path, monkeypatch
):
    pane = show_markers(dataset)
    monkeypatch.setattr(
        "napari_embedding_game.ui.tasks.save_dialog.QFileDialog.getSaveFileName",
        lambda *_: (str(tmp_path / "table.csv"), ""),
    )
    for cluster in range(4):
        session.selection.select(cluster)
        qtbot.waitUntil(lambda: pane.result is not None and not pane._search.is_busy)
        if cluster == 1:
            pane.saved.trigger()
        elif cluster == 2:
            pane.kept.trigger()
            assert (
                pane.state.text()
                == "Kept for the notebook: Cluster 2 against all the rest."
            )
    path = tmp_path / "code.py"
    with qtbot.waitSignal(dock.controller.writing.saved, timeout=60_000):
        dock.controller.writing.save(path)
    code = path.read_text()
    assert code.count("found = tl.compare(") == 2
    assert "Compared: Cluster 1 against all the rest" in code
    session.load(session.dataset)
    assert not list(session.comparisons)


def test_what_was_searched_goes_with_its_data(played, session):
    search = played.clusters.search
    played.show(MAP)
    search.setFocus()
    QTest.keyClicks(search, "cell3")
    assert search.hits
    session.load(session.dataset.subset(np.arange(40) < 30))
    assert search.text() == ""
    QTest.keyClick(search, Qt.Key.Key_Return)  # takes nothing of the former data
    assert session.selection.is_empty


def test_samples_are_compared_where_a_column_names_them(
    qtbot, show_markers, session, dataset
):
    rng = np.random.default_rng(0)
    donors = np.repeat(["d1", "d2", "d3", "d4"], 10)
    values = rng.random((40, 5)).astype(np.float32)
    values[:20, 2] += 3
    obs = dataset.obs.assign(donor=donors)
    pane = show_markers(replace(dataset, obs=obs, profile=values))
    session.selection.select_points(np.arange(20))
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_inside == 20)
    by_donor = {action.text(): action for action in pane.by_samples.actions()}
    assert list(by_donor) == ["donor"]
    by_donor["donor"].trigger()
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_inside == 2)
    assert pane.state.text().startswith("2 samples against 2. Each sample counts once")
    assert pane.result.names[0] == session.dataset.profile_names[2]
    pane.kept.trigger()
    assert [one.samples for one in session.comparisons] == ["donor"]
    session.selection.select_points(np.arange(10))
    qtbot.waitUntil(lambda: "1 sample with 10 or more" in pane.state.text())
    pane.by_ranks.trigger()
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_inside == 10)
    by_donor["donor"].trigger()
    session.load(dataset)  # where no column names samples
    pane.refresh()
    assert pane.by_ranks.isChecked()
    assert not pane.by_samples.menuAction().isVisible()


def test_a_p_value_that_is_too_small_for_a_number_is_not_called_zero():
    assert told_p(0.0) == "< 1e-300"
    assert told_p(0.0123) == "1.2e-02"
