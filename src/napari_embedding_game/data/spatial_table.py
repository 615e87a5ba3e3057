"""Find the table of a napari layer that came from SpatialData.

napari-spatialdata stores ``adata``, the table that annotates a layer, in the layer's
metadata; its ``uns["spatialdata_attrs"]`` names the column of the region (the element
that a row is about) and the column of the instance (the label in the element). The
package is not imported: its metadata are recognised by their form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_embedding_game.data.columns import list_text
from napari_embedding_game.data.errors import DataError

if TYPE_CHECKING:
    from anndata import AnnData

ATTRIBUTES = "spatialdata_attrs"
KEYS_OF_COLUMNS = "region_key", "instance_key"
"""Keys of the attributes that name the columns of regions and instances."""


@dataclass(frozen=True, eq=False)
class SpatialTable:
    """The rows of an AnnData in memory that are about one layer."""

    adata: AnnData
    """The rows about the layer, in their order: the table itself, or a view of it."""
    instance_key: str | None
    """Column of ``obs`` with the label of each row; None if unknown."""
    note: str
    """Sentence on the rows left out; "" if all rows are about the layer."""


def find_table_of_layer(
    metadata: Mapping[str, Any], layer_name: str
) -> SpatialTable | None:
    """Return the table rows that annotate a layer; None for a layer without a table.

    ``metadata``: of the layer; its ``name`` is the element's name in SpatialData, by
    default the layer's name. All rows are taken if there is no column of regions, or
    the table has a single region. Raises DataError if no row is about this layer.
    """
    adata: Any = metadata.get("adata")
    if not hasattr(adata, "obs"):
        return None
    noted = {**metadata, **(adata.uns.get(ATTRIBUTES) or {})}
    keys = [noted.get(name) for name in KEYS_OF_COLUMNS]
    region_key, instance_key = (key if key in adata.obs else None for key in keys)
    all_rows = SpatialTable(adata, instance_key, "")
    if region_key is None:
        return all_rows
    element = metadata.get("name") or layer_name
    regions = adata.obs[region_key].astype(str).to_numpy()
    others = [one for one in np.unique(regions) if one != element]
    # With a single region the layer may have another name than the region.
    if not others or (len(others) == 1 and element not in regions):
        return all_rows
    rows = np.flatnonzero(regions == element)
    if not len(rows):
        raise DataError(
            f"The table of '{element}' has no row about it: column '{region_key}' "
            f"names {list_text(others)}. Name the layer as one of these."
        )
    n, names = len(regions) - len(rows), list_text(others)
    note = f"Left out: {n:,} rows of other regions ({region_key}: {names})."
    return SpatialTable(adata[rows], instance_key, note)
