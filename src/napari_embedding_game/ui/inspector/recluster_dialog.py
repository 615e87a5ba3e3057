"""A dialog that asks how selected points are to be clustered."""

from __future__ import annotations

from qtpy.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.session.clusters.merging import has_leiden
from napari_embedding_game.session.reclustering import ReclusterChoice
from napari_embedding_game.ui.style.form_widgets import text_label

TITLE = "Cluster again"
NESTED, LEIDEN, LEIDEN_NUMBER = "landmarks", "leiden", "leiden number"
WAYS = {
    LEIDEN: "Leiden, by resolution",
    LEIDEN_NUMBER: "Leiden, by number",
    NESTED: "Nested landmarks, by number",
}
MOST_PARTS = 60
MEANS = (
    "Finds clusters among the {} selected points alone, along their nearest neighbours "
    "in the data. No point moves; Undo brings the former clusters back."
)
NO_LEIDEN = (
    'For Leiden\'s method: pip install "napari-embedding-game[leiden]", then open '
    "napari again."
)


class ReclusterDialog(QDialog):
    """Asks for the way and the number of parts; ``choice`` tells them.

    Parameters
    ----------
    n_points : int
        How many are selected.
    parent : QWidget, optional
    """

    def __init__(self, n_points: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(TITLE)
        self.way = QComboBox()
        self.n_parts = QSpinBox()
        self.resolution = QDoubleSpinBox()
        has_two = has_leiden()
        for way, words in WAYS.items():
            if has_two or way == NESTED:
                self.way.addItem(words, way)
        self.way.setToolTip(
            "Leiden: as scanpy's tl.leiden on these points. Nested landmarks: middles "
            "fitted to these points, merged along their neighbours."
        )
        self.n_parts.setRange(2, max(2, min(MOST_PARTS, n_points)))
        self.n_parts.setValue(3)
        self.n_parts.setToolTip("How many clusters are to be made of these points.")
        self.resolution.setRange(0.05, 10.0)
        self.resolution.setSingleStep(0.1)
        self.resolution.setValue(1.0)
        self.resolution.setToolTip("The higher, the more clusters; scanpy begins at 1.")
        ways = QDialogButtonBox.StandardButton
        self.buttons = QDialogButtonBox(ways.Ok | ways.Cancel)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self._rows = QFormLayout()
        self._rows.addRow("Way", self.way)
        self._rows.addRow("Parts", self.n_parts)
        self._rows.addRow("Resolution", self.resolution)
        layout = QVBoxLayout(self)
        layout.addWidget(text_label(MEANS.format(f"{n_points:,}")))
        layout.addLayout(self._rows)
        if not has_two:
            layout.addWidget(text_label(NO_LEIDEN))
        layout.addWidget(self.buttons)
        self.setMinimumWidth(360)
        self.way.currentIndexChanged.connect(self._follow)
        self._follow()

    @property
    def choice(self) -> ReclusterChoice:
        """How the points are to be clustered."""
        way = self.way.currentData()
        n_parts = self.n_parts.value()
        if way == NESTED:
            return ReclusterChoice("landmarks", n_parts)
        resolution = self.resolution.value() if way == LEIDEN else None
        return ReclusterChoice("leiden", n_parts, resolution)

    def _follow(self, *index: object) -> None:
        """Ask for what the way goes by."""
        is_by_resolution = self.way.currentData() == LEIDEN
        self._rows.setRowVisible(self.resolution, is_by_resolution)
        self._rows.setRowVisible(self.n_parts, not is_by_resolution)
