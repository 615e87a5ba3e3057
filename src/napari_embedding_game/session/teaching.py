"""Teach by example: points in named boxes, and the classes of all others from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.inspect.teaching import Learned
from napari_embedding_game.data.dataset import CONFIDENCE, Dataset, Examples
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.taught_classes import (
    add_classes,
    learn_examples,
    rows_of,
)

TAUGHT = "taught"
"""What the column of the classes is called where nobody names it."""
N_SHOWN = 20
"""Points that are offered together to be sorted."""
MOST_UNDONE = 100
"""Changes of the boxes that can be taken back."""
FEW = 5
"""With fewer examples of a class, its share of right ones says little."""


@dataclass(frozen=True)
class Box:
    """A named class with its examples."""

    name: str
    rows: frozenset[int] = frozenset()
    """Rows of the source."""


class Teaching:
    """The boxes of a session, and what was learned from them.

    Examples are rows of the source, so that they stay the same in maps of parts.

    ``changed`` tells that a box, or what was learned, is another one.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self.boxes: list[Box] = []
        self.column = TAUGHT
        """Name of the column of the metadata that the classes go into."""
        self.learned: Learned | None = None
        """What was learned last; None before, and on another map."""
        self._learned_from: Examples = {}
        self._dataset: Dataset | None = None
        self._stored: Examples = {}
        """The boxes as the session has them."""
        self._former: list[list[Box]] = []
        self._undone: list[list[Box]] = []
        self._n_drawn = 0
        session.dataset_changed.connect(self._on_dataset)
        self._on_dataset(session.dataset)

    # The boxes

    def add_box(self, name: str = "") -> int:
        """Add an empty box, and return its place."""
        wanted = name.strip() or f"Box {len(self.boxes) + 1}"
        self._replace([*self.boxes, Box(self._unique(wanted, self.boxes))])
        return len(self.boxes) - 1

    def rename(self, place: int, name: str) -> None:
        """Give a box another name; an empty one changes nothing."""
        box = self.boxes[place]
        wanted = name.strip()
        if wanted and wanted != box.name:
            boxes = list(self.boxes)
            others = boxes[:place] + boxes[place + 1 :]
            boxes[place] = replace(box, name=self._unique(wanted, others))
            self._replace(boxes)

    def remove(self, place: int) -> None:
        """Remove a box; its examples are in none then."""
        self._replace(self.boxes[:place] + self.boxes[place + 1 :])

    def put(self, place: int, points: NDArray[np.bool_]) -> str:
        """Put points (n,) into a box, and take them out of any other.

        Returns
        -------
        str
            A sentence on those that were in another box; "" if none were.
        """
        new = self._source_rows(points)
        taken = {
            box.name: len(box.rows & new)
            for i, box in enumerate(self.boxes)
            if i != place and box.rows & new
        }
        self._replace(
            [
                replace(box, rows=box.rows | new if i == place else box.rows - new)
                for i, box in enumerate(self.boxes)
            ]
        )
        if not taken:
            return ""
        moved = " and ".join(f"{n:,} out of {other}" for other, n in taken.items())
        return f"Moved {moved} to {self.boxes[place].name}: a point is in one box."

    def take_out(self, points: NDArray[np.bool_]) -> None:
        """Take points (n,) out of whatever box they are in."""
        gone = self._source_rows(points)
        self._replace([replace(box, rows=box.rows - gone) for box in self.boxes])

    def points(self, place: int) -> NDArray[np.bool_]:
        """(n,) whether each point of the map is in a box."""
        dataset = self._session.dataset
        assert dataset is not None
        return rows_of(dataset, self.boxes[place].rows)

    def box_of(self) -> NDArray[np.intp]:
        """(n,) place of the box that each point of the map is in; -1: in none."""
        dataset = self._session.dataset
        places = np.full(0 if dataset is None else len(dataset.obs), -1, np.intp)
        for place in range(len(self.boxes) if len(places) else 0):
            places[self.points(place)] = place
        return places

    @property
    def is_of_present_data(self) -> bool:
        """Whether the boxes are of the session's data: not while these are exchanged.

        What hears of that earlier than the boxes do, as of a selection that ends, must
        not look for their rows.
        """
        present = self._session.dataset
        return self._dataset is present or _is_same_source(self._dataset, present)

    @property
    def n_elsewhere(self) -> int:
        """Examples that are no points of this map, which may be one of a part."""
        n_examples = sum(len(box.rows) for box in self.boxes)
        return n_examples - int(np.count_nonzero(self.box_of() >= 0))

    @property
    def can_undo(self) -> bool:
        """Whether a change of the boxes can be taken back."""
        return bool(self._former)

    @property
    def can_redo(self) -> bool:
        """Whether a change that was taken back can be made again."""
        return bool(self._undone)

    def undo(self) -> None:
        """Take the last change of the boxes back."""
        if self._former:
            self._undone.append(self.boxes)
            self.boxes = self._former.pop()
            self._tell()

    def redo(self) -> None:
        """Make a change again that was taken back."""
        if self._undone:
            self._former.append(self.boxes)
            self.boxes = self._undone.pop()
            self._tell()

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
        n_filled = sum(bool(self.points(i).any()) for i in range(len(self.boxes)))
        if n_filled > 1:
            return ""
        elsewhere = self.n_elsewhere
        if elsewhere:
            return (
                f"{elsewhere:,} of the examples are not in this map of a part: put "
                "some of its points into two boxes, or go back to the whole map."
            )
        if n_filled == 0:
            return (
                "Select points on the map, or click on some below, and put them into a "
                "box: a few of each kind that is to be told apart."
            )
        return "Examples of one kind alone teach nothing: put others into another box."

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
        dataset = self._session.dataset
        assert dataset is not None
        examples = self.examples()
        return lambda: learn_examples(dataset, examples)

    def examples(self) -> Examples:
        """Return the examples of each box that has any on the map."""
        dataset = self._session.dataset
        return {} if dataset is None else _on_map(dataset, self._as_examples())

    def take_up(self, learned: Learned, examples: Examples) -> str:
        """Make what was learned columns of the metadata; return the classes' column.

        Parameters
        ----------
        examples : Examples
            What it was learned from.
        """
        dataset = self._session.dataset
        assert dataset is not None
        self.column = add_classes(dataset, self.column, learned, examples)
        self.learned, self._learned_from = learned, dict(examples)
        self._session.columns_changed.emit()
        self.changed.emit()
        return self.column

    def doubtful(self) -> NDArray[np.intp]:
        """Return the points that the classes are least sure of, examples left out."""
        dataset = self._session.dataset
        if dataset is None or not self.has_classes:
            return np.zeros(0, np.intp)
        sure = dataset.obs[self.confidence_column].to_numpy()
        confidence = np.where(self.box_of() >= 0, np.inf, sure)
        order = np.argsort(confidence, kind="stable")[:N_SHOWN]
        return order[np.isfinite(confidence[order])]

    def drawn(self) -> NDArray[np.intp]:
        """Return some points that are in no box, drawn at random, others each time."""
        free = np.flatnonzero(self.box_of() < 0)
        rng = np.random.default_rng(self._n_drawn)
        self._n_drawn += 1
        return rng.permutation(free)[:N_SHOWN]

    def told(self) -> str:
        """Return in sentences how well the classes can be told apart."""
        if self.learned is None:
            return ""
        return told(self.learned, list(self._learned_from))

    def recalls(self) -> dict[str, float]:
        """Return for each class the share of left-out examples that are told right."""
        if self.learned is None:
            return {}
        return dict(zip(self._learned_from, self.learned.recalls, strict=False))

    # Inside

    def _replace(self, boxes: list[Box]) -> None:
        if boxes == self.boxes:
            return
        self._former = [*self._former[-MOST_UNDONE:], self.boxes]
        self._undone = []
        self.boxes = boxes
        self._tell()

    def _tell(self) -> None:
        self._store()
        self.changed.emit()

    def _store(self) -> None:
        self._stored = self._session.boxes = self._as_examples()

    def _as_examples(self) -> Examples:
        return {box.name: tuple(sorted(box.rows)) for box in self.boxes}

    @staticmethod
    def _unique(wanted: str, others: list[Box]) -> str:
        taken = {box.name for box in others}
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted} {number}"
        return name

    def _source_rows(self, points: NDArray[np.bool_]) -> frozenset[int]:
        dataset = self._session.dataset
        assert dataset is not None
        return frozenset(np.flatnonzero(dataset.kept)[points].tolist())

    def _on_dataset(self, dataset: Dataset | None) -> None:
        """Keep the boxes in maps of the same source, else take up those of the data."""
        former, self._dataset = self._dataset, dataset
        taught = {} if dataset is None else dataset.taught
        is_restored = self._session.boxes is not self._stored
        if is_restored or not _is_same_source(former, dataset):
            self._former, self._undone, self.column = [], [], TAUGHT
            examples: Examples = self._session.boxes if is_restored else {}
            examples = examples or next(reversed(taught.values()), {})
            boxes = [Box(name, frozenset(rows)) for name, rows in examples.items()]
            self.boxes = boxes or [Box("Box 1"), Box("Box 2")]
            self._store()
        self.column = next(reversed(taught), self.column)
        self.learned, self._learned_from = None, {}
        if dataset is not None and self.column in taught:
            self._learned_from = _on_map(dataset, taught[self.column])
        self.changed.emit()


def _on_map(dataset: Dataset, examples: Examples) -> Examples:
    """Return the examples of the classes that have any among the rows of a map."""
    return {
        name: rows for name, rows in examples.items() if rows_of(dataset, rows).any()
    }


def _is_same_source(one: Dataset | None, other: Dataset | None) -> bool:
    if one is None or other is None:
        return False
    return bool(one.source_obs_names.equals(other.source_obs_names))


def told(learned: Learned, names: list[str]) -> str:
    """Return in sentences how well classes of these names can be told apart."""
    single = [name for name, n in zip(names, learned.counts, strict=False) if n == 1]
    if learned.score is None:
        return (
            f"Learned from {learned.n_examples} examples, but not tested: "
            f"{_listed(single)} has a single one. Add another, to be told "
            "how often the classes are right."
        )
    sentence = (
        f"{learned.score:.0%} ± {learned.spread:.0%} of unseen examples are told right "
        f"(by chance {1 / len(learned.counts):.0%}; cross-validated balanced accuracy)."
    )
    weakest = int(np.argmin(learned.recalls))
    if learned.counts.min() < FEW:
        few = names[int(learned.counts.argmin())]
        return f"{sentence} {few} has {learned.counts.min()}: add more of it."
    if learned.recalls[weakest] < learned.score - learned.spread:
        share = learned.recalls[weakest]
        return f"{sentence} {names[weakest]} is told right least often ({share:.0%})."
    return sentence


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:3])
