"""Positions of rows of a table of SpatialData by the shapes and points beside it."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.data.tissue import describe_tissue
from worlds import read, to_wkb, transformation

N = 12
SQUARE = np.array([(0, 0), (2, 0), (2, 2), (0, 2)])
RNG = np.random.default_rng(0)
PLACES = RNG.uniform(0, 100, (2, N, 2))
"""Centres of the shapes of two elements, which both call theirs "0", "1" and so on."""


def squares(places, names=None):
    names = map(str, range(len(places))) if names is None else names
    shapes = [to_wkb(place - 1 + SQUARE) for place in places]
    return pd.DataFrame({"geometry": shapes}, index=pd.Index([*names]))


def spots(places):
    """Numbered spots, in no order."""
    order = RNG.permutation(len(places))
    shapes = [to_wkb(place) for place in places[order]]
    return pd.DataFrame({"geometry": shapes, "radius": 1.0}, index=order)


def table(regions, ids):
    return worlds.annotate(worlds.annotated(len(ids)), regions, ids)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_have_the_places_of_what_they_annotate(tmp_path, version):
    regions = RNG.permutation(["left", "right"] * N)
    ids = np.zeros(2 * N, int)
    for region in ("left", "right"):
        ids[regions == region] = RNG.permutation(N)
    ids[5] = 99
    turn = [
        transformation("scale", [2.0, 3.0]),
        transformation("affine", [[0, 1, 5], [1, 0, 7]]),
    ]
    elements = {
        "shapes/left": (
            squares(PLACES[0]),
            transformation("sequence", turn, unit="micrometer"),
        ),
        "shapes/right": (
            spots(PLACES[1]),
            transformation("translation", [-4, 2.5], unit="micrometer"),
        ),
    }
    # An identifier may be a number in the table and a text beside it.
    path = worlds.write_spatialdata(
        tmp_path / "s.zarr", table(regions, ids), elements, version
    )
    ids[5] = 0
    left = PLACES[0][ids] * [2, 3] @ [[0, 1], [1, 0]] + [5, 7]
    right = PLACES[1][ids] + [-4, 2.5]
    expected = np.where((regions == "left")[:, None], left, right)
    expected[5] = np.nan
    for opened in (path, path / "tables" / "cells"):
        dataset = read(opened)
        tissue = dataset.tissue
        np.testing.assert_allclose(tissue.positions, expected, rtol=1e-6)
        assert describe_tissue(tissue) == (
            "Tissue: centroids of left, right in µm, 23 of 24 rows, sections by region."
        )
        assert dataset.notes[-1] == (
            "1 of 24 rows have no position: left, right do not have their cell_id, or "
            "have it more than once."
        )
        assert not any("centroid" in name for name in dataset.obs)


def test_points_in_several_files_of_which_each_counts_from_0(tmp_path):
    places = RNG.uniform(0, 10, (N, 3))
    points = pd.DataFrame(places, columns=[*"xyz"]).assign(gene="a")
    again = points.iloc[:2].reset_index(drop=True)
    matrix = RNG.random((3, 4))
    elements = {
        "points/spots": (
            [points, again],
            transformation("affine", matrix.tolist(), "xyz"),
        ),
    }
    ids = RNG.permutation(N)
    path = worlds.write_spatialdata(
        tmp_path / "s.zarr", table(["spots"] * N, ids), elements
    )
    expected = (places @ matrix[:, :3].T + matrix[:, 3])[ids]
    expected[ids < 2] = np.nan  # either of two
    dataset = read(path)
    np.testing.assert_allclose(dataset.tissue.positions, expected, rtol=1e-5)
    assert dataset.notes[-1].startswith("2 of 12 rows have no position")
    assert (dataset.tissue.unit, dataset.tissue.section_column) == ("", "")


def test_positions_of_the_table_come_first(tmp_path):
    elements = {"shapes/left": (squares(PLACES[0]), transformation("identity"))}
    adata = table(["left"] * N, np.arange(N))
    adata.obsm["spatial"] = PLACES[1]
    path = worlds.write_spatialdata(tmp_path / "s.zarr", adata, elements)
    assert read(path).tissue.origin == "obsm['spatial']"
    shutil.rmtree(path / "tables/cells/obsm/spatial")
    tissue = read(path).tissue
    assert tissue.origin == "centroids of left"
    np.testing.assert_allclose(tissue.positions, PLACES[0], rtol=1e-6)


def test_another_coordinate_system_is_told_and_units_become_micrometres(tmp_path):
    swap = transformation(
        "mapAxis", {"x": "y", "y": "x"}, unit="millimeter", to="slide"
    )
    path = worlds.write_spatialdata(
        tmp_path / "s.zarr",
        table(["left"] * N, np.arange(N)),
        {"shapes/left": (squares(PLACES[0]), swap)},
    )
    dataset = read(path)
    assert dataset.tissue.unit == "µm"
    np.testing.assert_allclose(
        dataset.tissue.positions, PLACES[0][:, ::-1] * 1000, rtol=1e-6
    )
    assert "coordinate system slide" in dataset.notes[-1]


def no_parquet(path):
    (path / "shapes/left/shapes.parquet").unlink()


def cut_short(path):
    file = path / "shapes/left/shapes.parquet"
    file.write_bytes(file.read_bytes()[:-20])


def lines(path):
    frame = pd.DataFrame({"geometry": [b"\1\2\0\0\0"] * N}, [*map(str, range(N))])
    frame.to_parquet(path / "shapes/left/shapes.parquet")


def geoarrow(path):
    frame = pd.DataFrame({"geometry": [{"x": 1.0, "y": 2.0}] * N})
    frame.to_parquet(path / "shapes/left/shapes.parquet")


def attributes(text):
    def write(path):
        (path / "shapes/left/zarr.json").write_text(text)

    return write


def with_transformation(changed):
    noted = {"attributes": {"coordinateTransformations": [changed]}}
    return attributes(json.dumps(noted))


def link(path):
    shutil.copytree(path / "shapes/left", path.parent / "elsewhere")
    shutil.rmtree(path / "shapes/left")
    (path / "shapes/left").symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (no_parquet, "left has no shapes.parquet: read the folder with"),
        (cut_short, "could not be read as shapes"),
        (lines, "could not be read as shapes"),
        (geoarrow, "GeoArrow: write it as WKB"),
        (attributes('{"attributes": {"coord'), "could not be read as shapes"),
        (attributes("{}"), "could not be read as shapes"),
        (
            with_transformation(transformation("scale", [2.0])),
            "could not be read as shapes",
        ),
        (
            with_transformation(transformation("scale", "a")),
            "could not be read as shapes",
        ),
        (
            with_transformation(transformation("identity", axes="xyzt")),
            "could not be read as shapes",
        ),
        (
            with_transformation(transformation("byDimension")),
            '"byDimension", which is not known',
        ),
        (link, "which is outside it"),
        (lambda path: shutil.rmtree(path / "shapes/left"), "No positions of left"),
    ],
)
def test_a_table_without_readable_elements_is_read_and_says_why(
    tmp_path, damage, reason
):
    elements = {"shapes/left": (squares(PLACES[0]), transformation("identity"))}
    adata = table(["left"] * N, np.arange(N))
    path = worlds.write_spatialdata(tmp_path / "s.zarr", adata, elements)
    damage(path)
    # The links of a whole folder are checked when it is opened.
    dataset = read(path / "tables" / "cells")
    assert dataset.tissue is None
    (note,) = dataset.notes
    assert reason in note


def test_names_of_elements_stay_inside_the_folder(tmp_path):
    elements = {"shapes/left": (squares(PLACES[0]), transformation("identity"))}
    for name in ("../shapes/left/../../../out", "/etc", "le\0ft", "x" * 300, ".", ""):
        adata = table([name] * N, np.arange(N))
        path = worlds.write_spatialdata(tmp_path / "s.zarr", adata, elements)
        dataset = read(path)
        assert dataset.tissue is None
        assert "ositions of" in dataset.notes[-1]
