"""Metadata that no file holds stay with the map: wells, doses, labels given by hand."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive, zip_container
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.plates import plate_columns, plates_of
from napari_embedding_game.session.session import Session

N = 24


@pytest.fixture
def measured():
    """Objects of four wells, one of them left out, with every kind of column."""
    rng = np.random.default_rng(0)
    well = np.array(["A01", "A02", "B01", "B02"])[np.arange(N) // 6]
    obs = pd.DataFrame(
        {
            "well": well,
            "dose": np.array([0.0, 0.5, 1.0, np.nan])[np.arange(N) // 6],
            "label": np.arange(N) + 1,
            "touches": np.arange(N) % 3 == 0,
            "stage": pd.Categorical(
                np.array(["late", "early"])[np.arange(N) % 2],
                ["early", "late", "never"],
                ordered=True,
            ),
            "remark": np.array([None, "bright", 7], dtype=object)[np.arange(N) % 3],
            "far": np.where(np.arange(N) == 3, np.inf, 2.5),
            "huge": np.arange(N) + 2**60,
            "maybe": pd.array([True, None] * (N // 2), dtype="boolean"),
        },
        index=[f"object {i}" for i in range(N)],
    )
    values = rng.normal(size=(N, 3)).astype(np.float32)
    return Dataset.from_rows(
        name="the plate",
        X=(values - values.mean(0)).astype(np.float32),
        obs=obs,
        var_names=["area", "length", "mean"],
        space="measured",
        kept=np.arange(N) != 5,
        profile=values,
        profile_names=["area", "length", "mean"],
    )


def saved(dataset, path):
    session = Session()
    session.load(dataset)
    archive.save(SavedSession(maps=(session.capture("a"),), current="a"), path)
    return path


def opened(path):
    session, troubles = archive.open_session(path)
    assert troubles == []
    return session["a"].dataset


def test_every_kind_of_column_comes_back(measured, tmp_path):
    found = opened(saved(measured, tmp_path / "x.zip"))
    expected = measured.obs.copy()
    same = ["well", "dose", "label", "touches", "stage", "far"]
    pd.testing.assert_frame_equal(found.obs[same], expected[same], check_dtype=False)
    assert found.obs["label"].dtype == np.int64
    assert found.obs["touches"].dtype == bool
    assert found.obs["stage"].dtype == expected["stage"].dtype
    assert found.obs["remark"].isna().tolist() == expected["remark"].isna().tolist()
    assert set(found.obs["remark"].dropna()) == {"bright", "7"}
    assert found.obs["huge"].to_numpy() == pytest.approx(expected["huge"].to_numpy())
    assert found.obs["maybe"].isna().tolist() == expected["maybe"].isna().tolist()
    assert list(found.obs) == list(expected)
    np.testing.assert_array_equal(found.profile, measured.profile)
    np.testing.assert_array_equal(found.X, measured.X)
    assert found.profile_names == measured.profile_names


def test_the_wells_of_a_plate_are_there(measured, tmp_path):
    found = opened(saved(measured, tmp_path / "x.zip"))
    (plate,), (before,) = plates_of(found), plates_of(measured)
    assert plate.wells.keys() == before.wells.keys()
    assert plate.counts().tolist() == [5, 6, 6, 6]
    assert plate_columns(found, [plate]) == plate_columns(measured, [before])
    assert "dose" in plate_columns(found, [plate])


def test_what_is_made_again_is_not_there_twice(measured, tmp_path):
    session = Session()
    session.load(measured)
    session.add_column("Stability", np.linspace(0, 1, N - 1))
    classes = pd.Categorical(np.array([*"ab"])[np.arange(N - 1) % 2])
    measured.add_taught("taught", classes, np.ones(N - 1), {"a": (0, 2), "b": (1, 3)})
    path = tmp_path / "x.zip"
    archive.save(SavedSession(maps=(session.capture("a"),), current="a"), path)
    found = opened(path)
    assert "Stability" not in found.obs
    assert [name for name in found.obs if "taught" in name] == [
        "taught",
        "taught_confidence",
    ]


def test_data_of_a_file_are_not_stored(measured, tmp_path):
    path = saved(measured, tmp_path / "x.zip")
    assert "maps/0/table_codes.npy" in zip_container.Container(path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n2,3\n")
    of_file = replace(measured, source=tmp_path / "a.csv")
    path = saved(of_file, tmp_path / "y.zip")
    assert "maps/0/table_codes.npy" not in zip_container.Container(path)


def test_a_map_without_metadata(measured, tmp_path):
    bare = replace(measured, obs=measured.obs[[]])
    assert opened(saved(bare, tmp_path / "x.zip")).obs.shape == (N - 1, 0)


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("table_codes", 0, 99),
        ("table_codes", 0, -2),
        ("table_numbers", 1, 0.5),  # a whole number
        ("table_numbers", 2, 3.0),  # a truth value
    ],
)
def test_damage_is_told(measured, tmp_path, name, row, value):
    path = saved(measured, tmp_path / "x.zip")
    container = zip_container.Container(path)
    members = dict(container._members)
    member = f"maps/0/{name}.npy"
    array = np.load(io.BytesIO(members[member]))
    array[row, 0] = value
    members[member] = array
    zip_container.write(path, members)
    with pytest.raises(DataError, match=r"x\.zip is damaged"):
        archive.load(path)
