import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.loader import load_read_result
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import finish
from worlds import read


@pytest.fixture
def numbers():
    return np.random.default_rng(0).normal(size=(12, 5))


def saved(tmp_path, **arrays):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


def test_npy(tmp_path, numbers, columns):
    np.save(tmp_path / "data.npy", numbers)
    dataset = read(tmp_path / "data.npy")
    np.testing.assert_array_equal(dataset.X, numbers.astype(np.float32))
    assert dataset.space == "data"
    assert dataset.var_names[0] == "column 1"
    assert dataset.images is None
    assert not finish(
        load_read_result(tmp_path / "data.npy", ReadOptions())
    ).has_genes_in_rows
    dataset = read(tmp_path / "data.npy", columns=["column 5", "column 2"])
    np.testing.assert_array_equal(dataset.X, numbers[:, [1, 4]].astype(np.float32))
    assert columns(tmp_path / "data.npy") == [f"column {i}" for i in range(1, 6)]


def test_the_first_of_several_is_told(tmp_path, numbers):
    path = saved(tmp_path, rna=numbers, protein=numbers[:, :3], batch=np.arange(12))
    dataset = read(path)
    assert dataset.space == "rna"
    assert dataset.notes[0].startswith('The array "rna" is embedded. It could also be')
    assert "protein (12 x 3, float64)" in dataset.notes[0]
    chosen = read(path, space="protein")
    assert (chosen.space, chosen.notes) == ("protein", ())


def test_arrays_of_one_value_a_row_describe_the_rows(tmp_path, numbers):
    path = saved(
        tmp_path,
        X=numbers,
        y=np.array([0, 1, 2] * 4, dtype=">i2"),
        word=np.array([f"wörd {i}".encode() for i in range(12)]),
        time=np.linspace(0, 1, 12, dtype=np.float16),
        batch=np.array([0, 1] * 6),
        matrix=np.zeros((12, 2)),
        unrelated=np.arange(5),
        without_unit=np.zeros(12, "M8"),
    )
    obs = read(path).obs
    assert obs.columns.tolist() == ["y", "word", "time", "batch"]
    assert list(read(path).texts)[1] == "wörd 1"
    assert obs["time"].dtype == np.float64
    assert obs.index.tolist() == [str(i) for i in range(1, 13)]


def test_rows_of_bytes_become_thumbnails(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, (6, 784), dtype=np.uint8)
    dataset = read(saved(tmp_path, X=X))
    assert dataset.images.shape == (6, 28, 28)
    np.testing.assert_array_equal(dataset.images.reshape(6, -1), X)
    np.testing.assert_allclose(dataset.X, X / 255, rtol=1e-6)
    assert dataset.var_names[28] == "1,0"


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.arange(5), r"no two-dimensional array .* only data \(5, int64\)"),
        (np.array(3.0), r"only data \(one value, float64\)"),
        (np.array([["a", "b"]]), "no two-dimensional array of numbers"),
        (np.ones((3, 2), complex), "no two-dimensional array of numbers"),
        (np.ones((0, 4)), r"empty \(0 rows"),
        (np.ones((4, 0)), r"empty \(4 rows, 0 columns"),
        (np.ones((1, 4)), "only one row"),
        (np.ones((6, 4)), "is constant: all 6 rows"),
        (np.zeros((6, 64), np.uint8), "is constant: all 6 rows"),
        (np.array([[1e30], [2.0]]), "too large"),
    ],
)
def test_arrays_that_give_no_map(tmp_path, array, sentence):
    np.save(tmp_path / "data.npy", array)
    with pytest.raises(DataError, match=rf"data\.npy .*{sentence}"):
        read(tmp_path / "data.npy")


def test_a_table_beside_adds_texts_row_by_row(tmp_path, numbers):
    numbers[2, 1] = np.nan
    path = saved(tmp_path, X=numbers, y=np.arange(12))
    table = pd.DataFrame({"text": list("abcdefghijkl"), "y": 7})
    table.to_csv(tmp_path / "data_text.csv.gz", index=False)
    dataset = read(path, missing="drop")
    assert "".join(dataset.texts) == "abdefghijkl"
    assert dataset.obs["y"].tolist() == [0, 1, *range(3, 12)]  # that of the .npz stays
    assert dataset.source_obs["text"].iloc[2] == "c"
    table[:5].to_csv(tmp_path / "data_text.csv.gz", index=False)
    with pytest.raises(DataError, match=r"data_text\.csv\.gz has 5 rows and data\.npz"):
        read(path, missing="drop")
