"""Tables of SpatialData, found in the metadata of a layer and written into again."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.join import JoinRequest
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.spatial_table import find_table_of_layer
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.sources import AnnDataSource, FileSource

N = 12
INSTANCES = np.arange(N) * 3 + 2
"""Labels of the cells, with gaps."""


def labels():
    """Twelve cells of 3 x 3 pixels, and one that no row is about."""
    image = np.zeros((40, 4), int)
    for place, label in enumerate(INSTANCES):
        image[3 * place : 3 * place + 3, :3] = label
    image[38:, 3] = 99
    return image


@pytest.fixture
def adata():
    """Rows about "cells", shuffled, between five about "nuclei"."""
    rng = np.random.default_rng(0)
    order = rng.permutation(N)
    obs = pd.DataFrame(
        {
            "region": pd.Categorical(["nuclei"] * 2 + ["cells"] * N + ["nuclei"] * 3),
            "cell": [*range(2), *INSTANCES[order], *range(2, 5)],
        },
        index=[f"row{i}" for i in range(N + 5)],
    )
    adata = AnnData(rng.normal(size=(N + 5, 4)).astype("f4"), obs=obs)
    adata.obsm["X_pca"] = rng.normal(size=(N + 5, 3)).astype("f4")
    adata.uns["spatialdata_attrs"] = {
        "region": ["cells", "nuclei"],
        "region_key": "region",
        "instance_key": "cell",
    }
    return adata


def read(table, image=None, **options):
    source = AnnDataSource(table, "cells", image)
    return finish(source.read(ReadOptions(**options)))


def test_rows_of_other_regions_are_left_out_and_told(adata):
    loaded = read(find_table_of_layer({"adata": adata}, "cells"), labels())
    dataset = loaded.dataset
    wanted = adata.obs["cell"].to_numpy()[2:-3]
    assert dataset.objects.label_ids.tolist() == wanted.tolist()
    assert dataset.space == "obsm['X_pca']"
    np.testing.assert_array_equal(dataset.X, adata.obsm["X_pca"][2:-3])
    assert dataset.notes[:3] == (
        "Left out: 5 rows of other regions (region: nuclei).",
        "12 of 12 rows match a label of 'cells' by column 'cell'.",
        "Without a row, on no map: 1 label (99).",
    )
    assert loaded.spaces == ["obsm['X_pca']", "X"]


def test_the_objects_of_another_image_are_found_in_the_same_way(adata):
    table, moved = find_table_of_layer({"adata": adata}, "cells"), labels()
    moved[moved == INSTANCES[0]] = 0
    source = AnnDataSource(table, "cells", labels()).with_label_image(moved)
    assert source.pixels is moved
    dataset = finish(source.read(ReadOptions())).dataset
    assert "11 of 12 rows match a label of 'cells' by column 'cell'." in dataset.notes
    request = JoinRequest("cells", labels())
    of_file = FileSource(Path("cells.csv"), request).with_label_image(moved)
    assert of_file.pixels is moved
    assert of_file.request.name == "cells"


def test_what_the_owner_of_a_table_does_later_changes_no_map(adata):
    own = adata[2:-3].copy()  # no row is left out
    dataset = read(find_table_of_layer({"adata": own}, "cells"), labels()).dataset
    X, genes = dataset.X.copy(), dataset.expression.make_dense_column(0).copy()
    own.X[:] = own.obsm["X_pca"][:] = 7
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.expression.make_dense_column(0), genes)


def test_the_table_is_about_the_element_that_the_layer_shows(adata):
    metadata = {"adata": adata, "name": "cells"}
    table = find_table_of_layer(metadata, "cells of the left half")
    assert table.adata.obs_names.tolist() == adata.obs_names[2:-3].tolist()
    with pytest.raises(DataError, match=r"'blobs' has no row .* names cells, nuclei"):
        find_table_of_layer(metadata | {"name": "blobs"}, "blobs")
    assert find_table_of_layer({"sdata": None, "adata": None}, "cells") is None
