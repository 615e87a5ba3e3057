"""The right half of the inspector: details of the selected clusters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from magicgui.widgets import ComboBox, PushButton
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import (
    QHBoxLayout,
    QStackedLayout,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import ClusterReport, has_contrasts
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import Linked
from napari_embedding_game.ui.images.picture_grid import PictureGrid
from napari_embedding_game.ui.images.row_pictures import (
    AppearanceWatch,
    pictures_of,
    size_of,
)
from napari_embedding_game.ui.inspector.bar_charts import CompositionBars
from napari_embedding_game.ui.inspector.differences_pane import DifferencesPane
from napari_embedding_game.ui.inspector.dot_plot_pane import DotPlotPane
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane
from napari_embedding_game.ui.inspector.plate_pane import PlatePane
from napari_embedding_game.ui.inspector.scatter_pane import ScatterPane
from napari_embedding_game.ui.inspector.teaching.teach_pane import TeachPane
from napari_embedding_game.ui.inspector.text_list import TextList
from napari_embedding_game.ui.style.coloring import worded
from napari_embedding_game.ui.style.form_widgets import (
    let_be_narrow,
    scrolled,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.stretch_texts import share_text
from napari_embedding_game.ui.style.theme import ThemeColors

N_TEXTS = 200
PLOTTED = "Gene against gene, point by point."
DOT_PLOT, SCATTER, PLATE, TEACH = "Dot plot", "Scatter", "Plate", "Teach"
"""Words of the button that opens the scatter plot."""
DOTTED = "Genes by clusters: where each is high."
ABOUT = "About"
"""Tab of what else stands at the left of the tabs."""
LEFT_NARROWEST, TABS_NARROWEST = 168, 210
"""Pixels in which names and numbers can still be read."""
NARROW = 600
"""Pixels below which the left part is a tab: a table needs the room of both."""


class DetailsPane(QWidget):
    """Shows a report on clusters, with pictures, texts and markers of their points.

    Parameters
    ----------
    markers : MarkersPane
    dot_plot : DotPlotPane
    scatter : ScatterPane
    plate : PlatePane
    teach : TeachPane
    on_pick : callable
        Receives the rows of the points whose pictures or texts were clicked.
    """

    def __init__(
        self,
        markers: MarkersPane,
        dot_plot: DotPlotPane,
        scatter: ScatterPane,
        plate: PlatePane,
        teach: TeachPane,
        on_pick: Callable[[NDArray[np.intp]], None],
    ) -> None:
        super().__init__()
        self._is_told = self._is_narrow = False
        self._has_map = True
        self._dataset: Dataset | None = None
        self._linked: Linked | None = None
        self.hint = text_label()
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = text_label("", "title")
        self.numbers = text_label()
        self.note = text_label(role="plain")
        self.column = ComboBox(
            choices=[],
            tooltip="Column that composition and purity are told by; the card beside "
            "the mouse tells it first.",
        )
        self.another = PushButton(
            text="Shuffle", tooltip="Show these pictures or texts in another order."
        )
        self.composition = CompositionBars()
        self.differences = DifferencesPane()
        self.markers = markers
        self.dot_plot = dot_plot
        self.scatter = scatter
        self.plate = plate
        self.teach = teach
        self.shortcuts: dict[QWidget, QToolButton] = {}
        """Buttons that open the tabs of the whole map while nothing is selected."""
        self.thumbnails = PictureGrid(on_pick)
        self.texts = TextList(on_pick)
        self._looks = AppearanceWatch(self._on_looks)
        self._connections = Connections()
        self._connections.add(self.thumbnails.pictures, self._looks)
        self._connections.add(self.differences, self.markers, self.dot_plot)
        self._connections.add(self.teach)
        self._build()

    def close(self) -> None:
        """Undo the connections to the layers, and find nothing any more."""
        self._connections.close()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        for view in (self.composition, self.differences):
            view.set_theme(colors)
        self.markers.set_theme(colors)
        self.dot_plot.set_theme(colors)
        self.scatter.set_theme(colors)
        self.plate.set_theme(colors)
        self.teach.set_theme(colors)

    def offer_columns(self, columns: list[str]) -> None:
        """Let a person choose among these metadata columns."""
        with self.column.changed.blocked():
            self.column.choices = columns
        self.column.native.setVisible(bool(columns))
        self.dot_plot.offer_columns(columns)
        self.markers.offer_columns(columns)

    def set_source(self, dataset: Dataset | None, linked: Linked | None) -> None:
        """Offer a tab for each kind of thing that is known of the rows."""
        self._dataset, self._linked = dataset, linked
        self.differences.set_dataset(dataset)
        self.plate.set_dataset(dataset)
        self._looks.watch(linked)
        pictures = pictures_of(dataset, linked)
        self.thumbnails.pictures.set_pictures(pictures)
        self.teach.set_source(dataset, pictures)
        self.thumbnails.tell_size(size_of(dataset, linked))
        if dataset is not None:
            names = dataset.obs.index
            self.thumbnails.pictures.row_name = lambda row: str(names[row])
        present = self.tabs.currentWidget()
        self.tabs.clear()
        has_texts = dataset is not None and dataset.texts is not None
        if pictures is not None:
            self.tabs.addTab(self.thumbnails, "Pictures")
        if has_texts:
            self.tabs.addTab(self.texts, "Texts")
        if dataset is None or dataset.images is None:  # single pixels tell nothing
            self.tabs.addTab(self.markers, "Markers")
            if dataset is not None and has_contrasts(dataset):
                self.tabs.addTab(self.differences, "Differences")
            self.tabs.addTab(self.dot_plot, DOT_PLOT)
            self.tabs.addTab(self.scatter, SCATTER)
        if dataset is not None:  # second, where it is not cut off in a small window
            self.tabs.insertTab(1, self.teach, TEACH)
        for view, tip in ((self.scatter, PLOTTED), (self.dot_plot, DOTTED)):
            self.shortcuts[view].setToolTip(worded(tip, dataset))
        if self.plate.has_plate:
            self.tabs.addTab(self.plate, PLATE)
        if self._is_narrow:
            self.tabs.insertTab(0, self._left, ABOUT)
        is_measured = dataset is not None and dataset.word == "measure"
        if present in self.shortcuts and self.tabs.indexOf(present) >= 0:
            self.tabs.setCurrentWidget(present)
        elif is_measured and not dataset.has_expression:
            self.tabs.setCurrentWidget(self.differences)
        self._offer_another()

    def say(self, hint: str, *, has_map: bool = False) -> None:
        """Show a sentence in place of what is told of a selection.

        With a map, what is told of all clusters stays, and can be opened.
        """
        self.hint.setText(hint)
        self._is_told = False
        for view, button in self.shortcuts.items():
            button.setVisible(has_map and self.tabs.indexOf(view) >= 0)
        self._arrange(has_map=has_map)

    def name(self, title: str, note: str) -> None:
        """Show what the clusters are called, and what was noted on them."""
        show_text(self.title, title)
        show_text(self.note, note)

    def show_report(self, report: ClusterReport, clusters: tuple[int, ...]) -> None:
        """Show what is inside these clusters; inside of selected points if none."""
        show_text(self.numbers, _numbers(report))
        self.composition.set_shares(report.composition)
        self.thumbnails.set_rows(self._with_picture(report.draw))
        texts = None if self._dataset is None else self._dataset.texts
        if texts is not None:
            rows = report.draw[:N_TEXTS]
            self.texts.set_texts(rows, [texts[row] for row in rows])
        self._is_told = True
        self._arrange()
        self.differences.set_rows(report.draw, clusters)

    def holds(self, row: int) -> bool:
        """Return whether the picture or the text of a row is among those shown."""
        has_pictures = self.tabs.indexOf(self.thumbnails) >= 0
        rows = np.array([row])
        if has_pictures and self.thumbnails.pictures.places(rows):
            return True
        return self.tabs.indexOf(self.texts) >= 0 and self.texts.holds(row)

    def follow(self, rows: NDArray[np.intp]) -> None:
        """Mark the pictures and texts of these rows."""
        self.thumbnails.follow(rows)
        self.texts.follow(rows)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the left part into a tab where both have no room side by side."""
        super().resizeEvent(event)
        is_narrow = self.width() < NARROW
        if is_narrow == self._is_narrow:
            return
        self._is_narrow = is_narrow
        if is_narrow:
            self.tabs.insertTab(0, self._left, ABOUT)
        else:
            self.tabs.removeTab(self.tabs.indexOf(self._left))
            self._panes.insertWidget(0, self._left, 2)
        self._arrange(has_map=self._has_map)

    # Inside

    def _with_picture(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Leave out rows that are no object of the image."""
        objects = None if self._dataset is None else self._dataset.objects
        return rows if objects is None else rows[objects.present[rows]]

    def _on_looks(self) -> None:
        """Cut the pictures anew: an image layer has other colours now."""
        model = self.thumbnails.pictures
        rows = model.rows
        model.set_pictures(pictures_of(self._dataset, self._linked))
        self.thumbnails.set_rows(rows)
        self.teach.set_source(self._dataset, model.pictures)

    def _open(self, view: QWidget) -> None:
        """Open the tab of a view of the whole map."""
        self.tabs.setCurrentWidget(view)
        self._arrange()

    def _on_tab(self, _: int) -> None:
        self._offer_another()
        self._arrange()

    def _offer_another(self) -> None:
        """Offer another draw beside what is drawn at random."""
        is_drawn = self.tabs.currentWidget() in (self.thumbnails, self.texts)
        self.another.native.setVisible(is_drawn)

    def _arrange(self, *, has_map: bool = True) -> None:
        """Give a view of the whole map all the room; without one, tell the hint."""
        self._has_map = has_map
        is_of_all = has_map and self.tabs.currentWidget() in self.shortcuts
        if not self._is_narrow:
            self._left.setVisible(not is_of_all)
        self._stack.setCurrentIndex(int(self._is_told or is_of_all))

    def _pages(self) -> tuple[QWidget, ...]:
        """Return all that can have a tab, which depends on the data."""
        of_members = self.thumbnails, self.texts, self.markers, self.differences
        return *of_members, self.dot_plot, self.scatter, self.plate, self.teach

    def _build(self) -> None:
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.setMinimumWidth(TABS_NARROWEST)
        self.another.native.setProperty("role", "corner")
        self.tabs.setCornerWidget(self.another.native)
        self.tabs.currentChanged.connect(self._on_tab)
        for page in self._pages():  # a widget without a parent outlives the window
            page.setParent(self.tabs)
            page.hide()
        self._left = left = scrolled(self._left_pane())
        left.setMinimumWidth(LEFT_NARROWEST)
        inside = QWidget()
        self._panes = panes = QHBoxLayout(inside)
        panes.setContentsMargins(8, 4, 4, 4)
        panes.setSpacing(10)
        panes.addWidget(left, 2)
        panes.addWidget(self.tabs, 3)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._hint_page())
        self._stack.addWidget(inside)

    def _hint_page(self) -> QWidget:
        """Return the hint, with buttons for what needs no selection."""
        page = QWidget()
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        for view, words, tip in (
            (self.dot_plot, DOT_PLOT, DOTTED),
            (self.scatter, SCATTER, PLOTTED),
            (
                self.plate,
                PLATE,
                "The wells of the plate, each in the colour of a share or mean.",
            ),
            (
                self.teach,
                TEACH,
                "Sort a few examples into boxes, and have all others sorted like them.",
            ),
        ):
            button = QToolButton()
            button.setText(words)
            button.setToolTip(tip)
            button.setProperty("role", "edit")
            button.clicked.connect(lambda _=False, view=view: self._open(view))
            buttons.addWidget(button)
            self.shortcuts[view] = button
        buttons.addStretch(1)
        column = QVBoxLayout(page)
        column.addStretch(1)
        column.addWidget(self.hint)
        column.addLayout(buttons)
        column.addStretch(1)
        return page

    def _left_pane(self) -> QWidget:
        pane = QWidget()
        column = QVBoxLayout(pane)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(4)
        column.addWidget(self.title)
        column.addWidget(self.numbers)
        column.addWidget(self.note)
        let_be_narrow(self.column.native, 8)
        column.addWidget(self.column.native)
        column.addWidget(self.composition)
        column.addStretch(1)
        return pane


def _numbers(report: ClusterReport) -> str:
    said = f"{_count(report.size)}, {report.share:.1%} of all"
    if report.stretched_share > 0:
        said += f"  ·  {share_text(report.stretched_share)} far from similar points"
    if report.unlike_count:
        said += f"  ·  {report.unlike_count:,} unlike all others"
    if report.has_pressure:
        said += f"  ·  {report.pressured_share:.0%} squeezed"
    return said


def _count(size: int) -> str:
    return "1 point" if size == 1 else f"{size:,} points"
