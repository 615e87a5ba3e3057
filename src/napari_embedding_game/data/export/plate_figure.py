"""Draw the wells of a plate as a matplotlib figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.expression_figure import save_with_text
from napari_embedding_game.data.wells import Well, row_letters

_INCHES = {True: 0.34, False: 0.16}
"""Side of a well, and of one of many."""
_MANY_COLUMNS = 24
_MARGIN, _KEY_INCHES = 0.5, 1.9
_MOST_LEVELS = 24
_EMPTY = "#bbbbbb"


@dataclass(frozen=True, eq=False, kw_only=True)
class PlatePicture:
    """What is drawn: W wells of a plate."""

    shape: tuple[int, int]
    """Rows and columns of the plate."""
    wells: tuple[Well, ...]
    """(W,)"""
    rgba: NDArray[np.floating]
    """(W, 4) their colours."""
    title: str
    """What the colours tell."""
    plate: str = ""
    scale: NDArray[np.floating] | None = None
    """(K, 4) colours from the low to the high limit, where they tell a number."""
    limits: tuple[float, float] = (0.0, 1.0)
    is_share: bool = False
    """Whether the number is a share, which is told in percent."""
    levels: tuple[tuple[str, NDArray[np.floating]], ...] = ()
    """Names and colours, where they tell a name."""


def draw_plate(picture: PlatePicture) -> Any:
    """Draw wells as discs on a plate; those that were not measured are empty.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        If matplotlib is missing.
    """
    try:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import ListedColormap, Normalize
        from matplotlib.figure import Figure
        from matplotlib.ticker import PercentFormatter
    except ImportError as error:
        raise DataError(
            "Figures are drawn by matplotlib, which is not installed: run "
            "`pip install matplotlib`."
        ) from error
    n_rows, n_columns = picture.shape
    side = _INCHES[n_columns <= _MANY_COLUMNS]
    width = side * n_columns + 2 * _MARGIN + _KEY_INCHES
    height = max(side * n_rows + 2 * _MARGIN, 1.6)
    figure = Figure(figsize=(width, height))
    axes: Any = figure.add_axes(
        (
            _MARGIN / width,
            1 - (side * n_rows + _MARGIN) / height,
            side * n_columns / width,
            side * n_rows / height,
        )
    )
    _paint(axes, picture, side)
    left = (side * n_columns + 1.6 * _MARGIN) / width
    if picture.scale is not None:
        shades = ScalarMappable(
            Normalize(*picture.limits), ListedColormap(picture.scale)
        )
        bar: Any = figure.add_axes(
            (left, 1 - (_MARGIN + 0.35) / height, 1.3 / width, 0.12 / height)
        )
        figure.colorbar(shades, cax=bar, orientation="horizontal")
        bar.set_title(_plain(picture.title), fontsize="small", loc="left")
        bar.tick_params(labelsize="small")
        if picture.is_share:
            bar.xaxis.set_major_formatter(PercentFormatter(1.0))
    else:
        _explain_levels(axes, picture)
    return figure


def write_plate(picture: PlatePicture, path: Path) -> None:
    """Write the drawing as the ending says: .pdf, .svg or .png; its text stays text.

    Raises
    ------
    DataError
        `path` cannot be written, or matplotlib is missing.
    """
    save_with_text(draw_plate(picture), path)


def _paint(axes: Any, picture: PlatePicture, side: float) -> None:
    n_rows, n_columns = picture.shape
    rows, columns = np.indices(picture.shape)
    area = (72 * side * 0.78) ** 2
    axes.scatter(
        columns.ravel(),
        rows.ravel(),
        s=area,
        facecolors="none",
        edgecolors=_EMPTY,
        linewidths=0.5,
    )
    if picture.wells:
        places = np.array(picture.wells)
        axes.scatter(
            places[:, 1],
            places[:, 0],
            s=area,
            c=picture.rgba,
            edgecolors="#555555",
            linewidths=0.4,
        )
    axes.set_xlim(-0.6, n_columns - 0.4)
    axes.set_ylim(n_rows - 0.4, -0.6)
    step = 1 if side > _INCHES[False] else 2
    axes.set_xticks(range(0, n_columns, step), range(1, n_columns + 1, step))
    axes.set_yticks(range(0, n_rows, step), map(row_letters, range(0, n_rows, step)))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize="small")
    axes.set_title(_plain(picture.plate), fontsize="medium", loc="left")


def _explain_levels(axes: Any, picture: PlatePicture) -> None:
    from matplotlib.lines import Line2D

    discs = []
    for name, color in picture.levels[:_MOST_LEVELS]:
        # matplotlib hides labels that begin with "_".
        label = _plain(f" {name}" if name.startswith("_") else name)
        disc = Line2D([], [], linestyle="", marker="o", markersize=6, label=label)
        disc.set_color(tuple(color.tolist()))
        discs.append(disc)
    axes.legend(
        handles=discs,
        title=_plain(picture.title),
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        frameon=False,
        fontsize="small",
    )


def _plain(text: str) -> str:
    """Text that matplotlib takes for no formula."""
    return text.replace("$", r"\$")
