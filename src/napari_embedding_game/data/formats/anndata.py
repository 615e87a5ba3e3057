"""Read AnnData (.h5ad, .zarr): cells, spaces (``obsm``), genes and metadata.

Only the parts that are needed are read: metadata, the embedded space, and ``raw``,
or ``X`` without it, for comparing genes if it fits.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_embedding_game.data.columns import KEY, unique_names
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import (
    DataError,
    SeveralError,
    check_filled,
    explain_damage,
)
from napari_embedding_game.data.formats.anndata_contents import (
    OBS,
    Contents,
    file_contents,
    has_matrix,
    is_legacy,
    object_contents,
)
from napari_embedding_game.data.formats.anndata_contents import split_space as _split
from napari_embedding_game.data.formats.anndata_parts import (
    RAW_HOLDS_COUNTS,
    AnnDataParts,
    Genes,
    column_names,
    dataset_of,
    goes_below_0,
    level_colors,
)
from napari_embedding_game.data.formats.anndata_store import (
    check_links,
    check_part,
    declared_bytes,
    first_values,
    is_array,
    members,
    read_element,
    read_matrix,
)
from napari_embedding_game.data.formats.anndata_zarr import (
    open_zarr,
    split_table,
    table_names,
)
from napari_embedding_game.data.formats.columns_on_disk import stored_columns
from napari_embedding_game.data.formats.stored_matrix import StoredMatrix
from napari_embedding_game.data.limits.memory import part_of_budget
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.raw_counts import are_counts
from napari_embedding_game.data.read_options import Missing, Several
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages, finish
from napari_embedding_game.data.stored_columns import StoredColumns

if TYPE_CHECKING:
    from anndata import AnnData

PROJECTION = f"uns/{KEY}/projection"
"""Where a result keeps the way from genes to the components of its recipe."""
ON_DISK = "Genes are read from disk when they are asked for, as they are large."
_NOT_COMPARED = (
    "Genes are not compared: {} is larger than a quarter of the free memory, and "
    "stored by cells. Save it by genes (CSC), and they are read from disk."
)


def read_anndata(
    path: Path,
    *,
    space: str | None = None,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
) -> Dataset:
    """Read one space of an .h5ad file or .zarr folder.

    `space` is written ``X_pca``, ``obsm['X_pca']``, ``X``, ``layers['counts']`` or
    ``obs`` (its columns of numbers); by default ``X_pca``, else the first entry of
    ``obsm`` with more than two columns that is no map or place, else ``X``.  In a
    SpatialData folder with several tables the name of the table stands before it:
    ``tables['cells'] X``.  `columns` keeps only these columns of the space.
    """
    return finish(
        anndata_stages(path, space=space, columns=columns, missing=missing)
    ).dataset


def anndata_stages(
    path: Path,
    *,
    space: str | None = None,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
    several: Several = "first",
) -> Stages[ReadResult]:
    """Do what :func:`read_anndata` does, in stages."""
    yield Stage(f"Opening {path.name}")
    with explain_damage(path, _kind(path)):
        with open_store(path) as root:
            table, space = split_table(space)
            if table is None and several == "error":
                _check_one_table(root, path.name)
            group, prefix = table_of(root, table, path.name), _prefix(root, table)
            legacy = is_legacy(group, path.name)
            if not legacy:
                parts = yield from _stored_parts(group, space, path, table)
                spaces = _all_spaces(root, path)
        if legacy:
            yield Stage(f"Reading {path.name}")
            adata = read_legacy(path)
            parts = _object_parts(adata, space, path.name)
            spaces = _spaces(object_contents(adata), path.name)
        yield Stage("Checking the numbers")
        dataset = dataset_of(parts, path.name, path.name, path, missing, columns)
    return ReadResult(
        dataset.named_space(prefix + dataset.space), spaces, column_names(parts)
    )


def from_anndata(
    adata: AnnData,
    name: str,
    *,
    space: str | None = None,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
) -> Dataset:
    """Dataset from an AnnData object in memory; see :func:`read_anndata`."""
    where = f"'{name}'"
    parts = _object_parts(adata, space, where)
    return dataset_of(parts, name, where, None, missing, columns)


def anndata_spaces(path: Path) -> list[str]:
    """Spaces that can be embedded, the default first."""
    with explain_damage(path, _kind(path)), open_store(path) as root:
        return _all_spaces(root, path)


def anndata_columns(path: Path, space: str | None = None) -> list[str]:
    """Names of the columns of a space that may be chosen; of ``obs``, the numbers."""
    with explain_damage(path, _kind(path)), open_store(path) as root:
        table, space = split_table(space)
        group = table_of(root, table, path.name)
        chosen = _contents(group, path).choose(space, path.name)
        if is_legacy(group, path.name):
            return list(
                from_anndata(read_legacy(path), path.name, space=chosen).var_names
            )
        return _stored_columns(group, chosen, path.name)


def _stored_columns(group: Any, space: str, where: str) -> list[str]:
    if space == OBS:
        return [
            key
            for key, item in members(group["obs"])
            if is_array(item) and item.dtype.kind in "uif" and key != "_index"
        ]
    place = _split(space)
    if place and place[0] == "obsp":
        return []
    if place and place[0] == "obsm":
        item = group["obsm"][place[1]]
        if "column-order" in item.attrs:
            return list(map(str, item.attrs["column-order"]))
        width = item.shape[1] if is_array(item) else item.attrs["shape"][1]
        label = place[1].removeprefix("X_")
        return [f"{label} {i + 1}" for i in range(int(width))]
    return unique_names(_read_frame(group, "var", where).index)


@contextmanager
def open_store(path: Path) -> Iterator[Any]:
    """Open an .h5ad file or a .zarr folder for reading, after a look at its links."""
    import h5py

    check_filled(path)
    if path.is_dir():
        yield open_zarr(path)
        return
    with h5py.File(path) as file:
        check_links(file, path.name)
        yield file


def read_legacy(path: Path) -> AnnData:
    """Read a file of an anndata version before 0.7, whose parts need each other."""
    from anndata import read_h5ad

    with open_store(path) as file:
        check_part(file, path.name, "its content")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata tells how it updates old files
        return read_h5ad(path)


def _kind(path: Path) -> str:
    return "a .zarr folder" if path.is_dir() else f"an {path.suffix.lower()} file"


def table_of(root: Any, table: str | None, where: str) -> Any:
    """Group with the cells: the root itself, or a table of SpatialData."""
    names = table_names(root)
    if not names:
        return root
    if table is not None and table not in names:
        raise DataError(
            f'{where} has no table "{table}": choose one of {", ".join(names)}.'
        )
    return root["tables"][table or names[0]]


def _check_one_table(root: Any, where: str) -> None:
    names = table_names(root)
    if len(names) > 1:
        raise SeveralError(
            f"{where} has {len(names)} tables, {', '.join(names)}: say which to embed",
            f"tables['{names[0]}']",
        )


def _prefix(root: Any, table: str | None) -> str:
    """What stands before the name of a space where there are several tables."""
    names = table_names(root)
    return f"tables['{table or names[0]}'] " if len(names) > 1 else ""


def _contents(group: Any, path: Path) -> Contents:
    if is_legacy(group, path.name):
        return object_contents(read_legacy(path))
    return file_contents(group)


def _all_spaces(root: Any, path: Path) -> list[str]:
    names = table_names(root)
    if not names:
        return _spaces(_contents(root, path), path.name)
    prefixes = [f"tables['{name}'] " if len(names) > 1 else "" for name in names]
    return [
        prefix + space
        for name, prefix in zip(names, prefixes, strict=True)
        for space in _spaces(file_contents(root["tables"][name]), path.name)
    ]


def object_spaces(adata: AnnData, where: str) -> list[str]:
    """Spaces of an AnnData in memory that can be embedded, the default first."""
    return _spaces(object_contents(adata), where)


def _spaces(contents: Contents, where: str) -> list[str]:
    default = contents.choose(None, where)
    return [default, *(space for space in contents.spaces() if space != default)]


def _stored_parts(
    group: Any, space: str | None, path: Path, table: str | None
) -> Stages[AnnDataParts]:
    where, contents = path.name, file_contents(group)
    chosen = contents.choose(space, where)
    place = _split(chosen)
    yield Stage("Reading the table of cells (obs)")
    obs = _read_frame(group, "obs", where)
    yield Stage("Reading the table of genes (var)")
    var = _read_frame(group, "var", where)
    raw, notes = yield from _stored_raw(group, path, table)
    x = None
    if chosen == "X":
        x = yield from read_matrix(group["X"], where, "X")
    elif contents.has_x and raw is None:
        x = yield from _compared_matrix(group, path, table, "X")
    values = x
    if place:
        values = yield from read_matrix(group[place[0]][place[1]], where, chosen)
    if isinstance(x if raw is None else raw.values, StoredColumns):
        notes = (*notes, ON_DISK)
    if contents.has_x and x is None and raw is None:
        notes = (*notes, _NOT_COMPARED.format("X"))
    way = _stored_way(group, chosen, where)
    colors = level_colors(obs, lambda key: _stored_colors(group, key, where))
    return AnnDataParts(chosen, values, obs, var.index, x, notes, raw, way, colors)


def _stored_colors(group: Any, key: str, where: str) -> Any:
    """Return the colours that ``uns`` keeps under a key; None without any."""
    item = group["uns"].get(key) if "uns" in group else None
    if item is None or not is_array(item):
        return None
    return read_element(item, where, f"its {key}")


def _stored_way(group: Any, space: str, where: str) -> Projection | None:
    """Return the way from genes to a space that a map of it noted, if one did."""
    if space.startswith("obsm") and PROJECTION in group:
        stored = read_element(group[PROJECTION], where, "its way to components")
        if str(stored.get("space")) == space:
            return Projection.from_stored(stored, where)
    return None


def _stored_raw(
    group: Any, path: Path, table: str | None
) -> Stages[tuple[Genes | None, tuple[str, ...]]]:
    """Read the genes of .raw, or tell why X is what to compare them by."""
    if "raw" not in group or not has_matrix(group["raw"]):
        return None, ()
    yield Stage("Looking at .raw")
    is_better = has_matrix(group) and not goes_below_0(_some_values(group["X"], path))
    if is_better and are_counts(_some_values(group["raw"]["X"], path)):
        return None, (RAW_HOLDS_COUNTS,)
    yield Stage("Reading the table of genes of .raw")
    var = _read_frame(group["raw"], "var", path.name)
    values = yield from _compared_matrix(group, path, table, "raw/X")
    if values is None:
        return None, (_NOT_COMPARED.format(".raw"),)
    return Genes(values, var.index), ()


def _some_values(item: Any, path: Path) -> Any:
    return first_values(item, path.name, "X")


def _compared_matrix(
    group: Any, path: Path, table: str | None, part: str
) -> Stages[Any]:
    """Read genes to compare; where they are large, columns that stay on disk.

    None where they are large and stored by cells.
    """
    item, what = group[part], "X" if part == "X" else ".raw"
    if declared_bytes(item) <= part_of_budget(2):
        return (yield from read_matrix(item, path.name, what))
    opened = partial(_opened_part, path, table, part)
    return (yield from stored_columns(StoredMatrix(path, what, opened)))


@contextmanager
def _opened_part(path: Path, table: str | None, part: str) -> Iterator[Any]:
    with open_store(path) as root:
        yield table_of(root, table, path.name)[part]


def _read_frame(group: Any, key: str, where: str) -> Any:
    return read_element(group[key], where, f"its table {key}")


def _object_parts(adata: AnnData, space: str | None, where: str) -> AnnDataParts:
    chosen = object_contents(adata).choose(space, where)
    place = _split(chosen)
    values = getattr(adata, place[0])[place[1]] if place else adata.X
    raw = None
    if adata.raw is not None:
        raw = Genes(adata.raw.X, adata.raw.var_names)
    stored = adata.uns.get(KEY, {}).get("projection", {})
    way = None
    if chosen.startswith("obsm") and str(stored.get("space")) == chosen:
        way = Projection.from_stored(stored, where)
    return AnnDataParts(
        chosen,
        values,
        adata.obs,
        adata.var_names,
        adata.X,
        raw=raw,
        projection=way,
        colors=level_colors(adata.obs, adata.uns.get),
    )


@dataclass(frozen=True)
class StoredSpace:
    """How one space of an .h5ad file is stored there."""

    form: str
    """"dense", "csr", "csc", or what else anndata calls it."""
    dtype: str
    n_columns: int
    has_raw: bool


def stored_space(path: Path, space: str) -> StoredSpace | None:
    """Return how a space is stored; None where the file is of an old format or gone.

    Of tables of SpatialData nothing is told either.

    Parameters
    ----------
    path : Path
        An .h5ad file or .zarr folder.
    space : str
        As ``Dataset.space``: ``X``, or a key of ``obsm``, ``layers`` or ``obsp``.
    """
    if not path.exists():
        return None
    with explain_damage(path, _kind(path)), open_store(path) as root:
        if table_names(root) or is_legacy(root, path.name):
            return None
        place = _split(space)
        item = root[place[0]][place[1]] if place else root["X"]
        has_raw = "raw" in root and has_matrix(root["raw"])
        if is_array(item):
            return StoredSpace("dense", str(item.dtype), int(item.shape[1]), has_raw)
        form = str(item.attrs.get("encoding-type", "")).removesuffix("_matrix")
        if form not in ("csr", "csc"):
            return StoredSpace(form, "", 0, has_raw)
        n_columns = int(item.attrs["shape"][1])
        return StoredSpace(form, str(item["data"].dtype), n_columns, has_raw)
