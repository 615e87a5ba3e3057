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
from napari_embedding_game.data.formats.spaces import split_space
from napari_embedding_game.session.tracks import find_tracks

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
    if dataset is None or dataset.is_distances or not dataset.var_names:
        return {"": TITLES[""]}
    read = [] if dataset.matrices.second_X is None else [dataset.second_space]
    names = [TISSUE] * (dataset.tissue is not None) + [*read, *spaces]
    # In a file of modalities the positions are "obsm['spatial'] of rna".
    places = split_space(dataset.tissue.origin) if dataset.tissue else None
    others = [
        x
        for x in names
        if x != dataset.space
        and not is_pairwise_space(x)
        and (places is None or split_space(x) != places)
    ]
    return {name: TITLES.get(name, name) for name in ["", *others]}


def make_second_rows(dataset: Dataset, settings: Settings) -> Any:
    """Return the rows of the second space of the settings, (n, E); None without one.

    NaN in rows that the second space lacks.  Raises DataError: these data do not have
    it, or it was not read.
    """
    name, metric, tissue = settings.second_space, settings.metric, dataset.tissue
    if not name:
        return None
    if name == dataset.second_space:
        return dataset.second_X
    if name != TISSUE or tissue is None:
        raise DataError(
            f"The second space {name} is not at hand: choose it again under Data, or "
            "None."
        )
    key = f"{TISSUE} {metric} {find_section_columns(dataset)}"
    if key not in dataset.known:
        sections = find_sections(dataset)
        dataset.known[key] = average_in_tissue(
            dataset.X, tissue.positions, sections, metric
        )
    return dataset.known[key]


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


def find_sections(dataset: Dataset) -> NDArray[np.integer] | None:
    """Return the number of each row's section, (n,), -1 for none; None for one section.

    In a movie each frame is a section.  The dataset has positions in tissue.
    """
    columns = find_section_columns(dataset)
    return number_sections(dataset.obs, columns) if columns else None


def find_section_columns(dataset: Dataset) -> list[str]:
    """Return the columns of ``obs`` that say in which section a row is.

    They are those of sections, and of movies and times: a cell is not beside itself at
    another time.
    """
    columns, tracks = [], find_tracks(dataset)
    if dataset.tissue is not None and dataset.tissue.section_column:
        columns.append(dataset.tissue.section_column)
    if tracks is not None:
        columns += [*tracks.movie_columns, tracks.time_column]
    else:
        columns += dataset.find_columns_of_roles("times")[:1]
    return list(dict.fromkeys(columns))


def number_sections(obs: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.integer]:
    """Return a number for each combination of values of columns, (n,); -1 with a gap.

    ``obs`` (n rows): metadata.
    """
    numbers = obs.groupby([*columns], sort=True, observed=True, dropna=True).ngroup()
    codes: NDArray[np.integer] = numbers.fillna(-1).to_numpy().astype(np.intp)
    return codes
