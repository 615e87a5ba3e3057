"""Draw several panels as one figure for print: maps, dot plot and volcano plot.

All lengths are those on the page.  Maps have the same scale and the same size, so that
places can be compared.  Letters stay letters; points are shapes where they are few, and
one picture where they are many.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.expression_figure import (
    ExpressionLayout,
    ExpressionPlot,
    axes_in_inches,
    figure_of_matplotlib,
    place_expression,
    save_with_text,
)
from napari_embedding_game.data.export.figure import (
    LETTER_WIDTH,
    PointColors,
    plain_text,
    write_names,
)
from napari_embedding_game.data.export.volcano_figure import VolcanoPlot, paint_volcano

WIDTHS = {
    "89 mm, one column": 89.0,
    "120 mm, one and a half": 120.0,
    "183 mm, two columns": 183.0,
}
"""What journals print, such as Nature."""
MOST_VECTOR = 5_000
"""Points of a map that are shapes; more are slow to open as such."""
FONT = 7.0
"""Size of letters in points: journals ask for 5 to 7."""
_FONTS = ("Arial", "Helvetica", "Liberation Sans", "DejaVu Sans")
_MM, _POINT = 1 / 25.4, 25.4 / 72
"""Inches of a millimetre, and millimetres of a point."""
_EDGE, _GAP, _HEAD, _LINE = 1.5, 4.0, 5.0, 3.2
"""Millimetres: border, space between panels, title, a line of letters."""
_NARROWEST = 38.0
"""Of a map, in millimetres, as long as there is room."""
_KEY = 8.0
"""Height of a colour bar with its numbers."""
_WIDEST_CELL, _NARROW_CELL = 0.18, 0.12
"""Inches for a gene of a dot plot; with less its legend stands below."""
_RAISED = 5.0
"""Millimetres of the borders above and below a dot plot that are left out."""
_MOST_LEVELS = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class MapPanel:
    """A map in one colouring."""

    embedding: NDArray[np.floating]
    """(n, 2)"""
    colors: PointColors
    title: str
    names: tuple[tuple[str, float, float], ...] = ()
    """Texts on the map, with their places; groups then have no legend."""


Panel: TypeAlias = MapPanel | ExpressionPlot | VolcanoPlot


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """How panels become a figure."""

    width: float = 183.0
    """Millimetres."""
    has_letters: bool = True
    """Whether panels are called a, b, c, ..."""
    caption: str = ""
    """Written under the panels."""
    most_vector: int = MOST_VECTOR
    """Points of a panel above which they are a picture."""
    dpi: int = 300
    """Dots per inch of such a picture."""


@dataclass(frozen=True)
class _Place:
    """Where a panel lies, in millimetres from the upper left corner."""

    panel: Panel
    left: float
    top: float
    width: float
    height: float


def draw_panels(panels: Sequence[Panel], page: PageSettings) -> Any:
    """Draw the panels in rows: maps and volcano plots beside each other.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        There is no panel, or matplotlib is missing.
    """
    if not panels:
        raise DataError("Choose at least one panel for the figure.")
    figure_class = figure_of_matplotlib()
    from matplotlib import rc_context

    with rc_context(_style()):
        low, high = _limits(panels)
        places = list(_lay_out(panels, page.width, (high - low)[1] / (high - low)[0]))
        lines = _wrapped(page.caption, page.width)
        foot = max(place.top + place.height for place in places)
        height = foot + _LINE * len(lines) + (_GAP / 2 if lines else 0) + _EDGE
        figure = figure_class(figsize=(page.width * _MM, height * _MM))
        for number, place in enumerate(places):
            _draw(figure, place, height, (low, high), page)
            if page.has_letters and len(places) > 1:
                letter = ascii_lowercase[number % len(ascii_lowercase)]
                _write(figure, place.left, height - place.top, letter, weight="bold")
        if lines:
            below = height - foot - _GAP / 2
            _write(figure, _EDGE, below, "\n".join(lines), size=FONT - 0.5)
        figure.canvas.draw()  # letters take the sizes of this style
    return figure


def write_panels(panels: Sequence[Panel], page: PageSettings, path: Path) -> None:
    """Write the figure as the ending says: .pdf, .svg or .png.

    Raises
    ------
    DataError
        There is no panel, `path` cannot be written, or matplotlib is missing.
    """
    figure = draw_panels(panels, page)
    save_with_text(figure, path, dpi=page.dpi, is_cropped=False)


def caption_of(panels: Sequence[Panel], *, has_letters: bool = True) -> str:
    """Return what each panel shows, in a sentence for each."""
    told = []
    for number, panel in enumerate(panels):
        letter = ascii_lowercase[number % len(ascii_lowercase)]
        begin = f"{letter}, " if has_letters and len(panels) > 1 else ""
        told.append(f"{begin}{_told(panel)}")
    return " ".join(told)


def _told(panel: Panel) -> str:
    if isinstance(panel, VolcanoPlot):
        what = f" ({panel.title})" if panel.title else ""
        return (
            f"Change and adjusted p-value of {len(panel.names):,} genes{what}; dashed: "
            "a change of two times, and 5\N{NO-BREAK SPACE}%."
        )
    if isinstance(panel, ExpressionPlot):
        n_groups, n_genes = panel.values.shape
        return f"{panel.title} of {n_genes} genes in {n_groups} groups."
    n = f"{len(panel.embedding):,} points"
    if panel.colors.scale is not None:
        low, high = panel.colors.limits
        return f"{panel.title} of {n}, colours from {low:.3g} to {high:.3g}."
    return f"{panel.title} ({n})."


def _style() -> Any:
    """Return what differs from matplotlib's own style."""
    from matplotlib.font_manager import get_font_names

    known = set(get_font_names())
    return {
        "font.family": [name for name in _FONTS if name in known] or ["sans-serif"],
        "font.size": FONT,
        "axes.linewidth": 0.5,
        "xtick.major.width": 0.5,
        "ytick.major.width": 0.5,
        "xtick.major.size": 2.0,
        "ytick.major.size": 2.0,
    }


def _limits(
    panels: Sequence[Panel],
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the corners that hold the points of all maps, with a border."""
    maps = [p.embedding for p in panels if isinstance(p, MapPanel)]
    if not maps:
        return np.zeros(2), np.ones(2)
    low = np.min([each.min(axis=0) for each in maps], axis=0).astype(float)
    high = np.max([each.max(axis=0) for each in maps], axis=0).astype(float)
    border = 0.03 * max(float((high - low).max()), 1e-9)
    return low - border, high + border


def _lay_out(panels: Sequence[Panel], width: float, shape: float) -> Iterator[_Place]:
    """Yield the place of each panel; a dot plot that fills the width has a row.

    Parameters
    ----------
    panels : sequence of panels
    width : float
        Of the page.
    shape : float
        Height of a map, as a share of its width.
    """
    room = width - 2 * _EDGE
    n_cells = sum(not isinstance(panel, ExpressionPlot) for panel in panels)
    most = max(1, int((room + _GAP) // (_NARROWEST + _GAP)))
    n_columns = -(-n_cells // -(-max(n_cells, 1) // most)) or 1
    cell = min((room - _GAP * (n_columns - 1)) / n_columns, room * 0.6)
    left, top, tallest = _EDGE, _EDGE, 0.0
    for panel in panels:
        if isinstance(panel, ExpressionPlot):
            size = _layout_of(panel, room).size(panel)
            wide, high = (side / _MM for side in size)
            high -= 2 * _RAISED
        else:
            wide, high = cell, _height(panel, cell, shape)
        if left > _EDGE and left + wide > _EDGE + room + 0.01:
            left, top, tallest = _EDGE, top + tallest + _GAP, 0.0
        yield _Place(panel, left, top, wide, high)
        left += wide + _GAP
        tallest = max(tallest, high)


def _layout_of(plot: ExpressionPlot, room: float) -> ExpressionLayout:
    """Return how a dot plot fills so many millimetres, if it has many genes."""
    for is_below in (False, True):
        layout = ExpressionLayout(_WIDEST_CELL, FONT / 10, is_below)
        cell = min(_WIDEST_CELL, layout.cell_for(plot, room * _MM))
        if cell >= _NARROW_CELL:
            break
    return replace(layout, cell=max(cell, _NARROW_CELL / 3))


def _height(panel: MapPanel | VolcanoPlot, width: float, shape: float) -> float:
    """Return the height of a panel of this width with title and legend."""
    if isinstance(panel, VolcanoPlot):
        return _HEAD + min(width, 60.0) + 2 * _LINE
    return _HEAD + width * shape + _key_height(panel, width)


def _key_height(panel: MapPanel, width: float) -> float:
    if panel.colors.scale is not None:
        return _KEY
    if panel.names or panel.colors.levels is None:
        return 0.0
    levels = _levels(panel)
    n_columns = _key_columns([name for name, _ in levels], width)
    return _LINE * (1 + -(-len(levels) // n_columns))


def _key_columns(names: Sequence[str], width: float) -> int:
    """Return how many columns of names have room."""
    longest = max(map(len, names), default=1) * LETTER_WIDTH * FONT * _POINT + 5.0
    return max(1, min(len(names), int(width // longest)))


def _levels(panel: MapPanel) -> list[tuple[str, NDArray[np.floating]]]:
    """Return name and colour of the groups that have points."""
    levels = panel.colors.levels
    assert levels is not None
    found = []
    for code in np.unique(levels.codes).tolist():
        row = int(np.argmax(levels.codes == code))
        name = levels.names[code] if code >= 0 else "missing"
        found.append((name, panel.colors.rgba[row]))
    missing_last = sorted(found, key=lambda pair: pair[0] == "missing")
    return missing_last[:_MOST_LEVELS]


def _draw(
    figure: Any,
    place: _Place,
    height: float,
    limits: tuple[NDArray[np.floating], NDArray[np.floating]],
    page: PageSettings,
) -> None:
    top = height - place.top
    panel = place.panel
    if isinstance(panel, ExpressionPlot):
        layout = _layout_of(panel, page.width - 2 * _EDGE)
        corner = place.left * _MM, (top + _RAISED) * _MM
        place_expression(figure, panel, *corner, layout)
        return
    indent = 4.0 if page.has_letters else 0.0
    title = panel.title
    _write(figure, place.left + indent, top, title, room=place.width - indent)
    if isinstance(panel, VolcanoPlot):
        axes = axes_in_inches(
            figure,
            (place.left + 11.0) * _MM,
            (top - place.height + 8.0) * _MM,
            (place.width - 12.0) * _MM,
            (place.height - _HEAD - 8.0) * _MM,
        )
        most = page.most_vector
        paint_volcano(axes, panel, most_vector=most, diameter=1.6)
        return
    _draw_map(figure, place, panel, top, limits, page)


def _draw_map(
    figure: Any,
    place: _Place,
    panel: MapPanel,
    top: float,
    limits: tuple[NDArray[np.floating], NDArray[np.floating]],
    page: PageSettings,
) -> None:
    (low, high), key = limits, _key_height(panel, place.width)
    below = top - place.height + key
    high_mm = place.height - _HEAD - key
    axes = axes_in_inches(
        figure,
        place.left * _MM,
        below * _MM,
        place.width * _MM,
        high_mm * _MM,
    )
    n_points = max(len(panel.embedding), 1)
    diameter = np.clip(np.sqrt(0.3 * place.width * high_mm / n_points), 0.2, 1.2)
    axes.scatter(
        *panel.embedding.T,
        s=(diameter * _MM * 72) ** 2,
        c=panel.colors.rgba,
        linewidths=0,
        rasterized=n_points > page.most_vector,
    )
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_axis_off()
    letter = FONT * _POINT * (high - low)[0] / place.width
    middles = np.array([(x, y) for _, x, y in panel.names])
    write_names(axes, [text for text, _, _ in panel.names], middles, letter)
    if panel.colors.scale is not None:
        _draw_scale(figure, place, panel.colors, panel.colors.scale, below)
    elif key:
        _draw_levels(axes, panel, place.width)


def _draw_scale(
    figure: Any,
    place: _Place,
    colors: PointColors,
    scale: NDArray[np.floating],
    top: float,
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    shades = ScalarMappable(Normalize(*colors.limits), ListedColormap(scale))
    wide = min(place.width * 0.6, 30.0)
    left = place.left + (place.width - wide) / 2
    bar = axes_in_inches(figure, left * _MM, (top - 3.0) * _MM, wide * _MM, 1.6 * _MM)
    shown: Any = figure.colorbar(shades, cax=bar, orientation="horizontal")
    shown.outline.set_linewidth(0.4)
    low, high = colors.limits
    bar.set_xticks([low, high], [f"{low:.3g}", f"{high:.3g}"])
    bar.tick_params(pad=1)


def _draw_levels(axes: Any, panel: MapPanel, width: float) -> None:
    from matplotlib.lines import Line2D

    levels = _levels(panel)
    discs = []
    for name, color in levels:
        # matplotlib hides labels that begin with "_".
        label = plain_text(f" {name}" if name.startswith("_") else name)
        disc = Line2D([], [], linestyle="", marker="o", markersize=3.5, label=label)
        disc.set_color(tuple(np.asarray(color, float).tolist()))
        disc.set_markeredgewidth(0)
        discs.append(disc)
    axes.legend(
        handles=discs,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        ncols=_key_columns([name for name, _ in levels], width),
        frameon=False,
        borderaxespad=0.3,
        borderpad=0.0,
        handletextpad=0.1,
        handlelength=1.2,
        columnspacing=0.8,
        labelspacing=0.3,
    )


def _write(
    figure: Any,
    left: float,
    top: float,
    text: str,
    *,
    size: float = FONT + 1,
    weight: str = "normal",
    room: float | None = None,
) -> None:
    """Write a text with its upper left corner at a place in millimetres."""
    if room is not None:
        needed = len(text) * LETTER_WIDTH * size / 72 * 25.4
        size = max(FONT - 1, size * min(1.0, room / max(needed, 1e-9)))
        most = max(4, int(room / (LETTER_WIDTH * size / 72 * 25.4) + 1e-6))
        text = text if len(text) <= most else f"{text[: most - 1]}…"
    width, height = figure.get_size_inches()
    figure.text(
        left * _MM / width,
        top * _MM / height,
        plain_text(text),
        ha="left",
        va="top",
        fontsize=size,
        fontweight=weight,
    )


def _wrapped(caption: str, width: float) -> list[str]:
    """Return the lines of a caption that fit into so many millimetres."""
    most = int((width - 2 * _EDGE) / (0.95 * LETTER_WIDTH * (FONT - 0.5) / 72 * 25.4))
    return [line for part in caption.splitlines() for line in textwrap.wrap(part, most)]
