"""Dataset: the matrix to embed, its row names and metadata."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.expression import Expression
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.predicted import PREDICTED, PredictedLabels
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.read_options import ReadOptions

Matrix: TypeAlias = Any  # float32 ndarray or scipy CSR matrix (scipy has no types)
# (X is of float64 where float32 takes away what tells rows apart)

Examples: TypeAlias = Mapping[str, tuple[int, ...]]
"""Rows of the source by the class that they are examples of."""
CONFIDENCE = "_confidence"
"""Ends the name of the column with the probability of a class that was taught."""

MISSING_VALUES = "missing or infinite values"
NOT_ON_THE_MAP = "not among the rows of this map"
"""Why rows were left out, where nothing else is said."""
_OF_PAIRS = re.compile(r"^(tables\[.*\] )?obsp\[")
_HASH_BLOCK = 1 << 20  # bytes read at a time


@dataclass(frozen=True, eq=False)
class Dataset:
    """Usable rows of one source; n of its ``n_source_rows`` rows.

    Made by the readers, which have checked it: ``X`` is finite, has at least
    two rows, and its rows are not all the same.

    Columns come and go by the methods alone.  These put another frame and other
    mappings in the place of the former ones, which stay as they are: whether anything
    has changed is seen by the identity of ``obs``, and any thread may read it.
    """

    name: str
    """Short name of the source, as a person calls it."""
    X: Matrix
    """(n, D) ndarray or CSR matrix, as :func:`validation.as_rows` makes it: what is
    embedded; where ``is_distances`` (n, n), from each row to its neighbours."""
    obs: pd.DataFrame
    """(n rows) metadata of the usable rows; the index holds their names."""
    var_names: tuple[str, ...]
    """(D,) names of the columns of ``X``."""
    space: str
    """Where ``X`` comes from, such as ``obsm['X_pca']``."""
    source: Path | None
    """File that was read; None for a sample or a layer."""
    n_source_rows: int
    """Rows of the source, left-out ones included."""
    kept: NDArray[np.bool_]
    """(n_source_rows,) True where a row of the source is a row of ``X``."""
    source_obs_names: pd.Index
    """(n_source_rows,) names of all rows of the source."""
    read_options: ReadOptions | None = None
    """How ``source`` was read; None where it was no file."""
    notes: tuple[str, ...] = ()
    """Sentences: what was left out or changed, and why."""
    images: NDArray[Any] | None = None
    """(n, h, w) or (n, h, w, 3) picture of each row, uint8 or float 0 to 1."""
    texts: Sequence[str] | None = None
    """(n,) text of each row."""
    profile: Matrix = None
    """(n, G) numbers to compare clusters by, in their own units; ``X`` if not given.

    Raw counts stay raw counts here: see :attr:`expression`.

    May hold NaN, as it is not embedded.
    """
    profile_names: tuple[str, ...] = ()
    """(G,) names of the columns of ``profile``."""
    has_expression: bool = False
    """Whether ``profile`` is expression: counts of genes, or what was made of them."""
    source_obs: pd.DataFrame | None = None
    """(n_source_rows rows) metadata of all rows, where it is at hand."""
    source_objects: Objects | None = None
    """(n_source_rows,) labels and boxes of all rows, if they are objects."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What was done to the source, such as the recipe with every number of it."""
    projection: Projection | None = None
    """The way from genes to ``X``, where these are principal components and it is
    known."""
    scores: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Genes of the sets that were scored since, by their column of ``obs``."""
    worked_out: frozenset[str] = frozenset()
    """Columns of ``obs`` that were worked out of a map since."""
    taught: dict[str, Examples] = field(default_factory=dict)
    """Examples of the classes that were taught since, by their column of ``obs``."""
    predicted: dict[str, PredictedLabels] = field(default_factory=dict)
    """Labels that were predicted since from a reference, by their column of ``obs``."""
    quality: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """(n_source_rows,) figures of all cells of the source by which some were left out,
    by scanpy's name of their column."""
    left_out: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """(n_source_rows,) rows that were left out, by why."""
    level_colors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Colours that the file has for levels of columns of ``obs``."""
    missing_reason: str = ""
    """Where ``X`` has no columns: a sentence that says why, and the way out."""
    known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """What was worked out of ``X`` and the source, which never change; of frozen copies
    as well."""

    def __post_init__(self) -> None:
        if self.profile is None:
            has_columns = not self.is_distances
            profile = self.X if has_columns else np.zeros((len(self.obs), 0), "f4")
            names = self.var_names if has_columns else ()
            object.__setattr__(self, "profile", profile)
            object.__setattr__(self, "profile_names", names)
        self._check_lengths()

    @cached_property
    def expression(self) -> Expression:
        """The ``profile`` as its columns are compared: raw counts as logarithms."""
        return Expression(self.profile, self.has_expression)

    @property
    def word(self) -> Literal["gene", "measure", "column"]:
        """What a column of the ``profile`` is called."""
        if self.source_objects is not None:
            return "measure"
        return "gene" if self.has_expression else "column"

    @property
    def is_distances(self) -> bool:
        """Whether ``X`` holds distances between rows, such as ``obsp['distances']``."""
        return is_of_pairs(self.space)

    @property
    def objects(self) -> Objects | None:
        """(n,) label and bounding box of each row; None if rows are no objects."""
        if self.source_objects is None or self.kept.all():
            return self.source_objects
        return self.source_objects.take(self.kept)

    def named_space(self, space: str) -> Dataset:
        """Return the same under another name of its space."""
        return self if space == self.space else replace(self, space=space)

    def subset(
        self, rows: NDArray[np.bool_], *notes: str, why: str = NOT_ON_THE_MAP
    ) -> Dataset:
        """Return the dataset of the rows where `rows` (n,) is True.

        The rows of the source stay what they are, so that what is found out about
        a part can be given back to the whole.

        Parameters
        ----------
        rows : (n,) bool
        *notes : str
            Sentences on it.
        why : str
            Why the others are left out, in a few words.
        """
        kept = self.kept.copy()
        kept[self.kept] = rows
        others = self.kept & ~kept
        former = self.left_out.get(why)
        left_out = {why: others if former is None else others | former}
        images = self.images
        texts: Any = None
        if self.texts is not None:
            texts = np.asarray(self.texts, dtype=object)[rows]
        whole = self.profile is self.X
        X, names = self.X[rows], self.var_names
        if self.is_distances:
            X, names = X[:, rows], tuple(np.asarray(names, dtype=object)[rows])
        return replace(
            self,
            X=X,
            var_names=names,
            profile=X if whole else self.profile[rows],
            obs=self.obs[rows],
            kept=kept,
            notes=(*self.notes, *notes),
            left_out={**self.left_out, **(left_out if others.any() else {})},
            images=None if images is None else images[rows],
            texts=texts,
            predicted={k: one.take(rows) for k, one in self.predicted.items()},
        )

    def frozen(self) -> Dataset:
        """Return the dataset as it is now, for other threads; nothing large is copied.

        Columns that come later are not in it.
        """
        return copy(self)

    def add_score(
        self, name: str, values: NDArray[np.floating], genes: Sequence[str]
    ) -> str:
        """Add the score of a gene set to ``obs``; return the name of its column.

        Parameters
        ----------
        name : str
            A number is added where there is such a column.
        values : array, shape (n,)
        genes : sequence of str
        """
        name = self._free(name, (), ("",))
        self._take_up({name: values}, scores={**self.scores, name: tuple(genes)})
        return name

    def add_column(self, name: str, values: NDArray[np.floating]) -> str:
        """Add to ``obs`` what was worked out of a map, or replace it; return its name.

        Parameters
        ----------
        name : str
            A column of the file that has this name stays: a number is added.
        values : array, shape (n,)
        """
        name = self._free(name, self.worked_out, ("",))
        self._take_up({name: values}, worked_out=self.worked_out | {name})
        return name

    def add_taught(
        self,
        name: str,
        classes: pd.Categorical,
        confidence: NDArray[np.floating],
        examples: Examples,
    ) -> str:
        """Add taught classes to ``obs``, or replace them; return the column's name.

        Parameters
        ----------
        name : str
            A column of the file that has this name stays: a number is added.
        classes : Categorical of n rows
        confidence : array, shape (n,)
            Of the class; goes into a column whose name ends in "_confidence".
        examples : Examples
        """
        name = self._free(name, self.taught, ("", CONFIDENCE))
        self._take_up(
            {name: classes, name + CONFIDENCE: confidence},
            taught={**self.taught, name: dict(examples)},
        )
        return name

    def add_predicted(self, predicted: PredictedLabels) -> str:
        """Add predicted labels to ``obs``; return the name of their column.

        It is ``<label>_predicted``; confidence, likeness and distance are beside it.
        Those that were predicted before from the same column are replaced; a column of
        the file that has such a name stays: a number is added.

        Parameters
        ----------
        predicted : PredictedLabels
            Of the n rows.
        """
        wanted = predicted.label.replace("/", "_") + PREDICTED  # as .h5ad needs it
        name = self._free(wanted, self.predicted, predicted.columns)
        former = self.predicted.get(name, predicted)
        self._take_up(
            {name + ending: values for ending, values in predicted.columns.items()},
            gone=[name + ending for ending in former.columns],
            predicted={**self.predicted, name: predicted},
        )
        return name

    def _free(self, wanted: str, own: Container[str], endings: Iterable[str]) -> str:
        """Return a name of which no column of the file has any of the endings."""
        name, number = wanted, 1
        while name not in own and not {name + end for end in endings}.isdisjoint(
            self.obs.columns
        ):
            number += 1
            name = f"{wanted} {number}"
        return name

    def _take_up(
        self, columns: Mapping[str, Any], gone: Iterable[str] = (), **records: Any
    ) -> None:
        """Put a frame with these columns, the last ones, in the place of ``obs``."""
        obs = self.obs.copy(deep=False)
        for name in {*gone, *columns}.intersection(obs.columns):
            del obs[name]
        # Rows may be some of a larger table, of which pandas warns where one is set.
        for name, values in columns.items():
            obs.insert(obs.shape[1], name, values)
        for name, value in {"obs": obs, **records}.items():
            object.__setattr__(self, name, value)

    def _check_lengths(self) -> None:
        n, n_columns = self.X.shape
        lengths = {
            "obs": (len(self.obs), n),
            "var_names": (len(self.var_names), n_columns),
            "kept": (len(self.kept), self.n_source_rows),
            "rows kept": (int(np.count_nonzero(self.kept)), n),
            "source_obs_names": (len(self.source_obs_names), self.n_source_rows),
            "images": (_length(self.images, n), n),
            "texts": (_length(self.texts, n), n),
            "profile": (self.profile.shape[0], n),
            "source_objects": (
                _length(self.source_objects, self.n_source_rows),
                self.n_source_rows,
            ),
            "profile_names": (len(self.profile_names), self.profile.shape[1]),
        }
        for part, (length, expected) in lengths.items():
            if length != expected:
                raise ValueError(f"{part} has length {length}, expected {expected}")

    @classmethod
    def from_rows(
        cls,
        *,
        name: str,
        X: Matrix,
        obs: pd.DataFrame,
        var_names: Sequence[object],
        space: str,
        kept: NDArray[np.bool_] | None = None,
        source: Path | None = None,
        notes: Sequence[str] = (),
        images: NDArray[Any] | None = None,
        texts: Sequence[str] | None = None,
        profile: Matrix | None = None,
        profile_names: Sequence[object] = (),
        has_expression: bool = False,
        objects: Objects | None = None,
        provenance: Mapping[str, Any] | None = None,
        left_out: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> Dataset:
        """Build a dataset from *all* rows of a source, keeping those of `kept`.

        Every array given has one row for each row of the source.  Rows that are not
        kept have missing values, unless `left_out` says otherwise.
        """
        all_kept = kept is None or bool(kept.all())
        mask = np.ones(len(obs), dtype=bool) if kept is None else kept

        def usable(rows: Any) -> Any:
            return rows if rows is None or all_kept else rows[mask]

        names = tuple(map(str, var_names))
        of_usable = usable(X)
        if is_of_pairs(space) and not all_kept:
            of_usable = of_usable[:, mask]
            names = tuple(np.asarray(names, dtype=object)[mask])
        texts_array = None if texts is None else np.asarray(texts, dtype=object)
        return cls(
            name=name,
            X=of_usable,
            obs=usable(obs),
            var_names=names,
            space=space,
            source=source,
            n_source_rows=len(obs),
            kept=mask,
            source_obs_names=obs.index,
            notes=tuple(notes),
            images=usable(images),
            texts=usable(texts_array),
            profile=usable(profile),
            profile_names=tuple(map(str, profile_names)),
            has_expression=has_expression,
            source_obs=obs,
            source_objects=objects,
            provenance=provenance or {},
            left_out={MISSING_VALUES: ~mask} if left_out is None else left_out,
        )

    def why_left_out(self) -> pd.Categorical:
        """(n_source_rows,) why each row is not on the map; missing where it is."""
        why = np.full(self.n_source_rows, None, dtype=object)
        why[~self.kept] = NOT_ON_THE_MAP
        for words, rows in self.left_out.items():
            why[rows & ~self.kept] = words
        return pd.Categorical(why)

    def expand(self, values: Any, fill: Any) -> NDArray[Any]:
        """Values of the n usable rows laid out over all rows of the source.

        Parameters
        ----------
        values : array, shape (n, ...)
        fill : scalar
            What a left-out row receives, such as NaN or "unassigned".

        Returns
        -------
        array, shape (n_source_rows, ...)
            Of a type that holds both `values` and `fill`.
        """
        values = np.asarray(values)
        dtype = np.promote_types(values.dtype, np.min_scalar_type(fill))
        full = np.full((self.n_source_rows, *values.shape[1:]), fill, dtype=dtype)
        full[self.kept] = values
        return full

    def sha256(self) -> str:
        """SHA-256 (hexadecimal) of the source, or of ``X`` without a file.

        Of a folder it is that of its files' names and contents, in order of names.
        """
        if self.source is not None:
            return source_sha256(self.source)
        digest = hashlib.sha256()
        for part in _arrays(self.X):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


def is_of_pairs(space: str) -> bool:
    """Return whether a space has a value for each pair of rows, and not for a row."""
    return _OF_PAIRS.match(space) is not None


def source_sha256(path: Path) -> str:
    """SHA-256 (hexadecimal) of a file, or of the names and contents in a folder."""
    return _folder_sha256(path) if path.is_dir() else _file_sha256(path)


def _length(part: Any, expected: int) -> int:
    return expected if part is None else len(part)


def _arrays(X: Matrix) -> tuple[NDArray[Any], ...]:
    return (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)


def _file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _folder_sha256(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(_file_sha256(path).encode())
    return digest.hexdigest()
