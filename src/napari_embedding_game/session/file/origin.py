"""Record where a dataset came from, and read it again from there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data import samples
from napari_embedding_game.data.dataset import Dataset, source_sha256
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.table_files import read_frame
from napari_embedding_game.data.formats.tables import TRANSPOSED, KnownRows
from napari_embedding_game.data.loading import load_with_choices
from napari_embedding_game.data.quality_control import CellQuality
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.readers import can_read, is_table, spaces
from napari_embedding_game.data.reading_process import read_apart
from napari_embedding_game.data.recipe import Prepared, Recipe
from napari_embedding_game.data.stages import Stage, Stages

SAMPLES = ("digits", "pbmc", "mnist")


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


@dataclass(frozen=True)
class Reading:
    """How data were read again, and what else could come of them."""

    path: Path
    options: Mapping[str, Any]
    """As for :func:`load_with_choices`."""
    spaces: Sequence[str]
    columns: Sequence[str]
    quality: CellQuality | None


PREPARED = "prepared"
"""Where it has what a session file knows its recipe to come to."""
READING = "reading"
"""Where :attr:`Dataset.known` has the :class:`Reading`."""


def reload(
    origin: Origin,
    kept: NDArray[np.bool_],
    beside: Path,
    made: Prepared | None = None,
) -> Stages[Dataset]:
    """Read a dataset again in stages, and check that it is the same.

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
    path: Path | None = None
    if origin.path:
        path = _find(origin, beside)
        attempts = yield from _readings(origin, path, kept, made)
    elif origin.name.lower() in SAMPLES:
        attempts = [_sample(origin.name.lower())]
    else:
        raise DataError(
            f"{origin.name} was no file, so it cannot be read again: the map is shown "
            "as it was saved; load the data to play on."
        )
    for attempt in attempts:
        read, options = yield from attempt
        dataset = read.dataset
        if dataset.n_source_rows == len(kept) and dataset.kept[kept].all():
            part = dataset
            if not np.array_equal(dataset.kept, kept):
                part = dataset.subset(kept[dataset.kept])
            if fingerprint(part.X) == origin.x_sha256:
                part = part.named_space(origin.space)
                part.known[_KNOWN] = origin
                if path is not None and "rows" not in options:
                    part.known[READING] = Reading(
                        path, options, read.spaces, read.columns, read.quality
                    )
                return part
    raise DataError(
        f"{origin.name} gives other numbers for {origin.space} now than when the "
        "session was saved: the map is shown as it was; load the data to play anew."
    )


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


_Attempt: TypeAlias = Stages[tuple[ReadResult, Mapping[str, Any]]]


def _sample(name: str) -> _Attempt:
    yield Stage("Opening the sample")
    return ReadResult(getattr(samples, name)(), [], []), {}


def _readings(
    origin: Origin, path: Path, kept: NDArray[np.bool_], prepared: Prepared | None
) -> Stages[list[_Attempt]]:
    """Return the ways in which the file may have been read, the likeliest first."""
    recipe, batches = _recipe(origin), _batches(origin)
    space = origin.space
    if recipe is not None or batches is not None:
        space = (recipe or batches or ("", ""))[1]
    known = yield from read_apart(path, spaces)
    options: list[dict[str, Any]] = []
    if space in known:
        options.append({"space": space})
    if origin.columns and recipe is None:
        options.append({"columns": origin.columns, "space": _in(space, known)})
    options += [{}, {"duplicates": "drop"}]
    if origin.provenance.get(TRANSPOSED):
        options = [{**one, "transposed": True} for one in options]
    if is_table(path) and not kept.all():
        # Rows about the background were not standardised with.
        frame = yield from read_apart(path, read_frame)
        rows = KnownRows(frame, left_out=~kept)
        options += [{**one, "rows": rows} for one in options]
    made: dict[str, Any] = {
        "recipe": None if recipe is None else recipe[0],
        "batch_key": None if batches is None else batches[0],
    }
    return [_reading(path, prepared, {**made, **one}) for one in options]


def _reading(path: Path, made: Prepared | None, options: Mapping[str, Any]) -> _Attempt:
    result = yield from load_with_choices(path, missing="drop", made=made, **options)
    return result, options


def _in(space: str, known: list[str]) -> str | None:
    return space if space in known else None


def _batches(origin: Origin) -> tuple[str, str] | None:
    """Return the column whose levels Harmony has mixed, and the space it was in."""
    noted = origin.provenance.get("harmony")
    if not isinstance(noted, Mapping):
        return None
    return str(noted.get("batch_key")), str(noted.get("space"))


def _recipe(origin: Origin) -> tuple[Recipe, str] | None:
    noted = origin.provenance.get("recipe")
    if not isinstance(noted, Mapping):
        return None
    numbers = {f.name: noted[f.name] for f in fields(Recipe) if f.name in noted}
    key = numbers.pop("batch_key", None)
    is_number = [isinstance(number, int | float) for number in numbers.values()]
    if not all(is_number) or not isinstance(key, str | None):
        raise DataError("The recipe in this session file is damaged.")
    return Recipe(**numbers, batch_key=key), str(noted.get("space"))
