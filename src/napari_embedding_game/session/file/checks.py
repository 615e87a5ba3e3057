"""Check that the parts of a session file fit together; their types are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings, resolve
from napari_embedding_game.core.snapshot import HandForces, Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.automatic import BookState
from napari_embedding_game.session.clusters.clustering import is_color
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.file.codec import DamageError
from napari_embedding_game.session.file.rows import ROWS, Rows
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.moment import Moment
from napari_embedding_game.session.reference.placed_on import PlacedOn
from napari_embedding_game.session.run import replay
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.timeline import TimelineState


class _Fits:
    """Whether arrays have the sizes that their letters stand for, by what they are of.

    ``fits("its layout", embedding="nd")``
    """

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes

    def __call__(
        self, what: str, shape: str, *arrays: NDArray[np.generic] | None
    ) -> None:
        """Check arrays whose axes have these sizes; a new letter stands for any."""
        for array in arrays:
            if array is None:
                continue
            is_so = array.ndim == len(shape) and all(
                self.sizes.setdefault(letter, size) == size
                for letter, size in zip(shape, array.shape, strict=True)
            )
            _expect(is_so, what)


def check_session(session: SavedSession) -> None:
    """Raise DamageError unless the maps are one tree, parents first, and each is whole.

    Raises
    ------
    DamageError
        It says what does not fit.
    """
    seen: set[str] = set()
    for one in session.maps:
        _expect(one.parent is None if not seen else one.parent in seen, "its maps")
        _expect(one.key not in seen, "its maps")
        seen.add(one.key)
        _check_map(one)
    _expect(session.current in seen, "the map that was shown is missing")


def _check_map(one: SavedMap) -> None:
    dataset, limits = one.dataset, one.look.limits
    fits = _Fits(n=len(dataset.obs), a=dataset.n_source_rows)
    _check_rows(dataset, fits)
    _check_moment(one, len(dataset.obs))
    n_landmarks = 0 if one.snapshot is None else len(one.snapshot.landmarks)
    _check_book(one.book, fits, n_landmarks)
    _expect(limits is None or limits[0] < limits[1], "its colours")
    fits("its selection", "n", one.drawn)
    for examples in (*dataset.taught.values(), one.boxes):
        rows = np.array([row for rows in examples.values() for row in rows], np.int64)
        is_once = len(np.unique(rows)) == len(rows)
        _expect(is_once and _within(rows, 0, dataset.n_source_rows), "its examples")
    for compared in one.comparisons:
        fits("its comparisons", "n", compared.inside, compared.outside)
    if one.placed_on is not None:
        _check_placed(one.placed_on, len(dataset.obs))
    if one.timeline is not None:
        _check_timeline(one.timeline, len(dataset.obs))


def _check_rows(dataset: Dataset, fits: _Fits) -> None:
    rows: Rows = dataset.known[ROWS]
    _expect(_are_finite(dataset.X), "its numbers")
    fits("its rows", "a", rows.background)
    objects, made = dataset.source_objects, rows.prepared
    if objects is not None:
        fits("its objects", "a", objects.label_ids, objects.areas)
    for one in dataset.predicted.values():
        figures = (one.codes, one.confidence, one.likeness, one.distance, one.unlike)
        fits("its predicted labels", "n", *figures)
    if made is None:
        return
    parts, n_kept = [made.X], int(np.count_nonzero(made.kept))
    fits("its recipe", "a", made.kept, made.doublet_scores)
    of_recipe = _Fits(k=n_kept)
    of_recipe("its recipe", "kc", made.X)
    if (way := made.projection) is not None:
        parts += [way.mean, way.std, way.loadings, way.offset]
        of_recipe.sizes["g"] = len(way.genes)
        of_recipe("its recipe", "g", way.mean, way.std)
        of_recipe("its recipe", "gc", way.loadings)
        of_recipe("its recipe", "c", way.offset)
    _expect(_are_finite(*parts) and made.X.shape[1] > 0, "its recipe")


def _check_moment(one: Moment, n: int) -> None:
    """Check the settings, the run, the layout and the merge tree of a moment."""
    _check_settings(one.settings)
    _expect(one.record is None or one.snapshot is not None, "its run")
    if one.record is not None:
        _check_record(one.record, n)
    if one.snapshot is not None:
        _check_snapshot(one.snapshot, n)
        names = {field.name for field in fields(Settings)}
        remedy = one.snapshot.remedy
        _expect(names.issuperset(remedy), "its remedy")
        try:
            _check_settings(replace(one.settings, **remedy))
        except (DamageError, TypeError) as error:
            raise DamageError("its remedy") from error
    if one.merging is not None:
        _check_merging(
            one.merging, 0 if one.snapshot is None else len(one.snapshot.landmarks)
        )
    _expect(all(np.isfinite(energy) for _, energy in one.energies), "its energies")


def _check_snapshot(shot: Snapshot, n: int) -> None:
    fits = _Fits(n=n)
    fits("its layout", "nd", shot.embedding)
    fits("its layout", "Ld", shot.landmarks)
    is_right = _are_finite(shot.embedding, shot.landmarks)
    _expect(is_right and fits.sizes["d"] in (1, 2, 3), "its layout")
    fits("its clusters", "n", shot.labels)
    _expect(_within(shot.labels, 0, len(shot.landmarks)), "its clusters")
    fits("its pressure", "n", shot.pressure)
    for values in (shot.stretch, shot.isolation):
        fits("its stretch", "n", values)
        _expect(values is None or bool((values >= 0).all()), "its stretch")
    fits("its neighbours", "nk", shot.neighbors)
    known = shot.neighbors
    _expect(known is None or _within(known, -1, n), "its neighbours")


def _check_settings(settings: Settings) -> None:
    """Ask the engine whether a run of enough rows can have these settings."""
    try:
        resolve(settings).validate()
    except InputError as error:
        raise DamageError(
            "settings that no run can have, or of a later version, for which "
            f"napari-embedding-game has to be updated: {error}"
        ) from error


def _check_record(record: RunRecord, n: int) -> None:
    for settings in (record.settings, *(step.settings for step in record.steered)):
        _check_settings(settings)
    try:
        replay.check(record)
    except DataError as error:
        raise DamageError(str(error)) from error
    fits, warm = _Fits(n=n, d=record.settings.n_components), record.warm_start
    if warm is not None:
        fits("its branch", "nd", warm.embedding)
        fits("its branch", "Ld", warm.landmarks)
        is_right = record.is_branch and warm.iterations_left >= 0
        is_right &= _are_finite(warm.embedding, warm.landmarks)
        _expect(is_right, "its branch")
    for forced in record.forced:
        _check_by_hand(forced.forces, n, record.settings.n_components)


def _check_by_hand(forces: HandForces, n: int, d: int) -> None:
    rows = [one.rows for one in forces.springs] + [one.rows for one in forces.holds]
    places = [one.place for one in forces.springs]
    places += [one.place for one in forces.landmarks]
    places += [place for edit in forces.edits for place in edit.added]
    for hold in forces.holds:
        _Fits(m=len(hold.rows), d=d)("its moves by hand", "md", hold.places)
        _expect(_are_finite(hold.places), "its moves by hand")
    is_right = all(one.ndim == 1 and len(one) and _within(one, 0, n) for one in rows)
    _expect(is_right and all(len(one) == d for one in places), "its moves by hand")


def _check_merging(merging: Merging, n: int) -> None:
    fits, tree = _Fits(L=n), merging.tree
    fits("its merged clusters", "L", tree.born, tree.leader)
    fits("its merged clusters", "sL", tree.levels)
    is_right = merging.graph.shape == (n, n) and _within(tree.born, 0, n + 1)
    is_right &= _within(tree.leader, 0, n) and _within(tree.levels, 0, n)
    _expect(is_right, "its merged clusters")
    # Up the tree one arrives: a leader was there before those that it leads.
    led = tree.born > 1
    arrives = bool((tree.born[tree.leader[led]] < tree.born[led]).all())
    _expect(arrives, "its merged clusters")


def _check_book(book: BookState, fits: _Fits, n_landmarks: int) -> None:
    edits = book.edits
    fits("its clusters", "n", edits.by_hand, book.automatic, edits.below)
    is_right = edits.n_clusters is None or edits.n_clusters >= 0
    is_right &= book.of_landmarks.shape in ((0,), (n_landmarks,))
    ids = [*edits.given, *edits.joined, *book.numbers]
    is_right &= all(0 <= i < book.next_id < 2**30 for i in ids)
    _expect(is_right, "its clusters")
    _expect(_ends(edits.joined), "its merged clusters")
    colors = [given.color for given in edits.given.values()]
    _expect(all(not color or is_color(color) for color in colors), "its colours")


def _ends(joined: Mapping[int, int]) -> bool:
    """Return whether following clusters to what they were merged into ends."""
    arrived: set[int] = set()  # so that a long way is not gone again from each of it
    for cluster in joined:
        way: set[int] = set()
        while cluster in joined and cluster not in arrived:
            if cluster in way:
                return False
            way.add(cluster)
            cluster = joined[cluster]
        arrived |= way
    return True


def _check_placed(on: PlacedOn, n: int) -> None:
    fits, what = _Fits(n=n), "the map of its reference"
    fits(what, "nd", on.placed)
    fits(what, "Md", on.cells)
    fits(what, "M", on.codes)
    is_right = fits.sizes["d"] in (1, 2, 3) and len(on.cells) > 0
    is_right &= _within(on.codes, -1, len(on.names))
    _expect(is_right and _are_finite(on.placed, on.cells), what)


def _check_timeline(timeline: TimelineState, n: int) -> None:
    numbers = [mark.number for mark in timeline.marks]
    is_right = numbers == sorted(set(numbers))
    is_right &= all(1 <= number <= timeline.n_made for number in numbers)
    is_right &= timeline.branch >= 0 <= timeline.n_thinned
    shown = (timeline.head, timeline.shown)
    is_right &= all(number is None or number in numbers for number in shown)
    earlier: set[int | None] = {None}
    for mark in timeline.marks:
        is_right &= mark.parent in earlier
        earlier.add(mark.number)
        _check_moment(mark, n)
    _expect(is_right, "its timeline")


def _within(numbers: NDArray[np.integer], low: int, high: int) -> bool:
    return not numbers.size or bool(low <= numbers.min() and numbers.max() < high)


def _are_finite(*arrays: NDArray[np.floating]) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise DamageError(what)
