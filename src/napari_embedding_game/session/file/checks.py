"""Check that the parts of a session file fit together; their types are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings, resolve
from napari_embedding_game.core.snapshot import HandForces, Snapshot
from napari_embedding_game.data.dataset import Dataset, Examples
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.automatic import BookState
from napari_embedding_game.session.clusters.clustering import is_color
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.file.codec import DamageError
from napari_embedding_game.session.file.origin import PREPARED
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.reference.placed_on import PlacedOn
from napari_embedding_game.session.run import replay
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.timeline import Mark, TimelineState


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
        check_map(one)
    _expect(session.current in seen, "the map that was shown is missing")


def check_map(one: SavedMap) -> None:
    """Raise DamageError unless the parts of a map fit together."""
    n, n_rows = len(one.dataset.obs), one.dataset.n_source_rows
    _check_rows(one)
    _check_moment(one, n)
    _check_book(one.book, n, 0 if one.snapshot is None else len(one.snapshot.landmarks))
    limits = one.look.limits
    _expect(limits is None or limits[0] < limits[1], "its colours")
    _expect(one.drawn is None or one.drawn.shape == (n,), "its selection")
    for examples in (*one.dataset.taught.values(), one.boxes):
        _check_examples(examples, n_rows)
    for compared in one.comparisons:
        groups = (compared.inside, compared.outside)
        fits = all(group is None or group.shape == (n,) for group in groups)
        _expect(fits, "its comparisons")
    if one.placed_on is not None:
        _check_placed(one.placed_on, n)
    if one.timeline is not None:
        _check_timeline(one.timeline, n)


def _check_rows(one: SavedMap) -> None:
    dataset, origin = one.dataset, one.origin
    assert origin is not None
    _expect(len(dataset.kept) == origin.n_source_rows, "its rows")
    _expect(bool(np.isfinite(dataset.X).all()), "its numbers")
    _check_lengths(dataset)
    made = dataset.known.get(PREPARED)
    if made is not None:
        way = made.projection
        parts = [made.X]
        if way is not None:
            parts += [way.mean, way.std, way.loadings, way.offset]
            shapes = [part.shape for part in parts[1:]]
            g, c = len(way.genes), made.X.shape[-1]
            _expect(shapes == [(g,), (g,), (g, c), (c,)], "its recipe")
        fits = made.X.ndim == 2 and len(made.X) == np.count_nonzero(made.kept)
        _expect(fits and len(made.kept) == len(dataset.kept), "its recipe")
        scores = made.doublet_scores
        _expect(scores is None or scores.shape == made.kept.shape, "its recipe")
        finite = all(bool(np.isfinite(part).all()) for part in parts)
        _expect(finite and made.X.shape[1] > 0, "its recipe")


def _check_lengths(dataset: Dataset) -> None:
    objects, n = dataset.source_objects, len(dataset.obs)
    if objects is not None:
        fits = objects.label_ids.shape == (dataset.n_source_rows,)
        areas = objects.areas
        fits &= areas is None or areas.shape == objects.label_ids.shape
        _expect(fits, "its objects")
    for one in dataset.predicted.values():
        figures = (one.codes, one.confidence, one.likeness, one.distance, one.unlike)
        _expect(all(part.shape == (n,) for part in figures), "its predicted labels")


def _check_moment(one: SavedMap | Mark, n: int) -> None:
    """Check the settings, the run, the layout and the merge tree of a moment."""
    _check_settings(one.settings)
    _expect(one.record is None or one.snapshot is not None, "its run")
    if one.record is not None:
        _check_record(one.record, n)
    n_landmarks = 0
    if one.snapshot is not None:
        _check_snapshot(one.snapshot, n)
        _check_remedy(one, one.snapshot.remedy)
        n_landmarks = len(one.snapshot.landmarks)
    if one.merging is not None:
        _check_merging(one.merging, n_landmarks)
    _expect(all(np.isfinite(energy) for _, energy in one.energies), "its energies")


def _check_snapshot(shot: Snapshot, n: int) -> None:
    d = shot.embedding.shape[-1]
    fits = shot.embedding.shape == (n, d) and d in (1, 2, 3)
    fits &= shot.landmarks.ndim == 2 and shot.landmarks.shape[1] == d
    _expect(fits and _are_finite(shot.embedding, shot.landmarks), "its layout")
    fits = shot.labels.shape == (n,) and _within(shot.labels, 0, len(shot.landmarks))
    _expect(fits, "its clusters")
    _expect(shot.pressure.shape == (n,), "its pressure")
    for name in ("stretch", "isolation"):
        values = getattr(shot, name)
        fits = values is None or (values.shape == (n,) and bool((values >= 0).all()))
        _expect(fits, f"its {name}")
    known = shot.neighbors
    fits = known is None or (known.ndim == 2 and len(known) == n)
    _expect(fits and (known is None or _within(known, -1, n)), "its neighbours")


def _check_remedy(one: SavedMap | Mark, remedy: Mapping[str, Any]) -> None:
    names = {field.name for field in fields(Settings)}
    _expect(names.issuperset(remedy), "its remedy")
    try:
        _check_settings(replace(one.settings, **remedy))
    except (DamageError, TypeError) as error:
        raise DamageError("its remedy") from error


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
    d, warm = record.settings.n_components, record.warm_start
    if warm is not None:
        fits = record.is_branch and warm.iterations_left >= 0
        fits &= warm.embedding.shape == (n, d)
        fits &= warm.landmarks.ndim == 2 and warm.landmarks.shape[1] == d
        _expect(fits and _are_finite(warm.embedding, warm.landmarks), "its branch")
    for forced in record.forced:
        _expect(_fits_by_hand(forced.forces, n, d), "its moves by hand")


def _fits_by_hand(forces: HandForces, n: int, d: int) -> bool:
    rows = [one.rows for one in forces.springs] + [one.rows for one in forces.holds]
    places = [one.place for one in forces.springs]
    places += [one.place for one in forces.landmarks]
    places += [place for edit in forces.edits for place in edit.added]
    held = all(
        hold.places.shape == (len(hold.rows), d) and _are_finite(hold.places)
        for hold in forces.holds
    )
    fits = all(one.ndim == 1 and len(one) and _within(one, 0, n) for one in rows)
    return held and fits and all(len(place) == d for place in places)


def _check_merging(merging: Merging, n: int) -> None:
    tree = merging.tree
    fits = merging.graph.shape == (n, n)
    fits &= tree.born.shape == (n,) and tree.leader.shape == (n,)
    fits &= tree.levels.ndim == 2 and tree.levels.shape[1] == n
    _expect(fits, "its merged clusters")
    fits = _within(tree.leader, 0, n) and _within(tree.levels, 0, n)
    _expect(fits and _within(tree.born, 0, n + 1), "its merged clusters")
    # Up the tree one arrives: a leader was there before those that it leads.
    led = tree.born > 1
    arrives = bool((tree.born[tree.leader[led]] < tree.born[led]).all())
    _expect(arrives, "its merged clusters")


def _check_book(book: BookState, n: int, n_landmarks: int) -> None:
    edits = book.edits
    fits = edits.n_clusters is None or edits.n_clusters >= 0
    fits &= edits.by_hand.shape == (n,) and book.automatic.shape == (n,)
    fits &= edits.below is None or edits.below.shape == (n,)
    fits &= book.of_landmarks.shape in ((0,), (n_landmarks,))
    ids = [*edits.given, *edits.joined, *book.numbers]
    fits &= all(0 <= i < book.next_id < 2**30 for i in ids)
    _expect(fits, "its clusters")
    _expect(_ends(edits.joined), "its merged clusters")
    colors = [given.color for given in edits.given.values()]
    _expect(all(not color or is_color(color) for color in colors), "its colours")


def _check_examples(examples: Examples, n_rows: int) -> None:
    rows = np.array([row for rows in examples.values() for row in rows], np.int64)
    is_once = len(np.unique(rows)) == len(rows)
    _expect(is_once and _within(rows, 0, n_rows), "its examples")


def _check_placed(on: PlacedOn, n: int) -> None:
    d = on.placed.shape[-1]
    fits = on.placed.shape == (n, d) and d in (1, 2, 3)
    fits &= on.cells.ndim == 2 and on.cells.shape[1] == d and len(on.cells) > 0
    fits &= on.codes.shape == (len(on.cells),) and _within(on.codes, -1, len(on.names))
    _expect(fits and _are_finite(on.placed, on.cells), "the map of its reference")


def _check_timeline(timeline: TimelineState, n: int) -> None:
    numbers = [mark.number for mark in timeline.marks]
    fits = numbers == sorted(set(numbers))
    fits &= all(1 <= number <= timeline.n_made for number in numbers)
    fits &= timeline.branch >= 0 <= timeline.n_thinned
    places = (timeline.head, timeline.shown)
    fits &= all(place is None or place in numbers for place in places)
    earlier: set[int | None] = {None}
    for mark in timeline.marks:
        fits &= mark.parent in earlier
        earlier.add(mark.number)
        _check_moment(mark, n)
    _expect(fits, "its timeline")


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


def _within(numbers: NDArray[Any], low: int, high: int) -> bool:
    return not numbers.size or bool(low <= numbers.min() and numbers.max() < high)


def _are_finite(*arrays: NDArray[np.floating]) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise DamageError(what)
