"""A file that brings a map, dropped on a window: shown by a click, and played on."""

import anndata
import numpy as np
import pandas as pd

from worlds import click


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
    maps = {"X_tsne": umap[:, ::-1] ** 2, "X_umap": umap}
    cells = anndata.AnnData(obs=obs, obsm={"X_pca": X, **maps})
    cells.write_h5ad(tmp_path / "cells.h5ad")

    dock = person.dock
    session, run = dock.controller.session, dock.run_controls
    person_at_the_window.drop_files(person.viewer, tmp_path / "cells.h5ad")
    qtbot.waitUntil(
        lambda: session.dataset is not None and run.given_button.isVisible()
    )
    for name, given in maps.items():  # the second beside the first, which stays
        run.given_maps_menu.aboutToShow.emit()
        assert [one.text() for one in run.given_button.menu().actions()] == [*maps]
        run.given_maps_menu.actions()[[*maps].index(name)].trigger()
        qtbot.waitUntil(
            lambda: session.state == "finished" and run.given_button.isVisible()
        )
        shown = session.snapshot.embedding
        assert np.corrcoef(shown[:, 0], given[:, 0])[0, 1] > 0.999
    other = session.timeline.marks[0]
    assert other.title == "X_tsne"
    dock.timeline_controls.begin_comparison(other.number)
    qtbot.waitUntil(lambda: session.view.comparison is not None)
    dock.timeline_controls.end.click()
    assert dock.display_controls.color_by.value == "cell_type"
    qtbot.waitUntil(lambda: "misplaced" in dock.trust_controls.summary.text())

    qtbot.waitUntil(run.continue_button.isVisible)
    click(run.continue_button)
    qtbot.waitUntil(lambda: session.settings.method == "game")
    qtbot.waitUntil(lambda: session.state == "finished")
    assert not np.array_equal(session.snapshot.embedding, shown)
    assert not run.continue_button.isVisible()
