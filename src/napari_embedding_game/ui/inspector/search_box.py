"""Line edit with completions: clusters, genes, columns and cells by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from qtpy.QtCore import QModelIndex, QStringListModel, Qt
from qtpy.QtGui import QFocusEvent, QKeyEvent
from qtpy.QtWidgets import QCompleter, QLineEdit

from napari_embedding_game.session.search import Hit, Search
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.worker import Latest

logger = logging.getLogger(__name__)

MOST = 12
CLUSTER, CELL = "cluster", "row"


class SearchBox(QLineEdit):
    """Offers names that match while one types; Enter takes the first.

    Parameters
    ----------
    lists : callable
        Returns the present names by their kind; asked when a search begins.
    on_found : callable
        Receives the :class:`Hit` that was chosen.
    are_many : callable, optional
        Returns whether there are so many names that another thread prepares them;
        what was typed meanwhile is found as soon as they are there.
    """

    def __init__(
        self,
        lists: Callable[[], dict[str, Sequence[str]]],
        on_found: Callable[[Hit], None],
        are_many: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self._lists = lists
        self._on_found = on_found
        self._are_many = are_many
        self._preparing = Latest(self, self._on_prepared, self._on_failed)
        self._asked = ""
        """What was typed last."""
        self._is_entered = False
        """Whether the first name is to be taken once it is found."""
        self._search: Search | None = None
        self._is_current = False
        self.hits: list[Hit] = []
        self._names = QStringListModel(self)
        self._offer = QCompleter(self._names, self)
        self._offer.setCompletionMode(
            QCompleter.CompletionMode.UnfilteredPopupCompletion
        )
        self._offer.setMaxVisibleItems(MOST)
        self._offer.setWidget(self)
        self._offer.activated[QModelIndex].connect(
            lambda index: self._take(index.row())
        )
        self.setPlaceholderText("Find a cluster, gene, measure or row  ( / )")
        self.setToolTip(
            "A cluster is selected, a gene or a column colours the map, and to a row "
            "the camera goes. Ctrl+F or / brings you here."
        )
        self.setClearButtonEnabled(True)
        self.textEdited.connect(self._on_text)
        self.returnPressed.connect(lambda: self._take(0))

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme: the list is a window of its own."""
        self._offer.popup().setStyleSheet(
            f"QAbstractItemView {{ background: {colors.foreground.name()}; "
            f"color: {colors.text.name()}; padding: 3px; "
            f"selection-background-color: {colors.accent.name()}; "
            "selection-color: white; }"
        )

    def forget(self) -> None:
        """Ask for the names anew: some have changed."""
        self._is_current = False

    def begin_anew(self) -> None:
        """Search other data: what was typed is of the former ones."""
        self.forget()
        self.clear()
        self._asked, self._is_entered, self.hits = "", False, []
        self._offer.popup().hide()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Prepare many names before the first letter comes."""
        super().focusInEvent(event)
        if not self._is_current and self._are_many():
            self._asked = self.text()
            self._prepare()

    def begin(self) -> None:
        """Put the cursor here."""
        self.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave the line on Escape; once more, and the dock hears of it."""
        if event.key() == Qt.Key.Key_Escape:
            self.clear()
            self.clearFocus()
            around = self.parentWidget()
            if around is not None:
                around.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            super().keyPressEvent(event)

    def _on_text(self, text: str) -> None:
        self._asked, self._is_entered = text, False
        if self._preparing.is_busy:
            return
        if self._search is None or not self._is_current:
            if self._are_many():
                self._prepare()
                return
            self._search = Search(self._lists(), self._search)
            self._is_current = True
        self.hits = self._search.find(text, MOST)
        self._names.setStringList([f"{hit.name}   ({hit.kind})" for hit in self.hits])
        if self.hits:
            self._offer.complete()
        else:
            self._offer.popup().hide()

    def _prepare(self) -> None:
        """Have another thread prepare the names; then find what was typed."""
        if self._preparing.is_busy:
            return
        self._is_current = True  # unless some change until then
        former, lists = self._search, self._lists
        self._preparing.ask(lambda: Search(lists(), former))

    def _on_prepared(self, search: Search) -> None:
        self._search = search
        is_entered = self._is_entered
        if self._asked:
            self._on_text(self._asked)
        if self._preparing.is_busy:  # some names have changed meanwhile
            self._is_entered = is_entered
        elif is_entered:
            self._take(0)

    def _on_failed(self, error: BaseException) -> None:
        self._is_current = False
        logger.error("Names could not be prepared for the search", exc_info=error)

    def _take(self, place: int) -> None:
        self._is_entered = self._preparing.is_busy
        if place < len(self.hits):
            hit, self.hits = self.hits[place], []
            self._offer.popup().hide()
            self.setText(hit.name)
            self._on_found(hit)
