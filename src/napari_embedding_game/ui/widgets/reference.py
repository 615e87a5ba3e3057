"""A widget to predict labels from a reference, or to place cells on its map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import napari
from qtpy.QtWidgets import QFileDialog

from napari_embedding_game.data.prediction import PredictedLabels, with_predicted_labels
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.reference.labels import (
    PlacedCells,
    describe_confidence,
    load_reference,
    place_cells,
    predict_labels,
    suggest_label,
)
from napari_embedding_game.session.reference.mapping import MappedCells
from napari_embedding_game.session.reference.reference_map import ReferenceMap
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.coloring import color_by_column
from napari_embedding_game.ui.style.form_widgets import ChoiceBox, check_box, set_role
from napari_embedding_game.ui.style.layouts import horizontal_box, push_button
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.worker import JobRunner

FILES = "Maps of cells (*.h5ad)"
NO_GENES = "Open cells with their genes in the Embedding Game first."
HINT = (
    "Choose an .h5ad file of labelled cells with a map, saved here or published "
    "(X_umap). Your cells take its labels, and can be placed on its map."
)
PLACED = (
    "Pale points are the cells of the reference. Click the former map's name above to "
    "go back."
)
TIPS = {
    "cancel": "Stop; what was predicted before stays.",
    "label": "Column of the reference that is predicted.",
    "predict": "Predict the label of every cell, and colour the map by it.",
    "place": "Open a map of the reference's cells, pale, with these among them.",
    "correct": "Remove the difference between batches first. Only where both hold the "
    "same kinds: others would be moved to what they are not.",
}
MUCH_UNLIKE = 0.05
"""From this share of cells unlike the reference on, the result is a warning."""


class ReferenceWidget(MapTool):
    """Opens a reference, predicts a column of it, and places cells on its map.

    Labels, their confidence and the likeness of each cell to the reference become
    metadata columns, and the map is coloured by the labels.
    """

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        self._jobs = JobRunner(
            self, self._on_job_returned, self._on_job_failed, self.show_stage
        )
        self._reference: ReferenceMap | None = None
        self.open_button = push_button(
            "Open a reference…", "", self._choose_reference_file
        )
        self.cancel_button = push_button("Cancel", TIPS["cancel"], self._stop_and_reset)
        self.label_choice = ChoiceBox(TIPS["label"])
        self.predict_button = push_button(
            "Predict", TIPS["predict"], self._predict_labels
        )
        self.place_button = push_button(
            "Place on its map", TIPS["place"], self._place_cells
        )
        self.correct_box = check_box("Remove a batch effect", TIPS["correct"])
        self._connections.connect(self._stop_and_reset, self._session.dataset_changed)
        rows = (
            horizontal_box(self.open_button, self.cancel_button),
            horizontal_box(self.label_choice, self.predict_button),
        )
        self.lay_out_parts(*rows, self.place_button, self.correct_box, self.state)
        self._stop_and_reset()

    def _stop_and_reset(self, event: object = None) -> None:
        """Stop a running job, and say what can be done with data and reference."""
        self._jobs.stop()
        reference, dataset, text = self._reference, self._session.dataset, HINT
        if dataset is None or not dataset.has_expression:
            text = NO_GENES
        elif reference is not None:
            n = len(reference.dataset.obs)
            text = f"{reference.name}: {n:,} cells. Choose what is predicted."
            if not reference.dataset.level_columns:
                text = f"{reference.name} has no column of groups to predict."
        self.state.show_text(text)
        self._update_widgets()

    def _update_widgets(self) -> None:
        """Show the widgets that can be used now, and mark the next button.

        Only the cancel button is visible while a job runs, and no button without genes.
        Predicting and placing need a reference with a column of groups.
        """
        dataset, is_busy = self._session.dataset, self._jobs.is_busy
        can_ask = dataset is not None and dataset.has_expression and not is_busy
        self.open_button.setVisible(can_ask)
        self.cancel_button.setVisible(is_busy)
        has_reference = self._reference is not None
        set_role(self.open_button, "" if has_reference else "main")
        set_role(self.predict_button, "main" if has_reference else "")
        for widget in (
            self.label_choice,
            self.predict_button,
            self.place_button,
            self.correct_box,
        ):
            widget.setVisible(
                has_reference and can_ask and bool(self.label_choice.choices)
            )

    def _choose_reference_file(self) -> None:
        """Ask for a file, and load the reference in it in another thread."""
        name, _ = QFileDialog.getOpenFileName(self, "Open a reference", "", FILES)
        if name:
            self._submit_job(
                partial(load_reference, Path(name)), self._on_reference_loaded
            )

    def _on_reference_loaded(self, reference: ReferenceMap) -> None:
        """Keep the reference, and offer its columns of groups, one suggested."""
        self._reference = reference
        columns = reference.dataset.level_columns
        self.label_choice.set_choices(
            zip(columns, columns, strict=True), suggest_label(reference)
        )
        self._stop_and_reset()

    def _predict_labels(self) -> None:
        self._submit_with_inputs(predict_labels, self._on_labels_predicted)

    def _place_cells(self) -> None:
        self._submit_with_inputs(place_cells, self._on_cells_placed)

    def _submit_with_inputs(
        self, work: Callable[..., Stages[Any]], on_result: Callable[[Any], None]
    ) -> None:
        """Run ``work`` on dataset, reference and chosen column in another thread.

        It is also told whether to remove a batch effect.
        """
        inputs = self._session.dataset, self._reference, self.label_choice.value
        is_corrected = self.correct_box.isChecked()
        self._submit_job(partial(work, *inputs, correct_batch=is_corrected), on_result)

    def _on_cells_placed(self, cells: PlacedCells) -> None:
        """Open the map with the placed cells, or show why that is not possible."""

        def place() -> None:
            """Open the map, and show how confident the predicted labels are."""
            self.workspace.map_tree.open_placed_map(cells)
            self._show_result(cells.predicted, cells.notes, PLACED)

        call_or_show_error(partial(self.state.show_text, role="warning"), place)

    def _on_labels_predicted(self, mapped: MappedCells) -> None:
        """Add predicted labels as columns, colour the map by them, show confidences.

        There must be exactly one set of labels.
        """
        (predicted,) = mapped.labels.values()
        name = self._session.add_columns(with_predicted_labels, predicted)
        color_by_column(self._session, name)
        self._show_result(predicted, mapped.notes)

    def _show_result(
        self, predicted: PredictedLabels, notes: tuple[str, ...], more: str = ""
    ) -> None:
        """Show the confidence of predicted labels, then ``more``, then the notes.

        It is a warning from a share of ``MUCH_UNLIKE`` cells unlike the reference on.
        """
        role = "warning" if predicted.unlike.mean() > MUCH_UNLIKE else "note"
        parts = [describe_confidence(predicted, self._reference), more, *notes]
        self.state.show_text(" ".join(filter(None, parts)), role)

    # Background jobs

    def _submit_job(
        self, stages: Callable[[], Stages[Any]], on_result: Callable[[Any], None]
    ) -> None:
        """Run stages in another thread, and call ``on_result`` with their result.

        It is called in this thread.  The widgets are updated for a running job.
        """
        self._on_result = on_result
        self._jobs.submit(stages)
        self._update_widgets()

    def _on_job_returned(self, result: Any) -> None:
        """Hand the result to the function given with the job, and update widgets."""
        self._on_result(result)
        self._update_widgets()

    def _on_job_failed(self, error: BaseException) -> None:
        """Update the widgets, and show the error as a warning."""
        self._update_widgets()
        self.show_error(error)
