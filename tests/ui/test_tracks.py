"""A movie with a Tracks layer beside its map, by the dock's button and the mouse."""

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.session.tracks import find_tracks
from napari_embedding_game.ui.canvas.track_paths import compute_arrow_corners
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.images.object_features import SELECTED
from napari_embedding_game.ui.style.coloring import list_color_choices
from napari_embedding_game.ui.widgets.tracks import TracksWidget

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
CONTROL = Qt.KeyboardModifier.ControlModifier
N_FRAMES, N_OBJECTS, SIDE = 10, 12, 5
LOST = 7
"""The label of an object that is on no track."""


def movie():
    """Return images and labels (t, y, x) of squares that move right, and vertices.

    Vertices (id, t, y, x) of tracks are mixed; their ids are 5 times the label.
    """
    rng = np.random.default_rng(0)
    labels = np.zeros((N_FRAMES, 60, 80), np.int32)
    image = rng.normal(100, 3, labels.shape)
    vertices = []
    for t in range(N_FRAMES):
        for i in range(N_OBJECTS):
            y, x = 4 + 18 * (i // 4), 2 + 16 * (i % 4) + t
            at = np.s_[t, y : y + SIDE + i % 3, x : x + SIDE]
            labels[at] = i + 1
            image[at] += 20 * (t + i) + rng.normal(0, 5, labels[at].shape)
            if i + 1 != LOST:
                vertices.append((5 * (i + 1), t, y + 2, x + 2))
    return image, labels, rng.permutation(np.array(vertices, float))


@pytest.fixture
def viewer(make_napari_viewer):
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1300, 900)
    return viewer


@pytest.fixture
def dock(viewer, workspace):
    dock = GameDock(viewer, workspace, warm_up=False)
    viewer.window.add_dock_widget(dock, name="game")
    workspace.session.look.show_names = False  # a click on a name is for its cluster
    yield dock
    dock.close()


@pytest.fixture
def opened(qtbot, viewer, dock, load, play):
    """A movie with its map in a window; its pixels are 2 units wide."""
    image, labels, vertices = movie()
    laid = {"scale": (1, 2, 2)}
    viewer.add_image(image, name="movie", **laid)
    viewer.add_labels(labels, name="cells", **laid)
    # The tracks are in the units of the layer, and not in its pixels.
    vertices[:, 2:] *= 2
    brightness = np.arange(len(vertices))
    viewer.add_tracks(vertices, name="tracks", features={"brightness": brightness})
    viewer.add_points(vertices[:5, 1:] / laid["scale"], name="spots", **laid)
    viewer.add_points(np.full((3, 3), 1.0), name="elsewhere")
    button = dock.data_controls.measure_panel.measure_button
    load(lambda: QTest.mouseClick(button, LEFT))
    session = dock.workspace.session
    qtbot.waitUntil(lambda: "track_id" in session.dataset.obs)
    assert "110 of 120 objects are on 11 tracks. 10 found no track." in session.message
    play()
    qtbot.settle()
    return session


def test_a_movie_and_its_map_are_followed_together(
    qtbot, viewer, dock, opened, look_at, from_menu
):
    session, layer = opened, viewer.layers["tracks"]
    dataset, seen = session.dataset, look_at(viewer, dock)
    labels = dataset.obs["label"].to_numpy()
    time = dataset.obs["time"].to_numpy()
    tracks = find_tracks(dataset)
    objects_get_their_tracks(dock, dataset, tracks)
    features_are_written(session, viewer)

    def place(row):
        return seen.pixels(session.view.positions[row])[0]

    row = lonely_row(session)
    of_track = np.flatnonzero(labels == labels[row])
    zoom = viewer.scene.camera.zoom
    seen.click(place(row))
    assert session.selection.rows.tolist() == [row]
    assert viewer.dims.current_step[0] == time[row]  # the movie follows
    QTest.mouseDClick(seen.native, LEFT, NONE, place(row))
    assert session.selection.rows.tolist() == of_track.tolist()
    title = dock.selection_tab.title
    qtbot.waitUntil(lambda: title.text() == f"Track {5 * labels[row]}")
    assert viewer.scene.camera.zoom == zoom  # napari alone would zoom in
    assert lit_tracks(layer) == [5 * labels[row]]
    paths_are_painted(dock, viewer, session, of_track)
    the_present_frame_is_ringed(dock, viewer, session, time)
    clicks_on_the_movie_select(viewer, dock, seen, session, labels, time)
    marks_of_scripts_come_back(layer, session, labels)
    a_table_lists_tracks(qtbot, viewer, dock, from_menu, session)
    session.selection.clear()
    assert layer.color_by == "track_id"
    assert not layer.features[SELECTED].any()
    other_tracks_are_not_linked(qtbot, viewer, dock, session)


def lonely_row(session):
    """Return the row of a track whose point is farthest from all others."""
    places = session.view.positions
    far = [np.sort(np.linalg.norm(places - one, axis=1))[1] for one in places]
    has_track = find_tracks(session.dataset).track_of_row >= 0
    return int(np.argmax(np.where(has_track, far, 0)))


def objects_get_their_tracks(dock, dataset, tracks):
    labels = dataset.obs["label"].to_numpy()
    ids = dataset.obs["track_id"]
    assert ids.isna().tolist() == (labels == LOST).tolist()
    assert (ids[ids.notna()] == 5 * labels[labels != LOST]).all()
    assert dataset.roles["track_id"] == "tracks"
    assert not {"time", "track_id", "centroid_y"} & set(dataset.var_names)
    # One pixel a frame, of 2 units.
    assert np.nanmin(tracks.compute_speeds()) == np.nanmax(tracks.compute_speeds()) == 2
    assert np.nanmax(tracks.compute_displacements()) == 2 * (N_FRAMES - 1)
    told = "11 tracks with 110 of 120 rows. Speed in units of the layer per frame."
    assert told in dock.data_controls.summary.text()


def features_are_written(session, viewer):
    """Of each vertex those of the object that it lies in, in napari's own order."""
    table = viewer.layers["tracks"].features
    ids, at = viewer.layers["tracks"].data[:, :2].T
    dataset, places = session.dataset, session.snapshot.embedding
    row_of = {
        key: i
        for i, key in enumerate(
            zip(dataset.obs["track_id"], dataset.obs["time"], strict=True)
        )
    }
    rows = [row_of[key] for key in zip(ids, at, strict=True)]
    np.testing.assert_array_equal(table["embedding_game_x"], places[rows, 0])
    names = session.clusters.clustering.names_by_point
    assert table["embedding_game_cluster"].tolist() == (names.codes[rows] + 1).tolist()
    spots = viewer.layers["spots"].features
    assert set(spots["embedding_game_cluster"]) <= set(names.categories)
    assert spots["embedding_game_y"].isin(places[:, 1]).all()
    assert viewer.layers["elsewhere"].features.empty
    assert viewer.layers["cells"].features.empty  # a label is several objects


def lit_tracks(layer):
    assert layer.color_by == SELECTED
    marks = layer.features[SELECTED].to_numpy()
    bright = layer.track_colors[:, 3] > 0.5
    np.testing.assert_array_equal(bright, marks > 0)
    return np.unique(layer.data[bright, 0]).tolist()


def paths_are_painted(dock, viewer, session, rows):
    """Steps of the track on the map and on the movie, whatever the order of rows."""
    paths = dock.track_paths
    times = session.dataset.obs["time"].to_numpy()
    steps = times[paths._steps]
    assert steps.tolist() == [[t, t + 1] for t in range(N_FRAMES - 1)]
    ends = paths._ends[:, :, 2]
    assert (np.diff(ends, axis=1) == 1).all()  # to the right
    assert paths._ends[:, 0, 0].tolist() == [*range(N_FRAMES - 1)]
    line = np.array([[[0.0, 0.0], [70.0, 0.0]], [[70.0, 0.0], [70.0, 9.0]]])
    tips = compute_arrow_corners(line)
    assert tips[:, 0].tolist() == [[40.0, 0.0], [70.0, 9.5]]


def the_present_frame_is_ringed(dock, viewer, session, times):
    for frame in (2, 7):
        viewer.dims.set_point(0, frame)
        rows = dock.track_paths.find_present_rows()
        assert rows.tolist() == np.flatnonzero(times == frame).tolist()
    cells = viewer.layers["cells"]
    cells.visible = False
    assert not len(dock.track_paths.find_present_rows())
    cells.visible = True


def clicks_on_the_movie_select(viewer, dock, seen, session, labels, time):
    viewer.dims.set_point(0, 4)
    row = int(np.flatnonzero((labels == 10) & (time == 4))[0])
    center = session.dataset.objects.centers[row][1:]
    cells, layer = viewer.layers["cells"], viewer.layers["tracks"]
    pixel = seen.pixels(center, cells)[0]
    seen.click(pixel)
    assert session.selection.rows.tolist() == [row]
    QTest.mouseDClick(seen.native, LEFT, CONTROL, pixel)
    assert set(labels[session.selection.rows]) == {10}
    # Where the object was at time 0 only the tail of its track is left.
    session.selection.clear()
    tail = seen.pixels(center - [0, 4.4], cells)[0]
    seen.click(tail)
    (chosen,) = session.selection.rows
    assert (labels[chosen], time[chosen]) == (10, 0)
    assert layer.visible


def marks_of_scripts_come_back(layer, session, labels):
    """What another program marks in the features is selected on the map."""
    layer.features[SELECTED] = (layer.data[:, 0] == 20).astype(float)
    layer.events.properties()
    assert set(labels[session.selection.rows]) == {4}
    assert lit_tracks(layer) == [20]


def a_table_lists_tracks(qtbot, viewer, dock, from_menu, session):
    title = "Tracks (Embedding Game)"
    from_menu(viewer.window.plugins_menu, "Embedding Game", title)
    (widget,) = (x for x in dock.workspace.docks if isinstance(x, TracksWidget))
    qtbot.waitUntil(lambda: widget.table.rowCount() == N_OBJECTS - 1)
    assert [widget.table.item(i, 0).text() for i in range(3)] == ["5", "10", "15"]
    assert widget.table.list_selected_keys() == [3]  # track 20 is selected
    widget.table.selectRow(0)
    assert set(session.dataset.obs["label"].iloc[session.selection.rows]) == {1}
    QTest.mouseClick(widget.add_button, LEFT)
    obs = session.dataset.obs
    assert "track_sequence" in obs
    assert obs["track_speed"].isna().sum() == N_OBJECTS - 1 + N_FRAMES
    assert {"track_speed", "track_last"} <= {*list_color_choices(session.dataset)}
    widget.close()


def other_tracks_are_not_linked(qtbot, viewer, dock, session):
    before = session.dataset
    viewer.layers.remove("tracks")
    viewer.add_tracks([[1, 0, 150, 150], [1, 1, 150, 150]], name="of another movie")
    qtbot.waitUntil(lambda: "of another movie" in session.message)
    assert session.message.startswith("Only 0% of the moments")
    assert session.dataset is before


def test_tracks_of_a_table_are_followed_without_a_layer(
    qtbot, viewer, dock, look_at, load, play, tmp_path
):
    rng = np.random.default_rng(0)
    track, frame = (one.ravel() for one in np.mgrid[:6, :8])
    table = pd.DataFrame({"track_id": track, "frame": frame})
    for name in "abcd":
        table[name] = rng.normal(size=48) + track + frame
    table = table.sample(frac=1, random_state=0)
    path = tmp_path / "cells.csv"
    table.to_csv(path, index=False)
    load(FileSource(path))
    session = dock.workspace.session
    play()
    qtbot.settle()
    panel = dock.data_controls.columns_panel
    assert panel.collect_chosen_roles()["frame"] == "times"
    seen = look_at(viewer, dock)
    row = lonely_row(session)
    place = seen.pixels(session.view.positions[row])[0]
    seen.click(place)
    QTest.mouseDClick(seen.native, LEFT, NONE, place)
    chosen = session.dataset.obs.iloc[session.selection.rows]
    assert set(chosen["track_id"]) == {table["track_id"].iloc[row]}
    assert sorted(chosen["frame"]) == [*range(8)]
    steps = session.dataset.obs["frame"].to_numpy()[dock.track_paths._steps]
    assert (np.diff(steps, axis=1) == 1).all()
    assert not len(dock.track_paths.find_present_rows())  # there is no movie
