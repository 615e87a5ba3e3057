"""Teach by example: points in named boxes, and the classes of all others from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.inspect.teaching import Learned
from napari_embedding_game.data.dataset import CONFIDENCE, Dataset, Examples
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.clusters.annotation import unique_name
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.taught_classes import (
    add_classes,
    learn_examples,
    rows_of,
)

TAUGHT = "taught"
"""What the column of the classes is called where nobody names it."""
N_SHOWN = 20
"""Points that are offered together to be judged."""
MOST_UNDONE = 100
"""Changes of the boxes that can be taken back."""
FEW = 5
"""With fewer examples of a class, its share of right ones says little."""
EMPTY = "Box 1", "Box 2"
"""The boxes that there are at first."""


class Teaching:
    """The boxes of a session, and what was learned from them.

    Examples are rows of the source, so that they stay the same in maps of parts;
    :attr:`Session.boxes` has them.  ``changed`` tells that a box, or what was learned,
    is another one.
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self.column = TAUGHT
        """Name of the column of the metadata that the classes go into."""
        self.learned: Learned | None = None
        """What was learned last; None before, and on another map."""
        self._learned_from: Examples = {}
        self._former: list[Examples] = []
        self._shown: Examples = {}
        session.dataset_changed.connect(self._follow, max_args=0)
        session.restored.connect(self._follow, max_args=0)
        self._follow()

    # The boxes

    @property
    def boxes(self) -> Examples:
        """The boxes in their order: rows of the source by the name of the class."""
        return self._session.boxes or dict.fromkeys(EMPTY, ())

    def add_box(self, name: str = "") -> int:
        """Add an empty box, and return its place."""
        boxes = self.boxes
        wanted = name.strip() or f"Box {len(boxes) + 1}"
        self._take({**boxes, unique_name(wanted, set(boxes)): ()})
        return len(boxes)

    def rename(self, place: int, name: str) -> None:
        """Give a box another name; an empty one changes nothing."""
        boxes, wanted = self.boxes, name.strip()
        former = list(boxes)[place]
        if wanted and wanted != former:
            given = unique_name(wanted, set(boxes) - {former})
            names = (given if name == former else name for name in boxes)
            self._take(dict(zip(names, boxes.values(), strict=True)))

    def remove(self, place: int) -> None:
        """Remove a box; its examples are in none then."""
        gone = list(self.boxes)[place]
        self._take({name: rows for name, rows in self.boxes.items() if name != gone})

    def put(self, place: int, points: NDArray[np.bool_]) -> str:
        """Put points (n,) into a box, and take them out of any other.

        Returns
        -------
        str
            A sentence on those that were in another box; "" if none were.
        """
        boxes, new, name = (
            self.boxes,
            self._source_rows(points),
            list(self.boxes)[place],
        )
        moved = [
            f"{len(new.intersection(rows)):,} out of {other}"
            for other, rows in boxes.items()
            if other != name and new.intersection(rows)
        ]
        self._take(
            {
                other: {*rows} | new if other == name else {*rows} - new
                for other, rows in boxes.items()
            }
        )
        told = f"Moved {' and '.join(moved)} to {name}"
        return f"{told}: a point is of one class." if moved else ""

    def take_out(self, points: NDArray[np.bool_]) -> None:
        """Take points (n,) out of whatever box they are in."""
        gone = self._source_rows(points)
        self._take({name: {*rows} - gone for name, rows in self.boxes.items()})

    def points(self, place: int) -> NDArray[np.bool_]:
        """(n,) whether each point of the map is in a box."""
        return rows_of(self._dataset, list(self.boxes.values())[place])

    def box_of(self) -> NDArray[np.intp]:
        """(n,) place of the box that each point of the map is in; -1: in none."""
        dataset = self._session.dataset
        places = np.full(0 if dataset is None else len(dataset.obs), -1, np.intp)
        for place in range(len(self.boxes) if len(places) else 0):
            places[self.points(place)] = place
        return places

    @property
    def n_elsewhere(self) -> int:
        """Examples that are no points of this map, which may be one of a part."""
        n_examples = sum(map(len, self.boxes.values()))
        return n_examples - int(np.count_nonzero(self.box_of() >= 0))

    @property
    def can_undo(self) -> bool:
        """Whether a change of the boxes can be taken back."""
        return bool(self._former)

    def undo(self) -> None:
        """Take the last change of the boxes back."""
        if self._former:
            self._tell(self._former.pop())

    def refusal(self) -> str:
        """Return why nothing can be learned yet, and what to do; "" if it can."""
        dataset = self._session.dataset
        if dataset is None:
            return "Load some data first."
        if not dataset.X.shape[1]:
            return dataset.missing_reason
        if dataset.is_distances:
            return (
                "There are no numbers here to learn from, only which rows are "
                "neighbours: choose another space under Data."
            )
        n_filled, elsewhere = len(self.examples()), self.n_elsewhere
        if n_filled > 1:
            return ""
        if elsewhere:
            return (
                f"{elsewhere:,} of the examples are not in this map of a part: put "
                "some of its points into two classes, or go back to the whole map."
            )
        if n_filled == 0:
            return (
                "Select points on the map and add them to a class: a few of each kind "
                "that is to be told apart."
            )
        return "Examples of one class alone teach nothing: add others to another class."

    # Learning

    @property
    def is_outdated(self) -> bool:
        """Whether the boxes were changed since the classes were learned."""
        return self.has_classes and self.examples() != self._learned_from

    @property
    def has_classes(self) -> bool:
        """Whether the metadata have the column of the classes."""
        dataset = self._session.dataset
        return dataset is not None and self.column in dataset.taught

    @property
    def confidence_column(self) -> str:
        """Name of the column that says how sure each class is."""
        return self.column + CONFIDENCE

    def lesson(self) -> Callable[[], Stages[Learned]]:
        """Return what is to be done in the background, with the boxes as they are."""
        dataset, examples = self._dataset, self.examples()
        return lambda: learn_examples(dataset, examples)

    def examples(self) -> Examples:
        """Return the examples of each box that has any on the map."""
        if self._session.dataset is None:
            return {}
        return _on_map(self._dataset, self._session.boxes)

    def take_up(self, learned: Learned, examples: Examples) -> str:
        """Make what was learned columns of the metadata; return the classes' column.

        Parameters
        ----------
        examples : Examples
            What it was learned from.
        """
        self.column = add_classes(self._dataset, self.column, learned, examples)
        self.learned, self._learned_from = learned, dict(examples)
        self._session.columns_changed.emit()
        self.changed.emit()
        return self.column

    def doubtful(self) -> NDArray[np.intp]:
        """Return the points that the classes are least sure of, examples left out."""
        if not self.has_classes:
            return np.zeros(0, np.intp)
        sure = self._dataset.obs[self.confidence_column].to_numpy()
        confidence = np.where(self.box_of() >= 0, np.inf, sure)
        order = np.argsort(confidence, kind="stable")[:N_SHOWN]
        return order[np.isfinite(confidence[order])]

    def recalls(self) -> dict[str, float]:
        """Return for each class the share of left-out examples that are told right."""
        if self.learned is None:
            return {}
        return dict(zip(self._learned_from, self.learned.recalls, strict=False))

    def told(self) -> str:
        """Return in sentences how well the classes can be told apart."""
        learned, names = self.learned, list(self._learned_from)
        if learned is None:
            return ""
        if learned.score is None:
            pairs = zip(names, learned.counts, strict=False)
            single = ", ".join([name for name, n in pairs if n == 1][:3])
            return (
                f"Learned from {learned.n_examples} examples, but not tested: {single} "
                "has a single one. Add another, to be told how often the classes are "
                "right."
            )
        sentence = (
            f"{learned.score:.0%} ± {learned.spread:.0%} of unseen examples are told "
            f"right (by chance {1 / len(learned.counts):.0%}; cross-validated balanced "
            "accuracy)."
        )
        fewest, weakest = int(learned.counts.argmin()), int(np.argmin(learned.recalls))
        n, share = learned.counts[fewest], learned.recalls[weakest]
        if n < FEW:
            return f"{sentence} {names[fewest]} has {n}: add more of it."
        if share < learned.score - learned.spread:
            told = f"{names[weakest]} is told right least often ({share:.0%})."
            return f"{sentence} {told}"
        return sentence

    # Inside

    @property
    def _dataset(self) -> Dataset:
        assert self._session.dataset is not None
        return self._session.dataset

    def _take(self, boxes: Mapping[str, Collection[int]]) -> None:
        new = {name: tuple(sorted(rows)) for name, rows in boxes.items()}
        if new != self._session.boxes:
            self._former = [*self._former[-MOST_UNDONE:], self._session.boxes]
            self._tell(new)

    def _tell(self, boxes: Examples) -> None:
        self._session.boxes = self._shown = boxes
        self.changed.emit()

    def _source_rows(self, points: NDArray[np.bool_]) -> set[int]:
        return set(np.flatnonzero(self._dataset.kept)[points].tolist())

    def _follow(self) -> None:
        """Take up the classes of another map; other boxes have no former ones."""
        dataset, boxes = self._session.dataset, self._session.boxes
        taught = {} if dataset is None else dataset.taught
        if boxes != self._shown:
            self._former, self.column = [], TAUGHT
        self._shown, self.column = boxes, next(reversed(taught), self.column)
        self.learned, self._learned_from = None, {}
        if dataset is not None and self.column in taught:
            self._learned_from = _on_map(dataset, taught[self.column])
        self.changed.emit()


def _on_map(dataset: Dataset, examples: Examples) -> Examples:
    """Return the examples of the classes that have any among the rows of a map."""
    return {
        name: rows for name, rows in examples.items() if rows_of(dataset, rows).any()
    }
