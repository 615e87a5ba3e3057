"""Read AnnData (.h5ad, .zarr, in memory): cells, spaces, genes and metadata.

Only the parts needed are read: metadata, the embedded space, and ``raw``, or ``X``
without ``raw``, to compare genes if it fits into memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import (
    KEY,
    list_text,
    make_gene_names_unique,
    make_names_unique,
    note_repeated_row_names,
)
from napari_embedding_game.data.dataset import Dataset, is_pairwise_space
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.expression import (
    Expression,
    GeneKind,
    guess_gene_kind,
    to_dense,
    to_natural_log,
)
from napari_embedding_game.data.formats import spaces, store
from napari_embedding_game.data.formats.matrices import make_dataset_from_matrix
from napari_embedding_game.data.formats.spatial_elements import find_elements_folder
from napari_embedding_game.data.formats.tissue_parts import read_tissue
from napari_embedding_game.data.gene_names import (
    choose_gene_display_names,
    find_ensembl_ids,
)
from napari_embedding_game.data.identity import (
    Identity,
    Part,
    RowHashes,
    find_row_order,
    hash_rows,
)
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.positions import order_axes
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.raw_counts import are_counts
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.row_matrices import Matrix
from napari_embedding_game.data.stages import Stage, Stages, finish
from napari_embedding_game.data.validation import (
    check_shape,
    to_float32,
    to_sufficient_precision,
)

if TYPE_CHECKING:
    from anndata import AnnData

DISTANCES_NOTE = (
    "Laid out by the neighbours of the file, as scanpy's pp.neighbors found them."
)
RAW_HOLDS_COUNTS = "Genes are not compared by .raw, because it holds counts."
_NOT_COMPARED = (
    "Genes are not compared: {} is larger than a quarter of the free memory. Save "
    "only the genes that vary (scanpy: pp.highly_variable_genes) to compare these."
)
_FIRST_TABLE = (
    "Of its tables {} the first was read: for another one open the folder tables/{} "
    "in it."
)


@dataclass(frozen=True, eq=False)
class _Source:
    """The root of an AnnData that is read, and what is collected while reading."""

    root: Any
    """Parts of the AnnData by name, see :mod:`~.spaces`."""
    name: str
    where: str
    """Subject of the messages about this source."""
    path: Path | None = None
    is_shared: bool = False
    """Whether other code may change the numbers, so that copies are needed."""
    notes: Sequence[str] = ()
    by_ids: bool = False
    """Whether genes keep the names of the index, by which files are compared."""
    gene_ids: dict[str, str] = field(default_factory=dict)
    """Ensembl identifiers in the tables read so far, keyed by the names of genes."""
    row_hashes: dict[Part, NDArray[np.uint64]] = field(default_factory=dict)
    """Row hashes of the matrices read so far, keyed by their spaces."""


_Genes = tuple[Any, Sequence[str], list[str]]
"""The matrix by which clusters are compared, the names of its columns, and notes."""


def read_anndata_in_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read one space of an .h5ad file or .zarr folder, in stages.

    The space is written ``X_pca``, ``obsm['X_pca']``, ``X`` or ``layers['counts']``. By
    default it is ``X_pca``; else the first entry of ``obsm``, by key, with more than
    three columns that holds neither a map nor positions; else ``X``; else any space. Of
    SpatialData the first table by name is read, and a note names the other tables; the
    rows of a table without positions have those of the shapes or points that they
    annotate.

    Raises DataError if the file is damaged or too large, or lacks the space.
    """
    yield Stage(f"Opening {path.name}")
    with _open_cells_group(path) as (root, notes):
        parts = to_readable_root(root, path)
        return (yield from read_root_in_stages(parts, path, options, notes))


def read_root_in_stages(
    root: Any, path: Path, options: ReadOptions, notes: Sequence[str] = ()
) -> Stages[ReadResult]:
    """Read one space of an open root of a file, in stages; see :mod:`~.spaces`."""
    source = _Source(root, path.name, path.name, path, notes=notes)
    return (yield from _read_source(source, options))


def read_adata_in_stages(
    adata: AnnData,
    name: str,
    options: ReadOptions,
    path: Path | None = None,
    *,
    is_shared: bool = False,
    by_ids: bool = False,
) -> Stages[ReadResult]:
    """Read one space of an AnnData in memory, in stages.

    ``name``: short name of the dataset. ``path``: the file that the AnnData was read
    from, if any. ``is_shared``: whether other code may change the numbers, so that they
    are copied. ``by_ids``: whether genes keep the names of the ``var`` index, instead
    of symbols from a column of ``var``.
    """
    where = f"'{name}'" if path is None else name
    root = spaces.make_root_from_anndata(adata)
    source = _Source(root, name, where, path, is_shared, by_ids=by_ids)
    return (yield from _read_source(source, options))


def from_anndata(
    adata: AnnData,
    name: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    by_ids: bool = False,
) -> Dataset:
    """Return the dataset of an AnnData in memory, without showing stages.

    The parameters are those of :func:`read_adata_in_stages`.
    """
    return finish(read_adata_in_stages(adata, name, options, by_ids=by_ids)).dataset


def read_expression(
    adata: AnnData, gene_kind: GeneKind | None = None
) -> tuple[Expression, list[str], list[str]]:
    """Return the genes that the window shows for an AnnData in memory.

    They are the genes of ``raw``. Without ``raw``, or if only ``raw`` holds counts and
    the embedded matrix has no value below 0, they are those of the embedded matrix: the
    space that ``uns`` notes as the input of a map, if it is ``X``, ``raw`` or a layer
    that is still there, else ``X``. Logarithms of another base become natural.

    ``gene_kind``: kind of the values as a person states it; None: guessed from the
    values.

    Returns
    -------
    Expression, names, ids
        (n_obs, G) expression, where G is 0 without genes, or if they are too large for
        the memory; (G,) unique names; (G,) Ensembl identifiers, "" for an unknown one.
        Without any identifier ``ids`` is an empty list.

    Raises DataError if the values are no numbers.
    """
    source = _Source(spaces.make_root_from_anndata(adata), "the AnnData", "The AnnData")
    root, noted = source.root, f"{_read_uns(source, KEY, 'input', 'space')}"
    has_genes = noted in ("X", spaces.RAW) or noted.startswith("layers")
    is_there = has_genes and noted in spaces.list_spaces_default_first(
        root, source.where
    )
    space = noted if is_there else ""
    values = spaces.get_space_item(root, space) if is_there else None
    names = _read_gene_names(source, spaces.get_space_var(root, space))
    profile, unique, _ = _choose_and_read_compared_genes(source, space, values, names)
    if profile is None:
        profile, unique = np.zeros((adata.n_obs, 0), np.float32), []
    ids = [source.gene_ids.get(one, "") for one in unique] if source.gene_ids else []
    # False for a map of a table.
    is_expression = _read_uns(source, KEY, "input", "has_expression")
    is_expression = True if is_expression is None else bool(is_expression)
    return Expression(profile, is_expression, gene_kind), list(unique), ids


def read_whole_anndata(path: Path) -> AnnData:
    """Read an .h5ad file or a .zarr folder completely; row names become texts.

    Of SpatialData the first table by name is read. Raises DataError if the file is
    damaged, or does not fit into memory.
    """
    with _open_cells_group(path) as (root, _):
        adata = _read_whole_root(root, path)
    adata.obs_names = adata.obs_names.astype(str)
    return adata


def has_array_tables(path: Path) -> bool:
    """Return whether the table ``obs`` of an .h5ad file is an array, as in anndata 0.6.

    Raises DataError if the file is damaged or has no ``obs``.
    """
    with wrap_read_errors(path, "an .h5ad file"), store.open_store(path) as file:
        return store.is_array(file["obs"])


def to_readable_root(root: Any, path: Path) -> Any:
    """Return an open root whose tables can be read by name.

    Where the tables are arrays, as in old files, the whole file is read into memory.
    """
    is_old = store.is_array(root["obs"])
    return (
        spaces.make_root_from_anndata(_read_whole_root(root, path)) if is_old else root
    )


def _read_whole_root(root: Any, path: Path) -> AnnData:
    """Read a root completely as an AnnData; a file older than anndata 0.8 by `path`.

    Raises DataError if it does not fit into memory, and ValueError if a sparse matrix
    points outside its arrays.
    """
    if "encoding-type" in root.attrs or path.is_dir():
        adata: AnnData = store.read_element(root, path.name, "its content")
        return adata
    from anndata import read_h5ad

    memory.check_fits(store.count_declared_bytes(root), path.name, "its content")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore warnings on the old format
        adata = read_h5ad(path)
    store.validate_sparse_parts(adata)
    return adata


@contextmanager
def _open_cells_group(path: Path) -> Iterator[tuple[Any, list[str]]]:
    """Open a file or folder and yield the group with ``obs`` and ``var``, and notes.

    Of SpatialData the group is the first table by name; a note names the other tables.
    Raises DataError for damage, or if there is no such group; any exception in the
    block becomes a DataError, too.
    """
    kind = "a .zarr folder" if path.is_dir() else f"an {path.suffix.lower()} file"
    with wrap_read_errors(path, kind), store.open_store(path) as file:
        root, notes = file, list[str]()
        if "obs" not in file and "tables" in file:  # SpatialData
            first, *others = tables = sorted(file["tables"])
            root = file["tables"][first]
            notes += [_FIRST_TABLE.format(list_text(tables), *others)] if others else []
        if "obs" not in root or "var" not in root:
            raise DataError(
                f"{path.name} is a file without cells (obs) and genes (var): write it "
                "with AnnData's write_h5ad or write_zarr, or open images in napari."
            )
        yield root, notes


def read_file_identity(path: Path, known: Identity) -> Identity:
    """Read the names and row hashes of a file as :func:`read_root_identity` does."""
    with _open_cells_group(path) as (opened, _):
        return read_root_identity(to_readable_root(opened, path), path.name, known)


def read_root_identity(root: Any, where: str, known: Identity) -> Identity:
    """Return the names of all rows of a root, and row hashes of some of its parts.

    Read are the distinguishing parts of `known` that the root has, the smallest first.
    Reading stops at the first part whose hashes equal the known ones; all of these
    parts are read if the row names do not match.
    """
    obs = store.read_element(root["obs"], where, "its table obs")
    names, hashes = obs.index.astype(str), dict[Part, NDArray[np.uint64]]()
    order = find_row_order(known.names, names)
    parts = {x: spaces.get_space_item(root, x) for x in spaces.find_all_spaces(root)}
    telling = {*known.distinguishing_parts}
    parts = {x: item for x, item in parts.items() if x in telling}
    for part in sorted(parts, key=lambda x: store.count_declared_bytes(parts[x])):
        values = store.read_element(parts[part], where, part)
        hashes |= (new := _hash_if_numeric(part, values))
        if order is not None and part in new:
            is_same = np.array_equal(known.row_hashes[part], new[part][order])
            if is_same:
                break
    return Identity(names, hashes)


# Building a dataset from the parts of a root


def _read_source(source: _Source, options: ReadOptions) -> Stages[ReadResult]:
    """Read and check the parts that are needed, and build the dataset from them.

    Maps and positions of ``obsm`` are added to ``obs``. The projection stored in
    ``uns`` is kept if it belongs to this space and all of its columns are embedded.
    """
    root, where = source.root, source.where
    space = spaces.choose_space(root, options.space, where)
    yield Stage("Reading the table of cells (obs)")
    obs = store.read_element(root["obs"], where, "its table obs")
    obs = obs.set_axis(obs.index.astype(str), axis="index")
    obs = obs.set_axis(make_names_unique(obs.columns), axis="columns")
    obs = pd.concat([obs, _read_coordinates(root, where, obs)], axis="columns")
    elements = find_elements_folder(source.path)
    tissue, tissue_notes = read_tissue(root, obs, where, options, elements)
    yield Stage("Reading the table of genes (var)")
    names = _read_gene_names(source, spaces.get_space_var(root, space))
    yield Stage(f"Reading {space}")
    values = _read_and_hash(source, spaces.get_space_item(root, space), space)
    columns = _list_space_column_names(space, names, values)
    second, second_X = options.second_space or "", None
    if second:
        second = spaces.choose_space(root, second, where)
        yield Stage(f"Reading {second}")
        second_X = _read_and_hash(source, spaces.get_space_item(root, second), second)
        second_X = to_numeric_matrix(second_X, second, where)
    yield Stage("Reading the genes")
    profile, genes, notes = _choose_and_read_compared_genes(
        source, space, values, names
    )
    yield Stage("Checking the numbers")
    X, are_pairs = to_numeric_matrix(values, space, where), is_pairwise_space(space)
    dataset = make_dataset_from_matrix(
        X,
        obs,
        list(map(str, obs.index)) if are_pairs else columns,
        space,
        where,
        options,
        name=source.name,
        source=source.path,
        notes=[*notes, *([DISTANCES_NOTE] if are_pairs else []), *tissue_notes],
        profile=X if profile is values else profile,
        profile_names=genes,
        has_expression=profile is not None,
        gene_ids=source.gene_ids,
        level_colors=_read_level_colors(obs, source),
        row_hashes=source.row_hashes,
        source_tissue=tissue,
        second_space=second,
        second_X=second_X,
    )
    all_notes = (*source.notes, *dataset.notes, *note_repeated_row_names(obs.index))
    stored, projection = _read_uns(source, KEY, "projection"), None
    has_all_columns = space.startswith("obsm") and options.columns is None
    if has_all_columns and stored is not None and str(stored.get("space")) == space:
        projection = Projection.from_storable(stored, where)
    dataset = replace(dataset, notes=all_notes, projection=projection)
    return ReadResult(dataset, spaces.list_spaces_default_first(root, where), columns)


def _read_coordinates(root: Any, where: str, obs: pd.DataFrame) -> pd.DataFrame:
    """Return the maps and positions in ``obsm`` as columns such as "X_umap 1".

    Columns of a table that are called y and x change places.  Maps of this program, and
    columns whose names ``obs`` has already, are left out.
    """
    coordinates: dict[str, Any] = {}
    for key in spaces.find_coordinate_keys(root):
        values = store.read_element(root["obsm"][key], where, f"its {key}")
        if isinstance(values, pd.DataFrame):
            names = [*map(str, values.columns)]
            rank_of = order_axes(names).index
            values = values.iloc[:, np.argsort([*map(rank_of, names)], kind="stable")]
        values = to_dense(values)
        coordinates |= {f"{key} {i + 1}": axis for i, axis in enumerate(values.T)}
    new = {name: axis for name, axis in coordinates.items() if name not in obs}
    return pd.DataFrame(new, index=obs.index)


def _list_space_column_names(space: str, names: pd.Index, values: Any) -> list[str]:
    """Return the names of all columns of a space; an empty list for a pairwise space.

    A DataFrame has its numeric columns; another entry of ``obsm`` numbered ones, such
    as "pca 1"; any other space the gene `names`, made unique.
    """
    if is_pairwise_space(space):
        return []
    if isinstance(values, pd.DataFrame):
        return list(map(str, values.select_dtypes("number").columns))
    element = spaces.split_space(space)
    if element is not None and element[0] == "obsm":
        label = element[1].removeprefix("X_")
        return [f"{label} {i + 1}" for i in range(values.shape[1])]
    return make_names_unique(names)


def _choose_and_read_compared_genes(
    source: _Source, space: str, values: Any, names: pd.Index
) -> _Genes:
    """Read the genes to compare clusters by, with their unique names and notes.

    As in scanpy these are the genes of ``raw``, which stay unscaled. Where only ``raw``
    holds counts, and the embedded layer or ``X`` has no value below 0, they are those
    of that layer or of ``X``. Logarithms of another base become natural. The matrix is
    None without genes, or if they are too large for the memory.

    ``space`` and ``values``: what is embedded, so that it is not read twice. ``names``:
    names of the genes of this space.
    """
    root, notes = source.root, []
    are_embedded = space in ("X", spaces.RAW) or space.startswith("layers")
    matrix = values if are_embedded else root["X"] if spaces.has_matrix(root) else None
    some = np.zeros(0) if matrix is None else store.read_first_values(matrix)
    is_number = some.dtype.kind in "buif"  # scaled genes have values below 0
    is_below_0 = is_number and np.fmin.reduce(some, axis=None, initial=0) < 0
    raw: Any = root.get("raw") if space != spaces.RAW else None
    raw = raw if spaces.has_matrix(raw) else None
    has_both = raw is not None and matrix is not None and not is_below_0
    if has_both and are_counts(store.read_first_values(raw["X"])) > are_counts(some):
        notes, raw = [RAW_HOLDS_COUNTS], None
    if raw is not None:
        names = _read_gene_names(source, raw["var"])
        profile = _read_unless_large(source, spaces.RAW, raw["X"])
        part, note = ".raw", f"Genes: {len(names):,} from .raw."
    elif matrix is not None:
        profile = values if are_embedded else _read_unless_large(source, "X", matrix)
        part = space if are_embedded else "X"
        note = (
            f"{part} has values below 0: fold changes of genes need unscaled values, "
            "which AnnData keeps in .raw."
        )
        note = note if is_below_0 else ""
    else:
        return None, (), notes
    if profile is None:
        return None, (), [*notes, _NOT_COMPARED.format(part)]
    unique, repeats = make_gene_names_unique(names)
    base = _read_uns(source, "log1p", "base")
    if to_natural_log(1.0, base) != 1 and guess_gene_kind(profile) == "logarithms":
        profile = to_natural_log(profile, base)
        notes = [*notes, f"Logarithms of base {base:g} are compared as ln(1 + x)."]
    notes = [note for note in (*notes, note, *repeats) if note]
    profile = profile if profile is values else to_float32(profile)
    return profile, unique, notes


def _read_gene_names(source: _Source, var: Any) -> pd.Index:
    """Return the gene names of a ``var`` table, and add Ensembl ids to the source.

    The names are the index if the source says ``by_ids``, else symbols where there are
    any. ``source.gene_ids`` gets "" for a name that stands for different genes.
    """
    table = store.read_element(var, source.where, "its table var")
    gene_ids = source.gene_ids
    names = (
        table.index.astype(str) if source.by_ids else choose_gene_display_names(table)
    )
    if (ids := find_ensembl_ids(table)) is not None:
        for name, one in zip(make_names_unique(names), ids, strict=True):
            # Raw and X name different genes alike.
            if gene_ids.setdefault(name, one) != one:
                gene_ids[name] = ""
    return names


def _read_unless_large(source: _Source, part: str, item: Any) -> Any:
    """Read a matrix of genes; return None if it is in a file and too large.

    Too large is more than half of the budget, a quarter of the free memory.
    """
    if (
        store.is_stored(item)
        and store.count_declared_bytes(item) > memory.find_byte_budget() // 2
    ):
        return None
    return _read_and_hash(source, item, part)


def _read_and_hash(source: _Source, item: Any, part: str) -> Any:
    """Read a matrix, and store its row hashes in the source under the name `part`.

    A matrix in memory that other code may change is copied.
    """
    values = store.read_element(item, source.where, part)
    source.row_hashes.update(_hash_if_numeric(part, values))
    return values.copy() if source.is_shared and values is item else values


def _hash_if_numeric(part: str, values: Any) -> RowHashes:
    """Return ``{part: row hashes}`` of a matrix; an empty dict if it is not numeric.

    Of a DataFrame the numeric columns are hashed.
    """
    if isinstance(values, pd.DataFrame):
        values = values.select_dtypes("number").to_numpy(np.float64, na_value=np.nan)
    is_matrix = values.ndim == 2 and values.dtype.kind in "buif"
    return {part: hash_rows(values)} if is_matrix else {}


def _read_uns(source: _Source, *keys: str) -> Any:
    """Return the entry of ``uns`` under nested keys; None if any key is missing."""
    item = spaces.find_uns_item(source.root, *keys)
    if item is None:
        return None
    return store.read_element(item, source.where, f"its {keys[-1]}")


def _read_level_colors(obs: pd.DataFrame, source: _Source) -> dict[str, dict[str, str]]:
    """Return the colours in the file for levels of ``obs``, by column and level.

    scanpy keeps the colours of "leiden" in ``uns`` under "leiden_colors". Columns with
    fewer colours than levels are left out.
    """
    all_colors = {}
    for name in obs.select_dtypes("category"):
        levels, colors = obs[name].cat.categories, _read_uns(source, f"{name}_colors")
        if np.ndim(colors) == 1 and len(colors) >= len(levels):
            pairs = zip(map(str, levels), map(str, colors), strict=False)
            all_colors[str(name)] = dict(pairs)
    return all_colors


def to_numeric_matrix(values: Any, space: str, where: str) -> Matrix:
    """Return the values of a space as a matrix, of a DataFrame its numeric columns.

    Raises DataError if the values are no numbers, or there are fewer than two rows or
    no column.
    """
    if isinstance(values, pd.DataFrame):
        values = values.select_dtypes("number")
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    check_shape(values.shape, f"{where} ({space})")
    if values.dtype.kind not in "buif":
        raise DataError(
            f"{where} ({space}) holds {values.dtype} values where numbers belong: "
            "choose another space."
        )
    return to_sufficient_precision(values)
