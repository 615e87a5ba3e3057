"""Predict the labels of the cells on show from a reference, and colour by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.predicted import PredictedLabels
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.reference.labels import (
    PlacedCells,
    first_label,
    load_reference,
    place_cells,
    predict_labels,
    told_of,
)
from napari_embedding_game.session.reference.reference_map import ReferenceMap
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import choice_of_column
from napari_embedding_game.ui.style.form_widgets import (
    Fold,
    let_be_narrow,
    show_text,
    text_label,
)
from napari_embedding_game.ui.tasks.worker import Latest

FILES = "Saved maps (*.h5ad)"
HINT = (
    "Choose a map that was saved as .h5ad: its cells vote on what those on show are, "
    "and these can be placed on it."
)
PLACED = (
    "Pale points are the cells of the reference; a click on the former map's name, at "
    "the top, takes you back."
)
MUCH_UNLIKE = 0.05
"""Share of cells unlike the reference from which on that is a warning."""


class ReferencePanel(QWidget):
    """A fold with the reference, the column that is predicted, and a button.

    The labels, their confidence and how like the reference each cell is become columns
    of the metadata; the map is coloured by the labels.  A second button places the
    cells on the map of the reference, which is a map of its own.

    Parameters
    ----------
    session : Session
    """

    placed = Signal(object)
    """The :class:`~.session.reference.labels.PlacedCells` that are to be shown."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._jobs = Latest(self, self._on_returned, self._on_failed, self._on_stage)
        self._reference: ReferenceMap | None = None
        self._path = Path()
        self.file = QPushButton("Open a reference…")
        self.cancel = QPushButton("Cancel")
        self.label = QComboBox()
        self.predict = QPushButton("Predict")
        self.place = QPushButton("Place on its map")
        self.correct = QCheckBox("Take a batch effect away")
        self.state = text_label()
        self.fold = Fold("Labels from a reference", self._inside())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.fold)
        self.file.clicked.connect(self._open)
        self.cancel.clicked.connect(self._cancel)
        self.predict.clicked.connect(self._predict)
        self.place.clicked.connect(self._place)
        self._connections = Connections(self)
        self._connections.connect(session.dataset_changed, self._on_dataset)
        self._on_dataset(session.dataset)

    # Inside

    def _inside(self) -> QWidget:
        self.file.setToolTip(
            "Choose an .h5ad file that this program has saved, with cells whose "
            "labels are known."
        )
        self.cancel.setToolTip("Stop; what was predicted before stays.")
        self.label.setToolTip("Column of the reference that is predicted.")
        let_be_narrow(self.label, 10)
        self.predict.setToolTip(
            "Predict the label of every cell on show, and colour the map by it. How "
            "sure each is, and whether it is like the reference at all, are columns, "
            "too."
        )
        self.place.setToolTip(
            "Open a map with the reference's cells in pale colours and those on show "
            "where they belong among them; the present map stays, one step back."
        )
        self.correct.setToolTip(
            "First take away the difference that another batch makes between these "
            "cells and those of the same kind in the reference. Only where both hold "
            "about the same kinds: others would be moved to what they are not."
        )
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        top, below = QHBoxLayout(), QHBoxLayout()
        top.addWidget(self.file, 1)
        top.addWidget(self.cancel)
        below.addWidget(self.label, 1)
        below.addWidget(self.predict)
        column.addLayout(top)
        column.addLayout(below)
        column.addWidget(self.place)
        column.addWidget(self.correct)
        column.addWidget(self.state)
        return inside

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._jobs.stop()
        self.setVisible(dataset is not None and dataset.has_expression)
        self._tell_reference()
        self._show()

    def _show(self) -> None:
        is_busy, has_labels = self._jobs.is_busy, self.label.count() > 0
        self.file.setEnabled(not is_busy)
        self.cancel.setVisible(is_busy)
        for widget in (self.label, self.predict, self.place, self.correct):
            widget.setVisible(self._reference is not None)
            widget.setEnabled(has_labels and not is_busy)

    def _tell_reference(self) -> None:
        reference = self._reference
        told = HINT
        if reference is not None:
            n = len(reference.dataset.obs)
            told = f"{reference.name}: {n:,} cells. Choose what is predicted."
            if not reference.label_columns:
                told = f"{reference.name} has no column of groups to predict."
        show_text(self.state, told, "note")

    def _cancel(self) -> None:
        self._jobs.stop()
        self._tell_reference()
        self._show()

    def _open(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Open a reference", "", FILES)
        if name and not self._jobs.is_busy:
            path = Path(name)
            self._begin(lambda: load_reference(path), lambda ref: self._take(ref, path))

    def _take(self, reference: ReferenceMap, path: Path) -> None:
        self._reference, self._path = reference, path
        self.label.clear()
        self.label.addItems(reference.label_columns)
        first = first_label(reference)
        if first is not None:
            self.label.setCurrentText(first)
        self._tell_reference()

    def _predict(self) -> None:
        dataset, reference = self._session.dataset, self._reference
        if dataset is None or reference is None or self._jobs.is_busy:
            return
        path, label, correct = self._path, self.label.currentText(), self.correct
        is_corrected = correct.isChecked()
        self._begin(
            lambda: predict_labels(
                dataset, reference, path, label, correct_batch=is_corrected
            ),
            lambda made: self._on_predicted(reference, *made),
        )

    def _place(self) -> None:
        dataset, reference = self._session.dataset, self._reference
        if dataset is None or reference is None or self._jobs.is_busy:
            return
        path, label = self._path, self.label.currentText()
        is_corrected = self.correct.isChecked()
        self._begin(
            lambda: place_cells(
                dataset, reference, path, label, correct_batch=is_corrected
            ),
            lambda cells: self._on_placed(reference, cells),
        )

    def _on_placed(self, reference: ReferenceMap, cells: PlacedCells) -> None:
        self.placed.emit(cells)
        self._tell(reference, cells.predicted, cells.notes, PLACED)

    def _on_predicted(
        self, reference: ReferenceMap, found: PredictedLabels, notes: tuple[str, ...]
    ) -> None:
        self._color_by(found)
        self._tell(reference, found, notes)

    def _color_by(self, found: PredictedLabels) -> None:
        name = self._session.add_predicted(found)
        assert self._session.dataset is not None
        self._session.look.color_by = choice_of_column(name, self._session.dataset)

    def _tell(
        self,
        reference: ReferenceMap,
        found: PredictedLabels,
        notes: tuple[str, ...],
        more: str = "",
    ) -> None:
        role = "warning" if found.unlike.mean() > MUCH_UNLIKE else "note"
        told = [told_of(found, reference), more, *notes]
        show_text(self.state, " ".join(filter(None, told)), role)

    # The worker

    def _begin(
        self, stages: Callable[[], Stages[Any]], then: Callable[[Any], None]
    ) -> None:
        self._then = then
        self._jobs.ask(stages)
        self._show()

    def _on_stage(self, stage: Stage) -> None:
        share = "" if stage.share is None else f" ({stage.share:.0%})"
        show_text(self.state, f"{stage.text}{share} …", "note")

    def _on_returned(self, made: Any) -> None:
        self._then(made)
        self._show()

    def _on_failed(self, error: BaseException) -> None:
        self._show()
        show_text(self.state, sentence(error), "warning")
