"""Controls of the data: a summary, options to read again, and the first step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from napari.layers import Labels
from qtpy.QtCore import QSignalBlocker, Signal
from qtpy.QtWidgets import QWidget

from napari_embedding_game.data.column_names import Role
from napari_embedding_game.data.columns import count_text, is_own_map_column
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import GENES_IN_ROWS
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.roles import describe_roles
from napari_embedding_game.data.spatial_table import find_table_of_layer
from napari_embedding_game.data.tissue import describe_tissue
from napari_embedding_game.session.second_space import list_second_spaces
from napari_embedding_game.session.sources import (
    AnnDataSource,
    FeaturesSource,
)
from napari_embedding_game.session.tracks import find_tracks
from napari_embedding_game.session.view import are_same_objects
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.breadcrumb import Breadcrumb
from napari_embedding_game.ui.controls.columns import ColumnsPanel
from napari_embedding_game.ui.controls.recipe import RecipePanel
from napari_embedding_game.ui.controls.start import StartPanel
from napari_embedding_game.ui.images.join_panel import JoinPanel
from napari_embedding_game.ui.images.linked_layers import MAP_KEY, finest_pixels
from napari_embedding_game.ui.images.measure_panel import MeasurePanel
from napari_embedding_game.ui.images.relink import RelinkPanel
from napari_embedding_game.ui.style.form_widgets import (
    ChoiceBox,
    FoldingSection,
    TextLabel,
    check_box,
    form_layout,
    set_role,
)
from napari_embedding_game.ui.style.layouts import (
    horizontal_box,
    push_button,
    slim_progress_bar,
    update_progress_bar,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.tasks.reading import ReadingTask

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
SECOND_TIP = (
    "Neighbours are near in both spaces: the slider below Repulsion says how much "
    "the second one counts. The map goes on from where it is."
)
BATCHES_TIP = (
    "Harmony moves cells of different samples, donors or days onto each other, and "
    "the map is made again."
)
NO_BATCHES = "None"
DROP = "Leave out rows with missing values"
DROP_TIP = "Map the complete rows only; the others stay in the saved file, unassigned."
TRANSPOSE_TIP = "Take the columns of the table as its rows."
GENES_HOLD = {
    "counts": "raw counts",
    "logarithms": "logarithms of counts",
    "values": "neither counts nor logarithms",
}
RESET_OPTIONS: dict[str, Any] = {
    "space": None,
    "second_space": None,
    "columns": None,
    "recipe": None,
    "batch_key": None,
}
"""Options that are reset for other rows or another space."""

Then = Callable[[], None]
"""What is called once a step is done."""


class DataControls(QWidget):
    """Opens data, describes the dataset, and offers to read the data with options."""

    first_step_changed = Signal()
    """The result of :meth:`find_first_step` may have changed."""

    def __init__(self, reading: ReadingTask) -> None:
        super().__init__()
        self._session, self.reading = reading.workspace.session, reading
        self._spaces: tuple[str, ...] = ()
        self._shown: tuple[Any, ...] = ()
        """The request and the read result for which options were offered last."""
        self.title, self.summary = TextLabel(TITLE, "title"), TextLabel()
        self.bar = slim_progress_bar()
        tip = "Stop reading; what was loaded before stays."
        self.cancel_button = push_button("Cancel", tip, reading.cancel)
        self.space = ChoiceBox(
            SPACE_TIP,
            lambda space: reading.reload_with_options(
                **RESET_OPTIONS | {"space": space}
            ),
        )
        self.second_space = ChoiceBox(SECOND_TIP, self._on_second_space_chosen)
        self.batches = ChoiceBox(BATCHES_TIP, self._on_batches_chosen)
        self.notes, self.trouble = TextLabel(), TextLabel(role="error")
        self.genes_in_rows = TextLabel(role="warning")
        self.transpose_button = push_button(
            "Transpose", TRANSPOSE_TIP, self._on_transpose_clicked
        )
        self.drop_box = check_box(DROP, DROP_TIP, self._on_drop_toggled)
        self.start_panel = StartPanel(reading, self.load_selected_layer)
        self.others = FoldingSection("Open other data", self.start_panel)
        self.breadcrumb = Breadcrumb(reading.workspace)
        self.recipe_panel = RecipePanel(
            self.batches, lambda recipe: reading.reload_with_options(recipe=recipe)
        )
        self.columns_panel = ColumnsPanel(self._on_columns_changed)
        self.join_panel = JoinPanel(reading)
        self.measure_panel = MeasurePanel(reading)
        self.relink_panel = RelinkPanel(reading)
        self._lay_out_controls()
        self.measure_panel.objects_changed.connect(self._update_first_step)
        connect = Connections(self).connect
        connect(self._on_dataset_changed, self._session.dataset_changed)
        connect(self._update_summary, self._session.columns_changed)
        connect(self._offer_second_spaces, self._session.settings.changed)
        connect(
            self._on_reading_changed,
            reading.workspace.map_tree.changed,
            reading.changed,
        )
        self._show_dataset()
        self._on_reading_changed()

    def find_first_step(self) -> tuple[str, Callable[[Then], None] | None]:
        """Return (name, function) of the step before a run; ("", None) for no step.

        The step is "Measure" while there are no data and objects can be measured, else
        "Prepare" for raw counts that are not prepared.  The function receives a
        function that is called after the step.
        """
        if self._session.dataset is None and self.measure_panel.can_measure:
            return "Measure", self.measure_panel.measure_objects
        if self.recipe_panel.is_offered:
            make_recipe = self.recipe_panel.make_recipe
            return "Prepare", lambda then: self.reading.reload_with_options(
                then, recipe=make_recipe()
            )
        return "", None

    def load_selected_layer(self) -> None:
        """Load the selected layer's AnnData, its measurements or its features table.

        The AnnData in the layer's metadata comes first; else a Labels layer is loaded
        with its features as measurements, another layer with its features.  A layer of
        a map or without a table is refused with a message.
        """
        layer, table = self.reading.viewer.layers.selection.active, None
        is_labels = isinstance(layer, Labels)
        features = getattr(layer, "features", pd.DataFrame())
        if layer is not None:
            try:
                table = find_table_of_layer(layer.metadata, layer.name)
            except DataError as error:
                self.trouble.show_text(str(error))
                return
        if layer is not None and table is not None:
            linked = (
                self.measure_panel.collect_ticked_images(layer) if is_labels else None
            )
            labels = finest_pixels(layer) if is_labels else None
            self.reading.load(AnnDataSource(table, layer.name, labels), linked=linked)
        elif layer is None or MAP_KEY in layer.metadata or not features.shape[1]:
            self.trouble.show_text(NO_TABLE)
        elif is_labels:
            source, linked = self.measure_panel.make_features_source_and_layers(layer)
            self.reading.load(source, linked=linked)
        else:
            self.reading.load(FeaturesSource(features.copy(), layer.name))

    # Inside

    def _lay_out_controls(self) -> None:
        """Place all controls from top to bottom, and hide the choice of batches."""
        self._progress = widget_with_layout(
            horizontal_box(self.bar, self.cancel_button)
        )
        spaces, batches = ("Space", self.space), ("Mix batches of", self.batches)
        second = "Second space", self.second_space
        self._form = form_layout(spaces, second, batches)
        read = self.title, self.summary, self._progress, self._form
        messages = self.notes, self.join_panel, self.trouble
        options = (
            self.genes_in_rows,
            self.transpose_button,
            self.drop_box,
            self.recipe_panel,
        )
        folds = self.columns_panel, self.measure_panel, self.others
        parts = *read, *messages, *options, *folds
        self.setLayout(vertical_box(*parts, spacing=5))
        self._offer_batches([], None)

    # Requests

    def _on_second_space_chosen(self, name: str) -> None:
        """Mix a space with the first, and play on; read it where it was not read."""
        session = self._session

        def mix_spaces() -> None:
            """Choose the space, and continue from the map if there is any."""
            session.settings.second_space = name
            if session.can_continue:
                session.play_wanted.emit(session.continue_run)

        if name in list_second_spaces(session.dataset):
            mix_spaces()
        else:
            self.reading.reload_with_options(mix_spaces, second_space=name)

    def _on_batches_chosen(self, column: str | None) -> None:
        """Read again with the batches of ``column`` mixed; None mixes none.

        Where there is a map, a new one is made.  Raw counts without a map are not read
        again: the buttons that prepare them mix their batches.
        """
        session, recipe = self._session, self.recipe_panel
        has_map = session.snapshot is not None or session.is_moving
        run = partial(session.play_wanted.emit, session.begin) if has_map else None
        if recipe.isHidden():
            self.reading.reload_with_options(run, batch_key=column)
        elif has_map:
            self.reading.reload_with_options(run, recipe=recipe.make_recipe())

    def _on_columns_changed(
        self, roles: Mapping[str, Role] = {}, **changes: Any
    ) -> None:
        """Read again with these roles of columns and other changed options.

        ``roles`` are merged into the present roles; ``changes`` are fields of
        :class:`ReadOptions`.
        """
        if (latest := self.reading.latest_request) is not None:
            roles = {**latest.options.roles, **roles}
            self.reading.reload_with_options(roles=roles, **changes)

    def _on_drop_toggled(self, drops: bool) -> None:
        """Read again without the rows with missing values, or refuse such rows.

        A request that was refused for missing values is read instead of the shown data.
        """
        if drops and self.reading.refused_request is not None:
            self.reading.read_complete_rows()
        else:
            self.reading.reload_with_options(missing="drop" if drops else "error")

    def _on_transpose_clicked(self) -> None:
        """Read the table again with rows and columns exchanged, or as in the file.

        Space, columns, recipe, batches, roles and gene kind are reset.
        """
        latest = self.reading.latest_request
        if latest is not None:
            is_turned = latest.options.transposed
            turned: dict[str, Any] = RESET_OPTIONS | {"roles": {}, "gene_kind": None}
            self.reading.reload_with_options(transposed=not is_turned, **turned)

    # Results of reading

    def _on_reading_changed(self) -> None:
        """Show the progress of reading; offer options once other data are read.

        Options are hidden while the source of the shown data is not known.  The box to
        drop rows is shown where rows were refused or dropped.
        """
        reading = self.reading
        stage = reading.stage
        read = reading.shown_read_result
        self._progress.setVisible(stage is not None)
        update_progress_bar(self.bar, round(100 * ((stage and stage.share) or 0)), 100)
        self._update_summary()
        present: tuple[object, ...] = reading.request, reading.refused_request
        present += () if read is None else (read.source, read.options)
        if not are_same_objects(present, self._shown):
            self._shown = present
            is_refused = reading.refused_request is not None
            drops = not is_refused and read and read.options.missing == "drop"
            if read is None:
                self._withdraw_offers()
            elif reading.request is None:
                self._offer_read_options(read)
            else:
                return  # the chosen options are being read
            with QSignalBlocker(self.drop_box):
                self.drop_box.setChecked(bool(drops))
            self.drop_box.setVisible(bool(drops or is_refused))

    def _withdraw_offers(self) -> None:
        """Hide all options: other data are read, or the data's source is unknown."""
        self._offer_spaces([])
        self._form.setRowVisible(self.batches, False)
        self.genes_in_rows.show_text()
        for widget in (self.transpose_button, self.columns_panel):
            widget.hide()
        self.join_panel.update_to_layers()
        self.recipe_panel.withdraw_offer()
        self._update_first_step()

    def _on_dataset_changed(self, dataset: Dataset | None) -> None:
        """Show the dataset, and fold away the buttons that open other data."""
        if dataset is not None:
            self.others.set_expanded(False)
        self._show_dataset()

    def _offer_read_options(self, loaded: ReadResult) -> None:
        """Offer the options with which the source can be read again.

        For raw counts the recipe is offered, unless genes seem to be in the rows: then
        the button to transpose is shown first.  Single columns are offered only without
        a recipe.
        """
        dataset, options = loaded.dataset, loaded.options
        recipe, is_turned = options.recipe, options.transposed
        self.join_panel.update_to_layers()
        self._offer_spaces(loaded.spaces, options.space or dataset.space)
        asks = loaded.has_genes_in_rows and not is_turned
        question = GENES_IN_ROWS.format(dataset.name) if asks else ""
        self.genes_in_rows.show_text(question)
        self.transpose_button.setText("Transpose back" if is_turned else "Transpose")
        self.transpose_button.setVisible(asks or is_turned)
        mixed = options.batch_key if recipe is None else recipe.batch_key
        if self.recipe_panel.shows_limits_of(
            loaded.quality
        ):  # chosen but not yet prepared
            mixed = self.batches.value
        self._offer_batches(loaded.batch_columns, mixed)
        if loaded.is_counts and not asks:
            self.recipe_panel.show_recipe(loaded.quality, dataset, recipe)
        else:
            self.recipe_panel.withdraw_offer()
        columns = () if recipe is not None else loaded.columns
        kind = dataset.expression.kind if dataset.has_expression else None
        roles = _find_assignable_roles(loaded)
        self.columns_panel.set_columns(columns, dataset.var_names, roles, kind)
        self._show_dataset()
        if asks:  # the same note is shown beside the button
            self._show_notes([note for note in dataset.notes if note != question])

    def _offer_spaces(self, spaces: Sequence[str], present: str = "") -> None:
        """Offer spaces to embed and choose the present space; hide a choice of one."""
        self.space.set_choices(zip(spaces, spaces, strict=True), present)
        self._form.setRowVisible(self.space, len(spaces) > 1)
        self._spaces = tuple(spaces)
        self._offer_second_spaces()

    def _offer_second_spaces(self, setting: str = "second_space") -> None:
        """Offer spaces to mix with the first, where there is any, and show the chosen.

        Nothing happens where another setting was changed.
        """
        if setting == "second_space":
            offered = list_second_spaces(self._session.dataset, self._spaces)
            titles = [(title, name) for name, title in offered.items()]
            self.second_space.set_choices(titles, self._session.settings.second_space)
            self._form.setRowVisible(self.second_space, len(titles) > 1)

    def _offer_batches(self, columns: Sequence[str], mixed: str | None) -> None:
        """Offer no mixing and columns of batches; choose ``mixed``, listed or not.

        ``mixed``: the column that is mixed, or None.  Without columns the choice is
        hidden.
        """
        names = dict.fromkeys([*columns, *filter(None, [mixed])])
        self.batches.set_choices([(NO_BATCHES, None), *((n, n) for n in names)], mixed)
        self._form.setRowVisible(self.batches, bool(names))

    def _show_dataset(self) -> None:
        """Show name and notes of the present dataset, and update the first step."""
        dataset = self._session.dataset
        self.title.setText(dataset.name if dataset else TITLE)
        self.others.set_header_hidden(dataset is None)
        self._show_notes(() if dataset is None else dataset.notes)
        self._update_first_step()

    def _update_summary(self) -> None:
        """Show the stage of reading, else the dataset's size and roles, else a hint."""
        hint = MEASURE_HINT if self.measure_panel.can_measure else HINT
        stage = self.reading.stage
        reads = f"{stage.text} …" if stage else ""
        self.summary.show_text(
            reads or _describe_dataset(self._session.dataset) or hint
        )

    def _update_first_step(self) -> None:
        """Highlight the button to press next, if any, and update the summary.

        Emits ``first_step_changed``.
        """
        is_free = self._session.dataset is None and not self.find_first_step()[0]
        for button, is_next in (
            (self.start_panel.open_button, is_free),
            (self.transpose_button, not self.genes_in_rows.isHidden()),
        ):
            set_role(button, "main" if is_next else "")
        self._update_summary()
        self.first_step_changed.emit()

    def _show_notes(self, notes: Sequence[str]) -> None:
        """Show the notes of the dataset, except for the messages of the join panel."""
        others = [note for note in notes if note not in self.join_panel.messages]
        self.notes.show_text("\n".join(others))


def _find_assignable_roles(loaded: ReadResult) -> dict[str, Role]:
    """Return the present role of each column whose role can be changed.

    Columns that were added here, and columns of saved maps, cannot be changed.  Columns
    of a table that can be embedded are "numbers" if they have no role.
    """
    dataset, added = loaded.dataset, loaded.dataset.added_columns
    roles = {x: role for x, role in dataset.roles.items() if x not in added}
    roles = {x: role for x, role in roles.items() if not is_own_map_column(x)}
    embedded = loaded.columns if loaded.is_of_table else ()
    return {**dict.fromkeys(embedded, "numbers"), **roles}


def _describe_dataset(dataset: Dataset | None) -> str:
    """Return a text of a dataset's size, space, roles and tracks; "" for None."""
    if dataset is None:
        return ""
    n, meanings = len(dataset.var_names), describe_roles(dataset.roles)
    if dataset.has_expression:
        genes = GENES_HOLD[dataset.expression.kind]
        meanings = f"Genes: {genes}. {meanings}".strip()
    if dataset.tissue is not None:
        meanings = f"{meanings}\n{describe_tissue(dataset.tissue)}".strip()
    embedded = count_text(len(dataset.obs), dataset.source_row_noun)
    if dataset.is_distances:
        embedded += " by their neighbours"
    elif n:
        is_genes = dataset.has_expression and not dataset.has_own_profile
        embedded += f" × {count_text(n, 'gene' if is_genes else 'value')}"
    tracks = find_tracks(dataset)
    lines = [f"{embedded}, from {dataset.space}", meanings]
    return "\n".join(filter(None, [*lines, tracks and tracks.describe_tracks()]))
