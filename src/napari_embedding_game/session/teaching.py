"""Teach by example: points in named boxes, and the classes of all others from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.inspect.teaching import Learned
from napari_embedding_game.data.dataset import Dataset, Examples
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.taught_classes import (
    add_classes,
    learn_examples,
    rows_of,
)

TAUGHT = "taught"
"""What the column of the classes is called where nobody names it."""
N_DOUBTFUL = 20
"""Points with the least confidence that are shown together."""
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
        """What was learned last; None before."""
        self.is_outdated = False
        """Whether the boxes were changed since."""
        self._dataset: Dataset | None = None
        self._taken: tuple[str, Examples] | None = None
        """The column that the boxes went into last, and what was in them."""
        session.dataset_changed.connect(self._on_dataset)
        self._on_dataset(session.dataset)

    # The boxes

    def add_box(self, name: str = "") -> int:
        """Add an empty box, and return its place."""
        wanted = name.strip() or f"Box {len(self.boxes) + 1}"
        self.boxes.append(Box(self._unique(wanted)))
        self._tell()
        return len(self.boxes) - 1

    def rename(self, place: int, name: str) -> None:
        """Give a box another name; an empty one changes nothing."""
        box = self.boxes[place]
        wanted = name.strip()
        if wanted and wanted != box.name:
            others = self.boxes[:place] + self.boxes[place + 1 :]
            self.boxes[place] = replace(box, name=self._unique(wanted, others))
            self._tell()

    def remove(self, place: int) -> None:
        """Remove a box; its examples are in none then."""
        del self.boxes[place]
        self._tell()

    def put(self, place: int, points: NDArray[np.bool_]) -> None:
        """Put points (n,) into a box, and take them out of any other."""
        new = self._source_rows(points)
        self.boxes = [
            replace(box, rows=box.rows | new if i == place else box.rows - new)
            for i, box in enumerate(self.boxes)
        ]
        self._tell()

    def take_out(self, points: NDArray[np.bool_]) -> None:
        """Take points (n,) out of whatever box they are in."""
        gone = self._source_rows(points)
        self.boxes = [replace(box, rows=box.rows - gone) for box in self.boxes]
        self._tell()

    def points(self, place: int) -> NDArray[np.bool_]:
        """(n,) whether each point of the map is in a box."""
        dataset = self._session.dataset
        assert dataset is not None
        return rows_of(dataset, self.boxes[place].rows)

    def refusal(self) -> str:
        """Return why nothing can be learned yet, and what to do; "" if it can."""
        dataset = self._session.dataset
        if dataset is None:
            return "Load some data first."
        if dataset.is_distances or not dataset.X.shape[1]:
            return (
                "There are no numbers here to learn from, only which rows are "
                "neighbours: choose another space under Data."
            )
        n_filled = sum(bool(self.points(i).any()) for i in range(len(self.boxes)))
        if n_filled == 0:
            return (
                "Select points with the lasso, or click on pictures, and put them into "
                "a box: some for each kind that is to be told apart."
            )
        if n_filled == 1:
            return (
                "Examples of one kind alone teach nothing: put others into another box."
            )
        return ""

    # Learning

    def lesson(self) -> Callable[[], Stages[Learned]]:
        """Return what is to be done in the background, with the boxes as they are."""
        dataset = self._session.dataset
        assert dataset is not None
        examples = self.examples()
        return lambda: learn_examples(dataset, examples)

    def examples(self) -> Examples:
        """Return the examples of each box that has any on the map."""
        filled = [b for i, b in enumerate(self.boxes) if self.points(i).any()]
        return {box.name: tuple(sorted(box.rows)) for box in filled}

    def take_up(self, learned: Learned, examples: Examples) -> str:
        """Make what was learned columns of the metadata; return the classes' column.

        Parameters
        ----------
        examples : Examples
            What it was learned from.
        """
        dataset = self._session.dataset
        assert dataset is not None
        name = add_classes(dataset, self.column, learned, examples)
        self.column, self._taken = name, (name, dict(examples))
        self.learned, self.is_outdated = learned, examples != self.examples()
        self._session.columns_changed.emit()
        self.changed.emit()
        return name

    def doubtful(self) -> NDArray[np.intp]:
        """Return the points that the classes are least sure of, examples left out."""
        if self.learned is None:
            return np.zeros(0, np.intp)
        known = np.zeros(len(self.learned.codes), bool)
        for place in range(len(self.boxes)):
            known |= self.points(place)
        confidence = np.where(known, np.inf, self.learned.confidence)
        order = np.argsort(confidence, kind="stable")[:N_DOUBTFUL]
        return order[np.isfinite(confidence[order])]

    def told(self) -> str:
        """Return in a sentence how well the classes can be told apart."""
        learned = self.learned
        if learned is None:
            return ""
        return told(learned, list(self.examples()))

    # Inside

    def _tell(self) -> None:
        self.is_outdated = self.learned is not None
        self.changed.emit()

    def _unique(self, wanted: str, others: list[Box] | None = None) -> str:
        taken = {box.name for box in (self.boxes if others is None else others)}
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
        self.learned, self.is_outdated = None, False
        stored = [] if dataset is None else list(dataset.taught.items())
        if stored and stored[-1] != self._taken:
            self._taken = stored[-1]
            self.column, examples = stored[-1]
            self.boxes = [Box(name, frozenset(rows)) for name, rows in examples.items()]
        elif not _is_same_source(former, dataset):
            self.boxes, self.column = [Box("Box 1"), Box("Box 2")], TAUGHT
            self._taken = None
        self.changed.emit()


def _is_same_source(one: Dataset | None, other: Dataset | None) -> bool:
    if one is None or other is None:
        return False
    return bool(one.source_obs_names.equals(other.source_obs_names))


def told(learned: Learned, names: list[str]) -> str:
    """Return in a sentence how well classes of these names can be told apart."""
    n = learned.n_examples
    single = [name for name, n in zip(names, learned.counts, strict=False) if n == 1]
    if learned.score is None:
        return (
            f"Learned from {n} examples, but not tested: {_listed(single)} has a "
            "single one. Add another, to be told how often the classes are right."
        )
    sentence = (
        f"Balanced accuracy {learned.score:.2f} ± {learned.spread:.2f} from {n} "
        f"examples (by chance {1 / len(learned.counts):.2f})."
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
