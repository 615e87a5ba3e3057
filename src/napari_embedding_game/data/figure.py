"""The map as a figure with its legend, drawn without a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from .dataset import Dataset
from .errors import DataError
from .result import EmbeddingResult

_INCHES = (8.0, 6.0)
_DPI = 200
_MOST_IN_LEGEND = 40
_MOST_DRAWN_AS_SHAPES = 5_000  # an .svg of more points is slow to open
_GOLDEN_ANGLE = 0.618034


def draw(
    dataset: Dataset,
    result: EmbeddingResult,
    *,
    color_by: str | None = None,
    title: str | None = None,
) -> Any:
    """Draw the points, coloured by cluster, by a column of obs or by a gene.

    Parameters
    ----------
    dataset, result
    color_by : str, optional
        Name of a column of ``obs`` or of ``profile``; clusters by default.
    title : str, optional
        The name of the dataset by default.

    Returns
    -------
    matplotlib.figure.Figure
        Groups get a legend with their sizes, numbers a colour bar.

    Raises
    ------
    DataError
        If matplotlib is missing or there is no such column.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError(
            "Figures are drawn by matplotlib, which is not installed: run "
            "`pip install matplotlib`, or save a screenshot."
        ) from error
    figure = Figure(figsize=_INCHES, layout="constrained")
    deep = result.embedding.shape[1] > 2
    axes = figure.add_subplot(projection="3d" if deep else None)
    # As on the screen: the first coordinate goes down, the second to the right.
    places = result.embedding if deep else result.embedding[:, ::-1]
    values, colors = _coloring(dataset, result, color_by)
    if isinstance(values.dtype, pd.CategoricalDtype):
        _draw_groups(axes, places, values, colors)
    else:
        drawn = _scatter(axes, places, c=values.to_numpy(), cmap="viridis")
        figure.colorbar(drawn, ax=axes, label=color_by, shrink=0.7)
    axes.set_title(dataset.name if title is None else title)
    axes.set_xticks([])
    axes.set_yticks([])
    if not deep:
        axes.set_aspect("equal", "datalim")
        axes.spines[:].set_visible(False)
        axes.invert_yaxis()
    return figure


def save(figure: Any, path: Path) -> None:
    """Write as the ending of `path` says; the same figure gives the same bytes."""
    from matplotlib import rc_context

    # Texts of an .svg stay texts, to be edited; no date and no chance inside.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "embedding-game"}):
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(path, dpi=_DPI, metadata=metadata)


def _coloring(
    dataset: Dataset, result: EmbeddingResult, color_by: str | None
) -> tuple[pd.Series, dict[str, Any]]:
    """(n,) groups or numbers, and the colours of the groups."""
    if color_by is None:
        colors = result.groups()
        groups = pd.Categorical(result.point_names(), categories=list(colors))
        return pd.Series(groups), _filled(colors)
    if color_by in dataset.obs:
        column = dataset.obs[color_by]
        if column.dtype.kind not in "iuf":
            column = column.astype(str).astype("category")
            return column, _filled(dict.fromkeys(column.cat.categories))
        return column, {}
    if color_by in dataset.profile_names:
        place = dataset.profile_names.index(color_by)
        values = dataset.profile[:, [place]]
        dense = values.toarray() if sp.issparse(values) else values
        return pd.Series(np.asarray(dense).ravel()), {}
    raise DataError(
        f'{dataset.name} has no column "{color_by}" to colour the figure by: choose '
        "one of its metadata or genes."
    )


def _filled(colors: dict[str, str | None]) -> dict[str, Any]:
    """Colours of all groups: those known, else hues far from each other."""
    from matplotlib.colors import hsv_to_rgb

    filled: dict[str, Any] = {}
    for place, (name, color) in enumerate(colors.items()):
        hue = (place * _GOLDEN_ANGLE) % 1
        lightness = (0.85, 0.6)[place % 2]
        filled[name] = color or tuple(hsv_to_rgb((hue, 0.7, lightness)))
    return filled


def _draw_groups(
    axes: Any, embedding: NDArray[Any], groups: pd.Series, colors: dict[str, Any]
) -> None:
    sizes = groups.value_counts()
    shown = [name for name in groups.cat.categories if sizes[name]]
    for name in shown:
        rows = (groups == name).to_numpy()
        label = f"{name} ({sizes[name]:,})".replace("$", r"\$")
        # matplotlib hides labels that begin with "_".
        label = f" {label}" if label.startswith("_") else label
        _scatter(axes, embedding[rows], len(embedding), color=colors[name], label=label)
    if len(shown) <= _MOST_IN_LEGEND:
        axes.legend(
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            ncols=1 + (len(shown) > _MOST_IN_LEGEND // 2),
            frameon=False,
            fontsize="small",
            markerscale=3,
        )


def _scatter(
    axes: Any, embedding: NDArray[Any], n: int | None = None, **options: Any
) -> Any:
    n = n or len(embedding)
    size = min(20.0, max(0.5, 20_000 / n))
    many = n > _MOST_DRAWN_AS_SHAPES
    return axes.scatter(*embedding.T, s=size, linewidths=0, rasterized=many, **options)
