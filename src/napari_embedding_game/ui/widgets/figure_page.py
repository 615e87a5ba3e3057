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
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.coloring import (
    CLUSTER,
    gene_values,
    of_values,
)
from napari_embedding_game.ui.style.form_widgets import let_be_narrow
from napari_embedding_game.ui.style.layouts import push_button
from napari_embedding_game.ui.tasks.save_dialog import ask_figure, proposed
from napari_embedding_game.ui.tasks.worker import Latest
from napari_embedding_game.ui.tasks.writing import colors_of

if TYPE_CHECKING:
    import napari

NO_MAP = "Here a map becomes a figure: make one in the Embedding Game first."
NONE = "None"
NOTHING = "Tick at least one panel."
MOST_GENES = 12
BOXES = {
    "clusters": "Clusters with their names",
    "colors": "The map in the colours on show",
    "volcano": "Volcano plot on show",
    "expression": "Dot plot on show",
    "has_caption": "Caption",
}
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

SAVE_TIP = "Write the panels as .pdf, .svg or .png."

Make = Callable[[], Panel]


class FigurePageWidget(MapTool):
    """Which panels a figure has, its width and caption, and a button that saves it."""

    clusters: QCheckBox
    colors: QCheckBox
    volcano: QCheckBox
    expression: QCheckBox
    has_caption: QCheckBox

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        self._writing = Latest(self, self._on_saved, self.say_error)
        for name, words in BOXES.items():
            setattr(self, name, QCheckBox(words))
        self.split_by, self.width_of_page = QComboBox(), QComboBox()
        self.genes, self.caption = QLineEdit(), QPlainTextEdit()
        for name, tip in TIPS.items():
            getattr(self, name).setToolTip(tip)
        self.save = push_button("Save figure…", SAVE_TIP, self._save, "main")
        self.caption.setFixedHeight(54)
        self.caption.setPlaceholderText("What each panel shows")
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
        session = self._session
        changes = session.dataset_changed, session.state_changed, session.restored
        self._connections.connect_all(changes, self._offer)
        self.lay_out(self.choices, self.state)
        self._offer()

    def _offer(self, *event: object) -> None:
        """Show what there is to be drawn."""
        dataset, has_map = self._session.dataset, self._session.snapshot is not None
        self.choices.setVisible(has_map)
        self.say("" if has_map else NO_MAP)
        names, chosen = [], self.split_by.currentText()
        if dataset is not None:
            names = split_columns(dataset.obs)
            self.genes.setPlaceholderText(", ".join(dataset.profile_names[:3]))
        self.split_by.clear()
        self.split_by.addItems([NONE, *names])
        self.split_by.setCurrentText(chosen if chosen in names else NONE)

    def _save(self) -> None:
        dataset = self._session.dataset
        if dataset is None or self._session.snapshot is None or self._writing.is_busy:
            return
        try:
            make = self._panels()
        except DataError as error:
            self.say_error(error)
            return
        path = ask_figure(self, proposed(dataset, "figure"))
        if path is None:
            return
        caption = self.caption.toPlainText().strip()
        has_caption, width = self.has_caption.isChecked(), self.width_of_page

        def write(width: float = width.currentData()) -> str:
            panels = [panel() for panel in make]
            text = (caption or caption_of(panels)) if has_caption else ""
            write_panels(panels, PageSettings(width=width, caption=text), path)
            return path.name

        self.say(f"Saving {path.name} …")
        self._writing.ask(write)

    def _panels(self) -> list[Make]:
        """Return what makes each panel, in any thread.

        Genes are read from the file by then; all else is as it is on show now.
        """
        made: list[Make] = [(lambda panel=panel: panel) for panel in self._maps()]
        made += map(self._gene, self._names())
        kinds = (VolcanoPlot, self.volcano), (ExpressionPlot, self.expression)
        for kind, box in kinds:
            if box.isChecked():
                find = self.workspace.plots.get(kind)
                plot = None if find is None else find(is_saved=True)
                if plot is None:
                    raise DataError(f"{box.text()}: there is none. {box.toolTip()}")
                made.append(lambda plot=plot: plot)
        if not made:
            raise DataError(NOTHING)
        return made

    def _names(self) -> list[str]:
        """Return the genes that a person typed."""
        dataset = self._session.dataset
        assert dataset is not None
        wanted = find_names(split_names(self.genes.text()), dataset.profile_names)
        if wanted.missing:
            names = ", ".join(wanted.missing[:5])
            raise DataError(
                f"These data have no {dataset.word} {names}: check the name."
            )
        if len(wanted.places) > MOST_GENES:
            raise DataError(f"At most {MOST_GENES} genes have room on a page.")
        return [dataset.profile_names[place] for place in wanted.places]

    def _maps(self) -> list[MapPlot]:
        """Return the panels that show the map, but for those of genes."""
        session, column, maps = self._session, self.split_by.currentText(), []
        present, draw = colors_of(self.workspace, session.look.color_by), self._draw()
        if self.clusters.isChecked():
            maps.append(_named(draw(colors_of(self.workspace, CLUSTER), "Clusters")))
        if self.colors.isChecked():
            maps.append(draw(present))
        if column != NONE:
            assert session.dataset is not None
            levels = as_levels(session.dataset.obs[column])
            groups = (
                (one, (levels == one).to_numpy()) for one in levels.cat.categories
            )
            panels = [draw(present, f"{column}: {one}", at) for one, at in groups]
            maps += [panel for panel in panels if len(panel.embedding)]
        return maps

    def _gene(self, name: str) -> Make:
        """Return what reads a gene and draws the map in its colours."""
        dataset, draw = self._session.dataset, self._draw()
        assert dataset is not None

        def make() -> MapPlot:
            return draw(of_values(name, gene_values(dataset, name)).for_figure(name))

        return make

    def _draw(self) -> Callable[..., MapPlot]:
        """Return what draws the points on show in colours: all, or some of (N,)."""
        session = self._session
        assert session.snapshot is not None
        hidden = session.view.hidden
        rows = None if hidden is None else np.flatnonzero(~hidden)
        flat, shown = flat_map(session.snapshot.embedding, session.view.facing, rows)

        def draw(
            colors: PointColors, title: str = "", some: NDArray[np.bool_] | None = None
        ) -> MapPlot:
            rows = shown if some is None else shown[some[shown]]
            of_rows = colors.of(rows)
            return MapPlot(
                embedding=flat[rows], colors=of_rows, title=title or colors.title
            )

        return draw

    def _on_saved(self, name: str) -> None:
        self.say(f"Saved {name}.")


def _named(panel: MapPlot) -> MapPlot:
    """Return a map with the names of its groups at their middles."""
    levels, names = panel.colors.levels, []
    assert levels is not None
    for code, name in enumerate(levels.names):
        places = panel.embedding[levels.codes == code]
        if len(places):
            names.append((name, np.median(places, axis=0)))
    return replace(panel, names=tuple(names), has_key=False)
