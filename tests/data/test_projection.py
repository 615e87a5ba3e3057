"""The way from genes to components: kept, stored, found again, taken by new cells."""

import warnings
from importlib.metadata import version

import anndata
import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.pca_projection import reconstruct_pca_projection
from napari_embedding_game.data.projection import match_genes, normalise_expression
from worlds import layout, prepared, read


def projected(way, adata):
    lognorm = normalise_expression(adata.X, way.target_sum, "These")
    return way.project(
        way.scale_genes(lognorm, match_genes(way.genes, adata.var_names))
    )


@pytest.fixture
def mapped(counts_file):
    pytest.importorskip("scanpy", reason="the recipe is scanpy's")
    return prepared(read(counts_file))


def test_the_recipe_keeps_its_way_which_gives_the_components_again(mapped, counts):
    got = projected(mapped.projection, counts[mapped.kept])
    np.testing.assert_allclose(got, mapped.X, atol=0.02)
    # In any order of the genes, and of logarithms as of counts.
    other = counts[mapped.kept].copy()[:, ::-1].copy()
    other.X = normalise_expression(other.X, 5_000, "These")
    np.testing.assert_allclose(projected(mapped.projection, other), mapped.X, atol=0.02)


def test_components_are_written_and_offered_first(mapped, counts, tmp_path):
    write_result(mapped, layout(59, 4), tmp_path / "map.h5ad")
    written = anndata.read_h5ad(tmp_path / "map.h5ad")
    assert np.isnan(written.obsm["X_pca"][7]).all()
    assert written.X.max() > 1  # the input's own counts
    recipe = written.uns["embedding_game"]["provenance"]["recipe"]
    assert (recipe["n_top_genes"], recipe["max_value"]) == (100, 10.0)
    assert (recipe["cells_left_out"], recipe["space"]) == (1, "X")
    assert recipe["scanpy"] == version("scanpy")
    for again in (read(tmp_path / "map.h5ad"), from_anndata(written, "map")):
        np.testing.assert_array_equal(again.X, mapped.X)
        assert not again.kept[7]
        told = "1 of 60 rows left out, of which obsm['X_pca'] has no values."
        assert told in again.notes
        np.testing.assert_allclose(
            projected(again.projection, counts[mapped.kept]), mapped.X, atol=0.02
        )


def test_a_way_that_does_not_fit_together_is_refused(mapped, tmp_path):
    write_result(mapped, layout(59, 4), tmp_path / "map.h5ad")
    written = anndata.read_h5ad(tmp_path / "map.h5ad")
    way = written.uns["embedding_game"]["projection"]
    for part, other in (("mean", way["mean"][1:]), ("genes", ["g"]), ("std", "lost")):
        written.uns["embedding_game"]["projection"] = {**way, part: other}
        with pytest.raises(DataError, match="damaged: fit the map again") as error:
            from_anndata(written, "map")
        assert str(error.value).startswith("What 'map' tells of its principal")


def by_scanpy(counts, scales):
    sc = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = counts[counts.obs_names != "cell7"].copy()
        sc.pp.normalize_total(adata, target_sum=5_000)
        sc.pp.log1p(adata, base=2)
        sc.pp.highly_variable_genes(adata, n_top_genes=100)
        if scales:
            adata.raw = adata
            sc.pp.scale(adata, max_value=10)
        sc.pp.pca(adata, n_comps=10)
    return adata


@pytest.mark.parametrize("scales", [False, True])
def test_the_way_of_scanpys_components_is_found(counts, scales):
    adata = by_scanpy(counts, scales)
    way = reconstruct_pca_projection(adata, "ref")
    assert way.target_sum == pytest.approx(5_000, rel=1e-3)
    got = projected(way, counts[adata.obs_names])
    np.testing.assert_allclose(got, adata.obsm["X_pca"], atol=1e-2)
    # Genes that are missing are at their mean; none of it is left unexplained.
    fewer = counts[adata.obs_names, :150]
    lognorm = normalise_expression(counts[adata.obs_names].X, way.target_sum, "These")
    match = match_genes(way.genes, fewer.var_names, min_share=0)
    scaled = way.scale_genes(lognorm, match)
    components = way.project(scaled)
    np.testing.assert_allclose(components.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(
        way.compute_residual(scaled, components).mean(0), 0, atol=0.05
    )


def test_counts_that_were_not_normalised_before_their_logarithms_stay_so(counts):
    sc = pytest.importorskip("scanpy")
    old, new = counts[::2].copy(), counts[1::2].copy()
    old.X = old.X.log1p()
    sc.pp.pca(old, n_comps=10)
    way = reconstruct_pca_projection(old, "ref")
    assert way.target_sum == 0
    expected = (new.X.log1p() - old.X.mean(axis=0)) @ old.varm["PCs"]
    np.testing.assert_allclose(projected(way, new), expected, atol=1e-3)
    new.X = new.X.log1p()
    np.testing.assert_allclose(projected(way, new), expected, atol=1e-3)


def test_logarithms_of_a_choice_of_genes_stay_as_they_are(counts):
    logarithms = normalise_expression(counts.X, 10_000, "These")
    few = logarithms[:, 20:60]
    assert (normalise_expression(few, 5_000, "These") != few).nnz == 0
    # All genes say what they were normalised to, and so do logarithms of counts.
    for values in (normalise_expression(counts.X, 700, "These"), counts.X.log1p()):
        again = normalise_expression(values, 10_000, "These")
        np.testing.assert_allclose(again.data, logarithms.data, rtol=1e-4)
