"""Teach by example: a few points of each class, and the classes of all others."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from qtpy.QtGui import QColor, QImage
from qtpy.QtWidgets import QHBoxLayout, QPushButton, QToolButton

from napari_embedding_game.core.inspect.teaching import Learned
from napari_embedding_game.data.dataset import Examples
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.images.picture_grid import to_qimage
from napari_embedding_game.ui.images.row_pictures import pictures_of
from napari_embedding_game.ui.inspector.table import ROW, Column, Table
from napari_embedding_game.ui.map_widget import MapWidget
from napari_embedding_game.ui.style.coloring import choice_of_column
from napari_embedding_game.ui.style.colors import category_colors
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.legend import qcolor
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.worker import Latest

if TYPE_CHECKING:
    import napari

NO_DATA = (
    "Give a few examples of each class here, and have all others classified like them. "
    "Open data in the Embedding Game first."
)
NOTHING_SELECTED = "Select points on the map first, then add them to a class."
OUTDATED = "Examples were changed since: Learn brings the map up to date."
KNOWN = "The map has these classes; Learn tests how well they can be told apart."
HOW_TESTED = (
    "Examples are left out in turn and classified by what was learned from the others; "
    "each class counts alike, however many examples it has."
)
OTHER_DATA = "Other data came while it learned, so nothing was learned: press Learn."
ENOUGH = 10
"""Examples of a class from which on its share of right ones tells something."""
TEXT_LENGTH = 80
PICTURE = 44
"""Pixels of a row with a picture."""


class TeachWidget(MapWidget):
    """The classes with their examples, and what is least sure of what was learned."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        self._session = session = self.workspace.session
        self._teaching = teaching = self.workspace.teaching
        self._learning = Latest(self, self._on_learned, self._on_failed, self._on_stage)
        self._cutting = Latest(self, self._on_pictures, self._on_failed)
        self._said = self._progress = ""
        self.classes = Table(
            Column("Class", "Double-click to type another name.", is_edited=True),
            Column("Examples", "How many points say what this class is.", str),
            Column("Unseen right", HOW_TESTED, _share),
        )
        self.doubtful = Table(
            Column("Least sure", "Points whose class is least sure: these teach most."),
            Column("Class"),
            Column("Sure", "Probability of the class.", _share),
            is_many=True,
        )
        self.add, self.learn = QPushButton("Add selection"), QPushButton("Learn")
        self.new, self.remove = QToolButton(), QToolButton()
        self.take_out, self.undo, self.accept = (
            QToolButton(),
            QToolButton(),
            QToolButton(),
        )
        self.state = text_label()
        self._build()
        self.classes.rows.edited.connect(teaching.rename)
        self.doubtful.picked.connect(self._on_picked)
        for signal, slot in (
            (teaching.changed, self.refresh),
            (session.selection.changed, self._on_selection),
            (session.dataset_changed, self._on_data),
            (self.workspace.linked.changed, self.refresh),
        ):
            self._connections.connect(signal, slot)
        self.begin()
        self._tell()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.classes.set_theme(colors)
        self.doubtful.set_theme(colors)

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self.refresh()

    def refresh(self, event: object = None) -> None:
        """Bring all up to date, while it is seen."""
        if self.isVisible():
            self._show_classes()
            self._show_doubtful()
            self._tell()

    # What a person does

    def _add(self) -> None:
        """Make the selected points examples of the chosen class."""
        if self._session.selection.is_empty:
            self._said = NOTHING_SELECTED
            self._tell()
        else:
            self._said = self._teaching.put(
                self._chosen, self._session.selection.points
            )
            self._tell()

    def _new(self) -> None:
        self._said = ""
        self.classes.choose([self._teaching.add_box()])
        self.classes.edit(self.classes.currentIndex())

    def _remove(self) -> None:
        self._said = ""
        self._teaching.remove(self._chosen)

    def _take_out(self) -> None:
        self._said = ""
        self._teaching.take_out(self._session.selection.points)

    def _undo(self) -> None:
        self._said = ""
        self._teaching.undo()

    def _accept(self) -> None:
        """Make the chosen suggestions examples of the classes that they are given."""
        rows, dataset = np.array(self.doubtful.chosen(), int), self._session.dataset
        assert dataset is not None
        told = dataset.obs[self._teaching.column].astype(str).to_numpy()
        for place, box in enumerate(self._teaching.boxes):
            points = np.zeros(len(told), bool)
            points[rows[told[rows] == box.name]] = True
            if points.any():
                self._teaching.put(place, points)

    def _learn(self) -> None:
        if self._learning.is_busy:
            self._learning.stop()
            self._progress = ""
        elif not self._teaching.refusal():
            examples, lesson = self._teaching.examples(), self._teaching.lesson()

            def learn() -> Stages[tuple[Learned, Examples]]:
                return (yield from lesson()), examples

            self._said, self._progress = "", "Learning …"
            self._learning.ask(learn)
        self._tell()

    # What happens

    def _on_stage(self, stage: Stage) -> None:
        self._progress = f"{stage.text} ({stage.share or 0:.0%}) …"
        self._tell()

    def _on_learned(self, found: tuple[Learned, Examples]) -> None:
        self._progress = ""
        column, dataset = self._teaching.take_up(*found), self._session.dataset
        assert dataset is not None
        self._session.look.color_by = choice_of_column(column, dataset)
        self.refresh()

    def _on_failed(self, error: BaseException) -> None:
        self._progress, self._said = "", sentence(error)
        self._tell()

    def _on_data(self, event: object = None) -> None:
        self._said = OTHER_DATA if self._learning.is_busy else ""
        self._learning.stop()
        self._progress = ""
        self.refresh()

    def _on_selection(self, event: object = None) -> None:
        self._said = ""
        if self.isVisible():
            self._tell()

    def _on_picked(self, rows: list[int], is_added: bool) -> None:
        self._session.selection.select_points(np.array(rows, np.intp))

    # What is shown

    @property
    def _chosen(self) -> int:
        return int((self.classes.chosen() or [0])[0])

    def _show_classes(self) -> None:
        teaching, chosen = self._teaching, self._chosen
        if self._session.dataset is None:
            return
        recalls = teaching.recalls()
        frame = pd.DataFrame(
            {
                "class": [box.name for box in teaching.boxes],
                "n": [
                    int(teaching.points(i).sum()) for i in range(len(teaching.boxes))
                ],
                "right": [recalls.get(box.name, np.nan) for box in teaching.boxes],
            }
        )
        examples = teaching.examples()  # those that have a colour on the map
        palette = dict(zip(examples, category_colors(len(examples)), strict=True))
        names = frame["class"].items()
        colors = {place: qcolor(palette[n]) for place, n in names if n in palette}
        self.classes.show_frame(frame, colors)
        self.classes.choose([min(chosen, len(frame) - 1)])

    def _show_doubtful(self) -> None:
        teaching, dataset = self._teaching, self._session.dataset
        is_there = dataset is not None and teaching.has_classes
        self.doubtful.setVisible(is_there)
        self.accept.setVisible(is_there)
        if dataset is None or not is_there:
            return
        rows, obs = teaching.doubtful(), dataset.obs
        texts = obs.index if dataset.texts is None else dataset.texts
        frame = pd.DataFrame(
            {
                "name": [textwrap.shorten(str(texts[r]), TEXT_LENGTH) for r in rows],
                "class": obs[teaching.column].astype(str).to_numpy()[rows],
                "sure": obs[teaching.confidence_column].to_numpy()[rows],
            },
            index=rows,
        )
        pictures = pictures_of(dataset, self.workspace.linked.current)
        size = ROW if pictures is None else PICTURE
        self.doubtful.verticalHeader().setDefaultSectionSize(size)
        chosen = self.doubtful.chosen()
        self.doubtful.show_frame(frame, self.doubtful.rows.colors)
        self.doubtful.choose(chosen)
        if pictures is not None:
            self._cutting.ask(lambda: {r: pictures[r] for r in rows.tolist()})

    def _on_pictures(self, found: dict[int, NDArray[Any]]) -> None:
        icons: dict[int, QImage | QColor] = {
            row: to_qimage(picture).scaledToHeight(PICTURE - 4)
            for row, picture in found.items()
        }
        chosen = self.doubtful.chosen()
        self.doubtful.show_frame(self.doubtful.rows.frame, icons)
        self.doubtful.choose(chosen)

    def _tell(self) -> None:
        teaching, has_data = self._teaching, self._session.dataset is not None
        self.learn.setText("Stop" if self._learning.is_busy else "Learn")
        for part in (self.add, self.learn, self.new, self.classes):
            part.setVisible(has_data)
        if not has_data or not teaching.has_classes:
            self.doubtful.hide()
            self.accept.hide()
        self.undo.setVisible(has_data and teaching.can_undo)
        self.remove.setVisible(has_data and len(teaching.boxes) > 1)
        rows = self._session.selection.rows
        are_examples = has_data and (teaching.box_of()[rows] >= 0).any()
        self.take_out.setVisible(bool(are_examples))
        show_text(self.state, self._sentence() if has_data else NO_DATA, "note")

    def _sentence(self) -> str:
        """Return what is to be told now."""
        teaching = self._teaching
        if self._progress:
            return self._progress
        refusal, elsewhere = teaching.refusal(), teaching.n_elsewhere
        parts = [self._said]
        if refusal:
            parts.append(refusal)
        elif teaching.is_outdated:
            parts.append(OUTDATED)
        elif teaching.has_classes:
            parts.append(teaching.told() or KNOWN)
        else:
            examples = teaching.examples()
            name = min(examples, key=lambda name: len(examples[name]))
            n, more = len(examples[name]), f"; {ENOUGH} of each class teach more"
            parts.append(f"Press Learn: {name} has {n} examples{more * (n < ENOUGH)}.")
        if elsewhere and not refusal:
            parts.append(f"{elsewhere:,} more examples are not in this map of a part.")
        return " ".join(filter(None, parts))

    def _build(self) -> None:
        for button, words, tip, slot in (
            (self.new, "New class", "Add a class.", self._new),
            (self.remove, "Remove", "Remove the chosen class.", self._remove),
            (
                self.take_out,
                "Take out",
                "The selected points are examples of no class then.",
                self._take_out,
            ),
            (self.undo, "Undo", "Take back the last change of examples.", self._undo),
            (
                self.accept,
                "Accept",
                "The chosen suggestions are right: they become examples.",
                self._accept,
            ),
        ):
            button.setText(words)
            button.setToolTip(tip)
            button.setProperty("role", "edit")
            button.clicked.connect(slot)
        self.add.setToolTip("The selected points become examples of the chosen class.")
        self.add.clicked.connect(self._add)
        self.learn.setProperty("role", "main")
        self.learn.setToolTip(
            "Learn from the examples of which class every point is, and colour the map."
        )
        self.learn.clicked.connect(self._learn)
        edits, below = QHBoxLayout(), QHBoxLayout()
        for button in (self.new, self.remove, self.take_out, self.undo):
            edits.addWidget(button)
        edits.addStretch(1)
        for button in (self.add, self.learn):
            below.addWidget(button)
        for part in (edits, below):
            part.setContentsMargins(0, 0, 0, 0)
        self.column.addLayout(edits)
        self.column.addWidget(self.classes, 2)
        self.column.addLayout(below)
        self.column.addWidget(self.state)
        self.column.addWidget(self.doubtful, 3)
        self.column.addWidget(self.accept)
        self.column.addStretch(0)


def _share(share: float) -> str:
    return f"{share:.0%}" if np.isfinite(share) else ""
