"""Names of clusters on the map: where, which, and in step with the edits."""

import numpy as np

from napari_embedding_game.ui.naming import centers, with_room


def test_a_name_stands_on_a_point_of_its_cluster():
    ring = np.array([[0, 0], [0, 4], [4, 4], [4, 0], [0, 1]], float)
    labels = np.zeros(5, int)
    (place,) = centers(ring, labels, [0])
    assert place.tolist() in ring.tolist()
    line = np.array([[0, 0], [0, 1], [0, 2], [9, 9]], float)
    assert centers(line, np.array([7, 7, 7, 3]), [7, 3]).tolist() == [[0, 1], [9, 9]]


def test_names_never_touch_and_the_first_gets_the_room():
    rng = np.random.default_rng(0)
    places, names = rng.uniform(0, 400, (60, 2)), ["T cells"] * 60
    shown = with_room(places, names, 12)
    assert shown[0]
    assert 5 < shown.sum() < 60
    apart = np.abs(places[shown][:, None] - places[shown][None])
    free = (apart[..., 0] >= 12 * 1.5) | (apart[..., 1] >= 7 * 0.62 * 12)
    assert (free | np.eye(shown.sum(), dtype=bool)).all()


def test_nearer_there_is_room_for_more():
    places, names = np.random.default_rng(0).uniform(0, 300, (40, 2)), ["B"] * 40
    far, near = with_room(places, names, 12), with_room(4 * places, names, 12)
    assert far.sum() < near.sum()


def written(dock, qtbot, expected):
    def names():
        layer = dock.player.names.layer
        return [] if layer is None else list(layer.features["name"])

    qtbot.waitUntil(lambda: sorted(names()) == sorted(expected), timeout=2000)


def test_names_follow_rename_merge_and_run(play, qtbot, viewer, dock, session):
    play()
    written(dock, qtbot, [])
    session.clusters.rename(0, "B cells")
    session.clusters.rename(2, "T cells")
    written(dock, qtbot, ["B cells", "T cells"])
    points = dock.player.layers.points
    assert viewer.layers.selection.active is points
    place = points.world_to_data(dock.player.names.layer.data[0])
    members = session.snapshot.embedding[session.clusters.labels == 0]
    assert np.abs(members - place).sum(axis=1).min() < 1e-3
    session.clusters.rename(2, "NK")
    written(dock, qtbot, ["B cells", "NK"])
    session.clusters.merge([0, 2])
    written(dock, qtbot, ["B cells"])
    session.clusters.undo()
    written(dock, qtbot, ["B cells", "NK"])
    dock.shut_down()
    assert "cluster names" not in viewer.layers


def test_names_hide_where_they_would_touch(play, qtbot, viewer, dock, session):
    play()
    session.clusters.rename(0, "B cells")
    session.clusters.rename(2, "T cells")
    written(dock, qtbot, ["B cells", "T cells"])
    viewer.scene.camera.zoom = 0.001
    qtbot.waitUntil(lambda: len(dock.player.names.layer.data) == 1)
