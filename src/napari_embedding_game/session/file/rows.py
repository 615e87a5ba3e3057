"""The data of a map as a session file stores them, and how they are read again.

The data stay in their own file.  The session file stores how this file was read, what
is needed to show the map without it, and numbers that are in no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data import samples
from napari_embedding_game.data.as_anndata import SAMPLES
from napari_embedding_game.data.column_names import Role
from napari_embedding_game.data.dataset import (
    ANNOTATION,
    SAMPLE,
    AddedColumns,
    Dataset,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import (
    does_h5ad_contain_source,
    find_components_key,
)
from napari_embedding_game.data.expression import GeneKind
from napari_embedding_game.data.formats.spaces import split_space
from napari_embedding_game.data.identity import describe_missing_row, find_row_order
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.loader import apply_recipe_or_mixing
from napari_embedding_game.data.network_paths import find_server
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.readers import can_read
from napari_embedding_game.data.reading_process import read_in_process
from napari_embedding_game.data.recipe import RecipeResult
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.tissue import Tissue
from napari_embedding_game.session.file.h5ad import read_h5ad_rows

MAX_X = 64_000_000
"""Most bytes of numbers that are stored because no file has them, or a recipe made
them."""
ROWS, FINGERPRINT = "rows", "fingerprint"
"""Keys of :attr:`Dataset.known`: the rows of a file, and the hash of their numbers."""
MAP_FIELDS = ("name", "space", "kept", "provenance", "left_out")
"""Fields of a dataset that the rows of every map have under the same name."""
SOURCE_FIELDS = (
    *("var_names", "gene_ids", "has_expression", "gene_kind"),
    *("level_colors", "roles", "quality"),
)
"""Fields of a dataset that are stored under the same name where no file has them."""
TOO_LARGE = "What {} is compared by is too large for a session file: load its data."


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredRows:
    """The n rows of a map, which are all or some of the rows of its source."""

    name: str
    space: str
    path: str = ""
    """The file or folder of the source; "" where the source is no file."""
    options: ReadOptions | None = None
    """How the source was read."""
    columns: tuple[str, ...] = ()
    """Columns of a table that were embedded by default: the default may change."""
    fingerprint: str
    """Hash of the numbers that were read."""
    provenance: Mapping[str, Any]
    names: tuple[str, ...]
    source_names: tuple[str, ...] | None = None
    """(n_source_rows,) names of all source rows, where some rows are left out and no
    other file has the names; "" for an unknown name."""
    kept: NDArray[np.bool_]
    """(n_source_rows,) whether each source row is on the map."""
    X: NDArray[np.floating] | None = None
    """(n, D) the numbers, where no file has them."""
    sparse_X: sp.csr_matrix | None = None
    """(n, D) the numbers, where they are sparse."""
    var_names: tuple[str, ...] = ()
    profile: NDArray[np.floating] | None = None
    """(n, G) the numbers in the units of the file, where they differ from X."""
    genes: sp.csr_matrix | None = None
    """(n, G) the profile, where it is sparse."""
    profile_names: tuple[str, ...] = ()
    gene_ids: Mapping[str, str] = field(default_factory=dict)
    has_expression: bool = False
    gene_kind: GeneKind | None = None
    obs: pd.DataFrame | None = None
    """(n rows) metadata, where no file has them."""
    source_obs: pd.DataFrame | None = None
    """(n_source_rows rows) metadata, where no file has them."""
    level_colors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Colours of levels, by column of the metadata."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    quality: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Notes and ``left_out`` are stored wherever the numbers are."""
    objects: Objects | None = None
    """(n_source_rows,) labels and boxes of all rows of the source."""
    tissue: Tissue | None = None
    """(n_source_rows,) positions of all rows of the source in tissue; the pictures of
    its sections only where no file has them."""
    added: Mapping[str, AddedColumns] | None = None
    """How columns were made in the program; None in a file of 0.3."""
    worked_out: pd.DataFrame
    """(n rows) the columns that were made in the program."""
    prepared: RecipeResult | None = None
    """Result of the recipe, so that it need not be done again."""

    @property
    def numbers(self) -> Any:
        """(n, D) the stored numbers, dense or sparse; None where a file has them."""
        return self.X if self.sparse_X is None else self.sparse_X

    @property
    def all_names(self) -> NDArray[Any]:
        """(n_source_rows,) names of all rows of the source; "" for an unknown name.

        Raises ValueError: the number of names is not the number of rows.
        """
        names = np.full(len(self.kept), "", dtype=object)
        names[:] = self.source_names or ""
        names[self.kept] = self.names
        return names


def with_names_of_all_maps(maps: list[StoredRows]) -> list[StoredRows]:
    """Return the rows of each map with the names of source rows known to any map.

    Maps with the same number of source rows share their names, so that all of them
    match a file that was sorted meanwhile in the same way.

    Raises ValueError: there are more or fewer names than rows.
    """
    known: dict[int, NDArray[Any]] = {}
    for one in maps:
        names = known.setdefault(len(one.kept), one.all_names)
        names[one.kept] = one.names
    every = {n: tuple(names) for n, names in known.items()}
    return [replace(one, source_names=every[len(one.kept)]) for one in maps]


def to_stored_rows(dataset: Dataset, *, for_h5ad: bool = False) -> StoredRows:
    """Convert a dataset to the rows that a session file stores.

    X and metadata are stored if no other file has them.  Of a dataset without columns
    in X the rows are returned from which it was made.  The first call reads all numbers
    for their fingerprint.

    ``for_h5ad``: whether the rows are stored inside the map's .h5ad file, which itself
    holds the numbers if the source is an AnnData or counts.
    """
    if not dataset.var_names:
        lost: StoredRows = dataset.known[ROWS]
        return lost
    source, stored = dataset.source, dict[str, Any]()
    is_stored = _must_store_values(dataset, for_h5ad)
    if is_stored:
        stored |= _collect_stored_fields(dataset, for_h5ad)
    elif dataset.space == f"columns of {dataset.name}":
        stored["columns"] = dataset.var_names
    if (for_h5ad or is_stored) and not dataset.kept.all():
        stored["source_names"] = tuple(map(str, dataset.source_obs_names))
    options, result = dataset.read_options, _collect_recipe_result(dataset)
    tissue = dataset.source_tissue
    if tissue is not None and not is_stored:
        tissue = replace(tissue, images={})
    if for_h5ad and (source is None or not does_h5ad_contain_source(source)):
        # The file has no counts, but what they came to.
        key = find_components_key(dataset)
        if key is not None:
            roles = (options or DEFAULT_OPTIONS).roles
            options, result = ReadOptions(space=f"obsm['{key}']", roles=roles), None
    same = {part: getattr(dataset, part) for part in MAP_FIELDS}
    return StoredRows(
        notes=dataset.notes,
        path="" if source is None else str(source.absolute()),
        options=options,
        fingerprint=hash_map_numbers(dataset),
        names=tuple(map(str, dataset.obs.index)),
        objects=dataset.source_objects,
        tissue=tissue,
        added=dict(dataset.added),
        worked_out=dataset.obs[dataset.added_columns],
        prepared=result,
        **same,
        **stored,
    )


def _must_store_values(dataset: Dataset, for_h5ad: bool) -> bool:
    """Return whether the file has to hold the numbers, to be read without another file.

    - Of a sample dataset: never.
    - In a session file: if there is no source, and X has at most ``MAX_X`` bytes.
    - In an .h5ad file: if X and profile are dense, and it does not hold the source.
    """
    source = dataset.source
    if SAMPLE in dataset.provenance:
        return False
    if not for_h5ad:
        return source is None and _is_small(dataset.X)
    shared = dataset.matrices
    dense = [isinstance(one, np.ndarray) for one in (shared.X, shared.profile)]
    return all(dense) and (source is None or not does_h5ad_contain_source(source))


def _collect_stored_fields(dataset: Dataset, for_h5ad: bool) -> dict[str, Any]:
    """Return the fields of stored rows that are otherwise read from the source.

    Columns that were added in the program are left out.  A profile that is too large is
    replaced by one without genes, and ``has_expression`` is then False.
    """
    obs, X = dataset.obs, dataset.X
    obs = obs.loc[:, ~obs.columns.isin(dataset.added_columns)]
    parts = {"obs": obs, **{part: getattr(dataset, part) for part in SOURCE_FIELDS}}
    parts["sparse_X" if sp.issparse(X) else "X"] = X
    if dataset.source_obs is not None:
        parts["source_obs"] = dataset.source_obs
    is_without_columns = dataset.is_distances and not dataset.profile_names
    if is_without_columns or not dataset.has_own_profile:
        return parts
    profile = dataset.profile
    if sp.issparse(profile) and _is_small(profile):
        parts["genes"] = sp.csr_matrix(profile)
    elif isinstance(profile, np.ndarray) and (for_h5ad or _is_small(profile)):
        parts["profile"] = profile
    else:
        none = np.zeros((len(obs), 0), np.float32)
        return {**parts, "profile": none, "has_expression": False}
    return {**parts, "profile_names": dataset.profile_names}


def _find_sample_loader(rows: StoredRows) -> Callable[[], Dataset] | None:
    """Return the function that loads the sample; None if the rows are no sample.

    Rows of version 0.3 are recognised by their name.

    Raises DataError: this version does not have the sample.
    """
    name = rows.provenance.get(SAMPLE)
    if name is None and rows.numbers is None and not rows.path:  # as in 0.3
        name = next((one for one in SAMPLES if one == rows.name.lower()), None)
    if name is not None and name not in SAMPLES:
        raise DataError(f"There is no sample {name!r} in this version: open the data.")
    sample: Callable[[], Dataset] | None = name and getattr(samples, name)
    return sample


def with_h5ad_as_source(rows: StoredRows, path: Path) -> StoredRows:
    """Return rows whose source is the .h5ad file that holds the session, at ``path``.

    If the options name no space, they get the space that the rows were read from,
    because the written file has another default.  Rows of a sample are returned
    unchanged.
    """
    if SAMPLE in rows.provenance:
        return rows
    options = rows.options or DEFAULT_OPTIONS
    if options.space is None:  # the file has another default since its map was made
        facts = rows.provenance.get("recipe") or rows.provenance.get("harmony") or {}
        options = replace(options, space=facts.get("space", rows.space))
    return replace(rows, path=str(path.absolute()), options=options)


def to_dataset(rows: StoredRows) -> Dataset:
    """Convert stored rows to a dataset, without numbers where these are in a file.

    Its notes say if numbers or genes are missing.  The rows are kept in its ``known``.

    Raises ValueError: the parts do not fit together.
    """
    names, reason, X = pd.Index(rows.names, dtype=object), "", rows.numbers
    if X is None:
        reason = (
            f"The data of {rows.name} are not loaded: open the session again when the "
            "file is in its place, or load the data anew."
        )
    obs, result = pd.DataFrame(index=names), rows.prepared
    if rows.obs is not None and rows.obs.shape[1]:
        obs = rows.obs.set_index(names)
    source_names = rows.all_names
    source_obs = rows.source_obs
    if source_obs is not None:
        source_obs = source_obs.set_axis(source_names)
    profile = rows.profile if rows.genes is None else rows.genes
    if X is not None and profile is not None and not profile.shape[1]:
        reason = TOO_LARGE.format(rows.name)
    dataset = Dataset.from_matrices(
        X=np.zeros((len(names), 0), np.float32) if X is None else X,
        obs=obs,
        source=None,
        read_options=None if rows.path else rows.options,
        profile=profile,
        source_obs=source_obs,
        source_obs_names=pd.Index(source_names),
        notes=tuple(dict.fromkeys(filter(None, (*rows.notes, reason)))),
        missing_reason=reason if X is None else "",
        projection=result.projection if result and X is not None else None,
        source_objects=rows.objects,
        source_tissue=rows.tissue,
        profile_names=rows.profile_names,
        **{part: getattr(rows, part) for part in (*MAP_FIELDS, *SOURCE_FIELDS)},
    )
    table, usual = rows.worked_out, AddedColumns(kind="map")
    by_name = {name: replace(usual, columns=(name,)) for name in map(str, table)}
    added = by_name if rows.added is None else rows.added
    added = {name: _infer_kind(name, one) for name, one in added.items()}
    dataset = dataset.restore_added_columns(table, added)
    dataset.known[ROWS] = rows
    return dataset


def _infer_kind(name: str, record: AddedColumns) -> AddedColumns:
    """Return the record of stored columns with its kind.

    Older files store "map" for the annotation of the parent map, and tell it by the
    name of its column.
    """
    has_name = re.fullmatch(rf"{ANNOTATION}( \d+)?", name) is not None
    is_of_parent = record.kind == "map" and has_name
    return replace(record, kind="parent") if is_of_parent else record


def hash_map_numbers(dataset: Dataset) -> str:
    """Return a hash of a dataset's numbers, whatever the order within sparse rows.

    Of a sparse profile only the positions of nonzero values are hashed, as their
    logarithms are rounded differently on other machines.  The hash is computed once.
    """
    if FINGERPRINT not in dataset.known:
        dataset.known[FINGERPRINT] = _hash_numbers(dataset, sorts=True)
    return str(dataset.known[FINGERPRINT])


def _hash_numbers(dataset: Dataset, *, sorts: bool) -> str:
    """Return the hash of X and profile; of a sparse profile only of its structure.

    ``sorts``: whether the indices of sparse rows are sorted before; up to version 0.3
    they were not.
    """
    X, digest = dataset.X, blake2b(digest_size=16)
    parts = []
    for matrix in [X, dataset.profile] if dataset.has_own_profile else [X]:
        if sp.issparse(matrix):
            is_right = not sorts or matrix.has_sorted_indices
            ordered = matrix if is_right else matrix.sorted_indices()  # a copy
            parts += [ordered.data] if matrix is X else []
            parts += [ordered.indices, ordered.indptr]
        else:
            parts.append(matrix)
    for part in parts:
        digest.update(repr(part.shape).encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def read_saved_data(
    dataset: Dataset, folder: Path, known_results: dict[Any, list[ReadResult]]
) -> Stages[ReadResult]:
    """Read the data of a saved map again in stages, with the options of that time.

    If no read options fit the stored numbers, other default spaces are tried.  Rows
    that were sorted meanwhile are put back in order by their names.  The result has the
    map's own rows, columns, objects and notes.

    ``dataset``: without numbers, as :func:`to_dataset` makes it. ``folder``: where a
    file of the same name is searched, too. ``known_results``: results by path and
    options, which are reused and added to, so that no file is read twice.

    Raises DataError: the source is missing, or its numbers have changed.
    """
    rows: StoredRows = dataset.known[ROWS]
    sample, found, why = _find_sample_loader(rows), None, ""
    if sample is not None:
        yield Stage("Opening the sample")
        whole = sample().with_roles_and_gene_kind(rows.options or DEFAULT_OPTIONS)
        found = _select_saved_rows(ReadResult(whole), rows)
    else:
        path = _find_source_path(rows, folder)
        for options in _list_possible_options(rows):
            results = known_results.setdefault((path, options), [])
            found = next(
                filter(None, (_select_saved_rows(x, rows) for x in results)), None
            )
            # A recipe may have come to other last digits at another time.
            if found is None and (rows.prepared is not None or not results):
                result = yield from read_in_process(path, read_h5ad_rows, options)
                result = _restore_row_order(result, rows)
                result = yield from apply_recipe_or_mixing(
                    result, options, find_recipe_result(rows, ())
                )
                results.append(result)
                found = _select_saved_rows(result, rows)
                present = result.dataset.source_obs_names
                why = _describe_changed_rows(rows, present)
            if found is not None:
                break
    if found is None:
        raise DataError(
            f"{rows.path or rows.name} gives other numbers than when the session was "
            f"saved{why}: put the former file back to play on, or load it anew if "
            "another version read it. The map is shown as it was saved."
        )
    match = found.dataset
    mark = hash_map_numbers(match)
    # A file with the components of counts does not say how they were computed.
    provenance = {**rows.provenance, **match.provenance}
    objects = match.source_objects
    if rows.objects is not None:
        objects, provenance["linked"] = rows.objects, rows.provenance.get("linked", {})
    match = replace(match, space=rows.space, provenance=provenance)
    is_alike = {*rows.left_out} == {*match.left_out}  # which is in the present order
    left_out = match.left_out if is_alike else rows.left_out or match.left_out
    notes = tuple(dict.fromkeys((*rows.notes, *match.notes)))
    match = replace(match, left_out=left_out, source_objects=objects, notes=notes)
    match = match.with_added_columns_of(dataset)
    match.known[FINGERPRINT] = mark
    return replace(found, dataset=match)


def _describe_changed_rows(rows: StoredRows, present: pd.Index) -> str:
    """Return in brackets how the rows of a source have changed: number or names.

    ``present``: names of the rows now. "" if neither has changed.
    """
    n_rows, names = len(rows.kept), pd.Index(rows.names)
    if len(present) != n_rows:
        return f" (it now has {len(present):,} rows instead of {n_rows:,})"
    if find_row_order(names, present) is None and (
        text := describe_missing_row(names, present)
    ):
        return f" ({text})"
    return ""


def _restore_row_order(result: ReadResult, rows: StoredRows) -> ReadResult:
    """Return a reading with its rows in the saved order, matched by their names.

    A reading whose rows cannot be matched is returned as it is.
    """
    dataset, saved = result.dataset, rows.all_names
    names, named = dataset.source_obs_names, rows.kept | (saved != "")
    saved, n = pd.Index(saved[named]), len(named)
    if len(names) != n or names[named].equals(saved):
        return result
    if (indices := find_row_order(saved, names)) is None:
        return result
    order = np.full(n, -1)
    order[named] = indices
    order[order < 0] = np.setdiff1d(np.arange(n), indices)  # without a name
    return replace(result, dataset=dataset.reorder_source_rows(order))


def _list_possible_options(rows: StoredRows) -> list[ReadOptions]:
    """Return the read options to try, the stored ones first.

    Where neither space, columns, recipe nor batches were chosen, a second entry names
    the stored columns or space, as the default may have been another one.
    """
    options = rows.options or DEFAULT_OPTIONS
    chosen = options.space, options.columns, options.recipe, options.batch_key
    if options.transposed or any(chosen):
        return [options]
    named = [replace(options, columns=rows.columns)] if rows.columns else []
    if rows.space == "X" or split_space(rows.space):
        named = [replace(options, space=rows.space)]
    return [options, *named]


def _select_saved_rows(result: ReadResult, rows: StoredRows) -> ReadResult | None:
    """Return a reading with the rows of the map only, in the saved order.

    None if rows are missing, or if the numbers differ from the stored fingerprint,
    which may also be one of version 0.3.
    """
    result = _restore_row_order(result, rows)
    dataset = result.dataset
    if len(dataset.kept) != len(rows.kept) or not dataset.kept[rows.kept].all():
        return None
    if not rows.kept[dataset.kept].all():
        dataset = dataset.subset(rows.kept[dataset.kept])
    same = rows.fingerprint
    is_same = same == hash_map_numbers(dataset) or same == _hash_numbers(
        dataset, sorts=False
    )
    return replace(result, dataset=dataset) if is_same else None


def _find_source_path(rows: StoredRows, folder: Path) -> Path:
    """Return the path of the source, or of a file of its name in a folder.

    A source on another computer is not looked for, only a copy in the folder.

    Raises DataError: there is none, or the source was no file.
    """
    if not rows.path:
        raise DataError(
            f"{rows.name} was no file, so it cannot be read again: the map is shown as "
            "it was saved; load the data to play on."
        )
    path, elsewhere = Path(rows.path), PureWindowsPath(rows.path)
    server = find_server(rows.path)
    is_foreign = server not in ("", find_server(folder.absolute()))
    beside = folder / path.name, folder / elsewhere.name
    for one in beside if is_foreign else (path, *beside):
        if one.exists() and can_read(one):
            return one
    if is_foreign:
        raise DataError(
            f"The data file {path} is on another computer ({server}), which is not "
            "asked because a session file says so: put a copy beside the session file. "
            "The map is shown as it was saved."
        )
    raise DataError(
        f"The data file {path} is missing: put it back, or beside the session file. "
        "The map is shown as it was saved."
    )


def _collect_recipe_result(dataset: Dataset) -> RecipeResult | None:
    """Return the result of a dataset's recipe or Harmony to be stored.

    None where there is none, where the recipe was of more rows than the dataset has, or
    where the components have more than ``MAX_X`` bytes.
    """
    recipe, mixed = (dataset.provenance.get(key) for key in ("recipe", "harmony"))
    is_ready = mixed is not None if recipe is None else dataset.projection is not None
    is_whole = recipe is None or recipe.get("cells_used") == len(dataset.obs)
    if not (is_ready and is_whole and _is_small(dataset.X)):
        return None
    projection, scores = dataset.projection, dataset.quality.get("doublet_score")
    X = dataset.X.astype("<f4")
    return RecipeResult(dataset.kept, X, None if recipe is None else projection, scores)


def find_recipe_result(
    rows: StoredRows, others: Iterable[StoredRows]
) -> RecipeResult | None:
    """Return the recipe's result for a map, stored with this map or with a larger one.

    ``rows``: of the map. ``others``: rows of the other maps. None where no map of the
    same source and options has a result with all rows of the map.
    """
    source = rows.path, rows.options, len(rows.kept)
    stored = (
        one.prepared
        for one in (rows, *others)
        if (one.path, one.options, len(one.kept)) == source
    )
    return next((one for one in stored if one and one.kept[rows.kept].all()), None)


def _is_small(values: Any) -> bool:
    """Return whether values take 1 to ``MAX_X`` bytes as float32, twice if sparse."""
    n = 2 * values.nnz if sp.issparse(values) else values.size
    return bool(0 < n * 4 <= MAX_X)
