"""What a view is connected to ends with the view."""

import pytest
from psygnal import Signal

from napari_embedding_game.ui.connections import Connections


class Session:
    changed = Signal(int)


def test_nothing_is_heard_after_closing_and_closing_again_does_nothing():
    session, heard, connections = Session(), [], Connections()
    connections.connect(session.changed, heard.append)
    session.changed.emit(1)
    connections.close()
    connections.close()
    session.changed.emit(2)
    assert heard == [1]


def test_one_that_cannot_be_undone_keeps_no_other_from_it():
    def broken():
        raise OSError("the stick is gone")

    session, heard, connections = Session(), [], Connections()
    connections.connect(session.changed, heard.append)
    connections.call(broken)
    with pytest.raises(OSError, match="stick"):
        connections.close()
    session.changed.emit(1)
    assert heard == []
