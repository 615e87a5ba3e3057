"""Teach by example: sort some points into boxes, and have all others sorted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import (
    QAction,
    QColor,
    QHideEvent,
    QKeySequence,
    QResizeEvent,
    QShowEvent,
)
from qtpy.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.core.inspect.teaching import Learned
from napari_embedding_game.data.dataset import Dataset, Examples
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.session.teaching import Teaching
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.picture_grid import Pictures
from napari_embedding_game.ui.inspector.teaching.example_box import (
    LAST_KEY,
    ExampleBox,
)
from napari_embedding_game.ui.inspector.teaching.example_list import ExampleList, Mark
from napari_embedding_game.ui.style.coloring import choice_of_column
from napari_embedding_game.ui.style.colors import category_colors, to_hex
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.status_label import StatusLabel
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.worker import Latest

SIDE = 50
ENOUGH = 10
"""Examples of a kind from which on its share of right ones tells something."""
WIDE, GALLERY_NARROWEST = 560, 76
"""Pixels: narrower, the map is coloured by what the main dock offers alone."""
LOWEST = 92
"""Pixels in which the head of a box and a row of pictures can be seen."""
NOTHING_SELECTED = "Nothing is selected: select points on the map, then put them."
OUTDATED = "The boxes were changed since: Learn brings the map up to date."
KNOWN = "The map has these classes; Learn tells how well they can be told apart."
HOW_TESTED = (
    "Examples are left out in turn and told by what was learned from the others; "
    "each kind counts alike, however many examples it has."
)
OTHER_DATA = "Other data came while it learned, so nothing was learned: press Learn."
NONE_SELECTED = "To sort"
ALL_SORTED = "All points are in boxes."


class TeachPane(QScrollArea):
    """The selection on the left, the boxes on the right, and Learn below.

    Parameters
    ----------
    session : Session
    teaching : Teaching
    on_pick : callable
        Receives the (m,) rows that a person has picked among those shown.
    """

    shown_changed = Signal(bool)
    """Whether a person sees it, and so means it with a key."""

    def __init__(
        self,
        session: Session,
        teaching: Teaching,
        on_pick: Callable[[NDArray[np.intp]], None],
    ) -> None:
        super().__init__()
        self._session = session
        self._teaching = teaching
        self._on_pick = on_pick
        self._is_picking = False
        self._dataset: Dataset | None = None
        self._pictures: Pictures | None = None
        self._learning = Latest(self, self._on_learned, self._on_failed, self._on_stage)
        self._offered = ""
        """What is shown to be sorted; "" if it is the selection."""
        self._said = ""
        self._progress = ""
        self._trouble = ""
        self._line = self._dim = QColor("grey")
        self.boxes: list[ExampleBox] = []
        self.gallery = ExampleList(SIDE)
        self.caption = StatusLabel()
        self.doubtful, self.random = QToolButton(), QToolButton()
        self.add, self.take_out = QToolButton(), QToolButton()
        self.learn = QPushButton("Learn")
        self.by_class, self.by_sureness = QToolButton(), QToolButton()
        self.colored_by = QLabel("Colour by")
        self.state = text_label()
        self._make_actions()
        self._build()
        self._connections = Connections(self)
        for signal, slot in (
            (teaching.changed, self.refresh),
            (session.dataset_changed, self._on_dataset),
            (session.look.events.color_by, self._on_color_by),
        ):
            self._connections.connect(signal, slot)
        self.refresh()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._line, self._dim = colors.foreground, colors.dim
        self.widget().setStyleSheet(
            'QToolButton[role="edit"] { padding: 3px 6px; }'
            'QToolButton[role="edit"]:checked {'
            f" background: {colors.accent.name()}; color: white; }}"
        )
        self.refresh()

    def set_source(self, dataset: Dataset | None, pictures: Pictures | None) -> None:
        """Show the rows of a dataset by these pictures; by texts without."""
        self._dataset, self._pictures = dataset, pictures
        self._offered = ""
        for view in (self.gallery, *(box.examples for box in self.boxes)):
            self._dress(view)
        self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up, and take the number keys."""
        super().showEvent(event)
        self._take_keys(True)
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Give the number keys back."""
        super().hideEvent(event)
        self._take_keys(False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show the buttons that have room."""
        super().resizeEvent(event)
        self._show_buttons()

    def follow(self) -> None:
        """Show what is selected now, to be sorted; what was shown, if nothing is."""
        if not self._is_picking:
            self._said = ""
            if not self._session.selection.is_empty:
                self._offered = ""
        self.refresh()

    def refresh(self) -> None:
        """Bring all up to date, while it is seen."""
        if not self.isVisible():
            return
        self._show_boxes()
        self._show_gallery()
        self._tell()

    # What a person does

    def put_selection(self, place: int) -> None:
        """Put the selected points into a box, and go on to the next to be sorted."""
        if place >= len(self._teaching.boxes):
            return
        if self._session.selection.is_empty:
            self._said = NOTHING_SELECTED
            self._tell()
            return
        rows = self._session.selection.rows
        self._said = self._teaching.put(place, self._mask(rows))
        self._tell()
        if len(rows) == 1:
            self._go_on(int(rows[0]))

    def _go_on(self, row: int) -> None:
        """Pick the next one shown that is in no box yet."""
        shown = self.gallery.shown.rows
        places = np.flatnonzero(shown == row)
        if not len(places) or len(shown) == 1:
            return
        order = np.roll(shown, -int(places[0]))
        free = order[self._teaching.box_of()[order] < 0]
        if len(free):
            self.gallery.pick(free[:1], is_told=True)

    def _take_out(self, rows: NDArray[np.intp]) -> None:
        self._said = ""
        self._teaching.take_out(self._mask(rows))

    def _take_selection_out(self) -> None:
        self._take_out(self._session.selection.rows)

    def _pick(self, rows: NDArray[np.intp]) -> None:
        self._is_picking = True
        try:
            self._on_pick(rows)
        finally:
            self._is_picking = False

    def _add(self) -> None:
        self._said = ""
        place = self._teaching.add_box()
        box = self.boxes[place]
        box.begin_naming()
        self._area.ensureWidgetVisible(box)

    def _offer(self, rows: NDArray[np.intp], words: str) -> None:
        """Show rows to be sorted one by one, and pick the first."""
        if not len(rows):
            self._said = ALL_SORTED
            self._tell()
            return
        self._offered, self._said = words.format(n=len(rows)), ""
        self.gallery.set_rows(rows)
        self.gallery.setFocus()
        self.gallery.pick(rows[:1], is_told=True)
        self.refresh()

    def _offer_doubtful(self) -> None:
        self._offer(self._teaching.doubtful(), "{n} least sure")

    def _offer_random(self) -> None:
        self._offer(self._teaching.drawn(), "{n} at random")

    # Learning

    def _learn(self) -> None:
        if self._learning.is_busy:
            self._abandon()
            self._tell()
            return
        self._said = self._trouble = ""
        examples = self._teaching.examples()
        lesson = self._teaching.lesson()

        def learn() -> Stages[tuple[Learned, Examples]]:
            return (yield from lesson()), examples

        self._learning.ask(learn)
        self._progress = "Learning …"
        self._tell()

    def _on_stage(self, stage: Stage) -> None:
        self._progress = f"{stage.text} ({stage.share or 0:.0%}) …"
        self._tell()

    def _on_learned(self, found: tuple[Learned, Examples]) -> None:
        self._progress = ""
        self._teaching.take_up(*found)
        self._color_by(self._teaching.column)
        self.refresh()

    def _on_failed(self, error: BaseException) -> None:
        self._progress = ""
        self._trouble = sentence(error)
        self._tell()

    def _abandon(self) -> None:
        self._learning.stop()
        self._progress = ""

    def _color_by(self, column: str) -> None:
        dataset = self._session.dataset
        if dataset is not None and self._teaching.has_classes:
            self._session.look.color_by = choice_of_column(column, dataset)
        self._on_color_by()

    # What happens

    def _on_dataset(self) -> None:
        self._trouble = OTHER_DATA if self._learning.is_busy else ""
        self._abandon()
        self._said = self._offered = ""
        self.refresh()

    def _on_color_by(self) -> None:
        teaching, dataset = self._teaching, self._session.dataset
        shown = ""
        has_classes = dataset is not None and teaching.has_classes
        if has_classes:
            shown = self._session.look.color_by
        for button, column in (
            (self.by_class, teaching.column),
            (self.by_sureness, teaching.confidence_column),
        ):
            is_shown = has_classes and shown == choice_of_column(column, dataset)
            button.setChecked(is_shown)

    # What is shown

    def _show_buttons(self) -> None:
        """Show the buttons that mean something now; in a small window the first."""
        has_classes, is_wide = self._teaching.has_classes, self.width() >= WIDE
        self.doubtful.setVisible(has_classes)
        self.random.setVisible(is_wide or not has_classes)
        for widget in (self.colored_by, self.by_class, self.by_sureness):
            widget.setVisible(is_wide and has_classes)

    def _show_boxes(self) -> None:
        teaching, dataset = self._teaching, self._session.dataset
        if dataset is None:
            return
        while len(self.boxes) > len(teaching.boxes):
            box = self.boxes.pop()
            box.setParent(None)
            box.deleteLater()
        while len(self.boxes) < len(teaching.boxes):
            self._add_box_view()
        recalls, learned = teaching.recalls(), teaching.learned
        counts = {}
        if learned is not None and recalls:
            counts = dict(zip(recalls, learned.counts.tolist(), strict=False))
        for view, box, color in zip(
            self.boxes, teaching.boxes, self._colors(), strict=True
        ):
            rows = np.flatnonzero(teaching.points(self.boxes.index(view)))
            share = recalls.get(box.name)
            tip = f"{len(rows):,} example" + "s" * (len(rows) != 1)
            if share is not None:
                tip += (
                    f". Left out of the learning, {share:.0%} of the "
                    f"{counts[box.name]:,} that there were are told right."
                )
            view.set_box(box.name, rows, share, tip)
            view.set_color(color, self._line)
            view.remove.setEnabled(len(self.boxes) > 1)

    def _add_box_view(self) -> None:
        place = len(self.boxes)
        box = ExampleBox(place + 1)
        box.put_requested.connect(partial(self.put_selection, place))
        box.renamed.connect(partial(self._teaching.rename, place))
        box.remove_requested.connect(partial(self._teaching.remove, place))
        box.picked.connect(self._pick)
        box.taken_out.connect(self._take_out)
        self._dress(box.examples)
        self.boxes.append(box)
        self._row.insertWidget(place, box, 1)

    def _colors(self) -> list[QColor]:
        """Return the colour that each box's class has on the map."""
        examples = self._teaching.examples()
        palette = category_colors(len(examples))
        by_name = {n: QColor(to_hex(c)) for n, c in zip(examples, palette, strict=True)}
        return [by_name.get(box.name, self._dim) for box in self._teaching.boxes]

    def _show_gallery(self) -> None:
        selection, teaching = self._session.selection, self._teaching
        is_new = not (self._offered or self._is_picking or selection.is_empty)
        if is_new:
            shown = self.gallery.shown.rows
            rows = selection.rows
            is_part = len(rows) and len(shown) and np.isin(rows, shown).all()
            if not (is_part and selection.is_of_points and len(rows) == 1):
                self.gallery.set_rows(rows)
        places, colors = teaching.box_of(), self._colors()
        shown = self.gallery.shown.rows
        shown = shown[shown < len(places)]
        marks = {
            row: Mark(str(places[row] + 1), colors[places[row]])
            for row in shown[places[shown] >= 0].tolist()
        }
        self.gallery.shown.set_marks(marks)
        one = selection.rows if selection.is_of_points else np.zeros(0, np.intp)
        if len(one) < len(shown) or self._offered:
            self.gallery.pick(one)
        for box in self.boxes:
            box.examples.pick(one)
        self._show_caption()

    def _show_caption(self) -> None:
        n = len(self.gallery.shown.rows)
        words = self._offered or (f"{n:,} to sort" if n else NONE_SELECTED)
        self.caption.setText(words)
        self.caption.setToolTip(words)

    def _tell(self) -> None:
        teaching = self._teaching
        refusal = teaching.refusal()
        is_busy = self._learning.is_busy
        self.learn.setText("Stop" if is_busy else "Learn")
        self.learn.setEnabled(is_busy or not refusal)
        self.doubtful.setEnabled(not is_busy)
        self._show_buttons()
        selection = self._session.selection
        sorted_ = teaching.box_of()[selection.rows] >= 0
        self.take_out.setEnabled(bool(sorted_.any()))
        for box in self.boxes:
            box.put.setEnabled(not selection.is_empty)
        self.undo.setEnabled(teaching.can_undo)
        self.redo.setEnabled(teaching.can_redo)
        self._on_color_by()
        role = "warning" if self._trouble else "note"
        show_text(self.state, self._sentence(refusal), role)
        self.state.setToolTip(HOW_TESTED if teaching.learned is not None else "")

    def _sentence(self, refusal: str) -> str:
        """Return what is to be told now."""
        teaching = self._teaching
        if self._progress:
            return self._progress
        parts = [self._said]
        if self._trouble:
            parts.append(self._trouble)
        elif refusal:
            parts.append(refusal)
        elif teaching.is_outdated:
            parts.append(OUTDATED)
        elif teaching.has_classes:
            parts.append(teaching.told() or KNOWN)
        else:
            parts.append(self._counts())
        elsewhere = teaching.n_elsewhere
        if elsewhere and not refusal:
            parts.append(
                f"{elsewhere:,} more examples are not in this map of a part, and not "
                "learned from here."
            )
        return " ".join(filter(None, parts))

    def _counts(self) -> str:
        examples = self._teaching.examples()
        smallest = min(examples, key=lambda name: len(examples[name]))
        n = len(examples[smallest])
        if n >= ENOUGH:
            return "Press Learn: all other points are sorted as these are."
        return (
            f"Press Learn, or add more first: {smallest} has {n}, and {ENOUGH} or more "
            "of each kind tell more."
        )

    # Making

    def _mask(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        n = 0 if self._session.dataset is None else len(self._session.dataset.obs)
        mask = np.zeros(n, bool)
        mask[rows[rows < n]] = True
        return mask

    def _dress(self, view: ExampleList) -> None:
        """Let a list show the rows of the present data."""
        dataset = self._dataset
        view.set_rows(np.zeros(0, np.intp))
        view.set_pictures(self._pictures)
        view.shown.row_name = self._named
        if dataset is not None:
            names = dataset.obs.index
            view.shown.text = lambda row: str(names[row])
        if dataset is not None and dataset.texts is not None:
            texts = dataset.texts
            view.shown.text = lambda row: str(texts[row])

    def _named(self, row: int) -> str:
        """Return the name of a row, and what it was told to be."""
        dataset, teaching = self._session.dataset, self._teaching
        if dataset is None or row >= len(dataset.obs):
            return ""
        name = str(dataset.obs.index[row])
        if not teaching.has_classes:
            return name
        told = dataset.obs[teaching.column].iloc[row]
        sure = dataset.obs[teaching.confidence_column].iloc[row]
        return f"{name}: {told}, {sure:.0%} sure"

    def let_have_keys(self, are_ours: bool) -> None:
        """Take the keys of undo and redo, or leave them to the clusters."""
        for action, key in ((self.undo, "Ctrl+Z"), (self.redo, "Ctrl+Shift+Z")):
            action.setShortcut(QKeySequence(key if are_ours else ""))

    def _take_keys(self, are_taken: bool) -> None:
        for action in self.keys:
            action.setEnabled(are_taken)
        self.shown_changed.emit(are_taken)

    def _make_actions(self) -> None:
        self.keys = []
        """Actions that put the selection into each box."""
        for number in range(1, LAST_KEY + 1):
            action = QAction(f"Put into box {number}", self)
            action.setShortcut(str(number))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            action.triggered.connect(partial(self._on_key, number - 1))
            action.setEnabled(False)
            self.keys.append(action)
        self.undo = QAction("↶", self)
        self.redo = QAction("↷", self)
        self.undo.setToolTip("Take back what was last done to the boxes (Ctrl+Z).")
        self.redo.setToolTip("Do again what was taken back (Ctrl+Shift+Z).")
        self.undo.triggered.connect(lambda: self._step(self._teaching.undo))
        self.redo.triggered.connect(lambda: self._step(self._teaching.redo))

    def _on_key(self, place: int, is_checked: bool = False) -> None:
        self.put_selection(place)

    def _step(self, step: Callable[[], None]) -> None:
        self._said = ""
        step()

    def _build(self) -> None:
        for button, words, tip, slot in (
            (
                self.doubtful,
                "Least sure",
                "Show the points that it is least sure of: sorting these teaches most.",
                self._offer_doubtful,
            ),
            (
                self.random,
                "Random",
                "Show some points drawn at random: they are as mixed as the data.",
                self._offer_random,
            ),
            (
                self.take_out,
                "Take out",
                "Take the selected points out of their boxes (Delete).",
                self._take_selection_out,
            ),
            (self.add, "+", "Add a box for another kind.", self._add),
        ):
            button.setText(words)
            button.setToolTip(tip)
            button.setProperty("role", "edit")
            button.clicked.connect(slot)
        self.learn.setProperty("role", "main")
        self.learn.setToolTip(
            "Learn from the boxes what kind every point is, and colour the map by it."
        )
        self.learn.clicked.connect(self._learn)
        for button, words, tip in (
            (
                self.by_class,
                "Class",
                "Colour the map by the class of each point.",
            ),
            (self.by_sureness, "Sureness", "Colour the map by how sure each class is."),
        ):
            button.setText(words)
            button.setToolTip(tip)
            button.setCheckable(True)
            button.setProperty("role", "edit")
        self.by_class.clicked.connect(lambda: self._color_by(self._teaching.column))
        self.by_sureness.clicked.connect(
            lambda: self._color_by(self._teaching.confidence_column)
        )
        self.gallery.setToolTip("Pick one or more, and press the number of a box.")
        self.gallery.picked.connect(self._pick)
        self.gallery.taken_out.connect(self._take_out)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(3)
        column.addLayout(self._head())
        column.addWidget(self.state)
        column.addWidget(self._views(), 1)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setWidget(inside)

    def _head(self) -> QHBoxLayout:
        head = QHBoxLayout()
        head.setSpacing(3)
        head.addWidget(self.learn)
        head.addWidget(self.doubtful)
        head.addWidget(self.random)
        head.addWidget(self.colored_by)
        head.addWidget(self.by_class)
        head.addWidget(self.by_sureness)
        head.addStretch(1)
        head.addWidget(self.take_out)
        for action in (self.undo, self.redo):
            button = QToolButton()
            button.setDefaultAction(action)
            button.setProperty("role", "edit")
            head.addWidget(button)
        return head

    def _views(self) -> QSplitter:
        """Return the gallery beside the boxes."""
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.caption)
        column.addWidget(self.gallery, 1)
        self.gallery.setMinimumHeight(SIDE // 2)
        inside = QWidget()
        self._row = QHBoxLayout(inside)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        self._row.addWidget(self.add)
        policies = QSizePolicy.Policy
        self.add.setFixedWidth(22)
        self.add.setSizePolicy(policies.Fixed, policies.Expanding)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QScrollArea.Shape.NoFrame)
        self._area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(inside)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(left)
        splitter.addWidget(self._area)
        splitter.setChildrenCollapsible(False)
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 7)
        splitter.setSizes([270, 730])
        left.setMinimumWidth(GALLERY_NARROWEST)
        # Of the height it takes what is there, and no less than is of use.
        splitter.setSizePolicy(policies.Expanding, policies.Ignored)
        splitter.setMinimumHeight(LOWEST)
        return splitter
