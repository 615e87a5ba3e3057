"""How soon the inspector shows what is inside a clicked cluster.

Cells with a sparse table of genes, as they come from scanpy: the map is that of
two numbers a cell, so that its own time does not count.  Both docks are opened in
napari's window, the game is run, and a cluster is clicked; then each tab is.
"shown" is the time from a click until what it asks for is seen, "memory" what the
process took more at most until then, in MB.

Without a display: xvfb-run -a -s "-screen 0 1600x1000x24" python inspector.py ...
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from shared import arguments, report

PATIENCE = 120.0
"""Seconds."""


def cells(n_rows: int, n_columns: int) -> Any:
    """Return log1p values, one of ten not 0, and a map of twelve groups."""
    import anndata

    rng = np.random.default_rng(0)

    def values(n: int) -> np.ndarray:
        return np.log1p(rng.geometric(0.4, n) * rng.uniform(0.5, 2, n))

    X = sparse.random(n_rows, n_columns, 0.1, "csr", np.float32, rng, data_rvs=values)
    group = rng.integers(0, 12, n_rows)
    middles = rng.normal(0, 10, (12, 2))
    obs = pd.DataFrame(
        {"donor": pd.Categorical.from_codes(group % 4, list("abcd"))},
        index=[f"cell {row}" for row in range(n_rows)],
    )
    names = pd.DataFrame(index=[f"gene {column}" for column in range(n_columns)])
    plane = middles[group] + rng.normal(size=(n_rows, 2))
    return anndata.AnnData(X, obs=obs, var=names, obsm={"X_pca": plane})


def peak() -> float:
    """Return the most memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds_until(is_there: Callable[[], bool]) -> float:
    """Let the window work until something is there."""
    from qtpy.QtWidgets import QApplication

    begin = time.perf_counter()
    while not is_there():
        if time.perf_counter() - begin > PATIENCE:
            raise TimeoutError(f"not there after {PATIENCE} s")
        QApplication.processEvents()
        time.sleep(0.002)
    return time.perf_counter() - begin


def clicks(session: Any, inspector: Any) -> list[tuple[str, Callable, Callable]]:
    """Return what is clicked, how, and when what it asks for is there."""
    members = inspector.details
    order = sorted(session.clusters.clusters, key=lambda cluster: -cluster.size)
    names = [members.tabs.tabText(place) for place in range(members.tabs.count())]

    def cluster(place: int) -> Callable[[], None]:
        return lambda: session.selection.select(order[place].id)

    def tab(name: str) -> Callable[[], None]:
        return lambda: members.tabs.setCurrentIndex(names.index(name))

    def composition() -> bool:
        wanted = session.selection.clusters
        found = inspector.report
        return found is not None and found.clusters == wanted

    def markers() -> bool:
        return members.markers.result is not None

    def differences() -> bool:
        return members.differences.bars.n_rows > 0

    return [
        ("first cluster: composition", cluster(0), composition),
        ("its markers", tab("Markers"), markers),
        ("tab Differences", tab("Differences"), differences),
        ("second cluster: composition", cluster(1), composition),
    ]


def main() -> None:
    """Print the seconds of each click."""
    import torch  # noqa: F401  before Qt, as the program does

    args = arguments(__doc__)
    import napari

    from napari_embedding_game.data.formats.anndata import from_anndata
    from napari_embedding_game.ui import plugin

    n_rows, n_columns = (1_000, 2_000) if args.quick else (5_000, 19_000)
    dataset = from_anndata(cells(n_rows, n_columns), "cells")
    viewer = napari.Viewer()
    game = plugin.open_docks(viewer)
    session = game.controller.session
    inspector = next(
        widget
        for widget in viewer.window.dock_widgets.values()
        if isinstance(widget, plugin.InspectorDock)
    )
    session.load(dataset)
    session.settings.max_iter = 50
    game.run.run.native.click()
    seconds_until(lambda: session.state == "finished")
    begin = time.perf_counter()
    seconds_until(lambda: time.perf_counter() - begin > 2.0)
    rows = []
    for name, click, is_there in clicks(session, inspector):
        before = peak()
        click()
        seconds = seconds_until(is_there)
        rows.append({"clicked": name, "shown, s": seconds, "memory": peak() - before})
    report(f"Inspector, {n_rows} x {n_columns} sparse", rows, args)
    viewer.close()


if __name__ == "__main__":
    main()
