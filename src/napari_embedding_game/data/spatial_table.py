"""The table of a napari layer that came from SpatialData.

napari-spatialdata puts into the metadata of a layer ``adata``, the table that annotates
the layer, or ``sdata``, which has tables; ``uns["spatialdata_attrs"]`` of a table says
which of its columns tells the region (the element that a row is about) and which the
instance (the label in it).  Neither package is imported: what looks like them is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.columns import listed
from napari_embedding_game.data.errors import DataError

if TYPE_CHECKING:
    from anndata import AnnData

ATTRIBUTES = "spatialdata_attrs"
_KEYS = ("region", "region_key", "instance_key")


@dataclass(frozen=True, eq=False)
class SpatialTable:
    """The rows of an AnnData in memory that are about one layer."""

    adata: AnnData
    """The table itself, which results are written into."""
    rows: NDArray[np.intp]
    """(n,) rows of it that are about the layer, in their order."""
    instance_key: str | None
    """Column of ``obs`` with the label of each row; None where nothing tells it."""
    told: str
    """Which rows were left out; "" if all are about the layer."""
    original: SpatialTable | None = None
    """The same rows in the table of the ``sdata`` that ``adata`` was copied from."""

    @property
    def places(self) -> list[tuple[AnnData, NDArray[np.intp]]]:
        """The tables in memory that hold these rows, each with their places in it."""
        others = [] if self.original is None else self.original.places
        return [(self.adata, self.rows), *others]

    def part(self) -> AnnData:
        """Return these rows alone, as an AnnData of their own where they are some."""
        if len(self.rows) == self.adata.n_obs:
            return self.adata
        return self.adata[self.rows].copy()


def table_of_layer(metadata: Mapping[str, Any], layer_name: str) -> SpatialTable | None:
    """Return the table that annotates a layer; None where it has none.

    Parameters
    ----------
    metadata : mapping
        Of the layer: its ``adata``, or else the tables of its ``sdata``; ``name`` is
        what SpatialData calls the element, by default the layer's name.
    layer_name : str

    Raises
    ------
    DataError
        If there are tables, but none has a row about this layer.
    """
    name = metadata.get("name")
    element = name if isinstance(name, str) and name else layer_name
    adata = metadata.get("adata")
    tables = getattr(metadata.get("sdata"), "tables", None)
    tables = {key: tables[key] for key in tables} if tables is not None else {}
    tables = {key: one for key, one in tables.items() if _is_table(one)}
    about = [one for one in tables.values() if element in _regions(one)]
    if _is_table(adata):
        own = _rows_about(adata, metadata, element, is_own=True)
        return replace(own, original=_original(own, about, metadata, element))
    if about:
        return _rows_about(about[0], metadata, element)
    if not tables:
        return None
    regions = {region for one in tables.values() for region in _regions(one)}
    raise DataError(
        f"No table of the SpatialData of '{layer_name}' is about '{element}': they "
        f"annotate {listed(sorted(regions)) or 'no element'}. Choose the layer of one "
        "of these, or name the layer as its element is called."
    )


def _original(
    own: SpatialTable, tables: list[Any], metadata: Mapping[str, Any], element: str
) -> SpatialTable | None:
    """Return the table that a layer's own one was copied from; None if it is it."""
    names = own.adata.obs_names[own.rows]
    for adata in tables:
        other = _rows_about(adata, metadata, element)
        is_same = names.equals(adata.obs_names[other.rows])
        if adata is not own.adata and is_same:
            return other
    return None


def _is_table(thing: Any) -> bool:
    return all(hasattr(thing, name) for name in ("obs", "obsm", "uns", "n_obs"))


def _attributes(adata: Any) -> dict[str, Any]:
    noted = adata.uns.get(ATTRIBUTES)
    return {key: noted.get(key) for key in _KEYS} if isinstance(noted, Mapping) else {}


def _regions(adata: Any) -> list[str]:
    """Return the elements that a table says it annotates."""
    attributes = _attributes(adata)
    region, key = attributes.get("region"), attributes.get("region_key")
    if key in adata.obs:
        return list(adata.obs[key].dropna().astype(str).unique())
    if isinstance(region, str):
        return [region]
    return [] if region is None else list(map(str, region))


def _rows_about(
    adata: Any, metadata: Mapping[str, Any], element: str, *, is_own: bool = False
) -> SpatialTable:
    """Find the rows about an element; a layer's own table may be about it wholly."""
    attributes = _attributes(adata)
    keys = [
        attributes.get(name) or metadata.get(name)
        for name in ("region_key", "instance_key")
    ]
    region_key, instance_key = (key if key in adata.obs else None for key in keys)
    n_all = int(adata.n_obs)
    if region_key is None:
        return SpatialTable(adata, np.arange(n_all), instance_key, "")
    regions = adata.obs[region_key].astype(str).to_numpy()
    rows = np.flatnonzero(regions == element)
    present = sorted(set(regions))
    if not len(rows) and is_own and len(present) == 1:
        rows = np.arange(n_all)  # the layer has another name than its element
    if not len(rows):
        raise DataError(
            f"The table of '{element}' has no row about it: column '{region_key}' "
            f"names {listed(present)}. Name the layer as one of these."
        )
    others = n_all - len(rows)
    told = (
        f"Left out: {others:,} rows of other regions ({region_key}: "
        f"{listed([region for region in present if region != element])})."
    )
    return SpatialTable(adata, rows, instance_key, told if others else "")
