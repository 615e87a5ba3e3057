"""Draw the snapshots of a session: positions, colours and sizes of points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from psygnal import EmissionInfo
from qtpy.QtCore import QObject, QTimer, Signal

from napari_embedding_game.core.snapshot import FAR, UNLIKE, Snapshot
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import Levels
from napari_embedding_game.data.predicted import OR_UNLIKE
from napari_embedding_game.session.hiding import CLUSTERS, Hiding
from napari_embedding_game.session.panels import Panels
from napari_embedding_game.session.reference.placed_on import PlacedOn
from napari_embedding_game.session.run.run import Run
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.map_picture import Looks
from napari_embedding_game.ui.canvas.projection import facing_of
from napari_embedding_game.ui.compat import camera_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.cluster_colors import places
from napari_embedding_game.ui.style.coloring import (
    BUILT_IN,
    CLUSTER,
    LISTED,
    Colored,
    Legend,
    colored,
    is_choice,
    name_of,
    of_column,
)
from napari_embedding_game.ui.style.colors import Colors
from napari_embedding_game.ui.tasks.throttle import throttled

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

SELECTED_MAGNIFICATION = 1.4
MAX_MAGNIFICATION = 3.0
"""A point under the highest pressure is this much wider: larger ones are slow."""
MUTED, MUTED_VALUE = 0.88, 0.6
"""Share of grey in points outside the selection; of a gene one wants to see both.

Not by opacity: where many points lie on each other the faintest add up to full colour.
"""
GREY_ON_DARK, GREY_ON_LIGHT = 0.24, 0.8
BEHIND_ON_DARK, BEHIND_ON_LIGHT = 0.27, 0.82
"""Grey of the cells of a reference that new cells were placed among."""
PALE = 0.35
"""Share of the colour of its label in such a cell, where the map shows labels."""
TIDY_MS = 300
"""After the last frame or edit, until thumbnails and napari's table have it."""
LEGEND_MS = 400
"""Least time between two legends while the game runs."""
DENSITY = (
    "More points than pixels: each pixel has the mean colour of its points, stronger "
    "where more of them lie. Zoom in to see single points, and their sizes."
)
"""What is told of a picture that shows no points."""
RESTING = ("paused", "finished", "stopped", "failed")


class Drawing(QObject):
    """Draws snapshots, in step with the selection, the clusters and the look.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
    on_lost : callable
        Called when the points were deleted or edited by somebody else.
    """

    legend_changed = Signal(object)

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        on_lost: Callable[[], None],
    ) -> None:
        super().__init__()
        self._viewer = viewer
        self._connections = Connections()
        self._workspace = workspace
        self._session = session = workspace.session
        self._on_lost = on_lost
        self.layers = MapLayers(
            viewer,
            self._lose,
            workspace.kept_map,
            self._on_beside_removed,
            self._on_behind_removed,
            self.tell_legend,
        )
        self._unwanted: PlacedOn | None = None
        """A reference whose cells somebody has removed from behind the map."""
        workspace.kept_map = None
        self._show_landmarks()
        self._followed: tuple[NDArray[np.float32] | None, bool] = None, False
        """The layout that the scale went by last, and whether it was in panels."""
        # A dock that is opened again finds the map of the former one.
        self._drawn_run = session.run if self.layers.points is not None else None
        if self.layers.points is not None and session.drawn is not None:
            self._followed = session.drawn.embedding, session.panels is not None
        self._is_following = False
        """While a frame is taken up; it is drawn right after."""
        self._is_held = self._is_missed = False
        """Whether the map is left as it is drawn, and whether another one has come."""
        self.palette = workspace.palette
        self._colored: Colored | None = None
        """The points as they are coloured now."""
        self._is_fixed = False
        """Whether they are, by a column or gene, whatever becomes of the map."""
        self._legend: Legend | None = None
        self._legend_turn = throttled(LEGEND_MS, self.tell_legend, self)
        self._connections.call(self._legend_turn.cancel)
        self._tidying = self._timer(TIDY_MS, self._tidy)
        self._writing = self._timer(0, self._write_table)
        self._expecting = self._timer(0, self._expect)
        self._fitting = self._timer(0, self.layers.fit_camera)
        self._clearing = self._timer(0, self._clear)
        self._displaying = self._timer(0, self._on_ndisplay)
        for signal, slot in (
            (session.dataset_changed, self._on_dataset),
            (session.columns_changed, self._on_columns),
            (session.selection.changed, self.redraw),
            (session.clusters.changed, self._on_clusters),
            (workspace.reveal, self.layers.fly_to),
            (session.comparing.changed, self.redraw),
            (session.comparing.moved, self._on_way),
            (session.comparing.laid_out, self._on_panels),
            (session.splitting.moved, self._on_panels),
            (session.hiding.changed, self._on_hidden),
            (session.look.events, self._on_look),
            (session.state_changed, self._on_state),
            (viewer.dims.events.order, self._on_axes),
            (viewer.dims.events.ndim, self._on_axes),
            (viewer.dims.events.ndisplay, self._later_on_ndisplay),
            (viewer.events.theme, self._on_theme),
            (camera_of(viewer).events.angles, self._face),
        ):
            self._connections.connect(signal, slot)
        self._face()
        self._choose_coloring()
        self._draw_behind(self._behind(session.drawn))  # of a dock opened again

    def close(self) -> None:
        """Undo the connections to session and viewer; the layers stay."""
        self._connections.close()
        self._workspace.kept_map = self.layers.kept()
        self.layers.close()

    # Frames

    def prepare(self, run: Run, snapshot: Snapshot) -> None:
        """Make the layers ready at the first snapshot of a run."""
        dataset = self._session.dataset
        if run is not self._drawn_run and dataset is not None:
            self._drawn_run = run
            if run.warm_start is not None and self.layers.points is not None:
                return  # it goes on from the map that is drawn
            self.palette.restart()
            self.layers.begin(snapshot, dataset.obs)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Draw no change of the clusters while a frame is taken up."""
        self._is_following = True
        try:
            yield
        finally:
            self._is_following = False

    def show_stored(self, snapshot: Snapshot) -> None:
        """Draw a map of another time."""
        if self._session.dataset is not None:
            self.layers.begin(snapshot, self._session.dataset.obs)
            self.draw(snapshot)
            self._tidying.start()

    def show_again(self, snapshot: Snapshot) -> None:
        """Draw an earlier map of the same points where the present one is."""
        if self.layers.points is None:
            self.show_stored(snapshot)
        else:
            self.draw(snapshot)
            self._tidying.start()

    def make_room(self, event: object = None) -> None:
        """Move a map that the image of its objects has come to lie on."""
        snapshot = self._session.drawn
        if snapshot is not None and self.layers.make_room():
            self.draw(snapshot)
            self._tidying.start()

    def hold(self) -> None:
        """Leave the map as it is drawn, whatever comes, until :meth:`release`."""
        self._is_held, self._is_missed = True, False
        self.layers.fade_landmarks(True)

    def show_chosen(self, chosen: NDArray[np.bool_]) -> None:
        """Draw the map, while it is held, as if these points (N,) were selected."""
        if self._session.snapshot is not None:
            self.layers.recolor(self._looks(self._session.snapshot, chosen))

    def show_instead(self, snapshot: Snapshot) -> bool:
        """Hold the map, and draw its points elsewhere; return whether that was done."""
        self.hold()
        self._is_missed = True
        return self.layers.show(snapshot, self._looks(snapshot), follows=False)

    def release(self) -> None:
        """Draw the map that is there by now."""
        if not self._is_held:
            return
        self._is_held = False
        snapshot = self._session.drawn
        if self._is_missed and snapshot is not None:
            self.draw(snapshot)
        self.redraw()
        self._tidying.start()

    def draw(self, snapshot: Snapshot) -> None:
        """Show a snapshot."""
        if self._is_held:
            self._is_missed = True
            return
        session = self._session
        panels, beside = session.panels, session.comparing.beside
        looks = self._looks(snapshot)
        behind = self._behind(snapshot)
        within = None if behind is None else behind.corners
        follows, settles = self._scaling(snapshot)
        drawn = self.layers.show(
            snapshot,
            looks,
            follows=follows,
            settles=settles,
            within=within if panels is None else self._extent_of(panels),
        )
        if drawn:
            self._draw_behind(behind)
            self.layers.show_beside(None if beside is None else beside.places, looks)
        if drawn and self._session.state == "running":
            self._legend_turn.throttle()
        elif drawn:
            self.tell_legend()
        if self._session.state in RESTING:
            self._tidying.start()

    def _scaling(self, snapshot: Snapshot) -> tuple[bool, bool]:
        """Return whether the scale follows the extent of a snapshot, and all the way.

        A shrinking map is followed gently, so that one that was stopped on its way
        does not fill its box yet.  It stays as it lies, whatever has it drawn again,
        until panels come or go.
        """
        session, former = self._session, self._followed
        has_panels = session.panels is not None
        if session.comparing.drawn is not None and not has_panels:
            return False, False
        self._followed = snapshot.embedding, has_panels
        if session.state not in RESTING:
            return True, False
        is_same = snapshot.embedding is former[0] and has_panels == former[1]
        return not is_same or has_panels, has_panels != former[1]

    def redraw(self) -> None:
        """Show the points where they are in their present colours and sizes."""
        snapshot = self._session.snapshot
        if snapshot is not None and not self._is_held:
            self.layers.recolor(self._looks(snapshot))
            self._draw_behind(self._behind(self._session.drawn))
            self.layers.fade_landmarks(not self._session.selection.is_empty)
            self.tell_legend()

    def levels(self) -> Levels | None:
        """Return the group that each point is coloured by; None of a scale."""
        return None if self._colored is None else self._colored.find_levels()

    def legend(self) -> Legend:
        """Return how to read the colours, and what is hidden."""
        found, hiding = self._colored, self._session.hiding
        legend = Legend(LISTED) if found is None else found.legend
        if self.layers.is_density:
            legend = replace(legend, caption=DENSITY)
        if not hiding.n_points:
            return legend
        column, names = self.hideable()
        hidden = hiding.hidden_of(column)
        places = (place for place, name in enumerate(names) if name in hidden)
        return replace(legend, hidden=frozenset(places), note=told_hidden(hiding))

    def hideable(self) -> tuple[str, tuple[str, ...]]:
        """Return the column of the levels that points are coloured by, and these.

        "" and the ids of the clusters, where these are; no levels of a scale.
        """
        session, levels = self._session, self.levels()
        if session.look.color_by == CLUSTER:
            return CLUSTERS, tuple(str(c.id) for c in session.clusters.clusters)
        if levels is None or session.dataset is None:
            return CLUSTERS, ()
        return name_of(session.look.color_by, session.dataset) or "", levels.names

    def tell_legend(self) -> None:
        """Say how to read the colours, if that has changed."""
        legend = self.legend()
        if not legend.is_as(self._legend):
            self._legend = legend
            self.legend_changed.emit(legend)

    # What happens

    def _lose(self) -> None:
        self._on_lost()
        self._drawn_run = None

    def _on_dataset(self) -> None:
        self._drawn_run = None
        if self._is_color_gone():
            self._session.look.color_by = CLUSTER
        self._choose_coloring()
        self._clearing.start()

    def _on_columns(self) -> None:
        """Show a column that is worked out anew, such as classes learned again."""
        if self._session.look.color_by not in BUILT_IN:
            self._choose_coloring()
            self.redraw()

    def _clear(self) -> None:
        """Take a map away that is of other data, unless one has come in its place."""
        if self._session.snapshot is None and self._drawn_run is None:
            self.layers.clear()

    def _on_clusters(self) -> None:
        if not self._is_following:
            self.redraw()
            self._tidying.start()

    def _on_look(self, info: EmissionInfo) -> None:
        look, name = self._session.look, info.signal.name
        if self._is_color_gone():  # a session file may ask for what is not there now
            look.color_by = CLUSTER
        elif name == "show_landmarks":
            self._show_landmarks()
        elif name == "color_by" and look.limits is not None:
            look.limits = None  # another measure has other limits
        elif name in ("color_by", "limits"):
            self._choose_coloring()
            self.redraw()
        elif name == "size_by":
            self.redraw()

    def _on_hidden(self) -> None:
        self._show_landmarks()
        self.redraw()
        self._tidying.start()

    def _on_axes(self, event: object = None) -> None:
        """Draw the map upright when other axes are displayed."""
        snapshot = self._session.drawn
        if self.layers.turn() and snapshot is not None:
            self.draw(snapshot)
            self.layers.finish()
            self._fitting.start()  # napari has fitted the camera to the former places

    def _later_on_ndisplay(self, event: object = None) -> None:
        self._displaying.start()  # napari is still about to tell its own widgets

    def _on_ndisplay(self) -> None:
        """Draw a map of three dimensions flat, or in space, as napari displays it."""
        self._face()
        snapshot = self._session.drawn
        if snapshot is not None and self.layers.is_flattened_otherwise():
            self.draw(snapshot)
            self.layers.finish()
            if self._session.panels is not None:
                self._fitting.start()

    def _extent_of(self, panels: Panels) -> NDArray[np.floating]:
        """Return the corners (2, d) of what the scale goes by where there are panels.

        In space the camera may see these from any side.
        """
        return panels.box if self.layers.is_deep else panels.corners

    def _face(self, event: object = None) -> None:
        """Tell the session from where a map in space is seen."""
        self._session.facing = facing_of(self._viewer)

    def _on_way(self) -> None:
        """Draw the map on the way to another, or as it is again."""
        snapshot = self._session.drawn
        if snapshot is not None and self._session.state in RESTING:
            self.draw(snapshot)

    def _on_panels(self) -> None:
        """Draw groups, or maps, side by side, or the map as a whole."""
        self._show_landmarks()
        snapshot = self._session.drawn
        if snapshot is not None and self._session.state != "running":
            self.draw(snapshot)
            self._tidying.start()
            self._fitting.start()

    def _show_landmarks(self) -> None:
        """Show the landmarks of a game that is played, where the whole map is shown."""
        session = self._session
        is_whole = session.panels is None and not session.hiding.n_points
        is_played = session.state in ("running", "paused")
        is_wanted = session.look.show_landmarks or is_played
        self.layers.show_landmarks(is_wanted and is_whole)

    def _on_beside_removed(self) -> None:
        self._session.comparing.lay_side_by_side(False)

    def _on_behind_removed(self) -> None:
        self._unwanted = self._session.placed_on

    def _on_theme(self, event: object = None) -> None:
        self.layers.follow_theme()
        if self.layers.behind.layer is not None or not self._session.selection.is_empty:
            self.redraw()

    def _on_state(self, state: str) -> None:
        self._show_landmarks()
        if state == "preparing":
            self._expecting.start()
        elif state in RESTING:
            if not self._is_following:
                self.layers.discard()
            self._tidying.start()

    def _expect(self) -> None:
        """Make the layers while another thread prepares the run."""
        run, dataset = self._session.run, self._session.dataset
        if run is None or run.warm_start is not None:
            return
        if self._session.state == "preparing" and dataset:
            n_landmarks, d = run.settings.n_landmarks, run.settings.n_components
            self.layers.expect(dataset.X.shape[0], n_landmarks, d)

    def _is_color_gone(self) -> bool:
        """Return whether the data do not have what the points are coloured by."""
        dataset, choice = self._session.dataset, self._session.look.color_by
        return dataset is not None and not is_choice(choice, dataset)

    def _choose_coloring(self) -> None:
        session, look = self._session, self._session.look
        self._colored, self._is_fixed = None, look.color_by not in BUILT_IN
        if session.dataset is None:
            return
        try:
            if self._is_fixed:
                found = of_column(look.color_by, session.dataset, look.limits)
                self._colored = found
            elif session.snapshot is not None:
                self._colors_now(session.snapshot)
        except DataError as error:  # the file that the gene is in may be gone
            session.say(str(error))
            look.color_by = CLUSTER  # comes back here
            return
        self.tell_legend()

    def _timer(self, milliseconds: int, job: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(milliseconds)
        timer.timeout.connect(job)
        self._connections.call(timer.stop)
        return timer

    def _tidy(self) -> None:
        """Do what only a map at rest needs."""
        if self._session.state in RESTING:
            self.layers.finish()
            self._writing.start()  # after what else waits for its turn

    def _write_table(self) -> None:
        dataset, snapshot = self._session.dataset, self._session.snapshot
        if dataset is None or snapshot is None:
            return
        columns = {"cluster": self._cluster_names(), "pressure": snapshot.pressure}
        if snapshot.stretch is not None:
            columns["stretch"] = snapshot.stretch
        if snapshot.isolation is not None:
            columns["isolation"] = snapshot.isolation
        of_file = {name: f"{name} (file)" for name in columns}
        table = dataset.obs.rename(columns=of_file)
        for name, values in columns.items():  # by place: no index is compared
            table[name] = values
        self.layers.set_features(table)

    def _cluster_names(self) -> pd.Categorical:
        """Return the name of each point's cluster, (N,), no name being looked at."""
        book = self._session.clusters
        clusters = sorted(book.clusters, key=lambda cluster: cluster.id)
        names = sorted(cluster.name for cluster in clusters)
        place = np.array([names.index(cluster.name) for cluster in clusters], np.int32)
        codes = places([cluster.id for cluster in clusters], book.labels)
        return pd.Categorical.from_codes(place.take(codes), names)

    # The cells of a reference

    def _behind(self, snapshot: Snapshot | None) -> PlacedOn | None:
        """Return the reference that is drawn behind a snapshot, None for none."""
        session = self._session
        if snapshot is not session.snapshot or session.panels is not None:
            return None  # its cells lie where those of the map itself do
        behind = session.behind
        return None if behind is self._unwanted else behind

    def _draw_behind(self, behind: PlacedOn | None) -> None:
        if behind is None:
            self.layers.show_behind(None, np.zeros((0, 4), np.float32))
        else:
            self.layers.show_behind(behind.cells, self._behind_colors(behind))

    def _behind_colors(self, behind: PlacedOn) -> Colors:
        """Return grey, or pale colours of the labels where the map shows those."""
        grey = BEHIND_ON_LIGHT if self._viewer.theme == "light" else BEHIND_ON_DARK
        names = [*behind.names, ""]
        colors = np.array([[*3 * [grey], 1.0]] * len(names), np.float32)
        legend, dataset = self.legend(), self._session.dataset
        shown = dataset is not None and any(
            one.label == behind.label
            and self._session.look.color_by in (name, name + OR_UNLIKE)
            for name, one in dataset.predicted.items()
        )
        if shown and legend.colors is not None:
            known = {name: i for i, (name, _) in enumerate(legend.levels)}
            for place, name in enumerate(names):
                if name in known:
                    mixed = PALE * legend.colors[known[name]][:3] + (1 - PALE) * grey
                    colors[place, :3] = mixed
        return colors[behind.codes]

    # Colours and sizes

    def _looks(
        self, snapshot: Snapshot, chosen: NDArray[np.bool_] | None = None
    ) -> Looks:
        """Return how the points look, with those that are selected, or chosen (N,)."""
        selection = self._session.selection
        if chosen is None and not selection.is_empty:
            chosen = selection.points
        if chosen is not None and not chosen.any():
            chosen = None
        colors, sizes = self._colors_now(snapshot), self._sized_by(snapshot)
        is_sized = sizes is not None
        if sizes is None:
            sizes = np.ones(len(colors))
        if chosen is not None:
            colors = np.where(chosen[:, None], colors, self._muted(colors))
        if chosen is not None and not is_sized:
            sizes[chosen] = SELECTED_MAGNIFICATION
        return Looks(
            np.asarray(colors, np.float32),
            np.asarray(sizes, np.float32),
            None if chosen is None else chosen.copy(),
            self._session.hiding.mask,
        )

    def _colors_now(self, snapshot: Snapshot) -> Colors:
        if self._colored is None or not self._is_fixed:
            session, look = self._session, self._session.look
            self._colored = colored(
                look.color_by, session, self.palette, snapshot, look.limits
            )
        return self._colored.rgba

    def _muted(self, colors: Colors) -> Colors:
        """Return the colours of points that others stand out among: greyer, opaque."""
        is_value = self._legend is not None and self._legend.limits is not None
        share = MUTED_VALUE if is_value else MUTED
        grey = GREY_ON_LIGHT if self._viewer.theme == "light" else GREY_ON_DARK
        muted = colors * np.array([*3 * [1 - share], 0.0], np.float32)
        muted += np.array([*3 * [share * grey], 1.0], np.float32)
        return muted

    def _sized_by(self, snapshot: Snapshot) -> NDArray[np.floating] | None:
        """Return the magnification by what is chosen for it; None for nothing."""
        size_by = self._session.look.size_by
        if size_by == "Pressure":
            return magnification(snapshot.pressure)
        if size_by == "Stretch" and snapshot.stretch is not None:
            return magnification(np.maximum(snapshot.stretch - 1.0, 0.0), FAR - 1.0)
        if size_by == "Isolation" and snapshot.isolation is not None:
            above = np.maximum(snapshot.isolation - 1.0, 0.0)
            return magnification(above, UNLIKE - 1.0)
        return None


def told_hidden(hiding: Hiding) -> str:
    """Return in a sentence which points are hidden."""
    n_levels, column = hiding.n_levels, hiding.column
    one = "level" if column else "cluster"
    levels = f"1 {one}" if n_levels == 1 else f"{n_levels} {one}s"
    of = f" of {column}" if column else ""
    n_points = hiding.n_points
    points = "1 point is" if n_points == 1 else f"{n_points:,} points are"
    return f"{levels}{of} hidden: {points} not drawn."


def magnification(
    values: NDArray[np.floating], most: float | None = None
) -> NDArray[np.floating]:
    """Return 1 for 0 up to ``MAX_MAGNIFICATION`` for high values, such as pressures.

    Parameters
    ----------
    values : (N,) float, 0 and more
    most : float, optional
        What counts as high; by default few of those above 0 are higher.
    """
    above = values[values > 0]
    if not len(above):
        return np.ones(len(values))
    if most is None:
        most = max(float(np.percentile(above, 95)), np.finfo(np.float32).tiny)
    return 1.0 + (MAX_MAGNIFICATION - 1.0) * np.clip(values / most, 0, 1)
