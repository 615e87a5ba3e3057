"""Getting data in: stages, cancelling, spaces, columns, the recipe, objects."""

import threading

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

import worlds
from napari_embedding_game.data import read_result
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.sources import FileSource, SampleSource


class Staged:
    """A source that waits in its second stage, and notes how it ended."""

    name = "cells.zarr"

    def __init__(self, dataset):
        self.dataset = dataset
        self.gate = threading.Event()
        self.closed = threading.Event()

    def read(self, options):
        try:
            yield Stage("Opening")
            yield Stage("Reading X", 0.4)
            self.gate.wait(10)
            yield Stage("Checking the numbers")
            return ReadResult(dataset=self.dataset)
        finally:
            self.closed.set()


def test_reading_tells_its_stage_and_can_be_cancelled(
    qtbot, session, dock, dataset, load, monkeypatch
):
    source, before = Staged(dataset), session.dataset
    dock.controller.reading.load(source)
    qtbot.waitUntil(lambda: "Reading X" in dock.data_controls.summary.text())
    assert dock.data_controls.cancel_button.isVisibleTo(dock.data_controls)
    assert dock.data_controls.bar.value() == 40
    dock.data_controls.cancel_button.click()
    assert "40 rows" in dock.data_controls.summary.text()
    assert not dock.data_controls.bar.isVisibleTo(dock.data_controls)
    source.gate.set()
    qtbot.waitUntil(source.closed.is_set)
    qtbot.settle()
    assert session.dataset is before
    assert dock.data_controls.trouble.isHidden()
    # Of two wishes the newest is loaded.
    late = Staged(dataset.subset(np.arange(40) < 30))
    dock.controller.reading.load(late)
    qtbot.waitUntil(lambda: "Reading X" in dock.data_controls.summary.text())
    looked = []  # at all values, in which threads
    note = lambda X: looked.append(threading.current_thread())  # noqa: E731
    monkeypatch.setattr(read_result, "looks_like_counts", note)

    def open_sample():
        dock.controller.reading.load(SampleSource("digits"))
        assert dock.data_controls.summary.text().startswith("Reading the sample digits")

    load(open_sample)
    assert looked
    assert threading.main_thread() not in looked
    late.gate.set()
    qtbot.waitUntil(late.closed.is_set)
    qtbot.settle()
    assert session.dataset.name == "digits"
    last = Staged(dataset)
    dock.controller.reading.load(last)
    qtbot.waitUntil(lambda: "Reading X" in dock.data_controls.summary.text())
    last.gate.set()
    dock.close()  # waits until nothing is read any more
    assert last.closed.is_set()
    assert session.dataset.name == "digits"


def test_some_of_the_columns(qtbot, dock, session, load, tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 4))
    table = pd.DataFrame(rows, columns=["area", "red mean", "red sd", "kind 1"])
    table.to_csv(tmp_path / "cells.csv", index=False)
    load(FileSource(tmp_path / "cells.csv"))
    panel = dock.data_controls.columns_panel
    assert "4 of 4" in panel.button.text()
    panel.set_expanded(True)
    panel.none.click()
    assert panel.apply_button.isHidden()
    panel.filter.setText("red")
    panel.all.click()
    assert panel.list_ticked_columns() == ("red mean", "red sd")
    load(panel.apply_button.click)
    assert session.dataset.var_names == ("red mean", "red sd")
    assert "2 of 4" in panel.button.text()
    assert panel.filter.text() == ""  # it would filter none of what is listed now


def test_batches_are_offered_by_their_column_and_mixed(
    dock, session, load, play, qtbot, tmp_path
):
    pytest.importorskip("harmonypy")
    data, panel = dock.data_controls, dock.data_controls.recipe_panel
    barcode = [f"id{i}" for i in range(60)]
    cells = worlds.raw_counts(day=["mon", "tue"] * 30, barcode=barcode)
    cells.write_h5ad(tmp_path / "counts.h5ad")
    load(FileSource(tmp_path / "counts.h5ad"))
    assert list(data.batches.choices) == [None, "day"]
    assert not data.batches.isHidden()
    panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, 7
    for day in ("day", None):
        data.batches.value = day
        load(panel.apply_button.click)
        assert session.dataset.provenance["recipe"]["batch_key"] == day
        assert ("Harmony mixed" in data.notes.text()) == (day is not None)
        assert data.batches.value == day  # "Prepare again" does the same
    play()
    load(lambda: setattr(data.batches, "value", "day"))  # with a map at one press
    assert session.dataset.provenance["recipe"]["batch_key"] == "day"
    qtbot.waitUntil(lambda: session.state == "finished")
    # Those of given components by a choice beside the space.
    X = np.random.default_rng(0).normal(size=(60, 5)).astype("f4")
    given = AnnData(X, obs=cells.obs, obsm={"X_pca": X + [[0], [3]] * 30})
    given.write_h5ad(tmp_path / "given.h5ad")
    load(FileSource(tmp_path / "given.h5ad"))
    assert list(data.batches.choices) == [None, "day"]
    apart = session.dataset.X
    load(lambda: setattr(data.batches, "value", "day"))
    assert session.state == "idle"  # there was no map
    play()
    load(lambda: setattr(data.batches, "value", None))
    qtbot.waitUntil(lambda: session.state == "finished")
    load(lambda: setattr(data.batches, "value", "day"))
    assert "Harmony mixed" in data.notes.text()
    assert not np.allclose(session.dataset.X, apart)
    load(lambda: setattr(data.batches, "value", None))
    np.testing.assert_array_equal(session.dataset.X, apart)
    load(SampleSource("digits"))
    assert data.batches.isHidden()


@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_what_was_not_read_leaves_the_former_wish(
    qtbot, dock, session, load, tmp_path, how
):
    np.save(tmp_path / "counts.npy", worlds.raw_counts().X.astype(int))
    load(FileSource(tmp_path / "counts.npy"))
    recipe = dock.data_controls.recipe_panel
    recipe.numbers["min_genes"].value, recipe.numbers["n_comps"].value = 20, 7
    load(recipe.apply_button.click)
    if how == "cancelled":
        waiting = Staged(None)
        dock.controller.reading.load(waiting)
        dock.data_controls.cancel_button.click()
        waiting.gate.set()
    else:
        recipe.numbers["min_genes"].value = 10_000
        recipe.apply_button.click()
        qtbot.waitUntil(lambda: not dock.controller.reading.stage, timeout=10_000)
        assert "change that number" in dock.data_controls.trouble.text()
    assert not recipe.apply_button.isHidden()
    load(dock.data_controls.drop_box.click)
    assert session.dataset.X.shape == (60, 7)
    waiting = Staged(None)
    dock.controller.reading.load(waiting)
    dock.controller.reading.cancel()
    waiting.gate.set()
    assert dock.data_controls.drop_box.isChecked()
    assert not dock.data_controls.drop_box.isHidden()


def test_a_tube_of_cytometry_has_events(dock, load, read_here, tmp_path):
    path = tmp_path / "tube.fcs"
    worlds.cytometry(path)
    load(lambda: dock.controller.reading.open_file(path))
    assert "300 events × 2 values" in dock.data_controls.summary.text()


def wandering(n_frames=6):
    """Four cells that wander over a movie, by their number."""
    labels = np.zeros((n_frames, 60, 60), int)
    for t in range(n_frames):
        for label in range(1, 5):
            y, x = 12 * label - 6, 4 + 9 * t
            labels[t, y : y + 4 + label, x : x + 6 + t % 3] = label
    return labels


def test_a_movie_is_measured_frame_by_frame_and_what_may_be_one_is_asked_for(
    dock, load, viewer, session
):
    """Never as one volume, smeared along time, without a word."""
    panel, movie = dock.data_controls.measure_panel, wandering()
    viewer.add_labels(movie, name="moving")
    data = load(panel.measure_button.click)
    assert len(data.obs) == 24  # four cells in six frames
    assert data.obs.index[:2].tolist() == ["time 0 label 1", "time 0 label 2"]
    assert "measured by itself" in dock.data_controls.notes.text()
    viewer.layers.clear()
    still = np.repeat(movie[:1], 6, axis=0)
    labels = viewer.add_labels(still, name="still")
    assert panel.axis_choice.currentText() == "Time or depth?"
    assert "Choose the first axis of 'still'" in panel.text.text()
    panel.measure_button.click()
    assert session.dataset is data  # nothing was measured
    assert "Choose the first axis" in dock.data_controls.trouble.text()
    worlds.choose(panel.axis_choice, "Depth (z)")
    assert dock.data_controls.trouble.isHidden()
    data = load(panel.measure_button.click)
    assert "volume" in data.profile_names
    assert viewer.dims.axis_labels == ("-3", "-2", "-1")  # as napari names them
    viewer.layers.selection.active = None  # asks nobody again
    assert panel.axis_choice.value == "z"
    for clue in (
        lambda: viewer.add_tracks(np.array([[1, 0, 5, 5], [1, 1, 6, 6]])),
        lambda: viewer.add_image(still, units=("s", "um", "um")),
        lambda: viewer.add_image(still, axis_labels=("T", "y", "x")),
    ):
        viewer.layers.clear()
        labels = viewer.add_labels(still)
        assert panel.axis_choice.value is None
        clue()
        viewer.layers.selection.active = labels
        assert panel.axis_choice.value == "time"
    assert "volume" not in load(panel.measure_button.click).profile_names
