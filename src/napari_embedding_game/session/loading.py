"""The requested data, those on show, and how each map's data were read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psygnal import Signal

from napari_embedding_game.data.read_options import AS_USUAL, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import Source, note_read, read_of


class Loading:
    """The state of reading sources for the maps of a session.

    ``changed`` tells that another map was opened whose data were read in another way.
    """

    changed = Signal()

    def __init__(self, session: Session, maps: MapTree) -> None:
        self._session, self._maps = session, maps
        self.source: Source | None = None
        """The latest request, with ``options``: how to read it."""
        self.options = AS_USUAL
        self.taken: Source | None = None
        """The source of what is on show; None before anything was read."""
        self.shown: ReadResult | None = None
        """How that was read; None of a session file."""
        self.columns: tuple[str, ...] = ()
        """Columns of the requested space, before any were left out."""
        self.is_reading = False
        maps.changed.connect(self._follow_map)

    def ask(self, source: Source | None) -> bool:
        """Note that a source is going to be read; None: a session file is opened.

        Returns whether it is another source than before.
        """
        self.is_reading = source is not None
        if source is not None and source is self.source:
            return False
        self.source, self.options, self.columns = source, AS_USUAL, ()
        if source is None:
            self.taken = self.shown = None
        return True

    def change(self, **changes: Any) -> ReadOptions:
        """Change how the source is to be read, and return that."""
        if "space" in changes:
            self.columns = ()
        self.options = replace(self.options, **changes)
        return self.options

    def ask_again_as(self, source: Source) -> None:
        """Take this for the source of what is on show: the same labels, edited."""
        self.source = self.taken = source

    @property
    def is_again(self) -> bool:
        """Whether the requested source is the one on show."""
        return self.source is self.taken

    def take_up(self, source: Source, loaded: ReadResult) -> None:
        """Note what came of reading a source: the data of the open map."""
        self.is_reading = False
        read = replace(loaded, source=source, options=self.options)
        assert self._session.dataset is not None
        for one in self._maps.maps:  # of the same rows, with other labels perhaps
            known = read_of(one.dataset)
            if known is not None:
                note_read(one.dataset, replace(known, source=source))
        note_read(self._session.dataset, read)
        self._show(read)

    def take_back(self) -> ReadResult | None:
        """Return how the data of the open map were read, after a session was opened.

        None where they were not read from a file, or how is not known.
        """
        dataset = self._session.dataset
        read = None if dataset is None else read_of(dataset)
        if read is not None:
            self.source, self.options = read.source, read.options
            self._show(read)
        return read

    def go_back(self) -> None:
        """Go back to what is on show, as reading failed or was cancelled."""
        self.is_reading, self.source, shown = False, self.taken, self.shown
        self.options = AS_USUAL if shown is None else shown.options
        if shown is not None and not self.columns:
            self.columns = tuple(shown.columns)

    def _follow_map(self) -> None:
        """Go to how the data of the open map were read, or of the one it is part of."""
        found = (read_of(one.dataset) for one in self._maps.path[::-1])
        read = next(filter(None, found), None)
        options = AS_USUAL if self.shown is None else self.shown.options
        if read is None or self.is_reading:
            return
        if (read.source, read.options) == (self.taken, options):
            return
        self.columns = ()
        self._show(read)
        self.go_back()
        self.changed.emit()

    def _show(self, read: ReadResult) -> None:
        self.taken, self.shown = read.source, read
        if not self.columns:
            self.columns = tuple(read.columns)
