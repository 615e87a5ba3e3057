"""Line edit with completions: clusters, genes, columns and cells by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qtpy.QtCore import QModelIndex, QStringListModel, Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QCompleter, QLineEdit

from napari_embedding_game.session.search import Hit, Search
from napari_embedding_game.ui.style.theme import ThemeColors

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
    """

    def __init__(
        self,
        lists: Callable[[], dict[str, Sequence[str]]],
        on_found: Callable[[Hit], None],
    ) -> None:
        super().__init__()
        self._lists = lists
        self._on_found = on_found
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
        if self._search is None or not self._is_current:
            self._search = Search(self._lists(), self._search)
            self._is_current = True
        self.hits = self._search.find(text, MOST)
        self._names.setStringList([f"{hit.name}   ({hit.kind})" for hit in self.hits])
        if self.hits:
            self._offer.complete()
        else:
            self._offer.popup().hide()

    def _take(self, place: int) -> None:
        if place < len(self.hits):
            hit, self.hits = self.hits[place], []
            self._offer.popup().hide()
            self.setText(hit.name)
            self._on_found(hit)
