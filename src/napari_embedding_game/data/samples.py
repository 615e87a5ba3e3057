"""Sample datasets: digits, PBMC blood cells, and a simulated tissue.

Which of them are offered stands in :mod:`session.sources`.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data import row_images
from napari_embedding_game.data.dataset import SAMPLE, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata, read_whole_anndata
from napari_embedding_game.data.tissue import Tissue

_TYPES = {
    "B cell": ("MS4A1", "CD79A", "CD19", "BANK1"),
    "T cell, CD4": ("CD3E", "CD4", "IL7R", "CCR7"),
    "T cell, CD8": ("CD3E", "CD8A", "CD8B", "GZMK"),
    "Plasma cell": ("MZB1", "JCHAIN", "XBP1", "SDC1"),
    "Macrophage": ("CD68", "C1QB", "CD163", "MARCO"),
    "Endothelium": ("PECAM1", "VWF", "CLDN5", "CDH5"),
    "Fibroblast": ("COL1A1", "DCN", "LUM", "PDGFRA"),
    "Tumour": ("EPCAM", "KRT8", "KRT18", "KRT19"),
}
"""Marker genes of the simulated types of cells."""
_DOMAINS = {
    "follicle": (78, 10, 2, 0, 6, 2, 2, 0),
    "T zone": (8, 50, 24, 2, 8, 5, 3, 0),
    "medulla": (10, 14, 8, 26, 22, 12, 8, 0),
    "capsule": (2, 4, 2, 2, 10, 16, 64, 0),
    "tumour": (2, 5, 12, 2, 13, 6, 10, 50),
}
"""Shares in percent of the types, in that order, in each simulated domain."""
_N_CELLS, _N_OTHER_GENES = 20_000, 80
_SPACING, _EXPRESSED = 12.0, 4.0
"""Micrometres between two cells, and mean counts of a marker in its type."""
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
        var_names=row_images.make_pixel_names(pictures.shape[1:]),
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


def tissue() -> Dataset:
    """Return 20,000 simulated cells of two sections of a lymph node with a tumour.

    Types of cells, and domains in which they are mixed, are known: columns
    ``cell_type`` and ``domain``.  Genes are log1p of counts.  Names of genes are real;
    all numbers are drawn at random, always the same.
    """
    rng = np.random.default_rng(0)
    section = np.arange(_N_CELLS) * 2 // _N_CELLS
    parts = [_simulate_section(rng, _N_CELLS // 2, number) for number in range(2)]
    places, domain = (np.concatenate(values) for values in zip(*parts, strict=True))
    mixed = np.array(list(_DOMAINS.values())) / 100
    kind = (rng.random(_N_CELLS)[:, None] > mixed.cumsum(axis=1)[domain]).sum(axis=1)
    markers = sorted({gene for genes in _TYPES.values() for gene in genes})
    rates = np.full((len(_TYPES), len(markers)), 0.1)
    for row, genes in zip(rates, _TYPES.values(), strict=True):
        row[[markers.index(gene) for gene in genes]] = _EXPRESSED
    others = np.tile(rng.gamma(0.5, 1.0, _N_OTHER_GENES), (len(_TYPES), 1))
    depth = rng.lognormal(0.0, 0.3, (_N_CELLS, 1))
    counts = rng.poisson(np.hstack([rates, others])[kind] * depth)
    columns: dict[str, tuple[NDArray[np.intp], list[str]]] = {
        "cell_type": (kind, [*_TYPES]),
        "domain": (domain, [*_DOMAINS]),
        "section": (section, ["section A", "section B"]),
    }
    obs = pd.DataFrame(
        {n: pd.Categorical.from_codes(c, of) for n, (c, of) in columns.items()},
        index=[f"cell{i + 1:05}" for i in range(_N_CELLS)],
    )
    return Dataset.from_rows(
        name="tissue",
        X=np.log1p(counts).astype(np.float32),
        obs=obs,
        var_names=[*markers, *(f"gene{i + 1}" for i in range(_N_OTHER_GENES))],
        space=f"{len(markers) + _N_OTHER_GENES} genes",
        has_expression=True,
        source_tissue=Tissue(places, "µm", "simulated positions", "section"),
        provenance={SAMPLE: "tissue"},
    )


def _simulate_section(
    rng: np.random.Generator, n_cells: int, number: int
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return positions (n, 2) in micrometres and domains (n,) of a section's cells.

    The cells fill a bean-shaped outline; later sections have a larger tumour.
    """
    side = np.arange(-80, 81) * _SPACING
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    grid[:, 0] += np.tile([0, _SPACING / 2], len(grid) // 2 + 1)[: len(grid)]
    grid += rng.normal(0, _SPACING / 5, grid.shape)
    angle = np.arctan2(grid[:, 1], grid[:, 0])
    outline = 1 + 0.12 * np.cos(2 * angle + 0.3 * number) + 0.05 * np.sin(3 * angle)
    level = np.hypot(*grid.T) / outline
    inside = np.argsort(level)[:n_cells]
    x, y = places = grid[inside].T
    radius = float(level[inside[-1]])
    domain = np.full(n_cells, 2)
    turns = np.arange(6) * np.pi / 3 + 0.4 * number
    centers = 0.62 * radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    distance = np.min([np.hypot(x - a, y - b) for a, b in centers], axis=0)
    domain[distance < 0.27 * radius] = 1
    domain[distance < 0.17 * radius] = 0
    domain[
        np.hypot(x + 0.2 * radius, y - 0.1 * radius) < (0.2 + 0.1 * number) * radius
    ] = 4
    domain[level[inside] > 0.94 * radius] = 3
    corner = places.min(axis=1) - _SPACING
    return (places.T - corner).astype(np.float32), domain
