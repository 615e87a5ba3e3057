"""Teach by example: a few points of each class, and the classes of all others."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.teaching import Learned
from napari_embedding_game.data.dataset import Examples
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.images.picture_grid import to_qimage
from napari_embedding_game.ui.images.row_pictures import pictures_of
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.coloring import choice_of_column
from napari_embedding_game.ui.style.colors import category_colors
from napari_embedding_game.ui.style.layouts import push_button, row
from napari_embedding_game.ui.style.legend import qcolor
from napari_embedding_game.ui.style.table import ROW, Column, Table
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
TIPS = {
    "new": "Add a class.",
    "remove": "Remove the chosen class.",
    "take_out": "The selected points are examples of no class then.",
    "undo": "Take back the last change of examples.",
    "add": "The selected points become examples of the chosen class.",
    "learn": "Learn from the examples of which class every point is, and colour the "
    "map.",
    "accept": "The chosen suggestions are right: they become examples.",
}
OTHER_DATA = "Other data came while it learned, so nothing was learned: press Learn."
ENOUGH = 10
"""Examples of a class from which on its share of right ones tells something."""
TEXT_LENGTH = 80
PICTURE = 44
"""Pixels of a row with a picture."""


class TeachWidget(MapTool):
    """The classes with their examples, and what is least sure of what was learned."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        self._teaching, session = self.workspace.teaching, self._session
        self._learning = Latest(self, self._on_learned, self._on_failed, self.say_stage)
        self._cutting = Latest(self, self._on_pictures, self._on_failed)
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
        teaching, button = self._teaching, push_button
        self.new = button("New class", TIPS["new"], self._new)
        self.remove = button(
            "Remove", TIPS["remove"], lambda: teaching.remove(self._chosen)
        )
        self.take_out = button(
            "Take out",
            TIPS["take_out"],
            lambda: teaching.take_out(session.selection.points),
        )
        self.undo = button("Undo", TIPS["undo"], teaching.undo)
        self.add = button("Add selection", TIPS["add"], self._add)
        self.learn = button("Learn", TIPS["learn"], self._learn, "main")
        self.accept = button("Accept", TIPS["accept"], self._accept)
        self.classes.rows.edited.connect(teaching.rename)
        self.doubtful.picked.connect(self._on_picked)
        for signal, slot in (
            (teaching.changed, self.refresh),
            (session.selection.changed, self._tell_soon),
            (session.dataset_changed, self._on_data),
            (self.workspace.linked.changed, self.refresh),
        ):
            self._connections.connect(signal, slot)
        self.lay_out(
            row(self.new, self.remove, self.take_out, self.undo),
            self.classes,
            row(self.add, self.learn),
            self.state,
            self.doubtful,
            self.accept,
        )
        for table, stretch in ((self.classes, 2), (self.doubtful, 3)):
            self.column.setStretchFactor(table, stretch)
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
        selection = self._session.selection
        if selection.is_empty:
            self._tell(NOTHING_SELECTED)
        else:
            self._tell(self._teaching.put(self._chosen, selection.points))

    def _new(self) -> None:
        self.classes.choose([self._teaching.add_box()])
        self.classes.edit(self.classes.currentIndex())

    def _accept(self) -> None:
        """Make the chosen suggestions examples of the classes that they are given."""
        rows, dataset = np.array(self.doubtful.chosen(), int), self._session.dataset
        assert dataset is not None
        given = dataset.obs[self._teaching.column].astype(str).to_numpy()
        for place, name in enumerate(self._teaching.boxes):
            points = np.zeros(len(given), bool)
            points[rows[given[rows] == name]] = True
            if points.any():
                self._teaching.put(place, points)

    def _learn(self) -> None:
        if self._learning.is_busy:
            self._learning.stop()
        elif not self._teaching.refusal():
            examples, lesson = self._teaching.examples(), self._teaching.lesson()

            def learn() -> Stages[tuple[Learned, Examples]]:
                return (yield from lesson()), examples

            self._learning.ask(learn)
        self._tell()

    # What happens

    def _on_learned(self, found: tuple[Learned, Examples]) -> None:
        column, dataset = self._teaching.take_up(*found), self._session.dataset
        assert dataset is not None
        self._session.look.color_by = choice_of_column(column, dataset)
        self.refresh()

    def _on_failed(self, error: BaseException) -> None:
        self._tell(sentence(error))

    def _on_data(self, event: object = None) -> None:
        text = OTHER_DATA if self._learning.is_busy else ""
        self._learning.stop()
        self.refresh()
        self._tell(text)

    def _on_picked(self, rows: list[int], is_added: bool) -> None:
        self._session.selection.select_points(np.array(rows, np.intp))

    def _tell_soon(self, event: object = None) -> None:
        if self.isVisible():
            self._tell()

    # What is shown

    @property
    def _chosen(self) -> int:
        return int((self.classes.chosen() or [0])[0])

    def _show_classes(self) -> None:
        teaching, chosen = self._teaching, self._chosen
        if self._session.dataset is None:
            return
        recalls, names = teaching.recalls(), list(teaching.boxes)
        counts = [int(teaching.points(i).sum()) for i in range(len(names))]
        rights = [recalls.get(name, np.nan) for name in names]
        examples = teaching.examples()  # those that have a colour on the map
        palette = dict(zip(examples, category_colors(len(examples)), strict=True))
        colors = {i: qcolor(palette[n]) for i, n in enumerate(names) if n in palette}
        frame = pd.DataFrame({"class": names, "n": counts, "right": rights})
        self.classes.show_frame(frame, colors)
        self.classes.choose([min(chosen, len(frame) - 1)])

    def _show_doubtful(self) -> None:
        teaching, dataset = self._teaching, self._session.dataset
        if dataset is None or not teaching.has_classes:
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
        self._fill(frame, self.doubtful.rows.colors)
        if pictures is not None:
            self._cutting.ask(lambda: {r: pictures[r] for r in rows.tolist()})

    def _on_pictures(self, found: dict[int, NDArray[Any]]) -> None:
        size = PICTURE - 4
        icons = {r: to_qimage(x).scaledToHeight(size) for r, x in found.items()}
        self._fill(self.doubtful.rows.frame, icons)

    def _fill(self, frame: pd.DataFrame, icons: Any) -> None:
        """Show the least sure, and choose those that were chosen."""
        chosen = self.doubtful.chosen()
        self.doubtful.show_frame(frame, icons)
        self.doubtful.choose(chosen)

    def _tell(self, said: str = "") -> None:
        """Show what can be done, and say it after what has been done."""
        teaching, has_data = self._teaching, self._session.dataset is not None
        is_busy, has_classes = self._learning.is_busy, has_data and teaching.has_classes
        rows = self._session.selection.rows
        are_examples = has_data and bool((teaching.box_of()[rows] >= 0).any())
        self.learn.setText("Stop" if is_busy else "Learn")
        for part, is_shown in (
            *((one, has_data) for one in (self.add, self.learn, self.new)),
            (self.classes, has_data),
            (self.doubtful, has_classes),
            (self.accept, has_classes),
            (self.undo, has_data and teaching.can_undo),
            (self.remove, has_data and len(teaching.boxes) > 1),
            (self.take_out, are_examples),
        ):
            part.setVisible(is_shown)
        if not is_busy:
            self.say(f"{said} {self._sentence()}".strip() if has_data else NO_DATA)

    def _sentence(self) -> str:
        """Return what is to be done now."""
        teaching = self._teaching
        refusal, elsewhere = teaching.refusal(), teaching.n_elsewhere
        if refusal:
            return refusal
        if teaching.is_outdated:
            text = OUTDATED
        elif teaching.has_classes:
            text = teaching.told() or KNOWN
        else:
            examples = teaching.examples()
            name = min(examples, key=lambda name: len(examples[name]))
            n, more = len(examples[name]), f"; {ENOUGH} of each class teach more"
            text = f"Press Learn: {name} has {n} examples{more * (n < ENOUGH)}."
        more = f" {elsewhere:,} more examples are not in this map of a part."
        return text + more * bool(elsewhere)


def _share(share: float) -> str:
    return f"{share:.0%}" if np.isfinite(share) else ""
