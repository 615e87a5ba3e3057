"""Read AnnData (.h5ad, .zarr, in memory): cells, spaces, genes and metadata.

Only the parts that are needed are read: metadata, the embedded space, and ``raw``,
or ``X`` without it, for comparing genes if it fits.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.columns import (
    KEY,
    chosen_places,
    listed,
    numbered_names,
    repeated_names,
    texts,
    unique_names,
)
from napari_embedding_game.data.dataset import (
    MISSING_VALUES,
    Dataset,
    Matrix,
    is_of_pairs,
)
from napari_embedding_game.data.errors import (
    DataError,
    SeveralError,
    check_filled,
    explain_damage,
)
from napari_embedding_game.data.expression import COUNTS_NOTE
from napari_embedding_game.data.formats.anndata_contents import (
    OBS,
    choose,
    has_matrix,
    is_legacy,
    root_of,
    spaces_of,
    split_space,
    width_of,
)
from napari_embedding_game.data.formats.anndata_store import (
    check_links,
    check_part,
    declared_bytes,
    first_values,
    is_array,
    is_stored,
    read_element,
    read_matrix,
)
from napari_embedding_game.data.formats.anndata_zarr import (
    open_zarr,
    split_table,
    table_names,
)
from napari_embedding_game.data.formats.columns_on_disk import stored_columns
from napari_embedding_game.data.formats.tables import from_frame
from napari_embedding_game.data.limits.memory import part_of_budget
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.raw_counts import are_counts, counts_advice
from napari_embedding_game.data.read_options import AS_USUAL, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages, finish
from napari_embedding_game.data.stored_columns import StoredColumns, seen_values
from napari_embedding_game.data.validation import (
    as_float32,
    as_rows,
    check_shape,
    check_values,
    usable_rows,
)

if TYPE_CHECKING:
    from anndata import AnnData

OF_DISTANCES = (
    "Laid out by the neighbours of the file, as scanpy's pp.neighbors found them."
)
RAW_HOLDS_COUNTS = "Genes are not compared by .raw, because it holds counts."
ON_DISK = "Genes are read from disk when they are asked for, as they are large."
_NOT_COMPARED = (
    "Genes are not compared: {} is larger than a quarter of the free memory, and "
    "stored by cells. Save it by genes (CSC), and they are read from disk."
)


@dataclass(frozen=True, eq=False)
class _Source:
    """Where the parts of an AnnData come from."""

    root: Any
    """See :mod:`~.anndata_contents`."""
    name: str
    where: str
    """The subject of what is told about it."""
    path: Path | None = None
    table: str | None = None
    """Of several in a folder of SpatialData."""


@dataclass(frozen=True, eq=False)
class _Genes:
    """What clusters are compared by."""

    profile: Matrix | None = None
    """None: nothing, or what is embedded."""
    names: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    are_embedded: bool = False


def anndata_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read one space of an .h5ad file or .zarr folder, in stages.

    The space is written ``X_pca``, ``obsm['X_pca']``, ``X``, ``layers['counts']`` or
    ``obs`` (its columns of numbers); by default ``X_pca``, else the first entry of
    ``obsm`` with more than two columns that is no map or place, else ``X``.  In a
    SpatialData folder with several tables the name of the table stands before it:
    ``tables['cells'] X``.
    """
    yield Stage(f"Opening {path.name}")
    with explain_damage(path, _kind(path)), open_store(path) as file:
        table, space = split_table(options.space)
        names = table_names(file)
        if table is None and options.several == "error" and len(names) > 1:
            raise SeveralError(
                f"{path.name} has {len(names)} tables, {', '.join(names)}: say which "
                "to embed",
                f"tables['{names[0]}']",
            )
        root = _root_in(table_of(file, table, path.name), path)
        source = _Source(root, path.name, path.name, path, table)
        result = yield from parts_read(source, replace(options, space=space))
        if not names:
            return result
        prefix = _prefix(names, table or names[0])
        dataset = result.dataset.named_space(prefix + result.dataset.space)
        return replace(result, dataset=dataset, spaces=_all_spaces(file, path))


def from_anndata(adata: AnnData, name: str, options: ReadOptions = AS_USUAL) -> Dataset:
    """Dataset from an AnnData object in memory; see :func:`anndata_stages`."""
    source = _Source(root_of(adata), name, f"'{name}'")
    return finish(parts_read(source, options)).dataset


def from_parts(
    root: dict[str, Any], path: Path, options: ReadOptions
) -> Stages[ReadResult]:
    """Dataset from the parts of an AnnData that were read from a file of another kind.

    Notes on them may stand under "notes".
    """
    result = yield from parts_read(_Source(root, path.name, path.name, path), options)
    notes = (*root.get("notes", ()), *result.dataset.notes)
    return replace(result, dataset=replace(result.dataset, notes=notes))


def anndata_spaces(path: Path) -> list[str]:
    """Spaces that can be embedded, the default first."""
    with explain_damage(path, _kind(path)), open_store(path) as root:
        return _all_spaces(root, path)


def anndata_columns(path: Path, space: str | None = None) -> list[str]:
    """Names of the columns of a space that may be chosen; of ``obs``, the numbers."""
    with explain_damage(path, _kind(path)), open_store(path) as file:
        table, space = split_table(space)
        root = _root_in(table_of(file, table, path.name), path)
        chosen = choose(root, space, path.name)
        parts = dict.fromkeys(("obs", "var"))
        if not chosen.startswith("obsm"):
            key = "obs" if chosen == OBS else "var"
            parts[key] = read_element(root[key], path.name, f"its table {key}")
        return _column_names(chosen, **parts, values=_item(root, chosen))


def object_spaces(adata: AnnData, where: str) -> list[str]:
    """Spaces of an AnnData in memory that can be embedded, the default first."""
    return spaces_of(root_of(adata), where)


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


def _kind(path: Path) -> str:
    return "a .zarr folder" if path.is_dir() else f"an {path.suffix.lower()} file"


def _root_in(group: Any, path: Path) -> Any:
    return root_of(read_legacy(path)) if is_legacy(group, path.name) else group


def _prefix(names: Sequence[str], table: str) -> str:
    """What stands before the name of a space where there are several tables."""
    return f"tables['{table}'] " if len(names) > 1 else ""


def _all_spaces(file: Any, path: Path) -> list[str]:
    names = table_names(file)
    if not names:
        return spaces_of(_root_in(file, path), path.name)
    return [
        _prefix(names, name) + space
        for name in names
        for space in spaces_of(file["tables"][name], path.name)
    ]


def _item(root: Any, space: str) -> Any:
    place = split_space(space)
    return root[place[0]][place[1]] if place else root.get(space)


# From the parts to a dataset


def parts_read(source: _Source, options: ReadOptions) -> Stages[ReadResult]:
    """Read the parts that are needed, check them and put them together."""
    root, where = source.root, source.where
    space = choose(root, options.space, where)
    yield Stage("Reading the table of cells (obs)")
    obs = read_element(root["obs"], where, "its table obs")
    obs = obs.set_axis(obs.index.astype(str), axis="index")
    yield Stage("Reading the table of genes (var)")
    var = read_element(root["var"], where, "its table var")
    values = None
    if space != OBS:
        values = yield from read_matrix(_item(root, space), where, space)
    columns = _column_names(space, obs, var, values)
    genes = yield from _genes(source, space, values, (len(obs), len(var)), var.index)
    yield Stage("Checking the numbers")
    if values is None:
        dataset = _of_metadata(obs, genes, source, options)
    else:
        dataset = _of_space(space, values, columns, obs, genes, source, options)
    colors = _level_colors(obs, source)
    dataset = replace(dataset, level_colors=colors)
    return ReadResult(dataset, spaces_of(root, where), columns)


def _column_names(space: str, obs: Any, var: Any, values: Any) -> list[str]:
    """Return the names of all columns of a space; of ``obs``, the numbers."""
    if is_of_pairs(space):
        return []
    if space == OBS:
        kinds = obs.dtypes
        return [str(name) for name, kind in kinds.items() if kind.kind in "uif"]
    if isinstance(values, pd.DataFrame):
        return list(map(str, values.select_dtypes("number").columns))
    if "column-order" in getattr(values, "attrs", {}):
        return list(map(str, values.attrs["column-order"]))
    if space.startswith("obsm"):
        label = split_space(space)[1].removeprefix("X_")  # type: ignore[index]
        return [f"{label} {i + 1}" for i in range(width_of(values))]
    return unique_names(var.index)


def _genes(
    source: _Source, space: str, values: Any, shape: tuple[int, int], names: pd.Index
) -> Stages[_Genes]:
    """Read the genes to compare clusters by.

    As in scanpy those of .raw, which stay unscaled; but not its counts where X, or the
    embedded layer, has the logarithm of them.
    """
    root, notes = source.root, []
    are_embedded = space == "X" or space.startswith("layers")
    own = values if are_embedded else root["X"] if has_matrix(root) else None
    profile, is_below_0 = None, own is not None and _goes_below_0(own)
    if "raw" in root and has_matrix(root["raw"]):
        yield Stage("Looking at .raw")
        raw = root["raw"]
        if own is not None and not is_below_0 and are_counts(_some(raw["X"])):
            notes.append(RAW_HOLDS_COUNTS)
        else:
            index = read_element(raw["var"], source.where, "its table var").index
            profile = yield from _compared(source, "raw/X", raw["X"])
            if profile is None:
                notes.append(_NOT_COMPARED.format(".raw"))
            else:
                names, shape, are_embedded = index, (shape[0], len(index)), False
                notes.append(f"Genes: {len(names):,} from .raw.")
    if profile is None and own is None:
        return _Genes(notes=tuple(notes))
    if profile is None:
        if are_embedded:
            profile = values
        else:
            profile = yield from _compared(source, "X", own)
            if profile is None:
                return _Genes(notes=(*notes, _NOT_COMPARED.format("X")))
        if is_below_0:
            notes.append(
                f"{space if are_embedded else 'X'} has values below 0: fold changes of "
                "genes need unscaled values, which AnnData keeps in .raw."
            )
    if profile.shape != shape:
        raise DataError(
            f"{source.where} is damaged: its genes have {profile.shape[0]} rows and "
            f"{profile.shape[1]} columns, and the file describes {shape[0]} cells and "
            f"{shape[1]} genes; export it again."
        )
    is_on_disk = isinstance(profile, StoredColumns)
    unique, repeats = numbered_names(names)
    told = [*([ON_DISK] if is_on_disk else []), *notes, *repeats]
    if are_counts(seen_values(profile)):
        told.append(COUNTS_NOTE)
    if not is_on_disk and not are_embedded:
        profile = as_float32(profile)
    return _Genes(profile, unique, tuple(told), are_embedded)


def _some(item: Any) -> Any:
    return first_values(item, "The file", "X") if is_stored(item) else item


def _goes_below_0(item: Any) -> bool:
    """Tell whether there are values below 0, as there are where genes were scaled."""
    X = _some(item)
    if X.dtype.kind not in "buif":
        return False
    values = X.data if sp.issparse(X) else X
    return bool(np.fmin.reduce(values, axis=None, initial=0) < 0)


def _compared(source: _Source, part: str, item: Any) -> Stages[Any]:
    """Read genes to compare; where they are large, columns that stay on disk.

    None where they are large and stored by cells.
    """
    what = "X" if part == "X" else ".raw"
    if not is_stored(item) or declared_bytes(item) <= part_of_budget(2):
        return (yield from read_matrix(item, source.where, what))
    assert source.path is not None
    opened = partial(_opened_part, source.path, source.table, part)
    return (yield from stored_columns(source.path, what, opened))


@contextmanager
def _opened_part(path: Path, table: str | None, part: str) -> Iterator[Any]:
    with open_store(path) as root:
        yield table_of(root, table, path.name)[part]


def _noted(source: _Source, *keys: str) -> Any:
    """Return what ``uns`` holds under some keys, unread; None where it has none."""
    item = source.root.get("uns", {})
    for key in keys:
        if key not in item:
            return None
        item = item[key]
    return item


def _level_colors(obs: pd.DataFrame, source: _Source) -> dict[str, dict[str, str]]:
    """Return the colour that a file has for each level of its columns.

    scanpy keeps the colours of "leiden" in ``uns`` under "leiden_colors".
    """
    found = {}
    for name in obs.columns[~obs.columns.duplicated(keep=False)]:
        if not isinstance(obs[name].dtype, pd.CategoricalDtype):
            continue
        key, levels = f"{name}_colors", obs[name].cat.categories
        colors = _noted(source, key)
        if is_stored(colors) and not is_array(colors):
            continue
        colors = read_element(colors, source.where, f"its {key}")
        if np.ndim(colors) == 1 and len(colors) >= len(levels):
            pairs = zip(map(str, levels), map(str, colors), strict=False)
            found[str(name)] = dict(pairs)
    return found


def _of_metadata(
    obs: pd.DataFrame, genes: _Genes, source: _Source, options: ReadOptions
) -> Dataset:
    """Numbers among the metadata as the space; genes stay what clusters differ in."""
    options = replace(options, space=None)
    where = f"The metadata (obs) of {source.where}"
    dataset = from_frame(obs, where, source.name, options, source=source.path)
    more: dict[str, Any] = {}
    if genes.profile is not None:
        more = {
            "profile": genes.profile[dataset.kept],
            "profile_names": tuple(genes.names),
            "has_expression": True,
        }
    return replace(
        dataset,
        space=OBS,
        obs=obs[dataset.kept],
        source_obs=obs,
        texts=None if dataset.texts is None else texts(obs[dataset.kept]),
        notes=(*dataset.notes, *genes.notes),
        **more,
    )


def _of_space(
    space: str,
    values: Any,
    var_names: list[str],
    obs: pd.DataFrame,
    genes: _Genes,
    source: _Source,
    options: ReadOptions,
) -> Dataset:
    where, notes = source.where, list(genes.notes)
    X = _matrix(values, space, where)
    are_pairs = is_of_pairs(space)
    if X.shape[0] != len(obs) or (are_pairs and X.shape[1] != len(obs)):
        raise DataError(
            f"{where} is damaged: {space} has {X.shape[0]} rows, and the file "
            f"describes {len(obs)} cells; export it again."
        )
    profile = X if genes.are_embedded else genes.profile
    if are_pairs:
        var_names = list(map(str, obs.index))
        notes.append(OF_DISTANCES)
    elif options.columns is not None:
        places = chosen_places(var_names, options.columns, where)
        n_all, var_names = len(var_names), [var_names[place] for place in places]
        X = X[:, places]
        notes.append(
            f"Embedded: {len(places)} of {n_all} columns of {space} "
            f"({listed(var_names)})."
        )
    are_empty = _rows_without_values(X, space)
    filled = np.where(are_empty[:, None], 0, X) if are_empty.any() else X
    kept, row_notes = usable_rows(
        filled,
        where,
        row_names=obs.index,
        var_names=var_names,
        missing=options.missing,
    )
    left_out = {f"no values in {space}": are_empty, MISSING_VALUES: ~kept}
    kept &= ~are_empty
    if are_empty.any():
        notes.append(
            f"{np.count_nonzero(are_empty):,} of {len(obs):,} rows left out, of which "
            f"{space} has no values."
        )
    whole = profile is None or profile is X
    dataset = Dataset.from_rows(
        name=source.name,
        X=X,
        obs=obs,
        var_names=var_names,
        space=space,
        kept=kept,
        source=source.path,
        notes=[
            *notes,
            *row_notes,
            *repeated_names(obs.index),
            *([] if are_pairs else counts_advice(X, space)),
        ],
        texts=texts(obs),
        profile=None if whole else profile,
        profile_names=() if whole else genes.names,
        has_expression=profile is not None,
        left_out=left_out,
    )
    check_values(dataset.X, f"{where} ({space})")
    if not space.startswith("obsm") or options.columns is not None:
        return dataset
    way = read_element(_noted(source, KEY, "projection"), where, "its components")
    if way is None or str(way.get("space")) != space:
        return dataset
    return replace(dataset, projection=Projection.from_stored(way, where))


def _rows_without_values(X: Matrix, space: str) -> NDArray[np.bool_]:
    """Rows that a space says nothing of, as whoever made it left them out."""
    none = np.zeros(X.shape[0], bool)
    if not space.startswith("obsm") or sp.issparse(X):
        return none
    are_empty = np.isnan(X).all(axis=1)
    return are_empty if np.count_nonzero(are_empty) <= X.shape[0] - 2 else none


def _matrix(values: Any, space: str, where: str) -> Matrix:
    if isinstance(values, pd.DataFrame):
        values = values.select_dtypes("number")
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    check_shape(values.shape, f"{where} ({space})")
    if values.dtype.kind not in "buif":
        raise DataError(
            f"{where} ({space}) holds {values.dtype} values where numbers belong: "
            "choose another space."
        )
    return as_rows(values)
