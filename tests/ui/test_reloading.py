"""Data read again and other data: what a person made is never lost without a word."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData, read_h5ad
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication, QPushButton

import worlds
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import find_recent_sessions
from napari_embedding_game.session.groups import list_sample_columns
from napari_embedding_game.session.quality import find_group_codes
from napari_embedding_game.session.sources import make_source


@pytest.fixture
def cells(tmp_path):
    """60 cells with raw counts and two other spaces."""
    rng, data = np.random.default_rng(1), worlds.raw_counts()
    data.obsm = {"X_pca": rng.normal(size=(60, 5)), "X_other": rng.normal(size=(60, 4))}
    data.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


@pytest.fixture
def opened(load, save, answer, dock, cells):
    """The dock with these cells opened by its menu."""

    def choose(path):
        answer(path)
        dock.data_controls.start_panel.open_button.menu().actions()[0].trigger()

    load(lambda: choose(cells))
    dock.choose, dock.answer, dock.save = choose, answer, save
    return dock


def choose_space(load, dock, space):
    load(lambda: setattr(dock.data_controls.space, "value", space))


def named(session, name):
    labels = session.clusters.clustering.names_by_point
    return set(session.dataset.obs.index[labels == name])


def give_name(session, name):
    session.clusters.rename(session.clusters.clusters[0].id, name)
    return named(session, name)


def test_another_space_and_back_brings_the_former_map_and_all_names(
    load, play, qtbot, opened, session
):
    dock, spaces = opened, opened.data_controls.space
    assert spaces.value == "obsm['X_pca']"
    play()
    cells, picture = give_name(session, "T cells"), session.snapshot.embedding
    choose_space(load, dock, "obsm['X_other']")
    assert session.dataset.X.shape == (60, 4)
    layers = dock.controller.scene.map_layers
    qtbot.waitUntil(lambda: layers.points is None)  # no dead picture
    play()
    assert named(session, "T cells") == cells
    play()  # Restart
    assert named(session, "T cells") == cells
    assert len(dock.data_controls.breadcrumb.buttons) == 1
    choose_space(load, dock, "obsm['X_pca']")
    assert session.snapshot.embedding is picture
    assert len(dock.controller.scene.map_layers.points.data) == 60
    assert named(session, "T cells") == cells
    assert session.clusters.undo_label
    (other,) = dock.data_controls.breadcrumb.child_maps_button.menu().actions()
    other.trigger()
    assert spaces.value == "obsm['X_other']"
    assert named(session, "T cells") == cells


def test_counts_prepared_again_in_a_map_of_a_part_keep_all_maps(
    load, play, qtbot, opened, session
):
    dock = opened
    choose_space(load, dock, "X")
    panel = dock.data_controls.recipe_panel
    panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, 7
    load(panel.apply_button.click)
    play()
    give_name(session, "T & NK")
    session.selection.select_cluster(session.clusters.clusters[0].id)
    dock.selection_controls.embed_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    n_inside = len(session.dataset.obs)
    dock.data_controls.breadcrumb.buttons[0].click()
    (part,) = dock.data_controls.breadcrumb.child_maps_button.menu().actions()
    assert part.text() == f"T && NK ({n_inside} points)"  # else Qt shows no "&"
    way, whole = dock.data_controls.breadcrumb, session.snapshot.embedding
    session.selection.select_points(np.arange(3))
    dock.selection_controls.embed_button.click()
    assert "too few" in dock.data_controls.trouble.text()
    assert len(session.dataset.obs) == 60
    session.selection.select_points(np.arange(25))
    dock.selection_controls.embed_button.click()
    assert dock.data_controls.trouble.isHidden()
    qtbot.waitUntil(lambda: session.state == "finished")
    part = set(session.dataset.obs.index)
    cells = give_name(session, "naive")
    layers = dock.controller.scene.map_layers
    assert len(layers.points.data) == 25
    (back,) = way.buttons
    assert back.text() == f"‹ {dock.workspace.map_tree.path[0].title[:13]}…"
    back.click()
    assert way.buttons == []
    np.testing.assert_allclose(layers.points.data, layers.to_world(whole), atol=1e-3)
    _, again = way.child_maps_button.menu().actions()
    assert again.text() == "25 points (25 points)"
    again.trigger()
    assert way.child_maps_button.isHidden()
    assert named(session, "naive") == cells
    dock.data_fold.set_expanded(True)
    panel.numbers["min_genes"].value = 19  # which leaves out the same cells
    load(panel.apply_button.click)
    way.buttons[0].click()
    assert panel.numbers["min_genes"].value == 19
    way.child_maps_button.menu().actions()[1].trigger()
    panel.numbers["n_comps"].value = 6
    load(panel.apply_button.click)
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
    assert session.message.startswith("The map of cells.h5ad is kept: Data > Open oth")
    qtbot.waitUntil(lambda: len(find_recent_sessions()) == 1)
    dock.data_controls.start_panel.show_recent_maps()
    lines = dock.data_controls.start_panel.findChildren(QPushButton)
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
    asked, button = (
        dock.data_controls.genes_in_rows,
        dock.data_controls.transpose_button,
    )
    assert "The rows of matrix.csv look like genes" in asked.text()
    assert "look like genes" not in dock.data_controls.notes.text()  # once is enough
    assert (
        dock.data_controls.recipe_panel.isHidden()
    )  # these are no cells to be prepared
    assert button.property("role") == "main"
    dock.controller.reading.load(make_source(tmp_path / "matrix.csv"))
    assert asked.isHidden()
    assert button.isHidden()  # it would turn what is being read
    dock.data_controls.cancel_button.click()
    assert not asked.isHidden()
    load(button.click)
    assert asked.isHidden()
    assert session.dataset.obs.index.tolist() == cells
    assert session.dataset.var_names == tuple(genes)
    np.testing.assert_array_equal(session.dataset.X, counts.T)
    assert "without biotype" in dock.data_controls.notes.text()
    assert "pp.normalize_total" not in dock.data_controls.notes.text()  # but offered
    assert not dock.data_controls.recipe_panel.isHidden()
    for name, least in (("min_genes", 50), ("n_comps", 10)):
        dock.data_controls.recipe_panel.numbers[name].value = least
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
    panel = dock.data_controls.recipe_panel

    def prepare_and_run(n_comps, n_landmarks):
        panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, n_comps
        load(panel.apply_button.click)
        session.settings.n_landmarks = n_landmarks
        play()
        return [cluster.id for cluster in session.clusters.clusters]

    assert prepare_and_run(7, 4) == [0, 1, 2, 3]
    assert prepare_and_run(5, 2) == [0, 1]  # and not 0 and 2, whose cells they have


def test_the_title_of_a_map_between_others_can_be_read(play, qtbot, dock, session):
    play()
    for n_points in (30, 20):
        session.selection.select_points(np.arange(n_points))
        dock.selection_controls.embed_button.click()
        qtbot.waitUntil(lambda n=n_points: session.state == "finished")
    way = dock.data_controls.breadcrumb
    way.buttons[-1].click()
    dock.resize(dock.minimumWidth(), 800)
    dock.show()
    QApplication.processEvents()
    assert way.child_maps_button.isVisible()
    wide = way.current.fontMetrics().horizontalAdvance
    assert way.current.width() >= wide(way.current.text()[:10])


# Files that have changed on disk since they were read


def of_kinds(n=60, seed=0):
    """Return a table of three kinds, far apart and in turn, of these numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 8 * (np.arange(n) % 3)[:, None]
    return pd.DataFrame(X, columns=list("abcd")).round(6)


def item_of(dock, name):
    """Return the item of a column in the list of columns."""
    items = dock.data_controls.columns_panel.list
    (found,) = (
        item
        for item in map(items.item, range(items.count()))
        if item.text().partition("  ·  ")[0] == name
    )
    return found


def embed_without(dock, name):
    """Untick a column, and press Read again."""
    item_of(dock, name).setCheckState(Qt.CheckState.Unchecked)
    dock.data_controls.columns_panel.apply_button.click()


def told(qtbot, dock):
    """Wait until reading has ended without anything new, and return what is said."""
    qtbot.waitUntil(lambda: not dock.controller.reading.jobs.is_busy)
    return dock.data_controls.trouble.text()


def csv_of(path, table, names=None):
    named = table if names is None else table.set_axis(pd.Index(names, name="name"))
    named.to_csv(path, index=names is not None)
    return path


def name_kind(session, kind=0):
    """Name every third cell, and return their numbers by which they are known."""
    rows = np.arange(len(session.dataset.obs)) % 3 == kind
    session.clusters.make_group(rows, "IsK0")
    return {tuple(row) for row in numbers_named(session, "IsK0")}


def numbers_named(session, name):
    """Return the numbers (m, 3) of what has a name: those of columns a, b and c."""
    dataset, labels = session.dataset, session.clusters.clustering.names_by_point
    (columns,) = np.nonzero(np.isin(dataset.profile_names, list("abc")))
    return dataset.profile[np.asarray(labels) == name][:, columns]


def test_a_table_without_names_that_was_sorted_is_refused(
    load, play, qtbot, opened, session, tmp_path
):
    table, dock = of_kinds(), opened
    path = csv_of(tmp_path / "table.csv", table)
    load(lambda: dock.choose(path))
    play()
    cells, shown = name_kind(session), session.dataset
    csv_of(path, table.sort_values("a"))
    embed_without(dock, "d")
    assert told(qtbot, dock).startswith(
        "table.csv has changed since it was read: its rows stand in another order, "
        "which their names do not show. The map is kept as it is: "
    )
    assert session.dataset is shown
    assert {tuple(row) for row in numbers_named(session, "IsK0")} == cells
    # Numbers of a few rows, another number of rows, and a column that is gone.
    changed = table.copy()
    changed.loc[[3, 5], "b"] += 1
    for other, why in (
        (changed, "2 of 60 rows have other numbers"),
        (table[:50], "it now has 50 rows instead of 60"),
        (table.drop(columns="b"), "it no longer has column b"),
    ):
        csv_of(path, other)
        dock.data_controls.columns_panel.set_columns(list("abcd"), list("abcd"))
        dock.data_controls.columns_panel.apply_button.click()
        if "column b" in why:
            embed_without(dock, "b")
        assert f"since it was read: {why}" in told(qtbot, dock)
        assert session.dataset is shown
    # A column more is no other row.
    csv_of(path, table.assign(e=np.arange(60.0) ** 2))
    dock.data_controls.columns_panel.set_columns(list("abcd"), list("abcd"))
    load(lambda: embed_without(dock, "d"))
    assert session.dataset.X.shape == (60, 3)
    assert {tuple(row) for row in numbers_named(session, "IsK0")} == cells


def test_what_a_column_is_taken_for_is_chosen_and_the_map_stays(
    load, play, opened, session, tmp_path
):
    table, dock, rows = of_kinds(), opened, np.arange(60)
    table = table.assign(grade=rows % 4, kit_id=rows % 3, cell_id=rows, state="on")
    table.loc[20:, "state"] = "off"
    path = csv_of(tmp_path / "table.csv", table)
    load(lambda: dock.choose(path))
    columns = dock.data_controls.columns_panel
    assert dock.data_controls.summary.text().endswith(
        "Groups: kit_id, state. Ids: cell_id."
    )
    play()
    cells, shown = name_kind(session), session.snapshot
    columns.button.click()
    assert columns.role.isHidden()
    assert columns.list_ticked_columns() == (*"abcd", "grade")
    for name in ("kit_id", "state"):
        item_of(dock, name).setSelected(True)
    assert columns.role.value == "groups"
    columns.role.value = "samples"
    assert item_of(dock, "state").text() == "state  ·  samples"
    load(columns.apply_button.click)
    # The map and its names stay, and what samples are follows.
    assert session.snapshot is shown
    assert {tuple(row) for row in numbers_named(session, "IsK0")} == cells
    assert dock.data_controls.summary.text().endswith(
        "Samples: kit_id, state. Ids: cell_id."
    )
    assert list_sample_columns(session.dataset) == ["kit_id", "state"]
    assert find_group_codes(session.dataset).keys() == {"kit_id", "state"}
    # What is embedded follows, too, and more than one choice is said.
    columns.list.clearSelection()
    for name in ("grade", "kit_id"):
        item_of(dock, name).setSelected(True)
    assert columns.role.value is None
    columns.role.value = "ids"
    load(columns.apply_button.click)
    assert session.dataset.var_names == tuple("abcd")
    roles = {"grade": "ids", "kit_id": "ids", "cell_id": "ids", "state": "samples"}
    assert session.dataset.roles == roles
    assert {tuple(row) for row in numbers_named(session, "IsK0")} == cells
    # A text can be no number, which is said; what was read stays.
    item_of(dock, "state").setSelected(True)
    columns.role.value = "numbers"
    columns.apply_button.click()
    assert session.dataset.roles == roles
    archive.save_session(
        dock.workspace.map_tree.to_saved_session(), saved := tmp_path / "map.zip"
    )
    load(lambda: dock.choose(saved))
    assert session.dataset.roles == roles


def test_what_genes_hold_is_said_and_can_be_corrected(
    load, play, opened, session, tmp_path
):
    dock, X = opened, session.dataset.profile
    assert dock.data_controls.summary.text().endswith("\nGenes: raw counts.")
    play()
    shown, columns = session.snapshot, dock.data_controls.columns_panel
    columns.button.click()
    assert columns.gene_kind.value == "counts"
    columns.gene_kind.value = "logarithms"
    load(columns.apply_button.click)
    assert session.snapshot is shown
    assert dock.data_controls.summary.text().endswith("\nGenes: logarithms of counts.")
    one = session.dataset.expression.make_dense_column(0)
    np.testing.assert_array_equal(one, X[:, 0])
    archive.save_session(
        dock.workspace.map_tree.to_saved_session(), saved := tmp_path / "map.zip"
    )
    columns.gene_kind.value = "counts"
    load(columns.apply_button.click)
    usual = np.log1p(1e4 * one / X.sum(axis=1))
    np.testing.assert_allclose(
        session.dataset.expression.make_dense_column(0), usual, rtol=1e-5
    )
    load(lambda: dock.choose(saved))
    assert session.dataset.expression.kind == "logarithms"
    np.testing.assert_array_equal(session.dataset.expression.make_dense_column(0), one)


def test_a_sorted_table_with_names_is_matched_and_that_is_said(
    load, play, qtbot, opened, session, tmp_path
):
    table, dock = of_kinds(), opened
    names = [f"cell {i:02d}" for i in range(60)]
    path = csv_of(tmp_path / "table.csv", table, names)
    load(lambda: dock.choose(path))
    play()
    cells = name_kind(session)
    order = np.random.default_rng(0).permutation(60)
    csv_of(path, table.iloc[order], np.array(names)[order])
    load(lambda: embed_without(dock, "d"))
    assert session.dataset.X.shape == (60, 3)
    assert {tuple(row) for row in numbers_named(session, "IsK0")} == cells
    assert session.message == (
        "table.csv stands in another order since: its rows were matched by their "
        "names, and have the same numbers."
    )
    # The same names on other rows are no proof.
    shown = session.dataset
    csv_of(path, table.iloc[order], names)
    embed_without(dock, "c")
    assert "another order, which their names do not show" in told(qtbot, dock)
    assert session.dataset is shown


def subsample(path, seed):
    """Write another draw of cells under the names 0, 1, 2, ..., as scanpy does."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, 60)
    pca = rng.normal(size=(60, 5)) + 6 * kinds[:, None]
    data = AnnData(sp.csr_matrix(rng.poisson(2, (60, 30)).astype(np.float32)))
    data.obs["kind"] = pd.Categorical.from_codes(kinds, list("ABC"))
    data.obsm = {"X_pca": pca, "X_other": rng.normal(size=(60, 4))}
    data.write_h5ad(path)
    return data


def test_another_draw_of_cells_under_the_same_names_is_refused(
    load, play, qtbot, opened, session, tmp_path
):
    dock, path = opened, tmp_path / "drawn.h5ad"
    data = subsample(path, 1)
    load(lambda: dock.choose(path))
    play()
    is_a = (session.dataset.obs["kind"] == "A").to_numpy()
    session.clusters.make_group(is_a, "A cells")
    subsample(path, 2)
    dock.data_controls.space.value = "obsm['X_other']"
    sentence = told(qtbot, dock)
    assert "drawn.h5ad has changed since it was read: 60 of 60 rows have" in sentence
    assert dock.data_controls.space.value == "obsm['X_pca']"
    assert named(session, "A cells") == set(session.dataset.obs.index[is_a])
    # Nothing is written along it either.
    actions = dock.run_controls.save_button.menu().actions()
    target = tmp_path / "map.h5ad"
    dock.answer(target)
    next(a for a in actions if ".h5ad" in a.text()).trigger()
    qtbot.waitUntil(lambda: not dock.controller.writing.busy_text)
    assert (
        "drawn.h5ad has changed since it was read: 60 of"
        in dock.data_controls.trouble.text()
    )
    assert not target.exists()
    # Sorted, with further results, it is written to by name.
    order = np.random.default_rng(0).permutation(60)
    data.obsm["X_umap"] = data.obsm["X_pca"][:, :2]
    data[order].write_h5ad(path)
    dock.save(target)
    found = read_h5ad(target).obs
    assert (
        (found["embedding_game_annotation"] == "A cells") == (found["kind"] == "A")
    ).all()
    load(lambda: setattr(dock.data_controls.space, "value", "obsm['X_other']"))
    assert named(session, "A cells") == set(data.obs_names[is_a])
