"""Data read again and other data: what a person made is never lost without a word."""

import numpy as np
import pandas as pd
import pytest
from qtpy.QtWidgets import QApplication, QPushButton

import worlds
from napari_embedding_game.session.file.autosave import find_recent_sessions
from napari_embedding_game.session.sources import source_of


@pytest.fixture
def cells(tmp_path):
    """60 cells with raw counts and two other spaces."""
    rng, data = np.random.default_rng(1), worlds.raw_counts()
    data.obsm = {"X_pca": rng.normal(size=(60, 5)), "X_other": rng.normal(size=(60, 4))}
    data.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


@pytest.fixture
def opened(load, answer, dock, cells):
    """The dock with these cells opened by its menu."""

    def choose(path):
        answer(path)
        dock.data.start.open_button.menu().actions()[0].trigger()

    load(lambda: choose(cells))
    dock.choose = choose
    return dock


def choose_space(load, dock, space):
    load(lambda: setattr(dock.data.space, "value", space))


def named(session, name):
    labels = session.clusters.clustering.names
    return set(session.dataset.obs.index[labels == name])


def give_name(session, name):
    session.clusters.rename(session.clusters.clusters[0].id, name)
    return named(session, name)


def test_another_space_and_back_brings_the_former_map_and_all_names(
    load, play, qtbot, opened, session
):
    dock, spaces = opened, opened.data.space
    assert spaces.value == "obsm['X_pca']"
    play()
    cells, picture = give_name(session, "T cells"), session.snapshot.embedding
    choose_space(load, dock, "obsm['X_other']")
    assert session.dataset.X.shape == (60, 4)
    layers = dock.controller.scene.layers
    qtbot.waitUntil(lambda: layers.points is None)  # no dead picture
    play()
    assert named(session, "T cells") == cells
    play()  # Restart
    assert named(session, "T cells") == cells
    assert len(dock.data.breadcrumb.buttons) == 1
    choose_space(load, dock, "obsm['X_pca']")
    assert session.snapshot.embedding is picture
    assert len(dock.controller.scene.layers.points.data) == 60
    assert named(session, "T cells") == cells
    assert session.clusters.undo_label
    (other,) = dock.data.breadcrumb.parts.menu().actions()
    other.trigger()
    assert spaces.value == "obsm['X_other']"
    assert named(session, "T cells") == cells


def test_counts_prepared_again_in_a_map_of_a_part_keep_all_maps(
    load, play, qtbot, opened, session
):
    dock = opened
    choose_space(load, dock, "X")
    panel = dock.data.recipe
    panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, 7
    load(panel.apply.click)
    play()
    give_name(session, "T & NK")
    session.selection.select(session.clusters.clusters[0].id)
    dock.select.embed.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    n_inside = len(session.dataset.obs)
    dock.data.breadcrumb.buttons[0].click()
    (part,) = dock.data.breadcrumb.parts.menu().actions()
    assert part.text() == f"T && NK ({n_inside} points)"  # else Qt shows no "&"
    way, whole = dock.data.breadcrumb, session.snapshot.embedding
    session.selection.select_points(np.arange(3))
    dock.select.embed.click()
    assert "too few" in dock.data.trouble.text()
    assert len(session.dataset.obs) == 60
    session.selection.select_points(np.arange(25))
    dock.select.embed.click()
    assert dock.data.trouble.isHidden()
    qtbot.waitUntil(lambda: session.state == "finished")
    part = set(session.dataset.obs.index)
    cells = give_name(session, "naive")
    layers = dock.controller.scene.layers
    assert len(layers.points.data) == 25
    (back,) = way.buttons
    assert back.text().startswith("‹ cells.h5ad")
    back.click()
    assert way.buttons == []
    np.testing.assert_allclose(layers.points.data, layers.to_world(whole), atol=1e-3)
    _, again = way.parts.menu().actions()
    assert again.text() == "25 points (25 points)"
    again.trigger()
    assert way.parts.isHidden()
    assert named(session, "naive") == cells
    dock.data_fold.expand()
    panel.numbers["min_genes"].value = 19  # which leaves out the same cells
    load(panel.apply.click)
    way.buttons[0].click()
    assert panel.numbers["min_genes"].value == 19
    way.parts.menu().actions()[1].trigger()
    panel.numbers["n_comps"].value = 6
    load(panel.apply.click)
    assert session.dataset.X.shape == (25, 6)
    assert set(session.dataset.obs.index) == part
    play()
    assert named(session, "naive") == cells
    while way.buttons:
        way.buttons[0].click()
    assert session.dataset.X.shape == (60, 7)
    assert {"T & NK", "naive"} <= {c.name for c in session.clusters.clusters}


def test_other_data_leave_a_copy_of_the_map(
    load, play, qtbot, opened, session, tmp_path
):
    dock = opened
    play()
    cells = give_name(session, "T cells")
    table = tmp_path / "table.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3))).to_csv(table)
    load(lambda: dock.choose(table))
    assert len(session.dataset.obs) == 30
    qtbot.waitUntil(lambda: len(find_recent_sessions()) == 1)
    dock.data.start.show_last_maps()
    lines = dock.data.start.findChildren(QPushButton)
    (line,) = (one for one in lines if "1 named" in one.text())
    assert "cells" in line.text()
    line.click()
    qtbot.waitUntil(lambda: session.dataset.X.shape[0] == 60)
    assert named(session, "T cells") == cells


def test_genes_in_rows_are_asked_about_and_transposed(
    load, save, play, qtbot, opened, session, tmp_path
):
    dock, rng = opened, np.random.default_rng(0)
    letters = rng.choice(list("ACGT"), (40, 16))
    cells = [f"{''.join(row)}-1" for row in letters]
    counts = rng.poisson(2.0, (150, 40))
    genes = ["T", *(f"G{i}" for i in range(149))]  # T: a gene, and no time
    table = pd.DataFrame(counts, pd.Index(genes, name="gene"), cells)
    table.insert(0, "biotype", "protein_coding")
    table.to_csv(tmp_path / "matrix.csv")
    load(lambda: dock.choose(tmp_path / "matrix.csv"))
    asked, button = dock.data.genes_in_rows, dock.data.transpose
    assert "The rows of matrix.csv look like genes" in asked.text()
    assert "look like genes" not in dock.data.notes.text()  # once is enough
    assert dock.data.recipe.isHidden()  # these are no cells to be prepared
    assert button.property("role") == "main"
    dock.controller.reading.load(source_of(tmp_path / "matrix.csv"))
    assert asked.isHidden()
    assert button.isHidden()  # it would turn what is being read
    dock.data.cancel.click()
    assert not asked.isHidden()
    load(button.click)
    assert asked.isHidden()
    assert session.dataset.obs.index.tolist() == cells
    assert session.dataset.var_names == tuple(genes)
    np.testing.assert_array_equal(session.dataset.X, counts.T)
    assert "without biotype" in dock.data.notes.text()
    assert "pp.normalize_total" not in dock.data.notes.text()  # but offered
    assert not dock.data.recipe.isHidden()
    for name, least in (("min_genes", 50), ("n_comps", 10)):
        dock.data.recipe.numbers[name].value = least
    play()

    # Code and session say how the table was read.
    save(tmp_path / "map.ipynb")
    assert "transposed=True" in (tmp_path / "map.ipynb").read_text()
    save(tmp_path / "map.zip")
    load(lambda: dock.choose(tmp_path / "matrix.csv"))
    assert session.dataset.X.shape == (150, 40)
    with qtbot.waitSignal(session.restored, timeout=20_000):
        dock.controller.reading.open_session(tmp_path / "map.zip")
    assert not session.dataset.missing_reason
    assert session.dataset.obs.index.tolist() == cells
    assert session.dataset.X.shape == (40, 10)


def test_clusters_of_counts_prepared_again_have_no_gaps_in_their_numbers(
    load, play, opened, session
):
    dock = opened
    choose_space(load, dock, "X")
    panel = dock.data.recipe

    def prepare_and_run(n_comps, n_landmarks):
        panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, n_comps
        load(panel.apply.click)
        session.settings.n_landmarks = n_landmarks
        play()
        return [cluster.id for cluster in session.clusters.clusters]

    assert prepare_and_run(7, 4) == [0, 1, 2, 3]
    assert prepare_and_run(5, 2) == [0, 1]  # and not 0 and 2, whose cells they have


def test_the_title_of_a_map_between_others_can_be_read(play, qtbot, dock, session):
    play()
    for n_points in (30, 20):
        session.selection.select_points(np.arange(n_points))
        dock.select.embed.click()
        qtbot.waitUntil(lambda n=n_points: session.state == "finished")
    way = dock.data.breadcrumb
    way.buttons[-1].click()
    dock.resize(dock.minimumWidth(), 800)
    dock.show()
    QApplication.processEvents()
    assert way.parts.isVisible()
    wide = way.current.fontMetrics().horizontalAdvance
    assert way.current.width() >= wide(way.current.text()[:10])
