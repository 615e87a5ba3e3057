"""Check the settings of a file with the engine's own checks."""

from __future__ import annotations

from napari_embedding_game.core.energy.methods import METHODS, OPTIMIZERS
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.row_affinities import affinity_names
from napari_embedding_game.core.graph.starts import start_names
from napari_embedding_game.core.settings import (
    Settings,
    check_affinity,
    check_numbers,
    choose,
    n_searched,
    resolve,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.json_codec import unknown
from napari_embedding_game.session.run.record import RunRecord


def check_settings(start: Settings, game: Settings, where: str) -> None:
    """Raise DataError unless a run of enough rows can be begun with these settings.

    How many rows there are is not asked: the window lets a person choose more
    neighbours than that, and tells when the run is begun.

    Parameters
    ----------
    where : str
        Name of the file that they come from.
    """
    for field, value, names in (
        ("method", game.method, METHODS),
        ("optimizer", game.optimizer, OPTIMIZERS),
        ("init", start.init, start_names()),
        ("affinity", start.affinity, ("auto", *affinity_names())),
    ):
        if value not in names:
            raise DataError(f"{where} is damaged: {unknown(field, value)}.")
    try:
        _ask_engine(start, game)
    except InputError as error:
        raise DataError(
            f"{where} is damaged, or a later version of napari-embedding-game wrote "
            f"it and this one has to be updated: {error}"
        ) from error


def check_record(record: RunRecord, where: str) -> None:
    """Raise DataError unless a run can have had the settings of its record."""
    for game in (record.game, *(steering.game for steering in record.steered)):
        check_settings(record.start, game, where)


def _ask_engine(start: Settings, game: Settings) -> None:
    from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
    from napari_embedding_game.core.graph.initialization import check_dimensions
    from napari_embedding_game.core.graph.neighbors import check_rows

    choose(game.method, game.approximation, game.optimizer)
    affinity = resolve(start, game.method).affinity
    check_affinity(game.method, affinity, game.optimizer)
    check_numbers(game)
    resolve_schedule(game)
    enough = start.n_neighbors + 1
    n_searched(affinity, start.n_neighbors, start.perplexity, enough)
    check_rows(enough, start.n_neighbors)
    check_dimensions(start.n_components)
    if start.random_state < 0:
        raise InputError(f"The seed must be at least 0, not {start.random_state}.")
