"""What the search box finds in a session, and where it leads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from napari_embedding_game.session.search import Hit
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui import search_box
from napari_embedding_game.ui.coloring import metadata_columns
from napari_embedding_game.ui.flight import flight_of


def names_in(session: Session) -> dict[str, Sequence[str]]:
    """Return all that can be searched, by what it is called."""
    dataset = session.dataset
    if dataset is None:
        return {}
    names = {
        search_box.CLUSTER: [cluster.name for cluster in session.clusters.clusters]
    }
    if dataset.images is None:  # else they are pixels
        names[search_box.GENE] = dataset.profile_names
    names[search_box.COLUMN] = metadata_columns(dataset)
    names[search_box.CELL] = list(map(str, dataset.obs.index))
    return names


def show_found(session: Session, hit: Hit) -> None:
    """Select a cluster, fly to a cell, or colour by anything else."""
    if hit.kind == search_box.CLUSTER:
        clusters = session.clusters.clusters
        session.selection.replace([c.id for c in clusters if c.name == hit.name])
    elif hit.kind == search_box.CELL:
        session.selection.select_points(np.array([hit.index]))
        flight_of(session).asked.emit(hit.index)
    else:
        session.look.color_by = hit.name
