import pytest

from napari_embedding_game.data import samples


def test_pbmc():
    pytest.importorskip("scanpy")
    dataset = samples.pbmc()
    assert dataset.X.shape == (700, 50)
    assert dataset.space == "obsm['X_pca']"
    assert dataset.profile.shape == (700, 765)
    assert "CD8B" in dataset.profile_names
    assert dataset.profile.min() == 0  # logarithms of .raw, not scaled values
    assert dataset.notes == ("Genes: 765 from .raw.",)
    assert {"bulk_labels", "louvain"} <= set(dataset.obs)
    assert dataset.source is None
