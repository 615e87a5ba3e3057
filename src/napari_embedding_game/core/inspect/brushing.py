"""Paint over points of a map with a brush that knows their neighbours in the data.

A plain brush takes all that lies under it.  This one takes it too, and lets strangers
go: of what was passed over, those leave the set that have few neighbours of the data in
it, compared with what is usual there, and come back where more of them are painted.
Strangers under the brush step out of what is painted; points that lie elsewhere, but
have their neighbours in the set, are drawn in to its rim, where the brush reaches them.
After Jeon et al., "Distortion-aware brushing for reliable cluster analysis in
multidimensional projections" (2025), with the neighbours that made the map in the place
of their similarities.

Each move costs the points near the brush and the lists of neighbours that they are in,
not all of the map.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.true_neighbors import (
    GAP,
    STRANGE,
    mean_places,
)

LEAVES, JOINS = 0.15, 0.25
"""Share of a point's neighbours that are in the set, relative to what is usual in it,
below which it leaves the set, and from which it comes back."""
BELONGS = 0.6
"""Share of the neighbours of a point elsewhere, for it to be drawn in."""
ROUNDS = 4
"""Times that a move goes through what was painted: who leaves takes others along."""
SAMPLE = 5_000
"""Points of the set of which it is found what is usual."""
MOST_STEPS = 8
"""In which a move of the mouse is gone, each no longer than half a radius if it can."""
ELSEWHERE = 3.0
"""Radii from all that was painted, from which on a point lies elsewhere."""
RIM = 1.1
"""Radii from the way of the brush at which points that are drawn in stop."""
CELLS = 4
"""Cells of the painted area to a radius."""
MOST_CELLS = 2_000
"""Of the painted area along one axis: 500 radii, twice the canvas for most brushes."""
FARTHEST = 400
"""Cells that a point goes at most to get out of the painted area."""
_GOLDEN = 0.6180339887
"""Its multiples are spread evenly over the unit interval, whatever their number."""


class ListedBy:
    """Who has a row among its neighbours.

    Parameters
    ----------
    neighbors : (N, k) int array
        Nearest rows of each point in the data, -1 for none.
    """

    def __init__(self, neighbors: NDArray[np.integer]) -> None:
        n = len(neighbors)
        is_there = neighbors >= 0
        self.n_neighbors: NDArray[np.int32] = is_there.sum(axis=1, dtype=np.int32)
        """(N,) how many neighbours each row has."""
        ends = np.concatenate([[0], np.cumsum(self.n_neighbors)])
        columns = neighbors[is_there]
        lists = sp.csr_array((np.ones(len(columns), np.int8), columns, ends), (n, n))
        turned = lists.tocsc()
        self._rows, self._ends = turned.indices, turned.indptr

    def of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return who lists these rows, as often as it lists one of them."""
        begins = self._ends[rows]
        counts = self._ends[rows + 1] - begins
        shift = np.repeat(begins - np.cumsum(counts) + counts, counts)
        found: NDArray[np.intp] = self._rows[shift + np.arange(len(shift))]
        return found


class Brushing:
    """One stroke: from pressing the button of the mouse to letting it go.

    Of maps side by side row i is drawn in several places: i, i + N, i + 2 N ...  The
    set is one of rows, whichever of its places is painted; points move on that map
    alone over which the brush is.

    Parameters
    ----------
    places : (m N, 2) array
        Where the points are drawn, such as pixels of the canvas, of m maps one after
        the other; not changed.  Of points that are not seen NaN.
    neighbors : (N, k) int array, optional
        Nearest rows of each point in the data, -1 for none.  Without them the brush
        takes all that it passes over, and nobody moves.
    radius : float
        Of the brush, in the unit of the places.
    listed_by : ListedBy, optional
        Of the neighbours; made of them by default.
    fixed : (N,) bool array, optional
        Points that are neither painted nor moved, such as hidden ones.
    n_maps : int
        How many maps lie side by side.
    """

    def __init__(
        self,
        places: NDArray[np.floating],
        neighbors: NDArray[np.integer] | None,
        radius: float,
        listed_by: ListedBy | None = None,
        fixed: NDArray[np.bool_] | None = None,
        n_maps: int = 1,
    ) -> None:
        self._n = n = len(places) // n_maps
        self._n_maps = n_maps
        home = np.array(places, np.float32)
        # A column of its own is gone through several times as quickly.
        self._x, self._y = (np.ascontiguousarray(c) for c in home.T)
        is_seen = np.isfinite(self._x) & np.isfinite(self._y)
        self._is_seen = None if is_seen.all() else is_seen
        if self._is_seen is not None:
            home[~is_seen] = 0.0  # nobody is there, but NaN would spread from it
        self._home = home
        self.places = home.copy()
        """(m N, 2) where the points are to be drawn now."""
        self.neighbors: NDArray[np.integer] | None = None
        self._listed_by: ListedBy | None = None
        self.radius = radius
        self._fixed = np.zeros(n, bool) if fixed is None else fixed
        self.chosen = np.zeros(n, bool)
        """(N,) the set."""
        self.passed = np.zeros(n, bool)
        """(N,) what the brush has been over."""
        self.hits = np.zeros(n, np.int32)
        """(N,) how many neighbours of each point are in the set."""
        self.drawn_in = np.zeros(n * n_maps, bool)
        """(m N,) places of points that wait at the rim, or have come in from there."""
        self.stepped_out = np.zeros(n * n_maps, bool)
        """(m N,) places of strangers that were moved out of what is painted."""
        self._rows_passed = np.zeros(0, np.intp)
        self._touched: list[NDArray[np.intp]] = []
        self._begun_plainly: list[NDArray[np.intp]] = []
        """Places that were passed over before the neighbours were known."""
        self._at: NDArray[np.float64] | None = None
        self._map = 0
        """The one over which the brush is."""
        self._area = _PaintedArea(radius)
        if neighbors is not None:
            self.learn(neighbors, listed_by or ListedBy(neighbors))

    @property
    def is_plain(self) -> bool:
        """Whether it takes all that it passes over."""
        return self.neighbors is None

    @property
    def moved(self) -> NDArray[np.intp]:
        """Points that are drawn elsewhere than where they lie, by their places."""
        return np.flatnonzero(self.drawn_in | self.stepped_out)

    def on_any(self, at_places: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows (N,) something is so of at one of their places (m N,)."""
        return np.asarray(at_places.reshape(-1, self._n).any(axis=0))

    def share(self, rows: NDArray[np.intp]) -> NDArray[np.floating]:
        """Return the share of the neighbours of rows that are in the set."""
        assert self._listed_by is not None
        n_neighbors = np.maximum(self._listed_by.n_neighbors[rows], 1)
        return np.asarray(self.hits[rows] / n_neighbors)

    def learn(self, neighbors: NDArray[np.integer], listed_by: ListedBy) -> None:
        """Take the neighbours up, and correct what was painted without them."""
        self.neighbors, self._listed_by = neighbors, listed_by
        if not len(self._rows_passed):
            return
        self._touched = []
        self._count(np.flatnonzero(self.chosen), 1)
        self._correct(np.concatenate(self._begun_plainly))
        self._begun_plainly = []

    def paint(self, place: NDArray[np.floating]) -> None:
        """Go straight on to a place (2,), or begin there."""
        to = np.asarray(place, dtype=float)
        begin = to if self._at is None else self._at
        steps = 2 * np.linalg.norm(to - begin) / self.radius
        n = int(np.clip(np.ceil(steps), 1, MOST_STEPS))
        self._touched = []
        parts = [self._paint(begin + (to - begin) * i / n) for i in range(1, n + 1)]
        under = np.concatenate(parts)
        if self._n_maps > 1 and len(under):
            self._map = int(np.bincount(under // self._n).argmax())
        if not self.is_plain:
            self._correct(under)

    def lift(self) -> None:
        """Take the brush off: the next place is not on the way from this one."""
        self._at = None

    # Inside

    def _correct(self, under: NDArray[np.intp]) -> None:
        """Judge what is painted, and move points after it."""
        usual = self._judge()
        self._draw_in()
        self._step_out(under, usual)

    def _paint(self, to: NDArray[np.float64]) -> NDArray[np.intp]:
        """Take what comes under the brush; return the places under it."""
        begin = to if self._at is None else self._at
        self._at = to
        self._area.add(begin, to)
        under = self._under(begin, to)
        rows = self._rows(under)
        is_fresh = ~self.passed[rows]
        fresh = rows[is_fresh]
        if self._n_maps > 1:  # one row may have been passed over on two maps
            fresh = np.unique(fresh)
        self.passed[fresh] = True
        self._rows_passed = np.concatenate([self._rows_passed, fresh])
        if self.is_plain:
            self.chosen[fresh] = True
            self._begun_plainly.append(under[is_fresh])
        else:
            self._join(fresh)
        return under

    def _under(
        self, begin: NDArray[np.float64], end: NDArray[np.float64]
    ) -> NDArray[np.intp]:
        """Return the places of points that lie under the brush on a straight way."""
        low = np.minimum(begin, end) - self.radius
        high = np.maximum(begin, end) + self.radius
        x, y = self._x, self._y
        within = (x >= low[0]) & (x <= high[0])
        within &= (y >= low[1]) & (y <= high[1])
        places = np.flatnonzero(within)
        places = places[~self._fixed[self._rows(places)]]
        away = _distances(self.places[places].astype(float), begin, end)
        under: NDArray[np.intp] = places[away <= self.radius]
        return under

    def _rows(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        return places % self._n if self._n_maps > 1 else places

    def _places_of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the places of rows on all maps."""
        if self._n_maps == 1:
            return rows
        return (rows + self._n * np.arange(self._n_maps)[:, None]).ravel()

    def _put(self, at: NDArray[np.intp], places: NDArray[np.floating]) -> None:
        self.places[at] = places
        self._x[at], self._y[at] = self.places[at].T

    def _join(self, rows: NDArray[np.intp]) -> None:
        self.chosen[rows] = True
        self._count(rows, 1)
        # Home again, or, of those that were drawn in, among their neighbours.
        places = self._places_of(rows)
        out = places[self.stepped_out[places]]
        self.stepped_out[out] = False
        self._put(out, self._home[out])
        come = places[self.drawn_in[places]]
        if len(come):
            self._put(come, self._means(self.places, come, self.chosen))

    def _leave(self, rows: NDArray[np.intp]) -> None:
        self.chosen[rows] = False
        self._count(rows, -1)
        places = self._places_of(rows)
        back = places[self.drawn_in[places]]
        self.drawn_in[back] = False
        self._put(back, self._home[back])

    def _means(
        self,
        all_places: NDArray[np.float32],
        of: NDArray[np.intp],
        counted: NDArray[np.bool_],
    ) -> NDArray[np.floating]:
        """Return the mean place of neighbours that count, each on its own map."""
        assert self.neighbors is not None
        means = np.empty((len(of), 2))
        for number in range(self._n_maps):
            part = slice(number * self._n, (number + 1) * self._n)
            here = of // self._n == number
            if not here.any():
                continue
            counts = counted
            if self._is_seen is not None:
                counts = counted & self._is_seen[part]
            rows = of[here] - part.start
            means[here] = mean_places(all_places[part], self.neighbors, rows, counts)
        return means

    def _count(self, rows: NDArray[np.intp], step: int) -> None:
        assert self._listed_by is not None
        touched = self._listed_by.of(rows)
        np.add.at(self.hits, touched, step)
        self._touched.append(touched)

    def _judge(self) -> float:
        """Let those leave that do not belong, and others come back.

        Returns
        -------
        float
            The share of neighbours in the set that is usual in it.
        """
        assert self._listed_by is not None
        usual = 0.0
        for _ in range(ROUNDS):
            usual = self._usual()
            rows = self._rows_passed
            is_in, share = self.chosen[rows], self.share(rows)
            # Of who has no neighbours nothing is known: the brush takes it.
            is_known = self._listed_by.n_neighbors[rows] > 0
            leaving = rows[is_in & (share < LEAVES * usual) & is_known]
            coming = rows[~is_in & (share >= JOINS * usual) & (share > 0)]
            self._leave(leaving)
            self._join(coming)
            if not (len(leaving) or len(coming)):
                break
        return usual

    def _usual(self) -> float:
        """Return the share of neighbours in the set that is usual in it."""
        chosen = self._rows_passed[self.chosen[self._rows_passed]]
        some = chosen[:: max(1, len(chosen) // SAMPLE)]
        return float(np.median(self.share(some))) if len(some) else 0.0

    def _draw_in(self) -> None:
        """Draw points in whose neighbours are painted and that lie elsewhere."""
        come = np.flatnonzero(self.drawn_in)
        waiting = come[~self.chosen[self._rows(come)]]
        gone = waiting[self.share(self._rows(waiting)) < BELONGS]
        self.drawn_in[gone] = False
        self._put(gone, self._home[gone])
        if not self._touched:
            return
        rows = np.concatenate(self._touched)
        rows = rows[~(self.passed[rows] | self._fixed[rows])]
        rows = np.unique(rows[self.share(rows) >= BELONGS])
        places = rows + self._map * self._n
        is_free = ~self.drawn_in[places]
        if self._is_seen is not None:
            is_free &= self._is_seen[places]
        places = places[is_free]
        away = self._area.is_away(self._home[places], ELSEWHERE * self.radius)
        places = places[away]
        if not len(places):
            return
        assert self._at is not None
        rows = self._rows(places)
        way = _turned(self._home[places] - self._at, (rows * _GOLDEN) % 1.0 - 0.5)
        begin = self._at + RIM * self.radius * way
        spread = (rows * _GOLDEN**2) % 1.0 * self.radius / 2
        self._put(places, self._area.way_out(begin, way, spread))
        self.drawn_in[places] = True

    def _step_out(self, under: NDArray[np.intp], usual: float) -> None:
        """Let strangers under the brush step out of what is painted, towards home."""
        places = np.unique(under[~self.chosen[self._rows(under)]])
        places = places[self.share(self._rows(places)) < STRANGE * usual]
        if not len(places):
            return
        assert self._at is not None
        others = self._means(self._home, places, ~self.chosen)
        way = others - self.places[places]
        lost = np.linalg.norm(way, axis=1) < self.radius / 2
        way[lost] = self.places[places][lost] - self._at
        way = _turned(way, np.zeros(len(places)))
        spread = (places * _GOLDEN) % 1.0 * (GAP - 1.0) * self.radius
        self._put(places, self._area.way_out(self.places[places], way, spread))
        self.stepped_out[places] = True


class _PaintedArea:
    """Where the brush has been, in cells around the place at which it began.

    Parameters
    ----------
    radius : float
        Of the brush.
    """

    def __init__(self, radius: float) -> None:
        self.radius = radius
        self.cell = radius / CELLS
        self._low: NDArray[np.float64] | None = None
        self._is_painted = np.zeros((MOST_CELLS, MOST_CELLS), bool)
        self._centers: list[NDArray[np.float64]] = []

    def add(self, begin: NDArray[np.float64], end: NDArray[np.float64]) -> None:
        """Paint along a straight way."""
        if self._low is None:
            self._low = begin - self.cell * MOST_CELLS / 2
        reach = RIM * self.radius
        shape = np.array(self._is_painted.shape)
        first = np.floor((np.minimum(begin, end) - reach - self._low) / self.cell)
        last = np.ceil((np.maximum(begin, end) + reach - self._low) / self.cell)
        a = np.clip(first, 0, shape).astype(int)
        b = np.clip(last + 1, 0, shape).astype(int)
        rows, columns = np.meshgrid(
            np.arange(a[0], b[0]), np.arange(a[1], b[1]), indexing="ij"
        )
        cells = np.column_stack([rows.ravel(), columns.ravel()])
        near = _distances(self._low + (cells + 0.5) * self.cell, begin, end) <= reach
        self._is_painted[a[0] : b[0], a[1] : b[1]] |= near.reshape(rows.shape)
        last_one = self._centers[-1] if self._centers else None
        if last_one is None or np.linalg.norm(end - last_one) > self.radius / 4:
            self._centers.append(end)

    def is_away(
        self, places: NDArray[np.floating], distance: float
    ) -> NDArray[np.bool_]:
        """Return whether places (m, 2) are so far from all that was painted."""
        is_away = np.ones(len(places), bool)
        for center in self._centers:
            left = np.flatnonzero(is_away)
            step = places[left] - center
            is_away[left] = (step**2).sum(axis=1) > distance**2
        return is_away

    def way_out(
        self,
        places: NDArray[np.floating],
        way: NDArray[np.floating],
        beyond: NDArray[np.floating],
    ) -> NDArray[np.float64]:
        """Return where straight ways from places (m, 2) come out of what is painted.

        Parameters
        ----------
        places : (m, 2) array
        way : (m, 2) array
            Of length 1.
        beyond : (m,) array
            How far beyond the rim each goes.
        """
        found = np.array(places, dtype=float)
        left = np.arange(len(found))
        for _ in range(FARTHEST):
            left = left[self._holds(found[left])]
            if not len(left):
                break
            found[left] += way[left] * self.cell
        return found + way * beyond[:, None]

    def _holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        assert self._low is not None
        cells = np.floor((places - self._low) / self.cell).astype(int)
        is_inside = np.all((cells >= 0) & (cells < self._is_painted.shape), axis=1)
        holds = np.zeros(len(places), bool)
        holds[is_inside] = self._is_painted[tuple(cells[is_inside].T)]
        return holds


def _distances(
    places: NDArray[np.float64], begin: NDArray[np.float64], end: NDArray[np.float64]
) -> NDArray[np.floating]:
    """Return how far places (m, 2) are from a straight way."""
    step = end - begin
    length = float(step @ step)
    from_begin = places - begin
    along = (
        np.clip(from_begin @ step / length, 0, 1) if length else np.zeros(len(places))
    )
    rest = from_begin - np.clip(along, 0, 1)[:, None] * step
    return np.asarray(np.hypot(rest[:, 0], rest[:, 1]))


def _turned(
    way: NDArray[np.floating], angle: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return directions of length 1, each turned by an angle."""
    direction = np.arctan2(way[:, 1], way[:, 0]) + angle
    return np.column_stack([np.cos(direction), np.sin(direction)])
