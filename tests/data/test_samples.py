import gzip
import struct

import numpy as np
import pytest

from napari_embedding_game.data import samples
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats import mnist


def test_digits():
    dataset = samples.digits()
    assert dataset.X.shape == (1797, 64)
    assert dataset.images.shape == (1797, 8, 8)
    assert dataset.X.max() == 1
    assert dataset.obs["label"].cat.categories.tolist() == list("0123456789")
    # The first three digits are 0, 1 and 2, as in scikit-learn's gallery.
    assert dataset.obs["label"].tolist()[:3] == ["0", "1", "2"]


def test_pbmc():
    pytest.importorskip("scanpy")
    dataset = samples.pbmc()
    assert dataset.X.shape == (700, 50)
    assert dataset.space == "obsm['X_pca']"
    assert dataset.profile.shape == (700, 765)
    assert "CD8B" in dataset.profile_names
    assert dataset.profile.min() == 0  # logarithms of .raw, not scaled values
    assert dataset.notes == ("Genes: 765 from .raw.",)
    assert {"bulk_labels", "louvain"} <= set(dataset.obs)
    assert dataset.source is None


@pytest.mark.parametrize("present", [True, False])
def test_pbmc_without_its_package(tmp_path, monkeypatch, present):
    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(samples, "find_spec", lambda _: Spec if present else None)
    with pytest.raises(DataError, match=r"PBMC sample .*pip install .*scanpy"):
        samples.pbmc()


def write_idx(folder, name, array):
    head = struct.pack(f">4B{array.ndim}i", 0, 0, 8, array.ndim, *array.shape)
    with gzip.open(folder / name, "wb") as file:
        file.write(head + array.tobytes())


@pytest.fixture
def mnist_folder(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (6, 28, 28), dtype=np.uint8)
    for part, name in zip((pictures[:4], pictures[4:]), mnist._IMAGES, strict=True):
        write_idx(tmp_path, name, part)
    labels = np.arange(6, dtype=np.uint8)
    for part, name in zip((labels[:4], labels[4:]), mnist._LABELS, strict=True):
        write_idx(tmp_path, name, part)
    return tmp_path, pictures


def test_mnist_from_its_files(mnist_folder):
    folder, pictures = mnist_folder
    dataset = samples.mnist(folder)
    np.testing.assert_array_equal(dataset.images, pictures)
    np.testing.assert_allclose(dataset.X, pictures.reshape(6, -1) / 255, rtol=1e-6)
    assert dataset.obs["digit"].tolist() == list("012345")


def test_mnist_from_an_npz(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, (6, 784), dtype=np.uint8)
    np.savez(tmp_path / "m.npz", X=X, y=[0, 1, 2] * 2, label_names=list("abc"))
    dataset = samples.mnist(tmp_path / "m.npz")
    assert dataset.obs["digit"].tolist() == ["a", "b", "c"] * 2
    assert dataset.images.shape == (6, 28, 28)


def test_mnist_file_is_missing_or_damaged(mnist_folder):
    folder, _ = mnist_folder
    name = mnist._LABELS[1]
    (folder / name).write_bytes(b"no gz")
    with pytest.raises(DataError, match=rf"{name} could not be read as an MNIST file"):
        samples.mnist(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"{name} does not exist"):
        samples.mnist(folder)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(mnist, "cache_folder", lambda: tmp_path)
    return tmp_path


@pytest.fixture
def offline(monkeypatch):
    def refuse(url, *args, **kwargs):
        raise ConnectionError(url)

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", refuse)


def test_mnist_offline(cache, offline):
    with pytest.raises(DataError) as error:
        samples.mnist()
    assert str(error.value) == (
        "MNIST could not be downloaded (train-images-idx3-ubyte.gz): connect to the "
        f"internet and try again, or put its four .gz files into {cache}."
    )


def test_mnist_download_is_checked(cache, monkeypatch):
    def send_something(self, url, output_file, pooch, **kwargs):
        with open(output_file, "wb") as file:
            file.write(b"a login page")

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", send_something)
    with pytest.raises(DataError, match="could not be downloaded"):
        samples.mnist()
    assert not (cache / "train-images-idx3-ubyte.gz").exists()
