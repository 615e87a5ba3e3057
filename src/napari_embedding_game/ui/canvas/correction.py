"""Show the selection with its true neighbours, for as long as a button is held."""

from __future__ import annotations

from dataclasses import replace

from qtpy.QtCore import QObject, Signal

from napari_embedding_game.core.inspect.true_neighbors import Correction, correct
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.drawing import RESTING, Drawing
from napari_embedding_game.ui.connections import Connections


class ShownCorrection(QObject):
    """Draws in the true neighbours of the selection, moves others out, and back.

    The map itself is not touched.

    Parameters
    ----------
    session : Session
    drawing : Drawing
    """

    told = Signal(str)
    """A sentence about what is shown, "" when nothing is."""

    def __init__(self, session: Session, drawing: Drawing) -> None:
        super().__init__()
        self._session = session
        self._drawing = drawing
        self.is_shown = False
        """Whether points are drawn elsewhere than they are."""
        self._connections = Connections()
        another_map = (
            session.state_changed,
            session.dataset_changed,
            session.progressed,
            session.looked_back,
            session.comparing.moved,
        )
        self._connections.connect_all(another_map, self._end)

    def close(self) -> None:
        """Show the map as it is, and undo the connections to the session."""
        self._end()
        self._connections.close()

    def set_shown(self, is_shown: bool) -> None:
        """Begin, or show the map as it is again."""
        session, snapshot = self._session, self._session.drawn
        if not is_shown:
            self._end()
        elif not self.is_shown and snapshot is not None:
            if session.state not in RESTING or session.selection.is_empty:
                return
            if snapshot.neighbors is None:
                return
            found = correct(
                snapshot.embedding, snapshot.neighbors, session.selection.points
            )
            self.is_shown = self._drawing.show_instead(
                replace(snapshot, embedding=found.embedding)
            )
            self.told.emit(told(found) if self.is_shown else "")

    def _end(self, event: object = None) -> None:
        if self.is_shown:
            self.is_shown = False
            self.told.emit("")
            self._drawing.release()


def told(found: Correction) -> str:
    """Return in a sentence what is shown."""
    n_in, n_out = len(found.drawn_in), len(found.stepped_out)
    if not (n_in or n_out):
        return "All true neighbours of the selection are beside it, and no strangers."
    return (
        f"Shown for as long as you press: {n_in:,} true "
        f"{'neighbour' if n_in == 1 else 'neighbours'} from elsewhere drawn in, "
        f"{n_out:,} {'stranger' if n_out == 1 else 'strangers'} stepped out."
    )
