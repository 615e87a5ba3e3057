"""What is exported, read back, is what was shown."""

from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.formats.tables import result_from_features
from napari_embedding_game.data.images.join import JoinRequest, join_with_labels
from napari_embedding_game.data.label_join import apply_join
from napari_embedding_game.data.read_options import ReadOptions
from worlds import clustering, layout, measure

NAMES = {0: "T cells", 2: "B, naïve"}
COLORS = {0: "#ff0000", 2: "#00ff00"}


@pytest.fixture
def dataset(labels):
    """Rows of labels 2, 3, 7, 11, that of 7 left out."""
    table = {
        "label": [2, 3, 7, 11],
        "size": [1.0, 3, np.nan, 5],
        "tone": [1, 2, 2, 3.0],
    }
    found = result_from_features(table, "cells", ReadOptions(missing="drop")).dataset
    return apply_join(
        found, join_with_labels(found.source_obs, JoinRequest("labels", labels))
    )


@pytest.fixture
def result():
    shown = Snapshot(
        iteration=0,
        n_iter=0,
        embedding=np.array([[0, 1], [2, 3], [4, 5]], np.float32),
        landmarks=np.zeros((4, 2), np.float32),
        labels=np.array([3, 1, 2], np.int32),
        pressure=np.array([0.5, 0.25, 1], np.float32),
        stretch=np.array([1, 7.5, 0.5], np.float32),
        isolation=np.array([3, 1, 0.5], np.float32),
        energy=2.0,
    )
    named = clustering(np.array([0, 0, 2]), NAMES, COLORS, {2: "look again"})
    return EmbeddingResult(shown, clustering=named)


EXPECTED = ["T cells", "T cells", "unassigned", "B, naïve"]


def test_h5ad(dataset, result, tmp_path):
    write_result(dataset, result, tmp_path / "a.h5ad")
    adata = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert adata.var.columns.empty
    known = replace(dataset, gene_ids={"tone": "ENSG00000141510"})
    write_result(known, result, tmp_path / "ids.h5ad")
    var = anndata.read_h5ad(tmp_path / "ids.h5ad").var
    assert var["gene_ids"].to_dict() == {"size": "", "tone": "ENSG00000141510"}
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


def test_files_of_measured_objects_hold_their_measures(labels, tmp_path):
    image = np.random.default_rng(0).random(labels.shape)
    image[30, 38] = np.nan
    measured = measure(image, labels, options=ReadOptions(missing="drop"))
    n = len(measured.obs)
    result = layout(n)
    write_result(measured, result, tmp_path / "a.csv")
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
    plate = replace(measured, source_obs=measured.source_obs.assign(row="A"))
    write_result(plate, result, tmp_path / "plate.csv")
    again = pd.read_csv(tmp_path / "plate.csv", index_col="row_name")
    assert (again.index.tolist(), set(again["row"])) == ([*table.index], {"A"})
    write_result(measured, result, tmp_path / "a.h5ad")
    adata = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert adata.obs.columns[:3].tolist() == ["label", "centroid_y", "centroid_x"]
    np.testing.assert_allclose(adata[:3, "area"].X.ravel(), areas)
