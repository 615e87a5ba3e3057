"""The controller without any dock: it receives frames, renders them and tells views."""

import numpy as np
import pytest

from napari_embedding_game.session.run.run import Progress
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.controller import Controller


@pytest.fixture
def former(viewer):
    """What napari itself does with the mouse."""
    return list(viewer.mouse_drag_callbacks)


@pytest.fixture
def controller(viewer, former, workspace, engine):
    controller = Controller(viewer, workspace)
    yield controller
    engine.gate.set()
    controller.close()


def test_what_is_received_is_rendered_with_the_clusters_of_its_frame(
    controller, session, make_snapshot, monkeypatch
):
    run, seen = session.begin(), []
    receive = session.receive
    monkeypatch.setattr(
        session, "receive", lambda *frame: (seen.append("received"), receive(*frame))
    )
    monkeypatch.setattr(
        controller.scene,
        "draw",
        lambda snapshot: seen.append(session.snapshot is snapshot),
    )
    controller.receive(run, Progress(stage="Playing", snapshot=make_snapshot(10)))
    assert seen == ["received", True]


def test_a_frame_of_a_former_run_is_neither_received_nor_rendered(
    controller, session, make_snapshot
):
    former, present = session.begin(), session.begin()
    controller.receive(former, Progress(stage="Playing", snapshot=make_snapshot(10)))
    assert session.snapshot is None
    assert controller.layers.points is None
    controller.receive(present, Progress(stage="Playing", snapshot=make_snapshot(20)))
    world = controller.layers.to_world(session.snapshot.embedding)
    np.testing.assert_allclose(controller.layers.points.data, world, atol=1e-3)


def test_views_hear_what_is_read_and_what_failed(controller, qtbot, tmp_path):
    stages, trouble = [], []
    controller.reading.stage_changed.connect(stages.append)
    controller.trouble.connect(trouble.append)
    with qtbot.waitSignal(controller.reading.given_up, timeout=20_000):
        controller.reading.load(FileSource(tmp_path / "gone.csv"))
    assert stages[0].text == "Reading gone.csv"
    assert stages[-1] is None
    assert trouble[0] == ""
    assert "gone.csv" in trouble[-1]


def test_after_closing_nothing_is_heard_and_the_map_is_kept(
    controller, session, qtbot, viewer, workspace, former
):
    controller.play()
    qtbot.waitUntil(lambda: session.state == "finished")
    points = controller.layers.points
    controller.close()
    controller.close()
    assert workspace.kept_map.points is points
    assert points in viewer.layers
    viewer.layers.remove(points)
    assert session.message == ""
    assert viewer.mouse_drag_callbacks == former
