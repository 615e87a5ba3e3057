"""A widget that lists the tracks of a movie with the clusters of their moments."""

from __future__ import annotations

from functools import partial
from typing import Any

import napari
import pandas as pd

from napari_embedding_game.data.columns import number_text
from napari_embedding_game.data.export.atomic import write_csv
from napari_embedding_game.session.tracks import (
    NO_TRACKS,
    Tracks,
    add_track_columns,
    find_tracks,
)
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.layouts import horizontal_box, push_button
from napari_embedding_game.ui.style.table import Table, TableColumn
from napari_embedding_game.ui.tasks.save_dialog import ask_and_save

COLUMNS = (
    TableColumn("Track", "Id of the track. Click to select its moments."),
    TableColumn("Moments", "Number of times at which the object is on the map."),
    TableColumn("Majority", "The cluster with most moments."),
    TableColumn(
        "Clusters",
        "The clusters that the track passes, in order of time.",
        is_text=True,
    ),
)
SHOWN = ["track", "moments", "majority", "sequence"]
"""The columns of a summary that are listed."""
MAX_LISTED = 1_000
"""Tracks that are listed at most; saved are all."""
LISTED = f"The first {MAX_LISTED:,} are listed."
NO_MAP = "Run the game first: clusters of tracks are listed then."
ADD_TIP = (
    "Add clusters of the track, speed and displacement to Colour by, plots and saved "
    "files. Press again after clusters have changed."
)
SAVE_TIP = "Save all tracks as .csv, with times, first and last cluster."
ADDED = "Added to Colour by: {}."


class TracksWidget(MapTool):
    """Lists tracks; a click selects the moments of a track on map and movie."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        session = self._session
        self.table = Table(*COLUMNS, selects_many=True)
        self.table.rows_picked.connect(self._on_rows_picked)
        self.add_button = push_button("Add columns", ADD_TIP, self._add_columns)
        self.save_button = push_button("Save table…", SAVE_TIP, self._save_table)
        buttons = horizontal_box(self.add_button, self.save_button)
        self.lay_out_parts(self.state, self.table, buttons)
        self.main_layout.setStretchFactor(self.table, 1)
        self.call_soon_after_map_changes(self.update_view)
        data = session.dataset_changed, session.columns_changed
        self.connect_while_open(self.update_view, *data)
        self.connect_while_open(self._show_selection, session.selection.changed)
        self.update_view()

    @property
    def _tracks_of_dataset(self) -> Tracks | None:
        return find_tracks(self._session.dataset)

    def update_view(self) -> None:
        """List the tracks with their present clusters, or say what is missing."""
        tracks, has_map = self._tracks_of_dataset, self._session.snapshot is not None
        for widget in (self.table, self.add_button, self.save_button):
            widget.setVisible(tracks is not None and has_map)
        if tracks is None:
            self.state.show_text(NO_TRACKS)
            return
        if not has_map:
            self.state.show_text(f"{tracks.describe_tracks()} {NO_MAP}")
            return
        is_long = len(tracks.ids) > MAX_LISTED
        self.state.show_text(" ".join([tracks.describe_tracks(), *[LISTED] * is_long]))
        frame = self._summarise_tracks()
        tips = {
            number: f"{number_text(begin)} to {number_text(end)}"
            for number, begin, end in frame[["from", "to"]].itertuples()
        }
        self.table.show_frame(frame[SHOWN].astype({"majority": object}), tips=tips)
        self._show_selection()

    def _summarise_tracks(self, n_first: int | None = MAX_LISTED) -> pd.DataFrame:
        """Return the first tracks with the clusters of their moments; None for all."""
        tracks = self._tracks_of_dataset
        assert tracks is not None
        classes = self._session.clusters.clustering.names_by_point
        return tracks.summarise_classes(classes).head(n_first or len(tracks.ids))

    def _show_selection(self) -> None:
        """Select the lines of the tracks with selected moments."""
        tracks, points = self._tracks_of_dataset, self._session.selection.points
        if tracks is not None and len(points) == len(tracks.track_of_row):
            chosen = tracks.find_tracks_of_rows(points)
            self.table.select_keys(chosen.tolist(), scrolls=len(chosen) == 1)

    def _on_rows_picked(self, numbers: list[int], is_added: bool) -> None:
        """Select all moments of the tracks that are picked in the table now."""
        if (tracks := self._tracks_of_dataset) is not None:
            self._session.selection.select_points(
                tracks.find_moments_of_tracks(numbers)
            )

    def _add_columns(self) -> None:
        """Add classes, speed and displacement to the metadata, and say their names."""
        session = self._session
        classes = session.clusters.clustering.names_by_point
        name = session.add_columns(add_track_columns, classes)
        assert session.dataset is not None
        names = session.dataset.added[name].columns
        self.state.show_text(ADDED.format(", ".join(names)))

    def _save_table(self) -> None:
        """Ask for a .csv file, and write a line for each track."""
        kinds: dict[str, Any] = {".csv": "Table"}
        write = partial(write_csv, self._summarise_tracks(None))
        if message := ask_and_save(self, self._session, "tracks", kinds, write):
            self.state.show_text(message)
