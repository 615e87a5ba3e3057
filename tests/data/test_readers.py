import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.readers import can_read, read, spaces


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "Cells.CSV"
    pd.DataFrame({"a": [1.0, 2, 4], "b": [3.0, np.nan, 5]}).to_csv(path, index=False)
    return path


def test_options_reach_the_reader(table):
    dataset = read(str(table), space="b", missing="drop")
    assert dataset.var_names == ("b",)
    assert dataset.X.shape == (2, 1)
    assert spaces(table) == ["columns of Cells.CSV"]


def test_array(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(4))
    assert read(tmp_path / "a.npy").X.shape == (4, 4)
    assert spaces(tmp_path / "a.npy") == ["a"]


def test_missing_policy_is_checked(table):
    with pytest.raises(DataError, match='"error" or "drop", not "skip"'):
        read(table, missing="skip")


@pytest.mark.parametrize("function", [read, spaces])
def test_files_that_are_no_data(tmp_path, function):
    with pytest.raises(DataError, match=r"nothing\.csv does not exist"):
        function(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="is a folder"):
        function(tmp_path)
    (tmp_path / "notes.txt").write_text("a")
    with pytest.raises(DataError, match=r"notes\.txt cannot be read: .* \.h5ad, \.npy"):
        function(tmp_path / "notes.txt")


def test_file_without_permission(table, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(table), "read_bytes", refuse)
    with pytest.raises(DataError, match="may not be read by this user"):
        read(table)


@pytest.mark.parametrize("function", [read, spaces])
def test_file_in_a_folder_without_permission(table, monkeypatch, function):
    def refuse(self, **_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(table), "exists", refuse)
    with pytest.raises(DataError, match="permissions or those of its folder"):
        function(table)


def test_can_read():
    assert can_read("a/b.H5AD")
    assert can_read("b.csv.gz")
    assert not can_read("b.gz")
    assert not can_read("image.png")
