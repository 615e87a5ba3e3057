"""Getting data in: stages, cancelling, spaces, columns, the recipe, objects."""

import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.sources import FileSource, LoadResult, SampleSource
from napari_embedding_game.ui.controls.recipe_panel import NO_BATCHES


@pytest.fixture
def load(qtbot, dock):
    def load_source(source):
        with qtbot.waitSignal(dock.controller.reading.loaded, timeout=20_000):
            dock.controller.reading.load(source)

    return load_source


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
            return LoadResult(dataset=self.dataset)
        finally:
            self.closed.set()


def test_reading_tells_its_stage_and_can_be_cancelled(qtbot, session, dock, dataset):
    source, before = Staged(dataset), session.dataset
    dock.controller.reading.load(source)
    qtbot.waitUntil(lambda: "Reading X" in dock.data.summary.text())
    assert not dock.data.cancel.native.isHidden()
    assert dock.data.bar.value == 40
    dock.data.cancel.native.click()
    assert "40 rows" in dock.data.summary.text()
    assert dock.data.bar.native.parentWidget().isHidden()
    source.gate.set()
    qtbot.waitUntil(source.closed.is_set)
    qtbot.wait(20)
    assert session.dataset is before
    assert dock.data.trouble.isHidden()


def test_after_cancelling_the_former_choices_are_back(qtbot, dock, load, tmp_path):
    path = tmp_path / "cells.npz"
    rng = np.random.default_rng(0)
    np.savez(path, X=rng.normal(size=(30, 3)), Y=rng.normal(size=(30, 4)))
    load(FileSource(path))
    spaces = list(dock.data.space.choices)
    assert len(spaces) == 2
    waiting = Staged(None)
    dock.controller.reading.load(waiting)
    dock.data.cancel.native.click()
    waiting.gate.set()
    assert list(dock.data.space.choices) == spaces
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.data.space.value = spaces[1]
    assert dock.controller.session.dataset.space == spaces[1]


@pytest.mark.parametrize("kind", [MissingValuesError, DataError])
def test_the_box_to_leave_out_rows_comes_for_missing_values_alone(qtbot, dock, kind):
    class Broken:
        name = "cells.csv"

        def read(self, options):
            yield Stage("Opening")
            raise kind("There is a column 'tick the box below'")

    dock.controller.reading.load(Broken())
    qtbot.waitUntil(lambda: "tick the box" in dock.data.trouble.text())
    assert dock.data.drop.native.isHidden() == (kind is DataError)


def test_a_zarr_folder_with_layers(qtbot, dock, session, load, tmp_path):
    anndata = pytest.importorskip("anndata")
    X = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    adata = anndata.AnnData(X, layers={"scaled": 2 * X})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the version of zarr's format
        adata.write_zarr(tmp_path / "cells.zarr")
    load(FileSource(tmp_path / "cells.zarr"))
    assert list(dock.data.space.choices) == ["X", "layers['scaled']"]
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.data.space.value = "layers['scaled']"
    np.testing.assert_allclose(session.dataset.X, 2 * X)


def test_some_of_the_columns(qtbot, dock, session, load, tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 4))
    table = pd.DataFrame(rows, columns=["area", "red mean", "red sd", "kind 1"])
    table.to_csv(tmp_path / "cells.csv", index=False)
    load(FileSource(tmp_path / "cells.csv"))
    panel = dock.data.columns
    assert "4 of 4" in panel.fold.text()
    panel.fold.expand(animate=False)
    panel.none.native.click()
    assert not panel.apply.enabled
    panel.filter.setText("red")
    panel.all.native.click()
    assert panel.chosen() == ("red mean", "red sd")
    with qtbot.waitSignal(dock.controller.reading.loaded):
        panel.apply.native.click()
    assert session.dataset.var_names == ("red mean", "red sd")
    assert "2 of 4" in panel.fold.text()


@pytest.fixture
def counts(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "counts.npy"
    np.save(path, rng.poisson(rng.gamma(1.0, 2.0, size=(1, 150)), size=(60, 150)))
    return FileSource(path)


def test_raw_counts_are_prepared_by_one_click(qtbot, dock, session, load, counts):
    load(counts)
    panel = dock.data.recipe
    assert not panel.isHidden()
    assert "raw counts" in panel.offer.text()
    panel.numbers["min_genes"].value = 20
    panel.numbers["n_comps"].value = 7
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=30_000):
        panel.apply.native.click()
    assert session.dataset.X.shape == (60, 7)
    assert session.dataset.provenance["recipe"]["min_genes"] == 20
    assert panel.offer.isHidden()
    assert not panel.undo.native.isHidden()
    with qtbot.waitSignal(dock.controller.reading.loaded):
        panel.undo.native.click()
    assert session.dataset.X.shape == (60, 150)


def test_batches_are_offered_by_their_column_and_mixed(
    qtbot, dock, session, load, tmp_path
):
    pytest.importorskip("harmonypy")
    rng = np.random.default_rng(0)
    cells = AnnData(
        rng.poisson(rng.gamma(1.0, 2.0, size=(1, 150)), size=(60, 150)).astype("f4"),
        obs=pd.DataFrame(
            {"day": ["mon", "tue"] * 30, "barcode": [f"id{i}" for i in range(60)]},
            index=[f"c{i}" for i in range(60)],
        ),
    )
    cells.write_h5ad(tmp_path / "cells.h5ad")
    load(FileSource(tmp_path / "cells.h5ad"))
    panel = dock.data.recipe
    assert list(panel.batches.choices) == [NO_BATCHES, "day"]
    assert not panel.batches.native.isHidden()
    panel.numbers["min_genes"].value, panel.numbers["n_comps"].value = 20, 7
    panel.batches.value = "day"
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=30_000):
        panel.apply.native.click()
    assert session.dataset.provenance["recipe"]["batch_key"] == "day"
    assert "Harmony mixed" in dock.data.notes.text()
    assert panel.batches.value == "day"  # "Prepare again" does the same
    panel.batches.value = NO_BATCHES
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=30_000):
        panel.apply.native.click()
    assert session.dataset.provenance["recipe"]["batch_key"] is None


def test_batches_of_given_components_are_mixed_by_a_choice_beside_the_space(
    qtbot, dock, session, load, tmp_path
):
    pytest.importorskip("harmonypy")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype("f4")
    day = pd.DataFrame({"day": ["mon", "tue"] * 30}, index=[f"c{i}" for i in range(60)])
    cells = AnnData(X, obs=day, obsm={"X_pca": X + [[0], [3]] * 30})
    cells.write_h5ad(tmp_path / "cells.h5ad")
    data, mixable = dock.data, []
    data.mixable_changed.connect(mixable.append)
    load(FileSource(tmp_path / "cells.h5ad"))
    assert list(data.batches.choices) == [NO_BATCHES, "day"]
    assert not data.batches.native.isHidden()
    assert mixable[-1] == ("day",)
    apart = session.dataset.X
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=30_000):
        data.mix_batches("day")  # as the warning under Quality does
    assert data.batches.value == "day"
    assert mixable[-1] == ()
    assert "Harmony mixed" in data.notes.text()
    assert not np.allclose(session.dataset.X, apart)
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=30_000):
        data.batches.value = NO_BATCHES
    np.testing.assert_array_equal(session.dataset.X, apart)
    load(SampleSource("digits"))
    assert data.batches.native.isHidden()


def test_two_long_names_of_maps_do_not_widen_the_dock(qtbot, dock, session, load):
    long = "cells_of_a_long_name_1"
    load(SampleSource("digits"))
    way = dock.data.way
    before = dock.data.minimumSizeHint().width()
    places = [SimpleNamespace(title=long, n_points=9, key=k) for k in "ab"]
    way._maps = SimpleNamespace(path=places, parts=[], changed=way._maps.changed)
    way.refresh()
    assert way.buttons
    assert dock.data.minimumSizeHint().width() <= before


def test_where_no_column_names_batches_none_are_asked_for(dock, load, counts):
    load(counts)
    assert dock.data.recipe.batches.native.isHidden()
    assert dock.data.recipe.recipe().batch_key is None


def test_a_recipe_that_cannot_be_followed_says_why(qtbot, dock, load, counts):
    load(counts)
    dock.data.recipe.numbers["min_genes"].value = 10_000
    dock.data.recipe.apply.native.click()
    qtbot.waitUntil(lambda: not dock.data.trouble.isHidden(), timeout=10_000)
    assert "lower that number" in dock.data.trouble.text()


@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_what_was_not_read_leaves_the_former_wish(
    qtbot, monkeypatch, dock, session, load, counts, how
):
    load(counts)
    recipe = dock.data.recipe
    recipe.numbers["min_genes"].value, recipe.numbers["n_comps"].value = 20, 7
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=30_000):
        recipe.apply.native.click()
    if how == "cancelled":
        waiting = Staged(None)
        dock.controller.reading.load(waiting)
        dock.data.cancel.native.click()
        waiting.gate.set()
    else:
        recipe.numbers["min_genes"].value = 10_000
        with qtbot.waitSignal(dock.controller.reading.failed, timeout=10_000):
            recipe.apply.native.click()
        assert "lower that number" in dock.data.trouble.text()
    assert not recipe.undo.native.isHidden()
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=30_000):
        dock.data.drop.native.click()
    assert session.dataset.X.shape == (60, 7)
    waiting = Staged(None)
    dock.controller.reading.load(waiting)
    dock.controller.reading.cancel()
    waiting.gate.set()
    assert dock.data.drop.value
    assert not dock.data.drop.native.isHidden()


@pytest.fixture
def squares():
    labels = np.zeros((60, 60), np.int32)
    for number in range(16):
        row, column = divmod(number, 4)
        size = 4 + number % 5
        labels[row * 14 : row * 14 + size, column * 14 : column * 14 + 6] = number + 1
    return labels


def test_several_images_are_the_channels(qtbot, viewer, dock, session, squares):
    rng = np.random.default_rng(0)
    viewer.add_image(rng.random((60, 60)), name="DNA")
    viewer.add_image(rng.random((60, 60, 3)), rgb=True, name="stain")
    viewer.add_image(rng.random((10, 10)), name="other")
    labels = viewer.add_labels(squares, name="nuclei")
    viewer.layers.selection = {labels, viewer.layers["DNA"], viewer.layers["stain"]}
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=10_000):
        dock.data.measure.measure.native.click()
    measured = set(session.dataset.profile_names)
    assert {"DNA_mean", "stain red_mean", "stain blue_mean"} <= measured
    assert not any(name.startswith("other") for name in measured)


def test_the_nuclei_come_with_picture_and_labels(viewer, dock, session, load):
    load(SampleSource("nuclei"))
    names = [layer.name for layer in viewer.layers]
    assert names == ["nuclei (image)", "nuclei (labels)"]
    assert dock.workspace.linked.current.labels is viewer.layers[1]
    load(SampleSource("nuclei"))
    assert len(viewer.layers) == 2
    load(SampleSource("digits"))
    assert dock.workspace.linked.current is None
