"""A file that brings a map, dropped on a window: shown by a click, and played on."""

import anndata
import numpy as np
import pandas as pd
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

import worlds

LEFT = Qt.MouseButton.LeftButton


def test_a_map_of_a_file_is_shown_doubted_and_played_on(
    person, qtbot, tmp_path, person_at_the_window
):
    rng = np.random.default_rng(0)
    kind = np.arange(150) % 3
    X = 8 * rng.normal(size=(3, 10))[kind] + rng.normal(size=(150, 10))
    umap = np.array([[0, 0], [9, 0], [0, 9]])[kind] + rng.normal(size=(150, 2))
    umap[7] = umap[8]
    obs = pd.DataFrame({"cell_type": pd.Categorical(np.array([*"abc"])[kind])})
    obs.index = [f"cell{i}" for i in range(150)]
    cells = anndata.AnnData(obs=obs, obsm={"X_pca": X, "X_umap": umap})
    cells.write_h5ad(tmp_path / "cells.h5ad")

    dock = person.dock
    session, run = dock.controller.session, dock.run
    person_at_the_window.drop_files(person.viewer, tmp_path / "cells.h5ad")
    qtbot.waitUntil(lambda: session.dataset is not None and run.given.isVisible())
    assert run.given.text() == "Show the map X_umap"
    QTest.mouseClick(run.given, LEFT)
    qtbot.waitUntil(lambda: session.state == "finished")
    shown = session.snapshot.embedding
    assert np.corrcoef(shown[:, 0], umap[:, 0])[0, 1] > 0.999
    assert dock.look.color_by.value == "cell_type"
    qtbot.waitUntil(lambda: "misplaced" in dock.trust.far.text())

    qtbot.waitUntil(run.go_on.isVisible)
    QTest.mouseClick(run.go_on, LEFT)
    qtbot.waitUntil(lambda: session.settings.method == "game")
    qtbot.waitUntil(lambda: session.state == "finished")
    assert not np.array_equal(session.snapshot.embedding, shown)
    assert not run.go_on.isVisible()


def test_new_cells_of_another_file_come_onto_the_published_map(
    person, tmp_path, person_at_the_window, answer
):
    known = worlds.cells(240)
    known.obsm["X_pca"] = known.X.toarray()[:, :8]
    kinds = known.obs["kind"].cat.codes.to_numpy()
    places = np.array([[0, 0], [9, 0], [0, 9]])[kinds]
    known.obsm["X_umap"] = places + np.random.default_rng(0).normal(size=(240, 2))
    known.write_h5ad(tmp_path / "atlas.h5ad")
    new = worlds.cells(90, seed=1)
    new.obsm["X_pca"] = new.X.toarray()[:, :8]
    new.write_h5ad(tmp_path / "new.h5ad")

    session = person.session
    person.open(tmp_path / "new.h5ad")
    person.run()
    title = f"Reference ({person_at_the_window.PLUGIN})"
    widget = person.open_widget(title)
    answer(tmp_path / "atlas.h5ad")
    person.press(widget.file)
    person.wait(lambda: widget.place.isVisible(), "the reference")
    person_at_the_window.pick(widget.label, "kind")
    person.press(widget.place)
    person.wait(lambda: session.behind is not None, "the map of the reference")
    assert "cells: " in widget.state.text()
    assert "unlike" in widget.state.text()
    drawn = session.behind.cells
    for axis, given in zip(drawn.T, known.obsm["X_umap"].T, strict=True):
        assert np.corrcoef(axis, given)[0, 1] > 0.99999
    obs = session.dataset.obs
    assert (obs["kind_predicted"].astype(str) == obs["kind"].astype(str)).mean() > 0.8
    published = obs[[f"X_umap of atlas.h5ad {axis}" for axis in (1, 2)]].to_numpy()
    low, high = known.obsm["X_umap"].min(0) - 2, known.obsm["X_umap"].max(0) + 2
    assert ((published > low) & (published < high)).all()
