"""A file whose rows are the objects of an open Labels layer."""

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

import worlds
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.images.join_panel import NO_LAYER

N_OBJECTS = 24


@pytest.fixture
def nuclei(viewer):
    """An image and 24 nuclei, whose labels are 3, 6, 9 ..."""
    image, labels = worlds.field(0, N_OBJECTS, (60, 90))
    viewer.add_image(image, name="stain")
    return viewer.add_labels(labels, name="nuclei")


@pytest.fixture
def table(tmp_path):
    """The rows of the nuclei in another order, as CellProfiler writes them."""
    rng = np.random.default_rng(1)
    ids = rng.permutation(3 * np.arange(N_OBJECTS) + 3)
    values = rng.normal(size=(N_OBJECTS, 3))
    frame = pd.DataFrame(values, columns=["area", "tone", "form"])
    frame.insert(0, "ObjectNumber", ids)
    frame["nuc"] = ids[::-1]
    frame.to_csv(tmp_path / "Nuclei.csv", index=False)
    return tmp_path / "Nuclei.csv", ids


def test_a_file_joins_the_open_labels_and_another_choice_keeps_the_map(
    viewer, nuclei, dock, session, load, play, table, lit, qtbot
):
    path, ids = table
    dataset = load(FileSource(path))
    linked, panel = (
        dock.controller.workspace.linked_layers,
        dock.data_controls.join_panel,
    )
    assert dataset.objects.label_ids.tolist() == ids.tolist()
    assert linked.current.labels is nuclei
    assert linked.current.images == (viewer.layers["stain"],)
    assert panel.layer_choice.value is nuclei
    assert panel.column_choice.value == "ObjectNumber"
    assert "24 of 24 rows match a label of 'nuclei'" in panel.text.text()
    assert "match a label" not in dock.data_controls.notes.text()
    play()
    shown = session.snapshot
    session.selection.select_points(np.array([3]))
    assert lit(nuclei) == [ids[3]]
    load(lambda: panel.layer_choice.setCurrentText(NO_LAYER))
    assert panel.layer_choice.value is None
    assert linked.current is None
    assert session.dataset.objects is None
    assert session.snapshot is shown
    load(lambda: setattr(panel.layer_choice, "value", nuclei))
    load(lambda: setattr(panel.column_choice, "value", "nuc"))
    assert session.dataset.objects.label_ids.tolist() == ids[::-1].tolist()
    assert session.dataset.var_names == ("area", "tone", "form")
    viewer.layers.remove(nuclei)
    qtbot.waitUntil(lambda: linked.current is None)
    again = viewer.add_labels(nuclei.data.copy(), name="nuclei")
    qtbot.waitUntil(lambda: linked.current is not None)
    load(lambda: dock.controller.reading.reload_with_options(columns=("area", "tone")))
    qtbot.waitUntil(lambda: linked.current is not None)
    assert linked.current.labels is again


def test_the_annotation_of_a_layer_is_joined_with_its_labels(
    viewer, nuclei, dock, session, load
):
    ids = np.random.default_rng(2).permutation(np.unique(nuclei.data)[1:])
    obs = pd.DataFrame({"region": "nuclei", "instance_id": ids}).set_axis(map(str, ids))
    adata = AnnData(np.random.default_rng(3).normal(size=(N_OBJECTS, 3)), obs=obs)
    adata.uns["spatialdata_attrs"] = {
        "region": "nuclei",
        "region_key": "region",
        "instance_key": "instance_id",
    }
    nuclei.metadata["adata"] = adata
    viewer.layers.selection.active = nuclei
    load(dock.data_controls.start_panel.layer_button.click)
    assert session.dataset.objects.label_ids.tolist() == ids.tolist()
    del nuclei.metadata["adata"]  # its own table then
    nuclei.features = pd.DataFrame({"size": np.sqrt(ids), "Label": ids[::-1]})
    load(dock.data_controls.start_panel.layer_button.click)
    assert session.dataset.objects.label_ids.tolist() == ids[::-1].tolist()


def test_labels_that_come_later_are_offered(viewer, dock, load, table, qtbot):
    path, _ = table
    load(FileSource(path))
    assert dock.data_controls.join_panel.isHidden()
    viewer.add_labels(np.eye(40, dtype=int), name="other")
    qtbot.waitUntil(lambda: not dock.data_controls.join_panel.isHidden())
    load(
        lambda: setattr(
            dock.data_controls.join_panel.layer_choice, "value", viewer.layers["other"]
        )
    )
    hint = dock.data_controls.join_panel.text
    assert hint.property("role") == "warning"
    assert "none of 24 rows" in hint.text()
    assert dock.controller.workspace.linked_layers.current is None
    viewer.layers.remove("other")
    qtbot.waitUntil(dock.data_controls.join_panel.isHidden)
    assert dock.data_controls.join_panel.layer_choice.choices == [
        None
    ]  # a layer may be large
