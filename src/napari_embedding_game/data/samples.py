"""Sample datasets: digits and PBMC blood cells."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from napari_embedding_game.data import row_images
from napari_embedding_game.data.dataset import SAMPLE, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata, read_whole_anndata

_PBMC_FILE = Path("datasets", "10x_pbmc68k_reduced.h5ad")


def digits() -> Dataset:
    """Return 1,797 handwritten digits of 8 x 8 pixels, which come with scikit-learn."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    pictures = row_images.to_uint8(loaded.images)
    digit = pd.Categorical.from_codes(loaded.target, list("0123456789"))
    return Dataset.from_rows(
        name="digits",
        X=row_images.flatten_pixels(pictures),
        obs=pd.DataFrame(
            {"label": digit}, index=[str(i + 1) for i in range(len(digit))]
        ),
        var_names=row_images.pixel_names(pictures.shape[1:]),
        space="8 x 8 pixels",
        images=pictures,
        provenance={SAMPLE: "digits"},
    )


def pbmc() -> Dataset:
    """Return 700 blood cells (PBMC) of scanpy: 50 components and 765 genes."""
    return read_pbmc(find_pbmc_file())


def find_pbmc_file() -> Path:
    """Return the path of scanpy's PBMC file, without importing scanpy.

    Raises DataError if scanpy is not installed, or has no such file.
    """
    scanpy = find_spec("scanpy")  # importing scanpy would take seconds
    path = Path(str(scanpy and scanpy.origin)).parent / _PBMC_FILE
    if not path.exists():
        raise DataError(
            "The PBMC sample comes with scanpy, which is not installed, or of another "
            "version: run `pip install --upgrade scanpy`, or open another sample."
        )
    return path


def read_pbmc(path: Path) -> Dataset:
    """Read scanpy's PBMC file as a sample."""
    dataset = from_anndata(read_whole_anndata(path), "pbmc")
    return replace(dataset, provenance={SAMPLE: "pbmc"})
