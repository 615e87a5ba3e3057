"""The table of a napari layer that came from SpatialData.

napari-spatialdata puts into the metadata of a layer ``adata``, the table that annotates
the layer, or ``sdata``, which has tables; ``uns["spatialdata_attrs"]`` of a table says
which of its columns tells the region (the element that a row is about) and which the
instance (the label in it).  Neither package is imported: what looks like them is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_embedding_game.data.columns import listed
from napari_embedding_game.data.errors import DataError

if TYPE_CHECKING:
    from anndata import AnnData

ATTRIBUTES = "spatialdata_attrs"


@dataclass(frozen=True, eq=False)
class SpatialTable:
    """The rows of an AnnData in memory that are about one layer."""

    adata: AnnData
    """These rows, in their order: the table itself, or a view of it."""
    instance_key: str | None
    """Column of ``obs`` with the label of each row; None if unknown."""
    note: str
    """Which rows were left out; "" if all are about the layer."""


def table_of_layer(metadata: Mapping[str, Any], layer_name: str) -> SpatialTable | None:
    """Return the table that annotates a layer; None where it has none.

    `metadata` of the layer has its ``adata``, or else the tables of its ``sdata``;
    ``name`` is what SpatialData calls the element, by default the layer's name.
    Raises DataError if there are tables, but none has a row about this layer.
    """
    name = metadata.get("name")
    element = name if isinstance(name, str) and name else layer_name
    adata: Any = metadata.get("adata")
    if hasattr(adata, "obs"):
        return _rows_about(adata, metadata, element, is_of_layer=True)
    tables = getattr(metadata.get("sdata"), "tables", None) or {}
    annotated = [(one, _regions(one)) for one in tables.values() if hasattr(one, "obs")]
    for one, regions in annotated:
        if element in regions:
            return _rows_about(one, metadata, element)
    if not annotated:
        return None
    regions = sorted({region for _, names in annotated for region in names})
    raise DataError(
        f"No table of the SpatialData of '{layer_name}' is about '{element}': they "
        f"annotate {listed(regions) or 'no element'}. Choose the layer of one "
        "of these, or name the layer as its element is called."
    )


def _regions(adata: Any) -> list[str]:
    """Return the elements that a table annotates."""
    noted = adata.uns.get(ATTRIBUTES) or {}
    if (key := noted.get("region_key")) in adata.obs:
        return list(adata.obs[key].dropna().astype(str).unique())
    if (region := noted.get("region")) is None:
        return []
    return [region] if isinstance(region, str) else list(map(str, region))


def _rows_about(
    adata: Any, metadata: Mapping[str, Any], element: str, *, is_of_layer: bool = False
) -> SpatialTable:
    """Find the rows about an element; all rows of a layer's table may be."""
    noted = {**metadata, **(adata.uns.get(ATTRIBUTES) or {})}
    keys = [noted.get(name) for name in ("region_key", "instance_key")]
    region_key, instance_key = (key if key in adata.obs else None for key in keys)
    whole = SpatialTable(adata, instance_key, "")
    if region_key is None:
        return whole
    regions = adata.obs[region_key].astype(str).to_numpy()
    others = [one for one in np.unique(regions) if one != element]
    # Where there is one region alone, the layer may have another name than it.
    if not others or (is_of_layer and len(others) == 1 and element not in regions):
        return whole
    rows = np.flatnonzero(regions == element)
    if not len(rows):
        raise DataError(
            f"The table of '{element}' has no row about it: column '{region_key}' "
            f"names {listed(others)}. Name the layer as one of these."
        )
    n, names = len(regions) - len(rows), listed(others)
    note = f"Left out: {n:,} rows of other regions ({region_key}: {names})."
    return SpatialTable(adata[rows], instance_key, note)
