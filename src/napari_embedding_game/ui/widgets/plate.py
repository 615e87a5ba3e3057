"""The plate that points come from: how many, or what share, in each well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QComboBox

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import PlatePlot
from napari_embedding_game.data.wells import FORMATS, Well, smallest_format
from napari_embedding_game.session.cluster_report import is_continuous
from napari_embedding_game.session.plates import (
    Plate,
    plate_columns,
    plates_of,
    well_text,
)
from napari_embedding_game.ui.inspector.plots_tab import save_plot
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.coloring import SHADES
from napari_embedding_game.ui.style.colors import (
    MISSING,
    category_colors,
    value_colors,
    value_extent,
)
from napari_embedding_game.ui.style.layouts import push_button, row
from napari_embedding_game.ui.style.level_click import select_rows
from napari_embedding_game.ui.style.plot_canvas import PlotCanvas
from napari_embedding_game.ui.style.theme import ThemeColors

if TYPE_CHECKING:
    import napari

COUNT, SHARE = "Number of points", "Share of clusters"
CHOOSE = "Click a cluster on the map: wells show its share of their points."
NO_PLATE = (
    "Here are the wells of a plate, once data are open that name them in a column, "
    "such as Well or Metadata_Well with A01, A02."
)
SAVE_TIP = "Save as .pdf, .svg or .png; its text can be edited."
SHOWN_TIP = (
    "What the colours of the wells tell: how many points, the share of the chosen "
    "clusters among them, or a column that is known of each well."
)
PLATE_TIP = "Which of the plates is shown."
SEVERAL, UNKNOWN = "several", "not known"
MOST_NAMED = 4
"""Clusters that are named in the key."""


class PlateWidget(MapTool):
    """The wells of the present data, each in the colour of a share or mean."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        session = self._session
        self._dataset: Dataset | None = None
        self._obs: object = None
        """Its metadata, of which each change makes another frame."""
        self._plates: tuple[Plate, ...] = ()
        self._clusters: tuple[int, ...] = ()
        """Those that were chosen last; a click on a well does not change them."""
        self._columns: list[str] = []
        self.texts: dict[Well, str] = {}
        """What is told of each well of the plate that is shown."""
        self.shown, self.plate = QComboBox(), QComboBox()
        self.saved = push_button("Save…", SAVE_TIP, self._save)
        self.canvas = PlotCanvas(self._tip)
        self.canvas.mark(self._rings)
        self.canvas.clicked.connect(self._choose)
        for box, tip in ((self.shown, SHOWN_TIP), (self.plate, PLATE_TIP)):
            box.setToolTip(tip)
            box.activated.connect(self._draw)
        self.lay_out(row(self.shown, self.plate, self.saved), self.state, self.canvas)
        self.column.setStretchFactor(self.canvas, 1)
        for signal, slot in (
            (session.selection.changed, self._on_selection),
            (session.clusters.changed, self._on_selection),
            (session.dataset_changed, self._on_data),
            (session.columns_changed, self._on_data),
        ):
            self._connections.connect(signal, slot)
        self._on_data()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.canvas.set_theme(colors)

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self._draw()

    # Inside

    def _on_data(self, event: object = None) -> None:
        """Offer what can be shown of the present data."""
        dataset = self._session.dataset
        obs = None if dataset is None else dataset.obs
        if dataset is not self._dataset:
            self._clusters = ()
        if dataset is not self._dataset or obs is not self._obs:
            self._plates = () if dataset is None else plates_of(dataset)
        self._dataset, self._obs = dataset, obs
        plates, former = self._plates, self.shown.currentText()
        self._columns = plate_columns(dataset, plates) if dataset and plates else []
        choices = [COUNT, SHARE, *self._columns]
        self.shown.clear()
        self.shown.addItems(choices)
        self.shown.setCurrentText(former if former in choices else COUNT)
        self.plate.clear()
        self.plate.addItems([plate.name or "no plate" for plate in plates])
        self.plate.setVisible(len(plates) > 1)
        for part in (self.shown, self.saved, self.canvas):
            part.setVisible(bool(plates))
        self._draw()

    def _on_selection(self, event: object = None) -> None:
        selection = self._session.selection
        is_of_clusters = selection.clusters and not selection.is_of_points
        if is_of_clusters and selection.clusters != self._clusters:
            self._clusters = tuple(selection.clusters)
        if self.shown.currentText() == SHARE:
            self._draw()
        else:
            self.canvas.mark(self._rings)

    def _draw(self) -> None:
        """Show the wells of the chosen plate in the chosen way."""
        if not self._plates:
            self.say(NO_PLATE)
            self.canvas.show_plot(None)
        if not self._plates or not self.isVisible():
            return
        self.say()
        dataset, plate = self._dataset, self._plates[self.plate.currentIndex()]
        assert dataset is not None
        choice = self.shown.currentText()
        figures: Sequence[str] = [""] * len(plate.wells)
        if choice == COUNT:
            highest = max(1.0, self._highest(Plate.counts))
            plot = self._by_number(plate, plate.counts(), (0.0, highest), COUNT)
        elif choice == SHARE:
            plot, figures = self._by_share(plate)
        elif is_continuous(dataset.obs[choice]):
            means = [one.means(dataset.obs[choice]) for one in self._plates]
            limits = value_extent(np.concatenate(means))
            shown = means[self.plate.currentIndex()]
            plot = self._by_number(plate, shown, limits, choice)
        else:
            plot = self._by_name(plate, dataset, choice)
        told = [well_text(dataset, plate, well, self._columns) for well in plate.wells]
        self.texts = {
            well: f"{one}\n{said}".strip()
            for well, one, said in zip(plate.wells, told, figures, strict=True)
        }
        self.canvas.show_plot(plot)

    def _by_share(self, plate: Plate) -> tuple[PlatePlot, Sequence[str]]:
        clusters = self._session.clusters
        known = clusters.clustering.by_id
        chosen = [c for c in self._clusters if c in known]
        if not chosen or self._session.snapshot is None:
            self.say(CHOOSE)
            shares = np.full(len(plate.wells), np.nan)
            plot = self._by_number(plate, shares, (0.0, 1.0), SHARE, is_share=True)
            return plot, [""] * len(plate.wells)
        points = np.isin(clusters.labels, chosen)
        shares = plate.shares(points)
        names = [known[c].name for c in chosen[:MOST_NAMED]]
        named = ", ".join(names) + (" …" if len(chosen) > MOST_NAMED else "")
        title = f"Share of {named if known[chosen[0]].is_named else f'cluster {named}'}"
        limits = (0.0, self._highest(lambda one: one.shares(points)) or 1.0)
        plot = self._by_number(plate, shares, limits, title, is_share=True)
        return plot, [
            f"{share:.1%} in {named} ({points[rows].sum():,} of {len(rows):,})"
            if len(rows)
            else ""
            for share, rows in zip(shares, plate.wells.values(), strict=True)
        ]

    def _highest(self, figure: Callable[[Plate], NDArray[np.float64]]) -> float:
        """Return the highest figure of all plates, so that they can be compared."""
        every = np.concatenate([figure(plate) for plate in self._plates])
        return float(np.max(every, where=np.isfinite(every), initial=0.0))

    def _by_number(
        self,
        plate: Plate,
        values: NDArray[np.floating],
        limits: tuple[float, float],
        title: str,
        **more: Any,
    ) -> PlatePlot:
        scale = value_colors(np.linspace(0, 1, SHADES), (0.0, 1.0))
        rgba = value_colors(values, limits)
        return self._made(
            plate, rgba=rgba, title=title, scale=scale, limits=limits, **more
        )

    def _by_name(self, plate: Plate, dataset: Dataset, column: str) -> PlatePlot:
        values = dataset.obs[column].astype("category")
        names = [str(level) for level in values.cat.categories]
        palette = dict(zip(names, category_colors(len(names)), strict=True))
        levels = plate.levels(dataset.obs[column])
        rgba = [palette[one[0]] if len(one) == 1 else MISSING for one in levels]
        told = [(name, palette[name]) for name in names]
        if any(len(one) > 1 for one in levels):
            told.append((SEVERAL, MISSING))
        elif not all(levels):
            told.append((UNKNOWN, MISSING))
        colors = np.array(rgba, np.float32).reshape(-1, 4)
        return self._made(plate, rgba=colors, title=column, levels=tuple(told))

    def _made(self, plate: Plate, **more: Any) -> PlatePlot:
        every = [well for one in self._plates for well in one.wells]
        shape, wells = FORMATS[smallest_format(every)], tuple(plate.wells)
        return PlatePlot(shape=shape, wells=wells, plate=plate.name, **more)

    def _rings(self, axes: Any) -> Sequence[Any]:
        """Draw rings around the wells of which all points are selected."""
        selection, plot = self._session.selection, self.canvas.plot
        if not selection.is_of_points or not isinstance(plot, PlatePlot):
            return ()
        points = selection.points
        plate = self._plates[self.plate.currentIndex()]
        chosen = [
            well
            for well, rows in plate.wells.items()
            if len(rows) and points[rows].all()
        ]
        places = np.array(chosen, float).reshape(-1, 2)[:, ::-1]
        return (plot.rings(axes, places, axes.xaxis.label.get_color()),)

    def _well_at(self, x: float, y: float) -> Well | None:
        well = (round(y), round(x))
        return well if well in self.texts else None

    def _tip(self, x: float, y: float) -> str:
        well = self._well_at(x, y)
        return "" if well is None else self.texts[well]

    def _choose(self, x: float, y: float, is_added: bool) -> None:
        """Select the points of a well; beside them, nothing."""
        session, well = self._session, self._well_at(x, y)
        if session.snapshot is None:
            self.say("Run the game first: a click then selects.")
        elif well is None:
            session.selection.clear()
        else:
            plate = self._plates[self.plate.currentIndex()]
            points = np.zeros(len(session.snapshot.embedding), bool)
            points[plate.wells[well]] = True
            select_rows(session.selection, points, is_added=is_added)

    def _save(self) -> None:
        if self.canvas.plot is not None:
            self.say(save_plot(self.canvas.plot, self, self._session, "plate"))
