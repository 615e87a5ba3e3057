"""Draws the map of a session: positions and colours of points, landmarks.

The scene is the one that listens to the session for what the canvas shows; whatever is
painted over the map listens to :attr:`Scene.drawn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from psygnal import EmissionInfo
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.core.inspect.true_neighbors import Correction, correct
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.columns import given_maps
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import Levels
from napari_embedding_game.data.predicted import OR_UNLIKE
from napari_embedding_game.session.reference.placed_on import PlacedOn
from napari_embedding_game.session.run.run import Run
from napari_embedding_game.session.view import View
from napari_embedding_game.ui.canvas.layers import BEHIND, BESIDE, MapLayers
from napari_embedding_game.ui.canvas.picture import Looks
from napari_embedding_game.ui.canvas.projection import facing_of
from napari_embedding_game.ui.compat import camera_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import (
    BUILT_IN,
    CLUSTER,
    Colored,
    Legend,
    cluster_levels,
    colored,
    is_choice,
    name_of,
    of_column,
)
from napari_embedding_game.ui.style.colors import Colors
from napari_embedding_game.ui.tasks.throttle import debounced, throttled

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

SELECTED_MAGNIFICATION, MOST_MAGNIFIED = 1.4, 3.0
MUTED, MUTED_VALUE = 0.88, 0.6
"""Share of grey in points outside the selection; of a gene one wants to see both.

Not by opacity: where many points lie on each other the faintest add up to full colour.
"""
GREYS, BEHIND_GREYS = {True: 0.8, False: 0.24}, {True: 0.82, False: 0.27}
"""On a light canvas and on a dark one: of muted points, of cells of a reference."""
PALE = 0.35
"""Share of the colour of its label in a cell of a reference."""
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


class Scene(QObject):
    """Draws snapshots, in step with the selection, the clusters and the look.

    ``on_lost`` is called when the points were deleted or edited by somebody else.
    """

    drawn = Signal()
    """The map, or what is to be seen over it, has changed."""
    legend_changed = Signal(object)
    neighbors_told = Signal(str)
    """A sentence about true neighbours that are shown, "" when none are."""

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace, on_lost: Callable[[], None]
    ) -> None:
        super().__init__()
        self._viewer, self._workspace, self._on_lost = viewer, workspace, on_lost
        self._session = session = workspace.session
        self._connections = Connections()
        self.layers = MapLayers(
            viewer, self._lose, workspace.kept_map, self._on_removed, self.tell_legend
        )
        workspace.kept_map = None
        # A dock that is opened again finds the map of the former one.
        is_there = self.layers.points is not None and session.view.drawn is not None
        self._drawn_run = session.run if is_there else None
        self._unwanted: PlacedOn | None = None
        """A reference whose cells somebody has removed from behind the map."""
        self._is_following = False
        """While a frame is taken up; it is drawn right after."""
        self._is_held = self._is_missed = False
        """Whether the map is left as it is drawn, and whether another one has come."""
        self.is_elsewhere = False
        """Whether true neighbours are drawn elsewhere than they are."""
        self._colored: Colored | None = None
        """The points as they are coloured now."""
        self._legend: Legend | None = None
        self._legend_turn = throttled(LEGEND_MS, self.tell_legend, self)
        self._connections.call(self._legend_turn.cancel)
        self._tidy_soon = self._later(TIDY_MS, self._tidy)
        self._write_soon = self._later(0, self._write_table)
        self._fit_soon = self._later(0, self.layers.fit_camera)
        self._expect_soon = self._later(0, self._expect)
        self._clear_soon = self._later(0, self._clear)
        for signal, slot in (
            (session.dataset_changed, self._on_dataset),
            (session.columns_changed, self._on_columns),
            (session.selection.changed, self.redraw),
            (session.clusters.changed, self._on_clusters),
            (session.view.compared_changed, self.redraw),
            (session.view.laid_out, self._lay_out),
            (session.view.hidden_changed, self._on_clusters),
            (session.look.events, self._on_look),
            (session.state_changed, self._on_state),
            (session.hand.changed, self._tell),
            (viewer.dims.events.order, self._on_axes),
            (viewer.dims.events.ndim, self._on_axes),
            # napari is still about to tell its own widgets
            (viewer.dims.events.ndisplay, self._later(0, self._on_ndisplay)),
            (viewer.events.theme, self._on_theme),
            (camera_of(viewer).events.angles, self._face),
            (workspace.reveal, self.layers.fly_to),
        ):
            self._connections.connect(signal, slot)
        self._face()
        self._show_landmarks()
        self._recolor()
        self._draw_behind()

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
            self.layers.begin(snapshot, dataset.obs)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Draw no change of the clusters while a frame is taken up."""
        self._is_following = True
        try:
            yield
        finally:
            self._is_following = False

    def show_stored(self, snapshot: Snapshot, *, is_same_map: bool = False) -> None:
        """Draw a map of another time; one of the same map where the present one is."""
        dataset = self._session.dataset
        if dataset is not None:
            if not is_same_map or self.layers.points is None:
                self.layers.begin(snapshot, dataset.obs)
            self.draw(snapshot)
            self._tidy_soon()

    def make_room(self, event: object = None) -> None:
        """Move a map that the image of its objects has come to lie on."""
        snapshot = self._session.view.drawn
        if snapshot is not None and self.layers.make_room():
            self.draw(snapshot)
            self._tidy_soon()

    def hold(self) -> None:
        """Leave the map as it is drawn, whatever comes, until :meth:`release`."""
        self._is_held, self._is_missed = True, False

    def show_chosen(self, chosen: NDArray[np.bool_]) -> None:
        """Draw the map, while it is held, as if these points (N,) were selected."""
        if self._session.snapshot is not None:
            self.layers.recolor(self._looks(self._session.snapshot, chosen))

    def show_true_neighbors(self, is_shown: bool) -> None:
        """Draw in the true neighbours of the selection, until the map changes."""
        session, shot = self._session, self._session.view.drawn
        is_free = session.state in RESTING and not session.selection.is_empty
        if self.is_elsewhere and not is_shown:
            self.is_elsewhere = False
            self.neighbors_told.emit("")
            self.release()
        if self.is_elsewhere or not (is_shown and is_free) or shot is None:
            return
        if shot.neighbors is not None:
            points = session.selection.points
            found = correct(shot.embedding, shot.neighbors, points)
            moved = replace(shot, embedding=found.embedding)
            self._is_held = self._is_missed = True
            looks = self._looks(moved)
            self.is_elsewhere = self.layers.show(moved, looks, follows=False)
            self.neighbors_told.emit(told_neighbors(found))

    def release(self) -> None:
        """Draw the map that is there by now."""
        if self._is_held:
            self._is_held = False
            snapshot = self._session.view.drawn
            if self._is_missed and snapshot is not None:
                self.draw(snapshot)
            self.redraw()
            self._tidy_soon()

    def draw(self, snapshot: Snapshot) -> None:
        """Show a snapshot."""
        self.show_true_neighbors(False)
        if self._is_held:
            self._is_missed = True
            return
        session, looks = self._session, self._looks(snapshot)
        layout = session.view.layout
        panels = None if layout is None else layout.panels
        other = None if layout is None else layout.other
        behind = self._behind(snapshot)
        within = None if behind is None else behind.corners
        if panels is not None:  # in space the camera may see these from any side
            within = panels.box if self.layers.is_deep else panels.corners
        settles = session.state in RESTING
        if self.layers.show(snapshot, looks, settles=settles, within=within):
            self._draw_behind()
            self.layers.show_other(BESIDE, other, looks)
            if session.state == "running":
                self._legend_turn.throttle()
            else:
                self.tell_legend()
        if session.state in RESTING:
            self._tidy_soon()
        self.drawn.emit()

    def redraw(self) -> None:
        """Show the points where they are in their present colours and sizes."""
        snapshot = self._session.snapshot
        if snapshot is not None and not self._is_held:
            self.layers.recolor(self._looks(snapshot))
            self._draw_behind()
            self.tell_legend()
        self.drawn.emit()

    # The legend

    def levels(self) -> Levels | None:
        """Return the group that each point is coloured by; None of a scale."""
        return None if self._colored is None else self._colored.find_levels()

    def legend(self) -> Legend:
        """Return how to read the colours, and what is hidden."""
        found, session, view = self._colored, self._session, self._session.view
        legend = Legend("") if found is None else found.legend
        if self.layers.is_density:
            legend = replace(legend, caption=DENSITY)
        if not view.n_hidden:
            return legend
        column, names = self.hideable()
        hidden = view.hidden_levels(column)
        at = frozenset(place for place, name in enumerate(names) if name in hidden)
        told = told_hidden(view, session.look.hidden.column)
        return replace(legend, hidden=at, note=told)

    def hideable(self) -> tuple[str, tuple[str, ...]]:
        """Return the column whose levels points are coloured by, and these; or none."""
        session, levels = self._session, self.levels()
        is_cluster = session.look.color_by == CLUSTER
        if is_cluster or levels is None or session.dataset is None:
            return "", ()
        return name_of(session.look.color_by, session.dataset) or "", levels.names

    def tell_legend(self) -> None:
        """Say how to read the colours, if that has changed."""
        legend = self.legend()
        if not legend.is_as(self._legend):
            self._legend = legend
            self.legend_changed.emit(legend)

    # What happens

    def _tell(self, *event: object) -> None:
        self.drawn.emit()

    def _later(self, milliseconds: int, job: Callable[[], None]) -> Callable[..., None]:
        """Return what has a job done so long after its last call, until closed."""
        turn = debounced(milliseconds, job, self)
        self._connections.call(turn.cancel)
        return lambda *event: turn.throttle()

    def _lose(self) -> None:
        self._on_lost()
        self._drawn_run = None
        self.drawn.emit()

    def _on_removed(self, name: str) -> None:
        """Do without other points whose layer somebody has removed."""
        if name == BESIDE:
            self._session.view.lay_side_by_side(False)
        else:
            self._unwanted = self._session.placed_on

    def _on_dataset(self) -> None:
        self.show_true_neighbors(False)
        self._drawn_run = None
        self._recolor()
        self._clear_soon()
        self.drawn.emit()

    def _clear(self) -> None:
        """Take a map away that is of other data, unless one has come in its place."""
        if self._session.snapshot is None and self._drawn_run is None:
            self.layers.clear()
            self.drawn.emit()

    def _on_columns(self) -> None:
        """Show a column that is worked out anew, such as classes learned again."""
        if self._session.look.color_by not in BUILT_IN:
            self._recolor()
            self.redraw()

    def _on_clusters(self) -> None:
        """Show other clusters, or hide others."""
        if not self._is_following:
            self._show_landmarks()
            self.redraw()
            self._tidy_soon()

    def _on_look(self, info: EmissionInfo) -> None:
        look, name = self._session.look, info.signal.name
        if name == "show_landmarks":
            self._show_landmarks()
        elif name == "color_by" and look.limits is not None:
            look.limits = None  # another measure has other limits
        elif name in ("color_by", "limits"):
            self._recolor()
            self.redraw()
        elif name == "size_by_pressure":
            self.redraw()
        self.drawn.emit()

    def _on_axes(self, event: object = None) -> None:
        """Draw the map upright when other axes are displayed."""
        snapshot = self._session.view.drawn
        if self.layers.turn() and snapshot is not None:
            self.draw(snapshot)
            self.layers.finish()
            self._fit_soon()  # napari has fitted the camera to the former places

    def _on_ndisplay(self) -> None:
        """Draw a map of three dimensions flat, or in space, as napari displays it."""
        self._face()
        snapshot = self._session.view.drawn
        if snapshot is not None and self.layers.is_flattened_otherwise():
            self.draw(snapshot)
            self.layers.finish()
            if self._session.view.panels is not None:
                self._fit_soon()

    def _face(self, event: object = None) -> None:
        """Tell the session from where a map in space is seen."""
        self._session.view.facing = facing_of(self._viewer)

    def _lay_out(self) -> None:
        """Draw groups, or maps, side by side, or the map as a whole."""
        self._show_landmarks()
        snapshot = self._session.view.drawn
        if snapshot is not None and self._session.state in RESTING:
            self.draw(snapshot)
        if self._session.state != "running":
            self._fit_soon()

    def _show_landmarks(self) -> None:
        """Show the landmarks of a game that is played, where the whole map is shown."""
        session = self._session
        is_whole = session.view.panels is None and not session.view.n_hidden
        is_played = session.state in ("running", "paused")
        self.layers.show_landmarks(
            is_whole and (session.look.show_landmarks or is_played)
        )

    def _on_theme(self, event: object = None) -> None:
        self.layers.follow_theme()
        self.redraw()

    def _on_state(self, state: str) -> None:
        self.show_true_neighbors(False)
        self._show_landmarks()
        if state == "preparing":
            self._expect_soon()
        elif state in RESTING:
            if not self._is_following:
                self.layers.discard()
            self._tidy_soon()
        self.drawn.emit()

    def _expect(self) -> None:
        """Make the layers while another thread prepares the run."""
        run, dataset = self._session.run, self._session.dataset
        is_new = run is not None and run.warm_start is None
        if is_new and dataset is not None and self._session.state == "preparing":
            n_landmarks, d = run.settings.n_landmarks, run.settings.n_components
            self.layers.expect(dataset.X.shape[0], n_landmarks, d)

    def _tidy(self) -> None:
        """Do what only a map at rest needs."""
        if self._session.state in RESTING:
            self.layers.finish()
            self._write_soon()  # after what else waits for its turn

    def _write_table(self) -> None:
        """Give napari's layer a table of what is known of each point."""
        dataset, snapshot = self._session.dataset, self._session.snapshot
        if dataset is None or snapshot is None:
            return
        clusters = cluster_levels(self._session.clusters)
        columns = {
            "cluster": pd.Categorical.from_codes(clusters.codes, clusters.names),
            "pressure": snapshot.pressure,
            "stretch": snapshot.stretch,
            "isolation": snapshot.isolation,
        }
        known = {name: x for name, x in columns.items() if x is not None}
        of_maps = [axis for axes in given_maps(dataset.obs).values() for axis in axes]
        others = dataset.obs.drop(columns=of_maps)  # napari tells of all at the mouse
        table = others.rename(columns={name: f"{name} (file)" for name in known})
        for name, values in known.items():  # by place: no index is compared
            table[name] = values
        self.layers.set_features(table)

    # The cells of a reference

    def _behind(self, snapshot: Snapshot | None) -> PlacedOn | None:
        """Return the reference that is drawn behind a snapshot, None for none."""
        session = self._session
        if snapshot is not session.snapshot or session.view.panels is not None:
            return None  # its cells lie where those of the map itself do
        behind = session.behind
        return None if behind is self._unwanted else behind

    def _draw_behind(self) -> None:
        """Draw the cells of a reference grey, or in pale colours of labels on show."""
        behind, session = self._behind(self._session.view.drawn), self._session
        if behind is None or session.dataset is None:
            nothing = Looks(np.empty((0, 4), np.float32), np.empty(0, np.float32))
            self.layers.show_other(BEHIND, None, nothing)
            return
        grey, names = BEHIND_GREYS[self._viewer.theme == "light"], [*behind.names, ""]
        colors = np.array([[grey, grey, grey, 1.0]] * len(names), np.float32)
        predicted = session.dataset.predicted.items()
        shown = [x for name, x in predicted if self._is_colored_by(name)]
        legend = self.legend()
        if legend.colors is not None and any(x.label == behind.label for x in shown):
            for (name, _), rgba in zip(legend.levels, legend.colors, strict=True):
                if name in names:
                    mixed = PALE * rgba[:3] + (1 - PALE) * grey
                    colors[names.index(name), :3] = mixed
        colors = colors[behind.codes]
        looks = Looks(colors, np.ones(len(colors), np.float32))
        self.layers.show_other(BEHIND, behind.cells, looks)

    def _is_colored_by(self, predicted: str) -> bool:
        return self._session.look.color_by in (predicted, predicted + OR_UNLIKE)

    # Colours and sizes

    def _recolor(self) -> None:
        """Find the colours of another choice; by cluster where there is none such."""
        session, look = self._session, self._session.look
        self._colored, dataset = None, session.dataset
        if dataset is None:
            return
        if not is_choice(look.color_by, dataset):  # as of a session file
            look.color_by = CLUSTER  # comes back here
            return
        try:
            if look.color_by not in BUILT_IN:
                self._colored = of_column(look.color_by, dataset, look.limits)
            elif session.snapshot is not None:
                self._colors(session.snapshot)
        except DataError as error:  # the file that the gene is in may be gone
            session.say(str(error))
            look.color_by = CLUSTER
            return
        self.tell_legend()

    def _colors(self, snapshot: Snapshot) -> Colors:
        """Return the colours of points; those by a column are not of a snapshot."""
        session, look = self._session, self._session.look
        if self._colored is None or look.color_by in BUILT_IN:
            palette = self._workspace.palette
            self._colored = colored(
                look.color_by, session, palette, snapshot, look.limits
            )
        return self._colored.rgba

    def _looks(
        self, snapshot: Snapshot, chosen: NDArray[np.bool_] | None = None
    ) -> Looks:
        """Return how the points look, with those that are selected, or chosen (N,)."""
        selection = self._session.selection
        if chosen is None and not selection.is_empty:
            chosen = selection.points
        if chosen is not None and not chosen.any():
            chosen = None
        colors = self._colors(snapshot)
        if chosen is not None:
            colors = np.where(chosen[:, None], colors, self._muted(colors))
        if self._session.look.size_by_pressure and snapshot.has_pressure:
            sizes = magnification(snapshot.pressure)
        else:
            sizes = np.ones(len(colors), np.float32)
            if chosen is not None:
                sizes[chosen] = SELECTED_MAGNIFICATION
        return Looks(
            np.asarray(colors, np.float32),
            sizes,
            None if chosen is None else chosen.copy(),
            self._session.view.hidden,
        )

    def _muted(self, colors: Colors) -> Colors:
        """Return the colours of points that others stand out among: greyer, opaque."""
        is_value = self._colored is not None and self._colored.legend.limits is not None
        share = MUTED_VALUE if is_value else MUTED
        grey = GREYS[self._viewer.theme == "light"]
        muted = colors * np.array([*3 * [1 - share], 0.0], np.float32)
        muted += np.array([*3 * [share * grey], 1.0], np.float32)
        return muted


def told_hidden(view: View, column: str) -> str:
    """Return in a sentence which points are hidden, by a column or by clusters."""
    n_levels, n_points = len(view.hidden_levels(column)), view.n_hidden
    one = "level" if column else "cluster"
    levels = f"1 {one}" if n_levels == 1 else f"{n_levels} {one}s"
    of = f" of {column}" if column else ""
    points = "1 point is" if n_points == 1 else f"{n_points:,} points are"
    return f"{levels}{of} hidden: {points} not drawn."


def told_neighbors(found: Correction) -> str:
    """Return in a sentence what is shown."""
    n_in, n_out = len(found.drawn_in), len(found.stepped_out)
    if not (n_in or n_out):
        return "All true neighbours of the selection are beside it, and no strangers."
    return (
        f"Shown for as long as you press: {n_in:,} true "
        f"{'neighbour' if n_in == 1 else 'neighbours'} from elsewhere drawn in, "
        f"{n_out:,} {'stranger' if n_out == 1 else 'strangers'} stepped out."
    )


def magnification(pressure: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return 1 for 0 up to ``MOST_MAGNIFIED`` for all but a few of the highest."""
    above = pressure[pressure > 0]
    if not len(above):
        return np.ones(len(pressure), np.float32)
    most = max(float(np.percentile(above, 95)), np.finfo(np.float32).tiny)
    share = np.clip(pressure / most, 0, 1)
    return (1 + (MOST_MAGNIFIED - 1) * share).astype(np.float32)
