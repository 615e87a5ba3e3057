"""The map split by a column: groups side by side, and what is under the mouse there."""

import numpy as np
import pytest

from napari_embedding_game.ui.canvas import marks
from napari_embedding_game.ui.canvas.frame import SIDE
from napari_embedding_game.ui.canvas.pick import find_row_at_pixel


@pytest.fixture
def layers(play, dock):
    return play()


def choose(dock, column):
    dock.display_controls.split_by.value = column
    return dock.controller.scene.map_layers


def test_groups_lie_side_by_side_are_hovered_and_together_again(
    layers, dock, session, dataset, qtbot, viewer, monkeypatch
):
    before, written, camera = layers.points.data, [], viewer.scene.camera
    monkeypatch.setattr(
        marks, "paint_text_with_halo", lambda painter, at, *_: written.append(at.y())
    )
    dock.display_controls.landmarks.setChecked(True)
    assert layers.landmarks.visible
    choose(dock, "kind")
    points = layers.points

    def is_known():  # to napari, whose Home shows all of it
        ends = points.data.min(axis=0), points.data.max(axis=0)
        return np.allclose(points.extent.data, ends, atol=1e-3)

    qtbot.waitUntil(is_known)
    drawn = layers.to_world(session.view.painted_snapshot.embedding)
    np.testing.assert_allclose(points.data, drawn, atol=1e-3)
    is_b = (dataset.obs["kind"] == "B").to_numpy()
    columns = points.data[:, 1]
    assert columns[is_b].max() < columns[~is_b].min()
    assert not layers.landmarks.visible  # they are of the map as a whole
    top = layers.projection().to_pixels(session.view.panels.positions)[0, 1] - 5
    camera.center = 0, camera.center[1] + top / camera.zoom, camera.center[2]
    dock.overlay.grab()
    assert min(written) > 5  # captions are seen where the canvas ends at their panels
    choose(dock, "")
    assert layers.landmarks.visible
    qtbot.waitUntil(is_known)
    # The scale may ease towards the extent of the map.
    np.testing.assert_allclose(layers.points.data, before, atol=0.02 * SIDE)
    choose(dock, "kind")
    drawn = layers.projection().to_pixels(session.view.painted_snapshot.embedding)
    for row in (0, 1, 20, 39):
        found = find_row_at_pixel(
            layers, session.view.painted_snapshot.embedding, drawn[row]
        )
        assert found == row or np.allclose(drawn[found], drawn[row], atol=3)

    def told():
        dock.controller.scene.set_true_neighbors_shown(True)
        dock.controller.scene.set_true_neighbors_shown(False)
        return next(text for text in said[::-1] if text)

    said = []
    dock.controller.scene.neighbors_message.connect(said.append)
    session.selection.select_cluster(1)
    choose(dock, "")
    before = told()
    choose(dock, "kind")
    said.clear()
    assert told() == before


def test_names_stand_in_each_panel_where_their_clusters_have_points(
    layers, dock, session, dataset, qtbot
):
    qtbot.waitUntil(lambda: bool(dock.map_names.names.clusters))
    whole, labels = dock.map_names.names, session.clusters.labels
    dataset.obs.loc[labels == labels[0], "kind"] = "T"
    choose(dock, "kind")
    qtbot.waitUntil(lambda: dock.map_names.names is not whole)
    names, panels = dock.map_names.names, session.view.layout.panel_of_points
    named = [(c.id, p) for c, p in zip(names.clusters, names.panels, strict=True)]
    assert sorted(named) == sorted(
        {*zip(labels.tolist(), panels.tolist(), strict=True)}
    )
    assert (labels[0], 0) not in named
    drawn = session.view.painted_snapshot.embedding
    for (cluster, panel), place in zip(named, names.positions, strict=True):
        of_both = drawn[(labels == cluster) & (panels == panel)]
        assert np.abs(of_both - place).max(axis=1).min() < 1e-3
    pixels, strengths = dock.map_names.label_positions_and_opacities(
        layers.projection()
    )
    is_read = (strengths == 1) & (names.panels == 1)
    assert is_read.any()  # and taken in each panel
    assert all(dock.map_names.make_name_handle(pixel) for pixel in pixels[is_read])
