"""Which parts of the dock are shown in each state; no window is opened."""

from dataclasses import asdict

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.visible_parts import visible_parts
from worlds import frames_to, play, session_of


def shown(session):
    return {
        name for name, is_shown in asdict(visible_parts(session)).items() if is_shown
    }


def test_parts_come_with_the_data_the_run_and_the_map(engine, dataset):
    empty = Session()
    assert shown(empty) == {"data_title"}
    session = session_of(dataset, engine)
    assert shown(session) == {"data_title", "method"}
    session.begin()
    assert shown(session) == {"method", "map_controls"}
    session.stop()
    assert shown(session) == {"data_title", "method"}
    next(frames_to(session, until=10))
    running = {"method", "map_controls", "map_tools", "clusters"}
    assert shown(session) == running
    session.pause()
    assert shown(session) == running
    play(session)
    assert session.state == "finished"
    assert shown(session) == running
    session.look.color_by = "kind"
    assert shown(session) == running - {"clusters"} | {"legend"}
    session.load(dataset)
    assert shown(session) == {"data_title", "method"}
