"""Encode a saved map as the text and arrays of a session file."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from napari_embedding_game.data.dataset import CONFIDENCE, Dataset
from napari_embedding_game.data.predicted import PredictedLabels
from napari_embedding_game.session.file.json_schema import (
    ColumnText,
    ComparisonText,
    MapText,
    PlacedOnText,
    PredictedText,
)
from napari_embedding_game.session.file.moment_writer import (
    Arrays,
    moment_arrays,
    moment_values,
)
from napari_embedding_game.session.file.origin import SAMPLES, origin_of
from napari_embedding_game.session.file.prepared import write_prepared
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.file.stored_table import write_table
from napari_embedding_game.session.file.timeline_writer import write_timeline
from napari_embedding_game.session.reference.placed_on import PlacedOn
from napari_embedding_game.session.shown_comparisons import ShownComparison

LARGEST_X = 64_000_000
"""Bytes of numbers that are stored where there is no file to read them from again."""


def encode_map(one: SavedMap, *, reads_source: bool = True) -> tuple[MapText, Arrays]:
    """Return a map as text, and its arrays by their names in the file.

    The first time its source is read.
    """
    edits, objects = one.book.edits, one.dataset.source_objects
    timeline, arrays = write_timeline(one)
    has_x, own = _stores_x(one.dataset), _own_arrays(one)
    columns, table = _table(one.dataset) if has_x else ((), {})
    prepared, of_recipe = write_prepared(one.dataset)
    text = MapText(
        **moment_values(one),
        key=one.key,
        title=one.title,
        parent=one.parent,
        origin=one.origin or origin_of(one.dataset, reads_source=reads_source),
        n_points=len(one.dataset.obs),
        n_clusters=edits.n_clusters,
        grouping=edits.grouping,
        given=tuple(edits.given.items()),
        joined=tuple(edits.joined.items()),
        numbers=tuple(one.book.numbers.items()),
        next_id=one.book.next_id,
        selected=one.selected,
        is_drawn=one.drawn is not None,
        has_x=has_x,
        columns=columns,
        profile_names=one.dataset.profile_names if has_x and "profile" in own else (),
        scores=one.dataset.scores,
        taught=one.dataset.taught,
        boxes=one.boxes,
        predicted=tuple(map(_predicted_text, one.dataset.predicted.values())),
        n_axes=0 if objects is None else objects.ndim,
        look=one.look,
        view=one.view,
        timeline=timeline,
        comparisons=tuple(map(_comparison_text, one.comparisons)),
        figures=one.figures,
        placed_on=_placed_on_text(one.placed_on),
        prepared=prepared,
    )
    return text, arrays | moment_arrays(one) | own | table | of_recipe


def _table(dataset: Dataset) -> tuple[tuple[ColumnText, ...], Arrays]:
    """Return the metadata without what is made again when the map is opened."""
    taught = [name + end for name in dataset.taught for end in ("", CONFIDENCE)]
    predicted = [
        name + end for name, one in dataset.predicted.items() for end in one.columns
    ]
    left_out = {*dataset.worked_out, *taught, *predicted}
    return write_table(dataset.obs, left_out)


def _predicted_text(one: PredictedLabels) -> PredictedText:
    return PredictedText(
        reference=one.reference,
        label=one.label,
        correct_batch=one.correct_batch,
        names=one.names,
    )


def _placed_on_text(one: PlacedOn | None) -> PlacedOnText | None:
    if one is None:
        return None
    return PlacedOnText(reference=one.reference, label=one.label, names=one.names)


def _comparison_text(one: ShownComparison) -> ComparisonText:
    return ComparisonText(
        method=one.method,
        samples=one.samples,
        column=one.column,
        levels=one.levels,
        has_outside=one.outside is not None,
        has_selected=one.selected is not None,
    )


def _stores_x(dataset: Dataset) -> bool:
    """Return whether a dataset has to be stored, since it cannot be read again."""
    X = dataset.X
    return (
        dataset.source is None
        and dataset.name.lower() not in SAMPLES
        and not sp.issparse(X)
        and 0 < X.size * 4 <= LARGEST_X
    )


def _own_arrays(one: SavedMap) -> Arrays:
    """Return what is known of the rows and clusters of a map, whatever was played."""
    book = one.book
    dormant = list(book.dormant.values())
    arrays: Arrays = {
        "kept": one.dataset.kept,
        "by_hand": book.edits.by_hand.astype("<i4"),
        "automatic": book.automatic.astype("<i4"),
        "of_landmarks": book.of_landmarks.astype("<i4"),
        "asleep": np.array(list(book.dormant), "<i4"),
        "asleep_ends": np.cumsum([len(rows) for rows in dormant]).astype("<i8"),
        "asleep_rows": np.concatenate([*dormant, np.zeros(0, "<i8")]).astype("<i8"),
    }
    if book.edits.below is not None:
        arrays["below"] = book.edits.below.astype("<i4")
    if _stores_x(one.dataset):
        X = one.dataset.X
        if X.dtype == np.float64:
            arrays["x_double"] = X.astype("<f8")
        else:
            arrays["x"] = X.astype("<f4")
        profile = one.dataset.profile
        is_other = profile is not one.dataset.X and not sp.issparse(profile)
        if is_other and 0 < profile.size * 4 <= LARGEST_X:
            arrays["profile"] = profile.astype("<f4")
    objects = one.dataset.source_objects
    if objects is not None:
        arrays["label_ids"] = objects.label_ids.astype("<i8")
        arrays["boxes"] = objects.boxes.astype("<i8")
        if objects.areas is not None:
            arrays["areas"] = objects.areas.astype("<i8")
    if one.drawn is not None:
        arrays["drawn"] = one.drawn
    groups = [g for c in one.comparisons for g in (c.inside, c.outside, c.selected)]
    known = [group for group in groups if group is not None]
    if known:
        arrays["compared"] = np.stack(known)
    if one.placed_on is not None:
        arrays["reference_cells"] = one.placed_on.cells.astype("<f4", copy=False)
        arrays["reference_codes"] = one.placed_on.codes.astype("<i4", copy=False)
        arrays["placed"] = one.placed_on.placed.astype("<f4", copy=False)
    predicted = list(one.dataset.predicted.values())
    if predicted:
        arrays["predicted"] = np.stack([p.codes for p in predicted]).astype("<i4")
        arrays["predicted_unlike"] = np.stack([p.unlike for p in predicted])
        arrays["predicted_shares"] = np.stack([
            [p.confidence, p.likeness, p.distance] for p in predicted
        ]).astype("<f4")  # fmt: skip
    return arrays
