"""Read a file, as the window reads it, into an AnnData: :func:`read`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from napari_embedding_game.data.columns import make_names_unique
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.formats.matrices import build_anndata
from napari_embedding_game.data.palette import make_scanpy_color_arrays
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import finish
from napari_embedding_game.data.tissue import POSITIONS

if TYPE_CHECKING:
    from anndata import AnnData

FEATURES = "X_features"
"""Key of ``obsm`` that holds the matrix to embed."""
SECOND = "X_second"
"""Key of ``obsm`` that holds the second space."""
SAMPLES = ("digits", "pbmc", "tissue")
"""Names of the sample data sets, which are read without a file."""


def read(source: str | Path, **options: Any) -> AnnData:
    """Read a file as the window does, with the numbers that the window would embed.

    Parameters
    ----------
    source : str or Path
        A table (.csv, .tsv, .parquet), an array (.npy, .npz), an .h5ad, .h5mu, .loom or
        .rds file, a .zarr folder, counts of 10x, a folder of Visium or Xenium,
        cytometry (.fcs), a folder of images with labels, a plate of OME-Zarr; or the
        name of a sample: "digits", "pbmc" or "tissue".
    **options
        Options of :class:`~.read_options.ReadOptions`, such as ``space="X_pca"``,
        ``missing="drop"``, ``roles={"donor": "samples"}``, or ``recipe=Recipe()``. Of
        these a sample uses ``roles`` and ``gene_kind`` alone.

    Returns
    -------
    AnnData
        Rows that are left out, as by a recipe, are not in the result.
        ``obsm["X_features"]`` is the matrix to embed, (n, D) float32, or float64 where
        float32 would lose differences; the columns of a table are standardised in it.
        ``X`` (n, G) holds the genes, counts as logarithms, or the columns in their own
        units; ``obs`` is the metadata, and ``obsm["spatial"]`` the positions in tissue,
        (n, 2 or 3) float32, if the file has any.  "-1" is appended to the second of two
        equal row names.

    Raises
    ------
    DataError
        If the file cannot be read; the sentence names the file and the remedy.
    """
    from napari_embedding_game.data import samples
    from napari_embedding_game.data.loader import load

    if source in SAMPLES:
        sample: Dataset = getattr(samples, str(source))()
        return as_anndata(sample.with_roles_and_gene_kind(ReadOptions(**options)))
    return as_anndata(finish(load(source, **options)))


def as_anndata(dataset: Dataset) -> AnnData:
    """Return the kept rows of a dataset as an AnnData.

    ``obsm["X_features"]`` is the matrix to embed, ``obsm["X_second"]`` the second
    space, if one was read, ``obsm["spatial"]`` positions in tissue, ``X`` the profile
    with counts as log1p, ``obs`` the metadata, ``uns`` the colours of the file.
    Row names are unique: "-1" is appended to the second of two equal ones, counted over
    all source rows.
    """
    rows = pd.Index(make_names_unique(dataset.source_obs_names))[dataset.kept]
    obs = dataset.obs.set_axis(rows)
    names, ids = dataset.profile_names, dataset.gene_ids
    adata = build_anndata(dataset.expression.values, obs, names, ids)
    adata.obsm[FEATURES] = dataset.X
    if dataset.second_X is not None:
        adata.obsm[SECOND] = dataset.second_X
    if dataset.tissue is not None:
        adata.obsm[POSITIONS] = dataset.tissue.positions
    adata.uns |= make_scanpy_color_arrays(adata.obs, dataset.level_colors)
    return adata
