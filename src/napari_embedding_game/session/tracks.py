"""Tracks: objects that are several rows of a table, one at each of their times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import count_text, holds_integers
from napari_embedding_game.data.dataset import AddedColumns, Dataset
from napari_embedding_game.data.errors import DataError

TRACK_ID = "track_id"
"""Name of the column that a Tracks layer fills."""
ARROW = " → "
"""Stands between the clusters of a sequence."""
NO_TRACKS = (
    "These data have no tracks: open a Tracks layer of the measured movie, or choose "
    "the columns of tracks and times in Data > Columns."
)
_CACHE = "tracks"


@dataclass(frozen=True, eq=False)
class Tracks:
    """The tracks of n rows; a row with a track and a time is a moment of that track."""

    ids: tuple[str, ...]
    """(T,) id of each track as text, after its movie where there are several."""
    track_of_row: NDArray[np.intp]
    """(n,) index of each row's track; -1 for a row that is no moment."""
    times: NDArray[np.float64]
    """(n,) time of each row; may be NaN."""
    order: NDArray[np.intp]
    """(m,) all moments, by track, then time, then row."""
    previous: NDArray[np.intp]
    """(n,) the row of the track's moment before; -1 for first moments and other rows.
    After a split two rows have the same former moment."""
    positions: NDArray[np.float64] | None = None
    """(n, d) position of each row in its image; None where unknown."""
    distance_unit: str = ""
    time_unit: str = ""
    """What positions and times are counted in, for people."""
    time_column: str = ""
    """Column of the times."""
    movie_columns: tuple[str, ...] = ()
    """Columns that tell movies apart whose tracks have the same ids."""
    n_without_time: int = 0
    """Number of rows that have a track, but no time."""

    @cached_property
    def track_begins(self) -> NDArray[np.intp]:
        """(T + 1,) index of each track's first moment in ``order``, and the end."""
        tracks = self.track_of_row[self.order]
        return np.searchsorted(tracks, np.arange(len(self.ids) + 1))

    def find_tracks_of_rows(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        """Return the tracks, ascending, with moments among rows: indices or a mask."""
        found = np.unique(self.track_of_row[rows])
        return found[found >= 0]

    def find_moments_of_tracks(self, tracks: Iterable[int]) -> NDArray[np.intp]:
        """Return the moments of tracks, one track after the other, each by time."""
        parts = [
            self.order[self.track_begins[i] : self.track_begins[i + 1]] for i in tracks
        ]
        return np.concatenate([np.empty(0, np.intp), *parts])

    def find_whole_track(self, rows: NDArray[np.integer]) -> str:
        """Return the id of the track whose moments are these rows; "" if none is."""
        found = self.find_tracks_of_rows(rows).tolist()
        if len(found) != 1 or len(self.find_moments_of_tracks(found)) != len(rows):
            return ""
        return str(self.ids[found[0]])

    def compute_speeds(self) -> NDArray[np.float64]:
        """Return the distance from the former moment by the time since then, (n,).

        NaN for first moments, other rows, and without positions.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            elapsed = self.times - self.times[self.previous]
            return self._measure_distances(self.previous) / elapsed

    def compute_displacements(self) -> NDArray[np.float64]:
        """Return the distance of each row from the first moment of its track, (n,).

        NaN for first moments, other rows, and without positions.
        """
        every = np.arange(len(self.previous))
        first = np.where(self.previous < 0, every, self.previous)
        while not np.array_equal(first, first[first]):
            first = first[first]
        return self._measure_distances(np.where(first == every, -1, first))

    def _measure_distances(self, others: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the distance of row i from row ``others[i]``, (n,); NaN for -1."""
        if self.positions is None:
            return np.full(len(others), np.nan)
        steps = np.linalg.norm(self.positions - self.positions[others], axis=1)
        return np.where(others < 0, np.nan, steps)

    def summarise_classes(self, classes: pd.Categorical) -> pd.DataFrame:
        """Return a table with a row for each track, which sums up its moments' classes.

        The index is the number of the track.  Columns: "track", "moments" (their
        number), "from" and "to" (times), "majority" (the most frequent class, of
        several the one that comes first), "first", "last", and "sequence" of the
        classes, repeated ones once.  Moments without a class do not count.

        ``classes`` (n,): the class of each row.
        """
        codes = classes.codes[self.order]
        rows = pd.DataFrame({"track": self.track_of_row[self.order], "class": codes})
        rows["time"] = self.times[self.order]
        table = rows.groupby("track")["time"].agg(["size", "first", "last"])
        table.columns = pd.Index(["moments", "from", "to"])
        table.insert(0, "track", np.array(self.ids, dtype=object)[table.index])
        known = rows[rows["class"] >= 0].reset_index()
        counts = known.groupby(["track", "class"])["index"].agg(["size", "min"])
        counts = counts.reset_index().sort_values(
            ["track", "size", "min"], ascending=[True, False, True]
        )
        by_track = known.groupby("track")["class"]
        found = {
            "majority": counts.groupby("track")["class"].first(),
            "first": by_track.first(),
            "last": by_track.last(),
        }
        for name, one in found.items():
            at = one.reindex(table.index).fillna(-1).to_numpy(int)
            table[name] = pd.Categorical.from_codes(at, dtype=classes.dtype)
        is_new = (known[["track", "class"]].diff() != 0).any(axis=1)
        runs = known[is_new].groupby("track")["class"]
        texts = classes.categories.astype(str)
        sequences = runs.agg(lambda codes: ARROW.join(texts[codes]))
        table["sequence"] = sequences.reindex(table.index).fillna("").astype(object)
        return table.rename_axis(None)

    def describe_tracks(self) -> str:
        """Return a sentence on how many rows are moments, and what speed is in."""
        n, m = len(self.track_of_row), len(self.order)
        text = f"{count_text(len(self.ids), 'track')} with {m:,} of {n:,} rows."
        if self.movie_columns:
            text += f" Movies by {', '.join(self.movie_columns)}."
        if self.n_without_time:
            text += (
                f" {count_text(self.n_without_time, 'row')} without a time left out."
            )
        if self.positions is None:
            return f"{text} Without columns of positions there is no speed."
        return f"{text} Speed in {self.distance_unit} per {self.time_unit}."


def build_tracks(
    ids: pd.Series,
    times: NDArray[np.float64],
    movies: Sequence[pd.Series] = (),
    positions: NDArray[np.float64] | None = None,
    **parts: Any,
) -> Tracks:
    """Return the tracks of n rows in any order.

    ``ids`` (n,): id of each row's track; missing, or a number below 0, for none.
    ``times`` (n,): NaN for a row without a time. ``movies``: (n,) each, columns that
    say to which movie a row belongs. ``positions``: (n, d). ``**parts``: further fields
    of :class:`Tracks`.

    The former moment of a row is that at the time before; of several it is the nearest
    one, or none without positions.
    """
    has_track = ids.notna().to_numpy()
    if pd.api.types.is_numeric_dtype(ids):
        has_track &= ids.fillna(-1).to_numpy(float) >= 0
    is_moment = has_track & np.isfinite(times)
    keys = pd.DataFrame({i: one.astype(str).array for i, one in enumerate(movies)})
    keys["track"] = ids.array
    keys = keys[is_moment]
    codes = keys.groupby([*keys], sort=True, observed=True).ngroup().to_numpy()
    track_of_row = np.full(len(ids), -1, np.intp)
    track_of_row[is_moment] = codes
    first_keys = keys.iloc[np.unique(codes, return_index=True)[1]]
    names = first_keys.itertuples(index=False, name=None)
    rows = np.flatnonzero(is_moment)
    order = rows[np.lexsort((times[rows], track_of_row[rows]))]
    return Tracks(
        ids=tuple(", ".join(map(_format_id, one)) for one in names),
        track_of_row=track_of_row,
        times=times,
        order=order,
        previous=_find_previous_moments(order, track_of_row, times, positions),
        positions=positions,
        n_without_time=int((has_track & ~is_moment).sum()),
        **parts,
    )


def _find_previous_moments(
    order: NDArray[np.intp],
    track_of_row: NDArray[np.intp],
    times: NDArray[np.float64],
    positions: NDArray[np.float64] | None,
) -> NDArray[np.intp]:
    """Return the former moment of each row, (n,), as in :attr:`Tracks.previous`."""
    previous = np.full(len(track_of_row), -1, np.intp)
    tracks, at = track_of_row[order], times[order]
    is_other_track = np.diff(tracks, prepend=-1) != 0
    begins = np.flatnonzero(is_other_track | (np.diff(at, prepend=np.nan) != 0))
    ends = np.append(begins[1:], len(order))
    for_begin = np.repeat(np.arange(len(begins)), ends - begins)
    before = for_begin - 1
    goes_on = ~is_other_track[begins][for_begin]
    is_single = goes_on & ((ends - begins)[before] == 1)
    previous[order[is_single]] = order[begins[before[is_single]]]
    if positions is not None:
        for i in np.flatnonzero(goes_on & ~is_single):
            others = order[begins[before[i]] : ends[before[i]]]
            steps = np.linalg.norm(positions[others] - positions[order[i]], axis=1)
            if np.isfinite(steps).any():
                previous[order[i]] = others[np.nanargmin(steps)]
    return previous


def find_tracks(dataset: Dataset | None) -> Tracks | None:
    """Return the tracks of a dataset; None without a column of tracks and of times.

    Of several columns of times the first of whole numbers counts.  Movies are told
    apart by columns of samples where rows have the same track and time.
    """
    if dataset is None:
        return None
    known = dataset.known.get(_CACHE)
    if known is None or known[0] is not dataset.obs:
        known = dataset.known[_CACHE] = dataset.obs, _find_tracks(dataset)
    tracks: Tracks | None = known[1]
    return tracks


def _find_tracks(dataset: Dataset) -> Tracks | None:
    """Return the tracks of a dataset, computed anew; see :func:`find_tracks`."""
    obs = dataset.obs
    track_columns = dataset.find_columns_of_roles("tracks")
    time_columns = dataset.find_columns_of_roles("times")
    if not track_columns or not time_columns:
        return None
    time_column = next(
        (one for one in time_columns if holds_integers(obs[one])), time_columns[0]
    )
    ids = obs[track_columns[0]]
    times = obs[time_column].to_numpy(np.float64, na_value=np.nan)
    moments = pd.DataFrame({"track": ids.array, "time": times})
    movies = _find_movie_columns(dataset, moments)
    positions, unit = _find_positions(dataset)
    return build_tracks(
        ids,
        np.where(np.isfinite(times), times, np.nan),
        [obs[name] for name in movies],
        positions,
        distance_unit=unit,
        # Times of measured objects are numbers of frames, whatever the layer's scale.
        time_unit="frame" if "measured" in dataset.provenance else time_column,
        time_column=time_column,
        movie_columns=tuple(movies),
    )


def _find_movie_columns(dataset: Dataset, moments: pd.DataFrame) -> list[str]:
    """Return the columns of samples that tell apart rows of one track and time.

    A column is added as long as it halves the number of such rows: a condition may
    change during a track, and the two parts of a split have the same samples.
    ``moments``: columns "track" and "time", (n,), with a plain index.
    """
    moments, found = moments.dropna(), list[str]()
    samples = dataset.obs[dataset.find_columns_of_roles("samples")].reset_index(
        drop=True
    )

    def count_repeated(names: list[str]) -> int:
        """Return the number of rows that share track, time and these columns."""
        keys = moments.join(samples[names])
        return int(keys.duplicated(keep=False).sum())

    n = count_repeated([])
    while n:
        counts = {name: count_repeated([*found, name]) for name in samples}
        best = min(counts, key=counts.__getitem__, default="")
        if not best or counts[best] > n / 2:
            break
        found.append(best)
        n = counts[best]
    return found


def _find_positions(dataset: Dataset) -> tuple[NDArray[np.float64] | None, str]:
    """Return positions (n, d) of the rows, and their unit; None, "" without any.

    They are the positions in tissue; else the middles of the objects.
    """
    tissue, objects = dataset.tissue, dataset.objects
    if tissue is not None:
        is_scaled = not tissue.unit and "measured" in dataset.provenance
        other = "units of the layer" if is_scaled else f"the unit of {tissue.origin}"
        unit = {"µm": "µm", "pixel": "pixels"}.get(tissue.unit, other)
        return tissue.positions.astype(np.float64), unit
    if objects is None:
        return None, ""
    return np.where(objects.present[:, None], objects.centers, np.nan)[:, -2:], "pixels"


def _format_id(value: Any) -> str:
    """Return an id as text; 5.0, which a column with gaps has, as "5"."""
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def find_frames_of_rows(dataset: Dataset | None) -> NDArray[np.int64] | None:
    """Return the frame of the linked labels in which each row's object is, (n,).

    -1 for a row without an object.  None where the labels are no movie: without a
    column of times, or where objects have no time axis or several frames.
    """
    objects = None if dataset is None else dataset.objects
    if dataset is None or objects is None or not dataset.find_columns_of_roles("times"):
        return None
    corners = objects.box_corners
    is_flat = corners[:, 1, 0] - corners[:, 0, 0] <= 1
    if objects.ndim < 3 or not is_flat.all():
        return None
    return np.where(objects.present, corners[:, 0, 0], -1)


def make_track_columns(tracks: Tracks, classes: pd.Categorical) -> dict[str, Any]:
    """Return the classes of each row's track, its speed and displacement, (n,) each.

    They are keyed by the endings of their names: "_majority" and so on, and with
    positions "_speed" and "_displacement".  ``classes`` (n,): the class of each row.
    """
    table = tracks.summarise_classes(classes).reindex(tracks.track_of_row)
    names = "majority", "first", "last", "sequence"
    columns: dict[str, Any] = {f"_{name}": table[name].array for name in names}
    if tracks.positions is not None:
        columns["_speed"] = tracks.compute_speeds()
        columns["_displacement"] = tracks.compute_displacements()
    return columns


def add_track_columns(dataset: Dataset, classes: pd.Categorical) -> tuple[Dataset, str]:
    """Return a dataset with the columns of :func:`make_track_columns`, and a name.

    The columns begin with "track_"; former ones are replaced.  The name is the key of
    their record in ``added``.  Raises DataError without tracks.
    """
    if (tracks := find_tracks(dataset)) is None:
        raise DataError(NO_TRACKS)
    columns, record = make_track_columns(tracks, classes), AddedColumns(kind="map")
    return dataset.with_columns("track", columns, record)


def add_track_ids(dataset: Dataset, ids: NDArray[np.floating]) -> tuple[Dataset, str]:
    """Return a dataset with a column of the ids (n,) of a Tracks layer, and its name.

    NaN stands for no track.
    """
    record = AddedColumns(kind="map")
    column = pd.Series(ids).astype("Int64").array
    return dataset.with_columns(TRACK_ID, {"": column}, record)
