"""READY: what was read, how else it can be read, and what is to be done first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import napari
import pandas as pd
from napari.layers import Labels
from qtpy.QtCore import QSignalBlocker, Signal
from qtpy.QtWidgets import QWidget

from napari_embedding_game.data.columns import counted
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import GENES_IN_ROWS
from napari_embedding_game.data.images.join import JoinRequest
from napari_embedding_game.data.images.measure import GROUPS, USUAL
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.spatial_table import table_of_layer
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.sources import (
    AnnDataSource,
    ExperimentSource,
    FeaturesSource,
    FileSource,
    MeasuredSource,
    Source,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.breadcrumb import Breadcrumb
from napari_embedding_game.ui.controls.columns import ColumnsPanel
from napari_embedding_game.ui.controls.recipe import RecipePanel
from napari_embedding_game.ui.controls.start import Start
from napari_embedding_game.ui.images.join_panel import JoinPanel
from napari_embedding_game.ui.images.linked_layers import OF_MAP, Linked, finest
from napari_embedding_game.ui.images.measure_panel import MeasurePanel
from napari_embedding_game.ui.images.relink import Relink, how_measured
from napari_embedding_game.ui.style.form_widgets import (
    Choice,
    Fold,
    add_row,
    check_box,
    form,
    set_role,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.layouts import (
    column,
    move_bar,
    panel,
    push_button,
    row,
    slim_bar,
)
from napari_embedding_game.ui.tasks.reading import ReadingTask
from napari_embedding_game.ui.tasks.session_store import SessionStore
from napari_embedding_game.ui.workspace import Workspace

TITLE = "Embedding Game"
HINT = (
    "See how your cells, images or texts group, and steer it. Open a table with a row "
    "for each of them, drop its file here, or try a sample."
)
MEASURE_HINT = "Measure the objects of your segmentation, and see how they group."
NO_TABLE = (
    "Select a layer with a table first: a Labels or Points layer whose objects "
    "were measured has one."
)
SPACE_TIP = "Which numbers of the file are embedded, such as its principal components."
BATCHES_TIP = (
    "Harmony moves cells of different samples, donors or days onto each other."
)
NO_BATCHES = "None"
DROP = "Leave out rows with missing values"
DROP_TIP = "Map the complete rows only; the others stay in the saved file, unassigned."
TRANSPOSE_TIP = "Take the columns of the table as its rows."
OF_ROWS: dict[str, Any] = {
    "space": None,
    "columns": None,
    "recipe": None,
    "batch_key": None,
}
"""What is chosen anew for other rows, or another space."""

Then = Callable[[], None]


class DataControls(QWidget):
    """Chooses the source and says what came of it."""

    offers_changed = Signal()
    """:meth:`first_step` is another."""

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        reading: ReadingTask,
        store: SessionStore,
    ) -> None:
        super().__init__()
        self._viewer, self._session, self._reading = viewer, workspace.session, reading
        self._maps, self._linked_layers = workspace.maps, workspace.linked
        self._shown: tuple[Any, ...] = ()
        """Source and options of the data whose choices are offered."""
        self._read_complete: Then | None = None
        """Reads what was refused without the rows that have missing values."""
        self._read = ""
        """What is being read."""
        self.title, self.summary = text_label("", "title"), text_label()
        self.bar = slim_bar()
        tip = "Stop reading; what was loaded before stays."
        self.cancel = push_button("Cancel", tip, reading.cancel)
        self.space, self.batches = Choice(SPACE_TIP), Choice(BATCHES_TIP)
        self.notes, self.trouble = text_label(), text_label(role="error")
        self.genes_in_rows = text_label(role="warning")
        self.transpose = push_button("Transpose", TRANSPOSE_TIP, self._on_transpose)
        self.drop = check_box(DROP, DROP_TIP, self._on_drop)
        self.start = Start(reading, store, self.use_layer)
        self.others = Fold("Open other data", self.start)
        self.breadcrumb = Breadcrumb(self._session, self._maps)
        self.recipe = RecipePanel(self.batches)
        self.columns = ColumnsPanel(lambda names: self._reload(columns=names))
        self.join = JoinPanel(viewer)
        self.measure = MeasurePanel(viewer, self._session)
        self.relink = Relink(viewer, self._session, self._maps, self._linked_layers)
        self._build()
        self._connect()
        self._show()
        self.show_loaded()

    def first_step(self) -> tuple[str, Callable[[Then], None] | None]:
        """The word and the function of what Run does first; it receives the rest."""
        if self._session.dataset is None and self.measure.can_measure:
            return "Measure", self.measure.measure_objects
        if self.recipe.is_offered:
            return "Prepare", self._prepare_first
        return "", None

    def use_layer(self) -> None:
        """Load the AnnData or the features table of the selected layer."""
        layer, table = self._viewer.layers.selection.active, None
        is_labels = isinstance(layer, Labels)
        features = getattr(layer, "features", pd.DataFrame())
        if layer is not None:
            try:
                table = table_of_layer(layer.metadata, layer.name)
            except DataError as error:
                show_text(self.trouble, str(error))
                return
        if layer is not None and table is not None:
            linked = self.measure.linked_to(layer) if is_labels else None
            labels = finest(layer) if is_labels else None
            self._load(AnnDataSource(table, layer.name, labels), linked)
        elif layer is None or OF_MAP in layer.metadata or not features.shape[1]:
            show_text(self.trouble, NO_TABLE)
        elif is_labels:
            self._load(*self.measure.table_of(layer))
        else:
            self._load(FeaturesSource(features.copy(), layer.name))

    # Events

    def on_read_started(self, is_other: bool) -> None:
        """Follow data that are going to be read, or were read from a session file."""
        request = self._reading.request
        self.relink.on_read_started(None if request is None else request.source)
        if is_other:
            self._offer_spaces([])
            self._form.setRowVisible(self.batches, False)
            self.drop.hide()
            self.columns.hide()
            self.join.show_join(None, is_table=False)
            self.recipe.withdraw()
            self.offers_changed.emit()

    def on_read_finished(self) -> None:
        """Offer what else could come of the source that was taken up."""
        self.relink.on_read_finished()
        self.show_loaded()

    def show_loaded(self, read_complete: Then | None = None) -> None:
        """Show the data that are loaded; offer to read their complete rows only."""
        self._read_complete, read = read_complete, self._maps.read
        is_offered = read_complete is not None  # of what was not taken up
        has_dropped = read is not None and read.options.missing == "drop"
        drops = has_dropped and not is_offered
        with QSignalBlocker(self.drop):
            self.drop.setChecked(drops)
        self.drop.setVisible(drops or is_offered)
        if read is not None:
            self._shown = read.source, read.options
            self._show_read(read)

    def set_stage(self, stage: Stage | None) -> None:
        """Show how far reading is, None when nothing is read."""
        self._progress.setVisible(stage is not None)
        self._read = "" if stage is None else f"{stage.text} …"
        self._update_summary()
        share = 0.0 if stage is None else stage.share or 0.0
        move_bar(self.bar, round(100 * share), 100)

    # Inside

    def _build(self) -> None:
        self._progress = panel(row(self.bar, self.cancel))
        self._form = form()
        add_row(self._form, "Space", self.space)
        add_row(self._form, "Mix batches of", self.batches)
        read = self.title, self.summary, self._progress, self._form
        messages = self.notes, self.join, self.trouble
        options = self.genes_in_rows, self.transpose, self.drop, self.recipe
        folds = self.columns, self.measure, self.others
        parts = *read, *messages, *options, *folds
        self.setLayout(column(*parts, spacing=5))
        self._offer_spaces([])
        self._offer_batches([], None)
        for widget in (self._progress, self.drop, self.transpose, self.trouble):
            widget.hide()

    def _connect(self) -> None:
        self.space.changed.connect(lambda s: self._reload(**{**OF_ROWS, "space": s}))
        self.batches.changed.connect(self._on_batches)
        self.recipe.requested.connect(lambda recipe: self._reload(recipe=recipe))
        self.join.requested.connect(self._join_again)
        self.measure.requested.connect(self._load)
        self.measure.offered.connect(self._mark_next)
        self.measure.ticked.connect(self._on_image_ticked)
        self.relink.requested.connect(self._read_labels_again)
        reading, connections = self._reading, Connections(self)
        for signal, slot in (
            (self._session.dataset_changed, self._on_dataset),
            (self._maps.changed, self._on_map),
            (reading.started, self.on_read_started),
            (reading.loaded, self.on_read_finished),
            (reading.cancelled, self.show_loaded),
            (reading.stage_changed, self.set_stage),
            (reading.session_opened, self.relink.open_again),
        ):
            connections.connect(signal, slot)

    # Asking

    def _load(
        self, source: Source, linked: Linked | None = None, then: Then | None = None
    ) -> None:
        self._reading.load(source, linked=linked, then=then)

    def _reload(self, *, then: Then | None = None, **changes: Any) -> None:
        latest = self._reading.latest
        if latest is not None:
            self._reading.reload(replace(latest.options, **changes), then)

    def _on_batches(self, column: str | None) -> None:
        """Mix batches of components; those of counts are mixed when prepared."""
        if self.recipe.isHidden():
            self._reload(batch_key=column)

    def _on_drop(self, drops: bool) -> None:
        if drops and self._read_complete is not None:
            self._read_complete()
        else:
            self._reload(missing="drop" if drops else "error")

    def _prepare_first(self, then: Then) -> None:
        self._reload(recipe=self.recipe.recipe(), then=then)

    def _read_labels_again(self) -> None:
        """Read the objects of edited labels anew, in the same way."""
        linked, read = self._linked_layers.current, self._maps.read
        if read is not None and isinstance(read.source, ExperimentSource):
            self._reading.read_again(read.source, read.options)
        elif linked is not None:
            images = [image for image in linked.images if image in self._viewer.layers]
            linked = Linked(linked.labels, tuple(images))
            self._linked_layers.set(linked, self._linked_layers.missed)
            self._reading.read_again(*self._with_labels(read, linked))

    def _with_labels(
        self, read: ReadResult | None, linked: Linked
    ) -> tuple[Source, ReadOptions]:
        """Return a source with the labels as they are now, and how to read it."""
        options = DEFAULT_OPTIONS
        if read is not None and isinstance(read.source, MeasuredSource):
            options = read.options  # others are for what a file or sample holds
        elif read is not None and read.source.pixels is not None:
            return read.source.with_pixels(finest(linked.labels)), read.options
        source = self.measure.measured(linked)
        how = {**source.how, **self._measure_options()}
        return replace(source, how=how), options

    def _join_again(self, request: JoinRequest | None) -> None:
        """Join the rows of the file with other objects, or with none."""
        read = self._maps.read
        if read is not None and isinstance(read.source, FileSource | FeaturesSource):
            source = replace(read.source, request=request)
            self._reading.read_again(source, read.options)

    def _on_image_ticked(self) -> None:
        """Cut the pictures of a table's rows out of the images that are ticked."""
        read, linked = self._maps.read, self._linked_layers.current
        kinds = FileSource | FeaturesSource | AnnDataSource
        is_table = read is not None and isinstance(read.source, kinds)
        if linked and is_table and linked.labels is self.measure.labels.value:
            self._linked_layers.set(self.measure.linked_to(linked.labels))

    def _measure_options(self) -> dict[str, Any]:
        """Return how the objects were measured."""
        measured = how_measured(self._session.dataset)
        axis, groups = measured.get("first_axis"), measured.get("groups")
        groups = groups if isinstance(groups, list | tuple) else USUAL
        return {
            "first_axis": axis if axis in ("time", "image") else "z",
            "groups": [group for group in GROUPS if group in groups],
            "with_border": measured.get("with_border") is not False,
        }

    def _on_transpose(self) -> None:
        latest = self._reading.latest
        if latest is not None:
            self._reload(transposed=not latest.options.transposed, **OF_ROWS)

    # What came of it

    def _on_map(self) -> None:
        """Follow another map that is open, if its data were read in another way."""
        read = self._maps.read
        is_read = read is not None and self._reading.request is None
        if is_read and (read.source, read.options) != self._shown:
            self.show_loaded()

    def _on_dataset(self, dataset: Dataset | None) -> None:
        if dataset is not None:
            self.others.expand(False)
        self._show()

    def _show_read(self, loaded: ReadResult) -> None:
        """Offer what else could come of the source."""
        dataset, options = loaded.dataset, loaded.options
        recipe, is_turned = options.recipe, options.transposed
        is_table = isinstance(loaded.source, FileSource | FeaturesSource)
        self.join.show_join(loaded.join, is_table=is_table)
        self._offer_spaces(loaded.spaces, options.space or dataset.space)
        asks = loaded.has_genes_in_rows and not is_turned
        question = GENES_IN_ROWS.format(dataset.name) if asks else ""
        show_text(self.genes_in_rows, question)
        self.transpose.setText("Transpose back" if is_turned else "Transpose")
        self.transpose.setVisible(asks or is_turned)
        mixed = options.batch_key if recipe is None else recipe.batch_key
        if self.recipe.is_of(loaded.quality):  # a wish that was not fulfilled yet
            mixed = self.batches.value
        self._offer_batches(loaded.batch_columns, mixed)
        if loaded.is_counts and not asks:
            self.recipe.show_for(loaded.quality, dataset, recipe)
        else:
            self.recipe.withdraw()
        columns = () if recipe is not None else loaded.columns
        self.columns.set_columns(columns, dataset.var_names)
        self._show()
        if asks:  # the offer says it better
            self._show_notes([note for note in dataset.notes if note != question])

    def _offer_spaces(self, spaces: Sequence[str], present: str = "") -> None:
        self.space.offer(zip(spaces, spaces, strict=True), present)
        self._form.setRowVisible(self.space, len(spaces) > 1)

    def _offer_batches(self, columns: Sequence[str], mixed: str | None) -> None:
        names = dict.fromkeys([*columns, *filter(None, [mixed])])
        self.batches.offer([(NO_BATCHES, None), *((n, n) for n in names)], mixed)
        self._form.setRowVisible(self.batches, bool(names))

    def _show(self) -> None:
        dataset = self._session.dataset
        self.title.setText(dataset.name if dataset else TITLE)
        self.others.set_bare(dataset is None)
        self._show_notes(() if dataset is None else dataset.notes)
        self._mark_next()

    def _update_summary(self) -> None:
        hint = MEASURE_HINT if self.measure.can_measure else HINT
        show_text(self.summary, self._read or _summary(self._session.dataset) or hint)

    def _mark_next(self) -> None:
        """Highlight the button to press next, if there is one."""
        is_free = self._session.dataset is None and not self.first_step()[0]
        for button, is_next in (
            (self.start.open_button, is_free),
            (self.transpose, not self.genes_in_rows.isHidden()),
        ):
            set_role(button, "main" if is_next else "")
        self._update_summary()
        self.offers_changed.emit()

    def _show_notes(self, notes: Sequence[str]) -> None:
        """Show what was done to the data, without what a panel below shows."""
        others = [note for note in notes if note not in self.join.messages]
        show_text(self.notes, "\n".join(others))


def _summary(dataset: Dataset | None) -> str:
    if dataset is None:
        return ""
    n, space = dataset.X.shape[1], dataset.space
    rows = counted(len(dataset.obs), dataset.noun.replace("point", "row"))
    if dataset.is_distances:
        return f"{rows} by their neighbours, from {space}"
    is_genes = dataset.has_expression and dataset.profile is dataset.X
    columns = f" × {counted(n, 'gene' if is_genes else 'value')}" if n else ""
    return f"{rows}{columns}, from {space}"
