"""New cells on the map of a reference, without a window."""

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData
from scipy.spatial import cKDTree

import worlds
from napari_embedding_game import tl
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import build_result_anndata
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.loader import mix_dataset_batches
from napari_embedding_game.data.projection import normalise_expression
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.reference.reference_map import to_reference_map

pytest.importorskip("scanpy", reason="the recipe is scanpy's")
QUICK = {"max_iter": 30, "n_landmarks": 12, "random_state": 0}


def cells(n, kinds="ABC", seed=0):
    adata = worlds.cells(n, kinds, seed)
    adata.obs["kind"] = adata.obs["kind"].astype(str)
    adata.obs["depth"] = 1.0
    return adata


@pytest.fixture(scope="module")
def reference():
    from napari_embedding_game import EmbeddingGame

    dataset = worlds.prepared(cells(240), "ref", min_genes=5, n_comps=8)
    model = EmbeddingGame(**QUICK).fit(dataset.X)
    names = ("embedding", "landmarks", "labels", "pressure", "energy")
    known = {name: getattr(model, f"{name}_") for name in names}
    used = {**model.get_params(), "space": dataset.space}
    result = EmbeddingResult(Snapshot(iteration=0, n_iter=0, **known), used)
    adata = build_result_anndata(dataset, result)
    adata.obs["kind"] = adata.obs["kind"].astype("category")
    return adata


pytestmark = pytest.mark.filterwarnings("ignore:The points were still moving")


def check_kinds(new):
    """Check that cells have their own kind, but for D, which is unlike the others."""
    known = (new.obs["kind"] != "D").to_numpy()
    right = new.obs["kind_predicted"].astype(str) == new.obs["kind"]
    assert right[known].mean() > 0.95
    assert new.obs["unlike_reference"][~known].mean() > 0.8
    assert new.obs["unlike_reference"][known].mean() < 0.1


def test_few_cells_like_the_reference_are_not_unlike_it(reference):
    few = cells(40, seed=1)[:3].copy()
    tl.map_onto_reference(few, reference, "kind")
    assert few.uns["embedding_game_reference"]["unlike_by"] == "expression"
    assert not few.obs["unlike_reference"].any()


def test_labels_places_and_what_is_unlike(reference):
    new = cells(120, "ABCD", seed=1)
    new.obs["embedding_game_stretch"] = 1.0  # of a former map
    assert tl.map_onto_reference(new, reference, "kind") is None
    check_kinds(new)
    assert "embedding_game_stretch" not in new.obs
    known = (new.obs["kind"] != "D").to_numpy()
    assert new.obs["kind_predicted_confidence"].between(0, 1).all()
    assert new.obsm["X_embedding_game"].shape == (120, 2)
    assert new.obsm["X_pca"].shape == (120, 8)
    noted = new.uns["embedding_game_reference"]
    assert noted["unlike_by"] == "expression"
    assert noted["genes"] == 100
    # A cell of a kind lies among the reference's cells of that kind.
    centre = {
        kind: np.median(
            reference.obsm["X_embedding_game"][reference.obs["kind"] == kind], 0
        )
        for kind in "ABC"
    }
    apart = np.stack([
        np.linalg.norm(new.obsm["X_embedding_game"] - centre[k], axis=1) for k in "ABC"
    ])  # fmt: skip
    nearest = np.array([*"ABC"])[apart.argmin(axis=0)]
    assert (nearest == new.obs["kind"])[known].mean() > 0.9


def test_a_map_of_neighbours_made_by_scanpy(reference):
    import warnings

    import scanpy as sc

    adata = cells(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.normalize_total(adata, target_sum=1e4)
        sc.pp.log1p(adata)
        sc.pp.pca(adata, n_comps=8)
        sc.pp.neighbors(adata, n_neighbors=10, method="gauss")
    tl.embedding_game(adata, **QUICK)
    adata.obs["kind"] = adata.obs["kind"].astype("category")
    new = cells(90, "ABCD", seed=3)
    new.uns["embedding_game"] = "what is known of a map of its own"
    sc.pp.normalize_total(new, target_sum=3e3)
    sc.pp.log1p(new, base=2)
    tl.map_onto_reference(new, adata, "kind")
    check_kinds(new)
    assert "embedding_game" not in new.uns
    notes = new.uns["embedding_game_reference"]["notes"]
    assert "graph of neighbours" in notes
    assert "are taken as they are" not in notes  # it is known of which counts


def test_a_map_of_logarithms_of_some_genes():
    def logarithms(adata):
        every = normalise_expression(adata.X, 10_000, "These")
        few = adata[:, 30:].copy()
        few.X = every[:, 30:]
        return few

    old, new = logarithms(cells(240)), cells(120, "ABCD", seed=3)
    old.X, old.uns["log1p"] = old.X / np.log(10), {"base": 10}
    tl.embedding_game(old, use_rep="X", **QUICK)
    few = logarithms(new)
    for given in (few, new):
        tl.map_onto_reference(given, old, "kind")
        check_kinds(given)
        noted = given.uns["embedding_game_reference"]
        assert noted["unlike_by"] == "distance"
        assert ("are taken as they are" in noted["notes"]) == (given is few)
    np.testing.assert_allclose(
        few.obsm["X_embedding_game"], new.obsm["X_embedding_game"], atol=1e-3
    )


def test_genes_are_compared_by_identifier_or_by_symbol():
    old, new = cells(240), cells(60, seed=3)
    ids = [f"ENSG{i:011d}" for i in range(old.n_vars)]
    both, seen = pd.DataFrame({"feature_name": old.var_names}, ids), []
    old.var = both
    old.raw, old.X = old, normalise_expression(old.X, 10_000, "These")
    ways = {"raw": [both, both[[]]], "X": [both, both[[]], new.var]}
    for space, tables in ways.items():
        tl.embedding_game(old, use_rep=space, **QUICK)
        for var in tables:  # counts have to be brought, in raw
            given = AnnData(new.X, new.obs.copy(), var)
            given.raw = given
            tl.map_onto_reference(given, old, "kind")
            seen.append(given.obsm["X_embedding_game"])
    old.var = pd.DataFrame({"gene_ids": ids}, new.var_names)  # the other way round
    tl.embedding_game(old, use_rep="X", **QUICK)
    given = AnnData(new.X, new.obs.copy(), both[[]])
    tl.map_onto_reference(given, old, "kind")
    np.testing.assert_array_equal(given.obsm["X_embedding_game"], seen[2])
    for one, other in ((0, 1), (2, 3), (2, 4)):
        np.testing.assert_array_equal(seen[one], seen[other])


def test_a_space_that_new_cells_bring_along():
    rng = np.random.default_rng(0)
    old, new = cells(150), cells(40, seed=4)
    for adata in (old, new):
        kinds = pd.factorize(adata.obs["kind"], sort=True)[0]
        adata.obsm["X_scVI"] = rng.normal(size=(adata.n_obs, 4)) + 8 * kinds[:, None]
    # After 30 iterations kinds lie so near that a cell can come beside another.
    tl.embedding_game(old, use_rep="X_scVI", **QUICK | {"max_iter": 100})
    new.obsm["X_scVI"][:3] += 60
    tl.map_onto_reference(new, old, "kind")
    right = new.obs["kind_predicted"].astype(str) == new.obs["kind"]
    assert right[3:].mean() > 0.9  # a map of 30 iterations
    assert new.obs["unlike_reference"][:3].all()
    assert new.obs["unlike_reference"][3:].mean() < 0.2
    assert new.uns["embedding_game_reference"]["unlike_by"] == "distance"
    del new.obsm["X_scVI"]
    with pytest.raises(DataError, match=r"has to bring it along: obsm\['X_scVI'\]"):
        tl.map_onto_reference(new, old, "kind")


def test_columns_that_are_no_genes_are_taken_by_their_names():
    def measured(n):
        adata = AnnData(rng.normal(size=(n, 6)).astype(np.float32))
        adata.var_names = [*"abcdef"]
        adata.obs["kind"] = np.where(adata.X[:, 0] > 0, "A", "B")
        return adata

    rng = np.random.default_rng(0)
    old, new = measured(1_500), measured(400)
    tl.embedding_game(old, use_rep="X", **QUICK | {"n_neighbors": 4})
    turned = new[:, ::-1].copy()
    for one in (new, turned):
        tl.map_onto_reference(one, old, "kind", n_neighbors=30)
        # As many neighbours as cells of the reference are known to have are compared.
        assert one.obs["unlike_reference"].mean() < 0.025
        assert one.obs["reference_distance"].mean() < 1.25
    known = new.obsm["X_embedding_game"]
    np.testing.assert_array_equal(turned.obsm["X_embedding_game"], known)
    new.X = np.abs(new.X).round()
    for one in (new, turned[:, 1:].copy()):
        with pytest.raises(DataError, match="X with the same 6 columns"):
            tl.map_onto_reference(one, old, "kind")


@pytest.mark.parametrize(
    ("labels", "change", "sentence"),
    [
        ("tissue", {}, 'has no column "tissue" to predict'),
        ("depth", {}, 'Column "depth" of The reference holds numbers'),
        ("kind", {"unlike": 0}, "unlike must be between 0 and 1"),
        ("kind", {"n_neighbors": 0}, "n_neighbors must be at least 1"),
    ],
)
def test_what_is_refused(reference, labels, change, sentence):
    with pytest.raises((DataError, InputError), match=sentence):
        tl.map_onto_reference(cells(9), reference, labels, **change)


def test_other_genes_other_numbers_and_what_is_no_map_are_refused(reference):
    with pytest.raises(DataError, match="cells holds no map to place new cells on"):
        to_reference_map(cells(20), "cells")
    new = cells(9)
    other = new.copy()
    other.var_names = [f"ENSG{i}" for i in range(150)]
    with pytest.raises(DataError, match=r"have only 0 of the 100 genes .*: theirs are"):
        tl.map_onto_reference(other, reference, "kind")
    new.X = new.X.toarray() - 1
    with pytest.raises(DataError, match="neither raw counts nor their logarithms"):
        tl.map_onto_reference(new, reference, "kind")


def test_harmony_in_the_reference_is_told(reference):
    pytest.importorskip("harmonypy")
    import scanpy as sc

    adata = cells(240)
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    sc.pp.pca(adata, n_comps=8)
    adata.obs["day"] = pd.Categorical(["mon", "tue"] * 120)
    options = ReadOptions(space="X_pca")
    dataset = finish(mix_dataset_batches(from_anndata(adata, "ref", options), "day"))
    session = worlds.session_of(dataset, max_iter=30, n_landmarks=12)
    worlds.play(session)
    made = build_result_anndata(dataset, session.to_result())
    made.varm, made.var_names = adata.varm, adata.var_names
    made.obsm["X_pca"] = adata.obsm["X_pca"]
    new = cells(60, "ABCD", seed=1)
    tl.map_onto_reference(new, made, "kind")
    check_kinds(new)
    notes = new.uns["embedding_game_reference"]["notes"]
    assert 'The batches of "day" were mixed by Harmony' in notes
    mixed = reference.copy()
    mixed.uns["embedding_game"]["provenance"]["recipe"]["batch_key"] = "donor"
    new = tl.map_onto_reference(cells(9), mixed, "kind", copy=True)
    notes = new.uns["embedding_game_reference"]["notes"]
    assert 'The batches of "donor" were mixed by Harmony' in notes


def test_new_cells_join_the_map_of_a_saved_file_by_their_genes(reference):
    old, new = reference.copy(), cells(60, seed=1)
    new.obs_names = [f"new{i}" for i in range(60)]
    new = new[:, ::-1].copy()
    clusters = old.obs["embedding_game_cluster"].tolist()
    tl.add_cells(old, new)
    assert new.obsm["X_pca"].shape == (60, 8)
    assert old.obs["embedding_game_cluster"].tolist() == clusters
    assert "100 of 100" in new.uns["embedding_game"]["added"]["notes"]
    nearest = cKDTree(old.obsm["X_embedding_game"]).query(new.obsm["X_embedding_game"])
    kinds = old.obs["kind"].to_numpy()[nearest[1]]
    assert (kinds == new.obs["kind"].to_numpy()).mean() > 0.95
