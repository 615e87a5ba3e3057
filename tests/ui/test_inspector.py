"""The tab of the selection: what is inside the chosen clusters, and their markers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.inspect.clusters import build_merge_tree
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.ui.game_dock import MAP, PLOTS, SELECTION
from napari_embedding_game.ui.inspector import selection_tab
from worlds import choose, column, measure

LEFT, CONTROL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def played(qtbot, play, inspector):
    """The views of a finished map."""
    play()
    qtbot.waitUntil(lambda: inspector.clusters.table.model().rowCount() == 4)
    return inspector


def report_of(qtbot, inspector, clusters):
    def arrived():
        report, labels = inspector.report, inspector.workspace.session.clusters.labels
        points = np.isin(labels, clusters)
        is_there = report is not None and report.size == points.sum()
        return is_there and points[report.sampled].all()

    qtbot.waitUntil(arrived)
    return inspector.report


def test_what_is_selected_is_described(qtbot, played, session):
    details = played.details
    assert details.hint.text().startswith("Click a group on the map")
    for cluster in (0, 2, 3, 1):  # the newest is shown
        session.selection.select_cluster(cluster)
    report = report_of(qtbot, played, (1,))
    assert report.size == 10
    assert details.title.text() == "Cluster 1"
    assert "10 points · 25% of all" in details.numbers.text()
    assert column(details.composition) == ["B", "T"]
    session.selection.toggle_cluster(3)
    assert report_of(qtbot, played, (1, 3)).size == 20
    assert details.title.text() == "2 clusters: 1, 3"
    assert details.title.toolTip() == details.title.text()  # which may be cut off
    session.selection.select_points(np.array([3, 4, 15]))
    qtbot.waitUntil(lambda: played.report.size == 3)
    assert details.title.text() == "Selected points"
    session.selection.select_points(np.array([7]))
    qtbot.waitUntil(lambda: details.title.text() == "cell7")
    qtbot.waitUntil(lambda: played.report.size == 1)
    played.show(SELECTION)
    former = played.report
    session.clusters.changed.emit()
    played.show(MAP)
    session.selection.select_cluster(2)
    qtbot.settle()
    assert played.report is former  # nobody looks
    played.show(SELECTION)
    assert report_of(qtbot, played, (2,)).size == 10
    session.selection.clear()
    assert played.dock.tabs.currentIndex() == MAP


def test_the_composition_is_of_the_best_column_until_another_is_chosen(
    qtbot, inspector, session, dataset, play, dock
):
    parts = pd.Categorical.from_codes(np.arange(40) // 10, list("wxyz"))
    no_kinds = dataset.obs.drop(columns="kind").assign(label=np.arange(40), day=parts)
    session.load(replace(dataset, obs=no_kinds))
    play()
    session.selection.select_cluster(1)
    assert report_of(qtbot, inspector, (1,)).column == "day"  # labels are numbers
    session.load(replace(dataset, obs=dataset.obs.assign(cell_type=parts)))
    session.load(replace(dataset, obs=session.dataset.obs.drop(columns="kind")))
    play()
    details = inspector.details
    session.selection.select_cluster(1)
    assert report_of(qtbot, inspector, (1,)).composition["level"].tolist() == ["x"]
    details.column.value = "counts"
    details.composition.rows_picked.emit([("y",)], True)  # of the report that is seen
    assert session.selection.rows.tolist() == list(range(10, 30))
    session.selection.select_cluster(1)
    qtbot.waitUntil(lambda: inspector.report.column == "counts")
    assert inspector.report.composition["level"][0].startswith("300 to")
    dock.display_controls.color_by.value = "cell_type"
    assert details.column.value == "cell_type"
    play()
    assert details.column.value == "cell_type"
    bare = session.dataset.obs.drop(columns=session.dataset.obs.columns)
    session.load(replace(dataset, obs=bare))
    play()
    session.selection.select_cluster(0)
    assert details.column.value is None
    session.add_columns(
        Dataset.with_map_column, "a", parts
    )  # comes to data without any
    assert details.column.value == "a"


def test_a_clicked_text_selects_its_point_and_the_list_stays(
    qtbot, play, inspector, session, dataset
):
    texts = ["long " * 200, *(f"text\n\n{i}" for i in range(1, 40))]
    session.load(replace(dataset, obs=dataset.obs.assign(text=texts)))
    play()
    session.selection.select_cluster(0)
    report = report_of(qtbot, inspector, (0,))
    inspector.resize(900, 700)
    inspector.show()
    view = inspector.details.texts
    inspector.details.tabs.setCurrentWidget(view)
    shown = dict(zip(report.sampled.tolist(), column(view), strict=True))
    assert len(shown.pop(0)) <= selection_tab.TEXT_LENGTH
    assert shown == {row: f"text {row}" for row in shown}
    place = view.visualRect(view.model().index(2, 0)).center()
    QTest.mouseClick(view.viewport(), LEFT, pos=place)
    assert session.selection.rows.tolist() == [report.sampled[2]]
    assert view.model().rowCount() == 10
    assert inspector.details.title.text() == "Cluster 0"
    session.selection.select_points(report.sampled[[4]])  # as a click in the image does
    assert view.list_selected_keys() == [report.sampled[4]]
    other = int(np.flatnonzero(session.clusters.labels == 1)[0])
    session.selection.select_points(np.array([other]))
    qtbot.waitUntil(lambda: column(view) == [f"text {other}"])
    details = inspector.details  # linked layers leave the tab that is open
    details.tabs.setCurrentWidget(details.markers)
    inspector.workspace.linked_layers.changed.emit(None)
    assert details.tabs.currentWidget() is details.markers


def test_a_picture_selects_its_point_and_stays_among_the_others(
    qtbot, play, inspector, session, dataset, monkeypatch
):
    monkeypatch.setattr(selection_tab, "MAX_PICTURES", 9)
    session.load(replace(dataset, images=np.zeros((40, 8, 8), np.uint8)))
    play()
    inspector.resize(1200, 700)
    inspector.show()
    session.selection.select_cluster(1)
    report_of(qtbot, inspector, (1,))
    tabs, view = inspector.details.tabs, inspector.details.thumbnails
    places = range(tabs.count())
    assert [tabs.tabText(p) for p in places if tabs.isTabVisible(p)] == ["Pictures"]
    members = np.flatnonzero(session.clusters.labels == 1)
    assert set(view.rows) < set(members)
    bottom = tabs.mapTo(inspector.details, tabs.rect().bottomLeft()).y()
    assert bottom > 0.95 * inspector.details.height()
    icons = [view.item(place).icon for place in range(9)]
    qtbot.waitUntil(lambda: not any(icon().isNull() for icon in icons))
    view.doItemsLayout()
    place = view.visualRect(view.model().index(2, 0)).center()
    QTest.mouseClick(view.viewport(), LEFT, pos=place)
    picked = session.selection.rows[0]
    assert picked == view.rows[2]
    assert view.count() == 9
    inspector.details.refresh()  # which keeps the cluster
    assert view.count() == 9
    assert [i.row() for i in view.selectedIndexes()] == view.find_indices_of_rows(
        [picked]
    )
    place = view.visualRect(view.model().index(4, 0)).center()
    QTest.mouseClick(view.viewport(), LEFT, CONTROL, place)
    assert set(session.selection.rows) == {picked, view.rows[4]}
    qtbot.waitUntil(lambda: not inspector.details._report_jobs.is_busy)
    assert view.count() == 9
    session.selection.select_points(np.array([2, 12, 22]))
    qtbot.waitUntil(lambda: view.count() == 3)


def test_a_name_shows_in_title_and_table_and_one_that_is_taken_is_explained(
    qtbot, played, session, play
):
    session.clusters.set_note(2, "CD3 high")
    played.show()
    session.selection.select_cluster(2)
    report_of(qtbot, played, (2,))
    title, message = played.details.title, played.clusters.message
    qtbot.waitUntil(title.isVisible)

    def name(text):
        title.selectAll()
        QTest.keyClicks(title, text)
        QTest.keyClick(title, Qt.Key.Key_Return)

    name("T cells of which there is more to say than the dock is wide")
    assert title.cursorPosition() == 0  # it begins at the left edge
    name("T cells")
    assert title.text() == "T cells"
    assert played.details.note.text() == "CD3 high"
    played.show(MAP)
    qtbot.waitUntil(lambda: "T cells" in column(played.clusters.table))
    played.show()
    session.selection.select_cluster(1)
    qtbot.waitUntil(lambda: title.text() == "Cluster 1")
    name("T cells")
    assert "already a cluster called T cells" in message.text()
    assert message.textFormat() == Qt.TextFormat.PlainText  # of <b>T</b>, too
    assert message.isVisible()
    assert title.text() == "Cluster 1"
    played.dock.activateWindow()
    title.setFocus()
    qtbot.waitUntil(title.hasFocus)
    title.selectAll()
    QTest.keyClicks(title, "typed for former cells")
    heard = []
    played.details.renamed.connect(lambda *named: heard.append(named))
    session.load(replace(session.dataset, name="others"))  # the title loses the focus
    play()
    assert not title.hasFocus()
    assert heard == []


def test_of_measured_objects_the_differences_are_told_and_no_genes(
    qtbot, inspector, session, play
):
    labels = np.kron(np.arange(1, 10).reshape(3, 3), np.ones((4, 4), int))
    session.load(measure(labels % 5 + 0.5, labels))
    play()
    session.selection.select_cluster(0)
    inspector.show()
    tabs = inspector.details.tabs
    assert tabs.tabText(tabs.currentIndex()) == "Differences"
    qtbot.waitUntil(lambda: bool(column(inspector.details.differences)))
    inspector.show(PLOTS)
    dots = inspector.plots.expression
    assert session.dataset.profile_names[0] in dots.genes.placeholderText()
    for tab, of in ((SELECTION, tabs), (PLOTS, inspector.plots.tabs)):
        inspector.show(tab)
        for place in range(of.count()):
            of.setCurrentIndex(place)
            for widget in filter(QWidget.isVisible, of.findChildren(QWidget)):
                for say in ("text", "toolTip", "placeholderText"):
                    assert "gene" not in str(getattr(widget, say, str)()).lower()


# The list of clusters


def test_the_slider_merges_clusters_everywhere(qtbot, played, session, dock):
    played.show(MAP)
    slider = played.clusters.slider
    assert (slider.slider.value(), slider.number.value()) == (3, 4)
    slider.slider.setFocus()
    QTest.keyClick(slider.slider, Qt.Key.Key_Left)
    qtbot.waitUntil(lambda: len(session.clusters.clusters) == 3)
    qtbot.waitUntil(lambda: played.clusters.table.model().rowCount() == 3)
    colors = dock.controller.scene.map_layers.points.face_color
    assert len(np.unique(colors, axis=0)) == 3
    slider.number.selectAll()
    QTest.keyClick(slider.number, Qt.Key.Key_2)
    session.clusters.changed.emit()  # as each frame of a running game does
    assert slider.number.text() == "2"
    QTest.keyClick(slider.number, Qt.Key.Key_Return)
    assert session.clusters.n_clusters == 2
    slider.number.setValue(4)
    assert session.clusters.n_clusters is None


def test_list_and_box_of_a_running_game(qtbot, played, session):
    """The box says as many clusters as the list has, which stays where it is."""
    number, table = played.clusters.slider.number, played.clusters.table
    labels = np.arange(40, dtype=np.int32)
    line = sp.csr_matrix(sp.eye(50, k=1) + sp.eye(50, k=-1))
    tree = build_merge_tree(line, np.bincount(labels, minlength=50))
    session.clusters.update_from_game(labels, 50, LandmarkMerge(line, tree))
    asked = session.clusters.n_clusters
    qtbot.waitUntil(lambda: table.rowCount() == number.value() < asked)
    number.setValue(asked)  # a person's number is taken as it is
    qtbot.waitUntil(lambda: table.rowCount() == number.value() == asked)
    session.clusters.update_from_game(labels, 40)
    played.show(MAP)
    qtbot.waitUntil(lambda: table.model().rowCount() == 40)
    lowest, bar = table.keys[39], table.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)  # it is laid out
    session.selection.select_cluster(lowest)
    assert bar.value() > 0
    bar.setValue(0)
    played.clusters.update_view()
    assert bar.value() == 0
    assert session.selection.clusters == (lowest,)


# Markers


@pytest.fixture
def save(answer, tmp_path):
    """Save the comparison on show; returns the file."""

    def save(pane):
        path = answer(tmp_path / "table.csv")
        pane.saved.click()
        assert pane.state.text() == "Saved as table.csv."
        return path

    return save


@pytest.fixture
def show_markers(session, inspector, play):
    """Play data with expression and open the tab of the markers."""

    def show(dataset):
        session.load(replace(dataset, has_expression=True))
        play()
        inspector.resize(900, 500)
        inspector.show()
        inspector.details.tabs.setCurrentWidget(inspector.details.markers)
        return inspector.details.markers

    return show


@pytest.fixture
def show_conditions(qtbot, session, show_markers, inspector):
    """Play data with expression, select all, and open the tab of the conditions."""

    def show(dataset):
        show_markers(dataset)
        session.selection.select_points(np.arange(len(dataset.obs)))
        details = inspector.details
        # Other data open the first tab.
        qtbot.waitUntil(lambda: details.report is not None)
        details.tabs.setCurrentWidget(details.conditions)
        return details.conditions

    return show


def test_markers_are_told_and_colour_the_map(
    qtbot, dataset, session, show_markers, inspector
):
    counts = np.random.default_rng(0).poisson(3.0, (40, 5)).astype(np.float32)
    pane = show_markers(dataset.with_matrices(profile=counts))
    session.selection.select_cluster(0)
    qtbot.waitUntil(lambda: pane.result is not None)
    found, inside = pane.result, session.selection.points
    assert pane.state.text().startswith("10 cells against 30. Use p-values to rank")
    tabs = inspector.details.tabs
    named = {tabs.tabText(i): tabs.isTabVisible(i) for i in range(tabs.count())}
    assert (named["Markers"], named["Differences"]) == (True, False)
    told = "Expression: counts, normalised to 10,000 per cell, log1p."
    assert told in pane.state.toolTip()
    assert "For a test, compare samples" in pane.state.toolTip()
    share = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 1e4)
    means = np.expm1(share[inside].mean(axis=0)), np.expm1(share[~inside].mean(axis=0))
    expected = np.log2(means[0] / means[1])[found.columns]
    np.testing.assert_allclose(found.logfoldchanges, expected, rtol=1e-3, atol=1e-4)
    pane.table.selectRow(0)
    assert session.look.color_by == str(found.names[0])
    choose(pane.against, "Against cluster 3")
    qtbot.waitUntil(lambda: pane.result.n_outside == 10)
    session.selection.select_clusters([0, 3])  # it still says so, of the two
    assert pane.against.currentText() == "Cluster 0 against Cluster 3"
    qtbot.waitUntil(lambda: pane.compared.groups.title == "Cluster 0 against Cluster 3")
    assert (pane.result.n_inside, pane.result.n_outside) == (10, 10)
    choose(pane.against, "Cluster 3 against Cluster 0")
    qtbot.waitUntil(lambda: pane.compared.groups.title == "Cluster 3 against Cluster 0")
    is_inside = pane.compared.groups.inside
    np.testing.assert_array_equal(is_inside, session.clusters.labels == 3)
    session.selection.select_points(np.array([1]))
    assert pane.result is None
    assert pane.state.text().startswith("Select two or more")


def test_markers_follow_edits_of_the_clusters_and_their_names(
    qtbot, dataset, session, show_markers, inspector, dock, answer
):
    def told():
        found, shown = pane.result, pane.compared
        return found and (found.n_inside, shown.groups.title.split(" against")[0])

    pane, edits = show_markers(dataset), inspector.clusters.edits
    session.selection.select_cluster(2)
    qtbot.waitUntil(lambda: told() == (10, "Cluster 2"))
    dock.cluster_pane.slider.number.setValue(2)
    qtbot.waitUntil(lambda: told() == (20, "Cluster 2"))
    assert pane.state.text().startswith("20 cells against 20.")
    dock.cluster_pane.slider.number.setValue(4)
    qtbot.waitUntil(lambda: told() == (10, "Cluster 2"))
    session.selection.select_clusters([2, 3])
    edits.merge.trigger()
    qtbot.waitUntil(lambda: told() == (20, "2 + 3"))
    (merged,) = session.selection.clusters
    dock.tabs.setCurrentIndex(PLOTS)
    plots = dock.plots_tab
    plots.tabs.setCurrentWidget(plots.volcano)
    inspector.details.renamed.emit(merged, "T cells", None)
    qtbot.waitUntil(lambda: told() == (20, "T cells"))
    assert plots.volcano.canvas.plot.title == "T cells against all the rest"
    answer("")  # cancelled
    plots.save_button.click()
    assert session.comparisons == ()


def test_any_two_of_many_levels_are_compared(
    qtbot, session, show_conditions, dataset, save
):
    obs = dataset.obs.assign(donor=list("abcdefgh") * 5)
    pane = show_conditions(replace(dataset, obs=obs))
    session.selection.select_points(np.arange(32))
    choose(pane.against, "donor")
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_outside == 28)
    assert pane.first.currentText() == "a (4)"
    assert pane.second.currentText() == "all others"
    assert pane.second.count() == 8  # all others, and seven levels
    choose(pane.second, "g (4)")
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_outside == 4)
    assert pane.compared.groups.title == "donor: a against g"
    save(pane)
    choose(pane.first, "g (4)")  # no level against itself
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_outside == 28)
    assert [one.title for one in session.comparisons] == ["donor: a against g"]
    # In other points there are two of them, and in the former ones all again.
    session.selection.select_points(np.flatnonzero(obs["donor"].isin(["a", "g"])))
    qtbot.waitUntil(lambda: pane.second.count() == 1)
    assert [pane.first.currentText(), pane.second.currentText()] == ["g (5)", "a (5)"]
    session.selection.select_points(np.arange(32))
    qtbot.waitUntil(lambda: pane.second.count() == 8)
    assert [pane.first.currentText(), pane.second.currentText()] == ["g (4)", "a (4)"]
    session.selection.select_points(np.arange(16))  # too few of each level
    assert pane.against.findText("donor") == -1


def test_two_conditions_are_compared_and_saved(
    qtbot, session, show_conditions, dataset, inspector, save, dock
):
    values = np.random.default_rng(0).random((40, 5)).astype(np.float32)
    values[:, 2:] *= 3
    values[::2, 2] += 3
    donor, cell_type = np.repeat(["d1", "d2", "d3", "d4"], 10), [*"abcd"] * 10
    obs = dataset.obs.assign(
        stim=["STIM", "CTRL"] * 20, cell_type=cell_type, donor=donor
    )
    pane = show_conditions(dataset.with_matrices(obs=obs, profile=values))
    session.selection.select_points(np.arange(2))
    assert pane.state.text().startswith("No column has two groups of three or more")
    session.selection.select_points(np.arange(30))
    assert pane.against.currentText() == "stim"  # before what names no condition
    qtbot.waitUntil(lambda: pane.result is not None)
    assert pane.compared.groups.title == "stim: CTRL against STIM"
    choose(pane.first, "STIM (15)")
    qtbot.waitUntil(lambda: pane.compared.groups.title == "stim: STIM against CTRL")
    assert pane.result.n_inside == 15
    plots = dock.plots_tab
    assert plots.conditions.shown_pane.markers is pane
    assert pane.result.names[0] == session.dataset.profile_names[2]
    assert len(save(pane).read_text().splitlines()) == 6
    uncorrected = pane.result.pvals
    choose(pane.test, "Wilcoxon, with ties")
    qtbot.waitUntil(lambda: pane.compared.groups.tie_correct)
    assert (pane.result.pvals <= uncorrected).all()
    save(pane)
    assert session.comparisons[-1].tie_correct
    choose(pane.test, "t-test")
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.method == "t-test")
    told = [one.title for one in session.comparisons]
    assert told == [*["stim: STIM against CTRL"] * 2]  # what was saved
    pane = inspector.details.markers
    inspector.details.tabs.setCurrentWidget(pane)
    session.clusters.make_group(session.selection.points, "these")
    session.selection.select_points(np.arange(30, 40))
    qtbot.waitUntil(lambda: pane.against.findText("Against these") >= 0)
    choose(pane.against, "Against these")
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_outside == 30)
    samples_are_compared_where_a_column_names_them(qtbot, pane, session, save)
    session.load(dataset)
    pane.update_view()
    assert pane.test.currentText() == "Wilcoxon"
    assert pane.test.count() == 3
    assert not list(session.comparisons)


def samples_are_compared_where_a_column_names_them(qtbot, pane, session, save):
    session.selection.select_points(np.arange(20))
    choose(pane.against, pane.against.itemText(0))
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_inside == 20)
    tests = [pane.test.itemText(place) for place in range(pane.test.count())]
    assert tests[3:] == ["Samples: donor"]
    choose(pane.test, "Samples: donor")
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_inside == 2)
    assert pane.state.text().startswith("Not paired: 2 against 2 samples.")
    assert "limma's moderated t-test" in pane.state.toolTip()
    save(pane)
    assert session.comparisons[-1].samples == "donor"
    session.selection.select_points(np.arange(10))
    qtbot.waitUntil(lambda: "Too few samples to tell" in pane.state.text())
    assert "chosen group has 1 sample with 10 or more" in pane.state.text()


def test_samples_in_both_groups_are_paired_and_rare_genes_are_told(
    qtbot, session, show_markers, dataset, inspector
):
    rates = np.array([0.02, 0.05, 4, 6, 6])
    rng = np.random.default_rng(0)
    values = np.log1p(rng.poisson(rates, (40, 5))).astype(np.float32)
    obs = dataset.obs.assign(donor=["d1", "d2"] * 20, stim=[*"ab"] * 20)
    pane = show_markers(dataset.with_matrices(obs=obs, profile=values))
    session.selection.select_points(np.arange(20))
    qtbot.waitUntil(lambda: pane.result is not None)
    tests = [pane.test.itemText(place) for place in range(pane.test.count())]
    assert tests[3:] == ["Samples: donor"]
    choose(pane.test, "Samples: donor")
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.n_inside == 2)
    said = (
        "Paired by donor: 2 samples, 4 profiles. Not tested: 2 genes with few counts."
    )
    assert pane.state.text() == said
    # Each level of the compared column is one sample.
    pane = inspector.details.conditions
    inspector.details.tabs.setCurrentWidget(pane)
    choose(pane.against, "donor")
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.design is None)
    assert pane.compared.groups.title == "donor: d1 against d2"
    assert pane.test.findText("Samples: donor") == -1
    choose(pane.against, "stim")
    assert pane.test.findText("Samples: donor") > 0


def test_a_heading_ranks_all_genes_that_are_certain(
    qtbot, session, show_markers, dataset
):
    rng = np.random.default_rng(0)
    values = rng.random((40, 60)).astype(np.float32)
    values[:10] += np.linspace(-0.9, 0.9, 60)
    values = np.clip(values, 0, None)
    names = tuple(f"g{i}" for i in range(60))
    pane = show_markers(dataset.with_matrices(profile=values, profile_names=names))
    session.selection.select_points(np.arange(10))
    qtbot.waitUntil(lambda: pane.result is not None)
    assert pane.table.keys == pane.result.names[:20].tolist()
    found = pane.result
    certain = found.pvals_adj <= 0.05
    assert 20 < certain.sum() < 60
    by_change = found.names[certain][np.argsort(found.logfoldchanges[certain])]
    click_heading(pane.table, 1)
    assert pane.table.keys == by_change[:20].tolist()
    click_heading(pane.table, 1)
    assert pane.table.keys == by_change[::-1][:20].tolist()
    click_heading(pane.table, 1)  # by their score again
    assert pane.table.keys == found.names[:20].tolist()


def click_heading(table, section):
    head = table.horizontalHeader()
    place = head.sectionViewportPosition(section) + head.sectionSize(section) // 2
    QTest.mouseClick(head.viewport(), LEFT, pos=QPoint(place, head.height() // 2))
