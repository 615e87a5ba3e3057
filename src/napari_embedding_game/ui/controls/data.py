"""Data controls: choose the source, its space and its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from magicgui.widgets import CheckBox, ComboBox, ProgressBar, PushButton
from napari.layers import Labels, Layer
from qtpy.QtCore import Signal
from qtpy.QtGui import QAction
from qtpy.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import GENES_IN_ROWS
from napari_embedding_game.data.images.join import JoinRequest
from napari_embedding_game.data.images.measure import GROUPS, USUAL
from napari_embedding_game.data.raw_counts import counts_advice
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.data.readers import ENDINGS
from napari_embedding_game.data.spatial_table import table_of_layer
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.file.archive import ENDING
from napari_embedding_game.session.file.autosave import RecoveryFile
from napari_embedding_game.session.loading import Loading
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import (
    SAMPLES,
    AnnDataSource,
    ExperimentSource,
    FeaturesSource,
    FileSource,
    LoadResult,
    MeasuredSource,
    SampleSource,
    Source,
    source_of,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.breadcrumb import Breadcrumb
from napari_embedding_game.ui.controls.columns_panel import ColumnsPanel
from napari_embedding_game.ui.controls.recipe_panel import (
    BATCHES_TIP,
    NO_BATCHES,
    RecipePanel,
)
from napari_embedding_game.ui.controls.recovery_banner import RecoveryBanner
from napari_embedding_game.ui.images.join_panel import JoinPanel
from napari_embedding_game.ui.images.linked_layers import (
    Linked,
    LinkedLayers,
    Table,
    finest,
)
from napari_embedding_game.ui.images.mask_offer import MaskOffer
from napari_embedding_game.ui.images.measure_panel import MeasurePanel
from napari_embedding_game.ui.images.relink import Relink
from napari_embedding_game.ui.images.stale_labels import StaleLabels
from napari_embedding_game.ui.style.busy_bar import BusyBar, move_bar
from napari_embedding_game.ui.style.form_widgets import (
    ControlsSection,
    add_row,
    form,
    set_role,
    show_text,
    text_label,
)

if TYPE_CHECKING:
    import napari

TITLE = "Embedding Game"
HINT = (
    "See how your cells, images or texts group, and steer it. Open a table with a row "
    "for each of them, drop its file here, or try a sample."
)
IMAGES_TIP = (
    "Measure the objects of all images of a folder, such as a plate. A labels file has "
    "the name of its image and _labels or _masks behind it, or lies in a folder labels."
)
MOST_LAST_MAPS = 5
TABLES = (FeaturesSource, FileSource, AnnDataSource)
"""Sources whose rows are linked with objects, and not measured."""
NO_TABLE = (
    "Select a layer with a table first: a Labels or Points layer whose objects "
    "were measured has one."
)


class LastMaps(QWidget):
    """A line for each of the last maps, which opens it."""

    def __init__(self) -> None:
        super().__init__()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 12, 0, 0)
        self._column.setSpacing(2)

    def show_maps(self, maps: Sequence[QAction]) -> None:
        """Show these, each as the action that opens it."""
        while (item := self._column.takeAt(0)) is not None:
            item.widget().deleteLater()
        if maps:
            self._column.addWidget(text_label("Recent maps"))
        for action in maps:
            line = QPushButton(action.text())
            line.setToolTip(action.text())
            line.setProperty("role", "link")
            # A long name must not widen the dock.
            line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            line.clicked.connect(action.trigger)
            self._column.addWidget(line)


class DataControls(ControlsSection):
    """Chooses the source and tells what came of it.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    maps : MapTree
    loading : Loading
    linked_layers : LinkedLayers
    """

    load_requested = Signal(object, object, object)
    """A source, the layers that show its objects, and the one whose table it is."""
    reload_requested = Signal(object, object, object)
    """:class:`ReadOptions` for the source that was asked for last, and its layers."""
    cancel_requested = Signal()
    stop_requested = Signal()
    """To end measuring many images, and keep those that are measured."""
    open_session_requested = Signal(object)
    """The path of a session file."""
    recovery_requested = Signal(object)
    """The :class:`RecoveryFile` to go on with."""
    recent_requested = Signal()
    """The menu of recent maps is opened: ``set_recent`` is to fill it."""
    map_requested = Signal(str)
    """The key of another map of the session."""
    preparation_offered = Signal(bool)
    """Whether the data are counts that are still to be prepared."""
    troubled = Signal()
    """Something failed, and the section tells what."""
    mixable_changed = Signal(object)
    """Tuple of the columns whose batches Harmony can mix now."""

    def __init__(
        self,
        viewer: napari.Viewer,
        session: Session,
        maps: MapTree,
        loading: Loading,
        linked_layers: LinkedLayers,
    ) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = session
        self._maps = maps
        self._loading = loading
        self._linked_layers = linked_layers
        self._linked: Linked | None = None
        self._table: Table | None = None
        self._busy = ""
        self._connections = Connections(self)
        self._make()
        self._build()
        self._connect()
        self._show(session.dataset)
        self.go_back()

    def choose_file(self) -> None:
        """Ask for a file and load it."""
        patterns = " ".join(f"*{ending}" for ending in ENDINGS)
        name, _ = QFileDialog.getOpenFileName(
            self, "Open a table of cells, images or texts", "", f"Data ({patterns})"
        )
        if name:
            self.open_file(Path(name))

    def open_file(self, path: Path) -> None:
        """Load a file or folder; a session file is gone on with."""
        if path.name.endswith(ENDING):
            self.open_session_requested.emit(path)
        else:
            self._load(source_of(path))

    def choose_folder(self) -> None:
        """Ask for a .zarr folder, or one of 10x counts, and load it."""
        self._choose_folder("Open a .zarr folder, or the folder of a 10x matrix")

    def choose_images(self) -> None:
        """Ask for a folder of images and labels, and measure their objects."""
        self._choose_folder("Open a folder of images with their labels")

    def choose_session(self) -> None:
        """Ask for a session file and go on where it was saved."""
        name, _ = QFileDialog.getOpenFileName(
            self, "Go on with a session", "", f"Embedding game session (*{ENDING})"
        )
        if name:
            self.open_session_requested.emit(Path(name))

    def use_layer(self) -> None:
        """Load the AnnData or the features table of the selected layer."""
        layer = self._viewer.layers.selection.active
        if layer is not None and self._use_annotation(layer):
            return
        features = getattr(layer, "features", None)
        if layer is None or features is None or features.shape[1] == 0:
            show_text(self.trouble, NO_TABLE)
            return
        if isinstance(layer, Labels):
            self._load(*self.measure.table_of(layer))
        else:
            source = FeaturesSource(features.copy(), layer.name)
            self._load(source, table=Table(layer, source.features))

    def _use_annotation(self, layer: Layer) -> bool:
        """Load the AnnData of a layer of SpatialData; return whether it has one."""
        try:
            table = table_of_layer(layer.metadata, layer.name)
        except DataError as error:
            show_text(self.trouble, str(error))
            return True
        if table is None:
            return False
        if isinstance(layer, Labels):
            source = AnnDataSource(table, layer.name, finest(layer))
            self._load(source, self.measure.linked_to(layer))
        else:
            self._load(AnnDataSource(table, layer.name))
        return True

    # What is told

    def note_asked(
        self,
        source: Source | None,
        is_other: bool,
        linked: Linked | None,
        table: Table | None,
    ) -> None:
        """Follow what is going to be read; None: a session file was taken up.

        Parameters
        ----------
        is_other : bool
            Whether it is another source than before.
        linked, table
            The layers that show its objects, and the one whose table it is.
        """
        is_read = linked is not None and _pixels_of(source) is finest(linked.labels)
        if linked is not None and (is_other or is_read):
            self.stale.expect(linked.labels)
        self._linked, self._table = linked, table
        self.stop.native.setVisible(isinstance(source, ExperimentSource))
        self.stop.enabled = True
        if is_other:
            self._offer_spaces([])
            self._offer_batches(())
            self._set_drop(False)
            self.drop.native.hide()
            self.recipe.hide()
            self.preparation_offered.emit(False)
            self.mixable_changed.emit(())
            self.columns.hide()
            self.join.show_join(None, is_table=False)

    def note_loaded(self, source: Source, loaded: LoadResult) -> None:
        """Offer what else could come of the source that was taken up."""
        is_table = isinstance(source, TABLES)
        self.stale.taken(is_measured=not is_table)
        images = loaded.images
        if images is not None and images.n_measured < len(images.names):
            self.stale.offer_rest(images.n_measured, len(images.names))
        self._show_read(loaded)

    def go_back(self) -> None:
        """Go back to what is on show, as it was read."""
        present = self._linked_layers
        self._linked, self._table = present.current, present.table
        self._set_drop(self._loading.options.missing == "drop")
        if self._loading.shown is not None:
            self._show_read(self._loading.shown.loaded)
        else:
            self.drop.native.hide()

    def offer_to_drop_rows(self) -> None:
        """Offer to read the complete rows only."""
        self.drop.native.show()

    def offer_recovery(self, recovery_files: list[RecoveryFile]) -> None:
        """Offer what a crash left behind."""
        self.recovery_banner.offer(recovery_files)

    def set_recent(self, recent: Sequence[tuple[Path, str]]) -> None:
        """List the maps that were closed, each with a click to open it."""
        self.recent.clear()
        for path, words in recent:
            self.recent.addAction(words).triggered.connect(
                lambda _=False, path=path: self.open_session_requested.emit(path)
            )
        self.recent.setEnabled(bool(self.recent.actions()))
        self.last_maps.show_maps(self.recent.actions()[:MOST_LAST_MAPS])

    def set_busy(self, what: str) -> None:
        """Tell what is being read or written, "" when nothing is."""
        self._busy = what
        show_text(self.summary, what or _summary(self._session.dataset))

    def set_stage(self, stage: Stage | None) -> None:
        """Show how far reading is, None when nothing is read."""
        self._progress.setVisible(stage is not None)
        share = None if stage is None else stage.share
        if stage is not None and share is None:
            self._busy_bar.begin()
        else:
            self._busy_bar.end()
            move_bar(self.bar.native, round(100 * (share or 0.0)), 100)

    def set_trouble(self, sentence: str) -> None:
        """Tell what failed, "" when it is over."""
        show_text(self.trouble, sentence)
        if sentence:
            self.troubled.emit()

    # Inside

    def _make(self) -> None:
        self.title = text_label("", "title")
        self.summary = text_label()
        self.bar = ProgressBar(min=0, max=100, value=0)
        self._busy_bar = BusyBar(self.bar.native)
        self.cancel = PushButton(
            text="Cancel", tooltip="Stop reading; what was loaded before stays."
        )
        self.stop = PushButton(
            text="Stop",
            tooltip="Measure no further image; those that are measured become a map.",
        )
        self.space = ComboBox(
            choices=[],
            tooltip="Which numbers of the file are embedded, such as its principal "
            "components.",
        )
        self.batches = ComboBox(choices=[NO_BATCHES], tooltip=BATCHES_TIP)
        self.notes = text_label()
        self.trouble = text_label(role="error")
        self.drop = CheckBox(
            text="Leave out rows with missing values",
            tooltip="Map the complete rows only; the others stay in the saved file, "
            "unassigned.",
        )
        self.genes_in_rows = text_label(role="warning")
        self.transpose = PushButton(text="Transpose")
        self.recovery_banner = RecoveryBanner(self._session)
        self.way = Breadcrumb(self._session, self._maps)
        self.recipe = RecipePanel()
        self.columns = ColumnsPanel()
        self.join = JoinPanel(self._viewer)
        self.mask = MaskOffer(self._viewer, self._session)
        self.measure = MeasurePanel(self._viewer)
        self.stale = StaleLabels(self._linked_layers)
        self.relink = Relink(
            self._viewer, self._session, self._loading, self._linked_layers
        )
        self.last_maps = LastMaps()
        self.open_button = PushButton(
            text="Open…",
            tooltip="Load .h5ad, .zarr, 10x counts, .csv, .parquet, .npy or .npz.",
        )
        self.layer_button = PushButton(
            text="From layer",
            tooltip="Load the table of measurements of the selected layer, or the "
            "AnnData that napari-spatialdata gave it.",
        )
        self.sample_button = PushButton(
            text="Sample", tooltip="Load ready-made data to try the game on."
        )

    def _build(self) -> None:
        self.open_menu = QMenu(self)
        self.open_menu.addAction("File…").triggered.connect(self.choose_file)
        self.open_menu.addAction("Folder (.zarr or 10x)…").triggered.connect(
            self.choose_folder
        )
        images = self.open_menu.addAction("Images and labels (folder)…")
        images.triggered.connect(self.choose_images)
        images.setToolTip(IMAGES_TIP)
        self.open_menu.setToolTipsVisible(True)
        self.open_menu.addSeparator()
        self.open_menu.addAction("Session…").triggered.connect(self.choose_session)
        self.recent = self.open_menu.addMenu("Recent maps")
        self.open_menu.aboutToShow.connect(self.recent_requested)
        self.open_button.native.setMenu(self.open_menu)
        menu = QMenu(self)
        for key, words in SAMPLES.items():
            menu.addAction(words).triggered.connect(
                lambda _=False, key=key: self._load(SampleSource(key))
            )
        self.sample_button.native.setMenu(menu)
        self._form = form()
        add_row(self._form, "Space", self.space)
        add_row(self._form, "Mix batches of", self.batches)
        self.column.addWidget(self.recovery_banner)
        self.column.addWidget(self.title)
        self.column.addWidget(self.summary)
        self.column.addWidget(self._progress_row())
        self.column.addLayout(self._form)
        for widget in (self.notes, self.join, self.stale, self.relink, self.trouble):
            self.column.addWidget(widget)
        self.column.addWidget(self.genes_in_rows)
        self.column.addWidget(self.transpose.native)
        self.column.addWidget(self.drop.native)
        for panel in (self.recipe, self.columns, self.mask, self.measure):
            self.column.addWidget(panel)
        self.column.addWidget(self.open_button.native)
        buttons = QHBoxLayout()
        buttons.setSpacing(4)
        for button in (self.layer_button, self.sample_button):
            buttons.addWidget(button.native, 1)
        self.column.addLayout(buttons)
        self.column.addWidget(self.last_maps)
        self._offer_spaces([])
        self._offer_batches(())
        self.drop.native.hide()
        self.transpose.native.hide()
        self.trouble.hide()

    def _progress_row(self) -> QWidget:
        self.bar.native.setProperty("role", "slim")
        self.bar.native.setTextVisible(False)
        self.bar.native.setFixedHeight(6)
        self._progress = QWidget()
        row = QHBoxLayout(self._progress)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.bar.native, 1)
        row.addWidget(self.stop.native)
        row.addWidget(self.cancel.native)
        self.stop.native.hide()
        self._progress.hide()
        return self._progress

    def _connect(self) -> None:
        self.layer_button.changed.connect(self.use_layer)
        self.cancel.changed.connect(lambda: self.cancel_requested.emit())
        self.stop.changed.connect(self._on_stop)
        self.space.changed.connect(self._on_space)
        self.batches.changed.connect(self._on_batches)
        self.drop.changed.connect(self._on_drop)
        self.transpose.changed.connect(self._on_transpose)
        self.recipe.wanted.connect(self._on_recipe)
        self.columns.wanted.connect(lambda names: self._reload(columns=names))
        self.join.wanted.connect(self._join_again)
        self.measure.wanted.connect(self.load_requested)
        self.measure.offered.connect(self._mark_next)
        self.mask.changed.connect(self._mark_next)
        self.measure.images.ticked.connect(self._on_image_ticked)
        self.stale.wanted.connect(self._read_labels_again)
        self.relink.missed.connect(self.troubled)
        self.relink.differs.connect(
            lambda text, can: self.stale.tell(text, can_measure=can)
        )
        self.way.map_requested.connect(self.map_requested)
        self.recovery_banner.recovery_requested.connect(self.recovery_requested)
        self._connections.connect(self._session.dataset_changed, self._show)
        self._connections.connect(self._loading.changed, self.go_back)

    # Asking

    def _choose_folder(self, title: str) -> None:
        name = QFileDialog.getExistingDirectory(self, title)
        if name:
            self._load(source_of(Path(name)))

    def _load(
        self, source: Source, linked: Linked | None = None, table: Table | None = None
    ) -> None:
        self.load_requested.emit(source, linked, table)

    def _read_labels_again(self) -> None:
        """Read the objects of edited labels anew, in the same way."""
        linked, table = self._linked_layers.current, self._linked_layers.table
        taken = self._loading.taken
        if isinstance(taken, ExperimentSource):
            self._linked, self._table = linked, table
            self._loading.ask_again_as(taken)
            self._reload()
            return
        if linked is None:
            return
        images = [image for image in linked.images if image in self._viewer.layers]
        self._linked = Linked(linked.labels, tuple(images))
        self._table = table
        source: Source
        if isinstance(taken, FileSource | FeaturesSource) and taken.request is not None:
            request = replace(taken.request, pixels=finest(linked.labels))
            source = replace(taken, request=request)
        elif isinstance(taken, AnnDataSource):
            source = replace(taken, labels=finest(linked.labels))
        else:
            source = replace(self.measure.measured(self._linked), **self._how())
            if not isinstance(taken, MeasuredSource):
                # The present options are for what a file or sample holds.
                self._loading.options = ReadOptions()
        self._loading.ask_again_as(source)
        self._reload()

    def _join_again(self, request: JoinRequest | None) -> None:
        """Join the rows of the file with other objects, or with none."""
        taken = self._loading.taken
        if isinstance(taken, FileSource | FeaturesSource):
            self._loading.ask_again_as(replace(taken, request=request))
            self._linked, self._table = None, self._linked_layers.table
            self._reload()

    def _on_image_ticked(self) -> None:
        """Cut the pictures of a file's rows out of the images that are ticked."""
        linked, chosen = self._linked_layers.current, self.measure.linked()
        if linked is None or chosen is None or linked.labels is not chosen.labels:
            return
        if isinstance(self._loading.taken, FileSource | AnnDataSource):
            self._linked = chosen
            layers = self._linked_layers
            layers.set(chosen, layers.table, layers.annotation)

    def _how(self) -> dict[str, Any]:
        """Return how the objects were measured; a session file may say anything."""
        dataset = self._session.dataset
        known = {} if dataset is None else dataset.provenance.get("measured")
        known = known if isinstance(known, Mapping) else {}
        axis, groups = known.get("first_axis"), known.get("groups")
        groups = groups if isinstance(groups, list | tuple) else USUAL
        return {
            "first_axis": axis if axis in ("time", "image") else "z",
            "groups": [group for group in GROUPS if group in groups],
            "with_border": known.get("with_border") is not False,
        }

    def _on_stop(self) -> None:
        self.stop.enabled = False
        self.stop_requested.emit()

    def _reload(self, **changes: Any) -> None:
        if self._loading.source is not None:
            options = self._loading.change(**changes)
            self.reload_requested.emit(options, self._linked, self._table)

    def _on_space(self, space: str) -> None:
        self._reload(space=space, columns=None, recipe=None, batch_key=None)

    def _on_batches(self, column: str) -> None:
        self._reload(batch_key=None if column == NO_BATCHES else column)

    def _on_drop(self, drops: bool) -> None:
        self._reload(missing="drop" if drops else "error")

    def _on_transpose(self) -> None:
        turned = not self._loading.options.transposed
        # Other rows have other columns, and other counts.
        self._reload(
            transposed=turned, space=None, columns=None, recipe=None, batch_key=None
        )

    def _on_recipe(self, recipe: Recipe | None) -> None:
        self._reload(recipe=recipe)

    def mix_batches(self, column: str) -> None:
        """Read the data again, with the samples of a column mixed."""
        if column in self.batches.choices:
            self.batches.value = column
        elif column in self.recipe.batches.choices:
            self.recipe.batches.value = column
            self._on_recipe(self.recipe.recipe())

    # What came of it

    def _show_read(self, loaded: LoadResult) -> None:
        """Offer what else could come of the source."""
        is_table = isinstance(self._loading.taken, FileSource | FeaturesSource)
        self.join.show_join(loaded.join, is_table=is_table)
        self._show(self._session.dataset)
        dataset, options = loaded.dataset, self._loading.options
        self._offer_spaces(list(loaded.spaces), options.space or dataset.space)
        self.drop.native.setVisible(self.drop.value)
        asks = self._offer_to_transpose(loaded)
        if loaded.is_counts or asks:  # the offers below say it better
            better = counts_advice(dataset.X, dataset.space)
            better.append(self.genes_in_rows.text())
            self._show_notes([note for note in dataset.notes if note not in better])
        self.recipe.show_for(
            is_counts=loaded.is_counts and not asks,
            applied=options.recipe,
            batch_columns=loaded.batch_columns,
            quality=loaded.quality,
            n_doublets=_n_doublets(dataset),
        )
        self.preparation_offered.emit(self.recipe.is_offered or asks)
        mixed = options.batch_key
        if options.recipe is not None:
            mixed = options.recipe.batch_key
        self._offer_batches(() if loaded.is_counts else loaded.batch_columns, mixed)
        self.mixable_changed.emit(tuple(c for c in loaded.batch_columns if c != mixed))
        columns = () if options.recipe is not None else self._loading.columns
        self.columns.set_columns(columns, dataset.var_names)

    def _offer_to_transpose(self, loaded: LoadResult) -> bool:
        """Ask whether genes in rows are to be columns; return whether that is open."""
        is_turned = self._loading.options.transposed
        asks = loaded.has_genes_in_rows and not is_turned
        show_text(
            self.genes_in_rows,
            GENES_IN_ROWS.format(loaded.dataset.name) if asks else "",
        )
        self.transpose.text = "Transpose back" if is_turned else "Transpose"
        self.transpose.native.setVisible(asks or is_turned)
        set_role(self.transpose.native, "main" if asks else "")
        return asks

    def _set_drop(self, drops: bool) -> None:
        with self.drop.changed.blocked():
            self.drop.value = drops

    def _offer_spaces(self, spaces: list[str], present: str | None = None) -> None:
        with self.space.changed.blocked():
            self.space.choices = spaces
            if present in spaces:
                self.space.value = present
        self._form.setRowVisible(0, len(spaces) > 1)

    def _offer_batches(
        self, columns: Sequence[str], present: str | None = None
    ) -> None:
        """List what Harmony can mix in the components of a file."""
        with self.batches.changed.blocked():
            self.batches.choices = [NO_BATCHES, *columns]
            self.batches.value = present if present in columns else NO_BATCHES
        self._form.setRowVisible(1, bool(columns))

    def _show(self, dataset: Dataset | None) -> None:
        self._mark_next()
        show_text(self.title, dataset.name if dataset else TITLE)
        self.last_maps.setVisible(dataset is None)
        if dataset is None:
            self.recent_requested.emit()
        show_text(self.summary, self._busy or _summary(dataset))
        self._show_notes(() if dataset is None else dataset.notes)

    def _mark_next(self) -> None:
        """Give the colour of what is to be pressed next to one button, or to none."""
        is_first = self._session.dataset is None
        can_measure = not self.measure.isHidden()
        for button, is_next in (
            (self.open_button, is_first and not (can_measure or self.mask.has_mask)),
            (self.mask.use, is_first and not can_measure and self.mask.has_mask),
            (self.measure.measure, is_first and can_measure),
        ):
            set_role(button.native, "main" if is_next else "")

    def _show_notes(self, notes: Sequence[str]) -> None:
        """Tell what was done to the data, but for what is told beside a choice."""
        told = self.join.told
        show_text(self.notes, "\n".join(note for note in notes if note not in told))


def _pixels_of(source: Source | None) -> Any:
    """Return the labels that a source reads its objects from; None without any."""
    if isinstance(source, ExperimentSource):
        images = source.experiment.images
        return None if images is None else images.labels
    request = getattr(source, "request", None)
    return getattr(source, "labels", None) if request is None else request.pixels


def _n_doublets(dataset: Dataset) -> int:
    """Return how many cells the recipe left out as doublets."""
    left_out = dataset.provenance.get("recipe", {}).get("left_out", {})
    return int(left_out.get("doublets", 0))


def _summary(dataset: Dataset | None) -> str:
    if dataset is None:
        return HINT
    rows, columns = dataset.X.shape
    if dataset.is_distances:
        return f"{rows:,} rows by their neighbours, from {dataset.space}"
    return f"{rows:,} rows × {columns:,} values, from {dataset.space}"
