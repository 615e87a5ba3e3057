"""Sample datasets: digits, PBMC blood cells, nuclei, MNIST."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from napari_embedding_game.data import row_images
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats import mnist as mnist_files
from napari_embedding_game.data.formats.anndata import from_anndata, read_legacy
from napari_embedding_game.data.images.nuclei import MeasuredImage, nuclei_stages
from napari_embedding_game.data.readers import read
from napari_embedding_game.data.stages import finish

_PBMC_FILE = Path("datasets", "10x_pbmc68k_reduced.h5ad")


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
    if scanpy is None or scanpy.origin is None:
        raise DataError(
            "The PBMC sample comes with scanpy, which is not installed: "
            "run `pip install scanpy`, or open another sample."
        )
    path = Path(scanpy.origin).parent / _PBMC_FILE
    if not path.exists():
        raise DataError(
            "The PBMC sample is not part of the installed version of scanpy: "
            "run `pip install --upgrade scanpy`, or open another sample."
        )
    return from_anndata(read_legacy(path), "pbmc")


def nuclei() -> MeasuredImage:
    """Nuclei of scikit-image's stained section: image, labels and measured dataset.

    ``nuclei.nuclei_stages()`` does the same in stages.
    """
    return finish(nuclei_stages())


def mnist(path: str | Path | None = None) -> Dataset:
    """70,000 handwritten digits of 28 x 28 pixels (MNIST).

    Parameters
    ----------
    path : str or Path, optional
        An .npz file with arrays ``X`` and ``y``, or a folder with the four
        original files.  By default they are downloaded once, checked by their
        SHA-256, and kept.

    Raises
    ------
    DataError
        If there is no such file, or no connection to download from.
    """
    if path is not None and Path(path).is_file():
        return _from_file(Path(path))
    folder = mnist_files.download() if path is None else Path(path)
    pictures, labels = mnist_files.load(folder)
    return _digit_images("MNIST", pictures, labels, "digit")


def _from_file(path: Path) -> Dataset:
    dataset = read(path)
    for name in ("y", "label", "target"):
        if name in dataset.obs:
            return replace(dataset, obs=dataset.obs.rename(columns={name: "digit"}))
    return dataset


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
