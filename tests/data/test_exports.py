"""What is exported, read back, is what was shown."""

import warnings
from dataclasses import replace

import anndata
import matplotlib
import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export import writers
from napari_embedding_game.data.export.plots import Levels, PointColors
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.export.writers import (
    WRITERS,
    features,
    write,
    write_figure,
    write_h5ad,
)
from napari_embedding_game.data.formats.tables import from_features
from napari_embedding_game.data.images.label_column import linked, match_rows
from napari_embedding_game.data.images.measure import measure
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read

NAMES = {0: "T cells", 2: "B, naïve"}


def with_objects(dataset, labels):
    return linked(dataset, match_rows(dataset.source_obs, labels))


COLORS = {0: "#ff0000", 2: "#00ff00"}


@pytest.fixture
def dataset(labels):
    """Rows of labels 2, 3, 7, 11, that of 7 left out."""
    table = {
        "label": [2, 3, 7, 11],
        "size": [1.0, 3, np.nan, 5],
        "tone": [1.0, 2, 2, 3],
    }
    return with_objects(
        from_features(table, "cells", options=ReadOptions(missing="drop")), labels
    )


@pytest.fixture
def result():
    return EmbeddingResult(
        embedding=np.array([[0, 1], [2, 3], [4, 5]], np.float32),
        landmarks=np.zeros((4, 2), np.float32),
        labels=np.array([3, 1, 2], np.int32),
        pressure=np.array([0.5, 0.25, 1], np.float32),
        stretch=np.array([1, 7.5, 0.5], np.float32),
        isolation=np.array([3, 1, 0.5], np.float32),
        energy=2.0,
        clusters=np.array([0, 0, 2], np.int32),
        cluster_names=NAMES,
        cluster_colors=COLORS,
        cluster_notes={2: "look again"},
    )


EXPECTED = ["T cells", "T cells", "unassigned", "B, naïve"]


def test_h5ad(dataset, result, tmp_path):
    write(dataset, result, tmp_path / "a.h5ad")
    adata = anndata.read_h5ad(tmp_path / "a.h5ad")
    cluster = adata.obs["embedding_game_cluster"]
    assert cluster.tolist() == EXPECTED
    assert cluster.cat.categories.tolist() == ["T cells", "B, naïve", "unassigned"]
    assert adata.obs["embedding_game_landmark"].tolist() == [3, 1, -1, 2]
    colors = adata.uns["embedding_game_cluster_colors"].tolist()
    assert colors == ["#ff0000", "#00ff00", "#b0b0b0"]
    record = adata.uns["embedding_game"]["clusters"]
    assert record["number"].tolist() == [0, 2]
    assert record["name"].tolist() == ["T cells", "B, naïve"]
    assert record["note"].tolist() == ["", "look again"]
    np.testing.assert_array_equal(
        adata.obsm["X_embedding_game"], [[0, 1], [2, 3], [np.nan] * 2, [4, 5]]
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables(dataset, result, tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    write(dataset, result, path)
    if ending == "csv":
        table = pd.read_csv(path, index_col="row")
    else:
        table = pd.read_parquet(path)
    assert table.index.astype(str).tolist() == ["1", "2", "3", "4"]
    assert table["embedding_game_cluster"].tolist() == EXPECTED
    assert table["label"].tolist() == [2, 3, 7, 11]
    assert table["embedding_game_landmark"].tolist() == [3, 1, -1, 2]
    np.testing.assert_array_equal(table["embedding_game_x"], [0, 2, np.nan, 4])
    np.testing.assert_array_equal(table["embedding_game_y"], [1, 3, np.nan, 5])
    np.testing.assert_allclose(table["embedding_game_pressure"], [0.5, 0.25, np.nan, 1])
    np.testing.assert_allclose(table["embedding_game_stretch"], [1, 7.5, np.nan, 0.5])
    np.testing.assert_allclose(table["embedding_game_isolation"], [3, 1, np.nan, 0.5])


@pytest.mark.parametrize("ending", ["h5ad", "csv", "parquet"])
def test_pressure_that_is_not_defined_is_in_no_file(dataset, result, tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    undefined = np.full_like(result.pressure, np.nan)
    unknown = replace(result, pressure=undefined, stretch=None, isolation=None)
    write(dataset, unknown, path)
    if ending == "h5ad":
        table = anndata.read_h5ad(path).obs
    else:
        table = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    assert "embedding_game_cluster" in table
    assert "embedding_game_pressure" not in table
    assert "embedding_game_stretch" not in table
    assert "embedding_game_isolation" not in table


def test_files_of_measured_objects_hold_their_measures(labels, tmp_path):
    image = np.random.default_rng(0).random(labels.shape)
    image[30, 38] = np.nan
    measured = measure(image, labels, options=ReadOptions(missing="drop"))
    n = len(measured.obs)
    result = EmbeddingResult(
        np.arange(2.0 * n, dtype=np.float32).reshape(n, 2),
        np.zeros((2, 2), np.float32),
        np.zeros(n, np.int32),
        np.zeros(n, np.float32),
        0.0,
    )
    write(measured, result, tmp_path / "a.csv")
    table = pd.read_csv(tmp_path / "a.csv", index_col="row")
    assert table.columns[:5].tolist() == [
        "label", "centroid_y", "centroid_x", "embedding_game_x", "embedding_game_y",
    ]  # fmt: skip
    assert table["label"].tolist() == [2, 3, 7, 11]
    assert table.loc[11, ["centroid_y", "centroid_x"]].tolist() == [30, 38]
    areas = [np.count_nonzero(labels == label) for label in (2, 3, 7)]
    assert table["area"].tolist()[:3] == areas
    assert np.isnan(table["intensity_mean"][11])
    places = dict(zip(table.columns, range(99), strict=False))
    assert places["area"] > places["embedding_game_pressure"]
    by_label = features(measured, result, label_ids=[7, 5])
    assert by_label["area"].tolist()[0] == areas[2]
    assert np.isnan(by_label["area"][1])
    write(measured, result, tmp_path / "a.h5ad")
    adata = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert adata.obs.columns[:3].tolist() == ["label", "centroid_y", "centroid_x"]
    np.testing.assert_allclose(adata[:3, "area"].X.ravel(), areas)


def test_a_row_that_is_no_object_has_no_label_in_a_file(labels, result, tmp_path):
    table = {"label": [2, 99, 11], "size": [1.0, 3, 5], "tone": [1.0, 2, 3]}
    dataset = with_objects(from_features(table, "cells"), labels)
    write(dataset, result, tmp_path / "a.csv")
    found = pd.read_csv(tmp_path / "a.csv", index_col="row")
    np.testing.assert_array_equal(found["label"], [2, np.nan, 11])
    assert found["embedding_game_x"].tolist() == [0, 2, 4]
    assert features(dataset, result, [11, 2])["embedding_game_x"].tolist() == [4, 0]


def test_without_merged_clusters_the_landmarks_are_the_clusters(dataset, result):
    plain = replace(result, clusters=None, cluster_names={}, cluster_colors={})
    table = features(dataset, plain)
    assert table["embedding_game_cluster"].tolist() == ["3", "1", "unassigned", "2"]
    assert "embedding_game_landmark" not in table


def test_clusters_of_one_name_are_one(dataset, result):
    same = replace(result, cluster_names={0: "T", 2: "T"})
    assert same.point_names().tolist() == ["T"] * 3
    column = features(dataset, same)["embedding_game_cluster"]
    assert column.cat.categories.tolist() == ["T", "unassigned"]


def test_colors_of_an_earlier_export_do_not_stay(counts_file, tmp_path):
    adata = anndata.read_h5ad(counts_file)
    adata.uns["embedding_game_cluster_colors"] = np.array(["#123456"] * 9, dtype=object)
    adata.write_h5ad(tmp_path / "b.h5ad")
    n = adata.n_obs
    result = EmbeddingResult(
        np.zeros((n, 2), np.float32),
        np.zeros((2, 2), np.float32),
        np.zeros(n, np.int32),
        np.zeros(n, np.float32),
        0.0,
    )
    write_h5ad(read(tmp_path / "b.h5ad"), result, tmp_path / "out.h5ad")
    uns = anndata.read_h5ad(tmp_path / "out.h5ad").uns
    assert "embedding_game_cluster_colors" not in uns


@pytest.mark.parametrize("colored", [True, False])
def test_scanpy_draws_the_result(dataset, result, tmp_path, colored):
    sc = pytest.importorskip("scanpy")
    if not colored:
        result = replace(result, cluster_colors={})
    write(dataset, result, tmp_path / "a.h5ad")
    adata = anndata.read_h5ad(tmp_path / "a.h5ad")
    matplotlib.use("Agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = sc.pl.embedding(
            adata, basis="X_embedding_game", color="embedding_game_cluster", show=False
        )
    shown = [text.get_text() for text in axes.get_legend().get_texts()]
    assert shown == ["T cells", "B, naïve", "unassigned"]
    matplotlib.pyplot.close("all")


def test_columns_of_a_layer_in_the_order_of_its_rows(dataset, result):
    table = features(dataset, result)
    assert len(table) == 4
    assert "label" not in table
    assert table["embedding_game_x"].tolist()[0] == 0
    assert table["embedding_game_cluster"].tolist() == EXPECTED


def test_columns_of_a_labels_layer_go_by_label(dataset, result):
    table = features(dataset, result, label_ids=[11, 2, 5, 7])
    assert table["index"].tolist() == [11, 2, 5, 7]
    assert table["embedding_game_cluster"].tolist() == [
        "B, naïve", "T cells", "unassigned", "unassigned",
    ]  # fmt: skip
    np.testing.assert_array_equal(table["embedding_game_x"], [4, 0, np.nan, np.nan])


def test_columns_by_label_need_labels(dataset, result):
    sentence = "not one label each"
    with pytest.raises(DataError, match=sentence):
        features(replace(dataset, source_objects=None), result, label_ids=[2, 3])
    twice = dataset.source_objects.take(np.array([0, 0, 1, 2]))
    with pytest.raises(DataError, match=sentence):
        features(replace(dataset, source_objects=twice), result, label_ids=[2, 3])


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_figure(dataset, result, tmp_path, ending):
    backend = matplotlib.get_backend()
    path = tmp_path / f"map.{ending}"
    write(dataset, result, path)
    first = path.read_bytes()
    write(dataset, result, path)
    assert path.read_bytes() == first
    assert matplotlib.get_backend() == backend
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if ending == "svg":
        text = first.decode()
        assert "T cells (2)" in text
        assert "B, naïve (1)" in text
        # A mark for each point, and one in the legend.
        assert text.count("<use") >= 3
        assert "fill: #ff0000" in text
        assert "fill: #00ff00" in text
    else:
        assert first.startswith(b"\x89PNG")


def test_names_that_mean_something_to_matplotlib(dataset, result, tmp_path):
    odd = replace(result, cluster_names={0: "_hidden", 2: "$broken^{"})
    write_figure(dataset, odd, tmp_path / "a.svg", title="$50^{ and $5")
    text = (tmp_path / "a.svg").read_text()
    assert "_hidden (2)" in text
    assert "$broken^{ (1)" in text.replace("\\", "")
    assert "$50^{ and $5" in text.replace("\\", "")


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Write a figure, and return what it was drawn of."""
    kept = []
    monkeypatch.setattr(writers, "save", lambda figure, path: kept.append(figure))

    def drawn(*args, **options):
        write_figure(*args, tmp_path / "a.png", **options)
        return kept[-1].axes

    return drawn


def test_a_figure_names_its_groups_and_counts_what_is_in_none(dataset, result, drawn):
    rgba = np.array([[1, 0, 0, 1], [0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5]])
    levels = Levels(("A", "empty", "B"), np.array([2, 0, -1]))
    (axes,) = drawn(dataset, result, colors=PointColors(rgba, "kind", levels))
    np.testing.assert_array_equal(axes.collections[0].get_facecolors(), rgba)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["A (1)", "B (1)", "missing (1)"]
    assert axes.get_legend().get_title().get_text() == "kind"
    shown = [disc.get_color() for disc in axes.get_legend().legend_handles]
    np.testing.assert_array_equal(shown, rgba[[1, 0, 2]])


def test_a_map_in_space_is_drawn_as_the_canvas_shows_it(dataset, result, drawn):
    places = np.random.default_rng(0).normal(size=(3, 3)) * [9, 5, 2]
    deep = replace(result, embedding=places)
    scale = np.array([[0, 0, 0, 1], [1, 1, 1, 1]])
    colors = PointColors(np.eye(4)[:3], "tone", scale=scale, limits=(2.0, 5.0))
    facing = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]])
    names = [("one", places[0])]
    axes, bar = drawn(dataset, deep, colors=colors, facing=facing, names=names)
    order = np.argsort(places @ np.cross(*facing))  # the nearest is drawn last
    seen = axes.collections[0].get_offsets()
    np.testing.assert_allclose(seen, (places @ facing.T)[order])
    assert axes.get_aspect() == 1
    assert axes.texts[0].xy == pytest.approx((places @ facing.T)[0])
    assert bar.get_ylim() == (2, 5)
    assert bar.get_ylabel() == "tone"
    assert len(drawn(dataset, deep)[0].collections[0].get_offsets()) == 3


def test_a_figure_of_very_many_groups_says_that_it_lists_none(dataset, result, drawn):
    codes = np.arange(60)
    many = replace(
        result, embedding=np.zeros((60, 2), np.float32), labels=codes, clusters=codes
    )
    (axes,) = drawn(dataset, many)
    assert axes.get_legend() is None
    assert axes.get_xlabel() == "Cluster: 60 colours, too many to list"


def test_ending_says_the_format(dataset, result, tmp_path):
    assert set(WRITERS) == {".h5ad", ".csv", ".parquet", ".png", ".svg", ".pdf"}
    with pytest.raises(DataError, match=r"a\.docx cannot be written: .*\.h5ad"):
        write(dataset, result, tmp_path / "a.docx")


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_nothing_is_left_of_an_export_that_failed(
    dataset, result, tmp_path, monkeypatch, ending
):
    def full_disk(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full_disk)
    path = tmp_path / f"a{ending}"
    path.write_text("an earlier result")
    with pytest.raises(DataError, match="could not be written"):
        write(dataset, result, path)
    assert path.read_text() == "an earlier result"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
