"""A saved figure shows what the screen shows."""

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.export import plots
from napari_embedding_game.data.export.plots import draw, make_paint_order
from napari_embedding_game.ui.style.coloring import MISSING


@pytest.fixture
def saved(qtbot, dock, monkeypatch, tmp_path):
    """Save the present map and return the axes of its figure."""
    kept = []
    monkeypatch.setattr(
        plots,
        "write_plot",
        lambda plot, path: (kept.append(draw(plot)), path.touch()),
    )

    def save():
        with qtbot.waitSignal(dock.controller.writing.saved):
            dock.controller.writing.save(tmp_path / "map.png")
        return kept[-1].axes

    return save


def in_their_order(drawn):
    """Return what was drawn in an order of chance in that of the points."""
    return drawn[np.argsort(make_paint_order(len(drawn)))]


def find_map_colors(axes):
    return in_their_order(axes.collections[0].get_facecolors())


def names_in(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_places_and_colours_are_those_on_the_screen(play, session, dataset, saved):
    dataset.obs["kind"] = pd.Categorical(["B"] * 10 + [None] * 10 + ["T"] * 20)
    layers = play()
    session.clusters.recolor(2, "#ff0000")
    session.clusters.rename(2, "B cells")
    axes = saved()[0]
    axes.figure.canvas.draw()
    places = in_their_order(axes.collections[0].get_offsets())
    right, up = axes.transData.transform(places).T  # rows of the world go down
    turned = np.column_stack([-up, right]), layers.points.data
    for one, other in zip(*(each.T for each in turned), strict=True):
        assert np.corrcoef(one, other)[0, 1] == pytest.approx(1)
    np.testing.assert_allclose(find_map_colors(axes), layers.points.face_color)
    assert "B cells (10)" in names_in(axes)
    session.look.color_by = "kind"
    axes = saved()[0]
    np.testing.assert_allclose(find_map_colors(axes), layers.points.face_color)
    np.testing.assert_allclose(find_map_colors(axes)[10], MISSING)
    assert names_in(axes) == ["B (10)", "T (20)", "(missing) (10)"]
    session.look.color_by = "b"
    session.look.limits = (-0.25, 0.5)
    axes, bar = saved()
    np.testing.assert_allclose(find_map_colors(axes), layers.points.face_color)
    assert bar.get_ylim() == (-0.25, 0.5)
    assert bar.get_ylabel() == "b"


def written_on(axes):
    """The names on a map, each with its place."""
    return {text.get_text(): text.xy for text in axes.texts}


def test_the_figure_has_the_names_that_the_map_has(play, dock, session, saved):
    play()
    session.clusters.rename(2, "B $cells$")
    axes = saved()[0]
    found = written_on(axes)
    assert len(found) == len(session.clusters.clusters)
    of_two = session.snapshot.embedding[session.clusters.labels == 2]
    x, y = found[r"B \$cells\$"]
    low, high = of_two.min(axis=0), of_two.max(axis=0)
    assert (low <= (x, y)).all()
    assert ((x, y) <= high).all()
    session.look.color_by = "kind"  # numbers would seem to be of that
    assert list(written_on(saved()[0])) == [r"B \$cells\$"]
    dock.display_controls.names.click()  # Show names, in the dock
    assert not written_on(saved()[0])
