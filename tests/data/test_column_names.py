"""What a column of metadata holds, by its name."""

import pytest

from napari_embedding_game.data.column_names import names_kinds, names_samples


@pytest.mark.parametrize(
    "column",
    ["stim", "Batch", "donor_id", "SampleID", "patients", "sample.1", "orig.ident"],
)
def test_columns_of_samples_are_known_by_their_names(column):
    assert names_samples(column)
    assert not names_kinds(column)


@pytest.mark.parametrize(
    "column",
    ["cell_type", "seurat_clusters", "stimulus_response_class", "leiden", "ontology"],
)
def test_columns_of_kinds_are_known_by_their_names(column):
    assert names_kinds(column)
    assert not names_samples(column)


def test_other_columns_may_be_either():
    assert not names_kinds("n_genes")
    assert not names_samples("n_genes")
