"""All reproductions by name, and how one is run.

To add one: a module beside this one with a :class:`~.protocol.Reproduction`, and a
line in :data:`REPRODUCTIONS`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from napari_embedding_game.data.errors import DataError

from . import (
    explain_conjecture1,
    explain_fig2,
    explain_fig3,
    fenchel_convergence,
    fenchel_roll,
    fenchel_table,
    game_fig2,
    game_fig3,
    game_fig4,
    game_fig5,
    game_fig6,
    pressure_fig3,
    pressure_fig4,
    pressure_fig5,
    pressure_fig7,
)
from .parts import Parts, Tell
from .protocol import Inputs, Reproduction
from .report import origin, write
from .sources import SOURCES

REPRODUCTIONS: dict[str, Reproduction] = {
    each.name: each
    for each in (
        fenchel_table.REPRODUCTION,
        fenchel_roll.REPRODUCTION,
        fenchel_convergence.REPRODUCTION,
        game_fig2.REPRODUCTION,
        game_fig3.REPRODUCTION,
        game_fig4.REPRODUCTION,
        game_fig5.REPRODUCTION,
        game_fig6.REPRODUCTION,
        explain_fig2.REPRODUCTION,
        explain_fig3.REPRODUCTION,
        explain_conjecture1.REPRODUCTION,
        pressure_fig3.REPRODUCTION,
        pressure_fig4.REPRODUCTION,
        pressure_fig5.REPRODUCTION,
        pressure_fig7.REPRODUCTION,
    )
}


def reproduce(
    reproduction: Reproduction,
    inputs: Inputs,
    out: Path,
    *,
    tell: Tell | None = None,
    again: bool = False,
) -> dict[str, Any]:
    """Run a reproduction and write what it found into the folder ``out / name``.

    Finished parts are kept in ``out / name / parts``: after an interruption, call
    it again with the same arguments.

    Returns
    -------
    dict
        What stands in ``NAME.json``; ``passed`` says whether all checks did.

    Raises
    ------
    DataError, InputError
        Data or folder cannot be used.
    """
    _check_data(reproduction, inputs.data)
    folder = out / reproduction.name
    _make(folder / "parts")
    known = origin(reproduction, inputs)
    parts = Parts(folder / "parts", known, tell, again)
    result = reproduction.run(inputs, parts)
    return write(reproduction, result, inputs, parts, folder)


def _check_data(reproduction: Reproduction, data: Path | None) -> None:
    """Refuse one file where several sets are needed: it would be taken for all."""
    names = (reproduction.data or "").split(", ")
    if len(names) > 1 and data is not None and data.is_file():
        files = " and ".join(SOURCES[name] for name in names if SOURCES[name])
        raise DataError(
            f"{reproduction.name} needs {files}: name the folder they lie in, and not "
            "one file."
        )


def find(name: str) -> Reproduction:
    """Return the reproduction of that name.

    Raises
    ------
    DataError
        There is none.
    """
    if name not in REPRODUCTIONS:
        raise DataError(
            f'There is no reproduction "{name}": choose one of '
            f"{', '.join(REPRODUCTIONS)}."
        )
    return REPRODUCTIONS[name]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"The folder {folder} cannot be made ({error.strerror}): choose another."
        ) from error
