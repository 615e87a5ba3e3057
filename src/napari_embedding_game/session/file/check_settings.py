"""Check the settings of a file with the engine's own checks."""

from __future__ import annotations

from dataclasses import replace

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings, resolve, steering
from napari_embedding_game.data.errors import DataError
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
    chosen = replace(resolve(start, game.method), **steering(game))
    try:
        chosen.validate()
    except InputError as error:
        raise DataError(
            f"{where} is damaged, or a later version of napari-embedding-game wrote "
            f"it and this one has to be updated: {error}"
        ) from error


def check_record(record: RunRecord, where: str) -> None:
    """Raise DataError unless a run can have had the settings of its record."""
    for game in (record.game, *(step.game for step in record.steered)):
        check_settings(record.start, game, where)
