"""Sample datasets: digits, PBMC blood cells, nuclei, MNIST."""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from napari_embedding_game.data import row_images
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.readers import read

_PBMC_FILE = Path("datasets", "10x_pbmc68k_reduced.h5ad")
_MNIST = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"
_MNIST_SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"


def digits() -> Dataset:
    """1,797 handwritten digits of 8 x 8 pixels that come with scikit-learn."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    return _digit_images(
        "digits", row_images.as_uint8(loaded.images), loaded.target, "label"
    )


def pbmc() -> Dataset:
    """700 blood cells (PBMC) that come with scanpy: 50 components, 765 genes."""
    scanpy = find_spec("scanpy")  # found without importing it, which takes seconds
    path = Path(str(scanpy and scanpy.origin)).parent / _PBMC_FILE
    if not path.exists():
        raise DataError(
            "The PBMC sample comes with scanpy, which is not installed, or of another "
            "version: run `pip install --upgrade scanpy`, or open another sample."
        )
    from anndata import read_h5ad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata tells how it updates an old file
        return from_anndata(read_h5ad(path), "pbmc")


def mnist(path: str | Path | None = None) -> Dataset:
    """70,000 handwritten digits of 28 x 28 pixels (MNIST).

    Of an .npz file with arrays ``X`` and ``y``; by default they are downloaded once,
    checked by their SHA-256, and kept.

    Raises DataError if there is no such file, or no connection to download from.
    """
    if path is not None:
        dataset = read(path)
        known = [name for name in ("y", "label", "target") if name in dataset.obs]
        names = dict.fromkeys(known[:1], "digit")
        return replace(dataset, obs=dataset.obs.rename(columns=names))
    with np.load(_downloaded(), allow_pickle=False) as file:
        pictures = np.concatenate([file["x_train"], file["x_test"]])
        labels = np.concatenate([file["y_train"], file["y_test"]])
    return _digit_images("MNIST", pictures, labels, "digit")


def _downloaded() -> str:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    folder = pooch.os_cache("napari-embedding-game")
    try:
        return str(
            pooch.retrieve(
                _MNIST,
                f"sha256:{_MNIST_SHA256}",
                "mnist.npz",
                folder,
                downloader=pooch.HTTPDownloader(timeout=10),
            )
        )
    except (OSError, ValueError) as error:  # not reached, or another SHA-256
        raise DataError(
            "MNIST could not be downloaded: connect to the internet and try again, or "
            f"put mnist.npz from {_MNIST} into {folder}."
        ) from error


def _digit_images(
    name: str, pictures: np.ndarray, labels: np.ndarray, column: str
) -> Dataset:
    row_names = [str(i + 1) for i in range(len(labels))]
    digit = pd.Categorical.from_codes(labels.astype(np.int64), list("0123456789"))
    return Dataset.from_rows(
        name=name,
        X=row_images.pixels(pictures),
        obs=pd.DataFrame({column: digit}, index=row_names),
        var_names=row_images.pixel_names(pictures.shape[1:]),
        space=f"{' x '.join(map(str, pictures.shape[1:]))} pixels",
        images=pictures,
    )
