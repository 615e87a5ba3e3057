"""Figure page: panels a, b, c of a map, its genes, groups and plots, for print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.page import (
    WIDTHS,
    PageSettings,
    Panel,
    caption_of,
    write_panels,
)
from napari_embedding_game.data.export.plots import (
    ExpressionPlot,
    MapPlot,
    PointColors,
    VolcanoPlot,
    flat_map,
)
from napari_embedding_game.data.gene_names import find_names, split_names
from napari_embedding_game.session.cluster_report import as_levels
from napari_embedding_game.session.panels import split_columns
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.map_widget import MapWidget
from napari_embedding_game.ui.style.coloring import (
    CLUSTER,
    gene_values,
    of_values,
)
from napari_embedding_game.ui.style.form_widgets import (
    let_be_narrow,
    show_text,
    text_label,
)
from napari_embedding_game.ui.tasks.save_dialog import ask_figure, proposed
from napari_embedding_game.ui.tasks.worker import Latest
from napari_embedding_game.ui.tasks.writing import colors_of

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

NO_MAP = "Here a map becomes a figure: make one in the Embedding Game first."
NOTHING = "Tick at least one panel."
MOST_GENES = 12
TIPS = {
    "clusters": "The map in the colours of the clusters, named on it.",
    "colors": "The map as it is coloured now, with its legend.",
    "split_by": "A map for each group of this column, in the colours on show.",
    "genes": f"A map for each name, separated by commas; up to {MOST_GENES}.",
    "volcano": "The comparison of Markers under Selection, once it is open.",
    "expression": "The dot plot under Plots, once it is open.",
    "width_of_page": "How wide journals print a figure.",
    "caption": "The text under the panels; empty: what each panel shows.",
}

Make = Callable[[], Panel]


class FigurePageWidget(MapWidget):
    """Which panels a figure has, its width and caption, and a button that saves it."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        self._session = session = self.workspace.session
        self._writing = Latest(self, self._on_saved, self._on_failed)
        self.clusters = QCheckBox("Clusters with their names")
        self.colors = QCheckBox("The map in the colours on show")
        self.split_by, self.width_of_page = QComboBox(), QComboBox()
        self.genes = QLineEdit()
        self.volcano = QCheckBox("Volcano plot on show")
        self.expression = QCheckBox("Dot plot on show")
        self.has_caption = QCheckBox("Caption")
        self.caption = QPlainTextEdit()
        self.save, self.told = QPushButton("Save figure…"), text_label()
        for name, tip in TIPS.items():
            getattr(self, name).setToolTip(tip)
        self.save.setToolTip("Write the panels as .pdf, .svg or .png.")
        self.save.setProperty("role", "main")
        self.caption.setFixedHeight(54)
        self.has_caption.toggled.connect(self.caption.setEnabled)
        for box in (self.clusters, self.has_caption):
            box.setChecked(True)
        for words, millimetres in WIDTHS.items():
            self.width_of_page.addItem(words, millimetres)
        self.width_of_page.setCurrentIndex(len(WIDTHS) - 1)
        for combo in (self.split_by, self.width_of_page):
            let_be_narrow(combo, 10)
        self.choices = QWidget()
        rows = QFormLayout(self.choices)
        rows.setContentsMargins(0, 0, 0, 0)
        for row in (
            (self.clusters,),
            (self.colors,),
            ("Groups of", self.split_by),
            ("Genes", self.genes),
            (self.volcano,),
            (self.expression,),
            ("Width", self.width_of_page),
            (self.has_caption, self.caption),
            (self.save,),
        ):
            rows.addRow(*row)
        self.column.addWidget(self.choices)
        self.column.addWidget(self.told)
        self.column.addStretch(1)
        self.save.clicked.connect(self._save)
        changes = session.dataset_changed, session.state_changed, session.restored
        self._connections.connect_all(changes, self._offer)
        self._offer()
        self.begin()

    def _offer(self, *event: object) -> None:
        """Show what there is to be drawn."""
        dataset, has_map = self._session.dataset, self._session.snapshot is not None
        self.choices.setVisible(has_map)
        show_text(self.told, "" if has_map else NO_MAP, "note")
        names = [] if dataset is None else split_columns(dataset.obs)
        chosen = self.split_by.currentData()
        self.split_by.clear()
        self.split_by.addItem("None", "")
        for column in names:
            self.split_by.addItem(column, column)
        self.split_by.setCurrentIndex(max(self.split_by.findData(chosen), 0))
        if dataset is not None:
            self.genes.setPlaceholderText(", ".join(dataset.profile_names[:3]))

    def _save(self) -> None:
        dataset = self._session.dataset
        if dataset is None or self._session.snapshot is None or self._writing.is_busy:
            return
        try:
            make = self._panels()
        except DataError as error:
            show_text(self.told, sentence(error), "warning")
            return
        path = ask_figure(self, proposed(dataset, "figure"))
        if path is None:
            return
        caption = self.caption.toPlainText().strip()
        is_told, width = self.has_caption.isChecked(), self.width_of_page.currentData()

        def write() -> str:
            panels = [panel() for panel in make]
            text = (caption or caption_of(panels)) if is_told else ""
            write_panels(panels, PageSettings(width=width, caption=text), path)
            return path.name

        show_text(self.told, f"Saving {path.name} …", "note")
        self._writing.ask(write)

    def _panels(self) -> list[Make]:
        """Return what makes each panel, in any thread.

        Genes are read from the file by then; all else is as it is on show now.
        """
        workspace, session = self.workspace, self._session
        dataset, source = session.dataset, _Source(self.workspace)
        assert dataset is not None
        wanted = find_names(split_names(self.genes.text()), dataset.profile_names)
        if wanted.missing:
            names = ", ".join(wanted.missing[:5])
            raise DataError(
                f"These data have no {dataset.word} {names}: check the name."
            )
        if len(wanted.places) > MOST_GENES:
            raise DataError(f"At most {MOST_GENES} genes have room on a page.")
        maps: list[MapPlot] = []
        if self.clusters.isChecked():
            maps.append(source.named(colors_of(workspace, CLUSTER)))
        present = colors_of(workspace, session.look.color_by)
        if self.colors.isChecked():
            maps.append(source.panel(present))
        column = self.split_by.currentData()
        maps += source.split(column, present) if column else []
        made: list[Make] = [(lambda panel=panel: panel) for panel in maps]
        names = [dataset.profile_names[place] for place in wanted.places]
        made += [(lambda name=name: source.gene(name)) for name in names]
        for kind, box in (
            (VolcanoPlot, self.volcano),
            (ExpressionPlot, self.expression),
        ):
            if box.isChecked():
                plot = workspace.plots.on_show(kind, is_saved=True)
                if plot is None:
                    raise DataError(f"{box.text()}: there is none. {box.toolTip()}")
                made.append(lambda plot=plot: plot)
        if not made:
            raise DataError(NOTHING)
        return made

    def _on_saved(self, name: str) -> None:
        show_text(self.told, f"Saved {name}.", "note")

    def _on_failed(self, error: BaseException) -> None:
        show_text(self.told, sentence(error), "warning")


class _Source:
    """The points that are on show, flat and without those that are hidden."""

    def __init__(self, workspace: Workspace) -> None:
        session = workspace.session
        assert session.dataset is not None
        assert session.snapshot is not None
        hidden = session.view.hidden
        shown = None if hidden is None else np.flatnonzero(~hidden)
        self._dataset = session.dataset
        self._flat, self._rows = flat_map(
            session.snapshot.embedding, session.view.facing, shown
        )

    def panel(
        self,
        colors: PointColors,
        title: str = "",
        rows: NDArray[np.intp] | None = None,
    ) -> MapPlot:
        """Return the map in these colours, of these rows or of all on show."""
        rows = self._rows if rows is None else rows
        return MapPlot(
            embedding=self._flat[rows],
            colors=colors.of(rows),
            title=title or colors.title,
        )

    def named(self, colors: PointColors) -> MapPlot:
        """Return the map with the names of its groups at their middles."""
        panel = self.panel(colors, "Clusters")
        levels = panel.colors.levels
        assert levels is not None
        names = []
        for code, name in enumerate(levels.names):
            places = panel.embedding[levels.codes == code]
            if len(places):
                names.append((name, np.median(places, axis=0)))
        return replace(panel, names=tuple(names), has_key=False)

    def split(self, column: str, colors: PointColors) -> list[MapPlot]:
        """Return a map of each group of a column."""
        levels = as_levels(self._dataset.obs[column]).iloc[self._rows]
        found = []
        for level in levels.cat.remove_unused_categories().cat.categories:
            rows = self._rows[(levels == level).to_numpy()]
            found.append(self.panel(colors, f"{column}: {level}", rows))
        return found

    def gene(self, name: str) -> MapPlot:
        """Return the map in the colours of a gene, which is read from the data."""
        values = of_values(name, gene_values(self._dataset, name))
        return self.panel(values.for_figure(name))
