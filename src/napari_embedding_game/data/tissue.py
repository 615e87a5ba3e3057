"""Positions of rows in tissue, and the pictures below them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.columns import count_text

Unit: TypeAlias = Literal["µm", "pixel", ""]
"""Unit of positions; "" where it is unknown."""
POSITIONS = "spatial"
"""Key under which scverse's packages keep positions in ``obsm``, pictures in ``uns``.
"""


@dataclass(frozen=True, eq=False)
class TissueImage:
    """A picture of one section, and where its pixels lie among the positions."""

    pixels: NDArray[Any]
    """(h, w), (h, w, 3) or (h, w, 4) uint8, or float from 0 to 1."""
    step: NDArray[np.float64]
    """(2,) size of a pixel along x and y, in units of the positions."""
    origin: NDArray[np.float64]
    """(2,) position (x, y) of the centre of the first pixel."""

    def __post_init__(self) -> None:
        """Raise ValueError if the pixels are no picture, or lie nowhere."""
        shape = self.pixels.shape
        if len(shape) not in (2, 3) or shape[2:] not in ((), (3,), (4,)):
            raise ValueError(f"a picture has the shape {shape}")
        places = np.array([self.step, self.origin], np.float64)
        if places.shape != (2, 2) or not np.isfinite(places).all():
            raise ValueError(f"a picture lies at {self.origin}")
        if not (places[0] > 0).all():
            raise ValueError(f"pixels of a picture are {self.step} large")


@dataclass(frozen=True, eq=False)
class Tissue:
    """Positions of N rows in tissue, with the pictures of their sections."""

    positions: NDArray[np.float32]
    """(N, 2) x and y, or (N, 3) x, y and z; y points down. A row without a position is
    NaN in all columns."""
    unit: Unit
    origin: str
    """Where the positions come from: "obsm['spatial']" or "x_centroid, y_centroid"."""
    section_column: str = ""
    """Column of ``obs`` whose levels are the sections (slices, fields, libraries); ""
    for a single section."""
    images: Mapping[str, TissueImage] = field(default_factory=dict)
    """Pictures keyed by the level of their section; "" for the only section."""

    def __post_init__(self) -> None:
        """Raise ValueError if the positions are not (N, 2) or (N, 3)."""
        shape = self.positions.shape
        if len(shape) != 2 or shape[1] not in (2, 3):
            raise ValueError(f"positions have shape {shape}, expected (N, 2 or 3)")

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.positions)

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """(N,) whether a row has a position."""
        is_known: NDArray[np.bool_] = np.isfinite(self.positions[:, 0])
        return is_known

    @cached_property
    def has_positions(self) -> bool:
        """Whether any row has a position."""
        return bool(self.is_known.any())

    def take(self, rows: NDArray[Any]) -> Tissue:
        """Return the tissue of these rows: indices, or a mask. All pictures stay."""
        return replace(self, positions=self.positions[rows])


def to_tissue_positions(values: Any) -> NDArray[np.float32]:
    """Return positions (N, 2 or 3) as float32; NaN in all axes if one is not finite."""
    with np.errstate(over="ignore"):  # what is too large becomes infinite
        positions = np.array(values, dtype=np.float32, order="C")
    positions[~np.isfinite(positions).all(axis=1)] = np.nan
    return positions


def describe_tissue(tissue: Tissue) -> str:
    """Return a sentence as "Tissue: x, y in pixels, sections by slice, 2 pictures."."""
    n_known = int(tissue.is_known.sum())
    unit = {"µm": " in µm", "pixel": " in pixels", "": ""}[tissue.unit]
    parts = [f"{tissue.origin}{unit}"]
    if n_known < len(tissue):
        parts.append(f"{n_known:,} of {len(tissue):,} rows")
    if tissue.section_column:
        parts.append(f"sections by {tissue.section_column}")
    if tissue.images:
        parts.append(count_text(len(tissue.images), "picture"))
    return f"Tissue: {', '.join(parts)}."
