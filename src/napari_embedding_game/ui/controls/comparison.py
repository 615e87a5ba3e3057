"""Compare the map on show with another: what differs, and both side by side."""

from __future__ import annotations

from qtpy.QtWidgets import QWidget

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.comparing import Compared, comparing_job
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import CLUSTER, MOVEMENT
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.layouts import column, push_button
from napari_embedding_game.ui.tasks.worker import Latest


class Comparison(QWidget):
    """What differs between this map and the other, which lies beside it."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session, view = session, session.view
        self._working = Latest(self, self._take, self._on_failed)
        self.words = text_label()
        end = "End comparison", "Show this map as it is.", self._on_end
        self.close_button = push_button(*end)
        parts = self.words, self.close_button
        self.setLayout(column(*parts, spacing=3, margins=(0, 2, 0, 2)))
        connections = Connections(self)
        connections.call(view.end_comparison)
        changes = view.compared_changed, view.laid_out
        connections.connect_all(changes, self.refresh)
        self.refresh()

    def begin(self, number: int) -> None:
        """Compare the map on show with the mark of this number."""
        try:
            self._working.ask(comparing_job(self._session, number))
        except DataError as error:
            self._session.say(str(error))
        self.refresh()

    def refresh(self, *event: object) -> None:
        """Show the comparison as it is."""
        view, look = self._session.view, self._session.look
        compared, is_busy = view.compared, self._working.is_busy
        self.setVisible(is_busy or compared is not None)
        if is_busy:
            show_text(self.words, "Comparing the two maps …")
        elif compared is not None:
            show_text(self.words, compared.told())
        elif look.color_by == MOVEMENT:
            look.color_by = CLUSTER

    def _take(self, compared: Compared) -> None:
        self._session.view.compare(compared)
        self.refresh()

    def _on_failed(self, error: BaseException) -> None:
        self._session.say(sentence(error))
        self.refresh()

    def _on_end(self) -> None:
        self._working.stop()
        self._session.view.end_comparison()
        self.refresh()
