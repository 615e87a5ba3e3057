"""Quality of cells in the dock: histograms, limits, dragged or typed, doublets."""

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData, read_h5ad
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFileDialog, QPushButton

from napari_embedding_game.session.sources import FileSource, SampleSource

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def source(tmp_path):
    """60 cells: the last ten of many mitochondrial counts, the first two deep ones."""
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(1.0, 2.0, (1, 150)), (60, 150)).astype(np.float32)
    X[:, 0] = 1
    X[50:, 0] = 400
    X[:2] *= 20
    names = ["MT-CO1", *(f"g{i}" for i in range(149))]
    cells = AnnData(X, var=pd.DataFrame(index=names))
    cells.obs_names = [f"c{i}" for i in range(60)]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    return FileSource(tmp_path / "cells.h5ad")


@pytest.fixture
def load(qtbot, dock):
    def load(source):
        reading = dock.controller.reading
        with qtbot.waitSignal(reading.loaded, timeout=30_000):
            reading.load(source)

    return load


@pytest.fixture
def recipe(dock, load, source):
    load(source)
    dock.resize(380, 900)
    dock.show()
    dock.data.recipe.quality.fold.expand(animate=False)
    dock.data.recipe.numbers["min_genes"].value = 20
    dock.data.recipe.numbers["n_comps"].value = 7
    return dock.data.recipe


def test_limits_are_dragged_and_what_they_leave_out_is_told(recipe):
    quality = recipe.quality
    assert quality.state.text() == "60 of 60 cells stay."
    plain = quality.mito.picture.pixmap().toImage()
    quality.mito.slider.setValue((0.0, 10.04))
    assert quality.mito.limits == (0, 10)
    told = "10 with more than 10 % mitochondrial counts."
    assert quality.state.text() == f"50 of 60 cells stay. Left out are {told}"
    assert quality.mito.picture.pixmap().toImage() != plain  # grey beyond the limit
    low, high = quality.counts.slider.minimum(), quality.counts.slider.maximum()
    quality.counts.slider.setValue((low, np.log10(1510.0)))
    assert quality.counts.limits == (0, 1500)  # as a person would choose it
    assert quality.state.text().startswith("48 of 60 cells stay.")
    assert quality.fold.toggleButton().text().endswith("12 of 60 left out")
    quality.counts.slider.setValue((low, high))
    assert quality.counts.limits == (0, 0)  # at the end there is no limit


def test_cells_beyond_the_limits_are_left_out_and_the_limits_stay(
    qtbot, dock, session, recipe
):
    recipe.quality.mito.high.setValue(10)
    recipe.quality.counts.high.setValue(1500)
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=30_000):
        recipe.apply.click()
    assert np.flatnonzero(~session.dataset.kept).tolist() == [0, 1, *range(50, 60)]
    assert "10 of 60 cells left out because they have more than 10 %" in (
        dock.data.notes.text()
    )
    assert recipe.quality.state.text().startswith("48 of 60 cells stay.")
    assert recipe.quality.mito.limits == (0, 10)
    with qtbot.waitSignal(dock.controller.reading.loaded):
        recipe.undo.click()
    assert recipe.quality.mito.limits == (0, 10)
    assert session.dataset.kept.all()


def test_other_cells_have_no_limits_yet(recipe, load, source, tmp_path):
    recipe.quality.mito.high.setValue(10)
    recipe.quality.doublets.setChecked(True)
    rng = np.random.default_rng(1)
    np.save(tmp_path / "other.npy", rng.poisson(3, (60, 150)))
    load(FileSource(tmp_path / "other.npy"))
    assert recipe.quality.limits().max_mito == 0
    assert not recipe.quality.doublets.isChecked()
    assert not recipe.quality.mito.isVisible()
    assert recipe.quality.no_mito.isVisible()


@pytest.fixture
def crowd(tmp_path):
    """420 cells of three kinds: 20 are two of them, the first 7 are dying."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.3, 3, (3, 200))
    depths = rng.uniform(0.6, 1.6, 400)[:, None]
    pairs = np.array([(i % 3, (i + 1) % 3) for i in range(20)])
    X = rng.poisson(np.concatenate([rates[np.arange(400) % 3] * depths,
                                    rates[pairs].sum(axis=1)]))  # fmt: skip
    X[:7, 0] = 5000
    names = ["MT-CO1", *(f"g{i}" for i in range(199))]
    cells = AnnData(X.astype(np.float32), var=pd.DataFrame(index=names))
    cells.obs_names = [f"c{i}" for i in range(420)]
    cells.obs["day"] = pd.Categorical(["one", "two"] * 210)
    cells.write_h5ad(tmp_path / "crowd.h5ad")
    return tmp_path / "crowd.h5ad"


def test_all_cells_that_are_left_out_are_counted_and_the_file_says_why(
    dock, qtbot, load, crowd, play, monkeypatch, tmp_path
):
    load(FileSource(crowd))
    panel = dock.data.recipe
    panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, 7
    panel.quality.fold.expand(animate=False)
    panel.quality.mito.high.setValue(50)
    panel.quality.doublets.click()
    told = panel.quality.state
    assert told.text().startswith("413 of 420 cells stay.")
    assert told.text().endswith("Doublets are found among those that stay.")
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=60_000):
        panel.apply.click()
    n = len(dock.workspace.session.dataset.obs)
    assert told.text() == (
        f"{n} of 420 cells stay. Left out are 7 with more than 50 % mitochondrial "
        f"counts, {413 - n} doublets."
    )
    panel.quality.mito.high.setValue(60)  # others may be found within other limits
    assert told.text().endswith("Doublets are found among those that stay.")
    play()
    path = tmp_path / "map.h5ad"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *q: (str(path), ""))
    with qtbot.waitSignal(dock.controller.writing.saved):
        next(a for a in dock.run.save.menu().actions() if ".h5ad" in a.text()).trigger()
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
    dock, qtbot, load, crowd, play, monkeypatch, tmp_path
):
    load(FileSource(crowd))
    panel, reading = dock.data.recipe, dock.controller.reading
    panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, 7
    panel.quality.doublets.click()
    with qtbot.waitSignal(reading.loaded, timeout=60_000):
        panel.apply.click()
    play()
    session, maps = dock.workspace.session, dock.workspace.maps
    before, told = session.dataset, panel.quality.state.text()
    maps.embed(np.arange(len(before.obs)) < 100, "a part")
    maps.back()
    path = tmp_path / "work.zip"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *q: (str(path), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *q: (str(path), ""))
    with qtbot.waitSignal(dock.controller.writing.saved):
        next(
            a for a in dock.run.save.menu().actions() if "ession" in a.text()
        ).trigger()
    load(SampleSource("digits"))

    def again(*_, **__):
        raise AssertionError("this was worked out before")

    with monkeypatch.context() as context:
        context.setattr("scanpy.pp.pca", again)
        context.setattr("scanpy.pp.scrublet", again)
        with qtbot.waitSignal(reading.loaded, timeout=60_000):
            dock.data.start.choose_session()
    dock.resize(380, 900)
    dock.show()
    np.testing.assert_array_equal(session.dataset.X, before.X)
    pd.testing.assert_frame_equal(session.dataset.obs, before.obs)
    assert session.dataset.notes == before.notes
    np.testing.assert_array_equal(
        session.dataset.projection.loadings, before.projection.loadings
    )
    assert panel.quality.isVisible()
    assert panel.quality.state.text() == told
    assert panel.apply.isVisible()
    assert panel.apply.text() == "Prepare again"
    assert panel.batches.native.isVisible()
    assert "day" in panel.batches.choices
    buttons = dock.run.findChildren(QPushButton)
    shown = {button.text() for button in buttons if button.isVisible()}
    stage = dock.run.stage.text()
    assert {"Continue from here", "Run again"} <= shown
    assert "as it was saved" in stage
    (part,) = (place.key for place in maps.places if place.key != maps.current)
    maps.open(part)
    np.testing.assert_array_equal(session.dataset.X, before.X[:100])
    maps.back()
    dock.data_fold.expand(animate=False)
    panel.numbers["n_comps"].value = 5
    with qtbot.waitSignal(reading.loaded, timeout=60_000):
        panel.apply.click()
    assert session.dataset.X.shape == (len(before.obs), 5)
