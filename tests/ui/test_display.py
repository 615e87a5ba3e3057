"""Colour by and size by act at once, while the game runs too."""

from dataclasses import replace

import numpy as np
import pytest
from napari.utils.theme import get_theme, register_theme, unregister_theme
from qtpy.QtWidgets import QApplication

from napari_embedding_game.core.snapshot import (
    MISPLACED_STRETCH,
    OUTLIER_ISOLATION,
)
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.ui.canvas import picture
from napari_embedding_game.ui.canvas.scene import MAX_MAGNIFIED
from napari_embedding_game.ui.style.coloring import choice_of_column


def test_sizes_and_colours_by_what_the_map_says_of_points(play, session, dock):
    layers = play()
    plain = layers.points.size[0]
    dock.display_controls.pressure.setChecked(True)
    sizes = layers.points.size / plain
    np.testing.assert_allclose(sizes[session.snapshot.pressure == 0], 1)
    assert sizes.max() == pytest.approx(MAX_MAGNIFIED)
    session.selection.select_points(np.arange(20))  # stands out by colour alone
    np.testing.assert_allclose(layers.points.size / plain, sizes)
    session.selection.clear()
    dock.display_controls.pressure.setChecked(False)
    np.testing.assert_allclose(layers.points.size, plain)
    far = session.snapshot.stretch > MISPLACED_STRETCH
    assert 0 < far.sum() < len(far)
    dock.display_controls.color_by.value = "Stretch"
    colors = layers.points.face_color
    assert len(np.unique(colors[far], axis=0)) == 1
    assert not np.array_equal(colors[far][0], colors[~far][0])
    scale = dock.display_controls.legend.color_scale
    assert [scale.low.text(), scale.high.text()] == [
        "0",
        f"{MISPLACED_STRETCH:.3g}",
    ]
    figures = dock.trust_controls.figures
    assert figures.frame.loc["unlike_share"].iloc[2] == "–"  # nobody knows
    isolation = np.ones(40, np.float32)
    isolation[[4, 5, 6]] = OUTLIER_ISOLATION + 1, np.inf, OUTLIER_ISOLATION
    known = replace(session.snapshot, isolation=isolation)
    session.restore(replace(session.to_saved_map(), snapshot=known))
    assert figures.frame.loc["unlike_share"].iloc[2] == "5.0%"
    dock.display_controls.color_by.value = "Isolation"
    colors = layers.points.face_color
    assert len(np.unique(colors[[4, 5, 6]], axis=0)) == 1
    assert not np.array_equal(colors[4], colors[0])
    scale = dock.display_controls.legend.color_scale
    assert [scale.low.text(), scale.high.text()] == [
        "1",
        f"{OUTLIER_ISOLATION:.3g}",
    ]


def test_a_gene_has_its_own_limits_which_can_be_moved(play, session, dock):
    layers = play()
    session.look.color_by = "b"
    assert dock.display_controls.color_by.value == "b"
    scale = dock.display_controls.legend.color_scale
    session.add_columns(
        Dataset.with_map_column, "depth", np.linspace(812.5, 23456.5, 40)
    )
    session.look.color_by = choice_of_column("depth", session.dataset)
    texts = scale.low.text(), scale.high.text()
    assert all("," in text and "e" not in text for text in texts)
    session.look.color_by = "b"
    picture = scale.bar.grab().toImage()
    quarter, y = picture.width() // 4, picture.height() - 2
    assert picture.pixelColor(quarter, y) != picture.pixelColor(3 * quarter, y)
    before = layers.points.face_color.copy()
    dock.show()
    QApplication.processEvents()
    place = scale.slider.geometry()
    values = session.dataset.profile[:, 1]
    wanted = np.quantile([values.min(), values.max()], [0.2, 0.22])
    scale.slider.setValue(tuple(wanted))
    QApplication.processEvents()
    assert scale.slider.geometry() == place  # under the mouse that drags it
    np.testing.assert_allclose(session.look.limits, wanted, rtol=1e-5)
    assert not np.array_equal(layers.points.face_color, before)
    session.look.color_by = "c"
    assert session.look.limits is None
    dock.display_controls.color_by.value = "Cluster"
    assert "c" in dock.display_controls.color_by.choices


def test_what_a_person_does_to_the_layers_is_kept(
    play, qtbot, session, dock, make_snapshot
):
    layers, shown = play(), session.snapshot
    for name in ("cluster", "cluster (file)"):  # saved twice
        session.add_columns(Dataset.with_map_column, name, np.ones(40))
    qtbot.waitUntil(lambda: "cluster (file) (file)" in layers.points.features)
    before = layers.points.data.copy()
    broken = make_snapshot(50)
    broken.embedding[3, 0] = np.nan
    for session.snapshot in (broken, shown):
        dock.controller.scene.render_map()
        np.testing.assert_array_equal(layers.points.data, before)
    # Landmarks that were far and are hidden make no map small.
    dock.display_controls.landmarks.setChecked(True)
    far = replace(shown, landmarks=shown.landmarks * 50)
    for session.snapshot, least, most in ((far, 5_000, np.inf), (shown, 0, 2_000)):
        dock.controller.scene.render_map()
        layers.refresh_thumbnails_and_extents()
        assert least < np.ptp(layers.landmarks.extent.world[:, 0]) < most
        dock.display_controls.landmarks.setChecked(False)
    layers.points.visible = False
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.snapshot not in (None, shown))
    qtbot.waitUntil(lambda: session.state == "finished")
    assert not layers.points.visible
    layers.points.remove([3, 4])
    assert layers.projection() is None  # nothing under the mouse is another point
    assert layers.points is None
    assert "was removed" in dock.run_controls.message.text()


def test_marks_are_seen_on_whatever_colour_the_canvas_has(dock, play, monkeypatch):
    """Also where the name of the theme does not say it, as "system"."""
    layers, viewer, session = (
        play(),
        dock.controller.scene.viewer,
        dock.workspace.session,
    )
    session.selection.select_cluster(session.clusters.clusters[0].id)
    monkeypatch.setattr("napari.utils.theme.get_system_theme", lambda: "light")
    paper = get_theme("light").model_copy(update={"id": "paper"})
    register_theme("paper", paper, "a plugin")

    def looks():
        muted = layers.points.face_color[~session.selection.points][:, :3]
        is_pale = bool(muted.mean() > 0.5)
        return (
            is_pale,
            layers.landmarks.face_color[0, 0] > 0.5,
            dock.overlay.is_on_light_canvas,
        )

    try:
        for theme, is_light in (("light", True), ("dark", False), ("paper", True)):
            viewer.theme = theme
            assert looks() == (is_light,) * 3, theme
        viewer.theme = "dark"
        viewer.theme = "system"
        assert looks() == (True,) * 3
        viewer.canvas.background_color_override = "black"
        assert looks() == (False,) * 3
    finally:
        viewer.theme = "dark"
        unregister_theme("paper")


def test_the_map_has_the_units_of_whatever_lies_beside_it(dock, play, monkeypatch):
    """Else napari's scale bar has none, and a warning is shown."""
    viewer = dock.controller.scene.viewer
    image = viewer.add_image(np.zeros((20, 30)), units=("um", "um"), scale=(0.5, 0.5))
    layers = play()
    dock.display_controls.landmarks.setChecked(True)

    def units():
        assert viewer.layers.extent.units is not None  # all agree
        return {str(u) for x in (layers.points, layers.landmarks) for u in x.units}

    assert units() == {"micrometer"}
    image.units = "nm", "nm"
    assert units() == {"nanometer"}
    viewer.layers.remove(image)
    viewer.add_labels(np.ones((4, 20, 30), int), units=("s", "mm", "mm"))
    assert units() == {"millimeter"}
    monkeypatch.setattr(picture, "MAX_BALLS", 40)
    dock.workspace.session.settings.n_components = 3
    play()
    assert layers.points.shading == "spherical"  # so many may be balls
    assert [str(u) for u in layers.points.units] == ["second", *2 * ["millimeter"]]
    assert viewer.layers.extent.units is not None


def test_the_map_makes_room_for_whatever_holds_something_when_it_comes(
    dock, play, qtbot
):
    layers, viewer = play(), dock.controller.scene.viewer

    def left():
        QApplication.processEvents()
        return float(layers.points.data[:, 1].min())

    before = left()
    viewer.add_points(np.empty((0, 2)))  # to be drawn on the map itself
    viewer.add_labels(np.zeros((1000, 1000), np.uint8))  # napari's, to be painted
    assert left() == before
    shapes = [np.array([[0.0, 0.0], [400.0, 900.0]])]
    for add, data in (
        (viewer.add_points, [[500.0, 400.0], [900.0, 700.0]]),
        (viewer.add_shapes, shapes),
        (viewer.add_labels, np.ones((800, 1200), np.uint8)),
    ):
        layer = add(data)
        right = layer.extent.world[1, 1]
        qtbot.waitUntil(lambda right=right: left() > right)
        viewer.layers.remove(layer)
        viewer.add_image(np.zeros((30, 30)))  # the map comes back beside it
        dock.controller.scene.move_map_beside_layers()
