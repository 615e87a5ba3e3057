"""Metadata that no file holds stay with the map: wells, doses, labels given by hand."""

import json
import zipfile
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
            "count": pd.array([1, None, 3, 2**60] * (N // 4), dtype="Int64"),
            "day": pd.to_datetime(["2024-05-01", None, "2024-06-01"] * (N // 3)),
            "true": pd.Series([True, None, False] * (N // 3), dtype=object),
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
    remarks = expected.pop("remark")
    pd.testing.assert_frame_equal(
        found.obs.drop(columns="remark"), expected, check_index_type=False
    )
    assert found.obs["remark"].isna().tolist() == remarks.isna().tolist()
    assert set(found.obs["remark"].dropna()) == {"bright", "7"}
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


def test_metadata_of_a_file_are_not_stored(measured, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n2,3\n")
    of_file = replace(measured, source=tmp_path / "a.csv")
    found = archive.load(saved(of_file, tmp_path / "y.zip")).maps[0].dataset
    assert list(found.obs) == []
    assert found.X.shape == (N - 1, 0)


def test_a_map_without_metadata(measured, tmp_path):
    bare = replace(measured, obs=measured.obs[[]])
    assert opened(saved(bare, tmp_path / "x.zip")).obs.shape == (N - 1, 0)


@pytest.mark.parametrize(
    ("column", "changes"),
    [
        ("stage", {"levels": ["early"]}),
        ("stage", {"levels": ["early", "early", "never"]}),
        ("well", {"values": {"array": 10**6}}),
        ("maybe", {"kind": "zzz"}),
        ("maybe", {"lacks": None}),
        ("day", {"kind": "datetime64[zz]"}),
        ("dose", {"kind": "text"}),
    ],
)
def test_damage_is_told(measured, tmp_path, column, changes):
    path = saved(measured, tmp_path / "x.zip")
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    text = json.loads(members["maps/0.json"])
    (stored,) = [one for one in text["dataset"]["obs"] if one["name"] == column]
    stored.update(changes)
    members["maps/0.json"] = json.dumps(text).encode()
    zip_container.write(path, members)
    with pytest.raises(DataError, match=r"x\.zip is damaged"):
        archive.load(path)
