"""A slider for the number of clusters into which the landmarks are merged."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import QSlider, QSpinBox
from superqt.utils import qdebounced

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.inspector.firmness_strip import FirmnessStrip
from napari_embedding_game.ui.style.form_widgets import form_layout, set_role
from napari_embedding_game.ui.style.layouts import (
    horizontal_box,
    vertical_box,
    widget_with_layout,
)

MIN_CLUSTERS = 1
DELAY_MS = 40
"""Milliseconds that the slider rests before the map is updated."""
MAX_STOPS = 60
"""Stops of the slider, at most."""
TIP = (
    "Fewer, larger clusters, or more, smaller ones; no point moves. Until you "
    "choose, very small ones are merged."
)


class ClusterSlider(Listener):
    """Sets the number of clusters; at the right end each landmark is a cluster."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._clusters = clusters = session.clusters
        self._stops = find_slider_stops(MIN_CLUSTERS)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.number = QSpinBox()
        self.slider.setToolTip(TIP)
        self.number.setToolTip(TIP)
        self.number.setKeyboardTracking(False)
        set_role(self.number, "number")
        self.strip = FirmnessStrip()
        rows = form_layout(
            (
                "Clusters",
                widget_with_layout(horizontal_box(self.slider, self.number)),
                TIP,
            )
        )
        self.setLayout(vertical_box(rows, self.strip))
        self._apply_number_soon = qdebounced(self._apply_number, DELAY_MS, parent=self)
        self._is_moving = False
        """Whether the slider moves and its number is not applied yet."""
        self.slider.valueChanged.connect(self._on_slider_moved)
        self.number.valueChanged.connect(self._on_number_changed)
        line_edit = self.number.lineEdit()
        assert line_edit is not None
        line_edit.returnPressed.connect(
            lambda: self._on_number_changed(self.number.value())
        )
        self.strip.picked.connect(self._on_bar_picked)
        self.connect_while_open(self.update_view, clusters.changed)
        self.update_view()

    def update_view(self) -> None:
        """Show the present number of clusters, unless a number is being chosen.

        The slider is disabled where landmarks cannot be merged.
        """
        clusters, n_landmarks = self._clusters, self._clusters.n_landmarks
        # Without a chosen number small clusters are merged: count the visible ones.
        n_clusters = clusters.state.n_clusters or len(clusters.clusters) or n_landmarks
        self.setEnabled(n_landmarks > MIN_CLUSTERS)
        text = self.number.text()  # "" before any number was shown
        is_typing = bool(text) and text != str(self.number.value())
        if not self.isEnabled() or self._is_moving or is_typing:
            return
        n_clusters = min(n_clusters, n_landmarks)
        with QSignalBlocker(self.slider), QSignalBlocker(self.number):
            if self._stops[-1] != n_landmarks:
                self._stops = find_slider_stops(n_landmarks)
                self.slider.setRange(0, len(self._stops) - 1)
                self.number.setRange(MIN_CLUSTERS, n_landmarks)
            self.number.setValue(n_clusters)
            self._move_slider(n_clusters)

    def _on_slider_moved(self, stop: int) -> None:
        """Show the number of clusters of a stop; apply it once the slider rests."""
        with QSignalBlocker(self.number):
            self.number.setValue(self._stops[stop])
        self._is_moving = True
        self._apply_number_soon.throttle()

    def _on_bar_picked(self, n_clusters: int) -> None:
        """Apply a number, even the number that the box already shows."""
        self.number.setValue(n_clusters)
        self._apply_number()

    def _on_number_changed(self, n_clusters: int) -> None:
        """Move the slider to a number of clusters, and apply the number at once."""
        with QSignalBlocker(self.slider):
            self._move_slider(n_clusters)
        self._apply_number()

    def _move_slider(self, n_clusters: int) -> None:
        """Move the slider to the stop that is nearest to a number."""
        self.slider.setValue(int(np.abs(self._stops - n_clusters).argmin()))

    def _apply_number(self) -> None:
        """Set the number of clusters that the box shows; None for all landmarks."""
        self._is_moving, n_clusters = False, self.number.value()
        is_all = n_clusters >= self._clusters.n_landmarks
        self._clusters.set_n_clusters(None if is_all else n_clusters)


def find_slider_stops(n_landmarks: int) -> np.ndarray:
    """Return the number of clusters at each stop, (m,) int, m at most MAX_STOPS.

    The numbers increase in a geometric series from MIN_CLUSTERS to ``n_landmarks``.
    """
    ends = np.geomspace(MIN_CLUSTERS, max(n_landmarks, MIN_CLUSTERS), MAX_STOPS)
    return np.unique(np.round(ends).astype(int))
