"""Dataset: the matrix to embed, its row names and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.column_names import TEXT, Role, is_cell_type_name
from napari_embedding_game.data.expression import Expression, GeneKind, check_gene_kind
from napari_embedding_game.data.gene_names import FoundNames, find_names
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.roles import (
    LEVELS,
    convert_columns_by_role,
    find_track_roles,
    guess_role_unconverted,
)
from napari_embedding_game.data.row_matrices import Matrix, RowMatrices, take_rows
from napari_embedding_game.data.tissue import Tissue

Examples: TypeAlias = Mapping[str, tuple[int, ...]]
"""Source rows by the class that they are examples of."""
CONFIDENCE = "_confidence"
"""Suffix of the name of a column with the probability of a taught class."""
Kind: TypeAlias = Literal["score", "map", "parent", "change", "taught", "predicted"]
"""How columns were made: scored by genes, computed on a map, as the annotation of the
parent map, as changes of shares on a map, learned from examples, or predicted from a
reference."""

ANNOTATION = "annotation"
"""Column of a child map with the annotation of its rows in the parent."""
UNASSIGNED = "unassigned"
"""Level of rows that are in no cluster, as they are not on the map; no cluster of the
map may have this name."""
SAMPLE = "sample"
"""Key of the provenance: which sample data set the rows are."""
CYTOMETRY = "cytometry"
"""Key of the provenance: the scale of a cytometer's channels, whose rows are events."""
MISSING_VALUES = "missing or infinite values"
NOT_ON_THE_MAP = "not among the rows of this map"
"""Default reason for rows that were left out."""


@dataclass(frozen=True, kw_only=True)
class AddedColumns:
    """Columns added to ``obs`` since it was read, and how they were made."""

    kind: Kind
    columns: tuple[str, ...] = ()
    """Names of the columns: the name of the first column, and this name with
    suffixes."""
    genes: tuple[str, ...] = ()
    """Genes of the set that was scored."""
    examples: Examples = field(default_factory=dict)
    """Examples that were learned from."""
    reference: str = ""
    """File of the reference, whose column ``label`` was predicted."""
    label: str = ""
    """Column of the reference that was predicted; of changes, what was compared."""
    correct_batch: bool = False
    """Whether a batch effect was removed first."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Usable rows of one source: n of its :attr:`n_source_rows` rows.

    Made by the readers, which have checked the numbers: ``X`` is finite, has at least
    two rows, and its rows are not all the same.

    A dataset never changes, so any thread may read it: a method that adds columns
    returns another dataset, and :meth:`differs_only_in_columns` compares the two.
    """

    name: str
    """Short name of the source, as a person calls it."""
    matrices: RowMatrices
    """Matrices of N rows that were read, which the maps of these rows share; see
    :attr:`X`, :attr:`profile` and :attr:`second_X`."""
    obs: pd.DataFrame
    """(n rows) metadata of the usable rows; the index holds the row names."""
    var_names: tuple[str, ...]
    """(D,) names of the columns of ``X``; () where the numbers are missing."""
    space: str
    """Origin of ``X``, such as ``obsm['X_pca']``."""
    source: Path | None
    """File that was read; None for a sample or a layer."""
    kept: NDArray[np.bool_]
    """(n_source_rows,) True where a source row is a row of ``X``."""
    source_obs_names: pd.Index
    """(n_source_rows,) names of all source rows."""
    matrix_rows: NDArray[np.integer] | None = None
    """(n,) row of ``matrices`` of each row; None where these are the same rows."""
    read_options: ReadOptions | None = None
    """Options by which ``source`` was read; None where it is no file."""
    notes: tuple[str, ...] = ()
    """Sentences on what was left out or changed, and why."""
    images: NDArray[Any] | None = None
    """(n, h, w) or (n, h, w, 3) picture of each row, uint8 or float 0 to 1."""
    profile_names: tuple[str, ...] = ()
    """(G,) names of the columns of ``profile``."""
    gene_ids: Mapping[str, str] = field(default_factory=dict)
    """Ensembl identifiers keyed by the names of genes."""
    has_expression: bool = False
    """Whether ``profile`` is expression: counts of genes, or values computed from
    counts."""
    gene_kind: GeneKind | None = None
    """Kind of the profile's values as a person states it; None: guessed from the
    values."""
    source_obs: pd.DataFrame | None = None
    """(n_source_rows rows) metadata of all source rows, where it is at hand."""
    source_objects: Objects | None = None
    """(n_source_rows,) labels and boxes of all source rows, if these are objects."""
    source_tissue: Tissue | None = None
    """(n_source_rows,) positions of all source rows in tissue, if the source has any.
    """
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What was done to the source, such as the recipe with all of its numbers."""
    projection: Projection | None = None
    """Projection from genes to ``X``, where ``X`` are principal components and the
    projection is known."""
    added: Mapping[str, AddedColumns] = field(default_factory=dict)
    """Columns added since reading, keyed by the first column's name in ``obs``."""
    quality: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """(n_source_rows,) quality measures of all source cells, by which some were left
    out, keyed by scanpy's name of the column."""
    left_out: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """(n_source_rows,) masks of the rows that were left out, keyed by the reason."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Role of each column of ``obs``, decided when the column was read or made."""
    level_colors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Colours that the file has for levels of columns of ``obs``, by column and
    level."""
    row_hashes: Mapping[Any, NDArray[np.uint64]] = field(default_factory=dict)
    """(n_source_rows,) hashes of the raw numbers of all source rows, by parts as in
    :mod:`~.identity`; empty where no file was read."""
    second_space: str = ""
    """Name of the space that was read beside ``X``; "" for none."""
    missing_reason: str = ""
    """Sentence on why ``X`` has no columns, and the remedy; "" where it has columns."""
    known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """Cache of values computed from ``X`` and the source; one dict for all datasets
    that differ in added columns alone."""

    def __post_init__(self) -> None:
        """Decide the roles. Raises ValueError if lengths do not fit."""
        self._check_lengths()
        object.__setattr__(self, "roles", _decide_roles(self.obs, self.roles))

    @property
    def X(self) -> Matrix:
        """(n, D) ndarray or CSR matrix to embed.

        Its precision is that of :func:`~.validation.to_sufficient_precision`. Where
        ``is_distances`` it is (n, n), from each row to its neighbours.

        Of a child map the rows are taken at each call: keep the matrix as long as it is
        needed, and no longer.
        """
        return take_rows(
            self.matrices.X, self.matrix_rows, is_pairwise=self.is_distances
        )

    @property
    def profile(self) -> Matrix:
        """(n, G) numbers to compare clusters by, in their own units; taken as ``X`` is.

        Raw counts stay raw counts here: see :attr:`expression`. May hold NaN, as it is
        not embedded.
        """
        return take_rows(self.matrices.profile, self.matrix_rows)

    @property
    def second_X(self) -> Matrix:
        """(n, E) numbers of the second space, NaN where missing; taken as ``X`` is.

        None without a second space.
        """
        return take_rows(self.matrices.second_X, self.matrix_rows)

    @property
    def has_own_profile(self) -> bool:
        """Whether the profile is another matrix than ``X``."""
        return self.matrices.profile is not self.matrices.X

    @cached_property
    def expression(self) -> Expression:
        """Values by which columns of the ``profile`` are compared: counts as log1p."""
        known = self.has_expression, self.gene_kind, self.matrix_rows
        return Expression(self.matrices.profile, *known)

    def find_profile_columns(self, wanted: Sequence[str]) -> FoundNames:
        """Find columns of the ``profile`` by name, else genes by Ensembl identifier."""
        gene_ids, names = self.gene_ids, self.profile_names
        ids = [gene_ids.get(name, "") for name in names] if gene_ids else []
        return find_names(wanted, names, data_ids=ids)

    @property
    def level_columns(self) -> list[str]:
        """Names of the ``obs`` columns whose levels group the rows."""
        return self.find_columns_of_roles(*LEVELS)

    def find_columns_of_roles(self, *roles: Role) -> list[str]:
        """Return the ``obs`` columns that have any of the roles, in the table's order.

        Columns of a repeated name are excluded.
        """
        names = map(str, self.obs.columns[~self.obs.columns.duplicated(keep=False)])
        return [name for name in names if self.roles[name] in roles]

    def sort_samples_first(self, columns: Iterable[str]) -> list[str]:
        """Sort columns of ``obs``: columns of samples first, of cell types last."""
        roles = self.roles
        return sorted(
            columns, key=lambda x: (is_cell_type_name(x), roles[x] != "samples")
        )

    @property
    def n_source_rows(self) -> int:
        """Number of rows of the source, including the rows left out."""
        return len(self.kept)

    @cached_property
    def texts(self) -> list[str] | None:
        """(n,) texts of the first column called "text", "word" or such.

        A missing text is ""; None without such a column.
        """
        for name, column in self.obs.items():
            if TEXT.match(str(name)):
                return ["" if pd.isna(value) else str(value) for value in column]
        return None

    @property
    def column_noun(self) -> Literal["gene", "measure", "column"]:
        """Noun for a column of the ``profile``."""
        if self.source_objects is not None:
            return "measure"
        return "gene" if self.has_expression else "column"

    @property
    def value_suffix(self) -> str:
        """Suffix of a ``profile`` column's name where ``obs`` has the same name."""
        return f" ({self.column_noun})"

    @property
    def has_measures(self) -> bool:
        """Whether columns of the ``profile`` are neither genes nor single pixels."""
        is_dense = isinstance(self.matrices.profile, np.ndarray)
        return is_dense and not self.has_expression and self.images is None

    @property
    def row_noun(self) -> Literal["object", "cell", "event", "point"]:
        """Noun for a row on the map."""
        if self.source_objects is not None:
            return "object"
        if CYTOMETRY in self.provenance:
            return "event"
        return "cell" if self.has_expression else "point"

    @property
    def source_row_noun(self) -> str:
        """Noun for a row of the source, before there is a map."""
        return "row" if self.row_noun == "point" else self.row_noun

    @property
    def is_distances(self) -> bool:
        """Whether ``X`` holds distances between rows, as ``obsp['distances']``."""
        return is_pairwise_space(self.space)

    @cached_property
    def objects(self) -> Objects | None:
        """Labels and bounding boxes of the n rows; None if the rows are no objects."""
        if self.source_objects is None or self.kept.all():
            return self.source_objects
        return self.source_objects.take(self.kept)

    @cached_property
    def tissue(self) -> Tissue | None:
        """Positions of the n rows in tissue; None if the source has no positions."""
        if self.source_tissue is None or self.kept.all():
            return self.source_tissue
        return self.source_tissue.take(self.kept)

    def subset(
        self, row_mask: NDArray[np.bool_], reason: str = NOT_ON_THE_MAP
    ) -> Dataset:
        """Return the dataset of the rows where the mask `row_mask` (n,) is True.

        The matrices are shared with this dataset. The source rows stay the same, so
        that values of the subset can be expanded to all source rows. The other rows are
        recorded as left out, for this `reason`, besides any rows that were left out for
        the same reason before.
        """
        kept = self.expand_to_source_rows(row_mask, False)
        removed, left_out = self.kept & ~kept, dict(self.left_out)
        rows = self.matrix_rows
        if removed.any():
            left_out[reason] = removed | left_out.get(reason, False)
            indices = np.flatnonzero(row_mask).astype(np.int32)
            rows = indices if rows is None else rows[indices]
        return replace(
            self,
            **self._take_row_fields(row_mask),
            matrix_rows=rows,
            kept=kept,
            left_out=left_out,
        )

    def reorder_source_rows(self, order: NDArray[np.integer]) -> Dataset:
        """Return the dataset with its source rows in another order.

        ``order``: (n_source_rows,) present index of each row in the new order. The
        usable rows follow it.
        """
        rows = (np.cumsum(self.kept) - 1)[order[self.kept[order]]]
        objects, tissue = self.source_objects, self.source_tissue
        return replace(
            self,
            **self._take_row_fields(rows),
            matrix_rows=rows if self.matrix_rows is None else self.matrix_rows[rows],
            kept=self.kept[order],
            source_obs_names=self.source_obs_names[order],
            source_obs=None if self.source_obs is None else self.source_obs.iloc[order],
            source_objects=None if objects is None else objects.take(order),
            source_tissue=None if tissue is None else tissue.take(order),
            quality={name: one[order] for name, one in self.quality.items()},
            left_out={why: one[order] for why, one in self.left_out.items()},
            row_hashes={
                part: hashes[order] if len(hashes) == len(order) else hashes
                for part, hashes in self.row_hashes.items()
            },
        ).with_own_matrices()

    def _take_row_fields(self, rows: NDArray[Any]) -> dict[str, Any]:
        """Return the fields with a value for each usable row, taken at `rows`.

        `rows` are indices or a mask. Of distances the names of columns are taken, too.
        """
        names = self.var_names
        if self.is_distances:
            names = tuple(np.asarray(names, dtype=object)[rows])
        return {
            "var_names": names,
            "obs": self.obs.iloc[rows],
            "images": None if self.images is None else self.images[rows],
        }

    def with_own_matrices(self) -> Dataset:
        """Return the dataset with matrices that have only its own rows.

        The cache of computed values is shared with this dataset.
        """
        if self.matrix_rows is None:
            return self
        own = self.matrices.take(self.matrix_rows, is_pairwise=self.is_distances)
        dataset = self._replace_and_share_cache(matrices=own, matrix_rows=None)
        vars(dataset).pop("expression", None)  # of the former matrices
        return dataset

    def _replace_and_share_cache(self, **fields: Any) -> Dataset:
        """Return the dataset with other fields, and with the same ``known`` object.

        Cached properties are kept, too, so the fields must not change them.
        """
        dataset = copy(self)
        vars(dataset).update(fields)
        return dataset

    def is_of_same_reading(self, other: Dataset) -> bool:
        """Return whether two datasets were read at once, the same rows or others.

        Subsets and datasets with more columns have the ``provenance`` object of the
        dataset that they were made from; each reading makes a new one.
        """
        return self.provenance is other.provenance

    def with_matrices(self, **fields: Any) -> Dataset:
        """Return the dataset with other matrices, and other fields that belong to them.

        ``**fields``: ``X``, ``profile`` and ``second_X``, each with a row for each row
        of this dataset, and any fields of the dataset.
        """
        own, names = self.with_own_matrices().matrices, ("X", "profile", "second_X")
        new = {name: fields.pop(name) for name in names if name in fields}
        return replace(self, matrices=replace(own, **new), matrix_rows=None, **fields)

    def differs_only_in_columns(self, other: Dataset | None) -> bool:
        """Return whether two datasets differ at most in added columns of ``obs``.

        That is, whether they share the cache ``known``; False for None.
        """
        return other is not None and self.known is other.known

    def with_columns(
        self,
        base_name: str,
        columns_by_suffix: Mapping[str, Any],
        record: AddedColumns,
        *,
        replaces: bool = True,
    ) -> tuple[Dataset, str]:
        """Return the dataset with more columns of ``obs``, and the first column's name.

        ``base_name``: the wanted name of the first column. ``columns_by_suffix``:
        values (n,) keyed by the suffix of the column's name. ``record``: how the
        columns were made. ``replaces``: whether added columns of the same kind and
        first name are overwritten.

        Otherwise the name gets a number if any of the names is taken, so that columns
        of the file stay. The cache of computed values is shared with this dataset.
        """
        replaced = self.added_of_kind(record.kind) if replaces else {}
        name, number = base_name, 1

        def list_columns_to_overwrite() -> set[str]:
            return set(replaced[name].columns) if name in replaced else set()

        while (
            {name + ending for ending in columns_by_suffix}
            - list_columns_to_overwrite()
        ) & set(self.obs.columns):
            number += 1
            name = f"{base_name} {number}"
        new = {name + ending: values for ending, values in columns_by_suffix.items()}
        obs = self.obs.drop(columns=[*list_columns_to_overwrite()], errors="ignore")
        # insert avoids the warning of pandas on setting a column of a slice.
        for one, values in new.items():
            obs.insert(obs.shape[1], one, values)
        added = {**self.added, name: replace(record, columns=tuple(new))}
        roles = _decide_roles(obs, self.roles)
        return self._replace_and_share_cache(obs=obs, added=added, roles=roles), name

    def with_roles_and_gene_kind(self, options: ReadOptions) -> Dataset:
        """Return the dataset with the column roles and the gene kind of the options.

        The columns of the file are converted to their roles; added columns stay.
        Without either option, or without ``source_obs``, the dataset itself is
        returned. Raises DataError if a column with the role of numbers holds a text, or
        stated counts are negative.
        """
        chosen_roles, kind = options.roles, options.gene_kind
        if (not chosen_roles and kind is None) or self.source_obs is None:
            return self
        check_gene_kind(self.matrices.profile, kind, self.name)
        source_obs, roles = convert_columns_by_role(
            self.source_obs, {**self.roles, **chosen_roles}, self.name
        )
        how = replace(
            self.read_options or ReadOptions(), roles=chosen_roles, gene_kind=kind
        )
        parts = {"obs": source_obs[self.kept], "source_obs": source_obs, "roles": roles}
        dataset = replace(self, **parts, gene_kind=kind, read_options=how, added={})
        return dataset.restore_added_columns(self.obs, self.added)

    def with_added_columns_of(self, other: Dataset) -> Dataset:
        """Return this dataset with the columns added to `other`, which has equal rows.

        Columns of this dataset that have these names are dropped.
        """
        obs = self.obs.drop(columns=other.added_columns, errors="ignore")
        return replace(self, obs=obs).restore_added_columns(other.obs, other.added)

    def restore_added_columns(
        self, table: pd.DataFrame, added: Mapping[str, AddedColumns]
    ) -> Dataset:
        """Return the dataset with columns that were added to it in an earlier session.

        ``table`` (n rows): the columns. ``added``: how they were made, as in
        :attr:`added`. A column of the file with the same name stays, and the added one
        gets a number.
        """
        dataset = self
        for name, how in added.items():
            columns = {x.removeprefix(name): table[x].array for x in how.columns}
            dataset, _ = dataset.with_columns(name, columns, how)
        return dataset

    def with_map_column(self, name: str, values: Any) -> tuple[Dataset, str]:
        """Add a column (n,) that was computed on a map; see :meth:`with_columns`."""
        return self.with_columns(name, {"": values}, AddedColumns(kind="map"))

    def added_of_kind(self, kind: Kind) -> dict[str, AddedColumns]:
        """Return the added columns of one kind, keyed by the first column's name."""
        return {name: one for name, one in self.added.items() if one.kind == kind}

    @property
    def added_columns(self) -> list[str]:
        """Names of the columns of ``obs`` that were added since it was read."""
        return [column for one in self.added.values() for column in one.columns]

    def _check_lengths(self) -> None:
        """Raise ValueError if a field does not have a value for each row or column.

        Fields that are None are not checked.
        """
        matrices, n_all = self.matrices, self.n_source_rows
        rows = self.matrix_rows
        n = matrices.X.shape[0] if rows is None else len(rows)
        lengths = {"obs": n, "images": n, "source_obs_names": n_all}
        lengths |= {"source_objects": n_all, "source_tissue": n_all}
        is_part_of_square = self.is_distances and rows is not None
        lengths["var_names"] = n if is_part_of_square else matrices.X.shape[1]
        lengths["profile_names"] = matrices.profile.shape[1]
        parts = {one: getattr(self, one) for one in lengths}
        measured = {k: (len(v), lengths[k]) for k, v in parts.items() if v is not None}
        measured["profile"] = matrices.profile.shape[0], matrices.X.shape[0]
        measured["rows kept"] = int(np.count_nonzero(self.kept)), n
        for part, (length, expected) in measured.items():
            if length != expected:
                raise ValueError(f"{part} has length {length}, expected {expected}")

    @classmethod
    def from_matrices(
        cls,
        *,
        X: Matrix,
        profile: Matrix = None,
        second_X: Matrix = None,
        **fields: Any,
    ) -> Dataset:
        """Build a dataset of the n rows of some matrices.

        ``X``, ``profile``, ``second_X``: see the properties. Without a profile ``X`` is
        compared, or nothing if ``X`` are distances. ``**fields``: further fields.
        """
        if profile is None:
            is_pairwise = is_pairwise_space(fields["space"])
            profile = np.zeros((X.shape[0], 0), np.float32) if is_pairwise else X
            fields["profile_names"] = () if is_pairwise else fields["var_names"]
        return cls(matrices=RowMatrices(X, profile, second_X), **fields)

    @classmethod
    def from_rows(
        cls,
        *,
        obs: pd.DataFrame,
        kept: NDArray[np.bool_] | None = None,
        left_out: Mapping[str, NDArray[np.bool_]] | None = None,
        **parts: Any,
    ) -> Dataset:
        """Build a dataset from *all* rows of a source, using the rows of `kept`.

        ``kept``: (N,) mask; None for all rows. ``**parts``: matrices as for
        :meth:`from_matrices` and further fields, each array with one row for each of
        the N source rows. Rows that are not kept are recorded as having missing values,
        unless `left_out` gives the reasons.
        """
        parts = {k: tuple(map(str, v)) if "names" in k else v for k, v in parts.items()}
        parts = {"source": None, "source_obs_names": obs.index, **parts}
        parts = {
            "obs": obs,
            "source_obs": obs,
            "kept": np.ones(len(obs), bool),
            **parts,
        }
        dataset = cls.from_matrices(**parts)
        if kept is not None and not kept.all():
            dataset = dataset.subset(kept, reason=MISSING_VALUES).with_own_matrices()
        return dataset if left_out is None else replace(dataset, left_out=left_out)

    def explain_left_out(self) -> pd.Categorical:
        """Return the reason why each source row was left out, missing for kept rows.

        The result is (n_source_rows,), with the reasons as categories. If several
        reasons have a row, the last counts; a row without a reason is "not among the
        rows of this map".
        """
        why = np.full(self.n_source_rows, None, dtype=object)
        why[~self.kept] = NOT_ON_THE_MAP
        for words, rows in self.left_out.items():
            why[rows & ~self.kept] = words
        return pd.Categorical(why)

    def expand_to_source_rows(self, values: Any, fill: Any = None) -> Any:
        """Expand values of the n usable rows (n, ...) to all source rows.

        Returns (n_source_rows, ...). A left-out row receives

        - "unassigned" among levels, and no entry in a sparse matrix, whatever `fill`
          says,
        - else `fill`, by default -1 among whole numbers and NaN among others.
        """
        rows = np.where(self.kept, np.cumsum(self.kept) - 1, -1)
        if sp.issparse(values):
            ones = sp.eye_array(self.n_source_rows, dtype=np.float32, format="csr")
            return values if self.kept.all() else ones[:, self.kept] @ values
        if isinstance(values, pd.Categorical):
            if not self.kept.all() and UNASSIGNED not in values.categories:
                values = values.add_categories(UNASSIGNED)
            fill = UNASSIGNED if (rows < 0).any() else None
        else:
            values = np.asarray(values)
            usual = -1 if values.dtype.kind in "iu" else np.nan
            fill = usual if fill is None else fill
        return pd.api.extensions.take(values, rows, allow_fill=True, fill_value=fill)


def _decide_roles(
    obs: pd.DataFrame, known_roles: Mapping[str, Role]
) -> dict[str, Role]:
    """Return the role of each column of ``obs``: the known role, or a guess."""
    present = {str(x): known_roles[str(x)] for x in obs if str(x) in known_roles}
    known = {**find_track_roles(obs, present), **present}
    return {
        str(name): known.get(str(name)) or guess_role_unconverted(obs.iloc[:, at])
        for at, name in enumerate(obs.columns)
    }


def is_pairwise_space(space: str) -> bool:
    """Return whether a space has a value for each pair of rows, as ``obsp`` has."""
    return space.startswith("obsp[")
