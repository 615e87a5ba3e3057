"""A part as a map of its own, and the way back."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt

from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.sources import LoadResult
from napari_embedding_game.ui.controls import child_space
from napari_embedding_game.ui.controls.child_space import AS_HERE, CHOSEN


def test_a_selection_is_laid_out_alone_and_the_way_back_is_kept(
    play, qtbot, dock, session
):
    play()
    whole = session.snapshot.embedding
    assert dock.data.way.isHidden()
    cluster = session.clusters.clusters[1]
    session.clusters.rename(cluster.id, "T cells")
    session.selection.select_points(np.arange(20))
    dock.select.embed.native.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert len(dock.controller.layers.points.data) == 20
    assert "20 rows" in dock.data.summary.text()
    (back,) = dock.data.way.buttons
    assert not dock.data.way.isHidden()
    assert back.text() == "‹ cells"
    named = session.clusters.clusters[0]
    session.clusters.rename(named.id, "naive")
    back.click()
    assert dock.data.way.buttons == []
    layers = dock.controller.layers
    np.testing.assert_allclose(layers.points.data, layers.to_world(whole), atol=1e-3)
    names = [cluster.name for cluster in session.clusters.clusters]
    assert {"T cells", "naive"} <= set(names)
    (part,) = dock.data.way.parts.menu().actions()
    assert part.text() == "20 points (20 points)"
    part.trigger()
    assert len(session.dataset.obs) == 20
    assert dock.data.way.parts is None
    assert session.clusters.clustering.by_id[named.id].name == "naive"


def test_too_few_points_are_told(play, dock, session):
    play()
    session.selection.select_points(np.arange(3))
    dock.select.embed.native.click()
    assert "too few" in dock.data.trouble.text()
    assert len(session.dataset.obs) == 40


class Spaces:
    """A source with two spaces and columns; row 3 has a missing value in "raw"."""

    name = "cells"

    def __init__(self, dataset):
        self.dataset = dataset
        self.options_asked = []

    def read(self, options):
        yield Stage("Reading")
        self.options_asked.append(options)
        whole = self.dataset
        if options.columns is not None:
            places = [whole.var_names.index(name) for name in options.columns]
            whole = replace(
                whole,
                X=whole.X[:, places],
                var_names=options.columns,
                space="columns",
                profile=None,
            )
        elif options.space == "raw":
            complete = np.arange(40) != 3
            whole = replace(whole, X=-whole.X, space="raw", profile=None)
            whole = whole.subset(complete)
        return LoadResult(dataset=whole, spaces=["X", "raw"], columns=list("abcde"))


@pytest.fixture
def source(qtbot, dock, session, dataset, play):
    """The source of the map that has been played."""
    source = Spaces(dataset)
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.controller.reading.load(source)
    play()
    return source


def test_the_space_of_a_part_can_be_chosen(qtbot, dock, session, source):
    space = dock.select.space
    assert not space.isHidden()
    assert list(space.choice.choices) == [AS_HERE, "raw", CHOSEN]
    session.selection.select_points(np.arange(20))
    space.choice.value = "raw"
    with qtbot.waitSignal(dock.controller.workspace.maps.changed):
        dock.select.embed.native.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    rows = [row for row in range(20) if row != 3]
    assert session.dataset.space == "raw"
    np.testing.assert_array_equal(session.dataset.X, -source.dataset.X[rows])
    assert source.options_asked[-1].missing == "drop"
    # In the part, its own space is the one as here.
    assert list(space.choice.choices) == [AS_HERE, "X", CHOSEN]
    dock.data.way.buttons[0].click()
    assert session.dataset.space == "X"
    assert list(space.choice.choices) == [AS_HERE, "raw", CHOSEN]


def test_the_columns_of_a_part_can_be_chosen(qtbot, monkeypatch, dock, session, source):
    def tick(dialog):
        dialog.panel.none.native.click()
        for row in (1, 3):
            dialog.panel.list.item(row).setCheckState(Qt.CheckState.Checked)
        return accepted

    monkeypatch.setattr(child_space.ColumnsDialog, "exec", tick)
    session.selection.select_points(np.arange(20))
    dock.select.space.choice.value = CHOSEN
    accepted = False
    dock.select.embed.native.click()
    assert len(source.options_asked) == 1
    accepted = True
    with qtbot.waitSignal(dock.controller.workspace.maps.changed):
        dock.select.embed.native.click()
    assert session.dataset.var_names == ("b", "d")
    assert session.dataset.X.shape == (20, 2)
    qtbot.waitUntil(lambda: session.state == "finished")


def test_other_data_end_the_choice(qtbot, dock, session, source, dataset):
    session.load(dataset)
    assert dock.select.space.isHidden()
    assert dock.select.space.source is None


def test_the_space_of_a_restored_map_can_be_chosen_too(
    qtbot, tmp_path, dock, session, dataset, play
):
    table = tmp_path / "cells.csv"
    dataset.obs.assign(**dict(zip("abcde", dataset.X.T, strict=True))).to_csv(table)
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=10_000):
        dock.controller.reading.load(child_space.FileSource(table))
    play()
    offered = list(dock.select.space.choice.choices)
    saved = dock.controller.session_store.capture()
    session.load(dataset)
    is_other = dock.workspace.loading.ask(None)
    dock.controller.reading.asked.emit(None, is_other, None, None)
    dock.controller.workspace.maps.restore(saved)
    qtbot.waitUntil(lambda: list(dock.select.space.choice.choices) == offered)
    assert CHOSEN in offered
