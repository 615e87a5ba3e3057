"""Read .rds files of R with a Seurat object or a SingleCellExperiment, by rdata.

rdata returns an object of R as a namespace with its slots, a list as a dict, and a
named matrix as an xarray; ``class`` is the name of R's class.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.columns import list_text
from napari_embedding_game.data.errors import (
    DataError,
    check_installed,
    wrap_read_errors,
)
from napari_embedding_game.data.formats.matrices import build_anndata
from napari_embedding_game.data.formats.store import to_checked_csr
from napari_embedding_game.data.tissue import POSITIONS

if TYPE_CHECKING:
    from anndata import AnnData

WRITE_SEURAT = "zellkonverter::writeH5AD(Seurat::as.SingleCellExperiment(x), 'x.h5ad')"
WRITE_SCE = "zellkonverter::writeH5AD(x, 'x.h5ad')"
"""Lines of R that write what can be read in any case."""
_LOGARITHMS = ("data", "logcounts")
"""Names of the normalised values of Seurat and of SingleCellExperiment."""
_SECTION = "image"
"""Column of ``obs`` with the image of each cell, where Seurat has several."""


def read_rds(path: Path) -> tuple[AnnData, list[str]]:
    """Read a Seurat object or SingleCellExperiment as an AnnData, and notes.

    ``X`` has the normalised values, and the layer "counts" the counts if both are
    there; ``obsm`` has the reductions, as "X_pca", and the positions in tissue. Of a
    Seurat object the active assay is read. Raises DataError if rdata is missing, the
    file is damaged, or holds something else.
    """
    check_installed("rdata", path.name, f", or write in R {WRITE_SEURAT}")
    import rdata

    with wrap_read_errors(path, "an .rds file of R"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings on R's classes that stay objects
            try:
                content = rdata.read_rds(path)
            except (LookupError, NotImplementedError, TypeError, ValueError) as error:
                raise DataError(
                    f"{path.name} holds something that rdata cannot read: write it "
                    f"anew in R with {WRITE_SEURAT}, of other objects {WRITE_SCE}."
                ) from error
        kind = _find_class_name(content)
        if kind == "Seurat":
            return _convert_seurat(content, path.name)
        if hasattr(content, "assays") and hasattr(content, "colData"):
            return _convert_experiment(content, path.name)
        raise DataError(
            f"{path.name} holds a {kind}, and no Seurat object or SingleCellExperiment:"
            " write a table in R with write.csv(x, 'x.csv'), or cells with "
            f"{WRITE_SCE}."
        )


def _find_class_name(content: Any) -> str:
    """Return the name of R's class, else of Python's."""
    names = getattr(content, "class", None)
    return str(names[0]) if names is not None else type(content).__name__


def _convert_seurat(content: Any, where: str) -> tuple[AnnData, list[str]]:
    """Convert a Seurat object of version 3, 4 or 5; see :func:`read_rds`."""
    obs, assay = vars(content)["meta.data"], str(vars(content)["active.assay"][0])
    others = [name for name in content.assays if name != assay]
    chosen = content.assays[assay]
    if hasattr(chosen, "layers"):  # of version 5
        layers = dict(chosen.layers)
        genes, cells = _find_row_names(chosen.features), _find_row_names(chosen.cells)
    else:
        layers = {name: getattr(chosen, name) for name in ("counts", "data")}
        genes, cells = map(list, chosen.data.Dimnames)
    remedy = f"in R run x[['{assay}']] <- JoinLayers(x[['{assay}']]), or {WRITE_SEURAT}"
    adata = _make_anndata_of_matrices(layers, obs.reindex(cells), genes, where, remedy)
    for name, reduction in dict(content.reductions).items():
        values = vars(reduction)["cell.embeddings"]
        adata.obsm[f"X_{name.lower()}"] = _align_with_cells(
            values, _find_row_names(values), cells
        )
    images = dict(content.images)
    if images:
        _add_images(adata, images, cells)
    note = f"Of its assays {assay} was read, as it is active: not {list_text(others)}."
    return adata, [note] if others else []


def _convert_experiment(content: Any, where: str) -> tuple[AnnData, list[str]]:
    """Convert a SingleCellExperiment or SpatialExperiment; see :func:`read_rds`."""
    layers = dict(content.assays.data.listData)
    some = next(iter(layers.values()), None)
    genes, cells = _find_row_names(some), _to_names(content.colData.rownames)
    genes = genes or _to_names(getattr(content, "NAMES", None))
    obs = _to_frame(content.colData)
    adata = _make_anndata_of_matrices(
        layers, obs, genes, where, f"in R write {WRITE_SCE}"
    )
    parts = content.int_colData.listData if hasattr(content, "int_colData") else {}
    reductions = parts.get("reducedDims")
    for name, values in dict(getattr(reductions, "listData", {})).items():
        adata.obsm[f"X_{name.lower()}"] = _align_with_cells(
            values, _find_row_names(values), cells
        )
    if "spatialCoords" in parts:
        adata.obsm[POSITIONS] = np.asarray(parts["spatialCoords"], np.float64)
    return adata, []


def _make_anndata_of_matrices(
    layers: Mapping[str, Any], obs: pd.DataFrame, genes: list[str], where: str, how: str
) -> AnnData:
    """Return an AnnData of matrices of R (genes, cells), by the names of these.

    Matrices of another size are left out. Raises DataError, with what to do (`how`) if
    there is none.
    """
    found = {name: _to_csr(item) for name, item in layers.items()}
    n = len(obs)
    usable = {k: x for k, x in found.items() if x is not None and x.shape[0] == n}
    n_genes = max([0, *(x.shape[1] for x in usable.values())])
    genes = genes or [f"gene {i + 1}" for i in range(n_genes)]
    usable = {k: x for k, x in usable.items() if x.shape[1] == len(genes)}
    if not usable:
        kinds = {name: _find_class_name(item) for name, item in layers.items()}
        text = list_text([f"{name} ({kind})" for name, kind in kinds.items()])
        raise DataError(f"{where} has no matrix of all cells, but {text}: {how}.")
    counts = usable.get("counts")
    name = min(usable, key=lambda x: (x not in _LOGARITHMS, x != "counts"))
    adata = build_anndata(usable[name], obs, genes)
    # Seurat's values are the counts until they are normalised.
    if counts is not None and (counts != usable[name]).nnz:
        adata.layers["counts"] = counts
    return adata


def _to_csr(item: Any) -> sp.csr_matrix | None:
    """Return a matrix of R (genes, cells) as CSR (cells, genes); None for others.

    Raises ValueError if a sparse one points outside its arrays.
    """
    if _find_class_name(item) == "dgCMatrix":
        shape = tuple(map(int, item.Dim))
        return to_checked_csr(sp.csc_matrix((item.x, item.i, item.p), shape)).T.tocsr()
    values = np.asarray(item) if hasattr(item, "shape") else np.zeros(0)
    is_matrix = values.ndim == 2 and values.dtype.kind in "buif"
    return sp.csr_matrix(values.T) if is_matrix else None


def _to_names(item: Any) -> list[str]:
    """Return names that R has as a vector; an empty list for none."""
    return list(map(str, item)) if isinstance(item, np.ndarray) else []


def _find_row_names(item: Any) -> list[str]:
    """Return the row names of a matrix of R; an empty list for none."""
    if hasattr(item, "Dimnames"):
        return _to_names(item.Dimnames[0])
    names = getattr(item, "coords", {}).get("dim_0")
    return [] if names is None else _to_names(names.to_numpy())


def _to_frame(table: Any) -> pd.DataFrame:
    """Return a DataFrame of Bioconductor; columns that are no vectors are left out."""
    n, names = int(table.nrows[0]), _to_names(table.rownames)
    index = names or list(map(str, range(1, n + 1)))
    columns = {k: x for k, x in dict(table.listData).items() if np.shape(x) == (n,)}
    return pd.DataFrame(columns, index=pd.Index(index))


def _align_with_cells(
    values: Any, names: list[str], cells: list[str]
) -> NDArray[np.float64]:
    """Return rows of values in the order of the cells, NaN where one is missing.

    Without names the rows are those of the cells.
    """
    rows = np.asarray(values, np.float64)
    index = names if names else cells
    return np.asarray(pd.DataFrame(rows, index=index).reindex(cells).to_numpy())


def _add_images(adata: AnnData, images: Mapping[str, Any], cells: list[str]) -> None:
    """Add the positions and pictures of Seurat's images to an AnnData, as scanpy has.

    x of Visium objects was the row of the picture, until the slot
    ``coords_x_orientation`` says "horizontal".
    """
    places = pd.DataFrame(np.nan, index=cells, columns=["x", "y"])
    sections = pd.Series(None, index=cells, dtype=object)
    libraries = {}
    for name, image in images.items():
        if hasattr(image, "coordinates"):
            found = image.coordinates[["imagecol", "imagerow"]]
        else:
            centers = dict(image.boundaries)["centroids"]
            is_turned = hasattr(image, "image") and "horizontal" not in _to_names(
                getattr(image, "coords_x_orientation", None)
            )
            xy = np.asarray(centers.coords, np.float64)[:, :2]
            found = pd.DataFrame(xy[:, ::-1] if is_turned else xy, list(centers.cells))
        found = found.set_axis(["x", "y"], axis="columns")
        found = found[found.index.isin(places.index)]
        places.loc[found.index] = found.astype(np.float64)
        sections[found.index] = name
        if hasattr(image, "image"):
            scales = dict(vars(image)["scale.factors"])
            libraries[name] = {
                "images": {"lowres": np.asarray(image.image)},
                "scalefactors": {"tissue_lowres_scalef": float(scales["lowres"][0])},
            }
    adata.obsm[POSITIONS] = places.to_numpy()
    if libraries:
        adata.uns[POSITIONS] = libraries
    if len(images) > 1:
        adata.obs[_SECTION] = sections.to_numpy()
