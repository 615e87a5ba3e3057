"""Line edit with completions: clusters, genes, columns and cells by name."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import QModelIndex, QStringListModel, Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QCompleter, QLineEdit

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.search import Hit, Search
from napari_embedding_game.ui.style.coloring import (
    COLUMN,
    choice_of_column,
    choice_of_value,
    metadata_columns,
)
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.worker import Latest

if TYPE_CHECKING:
    from napari_embedding_game.ui.workspace import Workspace

logger = logging.getLogger(__name__)

MOST = 12
CLUSTER, CELL = "cluster", "row"
Names = dict[str, Sequence[str]]
"""Lists of names by what they are."""
TIP = "Selects a cluster, colours by a gene or column, goes to a row (Ctrl+F, /)."
SHEET = (
    "QAbstractItemView {{ background: {ground}; color: {text}; padding: 3px; "
    "selection-background-color: {accent}; selection-color: white; }}"
)


class SearchBox(QLineEdit):
    """Offers names that match while one types; Enter takes the first.

    Names are prepared in a thread, as there may be millions; what was typed meanwhile
    is found as soon as they are there.
    """

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self._preparing = Latest(self, self._on_prepared, self._on_failed)
        self._is_entered = False
        """Whether the first name is to be taken once it is found."""
        self._search: Search | None = None
        self._is_current = False
        self._of_data: tuple[object, Names] = None, {}
        """The metadata, of which each change makes another frame, and their names."""
        self.hits: list[Hit] = []
        self._shown = QStringListModel(self)
        self._offer = QCompleter(self._shown, self)
        self._offer.setCompletionMode(
            QCompleter.CompletionMode.UnfilteredPopupCompletion
        )
        self._offer.setMaxVisibleItems(MOST)
        self._offer.setWidget(self)
        activated = self._offer.activated[QModelIndex]
        activated.connect(lambda index: self._take(index.row()))
        self.setPlaceholderText("Find a cluster, gene, measure or row  ( / )")
        self.setToolTip(TIP)
        self.setClearButtonEnabled(True)
        self.textEdited.connect(self._on_text)
        self.returnPressed.connect(lambda: self._take(0))

    @property
    def is_busy(self) -> bool:
        """Whether names are being prepared."""
        return self._preparing.is_busy

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme: the list is a window of its own."""
        ground, text = colors.foreground.name(), colors.text.name()
        sheet = SHEET.format(ground=ground, text=text, accent=colors.accent.name())
        self._offer.popup().setStyleSheet(sheet)

    def forget(self) -> None:
        """Ask for the names anew: some have changed."""
        self._is_current = False

    def begin_anew(self) -> None:
        """Search other data: what was typed is of the former ones."""
        self.forget()
        self.clear()
        self._is_entered, self.hits = False, []
        self._offer.popup().hide()

    def begin(self) -> None:
        """Put the cursor here."""
        self.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave the line on Escape; once more, and the dock hears of it."""
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
            return
        self.clear()
        self.clearFocus()
        around = self.parentWidget()
        if around is not None:
            around.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_text(self, text: str) -> None:
        self._is_entered = False
        if not self._is_current:
            self._is_current = True  # unless some change until then
            former = self._search
            self._preparing.ask(lambda: Search(self._names(), former))
        elif not self.is_busy:
            self._find()

    def _on_prepared(self, search: Search) -> None:
        self._search = search
        if self.text():
            self._find()
        if self._is_entered:
            self._take(0)

    def _on_failed(self, error: BaseException) -> None:
        self._is_current = False
        logger.error("Names could not be prepared for the search", exc_info=error)

    def _find(self) -> None:
        assert self._search is not None
        self.hits = self._search.find(self.text(), MOST)
        self._shown.setStringList([f"{hit.name}   ({hit.kind})" for hit in self.hits])
        if self.hits:
            self._offer.complete()
        else:
            self._offer.popup().hide()

    def _take(self, place: int) -> None:
        self._is_entered = self.is_busy
        if not self.is_busy and place < len(self.hits):
            hit, self.hits = self.hits[place], []
            self._offer.popup().hide()
            self.setText(hit.name)
            self._show(hit)

    def _show(self, hit: Hit) -> None:
        """Select a cluster, reveal a cell, or colour by anything else."""
        session = self._workspace.session
        if hit.kind == CLUSTER:
            clusters = session.clusters.clusters
            session.selection.replace([c.id for c in clusters if c.name == hit.name])
        elif hit.kind == CELL:
            session.selection.select_points(np.array([hit.index]))
            self._workspace.reveal.emit(hit.index)
        elif session.dataset is not None:
            columns = metadata_columns(session.dataset)
            is_column = hit.kind == COLUMN and hit.index < len(columns)
            choice_of = choice_of_column if is_column else choice_of_value
            session.look.color_by = choice_of(hit.name, session.dataset)

    def _names(self) -> Names:
        """Return all that can be searched; lists of the same data are the same."""
        session = self._workspace.session
        dataset = session.dataset
        if dataset is None:
            return {}
        if self._of_data[0] is not dataset.obs:
            self._of_data = dataset.obs, _names_of(dataset)
        clusters = [cluster.name for cluster in session.clusters.clusters]
        return {CLUSTER: clusters} | self._of_data[1]


def _names_of(dataset: Dataset) -> Names:
    columns, word = metadata_columns(dataset), dataset.word
    values = dataset.profile_names if dataset.images is None else ()  # else pixels
    names: Names = {word: values, COLUMN: columns}
    if word == COLUMN:
        names = {COLUMN: [*columns, *values]}
    # A million rows take a while to be asked one by one.
    index = dataset.obs.index
    is_text, rows = index.inferred_type == "string", index.tolist()
    return names | {CELL: rows if is_text else list(map(str, rows))}
