"""A widget that shows the wells of a plate, with counts or shares of points."""

from __future__ import annotations

import napari
import numpy as np

from napari_embedding_game.data.columns import share_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import PlatePlot
from napari_embedding_game.data.wells import FORMATS, Well, find_smallest_plate_format
from napari_embedding_game.session.plates import (
    Plate,
    describe_well,
    find_plates,
    list_well_columns,
)
from napari_embedding_game.ui.inspector.plots_tab import SAVE_TIP, ask_and_save_plot
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.coloring import (
    make_value_colors,
    make_viridis_shades,
)
from napari_embedding_game.ui.style.form_widgets import ChoiceBox
from napari_embedding_game.ui.style.layouts import horizontal_box, push_button
from napari_embedding_game.ui.style.plot_canvas import PlotCanvas

COUNT = "Number of points"
CHOOSE = "Click a cluster on the map: wells then show its share."
NO_PLATE = (
    "The wells of a plate are shown here, once open data name them in a column "
    "such as Well or Metadata_Well with A01, A02."
)
MAX_NAMED = 4
"""Up to so many clusters are named in the title."""


class PlateWidget(MapTool):
    """Shows the wells of a plate, coloured by the points in them.

    The colour is the share of the clusters that were selected last, else the number of
    points.
    """

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        session = self._session
        self._plates: tuple[Plate, ...] = ()
        self._plates_dataset: Dataset | None = None
        """The dataset of these plates; a new dataset may already be in the session."""
        self._clusters: tuple[int, ...] = ()
        """The clusters that were selected last; a click on a well keeps them."""
        self._columns: list[str] = []
        """The metadata columns with a single value for each well."""
        self.texts: dict[Well, str] = {}
        """The tooltip of each well on show."""
        self.plate_choice = ChoiceBox("", self._show_wells)
        self.plate_choice.setAccessibleName("Plate")
        self.save_button = push_button("Save plot…", SAVE_TIP, self._save_plot)
        self.canvas = PlotCanvas(self._make_well_tooltip, can_drag=True)
        self.canvas.clicked.connect(
            lambda x, y, adds: self._select_wells(x, y, x, y, adds)
        )
        self.canvas.dragged.connect(self._select_wells)
        head = horizontal_box(self.plate_choice, None, self.save_button, stretched=())
        self.lay_out_parts(head, self.state, self.canvas)
        self.main_layout.setStretchFactor(self.canvas, 1)
        self.connect_while_open(
            self.update_view, session.dataset_changed, session.columns_changed
        )
        self.connect_while_open(
            self._show_wells, session.selection.changed, session.clusters.changed
        )
        self.update_view()

    def clear_data(self) -> None:
        """Forget the clusters of the former data."""
        self._clusters = ()

    def update_view(self) -> None:
        """Find the plates of the present dataset, and show the wells of the chosen one.

        The choice of plates is visible for several plates only.
        """
        self._plates_dataset = dataset = self._session.dataset
        self._plates = plates = () if dataset is None else find_plates(dataset)
        self._columns = list_well_columns(dataset, plates) if dataset and plates else []
        self.plate_choice.set_choices(
            (one.name or "No plate", one.name) for one in plates
        )
        self.plate_choice.setVisible(len(plates) > 1)
        for widget in (self.save_button, self.canvas):
            widget.setVisible(bool(plates))
        self._show_wells()

    def _show_wells(self, event: object = None) -> None:
        """Show the wells of the chosen plate, with shares or counts.

        Selected clusters are noted first.  Wells have shares of the noted clusters if
        there are any, and a map, else counts of points.  The scale ends at the highest
        value of all plates, and wells whose points are all selected are marked.

        Without plates the plot is cleared, and a text says what is missing.  While the
        session has a newer dataset the plot stays.
        """
        dataset, plates = self._plates_dataset, self._plates
        selection = self._session.selection
        if not selection.is_of_points:
            self._clusters = selection.clusters
        if not plates:
            self.state.show_text(NO_PLATE)
            self.canvas.show_plot(None)
        if not plates or not self._session.shows_dataset(dataset):
            return
        number, clusters = self.plate_choice.currentIndex(), self._session.clusters
        plate, by_id = plates[number], clusters.clustering.by_id
        chosen = [c for c in self._clusters if c in by_id]
        self.state.show_text("" if chosen else CHOOSE)
        is_share = bool(chosen) and self._session.snapshot is not None
        points = np.isin(clusters.labels, chosen)
        names = [by_id[c].title for c in chosen[:MAX_NAMED]]
        named = ", ".join(names) + (" …" if len(chosen) > MAX_NAMED else "")
        figures = [
            one.compute_selected_shares(points) if is_share else one.count_points()
            for one in plates
        ]
        # All plates have the same scale, so that they can be compared.
        highest = float(np.nanmax(np.concatenate(figures), initial=0.0)) or 1.0
        self.texts = {
            well: describe_well(dataset, plate, well, self._columns)
            + (f"\n{share_text(share)} in {named}" if is_share and len(rows) else "")
            for (well, rows), share in zip(
                plate.wells.items(), figures[number], strict=True
            )
        }
        plot = PlatePlot(
            shape=FORMATS[
                find_smallest_plate_format(well for one in plates for well in one.wells)
            ],
            wells=tuple(plate.wells),
            plate=plate.name,
            rgba=make_value_colors(figures[number], (0.0, highest)),
            title=f"Share of {named}" if is_share else COUNT,
            scale=make_viridis_shades(),
            limits=(0.0, highest),
            is_share=is_share,
            chosen=self._find_fully_selected_wells(plate),
        )
        self.canvas.show_plot(plot)

    def _find_fully_selected_wells(self, plate: Plate) -> tuple[Well, ...]:
        """Return the wells of a plate whose points are all selected.

        There are none while clusters are selected, and none without points.
        """
        selection = self._session.selection
        if not selection.is_of_points:
            return ()
        is_in, wells = selection.points, plate.wells.items()
        return tuple(well for well, rows in wells if len(rows) and is_in[rows].all())

    def _make_well_tooltip(self, x: float, y: float) -> str:
        return self.texts.get((round(y), round(x)), "")

    def _select_wells(
        self, x: float, y: float, to_x: float, to_y: float, is_added: bool
    ) -> None:
        """Select the points of the wells in a rectangle; without wells clear all.

        The rectangle goes from (x, y) to (to_x, to_y) in the plot's axes.  With
        ``is_added`` the points are toggled.  Without a map a text asks for one.
        """
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
            plate = self._plates[self.plate_choice.currentIndex()]
            points = np.zeros(len(session.snapshot.embedding), bool)
            points[np.concatenate([plate.wells[well] for well in wells])] = True
            session.selection.toggle_points(points, is_added=is_added)

    def _save_plot(self) -> None:
        """Ask for a file, save the plot on show, and show the resulting message."""
        if self.canvas.plot is not None:
            self.state.show_text(
                ask_and_save_plot(self.canvas.plot, self, self._session, "plate")
            )
