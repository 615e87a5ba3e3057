"""The requested data, those on show, and how each map's data were read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psygnal import Signal

from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
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
        self.options = DEFAULT_OPTIONS
        self.current_source: Source | None = None
        """The source of what is on show; None before anything was read."""
        self.current: ReadResult | None = None
        """How that was read; None of a session file."""
        self.columns: tuple[str, ...] = ()
        """Columns of the requested space, before any were left out."""
        self.is_reading = False
        maps.changed.connect(self._follow_map)

    def request(self, source: Source | None) -> bool:
        """Set the source that is going to be read; None: a session file is opened.

        Returns whether it is another source than before.
        """
        self.is_reading = source is not None
        if source is not None and source is self.source:
            return False
        self.source, self.options, self.columns = source, DEFAULT_OPTIONS, ()
        if source is None:
            self.current_source = self.current = None
        return True

    def change(self, **changes: Any) -> ReadOptions:
        """Change how the source is to be read, and return that."""
        if "space" in changes:
            self.columns = ()
        self.options = replace(self.options, **changes)
        return self.options

    def replace_source(self, source: Source) -> None:
        """Replace the source of the data on show: the same labels, edited."""
        self.source = self.current_source = source

    def finish(self, source: Source, loaded: ReadResult) -> None:
        """Set the result of reading a source: the data of the open map."""
        self.is_reading = False
        read = replace(loaded, source=source, options=self.options)
        assert self._session.dataset is not None
        for saved_map in self._maps.maps:  # of the same rows, with other labels perhaps
            earlier = read_of(saved_map.dataset)
            if earlier is not None:
                note_read(saved_map.dataset, replace(earlier, source=source))
        note_read(self._session.dataset, read)
        self._show(read)

    def restore(self) -> ReadResult | None:
        """Return how the data of the open map were read, after a session was opened.

        None where they were not read from a file, or how is not known.
        """
        dataset = self._session.dataset
        read = None if dataset is None else read_of(dataset)
        if read is not None:
            self.source, self.options = read.source, read.options
            self._show(read)
        return read

    def cancel(self) -> None:
        """Return to the data on show, as reading failed or was cancelled."""
        self.is_reading, self.source, current = False, self.current_source, self.current
        self.options = DEFAULT_OPTIONS if current is None else current.options
        if current is not None and not self.columns:
            self.columns = tuple(current.columns)

    def _follow_map(self) -> None:
        """Go to how the data of the open map were read, or of the one it is part of."""
        results = (read_of(saved_map.dataset) for saved_map in self._maps.path[::-1])
        read = next(filter(None, results), None)
        options = DEFAULT_OPTIONS if self.current is None else self.current.options
        if read is None or self.is_reading:
            return
        if (read.source, read.options) == (self.current_source, options):
            return
        self.columns = ()
        self._show(read)
        self.cancel()
        self.changed.emit()

    def _show(self, read: ReadResult) -> None:
        self.current_source, self.current = read.source, read
        if not self.columns:
            self.columns = tuple(read.columns)
