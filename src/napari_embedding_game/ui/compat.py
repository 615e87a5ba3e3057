"""Everything here goes beyond napari's public API, and works on without it.

======================  ================================  ==============================
here                    takes of napari                   without it
======================  ================================  ==============================
:func:`unwrap`          ``__wrapped__`` of its proxy      the viewer as it was given
:func:`camera_of`       the camera's place, which moved   the other place
:func:`canvas_widget`   the OpenGL widget of its window   nothing is painted on the map
:func:`scene_of`        the vispy node of a layer         the points are drawn by napari
                                                          at all times
:func:`draw`            a pause of the events of its      ``Layer.refresh`` alone: the
                        list of layers                    list is drawn anew with it
:func:`in_place`        arrays that its layers hold       the layers' own setters
:class:`LockedPoints`   ``_type_string``, ``_editable``,  :func:`points_class` returns
                        ``_paste_data``                   napari's ``Points``
:class:`LandmarkPoints` ``_move``                         a landmark is moved in the
                                                          layer until the next frame
:class:`MapPoints`      the ``_view`` properties of its   napari's own properties, which
                        points, ``_extent_data``          copy; no order of drawing
                        ``_face``                         colours are written at once
:func:`hold_small`      ``_size``, and the ``colors`` of  twice the memory
                        ``_face`` and ``_border``
:func:`alike_points`    the same, ``_data``, ``_shown``,  napari goes through all
                        ``_symbol``, ``_border_width``    points to make a layer
======================  ================================  ==============================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from napari.layers import Layer, Points
from napari.utils.notifications import show_info
from numpy.typing import NDArray
from qtpy.QtOpenGLWidgets import QOpenGLWidget
from qtpy.QtWidgets import QMainWindow, QWidget
from vispy.gloo import gl

from napari_embedding_game.ui.main_window import main_window_of
from napari_embedding_game.ui.point_looks import DrawingOrder, PointLooks

LOCKED = (
    "The places of points and landmarks come from the data: they cannot be moved or "
    "deleted one by one. To move a cluster, choose napari's 'Pan/zoom' mode, wait "
    "until the map rests and drag the cluster by its name. To leave points out, "
    "select the others and click 'Map of its own'; to hide the layer, click its eye."
)
MOST_IN_THUMBNAIL = 1_000
"""Points; napari draws no more in the picture of a layer in its list."""
ALIKE_FROM = 100_000
"""Points from which on a layer is made of one of them."""
OF_EACH = ("_data", "_shown", "_size", "_symbol", "_border_width")
"""Attributes of napari's points that hold something of each."""
IN_ROW = 64
"""Points that are compared at once."""
GL_RENDERER = 0x1F01
SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "gdi generic", "software")
"""Parts of the names under which OpenGL without a graphics card is known."""
VIEWS = (
    "_view_indices",
    "_view_data",
    "_view_size",
    "_view_face_color",
    "_view_border_color",
    "_view_symbol",
    "_view_selected",
)
"""Properties of napari's points that say what is drawn of them."""


# The viewer and its window


def unwrap(viewer: Any) -> Any:
    """Return the viewer itself: napari hands plugins a proxy of it."""
    return getattr(viewer, "__wrapped__", viewer)


def camera_of(viewer: Any) -> Any:
    """Return the camera of a viewer; napari 0.9 has moved it."""
    return getattr(viewer, "scene", viewer).camera


def canvas_widget(widget: QWidget) -> QWidget | None:
    """Return the canvas of the napari window that a docked widget is in.

    None while it is in no window, or where napari draws without such a widget.
    """
    top = main_window_of(widget)
    center = top.centralWidget() if isinstance(top, QMainWindow) else None
    canvas: QWidget | None = center.findChild(QOpenGLWidget) if center else None
    return canvas


class Scene(NamedTuple):
    """Where napari draws the points of a layer."""

    canvas: QWidget
    """The OpenGL widget."""
    node: Any
    """The vispy node of the layer, whose children move with it."""
    points: Any
    """The part of it that draws the points; ``visible`` can be set."""


def scene_of(viewer: Any, layer: Layer) -> Scene | None:
    """Return where a Points layer is drawn; None where there is no window."""
    try:
        canvas = unwrap(viewer).window._qt_viewer.canvas
        node = canvas.layer_to_visual[layer].node
        return Scene(canvas.native, node, node.points_markers)
    except (AttributeError, KeyError):
        return None


def draw_now(scene: Scene) -> None:
    """Draw the canvas, and return when it has been drawn."""
    scene.canvas.repaint()
    if _make_current(scene):
        gl.glFinish()


def is_drawn_in_software(scene: Scene) -> bool:
    """Return whether OpenGL runs on the processor, without a graphics card."""
    if not _make_current(scene):
        return False
    name = str(gl.glGetParameter(GL_RENDERER)).lower()
    return any(renderer in name for renderer in SOFTWARE)


def _make_current(scene: Scene) -> bool:
    """Have calls of OpenGL go to the canvas; return whether they can."""
    if not isinstance(scene.canvas, QOpenGLWidget) or not scene.canvas.isValid():
        return False
    scene.canvas.makeCurrent()
    return True


# The mouse

ZOOMING = frozenset({"drag_to_zoom", "double_click_to_zoom"})
"""Names of napari's callbacks that zoom, by a box with Alt held and by two clicks."""


def pause_zooming(viewer: Any) -> Callable[[], None]:
    """Have the mouse not zoom with its buttons; return what undoes that.

    The lists are public, the functions in them are not: where they have other names,
    napari goes on to zoom.
    """
    taken = []
    for callbacks in (viewer.mouse_drag_callbacks, viewer.mouse_double_click_callbacks):
        for callback in list(callbacks):
            if getattr(callback, "__name__", "") in ZOOMING:
                callbacks.remove(callback)
                taken.append((callbacks, callback))

    def undo() -> None:
        for callbacks, callback in taken:
            if callback not in callbacks:
                callbacks.insert(0, callback)

    return undo


# Drawing what was written


@contextmanager
def in_place(layer: Layer, name: str) -> Iterator[NDArray[Any]]:
    """Yield an array of a layer to be written into, without events; draw it later.

    napari hands out the arrays that its layers hold, which it does not promise.  Where
    it hands out copies, what was written is assigned, with all that goes with it.

    Parameters
    ----------
    layer : Layer
    name : {"data", "size", "symbol", "face_color"}
    """
    array = getattr(layer, name)
    is_held = array is getattr(layer, name) and array.flags.writeable
    if is_held:
        yield array
        return
    copy = np.array(array)
    yield copy
    setattr(layer, name, copy)


def draw(viewer: Any, layer: Layer) -> None:
    """Draw a layer of which the arrays were written in place, and nothing else.

    napari's list of layers would be drawn anew too, and with it all of the window, as
    it has a canvas in it.
    """
    blocker = getattr(viewer.layers.events, "blocker", nullcontext)
    with blocker():
        # Rings around points that a person has selected go along with them.
        is_marked = bool(getattr(layer, "selected_data", None))
        layer.refresh(thumbnail=False, highlight=is_marked, extent=False)


# Points


class LockedPoints(Points):
    """A Points layer whose points cannot be added, moved or deleted in the window.

    Hover card, lasso, clusters and saved files all go by the layout: a point that was
    dragged would be shown in one place and meant in another.
    """

    @property
    def _type_string(self) -> str:
        return "points"  # what its files, its icon and its controls go by

    @property
    def editable(self) -> bool:
        """Always False: napari then offers no tools that change points."""
        return False

    @editable.setter
    def editable(self, editable: bool) -> None:
        # napari sets it with the data and with the number of displayed axes.
        self._editable = False

    def remove_selected(self) -> None:
        """Say why the selected points stay."""
        show_info(LOCKED)

    def _paste_data(self) -> None:
        show_info(LOCKED)


class LandmarkPoints(LockedPoints):
    """A Points layer of which napari's own tools choose, add and delete points.

    What is asked for goes to whoever the points belong to; the layer does nothing by
    itself, and says so where nobody is there.
    """

    add_requested: Callable[[], None] | None = None
    """Called when a person adds a point under the mouse."""
    removal_requested: Callable[[list[int]], None] | None = None
    """Called with the chosen points when a person deletes them."""

    @property
    def editable(self) -> bool:
        """Whether napari offers its tools: they are for what is seen."""
        return bool(self._editable)

    @editable.setter
    def editable(self, editable: bool) -> None:
        Points.editable.fset(self, editable)

    def add(self, coords: Any) -> None:
        """Ask for a point under the mouse."""
        if self.add_requested is None:
            show_info(LOCKED)
        else:
            self.add_requested()

    def remove_selected(self) -> None:
        """Ask for the selected points to be deleted."""
        if self.removal_requested is None:
            show_info(LOCKED)
        elif self.selected_data:
            self.removal_requested(sorted(map(int, self.selected_data)))

    def _move(self, selection_indices: Any, position: Any) -> None:
        """Leave them where they are: they are dragged by a handle, see ``mouse.py``."""


class MapPoints(LockedPoints):
    """A Points layer that napari draws quickly, as nothing is copied needlessly.

    For each drawing napari copies positions and colours of the points in view, and
    makes a word, then a number of each symbol, which takes longer than the drawing.
    Here all points are in view and, as a rule, of one symbol without a border.  A
    napari that asks for its views by other names is only slower.

    The points of a selection are drawn last, above all others: see ``draw_last``.
    """

    _ordered: DrawingOrder | None = None
    """Which points are drawn, and which of them above others; None: all as they are."""
    _n_ordered = 0
    """Number of points that what is drawn was chosen from."""
    _looks: PointLooks | None = None
    """The colours of the points, until somebody asks the layer for them."""
    _is_left_out = False
    """Whether something else draws the points, and napari none of them."""
    _is_unsliced = False
    """Whether napari was not told which points are in view: all are."""
    _some: NDArray[np.intp] | None = None
    """Those of them that are drawn, where all would take too long; None: all."""
    _compared: tuple[NDArray[np.object_], bool] | None = None
    """The symbols that were compared last, and whether they are all the same."""
    _known_ends: tuple[NDArray[Any], NDArray[np.floating]] | None = None
    """The data of a layer, and their extent (2, d), until napari forgets it."""
    _is_made = False

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._is_made = True

    @property
    def order(self) -> DrawingOrder | None:
        """Which points are drawn, and which above others; None: all as they come."""
        return self._ordered

    @property
    def looks(self) -> PointLooks | None:
        """The colours of the points, where no array of the layer has them."""
        return self._looks

    def color_later(self, looks: PointLooks) -> bool:
        """Take colours, to be written when they are asked for; return whether it did.

        Whoever asks, a person's program or napari itself, finds them written.
        """
        if "_face" not in self.__dict__:
            return False
        self._looks = looks
        return True

    @property
    def _face(self) -> Any:
        """What napari keeps the colours in."""
        looks, self._looks = self._looks, None
        face = self.__dict__["_face"]
        if looks is not None and len(face.colors) == len(looks):
            looks.write_colors(self._own_colors(face))
        return face

    @_face.setter
    def _face(self, face: Any) -> None:
        self.__dict__["_face"] = face

    @property
    def face_color(self) -> Any:
        """Colours of the points, as of napari's layers."""
        face = self._face
        if not face.colors.flags.writeable:  # one for all of them
            face.__dict__["colors"] = np.array(face.colors)
        return Points.face_color.fget(self)

    @face_color.setter
    def face_color(self, colors: Any) -> None:
        Points.face_color.fset(self, colors)

    @staticmethod
    def _own_colors(face: Any) -> NDArray[Any]:
        """Return an array for the colours of the points, which is to be written."""
        if not face.colors.flags.writeable:
            face.__dict__["colors"] = np.zeros(face.colors.shape, face.colors.dtype)
        colors: NDArray[Any] = face.colors
        return colors

    @property
    def features(self) -> Any:
        """The table of the points, as of napari's layers."""
        return Points.features.fget(self)

    @features.setter
    def features(self, features: Any) -> None:
        # napari looks whether colours follow a column: those of the map follow none.
        looks, self._looks = self._looks, None
        Points.features.fset(self, features)
        self._looks = looks

    def draw_last(
        self,
        chosen: NDArray[np.bool_] | None,
        hidden: NDArray[np.bool_] | None = None,
    ) -> None:
        """Draw chosen points (N,) above the others from now on, hidden ones (N,) not.

        None: no points.
        """
        is_as_made = chosen is None and hidden is None
        self._ordered = None if is_as_made else DrawingOrder(chosen, hidden)
        self._n_ordered = 0 if self._ordered is None else self._ordered.n_points
        self._some = None

    def multiply(self, world: NDArray[np.floating]) -> bool:
        """Hold as many points as there are places (N, d), all alike, instead of one.

        What is the same of all is held once, and what nobody has asked for takes no
        memory.

        Returns
        -------
        bool
            Whether napari keeps its points in the way that is known here.
        """
        n, held = len(world), self.__dict__
        managers = [held.get("_face"), held.get("_border")]
        known = [held.get(name, ()) for name in OF_EACH]
        known += [
            getattr(manager, "__dict__", {}).get("colors", ()) for manager in managers
        ]
        if not all(isinstance(one, np.ndarray) and len(one) == 1 for one in known):
            return False
        shown, size, symbol, width, face, border = (one[0] for one in known[1:])
        self._data = world
        self._shown = np.full(n, shown)
        self._size = np.full(n, size, np.float32)
        self._symbol = np.broadcast_to(np.array(symbol, object), n)
        self._border_width = np.broadcast_to(width, n)
        for name, color in (("_border", border), ("_face", face)):
            colors = np.broadcast_to(color.astype(np.float32), (n, 4))
            held[name].__dict__["colors"] = colors
        self.features = pd.DataFrame(index=pd.RangeIndex(n))
        self._clear_extent()
        return True

    def set_view_slice(self) -> None:
        """Find the points in view, as far as napari draws any.

        All are in view where each axis is displayed: to number millions of them with
        each change would take longer than most changes.
        """
        slice_input = getattr(self, "_slice_input", None)
        is_whole = slice_input is not None and not slice_input.not_displayed
        self._is_unsliced = self._is_left_out and is_whole and has_views()
        if not self._is_unsliced:
            super().set_view_slice()

    @property
    def _n_in_view(self) -> int:
        return len(self.data) if self._is_unsliced else len(super()._view_indices)

    def leave_out(self, is_left_out: bool) -> bool:
        """Have napari draw no points from now on, or all; return whether it drew none.

        It prepares them for each drawing, whether they are seen or not.
        """
        was_left_out, self._is_left_out = self._is_left_out, is_left_out
        if is_left_out:
            self._some = None  # once they are drawn again these may be all
        return was_left_out

    def draw_some(self, most: int) -> None:
        """Draw no more points than this from now on, until the next ``draw_last``."""
        n_points = len(self.data)
        stride = -(-n_points // most)
        self._n_ordered = n_points
        if self._ordered is None:
            self._some = np.arange(0, n_points, stride)
        else:
            self._some = self._ordered.one_in(stride)

    @property
    def _drawn(self) -> NDArray[np.intp] | None:
        if self._some is not None:
            return self._some
        return None if self._ordered is None else self._ordered.rows

    @property
    def _draws_all(self) -> bool:
        """Whether all points are drawn as they are."""
        return self._some is None and self._ordered is None

    def _update_thumbnail(self) -> None:
        # It asks for what is in view, of which it draws some.
        before = self._is_left_out, self._some, self._n_ordered
        self._is_left_out = False
        if len(self.data) > MOST_IN_THUMBNAIL:
            self.draw_some(MOST_IN_THUMBNAIL)
        looks, self._looks = self._looks, None
        if looks is not None:  # the colours of these are enough
            some = self._view_indices
            self._own_colors(self._face)[some] = looks.colors_of(some)
        try:
            super()._update_thumbnail()
        finally:
            self._is_left_out, self._some, self._n_ordered = before
            self._looks = looks

    @property
    def _extent_data(self) -> NDArray[np.floating]:
        """Extent (2, d) of the points, found once for each series of frames."""
        if not len(self.data):
            return super()._extent_data
        if self._known_ends is None or self._known_ends[0] is not self.data:
            ends = _ends(self.data, np.min), _ends(self.data, np.max)
            self._known_ends = self.data, np.array(ends, float)
        return self._known_ends[1].copy()  # napari widens what it is given

    def _clear_extent(self) -> None:
        self._known_ends = None
        super()._clear_extent()

    @property
    def current_symbol(self) -> Any:
        """Symbol of all points: a choice in napari's controls changes all of them."""
        return Points.current_symbol.fget(self)

    @current_symbol.setter
    def current_symbol(self, symbol: Any) -> None:
        self._compared = None  # napari writes into the array that is there
        self._own("_symbol")
        Points.current_symbol.fset(self, symbol)
        if self._has_changed_symbol():
            self.symbol = symbol

    @property
    def current_border_width(self) -> Any:
        """Width of the borders of new points, and of those that are selected."""
        return Points.current_border_width.fget(self)

    @current_border_width.setter
    def current_border_width(self, width: Any) -> None:
        self._own("_border_width")
        Points.current_border_width.fset(self, width)

    def _own(self, name: str) -> None:
        """Have an array of one value for all be written by napari for the selected."""
        held = self.__dict__.get(name)
        is_asked = bool(getattr(self, "selected_data", None))
        if is_asked and isinstance(held, np.ndarray) and not held.flags.writeable:
            self.__dict__[name] = held.copy()

    def _has_changed_symbol(self) -> bool:
        # napari also sets it while it makes the layer or takes up a selection.
        is_asked = self._is_made and getattr(self, "_update_properties", True)
        if not is_asked or not len(self.data):
            return False
        return any(str(x) != str(self.current_symbol) for x in set(self.symbol))

    @property
    def _view_indices(self) -> NDArray[np.intp]:
        indices = super()._view_indices
        if not has_views():
            return indices
        if self._is_left_out:
            return indices[:0]
        is_whole = self._n_ordered == self._n_in_view == len(self.data)
        order = self._drawn if is_whole else None
        if order is not None:
            return order
        return np.arange(len(self.data)) if self._is_unsliced else indices

    @property
    def _view_selected(self) -> NDArray[np.intp]:
        if not has_views():
            return super()._view_selected
        chosen = np.fromiter(self.selected_data, dtype=int)
        return np.flatnonzero(np.isin(self._view_indices, chosen))

    @property
    def _view_size(self) -> NDArray[np.floating]:
        sizes = super()._view_size
        if self._is_left_out and has_views():
            return sizes[:0]
        is_whole = self._n_ordered == len(sizes)
        order = self._drawn if is_whole and has_views() else None
        return sizes if order is None else sizes.take(order)

    @property
    def _shows_all(self) -> bool:
        """Whether all points are in view as they are, their coordinates in order."""
        return self._draws_all and self._is_whole

    @property
    def _shows_reordered(self) -> bool:
        """The same, those of a selection last."""
        return not self._draws_all and self._is_whole

    @property
    def _is_whole(self) -> bool:
        slice_input = getattr(self, "_slice_input", None)
        if slice_input is None or self._is_left_out or not has_views():
            return False
        in_order = list(slice_input.displayed) == list(range(self.ndim))
        is_whole = self._draws_all or self._n_ordered == len(self.data)
        return in_order and is_whole and self._n_in_view == len(self.data)

    @property
    def _view_data(self) -> NDArray[np.floating]:
        if self._shows_all:
            return self.data
        if self._shows_reordered:
            return self.data.take(self._drawn, axis=0)
        return super()._view_data

    @property
    def _view_face_color(self) -> NDArray[np.floating]:
        if self._shows_all:
            return self.face_color
        if not has_views():
            return super()._view_face_color
        if self._looks is not None and len(self._looks) == len(self.data):
            return self._looks.colors_of(self._view_indices)
        # ``take`` is several times quicker than an index.
        return self.face_color.take(self._view_indices, axis=0)

    @property
    def _view_border_color(self) -> NDArray[np.floating]:
        if self._is_left_out and has_views():
            return self.border_color[:0]
        # Of borders without a width no colour is seen.
        has_borders = bool(self.border_width.any()) or not len(self.data)
        is_asked = has_borders or not has_views()
        return super()._view_border_color if is_asked else self.border_color[:1]

    @property
    def _view_symbol(self) -> NDArray[np.object_]:
        if not has_views():
            return super()._view_symbol
        symbols = self.symbol  # another array whenever one of them changes
        if symbols.strides == (0,):
            return symbols[:1]
        if self._compared is None or self._compared[0] is not symbols:
            self._compared = symbols, bool((symbols == symbols[:1]).all())
        return symbols[:1] if self._compared[1] else super()._view_symbol


def has_views() -> bool:
    """Return whether napari's points have every property that is overridden here.

    Where one has gone, the others may mean something else: all are napari's own then.
    """
    return all(isinstance(getattr(Points, name, None), property) for name in VIEWS)


def points_class(wanted: type[Points]) -> type[Points]:
    """Return a subclass of Points if napari takes its layers for points, else Points.

    napari names a layer after its class, unless it is told otherwise.
    """
    kind = wanted(np.zeros((1, 2))).as_layer_data_tuple()[2]
    return wanted if kind == "points" else Points


def _ends(
    data: NDArray[np.floating], end: Callable[..., NDArray[np.floating]]
) -> NDArray[np.floating]:
    """Return the lowest or highest coordinates (d,) of points (N, d).

    In rows of many points, which a processor goes through several times as quickly.
    """
    n, d = data.shape
    n_whole = n - n % IN_ROW
    if not (n_whole and data.flags.c_contiguous):
        return end(data, axis=0)
    rows = end(data[:n_whole].reshape(-1, IN_ROW * d), axis=0).reshape(IN_ROW, d)
    return end(np.concatenate([rows, data[n_whole:]]), axis=0)


def alike_points(world: NDArray[np.floating], **settings: Any) -> Points:
    """Return a layer of points that all look the same.

    napari would check and copy the colour of each: seconds for millions of them.

    Parameters
    ----------
    world : (N, d) float32 array
        Taken over.
    **settings
        As for napari's Points, each of them one value for all.
    """
    kind = points_class(MapPoints)
    if kind is MapPoints and len(world) >= ALIKE_FROM:
        layer = MapPoints(world[:1], **settings)
        if layer.multiply(world):
            return layer
    layer = kind(world, **settings)
    hold_small(layer)
    return layer


def hold_small(layer: Points) -> None:
    """Hold the colours and sizes of a layer in float32, which is what is drawn.

    napari holds them in float64: at 20,000,000 points 1.4 GB instead of 0.7, and each
    picture of them would begin with a copy.  Where it does not hold them in these
    attributes it is left as it is.
    """
    for name in ("_face", "_border"):
        held = getattr(getattr(layer, name, None), "__dict__", {})
        if isinstance(held.get("colors"), np.ndarray):
            held["colors"] = held["colors"].astype(np.float32)
    if getattr(layer, "_size", None) is layer.size:
        layer._size = layer.size.astype(np.float32)


def draw_last(
    layer: Points,
    chosen: NDArray[np.bool_] | None,
    hidden: NDArray[np.bool_] | None = None,
) -> None:
    """Draw chosen points (N,) above the others, hidden ones (N,) not; None: none.

    Where napari cannot be told, all are drawn as they come.
    """
    if isinstance(layer, MapPoints):
        layer.draw_last(chosen, hidden)


def drawing_order(layer: Points) -> DrawingOrder | None:
    """Return which points are drawn, and which above others; None: all as they come."""
    return layer.order if isinstance(layer, MapPoints) else None


def write_looks(layer: Points, looks: PointLooks) -> None:
    """Give the points of a layer other sizes, and colours that it asks for when needed.

    Where napari keeps its colours elsewhere they are written at once.
    """
    with in_place(layer, "size") as sizes:
        looks.write_sizes(sizes)
    if not (isinstance(layer, MapPoints) and layer.color_later(looks)):
        with in_place(layer, "face_color") as colors:
            looks.write_colors(colors)


def colors_of(layer: Points) -> PointLooks | NDArray[Any]:
    """Return the colours of a layer, as it has them: to be worked out, or (N, 4)."""
    looks = layer.looks if isinstance(layer, MapPoints) else None
    return layer.face_color if looks is None else looks


def leave_out(layer: Points, is_left_out: bool) -> bool:
    """Have napari draw no points of a layer, or all; return whether it drew none.

    Where it cannot be told, it prepares points for drawing that are not seen.
    """
    return layer.leave_out(is_left_out) if isinstance(layer, MapPoints) else False


def draw_some(layer: Points, most: int) -> None:
    """Have napari draw no more points of a layer than this, where it can be told."""
    if isinstance(layer, MapPoints):
        layer.draw_some(most)
