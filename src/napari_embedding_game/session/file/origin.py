"""Record where a dataset came from, and read it again from there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data import samples
from napari_embedding_game.data.as_anndata import SAMPLES
from napari_embedding_game.data.dataset import Dataset, source_sha256
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.table_files import read_frame
from napari_embedding_game.data.formats.tables import NO_OBJECT, KnownRows
from napari_embedding_game.data.loading import load_with_choices
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.readers import can_read, is_table
from napari_embedding_game.data.reading_process import read_apart
from napari_embedding_game.data.recipe import Prepared
from napari_embedding_game.data.stages import Stage, Stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The source of a dataset, and the fingerprints of the source and of X."""

    name: str
    """What a person calls it."""
    space: str
    """As ``Dataset.space``."""
    path: str = ""
    """The file or folder; "" where there is none."""
    sha256: str
    """Of the file; of X where there is no file; "" where it could not be read."""
    x_sha256: str
    n_source_rows: int
    n_columns: int
    options: ReadOptions | None = None
    """How the file was read; None where there is none."""
    background: tuple[int, ...] = ()
    """Rows of the source about no object of its labels; none were standardised with."""
    columns: tuple[str, ...] = ()
    """Names of the columns of X, where they are few."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """As ``Dataset.provenance``: the recipe with its numbers."""


_KNOWN = "origin"
"""Where :attr:`Dataset.known` has it."""
_MOST_COLUMNS = 1000

_Stamp = tuple[tuple[str, int, int], ...]
_HASHES: dict[Path, tuple[_Stamp, str]] = {}
"""By source: names, sizes and times of its files, and its SHA-256."""


def origin_of(dataset: Dataset, *, reads_source: bool = True) -> Origin:
    """Return the origin; the first time this reads the whole source file.

    A source that is out of reach costs no more than its SHA-256, which is then
    looked for again the next time.

    Parameters
    ----------
    reads_source : bool
        Whether the file may be read for its SHA-256, which takes minutes for a large
        one.  Data without are known again by the SHA-256 of their numbers.
    """
    known: Origin = dataset.known.get(_KNOWN) or _without_hash(dataset)
    if not known.sha256:
        source = dataset.source
        if source is None:
            digest = dataset.sha256()
        else:
            digest = _hash_of(source.absolute(), reads=reads_source)
        known = replace(known, sha256=digest)
    dataset.known[_KNOWN] = known
    return known


def _without_hash(dataset: Dataset) -> Origin:
    names = dataset.var_names
    return Origin(
        name=dataset.name,
        space=dataset.space,
        path="" if dataset.source is None else str(dataset.source.absolute()),
        sha256="",
        x_sha256=fingerprint(dataset.X),
        n_source_rows=dataset.n_source_rows,
        n_columns=dataset.X.shape[1],
        options=dataset.read_options,
        background=_background(dataset),
        columns=names if len(names) <= _MOST_COLUMNS else (),
        provenance=dict(dataset.provenance),
    )


def _hash_of(source: Path, *, reads: bool) -> str:
    """Return the SHA-256 as it was when the source could be read last, or ""."""
    if not reads:
        return _HASHES.get(source, ((), ""))[1]
    known = _HASHES.get(source, ((), ""))
    try:
        stamp = _stamp(source)
        if stamp != known[0]:
            known = _HASHES[source] = stamp, source_sha256(source)
    except OSError:
        return known[1]
    return known[1]


def _stamp(source: Path) -> _Stamp:
    """Return name, size and time of each file; reading them again tells no more."""
    files = sorted(source.rglob("*")) if source.is_dir() else [source]
    stats = [(str(path), path.stat()) for path in files]
    return tuple((name, at.st_size, at.st_mtime_ns) for name, at in stats)


def fingerprint(X: Any) -> str:
    """Return the SHA-256 of a matrix: its shape and all its numbers."""
    digest = hashlib.sha256(repr(tuple(map(int, X.shape))).encode())
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


PREPARED = "prepared"
"""Where :attr:`Dataset.known` has what a session file knows its recipe to come to."""


def _background(dataset: Dataset) -> tuple[int, ...]:
    rows = dataset.left_out.get(NO_OBJECT)
    return () if rows is None else tuple(map(int, np.flatnonzero(rows)))


def reload(
    origin: Origin,
    kept: NDArray[np.bool_],
    beside: Path,
    made: Prepared | None = None,
) -> Stages[ReadResult]:
    """Read data again in stages, as they were read, and check that they are the same.

    Parameters
    ----------
    kept : (n_source_rows,) bool
        Rows that were on the map.
    beside : Path
        Folder in which a file of the same name is looked for, too.
    made : Prepared, optional
        What its recipe came to, which is then not worked out again.

    Raises
    ------
    DataError
        The source is missing, has changed, or is read in another way now.
    """
    result = yield from _read(origin, beside, made)
    whole = result.dataset
    if whole.n_source_rows == len(kept) and whole.kept[kept].all():
        rows = kept[whole.kept]
        dataset = whole if rows.all() else whole.subset(rows)
        if fingerprint(dataset.X) == origin.x_sha256:
            dataset = dataset.named_space(origin.space)
            dataset.known[_KNOWN] = origin
            return replace(result, dataset=dataset)
    raise DataError(
        f"{origin.name} gives other numbers for {origin.space} now than when the "
        "session was saved: the map is shown as it was; load the data to play anew."
    )


def _read(origin: Origin, beside: Path, made: Prepared | None) -> Stages[ReadResult]:
    if not origin.path and origin.name.lower() in SAMPLES:
        yield Stage("Opening the sample")
        return ReadResult(getattr(samples, origin.name.lower())(), [], [])
    if not origin.path:
        raise DataError(
            f"{origin.name} was no file, so it cannot be read again: the map is shown "
            "as it was saved; load the data to play on."
        )
    path, rows = _find(origin, beside), None
    options = origin.options or ReadOptions()
    if is_table(path) and (options.id_column or origin.background):
        frame = yield from read_apart(path, read_frame)
        left_out = np.isin(np.arange(len(frame)), origin.background)
        rows = KnownRows(frame, options.id_column, left_out)
    return (yield from load_with_choices(path, options, rows=rows, made=made))


def _find(origin: Origin, beside: Path) -> Path:
    path = Path(origin.path)
    for candidate in (path, beside / path.name):
        if candidate.exists() and can_read(candidate):
            return _unchanged(origin, candidate)
    raise DataError(
        f"The data file {path} is missing: put it back, or beside the session file. "
        "The map is shown as it was saved."
    )


def _unchanged(origin: Origin, path: Path) -> Path:
    try:
        is_same = not origin.sha256 or source_sha256(path) == origin.sha256
    except OSError as error:
        raise DataError(
            f"The data file {path} cannot be read ({error.strerror or error}): put "
            "it back. The map is shown as it was saved."
        ) from error
    if not is_same:
        raise DataError(
            f"The data file {path} has changed since the session was saved: put the "
            "former one back to play on. The map is shown as it was saved."
        )
    return path
