import hashlib

import numpy as np
import pytest

from napari_embedding_game.data import samples
from napari_embedding_game.data.errors import DataError


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


def test_mnist_from_an_npz(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, (6, 784), dtype=np.uint8)
    np.savez(tmp_path / "m.npz", X=X, y=[0, 1, 2] * 2, label_names=list("abc"))
    dataset = samples.mnist(tmp_path / "m.npz")
    assert dataset.obs["digit"].tolist() == ["a", "b", "c"] * 2
    assert dataset.images.shape == (6, 28, 28)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path)
    return tmp_path


def test_mnist_download_is_checked_and_read(cache, monkeypatch):
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (6, 28, 28), dtype=np.uint8)
    labels = np.arange(6, dtype=np.uint8)

    def send(self, url, output_file, *args, **kwargs):
        with open(output_file, "wb") as file:
            np.savez(
                file,
                x_train=pictures[:4],
                y_train=labels[:4],
                x_test=pictures[4:],
                y_test=labels[4:],
            )

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", send)
    with pytest.raises(DataError, match="could not be downloaded"):
        samples.mnist()
    assert not (cache / "mnist.npz").exists()
    send(None, "", cache / "mnist.npz")
    digest = hashlib.sha256((cache / "mnist.npz").read_bytes()).hexdigest()
    monkeypatch.setattr(samples, "_MNIST_SHA256", digest)
    dataset = samples.mnist()
    np.testing.assert_array_equal(dataset.images, pictures)
    np.testing.assert_allclose(dataset.X, pictures.reshape(6, -1) / 255, rtol=1e-6)
    assert dataset.obs["digit"].tolist() == list("012345")
