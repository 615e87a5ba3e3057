"""Collect the panels of a figure from what is on show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.export.page import PageSettings, Panel, caption_of
from napari_embedding_game.data.export.plots import (
    ExpressionPlot,
    MapPlot,
    PointColors,
    VolcanoPlot,
    flat_map,
)
from napari_embedding_game.session.cluster_report import as_levels
from napari_embedding_game.session.panels import STRAIGHT
from napari_embedding_game.ui.style.coloring import (
    CLUSTER,
    colored,
    gene_values,
    of_values,
)

if TYPE_CHECKING:
    from napari_embedding_game.core.snapshot import Snapshot
    from napari_embedding_game.data.dataset import Dataset
    from napari_embedding_game.ui.workspace import Workspace


@dataclass(frozen=True)
class FigureChoice:
    """Which panels a person wants, and how they become a figure."""

    has_clusters: bool = True
    has_colors: bool = False
    """In the colours on show."""
    genes: tuple[str, ...] = ()
    """Names of columns of the profile."""
    split_by: str = ""
    """Column whose groups have a panel each; "" for none."""
    has_volcano: bool = False
    has_expression: bool = False
    page: PageSettings = field(default_factory=PageSettings)
    tells_panels: bool = False
    """Whether what the panels show is the caption."""


def collect(
    workspace: Workspace, choice: FigureChoice
) -> Callable[[], tuple[list[Panel], PageSettings]]:
    """Return what makes the panels and the page, in any thread.

    Genes are read from the file by then; all else is as it is on show now.
    """
    session = workspace.session
    dataset, snapshot = session.dataset, session.snapshot
    assert dataset is not None
    assert snapshot is not None
    source = _Source(dataset, snapshot, session.hiding.rows, session.facing)
    panels: list[Callable[[], Panel]] = []
    by_cluster = _colors_of(workspace, CLUSTER)
    present = _colors_of(workspace, session.look.color_by)
    if choice.has_clusters:
        clusters = source.named(by_cluster)
        panels.append(lambda: clusters)
    if choice.has_colors:
        colored = source.panel(present)
        panels.append(lambda: colored)
    if choice.split_by:
        panels += [
            (lambda panel=panel: panel) for panel in source.split(choice, present)
        ]
    panels += [(lambda name=name: source.gene(name)) for name in choice.genes]
    for kind, is_wanted in (
        (VolcanoPlot, choice.has_volcano),
        (ExpressionPlot, choice.has_expression),
    ):
        plot = workspace.plots.on_show(kind, is_saved=True) if is_wanted else None
        if plot is not None:
            panels.append(lambda plot=plot: plot)

    def make() -> tuple[list[Panel], PageSettings]:
        made, page = [panel() for panel in panels], choice.page
        if choice.tells_panels:
            page = replace(page, caption=caption_of(made))
        return made, page

    return make


def _colors_of(workspace: Workspace, color_by: str) -> PointColors:
    session = workspace.session
    assert session.snapshot is not None
    limits = session.look.limits if color_by == session.look.color_by else None
    palette, snapshot = workspace.palette, session.snapshot
    return colored(color_by, session, palette, snapshot, limits).for_figure(color_by)


class _Source:
    """The points that are on show.

    Parameters
    ----------
    dataset : Dataset
    snapshot : Snapshot
    rows : array of int, optional
        Those that are not hidden; all by default.
    facing : (2, 3) array
        Steps of length 1 that go right and up where a map in space is seen.
    """

    def __init__(
        self,
        dataset: Dataset,
        snapshot: Snapshot,
        rows: NDArray[np.intp] | None,
        facing: NDArray[np.floating] = STRAIGHT,
    ) -> None:
        self._dataset = dataset
        self._flat, self._rows = flat_map(snapshot.embedding, facing, rows)

    def panel(
        self,
        colors: PointColors,
        title: str = "",
        rows: NDArray[np.intp] | None = None,
    ) -> MapPlot:
        """Return the map in these colours, of these rows or of all on show."""
        rows = self._rows if rows is None else rows
        return MapPlot(
            embedding=self._flat[rows],
            colors=colors.of(rows),
            title=title or colors.title,
        )

    def named(self, colors: PointColors) -> MapPlot:
        """Return the map with the names of its groups at their middles."""
        panel = self.panel(colors, "Clusters")
        levels = panel.colors.levels
        assert levels is not None
        names = []
        for code, name in enumerate(levels.names):
            places = panel.embedding[levels.codes == code]
            if len(places):
                names.append((name, np.median(places, axis=0)))
        return replace(panel, names=tuple(names), has_key=False)

    def split(self, choice: FigureChoice, colors: PointColors) -> list[MapPlot]:
        """Return a map of each group of a column, in the colours on show."""
        levels = as_levels(self._dataset.obs[choice.split_by]).iloc[self._rows]
        found = []
        for level in levels.cat.remove_unused_categories().cat.categories:
            rows = self._rows[(levels == level).to_numpy()]
            found.append(self.panel(colors, f"{choice.split_by}: {level}", rows))
        return found

    def gene(self, name: str) -> MapPlot:
        """Return the map in the colours of a gene, which is read from the data."""
        values = of_values(name, gene_values(self._dataset, name))
        return self.panel(values.for_figure(name))
