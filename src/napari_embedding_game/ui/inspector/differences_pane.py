"""Bar chart of the columns in which the selected points differ most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import Contrast, contrasts
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.inspector.bar_charts import ContrastBars
from napari_embedding_game.ui.style.form_widgets import scrolled, show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.worker import Latest

COMPARING = "Comparing …"
NO_DIFFERENCE = "No column differs: select some of the points, not all."


class DifferencesPane(QWidget):
    """Bars of the columns that differ most; they are found while it is seen."""

    def __init__(self) -> None:
        super().__init__()
        self._dataset: Dataset | None = None
        self._clusters: tuple[int, ...] = ()
        self._rows: NDArray[np.intp] | None = None
        self._is_due = False
        self._search = Latest(self, self._on_found, self._on_failed)
        self.state = text_label()
        self.bars = ContrastBars()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.state)
        layout.addWidget(scrolled(self.bars), 1)
        show_text(self.state, "")

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.bars.set_theme(colors)

    def set_dataset(self, dataset: Dataset | None) -> None:
        """Compare these rows from now on."""
        if dataset is self._dataset:
            return
        self._search.stop()
        self._dataset = dataset
        self._rows, self._is_due = None, False
        self._show(())

    def set_rows(self, rows: NDArray[np.intp], clusters: tuple[int, ...]) -> None:
        """Compare these rows with all others, now or when it is next seen.

        Parameters
        ----------
        rows : (m,) int
        clusters : tuple of int
            The clusters that they are of; none if they were selected by themselves.
            What is shown of the same clusters stays until the new figures are there.
        """
        if not clusters or clusters != self._clusters:
            self.bars.set_contrasts(())
        self._rows, self._clusters, self._is_due = rows, clusters, True
        self._catch_up()

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self._catch_up()

    def _catch_up(self) -> None:
        dataset, rows = self._dataset, self._rows
        is_wanted = self._is_due and self.isVisible()
        if not is_wanted or dataset is None or rows is None:
            return
        self._is_due = False
        points = np.zeros(len(dataset.obs), bool)
        points[rows] = True
        if not self.bars.n_rows:
            show_text(self.state, COMPARING)
        self._search.ask(lambda: contrasts(dataset, points))

    def _on_found(self, found: tuple[Contrast, ...]) -> None:
        self._show(found)
        show_text(self.state, "" if found else NO_DIFFERENCE)

    def _on_failed(self, error: BaseException) -> None:
        self._show(())
        show_text(self.state, sentence(error))

    def _show(self, found: tuple[Contrast, ...]) -> None:
        show_text(self.state, "")
        self.bars.set_contrasts(found)
