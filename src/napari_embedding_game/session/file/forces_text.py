"""Forces of a hand in a session file: numbers as text, points and places as arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import (
    HandForces,
    Hold,
    LandmarkEdit,
    LandmarkHold,
    Spring,
)
from napari_embedding_game.session.run.record import Forced


@dataclass(frozen=True, kw_only=True)
class SpringText:
    """A :class:`Spring`; its rows by their number among the sets of points."""

    rows: int
    place: tuple[float, ...]
    is_pinned: bool


@dataclass(frozen=True, kw_only=True)
class LandmarkText:
    """A :class:`LandmarkHold`."""

    number: int
    place: tuple[float, ...]
    is_pinned: bool


@dataclass(frozen=True, kw_only=True)
class EditText:
    """A :class:`LandmarkEdit`."""

    removed: tuple[int, ...] = ()
    added: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ForcedText:
    """A :class:`Forced`."""

    iteration: int
    springs: tuple[SpringText, ...] = ()
    holds: tuple[int, ...] = ()
    """Each the number of a set of points that has places, too."""
    landmarks: tuple[LandmarkText, ...] = ()
    edits: tuple[EditText, ...] = ()


class ForcesWriter:
    """Encodes forces; the points of many events are often the same array.

    Parameters
    ----------
    forced : tuple of Forced
    n_components : int
        Dimensions of the map.
    """

    def __init__(self, forced: tuple[Forced, ...], n_components: int) -> None:
        self._n_components = n_components
        self._sets: list[NDArray[np.integer]] = []
        self._places: list[NDArray[np.floating]] = []
        self._known: dict[tuple[int, int], int] = {}
        self.text = tuple(map(self._event, forced))
        """The events without their arrays."""

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the sets of points, one after another, and places of held ones."""
        if not self._sets:
            return {}
        n = self._n_components
        return {
            "hand_rows": np.concatenate(self._sets).astype("<i8"),
            "hand_ends": np.cumsum([len(rows) for rows in self._sets]).astype("<i8"),
            "hand_places": np.concatenate(self._places).astype("<f4").reshape(-1, n),
        }

    def _event(self, forced: Forced) -> ForcedText:
        forces = forced.forces
        return ForcedText(
            iteration=forced.iteration,
            springs=tuple(
                SpringText(
                    rows=self._number(spring.rows),
                    place=tuple(map(float, spring.place)),
                    is_pinned=spring.is_pinned,
                )
                for spring in forces.springs
            ),
            holds=tuple(self._number(hold.rows, hold.places) for hold in forces.holds),
            landmarks=tuple(
                LandmarkText(
                    number=hold.number,
                    place=tuple(map(float, hold.place)),
                    is_pinned=hold.is_pinned,
                )
                for hold in forces.landmarks
            ),
            edits=tuple(
                EditText(removed=edit.removed, added=edit.added)
                for edit in forces.edits
            ),
        )

    def _number(
        self, rows: NDArray[np.integer], places: NDArray[np.floating] | None = None
    ) -> int:
        """Return the number of a set of points, which is added if it is new."""
        key = id(rows), id(places)
        if key not in self._known:
            self._known[key] = len(self._sets)
            self._sets.append(rows)
            if places is None:
                places = np.zeros((len(rows), self._n_components))
            self._places.append(places)
        return self._known[key]


class ForcesReader:
    """Decodes forces.

    Parameters
    ----------
    rows : (r,) int array
        The sets of points, one after another; each a point of the map.
    ends : (s,) int array
        Where each set ends.
    places : (r, d) array
    expect : callable
        Raises the error of a damaged file unless it is given True.
    """

    def __init__(
        self,
        rows: NDArray[np.integer],
        ends: NDArray[np.integer],
        places: NDArray[np.floating],
        expect: Callable[[bool], None],
    ) -> None:
        expect(bool((np.diff(ends, prepend=0) > 0).all()))
        expect((ends[-1] if len(ends) else 0) == len(rows))
        self._rows: list[NDArray[np.integer]] = np.split(rows, ends[:-1])
        self._places = np.split(places, ends[:-1])
        self._n = len(ends)
        self._n_components = places.shape[1]
        self._expect = expect

    def events(self, text: tuple[ForcedText, ...]) -> tuple[Forced, ...]:
        """Return the events with their arrays."""
        return tuple(
            Forced(iteration=one.iteration, forces=self._forces(one)) for one in text
        )

    def _forces(self, text: ForcedText) -> HandForces:
        places = [len(spring.place) for spring in text.springs]
        places += [len(hold.place) for hold in text.landmarks]
        places += [len(place) for edit in text.edits for place in edit.added]
        self._expect(all(n == self._n_components for n in places))
        return HandForces(
            springs=tuple(
                Spring(
                    rows=self._set(spring.rows),
                    place=spring.place,
                    is_pinned=spring.is_pinned,
                )
                for spring in text.springs
            ),
            holds=tuple(
                Hold(rows=self._set(number), places=self._places[number])
                for number in text.holds
            ),
            landmarks=tuple(
                LandmarkHold(
                    number=hold.number, place=hold.place, is_pinned=hold.is_pinned
                )
                for hold in text.landmarks
            ),
            edits=tuple(
                LandmarkEdit(removed=edit.removed, added=edit.added)
                for edit in text.edits
            ),
        )

    def _set(self, number: int) -> NDArray[np.integer]:
        self._expect(0 <= number < self._n)
        return self._rows[number]
