"""How many clusters the landmarks are merged into."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QSignalBlocker, Qt, QTimer
from qtpy.QtWidgets import QHBoxLayout, QLabel, QSlider, QSpinBox, QWidget

from napari_embedding_game.session.clusters.clusters import Clusters
from napari_embedding_game.ui.connections import Connections

FEWEST = 2
REST_MS = 40
"""The slider has rested so long before the map follows it."""
STOPS = 60
"""Stops between few and many clusters, where there are as many."""


class ClusterSlider(QWidget):
    """Edits the number of clusters of a book; at its end each landmark is one.

    Parameters
    ----------
    book : Clusters
    """

    def __init__(self, book: Clusters) -> None:
        super().__init__()
        self._book = book
        self._stops = slider_stops(FEWEST)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.number = QSpinBox()
        self.shown = QLabel()
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._build()
        self._rest.timeout.connect(self._apply)
        self.slider.valueChanged.connect(self._on_slider)
        self.number.valueChanged.connect(self._on_number)
        self._connections = Connections(self)
        self._connections.connect(book.changed, self.follow)
        self.follow()

    def follow(self) -> None:
        """Show what the book says."""
        n_landmarks = self._book.n_landmarks
        self._tell_shown()
        self.setEnabled(n_landmarks > FEWEST)
        if not self.isEnabled() or self._rest.isActive():
            return
        shown = min(self._book.n_clusters or n_landmarks, n_landmarks)
        with QSignalBlocker(self.slider), QSignalBlocker(self.number):
            if self._stops[-1] != n_landmarks:
                self._stops = slider_stops(n_landmarks)
                self.slider.setRange(0, len(self._stops) - 1)
                self.number.setRange(FEWEST, n_landmarks)
            if self.number.value() != shown:  # a number may be being typed
                self.number.setValue(shown)
            self._move_slider(shown)

    def _tell_shown(self) -> None:
        """Say how many the table has, where that is another number."""
        n_shown = len(self._book.clusters)
        asked = self._book.n_clusters or self._book.n_landmarks
        is_other = 0 < n_shown != asked and self._book.n_landmarks > 0
        self.shown.setText(f"{n_shown} shown" if is_other else "")
        self.shown.setVisible(is_other)

    def _build(self) -> None:
        self.slider.setToolTip(
            "Merge the landmarks into fewer clusters, along the neighbours of their "
            "points. At the right end every landmark is a cluster of its own."
        )
        self.number.setToolTip(self.slider.toolTip())
        self.number.setKeyboardTracking(False)
        self.number.setButtonSymbols(QSpinBox.ButtonSymbols.NoButtons)
        self.number.setFixedWidth(52)
        self.number.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.shown.setToolTip(
            "So many clusters are in the table: those made by hand come on top, and "
            "those without points are left out."
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(QLabel("Clusters"))
        row.addWidget(self.slider, 1)
        row.addWidget(self.number)
        row.addWidget(self.shown)

    def _on_slider(self, stop: int) -> None:
        with QSignalBlocker(self.number):
            self.number.setValue(self._stops[stop])
        self._rest.start()

    def _on_number(self, n_clusters: int) -> None:
        with QSignalBlocker(self.slider):
            self._move_slider(n_clusters)
        self._apply()

    def _move_slider(self, n_clusters: int) -> None:
        self.slider.setValue(int(np.abs(self._stops - n_clusters).argmin()))

    def _apply(self) -> None:
        wanted = self.number.value()
        is_each = wanted >= self._book.n_landmarks
        self._book.set_n_clusters(None if is_each else wanted)


def slider_stops(n_landmarks: int) -> np.ndarray:
    """Return the numbers of clusters at a slider's stops, close among the small."""
    ends = np.geomspace(FEWEST, max(n_landmarks, FEWEST), STOPS)
    return np.unique(np.round(ends).astype(int))
