"""What a reproduction is, what it receives and what it hands back.

A reproduction is a :class:`Reproduction` in :mod:`registry`.  Its ``run`` receives
the :class:`Inputs` a person chose and the :class:`~.parts.Parts` that keep what is
finished, and returns a :class:`Result`; :mod:`report` writes it.

    def run(inputs, parts):
        digits = inputs.load("mnist")
        parts.expect(len(SIZES))
        rows = [parts(f"k={k}", lambda k=k: measure(digits.X, k)) for k in SIZES]
        check = Check("every share above 0.9", f"{least:.3f}", least > 0.9)
        return Result([Table("Shares", rows)], [check], draw=partial(draw, rows))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from napari_embedding_game.data.dataset import Dataset

    from .parts import Parts


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a person chose for a reproduction."""

    data: Path | None = None
    """A data file, or a folder with the files of :mod:`sources`."""
    quick: bool = False
    """Small sizes, to see that it works: seconds instead of minutes or hours."""
    random_state: int = 0

    def load(self, name: str) -> Dataset:
        """Read a data set by its name in :data:`sources.SOURCES`.

        Raises
        ------
        DataError
            It is not there, or damaged.
        """
        from .sources import load

        return load(name, self.data)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a Markdown table; the keys of the first are the columns."""

    title: str
    rows: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Check:
    """A criterion, and what was found."""

    asked: str
    """What must hold, with its number: "PCA within 0.015 of the paper"."""
    found: str
    """What came out, with its number: "0.0081 at most"."""
    passed: bool
    in_quick: bool = False
    """Whether it also holds for the small sizes of ``quick``; if not, it is not
    judged there."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a reproduction found."""

    tables: Sequence[Table]
    checks: Sequence[Check]
    draw: Callable[[Figure], None]
    """Draws on an empty figure."""
    notes: Sequence[str] = ()
    """Sentences on what differs from the paper, and why."""
    inches: tuple[float, float] = (8.0, 6.0)
    """Width and height of the figure."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One figure or table of a paper that can be computed anew."""

    name: str
    """What the command calls it, such as ``fenchel-table``."""
    what: str
    """One line for the list."""
    paper: str
    """Title of the paper and place in it."""
    run: Callable[[Inputs, Parts], Result]
    data: str | None = None
    """Names of data sets in :data:`sources.SOURCES`, with ", " between; None if it
    needs no file."""
