"""A few facts about one row, for the hover card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.data.clustering import Cluster
from napari_embedding_game.data.columns import number_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError

MAX_FACTS = 5
"""Most facts of a card: so many can be read at a glance."""
MAX_VALUE, MAX_TEXT = 40, 240
"""Most characters of a fact, and of the row's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDetails:
    """The facts about one row that a tooltip shows."""

    name: str
    cluster: str
    """Name of the row's cluster, "Cluster 3" where no name was given."""
    facts: tuple[tuple[str, str], ...] = ()
    """Name and value of each fact."""
    text: str = ""
    """Beginning of the row's text; "" where rows have no texts."""


def describe_row(
    dataset: Dataset,
    row: int,
    cluster: Cluster,
    names: Sequence[str],
    computed: Mapping[str, float] | None = None,
) -> RowDetails:
    """Return name, cluster, facts and text of a row.

    At most ``MAX_FACTS`` facts; long values and texts are shortened.

    ``cluster``: cluster of the row. ``names``: metadata columns and genes, the most
    important first; missing values and unknown names are skipped. ``computed``: numbers
    of the row that the program computed, by name: they come first.
    """
    facts = [(name, _format_value(number)) for name, number in (computed or {}).items()]
    for name in dict.fromkeys(names):
        value = _find_value(dataset, row, name)
        if value is not None and not pd.isna(value):
            facts.append((name, _format_value(value)))
    text = "" if dataset.texts is None else " ".join(str(dataset.texts[row]).split())
    name, short_text = str(dataset.obs.index[row]), _shorten_text(text, MAX_TEXT)
    first = tuple(facts[:MAX_FACTS])
    return RowDetails(name=name, cluster=cluster.title, facts=first, text=short_text)


def _find_value(dataset: Dataset, row: int, name: str) -> Any:
    """Return a row's value of a column, else of a gene; None where there is neither.

    None also where the file with the expression of the genes cannot be read.
    """
    if name in dataset.obs:
        return dataset.obs[name].iloc[row]
    name = name.removesuffix(dataset.value_suffix)  # beside a column of that name
    if name not in dataset.profile_names:
        return None
    try:
        return dataset.expression.value_at(row, dataset.profile_names.index(name))
    except DataError:  # the file of the genes is gone: other facts are shown
        return None


def _format_value(value: Any) -> str:
    """Return a value as text: a float rounded, any other value on one short line."""
    if isinstance(value, float | np.floating):
        return number_text(float(value))
    return _shorten_text(" ".join(str(value).split()), MAX_VALUE)


def _shorten_text(text: str, longest: int) -> str:
    """Return a text of at most ``longest`` characters, cut with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
