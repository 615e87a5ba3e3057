"""The plate that points come from: how many, or what share, in each well."""

from __future__ import annotations

import napari
import numpy as np

from napari_embedding_game.data.columns import share_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import PlatePlot
from napari_embedding_game.data.wells import FORMATS, Well, smallest_plate_format
from napari_embedding_game.session.plates import (
    Plate,
    find_plates,
    list_well_columns,
    well_text,
)
from napari_embedding_game.ui.inspector.plots_tab import SAVE_TIP, ask_and_save_plot
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.coloring import value_colors, viridis_shades
from napari_embedding_game.ui.style.form_widgets import ChoiceBox
from napari_embedding_game.ui.style.layouts import horizontal_box, push_button
from napari_embedding_game.ui.style.plot_canvas import PlotCanvas

COUNT = "Number of points"
CHOOSE = "Click a cluster on the map: wells then show its share."
NO_PLATE = (
    "Here are the wells of a plate, once data are open that name them in a column, "
    "such as Well or Metadata_Well with A01, A02."
)
MAX_NAMED = 4
"""Clusters that are named in the key."""


class PlateWidget(MapTool):
    """The wells of the present data, coloured by what they hold.

    That is the share of the clusters that were selected, else the number of points.
    """

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        session = self._session
        self._plates: tuple[Plate, ...] = ()
        self._of: Dataset | None = None
        """Whose plates these are: others may be on their way."""
        self._clusters: tuple[int, ...] = ()
        """Those that were selected last; a click on a well does not change them."""
        self._columns: list[str] = []
        """What is known of whole wells."""
        self.texts: dict[Well, str] = {}
        """The facts of each well on show."""
        self.plate = ChoiceBox("", self._draw)
        self.plate.setAccessibleName("Plate")
        self.saved = push_button("Save plot…", SAVE_TIP, self._save)
        self.canvas = PlotCanvas(self._tip, can_drag=True)
        self.canvas.clicked.connect(lambda x, y, adds: self._choose(x, y, x, y, adds))
        self.canvas.dragged.connect(self._choose)
        head = horizontal_box(self.plate, None, self.saved, stretched=())
        self.lay_out_parts(head, self.state, self.canvas)
        self.main_layout.setStretchFactor(self.canvas, 1)
        self.connect_while_open(
            self.update_view, session.dataset_changed, session.columns_changed
        )
        self.connect_while_open(
            self._draw, session.selection.changed, session.clusters.changed
        )
        self.update_view()

    def clear_data(self) -> None:
        """Forget the clusters of data that are gone."""
        self._clusters = ()

    def update_view(self) -> None:
        """Find the plates of the present data."""
        self._of = dataset = self._session.dataset
        self._plates = plates = () if dataset is None else find_plates(dataset)
        self._columns = list_well_columns(dataset, plates) if dataset and plates else []
        self.plate.set_choices((one.name or "No plate", one.name) for one in plates)
        self.plate.setVisible(len(plates) > 1)
        for part in (self.saved, self.canvas):
            part.setVisible(bool(plates))
        self._draw()

    # Inside

    def _draw(self, event: object = None) -> None:
        """Show the wells of the chosen plate."""
        dataset, plates = self._of, self._plates
        selection = self._session.selection
        if not selection.is_of_points:
            self._clusters = selection.clusters
        if not plates:
            self.state.show_text(NO_PLATE)
            self.canvas.show_plot(None)
        if not plates or not self._session.shows_dataset(dataset):
            return
        number, clusters = self.plate.currentIndex(), self._session.clusters
        plate, by_id = plates[number], clusters.clustering.by_id
        chosen = [c for c in self._clusters if c in by_id]
        self.state.show_text("" if chosen else CHOOSE)
        is_share = bool(chosen) and self._session.snapshot is not None
        points = np.isin(clusters.labels, chosen)
        names = [by_id[c].title for c in chosen[:MAX_NAMED]]
        named = ", ".join(names) + (" …" if len(chosen) > MAX_NAMED else "")
        figures = [one.shares(points) if is_share else one.counts() for one in plates]
        # So that plates can be compared.
        highest = float(np.nanmax(np.concatenate(figures), initial=0.0)) or 1.0
        self.texts = {
            well: well_text(dataset, plate, well, self._columns)
            + (f"\n{share_text(share)} in {named}" if is_share and len(rows) else "")
            for (well, rows), share in zip(
                plate.wells.items(), figures[number], strict=True
            )
        }
        plot = PlatePlot(
            shape=FORMATS[
                smallest_plate_format(well for one in plates for well in one.wells)
            ],
            wells=tuple(plate.wells),
            plate=plate.name,
            rgba=value_colors(figures[number], (0.0, highest)),
            title=f"Share of {named}" if is_share else COUNT,
            scale=viridis_shades(),
            limits=(0.0, highest),
            is_share=is_share,
            chosen=self._ringed(plate),
        )
        self.canvas.show_plot(plot)

    def _ringed(self, plate: Plate) -> tuple[Well, ...]:
        """Return the wells of which all points are selected, if points are."""
        selection = self._session.selection
        if not selection.is_of_points:
            return ()
        is_in, wells = selection.points, plate.wells.items()
        return tuple(well for well, rows in wells if len(rows) and is_in[rows].all())

    def _tip(self, x: float, y: float) -> str:
        return self.texts.get((round(y), round(x)), "")

    def _choose(
        self, x: float, y: float, to_x: float, to_y: float, is_added: bool
    ) -> None:
        """Select the points of the wells in a rectangle; outside of wells, nothing."""
        session = self._session
        (up, down), (left, right) = (
            sorted(map(round, ends)) for ends in ((y, to_y), (x, to_x))
        )
        wells = [w for w in self.texts if up <= w[0] <= down and left <= w[1] <= right]
        if session.snapshot is None:
            self.state.show_text("Run the game first: a click then selects.")
        elif not wells:
            session.selection.clear()
        else:
            plate = self._plates[self.plate.currentIndex()]
            points = np.zeros(len(session.snapshot.embedding), bool)
            points[np.concatenate([plate.wells[well] for well in wells])] = True
            session.selection.toggle_points(points, is_added=is_added)

    def _save(self) -> None:
        if self.canvas.plot is not None:
            self.state.show_text(
                ask_and_save_plot(self.canvas.plot, self, self._session, "plate")
            )
