"""The map split by a column: groups side by side, and what is under the mouse there."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.session.panels import Panel
from napari_embedding_game.ui.canvas.hover_watch import point_at
from napari_embedding_game.ui.canvas.overlays.panel_captions import caption, room_at
from napari_embedding_game.ui.style.halo_text import half_size


@pytest.fixture
def layers(play, dock):
    return play()


def positions(layers):
    return layers.points.data.copy()


def choose(dock, column):
    dock.look.split_by.value = column
    return dock.controller.layers


def test_groups_lie_side_by_side_and_together_again(layers, dock, session, dataset):
    before = positions(layers)
    dock.look.landmarks.value = True
    assert layers.landmarks.visible
    choose(dock, "kind")
    np.testing.assert_allclose(
        positions(layers), layers.to_world(session.drawn.embedding), atol=1e-3
    )
    is_b = (dataset.obs["kind"] == "B").to_numpy()
    columns = positions(layers)[:, 1]
    assert columns[is_b].max() < columns[~is_b].min()
    assert not layers.landmarks.visible  # they are of the map as a whole
    choose(dock, "")
    assert layers.landmarks.visible
    # The scale may ease towards the extent of the map.
    np.testing.assert_allclose(positions(layers), before, atol=0.02 * layers.side)


def test_a_map_stopped_on_its_way_keeps_its_scale(slow, play, dock, session):
    layers, drawing = play("running"), dock.controller.drawing
    dock.run.stop.native.click()
    smaller = session.snapshot.embedding * np.float32(0.8)
    session.snapshot = snapshot = replace(session.snapshot, embedding=smaller)
    drawing.draw(snapshot)
    before, fills = positions(layers), 0.9 * layers.side
    assert np.ptp(before, axis=0).max() < fills  # it is followed gently
    drawing.hold()
    drawing.draw(snapshot)  # such as a frame that comes while a button is pressed
    drawing.release()
    np.testing.assert_array_equal(positions(layers), before)
    choose(dock, "kind")
    choose(dock, "")
    whole = positions(layers)
    assert (np.ptp(whole, axis=0) >= fills).all()
    middle = (whole.max(axis=0) + whole.min(axis=0)) / 2
    np.testing.assert_allclose(middle, layers._frame.corners.mean(axis=0), atol=1)


def test_hover_finds_the_points_where_they_are_drawn(layers, dock, session):
    choose(dock, "kind")
    drawn = layers.projection().to_pixels(layers.to_world(session.drawn.embedding))
    for row in (0, 1, 20, 39):
        found = point_at(session, layers, drawn[row])
        assert found == row or np.allclose(drawn[found], drawn[row], atol=3)


def test_names_stand_in_each_panel_where_their_clusters_have_points(
    layers, dock, session, dataset, qtbot
):
    qtbot.waitUntil(lambda: bool(dock.names.names.clusters))
    whole, labels = dock.names.names, session.clusters.labels
    dataset.obs.loc[labels == labels[0], "kind"] = "T"
    choose(dock, "kind")
    qtbot.waitUntil(lambda: dock.names.names is not whole)
    names, panels = dock.names.names, session.splitting.current.of_points
    named = [(c.id, p) for c, p in zip(names.clusters, names.panels, strict=True)]
    assert sorted(named) == sorted(
        {*zip(labels.tolist(), panels.tolist(), strict=True)}
    )
    assert (labels[0], 0) not in named
    drawn = layers.to_world(session.drawn.embedding)
    for (cluster, panel), place in zip(named, names.places, strict=True):
        of_both = drawn[(labels == cluster) & (panels == panel)]
        assert np.abs(of_both - place).max(axis=1).min() < 1e-3
    # Each is a handle: what is shown at the hand are the points of its panel.
    number = named.index((labels[0], 1))
    pixel = dock.names._middles(layers.projection())[number]
    dock.names.handle_at(pixel).move(pixel + 9)
    held = session.drawn.embedding[labels == labels[0]]
    np.testing.assert_array_equal(dock.names._drag.points, held)


def test_a_run_is_drawn_whole_and_split_at_its_end(layers, play, dock, session):
    choose(dock, "kind")
    is_split = []
    session.progressed.connect(lambda _: is_split.append(session.splitting.is_shown))
    play()
    assert not any(is_split[:-1])
    np.testing.assert_allclose(
        positions(layers), layers.to_world(session.drawn.embedding), atol=1e-3
    )
    assert session.drawn is not session.snapshot


def test_data_without_groups_offer_no_split(layers, dock, session, dataset):
    assert not dock.look.split_by.native.isHidden()
    choose(dock, "kind")
    session.load(replace(dataset, obs=dataset.obs[["counts"]]))
    assert dock.look.split_by.native.isHidden()
    assert session.look.split_by == ""


def test_a_caption_stays_within_the_canvas():
    assert room_at(400, 200, 0, 800) == 200
    assert room_at(80, 200, 0, 800) == 160  # the panel's edge is beyond the canvas
    assert room_at(720, 200, 0, 800) == 160
    assert room_at(-20, 200, 0, 800) == 200  # its middle is


def test_a_caption_is_cut_to_its_panel():
    panel = Panel("CD14 Monocytes", "4,362", (0.0, 0.0), 1.0)
    assert caption(panel, 1000) == ("CD14 Monocytes · 4,362",)
    name_alone = 2 * half_size("CD14 Monocytes", is_given=True)[1]
    assert caption(panel, name_alone) == ("CD14 Monocytes", "4,362")
    cut, told = caption(panel, 60)
    assert cut.startswith("CD")
    assert cut.endswith("…")
    assert 2 * half_size(cut, is_given=True)[1] <= 60
    assert told == "4,362"
    assert caption(panel, 3) == ("",)
    several = Panel("This map", "neighbours 53%, large picture 70%", (0.0, 0.0), 1.0)
    width = 2 * half_size("large picture 70%", is_given=False)[1]
    lines = ("This map", "neighbours 53%", "large picture 70%")
    assert caption(several, width, below=60) == lines
    assert caption(several, width, below=30) == lines[:2]
