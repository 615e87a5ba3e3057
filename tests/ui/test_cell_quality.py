"""Quality of cells in the dock: histograms, limits, dragged or typed, doublets."""

import itertools

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData, read_h5ad
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

import worlds
from napari_embedding_game.data.quality_control import find_doublets
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.session.sources import FileSource, SampleSource
from napari_embedding_game.ui.style.form_widgets import FoldingSection

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(autouse=True)
def shown(dock):
    dock.resize(380, 900)
    dock.show()


@pytest.fixture
def source(tmp_path):
    """60 cells: the last ten of many mitochondrial counts, the first two deep ones."""
    cells = worlds.raw_counts()
    X = cells.X
    X[:, 0] = 1
    X[50:, 0] = 400
    X[:2] *= 20
    cells.var_names = ["MT-CO1", *(f"g{i}" for i in range(149))]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    return FileSource(tmp_path / "cells.h5ad")


@pytest.fixture
def recipe(dock, load, source):
    load(source)
    dock.data_controls.recipe_panel.fold.set_expanded(True)
    dock.data_controls.recipe_panel.numbers["min_genes"].value = 20
    dock.data_controls.recipe_panel.numbers["n_comps"].value = 7
    return dock.data_controls.recipe_panel


def test_limits_are_dragged_on_plots_and_what_they_leave_out_is_told(
    qtbot, recipe, dock, load, tmp_path
):
    numbers, cells, told = recipe.numbers, recipe.cells, recipe.state
    assert told.text() == "60 of 60 cells stay."
    worlds.choose(cells.view, "Mitochondrial %")
    worlds.drag(qtbot, cells, (0, 2), (20, 5))
    assert numbers["max_mito"].value == pytest.approx(20, abs=1)
    assert told.text().startswith("50 of 60 cells stay. Left out are 10 with more")
    worlds.drag(qtbot, cells, (-9, 2), (-5, 5))  # beside the axis
    assert numbers["max_mito"].value == pytest.approx(20, abs=1)
    worlds.choose(cells.view, "Genes against counts")
    worlds.drag(qtbot, cells, (1, 10), (1500, 10_000))
    _, bar = cells.canvas.canvas.figure.axes
    assert bar.get_ylabel() == "Mitochondrial %"
    assert numbers["max_counts"].value == pytest.approx(1500, rel=0.1)
    assert numbers["min_counts"].value == numbers["max_genes"].value == 0  # no limit
    assert told.text().startswith("48 of 60 cells stay.")
    assert " ".join(recipe.fold.button.text().split()).endswith("left out")
    load(recipe.apply_button.click)
    dataset = dock.workspace.session.dataset
    assert np.flatnonzero(~dataset.kept).tolist() == [0, 1, *range(50, 60)]
    assert (
        "10 of 60 cells left out because they have more"
        in dock.data_controls.notes.text()
    )
    assert cells.view.findText("Doublet scores") < 0  # these are no counts any more
    assert told.text().startswith("48 of 60 cells stay.")
    recipe.doublets.setChecked(True)
    rng = np.random.default_rng(1)
    np.save(tmp_path / "other.npy", rng.poisson(3, (60, 150)))
    load(FileSource(tmp_path / "other.npy"))  # other cells have no limits yet
    worlds.choose(cells.view, "Doublet scores")
    assert cells.canvas.plot is None  # until they are there
    assert cells.state.text().startswith("Scoring doublets")
    worlds.choose(cells.view, "Counts per cell")
    assert recipe.make_recipe().max_mito == recipe.make_recipe().max_counts == 0
    assert recipe.make_recipe().min_genes == Recipe().min_genes
    assert not recipe.doublets.isChecked()
    numbers["max_counts"].value = 700
    load(FileSource(tmp_path / "other.npy"))
    assert recipe.make_recipe().max_counts == 700  # of the same cells limits stay
    assert cells.state.text() == ""
    assert not numbers["max_mito"].native.isVisible()
    assert recipe.no_mito.isVisible()


def test_a_plot_is_whole_while_preparation_is_open_in_a_window_of_any_height(
    qtbot, recipe, dock
):
    cells, page, view = recipe.cells, dock.scroll.widget(), dock.scroll.viewport()
    folds = recipe.findChildren(FoldingSection)
    (preparation,) = (fold for fold in folds if fold is not recipe.fold)
    preparation.button.click()
    dock.resize(300, 900)
    QApplication.processEvents()
    # With a bar beside them texts take more lines: from some height on there is none.
    around = dock.height() - view.height()
    heights = [page.heightForWidth(view.width() + more) for more in (0, -20, 20)]
    for height in range(min(heights) - 4, max(heights) + 5, 2):
        preparation.button.click()
        dock.resize(300, height + around)
        QApplication.processEvents()
        preparation.button.click()
        for _ in range(3):
            QApplication.processEvents()
        assert cells.rect().contains(cells.canvas.geometry()), height


def test_what_was_typed_stays_when_another_file_fails(
    qtbot, recipe, dock, tmp_path, source
):
    numbers, batches = recipe.numbers, dock.data_controls.batches
    numbers["max_mito"].value = 5
    batches.set_choices([("none", None), ("day", "day")])  # as of a file with samples
    batches.value = "day"
    recipe.doublets.setChecked(True)
    before = recipe.make_recipe()
    assert (before.max_mito, before.batch_key) == (5, "day")
    (tmp_path / "broken.csv").write_text("")
    reading = dock.controller.reading
    reading.load(FileSource(tmp_path / "broken.csv"))
    assert recipe.isHidden()
    assert batches.isHidden()
    qtbot.waitUntil(lambda: reading.stage is None)
    assert recipe.make_recipe() == before
    assert dock.run_controls.run_button.text() == "Prepare and run"


def test_a_number_counts_that_is_being_typed(qtbot, recipe, dock, monkeypatch):
    asked = []
    reload = lambda then, recipe: asked.append(recipe)  # noqa: E731
    monkeypatch.setattr(dock.controller.reading, "reload_with_options", reload)
    field = recipe.numbers["max_counts"].native
    dock.activateWindow()
    dock.run_controls.run_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # as on macOS
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    field.selectAll()
    QTest.keyClicks(field, "480")
    QTest.mouseClick(dock.run_controls.run_button, LEFT)
    assert asked.pop().max_counts == 480


def test_cells_are_drawn_by_sample_where_rows_were_left_out(
    qtbot, dock, source, tmp_path
):
    cells = read_h5ad(source.path)
    cells.obs["day"] = pd.Categorical(["one", "two"] * 30)
    cells.X[:, 0] = np.geomspace(300, 30_000, 60).round()
    cells.X[3, 5] = np.nan
    cells.write_h5ad(tmp_path / "gaps.h5ad")
    reading, panel = dock.controller.reading, dock.data_controls.recipe_panel
    with qtbot.waitSignal(reading.loaded, timeout=30_000):
        drop = ReadOptions(missing="drop")
        reading.load(FileSource(tmp_path / "gaps.h5ad"), drop)
    panel.fold.set_expanded(True)
    canvas = worlds.drawn(qtbot, panel.cells)
    assert len(canvas.plot.samples) == 59
    low, high = canvas.axes.get_xlim()
    labels = (
        x for x in canvas.axes.get_xticklabels() if low < x.get_position()[0] < high
    )
    places = [x.get_window_extent() for x in labels]
    assert len(places) > 1
    assert all(one.x1 < two.x0 for one, two in itertools.pairwise(places))


@pytest.fixture
def crowd(tmp_path):
    """420 cells of three kinds: 20 are two of them, the first 7 are dying."""
    X = worlds.crowd()
    X[:7, 0] = 5000
    names = ["MT-CO1", *(f"g{i}" for i in range(199))]
    cells = AnnData(X, var=pd.DataFrame(index=names))
    cells.obs_names = [f"c{i}" for i in range(420)]
    cells.obs["day"] = pd.Categorical(["one", "two"] * 210)
    cells.write_h5ad(tmp_path / "crowd.h5ad")
    return tmp_path / "crowd.h5ad"


def test_all_cells_that_are_left_out_are_counted_and_the_file_says_why(
    dock, qtbot, load, crowd, play, save, tmp_path
):
    load(FileSource(crowd))
    panel = dock.data_controls.recipe_panel
    panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, 7
    panel.fold.set_expanded(True)
    worlds.choose(panel.cells.view, "Doublet scores")  # seen before any is left out
    canvas = panel.cells.canvas
    counts = read_h5ad(crowd)
    for batch in ("day", None):  # as the recipe is going to score them
        dock.data_controls.batches.value = batch
        qtbot.waitUntil(lambda: canvas.plot is not None)
        assert canvas.plot.axes == ("Doublet scores",)
        scores = canvas.plot.values["Doublet scores"]
        days = None if batch is None else counts.obs[batch]
        np.testing.assert_array_equal(scores, find_doublets(counts.X, days)[0])
    assert scores[400:].mean() > 2 * scores[:400].mean()
    assert canvas.plot.samples.nunique() == 2  # a line for each day
    panel.numbers["max_mito"].value = 50
    panel.doublets.click()
    told = panel.state
    assert told.text().startswith("413 of 420 cells stay.")
    assert told.text().endswith("Doublets are found among those that stay.")
    load(panel.apply_button.click)
    assert canvas.plot.axes == ("Doublet scores",)
    n = len(dock.workspace.session.dataset.obs)
    assert told.text() == (
        f"{n} of 420 cells stay. Left out are 7 with more than 50 % mitochondrial "
        f"counts, {413 - n} doublets."
    )
    found = told.text()
    for box, value in (
        (panel.numbers["max_mito"], 60),
        (dock.data_controls.batches, "day"),
    ):
        former, box.value = box.value, value  # others may be found then
        assert told.text().endswith("Doublets are found among those that stay.")
        box.value = former
        assert told.text() == found
    play()
    path = save(tmp_path / "map.h5ad")
    obs, X = read_h5ad(path).obs, read_h5ad(crowd).X
    np.testing.assert_allclose(obs["total_counts"], X.sum(axis=1))
    np.testing.assert_allclose(obs["n_genes_by_counts"], (X > 0).sum(axis=1))
    np.testing.assert_allclose(
        obs["pct_counts_mt"], 100 * X[:, 0] / X.sum(axis=1), rtol=1e-5
    )
    assert obs["doublet_score"].isna().tolist() == [True] * 7 + [False] * 413
    is_out = obs["embedding_game_cluster"] == "unassigned"
    why = obs["embedding_game_left_out"]
    assert why.notna().equals(is_out)
    assert why.value_counts().to_dict() == {
        "doublet (scrublet)": 413 - n,
        "more than 50 % mitochondrial counts": 7,
    }


def test_a_session_brings_back_what_was_prepared_and_how(
    dock, qtbot, load, crowd, play, save, monkeypatch, tmp_path
):
    load(FileSource(crowd))
    panel = dock.data_controls.recipe_panel
    panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, 7
    panel.doublets.click()
    load(panel.apply_button.click)
    play()
    session, maps = dock.workspace.session, dock.workspace.map_tree
    before, told = session.dataset, panel.state.text()
    maps.open_child_map(np.arange(len(before.obs)) < 100, "a part")
    maps.open("")
    save(tmp_path / "work.zip")
    load(SampleSource("digits"))
    panel.numbers["n_comps"].value = 50  # typed for other data

    def again(*_, **__):
        raise AssertionError("this was worked out before")

    with monkeypatch.context() as context:
        context.setattr("scanpy.pp.pca", again)
        context.setattr("scanpy.pp.scrublet", again)
        load(dock.data_controls.start_panel.ask_and_open_file)
    np.testing.assert_array_equal(session.dataset.X, before.X)
    pd.testing.assert_frame_equal(session.dataset.obs, before.obs)
    assert session.dataset.notes == before.notes
    np.testing.assert_array_equal(
        session.dataset.projection.loadings, before.projection.loadings
    )
    assert panel.fold.isVisibleTo(panel)
    assert panel.state.text() == told
    assert panel.numbers["n_comps"].value == 7
    assert panel.apply_button.isVisibleTo(panel)
    assert dock.data_controls.batches.isVisibleTo(dock.data_controls)
    assert "day" in dock.data_controls.batches.choices
    assert dock.run_controls.stage.text().startswith("Opened.")
    assert dock.run_controls.continue_button.isVisible()
    (part,) = (place.key for place in maps.maps if place.key != maps.current)
    maps.open(part)
    np.testing.assert_array_equal(session.dataset.X, before.X[:100])
    maps.open("")
    dock.data_fold.set_expanded(True)
    panel.numbers["n_comps"].value = 5
    load(panel.apply_button.click)
    assert session.dataset.X.shape == (len(before.obs), 5)
