"""Draw the map and its legend as a matplotlib figure, without a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.expression_figure import (
    figure_of_matplotlib,
    save_with_text,
)
from napari_embedding_game.data.export.result import EmbeddingResult

_INCHES = (8.0, 6.0)
_DPI = 200
_MOST_IN_LEGEND = 40
_MOST_DRAWN_AS_SHAPES = 5_000  # an .svg of more points is slow to open
_GOLDEN_ANGLE = 0.618034
_NO_VALUE = "missing"
LETTER_WIDTH = 0.55
"""Of an average letter, as a share of its height."""
NAME_STYLE: Mapping[str, Any] = {
    "ha": "center",
    "va": "center",
    # An outline would turn the letters into shapes.
    "bbox": {"facecolor": "white", "alpha": 0.65, "linewidth": 0, "pad": 0.6},
}
"""How names are written on a map."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Named groups of points, each of one colour."""

    names: tuple[str, ...]
    codes: NDArray[np.integer]
    """(n,) place of each point's group among the names, -1 where it has none."""


@dataclass(frozen=True, eq=False)
class PointColors:
    """The colour of every point, and how to read it."""

    rgba: NDArray[np.floating]
    """(n, 4) from 0 to 1."""
    title: str = ""
    """What the colours tell, such as the name of a gene."""
    levels: Levels | None = None
    scale: NDArray[np.floating] | None = None
    """(K, 4) colours from the low to the high limit."""
    limits: tuple[float, float] = (0.0, 1.0)
    shown: NDArray[np.bool_] | None = None
    """(n,) the points that are drawn and counted; None for all."""

    def drawn(self) -> PointColors:
        """Return the colours of the points that are drawn."""
        shown, levels = self.shown, self.levels
        if shown is None:
            return self
        if levels is not None:
            levels = Levels(levels.names, levels.codes[shown])
        return replace(self, rgba=self.rgba[shown], levels=levels, shown=None)


@dataclass(frozen=True, eq=False, slots=True)
class MapName:
    """A text on the map."""

    text: str
    place: NDArray[np.floating]
    """(d,) its middle, among the points."""


def draw(
    dataset: Dataset,
    result: EmbeddingResult,
    *,
    colors: PointColors | None = None,
    title: str | None = None,
    facing: NDArray[np.floating] | None = None,
    names: Sequence[MapName] = (),
) -> Any:
    """Draw the points, the first coordinate to the right and the second upwards.

    Parameters
    ----------
    dataset, result
    colors : PointColors, optional
        Those of the clusters by default.
    title : str, optional
        The name of the dataset by default.
    facing : (2, 3) array, optional
        Steps of length 1 that go right and up where a map in space is to be seen as on
        the canvas, without its box; by default it is seen in one, at an angle.
    names : sequence of MapName
        Written on the map.

    Returns
    -------
    matplotlib.figure.Figure
        Groups get a legend with their sizes, numbers a colour bar.

    Raises
    ------
    DataError
        If matplotlib is missing.
    """
    figure_class = figure_of_matplotlib()
    from matplotlib import rcParams

    colors = _by_cluster(result) if colors is None else colors
    embedding = result.embedding
    if colors.shown is not None:
        embedding, colors = embedding[colors.shown], colors.drawn()
    figure = figure_class(figsize=_INCHES, layout="constrained")
    deep = embedding.shape[1] > 2
    axes: Any = figure.add_subplot(projection="3d" if deep else None)
    places = np.array([name.place for name in names]).reshape(-1, embedding.shape[1])
    if deep and facing is not None:
        embedding, places = _seen_from_the_front(axes, facing, embedding, places)
    _scatter(axes, embedding, colors.rgba)
    if colors.scale is not None:
        _explain_scale(figure, axes, colors, colors.scale)
    if colors.levels is not None:
        _explain_levels(axes, colors, colors.levels)
    axes.set_title(plain_text(dataset.name if title is None else title))
    axes.set_xticks([])
    axes.set_yticks([])
    if deep:
        axes.set_zticks([])
        axes.set_aspect("equal")
    else:
        axes.set_aspect("equal", "datalim")
        axes.spines[:].set_visible(False)
    texts = [name.text for name in names]
    if names and deep:
        for text, place in zip(texts, places.tolist(), strict=True):
            axes.text(*place, plain_text(text), zorder=10, **NAME_STYLE)
    elif names:
        figure.draw_without_rendering()  # now the axes have their size
        one = np.diff(axes.transData.inverted().transform([(0, 0), (0, 1)]), axis=0)
        letter = rcParams["font.size"] / 72 * figure.dpi * float(one[0, 1])
        write_names(axes, texts, places, letter)
    return figure


def write_names(
    axes: Any, texts: Sequence[str], places: NDArray[np.floating], letter: float
) -> None:
    """Write names on a flat map, moved up or down where they would overlap.

    Parameters
    ----------
    axes : matplotlib Axes
    texts : sequence of str
    places : (m, 2) array
        Middle of each, in units of the map.
    letter : float
        Height of a letter, in these units.
    """
    halves = [0.5 * LETTER_WIDTH * len(text) * letter for text in texts]
    places = np.array(places, float).reshape(-1, 2)
    for _ in range(60):
        is_free = True
        for one in range(len(places)):
            for other in range(one):
                across, up = places[one] - places[other]
                if abs(across) > halves[one] + halves[other] or abs(up) > 1.2 * letter:
                    continue
                step = (1.25 * letter - abs(up)) / 2 * (1 if up >= 0 else -1)
                places[one, 1] += step
                places[other, 1] -= step
                is_free = False
        if is_free:
            break
    for text, (x, y) in zip(texts, places.tolist(), strict=True):
        axes.text(x, y, plain_text(text), **NAME_STYLE)


def _seen_from_the_front(
    axes: Any, facing: NDArray[np.floating], *points: NDArray[np.floating]
) -> list[NDArray[np.floating]]:
    """Look along the second axis; return points (N, 3) as they are seen then."""
    axes.set_proj_type("ortho")
    axes.view_init(elev=0, azim=-90)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set_visible(False)
        axis.line.set_visible(False)
    right, up = facing
    turn = np.stack([right, np.cross(up, right), up]).T
    return [each @ turn for each in points]


def save(figure: Any, path: Path) -> None:
    """Write as the ending of `path` says; its texts can be edited.

    The same figure gives the same bytes.
    """
    save_with_text(figure, path, dpi=_DPI, is_cropped=False)


def _by_cluster(result: EmbeddingResult) -> PointColors:
    """Colours that are known of the clusters, else hues far from each other."""
    from matplotlib.colors import hsv_to_rgb, to_rgba_array

    groups = result.groups()
    known: list[Any] = []
    for place, color in enumerate(groups.values()):
        hue = (place * _GOLDEN_ANGLE) % 1
        lightness = (0.85, 0.6)[place % 2]
        known.append(color or tuple(hsv_to_rgb((hue, 0.7, lightness))))
    codes = pd.Categorical(result.point_names(), categories=list(groups)).codes
    rgba = to_rgba_array(known)[codes]
    return PointColors(rgba, "Cluster", Levels(tuple(groups), codes))


def _explain_levels(axes: Any, colors: PointColors, levels: Levels) -> None:
    """Name the groups that have points, the points of none last."""
    from matplotlib.lines import Line2D

    discs = []
    for code in [*range(len(levels.names)), -1]:
        rows = np.flatnonzero(levels.codes == code)
        if not len(rows):
            continue
        name = levels.names[code] if code >= 0 else _NO_VALUE
        label = plain_text(f"{name} ({len(rows):,})")
        # matplotlib hides labels that begin with "_".
        label = f" {label}" if label.startswith("_") else label
        disc = Line2D([], [], linestyle="", marker="o", markersize=5, label=label)
        disc.set_color(tuple(colors.rgba[rows[0]].tolist()))
        discs.append(disc)
    if len(discs) > _MOST_IN_LEGEND:
        sentence = f"{colors.title}: {len(discs)} colours, too many to list"
        axes.set_xlabel(plain_text(sentence))
        return
    axes.legend(
        handles=discs,
        title=plain_text(colors.title),
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        ncols=1 + (len(discs) > _MOST_IN_LEGEND // 2),
        frameon=False,
        fontsize="small",
    )


def _explain_scale(
    figure: Any, axes: Any, colors: PointColors, scale: NDArray[np.floating]
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    shades = ScalarMappable(Normalize(*colors.limits), ListedColormap(scale))
    figure.colorbar(shades, ax=axes, label=plain_text(colors.title), shrink=0.7)


def plain_text(text: str) -> str:
    """Text that matplotlib takes for no formula."""
    return text.replace("$", r"\$")


def _scatter(
    axes: Any, embedding: NDArray[np.floating], rgba: NDArray[np.floating]
) -> None:
    n = len(embedding)
    size = min(20.0, max(0.5, 20_000 / n))
    many = n > _MOST_DRAWN_AS_SHAPES
    axes.scatter(*embedding.T, s=size, c=rgba, linewidths=0, rasterized=many)
