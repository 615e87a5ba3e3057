"""The second space of a map: surroundings in tissue, or a space of the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.data.dataset import Dataset, is_pairwise_space
from napari_embedding_game.data.errors import DataError

TISSUE = "tissue"
"""Name of the second space that is the mean of the cells around each cell."""
TITLES = {"": "None", TISSUE: "Cells around"}
"""Titles of the second spaces that are no space of a file."""


def list_second_spaces(
    dataset: Dataset | None, spaces: Sequence[str] = ()
) -> dict[str, str]:
    """Return the titles of second spaces that can be chosen, by name; "" is none.

    ``spaces``: those of the file, or () for what is read already.  Distances have none.
    """
    if dataset is None or dataset.is_distances or not dataset.X.shape[1]:
        return {"": TITLES[""]}
    read = [] if dataset.second_X is None else [dataset.second_space]
    names = [TISSUE] * (dataset.tissue is not None) + [*read, *spaces]
    taken = {dataset.space, dataset.tissue.origin if dataset.tissue else ""}
    others = [x for x in names if x not in taken and not is_pairwise_space(x)]
    return {name: TITLES.get(name, name) for name in ["", *others]}


def make_second_rows(dataset: Dataset, settings: Settings) -> Any:
    """Return the rows of the second space of the settings, (n, E); None without one.

    NaN in rows that the second space lacks.  Raises DataError: these data do not have
    it, or it was not read.
    """
    if settings.second_space == TISSUE and dataset.tissue is not None:
        key = f"{TISSUE} {settings.metric} {find_section_columns(dataset)}"
        if key not in dataset.known:
            given = dataset.tissue.positions, find_sections(dataset), settings.metric
            dataset.known[key] = average_in_tissue(dataset.X, *given)
        return dataset.known[key]
    if not settings.second_space or settings.second_space == dataset.second_space:
        return dataset.second_X if settings.second_space else None
    raise DataError(
        f"The second space {settings.second_space} is not at hand: choose it again "
        "under Data, or None."
    )


def average_in_tissue(
    X: Any,
    positions: NDArray[np.floating],
    sections: NDArray[np.integer] | None,
    metric: str,
) -> NDArray[np.float32]:
    """Return the mean of the rows around each row in tissue, (n, at most 100)."""
    from napari_embedding_game.core.graph.coordinates import Coordinates
    from napari_embedding_game.core.graph.tissue import average_surroundings

    rows = Coordinates(X, metric, 0).compute_reduced_rows()
    return average_surroundings(rows, positions, sections)


def find_section_columns(dataset: Dataset) -> list[str]:
    """Return the columns in which neighbours in tissue agree: of sections and times."""
    roles = dataset.roles
    times = [str(x) for x in dataset.obs if roles.get(str(x)) == "times"]
    section = "" if dataset.tissue is None else dataset.tissue.section_column
    return [*([section] if section else []), *(x for x in times if x != section)]


def find_sections(dataset: Dataset) -> NDArray[np.integer] | None:
    """Return the number of each row's section, (n,), -1 for none; None for one section.

    Frames of a movie are sections of their own.
    """
    return number_sections(dataset.obs, find_section_columns(dataset))


def number_sections(
    obs: pd.DataFrame, columns: Sequence[str]
) -> NDArray[np.integer] | None:
    """Return a number (N,) of the groups in which rows agree in all columns.

    -1 where a value is missing; None without columns.
    """
    if not columns:
        return None
    numbers = obs.groupby([*columns], observed=True).ngroup()
    codes: NDArray[np.integer] = numbers.fillna(-1).to_numpy().astype(np.intp)
    return codes
