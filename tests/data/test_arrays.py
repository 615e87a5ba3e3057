import numpy as np
import pytest
import scipy.sparse as sp

from napari_embedding_game.data.errors import DataError, SeveralError
from napari_embedding_game.data.formats.arrays import (
    array_spaces,
)
from napari_embedding_game.data.readers import columns, read


@pytest.fixture
def numbers():
    return np.random.default_rng(0).normal(size=(12, 5))


def saved(tmp_path, **arrays):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


def test_npy(tmp_path, numbers):
    np.save(tmp_path / "data.npy", numbers)
    dataset = read(tmp_path / "data.npy")
    np.testing.assert_array_equal(dataset.X, numbers.astype(np.float32))
    assert dataset.space == "data"
    assert dataset.var_names[0] == "column 1"
    assert dataset.images is None


@pytest.mark.parametrize("name", ["X", "data", "something"])
def test_npz_finds_the_array(tmp_path, numbers, name):
    path = saved(tmp_path, other=np.arange(3), **{name: numbers})
    dataset = read(path)
    assert dataset.space == name
    assert dataset.X.shape == (12, 5)
    assert array_spaces(path) == [name]


def test_usual_name_goes_before_the_first(tmp_path, numbers):
    path = saved(tmp_path, pca=numbers[:, :3], X=numbers)
    assert array_spaces(path) == ["X", "pca"]
    assert read(path).X.shape == (12, 5)
    assert read(path, space="pca").X.shape == (12, 3)


def test_the_first_of_several_is_told_or_refused(tmp_path, numbers):
    path = saved(tmp_path, rna=numbers, protein=numbers[:, :3], batch=np.arange(12))
    dataset = read(path)
    assert dataset.space == "rna"
    assert dataset.notes[0].startswith('The array "rna" is embedded. It could also be')
    assert "protein (12 x 3, float64)" in dataset.notes[0]
    with pytest.raises(SeveralError, match="2 arrays that can be embedded") as told:
        read(path, several="error")
    assert (told.value.option, told.value.value) == ("space", "rna")
    chosen = read(path, space="protein", several="error")
    assert (chosen.space, chosen.notes) == ("protein", ())
    with pytest.raises(DataError, match="'first' or 'error', not 'none'"):
        read(path, several="none")


def test_an_array_of_a_usual_name_need_not_be_chosen(tmp_path, numbers):
    path = saved(tmp_path, rna=numbers, X=numbers[:, :3])
    dataset = read(path, several="error")
    assert dataset.space == "X"
    assert "rna (12 x 5, float64)" in dataset.notes[0]
    alone = read(saved(tmp_path, rna=numbers), several="error")
    assert (alone.space, alone.notes) == ("rna", ())


def test_arrays_of_one_value_a_row_describe_the_rows(tmp_path, numbers):
    path = saved(
        tmp_path,
        X=numbers,
        y=np.array([0, 1, 2] * 4, dtype=np.int16),
        label_names=np.array(["stop", "go", "wait"]),
        word=np.array([f"wörd {i}".encode() for i in range(12)]),
        time=np.linspace(0, 1, 12, dtype=np.float16),
        batch=np.array([0, 1] * 6),
        matrix=np.zeros((12, 2)),
        unrelated=np.arange(5),
    )
    obs = read(path).obs
    assert obs.columns.tolist() == ["y", "word", "time", "batch"]
    assert obs["y"].tolist()[:3] == ["stop", "go", "wait"]
    assert obs["y"].cat.categories.tolist() == ["stop", "go", "wait"]
    assert obs["word"].iloc[1] == "wörd 1"
    assert list(read(path).texts)[1] == "wörd 1"
    assert obs["time"].dtype == np.float64
    assert obs["batch"].dtype == "category"
    assert obs.index.tolist() == [str(i) for i in range(1, 13)]


@pytest.mark.parametrize("names", [["a", "b"], ["a", "a", "b"], [1, 2, 3]])
def test_names_that_do_not_fit_spell_nothing_out(tmp_path, numbers, names):
    path = saved(tmp_path, X=numbers, y=[0, 1, 2] * 4, label_names=names)
    assert read(path).obs["y"].tolist()[:3] == [0, 1, 2]


def test_rows_of_bytes_become_thumbnails(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, (6, 784), dtype=np.uint8)
    dataset = read(saved(tmp_path, X=X))
    assert dataset.images.shape == (6, 28, 28)
    np.testing.assert_array_equal(dataset.images.reshape(6, -1), X)
    np.testing.assert_allclose(dataset.X, X / 255, rtol=1e-6)
    assert dataset.var_names[28] == "1,0"


@pytest.mark.parametrize("shape", [(6, 5, 7), (6, 5, 7, 3), (6, 5, 7, 4)])
def test_pictures_of_any_shape(tmp_path, shape):
    X = np.random.default_rng(0).random(shape)
    dataset = read(saved(tmp_path, X=X))
    assert dataset.X.shape == (6, np.prod(shape[1:]))
    assert len(dataset.var_names) == np.prod(shape[1:])
    assert dataset.images.shape[1:3] == (5, 7)
    assert dataset.images.dtype == np.uint8


def test_sparse_npz(tmp_path):
    X = sp.random(20, 30, 0.2, format="csc", random_state=0)
    sp.save_npz(tmp_path / "counts.npz", X)
    dataset = read(tmp_path / "counts.npz")
    assert isinstance(dataset.X, sp.csr_matrix)
    np.testing.assert_allclose(dataset.X.toarray(), X.toarray(), rtol=1e-6)


def test_rows_with_missing_values_are_left_out_everywhere(tmp_path, numbers):
    numbers[3, 2] = np.nan
    path = saved(tmp_path, X=numbers, y=np.arange(12))
    with pytest.raises(DataError, match=r"data\.npz has 1 missing .* row 4, column 3"):
        read(path)
    dataset = read(path, missing="drop")
    assert 3 not in dataset.obs["y"].tolist()
    assert dataset.expand(dataset.X, np.nan).shape == (12, 5)


def test_what_no_column_can_hold_is_left_out(tmp_path, numbers):
    path = saved(
        tmp_path,
        X=numbers,
        record=np.zeros(12, [("a", "f4")]),
        wave=np.full(12, 1j),
        bytes=np.zeros(12, "V3"),
        unitless=np.full(12, "NaT", "M8"),
        day=np.arange(12).astype("M8[D]"),
    )
    dataset = read(path)
    assert dataset.obs.columns.tolist() == ["day"]
    assert dataset.notes == (
        "Not read, because they hold neither numbers nor texts nor times: record, "
        "wave, bytes, unitless.",
    )


class Bomb:
    def __reduce__(self):
        return print, ("a pickle was run",)


def test_objects_beside_numbers_are_left_out_with_a_note(tmp_path, numbers):
    path = saved(tmp_path, X=numbers, extra=np.array([{}, None], dtype=object))
    dataset = read(path)
    assert dataset.notes == ("Not read, because they hold Python objects: extra.",)


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


def test_no_such_array(tmp_path, numbers):
    with pytest.raises(DataError, match=r'"pca" to embed: it has X \(12 x 5, float64'):
        read(saved(tmp_path, X=numbers), space="pca")


def test_chosen_columns(tmp_path, numbers):
    np.save(tmp_path / "data.npy", numbers)
    dataset = read(tmp_path / "data.npy", columns=["column 5", "column 2"])
    np.testing.assert_array_equal(dataset.X, numbers[:, [1, 4]].astype(np.float32))
    assert columns(tmp_path / "data.npy") == [f"column {i}" for i in range(1, 6)]


def test_sparse_of_other_formats(tmp_path):
    X = sp.random(20, 30, 0.2, format="coo", random_state=0)
    sp.save_npz(tmp_path / "a.npz", X)
    np.testing.assert_allclose(
        read(tmp_path / "a.npz").X.toarray(), X.toarray(), rtol=1e-6
    )
    sp.save_npz(tmp_path / "b.npz", X.todia())
    with pytest.raises(DataError, match='format "dia"'):
        read(tmp_path / "b.npz")


def test_an_array_that_is_not_needed_is_not_read(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, curve=np.arange(50_000.0), X=np.eye(5))
    content = path.read_bytes()
    at = content.index(np.float64(40_000).tobytes())
    path.write_bytes(content[:at] + b"damaged!" + content[at + 8 :])
    np.testing.assert_array_equal(read(path).X, np.eye(5))
    np.savez(path, curve=np.arange(50_000.0))
    content = path.read_bytes()
    path.write_bytes(content.replace(np.float64(40_000).tobytes(), b"damaged!"))
    with pytest.raises(DataError, match=r"only curve \(50000, float64\)"):
        read(path)
