from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from napari.settings import get_plugin_settings
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

import worlds
from napari_embedding_game.data import palette
from napari_embedding_game.data.as_anndata import read
from napari_embedding_game.data.formats.tables import result_from_features
from napari_embedding_game.session.axis_values import find_axis_values
from napari_embedding_game.session.cluster_expression import (
    RowChoice,
    assign_figure_rows,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.style.coloring import (
    BUILT_IN,
    STRETCH,
    UNCOLORED,
    choice_name_in_file,
    choice_of_feature,
    color_by_column,
    color_by_column_or_feature,
    color_points,
    composition_columns,
    find_informative_columns,
    list_color_choices,
)
from napari_embedding_game.ui.style.legend import LegendView
from napari_embedding_game.ui.tasks.writing import find_map_colors


def test_what_can_colour_names_before_numbers(dataset):
    marked = dataset
    dataset = replace(dataset, profile_names=tuple(f"PC{i}" for i in range(5)))
    dataset.obs.insert(0, "barcode", [f"ACGT{i}" for i in range(40)])
    dataset.obs["empty"] = np.nan
    listed = list_color_choices(dataset)
    assert listed == [*BUILT_IN, "barcode", "kind", "counts"]
    assert list_color_choices(None) == list(BUILT_IN)
    assert find_informative_columns(dataset) == ["barcode", "kind", "counts"]
    numbers = np.random.default_rng(0).random((40, 3))
    table = pd.DataFrame(numbers, columns=["area", "intensity", "roundness"])
    table["kind"] = ["B", "T"] * 20
    table.loc[0, "area"] = np.finfo(float).max  # stands for a missing one
    loaded = result_from_features(table, "nuclei").dataset
    assert np.ptp(color_by_column_or_feature("area", loaded).extent) < 1
    assert find_axis_values(loaded, "area").isna().tolist() == [True] + 39 * [False]
    listed = list_color_choices(loaded)
    assert listed == [*BUILT_IN, "kind", "area", "intensity", "roundness"]
    assert list_color_choices(marked)[-5:] == [*"abcde"]  # as markers of cytometry
    stains = ("DAPI1", "DAPI2", "actin1", "actin2", "actin3")
    assert list_color_choices(replace(marked, profile_names=stains))[-5:] == [*stains]
    two = result_from_features(table[["area", "roundness"]], "nuclei").dataset
    assert list_color_choices(two) == [*BUILT_IN, "area", "roundness"]
    many = pd.DataFrame(np.random.default_rng(0).random((40, 61)))
    assert list_color_choices(
        result_from_features(many.add_prefix("m"), "many").dataset
    ) == list(BUILT_IN)


def test_columns_called_as_what_is_built_in_are_those_of_the_file(
    dataset, make_snapshot
):
    numbers = np.linspace(0, 9, 40)
    obs = dataset.obs.assign(Cluster=["x", "y"] * 20, Pressure=numbers)
    obs["Cluster (file)"] = ["u", "v"] * 20
    genes = ("a", "Pressure", "kind", "d", "Cluster")
    both = replace(dataset, obs=obs, profile_names=genes)
    assert sorted(set(list_color_choices(both)) - set(BUILT_IN)) == [
        "Cluster (file)",
        "Cluster (file) (file)",
        "Pressure (file)",
        *("a", "counts", "d", "kind"),
    ]
    for choice, names in (
        ("Cluster (file)", ["x", "y"]),
        ("Cluster (file) (file)", ["u", "v"]),
    ):
        levels = color_by_column_or_feature(choice, both).levels
        assert [name for name, _ in levels] == names
    assert color_by_column_or_feature("Pressure (file)", both).extent == (0, 9)


def test_genes_called_as_something_else_can_be_reached(dataset):
    genes = ("a", "Pressure", "kind", "d", "Cluster")
    named = replace(dataset, profile_names=genes, has_expression=True)
    for place, choice in ((1, "Pressure (file)"), (2, "kind (gene)"), (0, "a")):
        assert choice_of_feature(genes[place], named) == choice
        assert choice_name_in_file(choice, named) == genes[place]
        values = dataset.profile[:, place]
        extent = color_by_column_or_feature(choice, named).extent
        assert extent == pytest.approx((values.min(), values.max()))
    assert (
        choice_name_in_file("a (file)", named)
        is choice_name_in_file("moon", named)
        is None
    )


def test_a_figure_has_the_red_of_the_map(dataset):
    session = worlds.session_of(dataset)
    worlds.play(session)
    snapshot = replace(session.snapshot, stretch=np.linspace(0, 6, 40, dtype="f4"))
    shown = color_points(STRETCH, session, snapshot)
    colors = shown.to_figure_colors("Misplaced")
    assert colors.limits == shown.extent
    np.testing.assert_array_equal(colors.scale[-1], shown.rgba[-1])
    assert shown.rgba[-1, 0] > 2 * shown.rgba[-1, 1]  # red


def test_a_category_has_one_colour_and_its_legend_counts(dataset):
    dataset.obs["kind"] = pd.Categorical(
        ["B"] * 10 + [None] * 10 + ["T"] * 20, categories=["A", "B", "T"]
    )
    dataset = replace(dataset, level_colors={"kind": {"B": "red"}})
    by_kind = color_by_column_or_feature("kind", dataset)
    assert len(np.unique(by_kind.rgba, axis=0)) == 3
    assert by_kind.levels == (("B", 10), ("T", 20), ("(missing)", 10))
    np.testing.assert_array_equal(by_kind.colors[1], by_kind.rgba[-1])
    np.testing.assert_array_equal(by_kind.rgba[0], [1, 0, 0, 1])
    codes = by_kind.find_levels().codes
    assert codes.tolist() == [0] * 10 + [-1] * 10 + [1] * 20
    batch = pd.Categorical(np.arange(40) % 3)
    batches = pd.DataFrame({"batch": batch}, dataset.obs.index)
    whole, rows = worlds.rows(np.eye(40), obs=batches), np.arange(40) % 3 > 0
    of_part, of_whole = (
        color_by_column_or_feature("batch", x) for x in (whole.subset(rows), whole)
    )
    np.testing.assert_array_equal(of_part.rgba, of_whole.rgba[rows])


def test_what_clusters_are_composed_of_are_kinds_of_cells_first(dataset):
    named = {"batch": ["x", "y"] * 20, "cell_type": ["T", "B"] * 20}
    named["cell_type_score"] = np.linspace(0, 1, 40)
    dataset = replace(dataset, obs=dataset.obs[["kind"]].assign(**named))
    columns = composition_columns(dataset)
    assert columns[:2] == ["kind", "cell_type"]
    assert set(columns[2:]) == {"batch", "cell_type_score"}


def test_keys_move_the_limits_of_the_colours(qtbot, dataset):
    legend = LegendView()
    qtbot.addWidget(legend)
    legend.show_coloring(color_by_column_or_feature("counts", dataset))
    slider, said = legend.color_scale.slider, []
    (low, _), step = slider.value(), 10 * slider.singleStep()
    legend.limits_changed.connect(said.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left):
        QTest.keyClick(slider, key)
    assert said[-1] == pytest.approx((low, slider.maximum() - step))
    QTest.keyClick(slider, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    assert said[-1] == pytest.approx((low + step, slider.maximum() - step))


def test_twelve_levels_are_seen_without_scrolling(qtbot):
    def height(n_levels):
        legend = LegendView()
        qtbot.addWidget(legend)
        levels = tuple((str(level), 9) for level in range(n_levels))
        colors = np.full((n_levels, 4), 0.5, np.float32)
        legend.show_coloring(replace(UNCOLORED, levels=levels, colors=colors))
        return legend.level_table.sizeHint().height()

    assert height(11) < height(12) == height(13)


def test_colours_and_order_of_the_file_are_everywhere(tmp_path, dock, play, session):
    cells = worlds.cells(40)
    cells.obs["kind"] = cells.obs["kind"].cat.set_categories([*"CAXB"])
    colors = ["#ff0000", "lime", "#777777", "#ffffff"]
    cells.uns["kind_colors"] = np.array(colors, dtype=object)
    cells.obsm["X_pca"] = np.random.default_rng(0).normal(size=(40, 4))
    cells.write_h5ad(tmp_path / "cells.h5ad")
    colors[1] = "#00ff00"
    assert list(read(tmp_path / "cells.h5ad").uns["kind_colors"]) == colors

    session.load(worlds.read(tmp_path / "cells.h5ad"))
    play()
    session.look.color_by = "kind"
    legend = dock.controller.scene.coloring
    assert [name for name, _ in legend.levels] == [*"CAB"]
    seen = list(map(to_hex, legend.colors))
    assert seen == ["#ff0000", "#00ff00", "#e0e0e0"]  # seen on a white canvas, too
    rows = assign_figure_rows(
        RowChoice("kind"), session.dataset, session.clusters.clustering
    )
    assert rows.categories.tolist() == [*"CAB"]
    figure = find_map_colors(dock.workspace)
    assert figure.levels.categories.tolist() == [*"CAB"]
    assert (figure.rgba[figure.levels.codes == 1] == [0, 1, 0, 1]).all()

    dock.cluster_pane.edits.more.aboutToShow.emit()
    dock.cluster_pane.edits.use.trigger()
    named = {c.name: c.color for c in session.clusters.clusters}
    assert named == dict(zip([*"CAB"], seen, strict=True))


@pytest.fixture
def preferences(monkeypatch):
    """What napari's Preferences show of the plugin; written nowhere."""
    settings = get_plugin_settings("napari-embedding-game")
    monkeypatch.setattr(type(settings), "save", lambda *_, **__: None)
    settings.window.group_colors = palette.USUAL
    yield settings.window
    settings.window.group_colors = palette.USUAL


def test_colour_blind_eyes_choose_a_palette_in_preferences(
    preferences, dock, play, session
):
    play()
    session.look.color_by = "kind"
    before = dock.controller.scene.coloring.colors
    preferences.group_colors = palette.COLOR_BLIND
    after = dock.controller.scene.coloring.colors
    assert to_hex(after[0]) == "#e69f00"
    drawn = dock.controller.scene.map_layers.points.face_color
    of_kind = color_by_column_or_feature("kind", session.dataset).rgba
    np.testing.assert_allclose(drawn, of_kind, atol=1e-6)
    preferences.group_colors = palette.USUAL
    np.testing.assert_array_equal(dock.controller.scene.coloring.colors, before)


def test_a_column_of_too_many_levels_leaves_the_colours_as_they_are():
    obs = pd.DataFrame(
        {"kind": [*"ab"] * 40, "many": [f"label {i}" for i in range(80)]},
        index=[f"cell {i}" for i in range(80)],
    ).astype("category")
    session = Session()
    session.load(worlds.rows(np.random.default_rng(0).normal(size=(80, 3)), obs=obs))
    color_by_column(session, "kind")
    assert session.look.color_by == "kind"
    color_by_column(session, "many")
    assert session.look.color_by == "kind"
