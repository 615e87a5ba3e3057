"""Positions in tissue: what they are read from, their units, sections and pictures."""

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

from napari_embedding_game.data.as_anndata import read as read_as_anndata
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.positions import find_tissue
from napari_embedding_game.data.tissue import TissueImage, describe_tissue
from napari_embedding_game.session.file.codec import read_part, write_parts
from napari_embedding_game.session.file.rows import (
    StoredRows,
    to_dataset,
    to_stored_rows,
)
from worlds import read

N = 400


def table(*names, **columns):
    """Return a table of random columns, each in a range of its own, and others."""
    rng = np.random.default_rng(0)
    random = {name: rng.uniform(i, i + 1, N) for i, name in enumerate(names)}
    return pd.DataFrame({**random, **columns})


@pytest.fixture
def cells():
    """Cells of two sections whose positions lie on each other, in no order."""
    rng = np.random.default_rng(1)
    obs = pd.DataFrame(
        {"library_id": rng.permutation(["b", "a"] * (N // 2)), "depth": rng.random(N)},
        index=[f"c{i}" for i in rng.permutation(10 * N)[:N]],
    )
    adata = AnnData(rng.random((N, 4), np.float32), obs)
    adata.obsm["X_pca"] = rng.random((N, 8))
    adata.obsm["spatial"] = rng.uniform(0, 1000, (N, 2))
    adata.obsm["spatial"][3] = np.nan
    return adata


def picture(height, width, scale):
    pixels = np.random.default_rng(0).random((height, width, 3), np.float32)
    scales = {"tissue_hires_scalef": scale, "spot_diameter_fullres": 80.0}
    return {"images": {"hires": pixels}, "scalefactors": scales}


@pytest.mark.parametrize(
    ("names", "found", "unit"),
    [
        ("y_centroid, x_centroid", "x_centroid, y_centroid", "µm"),
        ("X_centroid, Y_centroid, area", "X_centroid, Y_centroid", "pixel"),
        ("center_y, center_x, fov", "center_x, center_y", "µm"),
        ("CenterX_local_px, CenterY_local_px, CenterY_global_px, CenterX_global_px",
         "CenterX_global_px, CenterY_global_px", "pixel"),
        ("Cells_Location_Center_X, Nuclei_Location_Center_Y, Cells_Location_Center_Y",
         "Cells_Location_Center_X, Cells_Location_Center_Y", "pixel"),
        ("AreaShape_Center_Y, AreaShape_Center_X",
         "AreaShape_Center_X, AreaShape_Center_Y", "pixel"),
        ("Centroid X µm, Centroid Y µm", "Centroid X µm, Centroid Y µm", "µm"),
        ("array_col, array_row, pxl_row_in_fullres, pxl_col_in_fullres",
         "pxl_col_in_fullres, pxl_row_in_fullres", "pixel"),
        ("array_row, array_col", "array_col, array_row", ""),
        ("centroid-0, centroid-1", "centroid-1, centroid-0", "pixel"),
        ("centroid-0, centroid-1, centroid-2",
         "centroid-2, centroid-1, centroid-0", "pixel"),
        ("x, y", "x, y", ""),
        ("min_x, max_x, min_y, max_y, umap_1, umap_2, Location_MaxIntensity_X, t",
         "", ""),
    ],
)  # fmt: skip
def test_columns_are_found_by_name_with_their_unit(names, found, unit):
    frame = table(*names.split(", "))
    tissue = find_tissue(frame, {})
    assert (tissue is None) == (not found)
    if tissue is not None:
        assert (tissue.origin, tissue.unit) == (found, unit)
        np.testing.assert_allclose(tissue.positions, frame[found.split(", ")])


def test_millimetres_become_micrometres_and_an_even_plane_is_no_third_axis():
    frame = table("x_slide_mm", "y_slide_mm", z_slide_mm=1.0)
    tissue = find_tissue(frame, {})
    assert tissue.unit == "µm"
    np.testing.assert_allclose(tissue.positions, frame.iloc[:, :2] * 1000)
    frame["z_slide_mm"] = frame["x_slide_mm"] * 2
    assert find_tissue(frame, {}).positions.shape == (N, 3)


def test_a_person_chooses_by_roles():
    frame = table("x_centroid", "y_centroid", "array_row", "array_col", "a", "b")
    for roles, origin in (
        ({"array_row": "positions", "array_col": "positions"}, "array_col, array_row"),
        ({"x_centroid": "numbers"}, "array_col, array_row"),
        ({"a": "positions", "b": "positions"}, "a, b"),
    ):
        assert find_tissue(frame, roles).origin == origin


def test_no_row_may_have_both_axes():
    frame = table("x_centroid", "y_centroid")
    frame["y_centroid"] = "1.2.3"
    assert find_tissue(frame, {}) is None


def test_sections_are_groups_that_lie_on_each_other():
    frame = table("x", "y")
    frame["y"] -= 1
    tiles = (frame * 4).astype(int)
    frame["fov"] = tiles["x"] * 4 + tiles["y"]
    frame["region"] = np.where(np.hypot(frame["x"], frame["y"]) < 0.5, "in", "out")
    assert find_tissue(frame, {}).section_column == ""  # side by side
    frame["Slice_ID"] = np.random.default_rng(2).integers(0, 3, N)
    assert find_tissue(frame, {}).section_column == "Slice_ID"
    assert find_tissue(frame, {"Slice_ID": "ids"}).section_column == ""
    frame["x"] += 2 * frame["Slice_ID"]
    assert find_tissue(frame, {}).section_column == ""


@pytest.mark.parametrize("ending", [".h5ad", ".zarr"])
@pytest.mark.filterwarnings("ignore:Writing zarr v2")
def test_positions_sections_and_pictures_of_a_file(cells, tmp_path, ending):
    cells.uns["spatial"] = {"b": picture(20, 30, 0.05), "a": picture(10, 15, 0.1)}
    path = tmp_path / f"cells{ending}"
    (cells.write_h5ad if ending == ".h5ad" else cells.write_zarr)(path)
    dataset = read(path)
    assert dataset.space == "obsm['X_pca']"  # positions are never embedded
    tissue = dataset.tissue
    np.testing.assert_allclose(tissue.positions, cells.obsm["spatial"], rtol=1e-6)
    assert (tissue.unit, tissue.section_column) == ("pixel", "library_id")
    np.testing.assert_array_equal(
        tissue.images["b"].pixels, cells.uns["spatial"]["b"]["images"]["hires"]
    )
    np.testing.assert_allclose(tissue.images["b"].step, 20)
    np.testing.assert_allclose(tissue.images["a"].origin, 4.5)
    assert describe_tissue(tissue) == (
        "Tissue: obsm['spatial'] in pixels, 399 of 400 rows, sections by library_id, "
        "2 pictures."
    )
    written = read_as_anndata(path)
    np.testing.assert_array_equal(written.obsm["spatial"], tissue.positions)


def test_a_file_may_have_pictures_of_other_cells_or_lack_some(cells):
    picture_of_a = picture(10, 15, 0.1)
    cells.uns["spatial"] = {"b": picture(20, 30, 0.05), "a": picture_of_a}
    part = from_anndata(cells[cells.obs["library_id"] == "a"].copy(), "part")
    assert part.tissue.section_column == ""
    np.testing.assert_allclose(part.tissue.images[""].origin, 4.5)
    assert not part.notes
    cells.uns["spatial"] = {"a": picture_of_a}
    cells.obs["kind"] = ["a", "c"] * (N // 2)  # no sections, by its name
    both = from_anndata(cells, "both").tissue
    assert (both.section_column, [*both.images]) == ("library_id", ["a"])


def test_rows_keep_their_positions(cells):
    whole = from_anndata(cells, "cells")
    order = np.random.default_rng(3).permutation(N)
    turned = whole.reorder_source_rows(order)
    part = turned.subset(np.arange(N) % 3 == 0)
    expected = cells.obsm["spatial"][order][::3]
    np.testing.assert_allclose(part.tissue.positions, expected, rtol=1e-6)
    assert len(part.source_tissue) == N
    assert part.obs.index.equals(cells.obs_names[order][::3])


def test_a_session_file_holds_positions_and_pictures(cells, tmp_path):
    cells.uns["spatial"] = {"b": picture(20, 30, 0.05), "a": picture(10, 15, 0.1)}
    dataset = from_anndata(cells, "cells").subset(np.arange(N) % 2 == 0)
    with (tmp_path / "map.zip").open("wb") as file:
        write_parts(file, {"rows": to_stored_rows(dataset)})
    rows = read_part(tmp_path / "map.zip", "rows", StoredRows)
    again = to_dataset(rows).tissue
    np.testing.assert_array_equal(again.positions, dataset.tissue.positions)
    assert again.section_column in to_dataset(rows).obs
    np.testing.assert_array_equal(
        again.images["a"].pixels, dataset.tissue.images["a"].pixels
    )


def test_a_unit_is_told_by_equal_columns(cells):
    cells.obs[["x_centroid", "y_centroid"]] = cells.obsm["spatial"]
    tissue = from_anndata(cells, "cells").tissue
    assert (tissue.origin, tissue.unit) == ("obsm['spatial']", "µm")


@pytest.mark.parametrize("names", ["yx", "xy", "ab", "aa"])
def test_axes_that_a_table_calls_y_and_x_change_places(cells, names):
    places = cells.obsm["spatial"]
    table = pd.DataFrame(places, cells.obs_names, [*names])
    cells.obsm["spatial"] = table
    expected = places[:, ::-1] if names == "yx" else places
    positions = from_anndata(cells, "cells").tissue.positions
    np.testing.assert_allclose(positions, expected, rtol=1e-6)


def test_regions_of_spatialdata_are_sections(cells):
    cells.obsm["spatial"][cells.obs["library_id"] == "a"] += 5000
    assert from_anndata(cells, "cells").tissue.section_column == ""
    cells.uns["spatialdata_attrs"] = {"region_key": "library_id", "region": ["a", "b"]}
    assert from_anndata(cells, "cells").tissue.section_column == "library_id"


def test_a_table_with_gaps_and_texts_is_read_in_any_order(tmp_path):
    frame = table("Location_Center_Y", "area", "Location_Center_X", "mean")
    frame["ImageNumber"] = np.random.default_rng(0).integers(1, 4, N)
    frame.loc[5, "Location_Center_X"] = np.nan
    frame = frame.sample(frac=1, random_state=0).set_index(pd.Index(range(N, 0, -1)))
    frame.to_csv(tmp_path / "nuclei.csv", index=False)
    dataset = read(tmp_path / "nuclei.csv")
    assert dataset.var_names == ("area", "mean")
    expected = frame[["Location_Center_X", "Location_Center_Y"]].to_numpy(copy=True)
    expected[np.isnan(expected[:, 0])] = np.nan
    np.testing.assert_allclose(dataset.tissue.positions, expected, rtol=1e-6)
    assert dataset.tissue.section_column == "ImageNumber"
    embedded = "Location_Center_X", "area"
    chosen = read(tmp_path / "nuclei.csv", columns=embedded, missing="drop")
    assert chosen.tissue is None  # it is embedded


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"images": {"hires": np.zeros((3, 4, 5, 6))}}, "shape"),
        ({"images": {"hires": np.zeros((3, 4), np.int64)}}, "int64 values"),
        ({"images": {"hires": np.broadcast_to(np.uint8(0), (10**5, 10**4))}}, "pixels"),
        ({"scalefactors": {"tissue_hires_scalef": 0.0}}, "scale is 0"),
        ({"scalefactors": {}}, "tissue_hires_scalef"),
        ({"images": {}}, "neither hires nor lowres"),
    ],
)
def test_a_damaged_picture_is_left_out_with_a_sentence(cells, change, reason):
    cells.uns["spatial"] = {"a": picture(20, 30, 0.05) | change}
    dataset = from_anndata(cells, "cells")
    (note,) = dataset.notes
    assert "The picture of a was left out" in note
    assert reason in note
    assert not dataset.tissue.images
    assert len(dataset.tissue) == N


def test_wrong_shapes_are_refused(cells, tmp_path):
    with pytest.raises(ValueError, match="lies at"):
        TissueImage(np.zeros((3, 4)), np.ones(2), np.array([0.0, np.nan]))
    cells.obsm["spatial"] = np.full((N, 2), 7.0)  # all at one place
    assert from_anndata(cells, "cells").tissue is None
    import h5py

    cells.write_h5ad(tmp_path / "short.h5ad")
    with h5py.File(tmp_path / "short.h5ad", "r+") as file:
        del file["obsm/spatial"]
        file["obsm/spatial"] = np.random.default_rng(0).random((N - 1, 2))
    with pytest.raises(DataError, match="damaged"):
        read(tmp_path / "short.h5ad")
