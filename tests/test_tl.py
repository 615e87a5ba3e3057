"""The function in scanpy's idiom: what it reads, what it writes, what it refuses."""

import json
import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from anndata import AnnData
from scipy import sparse

import worlds
from napari_embedding_game import EmbeddingGame, tl
from napari_embedding_game.core.errors import EmbeddingWarning, InputError
from napari_embedding_game.core.inspect.map_comparison import measure_kept_neighbors
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write_result
from worlds import read

KEY = "embedding_game"
QUICK = {"max_iter": 30, "n_landmarks": 20}
PAIRS = {"metric": "precomputed"}


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    kinds = np.arange(150) % 3
    X = rng.normal(size=(150, 8)) + 6 * rng.normal(size=(3, 8))[kinds]
    adata = AnnData(
        rng.poisson(2, (150, 12)).astype(np.float32),
        obs=pd.DataFrame({"kind": [*"abc"] * 50}, index=[f"c{i}" for i in range(150)]),
    )
    adata.obsm["X_pca"] = X  # float64, as it is given
    return adata


def with_neighbors(adata, **options):
    sc = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Not by umap-learn, which takes seconds to load; the distances are the same.
        sc.pp.neighbors(adata, method="gauss", **options)
    return adata


def same(adata, model, key=KEY):
    """Whether results in an AnnData are the bits of a fit."""
    obsm = f"X_{KEY}" if key == KEY else key
    np.testing.assert_array_equal(adata.obsm[obsm], model.embedding_)
    np.testing.assert_array_equal(adata.obs[f"{key}_pressure"], model.pressure_)
    np.testing.assert_array_equal(adata.obs[f"{key}_stretch"], model.stretch_)
    assert adata.obs[f"{key}_cluster"].tolist() == list(map(str, model.labels_))
    np.testing.assert_array_equal(adata.obs[f"{key}_isolation"], model.isolation_)
    return True


def test_in_a_space_it_is_the_estimator(cells):
    assert tl.embedding_game(cells, use_rep="X_pca", **QUICK) is None
    model = EmbeddingGame(random_state=0, **QUICK).fit(cells.obsm["X_pca"])
    assert same(cells, model)
    noted = cells.uns[KEY]["parameters"]
    assert (noted["use_rep"], noted["random_state"]) == ("obsm['X_pca']", 0)
    np.testing.assert_array_equal(cells.uns[KEY]["landmarks"], model.landmarks_)


def test_neighbours_of_scanpy_are_used_again_where_no_space_is_named(cells):
    with_neighbors(cells, n_neighbors=12)
    tl.embedding_game(cells, **QUICK)
    model = EmbeddingGame(
        n_neighbors=12, metric="precomputed", random_state=0, **QUICK
    ).fit(cells.obsp["distances"])
    assert same(cells, model)
    assert cells.uns[KEY]["parameters"]["neighbors_key"] == "neighbors"


def test_neighbours_under_another_key(cells):
    with_neighbors(cells, n_neighbors=8)
    with_neighbors(cells, n_neighbors=20, key_added="wide")
    cells.uns["wide"]["params"]["n_neighbors"] = np.array([20])  # as in older files
    tl.embedding_game(cells, neighbors_key="wide", key_added="game_wide", **QUICK)
    model = EmbeddingGame(
        n_neighbors=20, metric="precomputed", random_state=0, **QUICK
    ).fit(cells.obsp["wide_distances"])
    assert same(cells, model, "game_wide")
    assert f"X_{KEY}" not in cells.obsm
    assert KEY not in cells.uns


def test_without_neighbours_the_default_space_is_that_of_the_readers(cells):
    cells.obsm["X_umap"] = np.zeros((150, 2))
    tl.embedding_game(cells, random_state=3, **QUICK)
    assert same(cells, EmbeddingGame(random_state=3, **QUICK).fit(cells.obsm["X_pca"]))


def test_a_copy_leaves_the_original_as_it_was(cells, tmp_path):
    made = tl.embedding_game(cells, copy=True, n_clusters=3, **QUICK)
    assert f"X_{KEY}" in made.obsm
    assert list(cells.obsm) == ["X_pca"]
    assert list(cells.obs) == ["kind"]
    assert made.obs[f"{KEY}_cluster"].cat.categories.size == 3
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    again = tl.embedding_game(backed, copy=True, n_clusters=3, **QUICK)
    assert again.uns[KEY]["map_hash"] == made.uns[KEY]["map_hash"]
    assert list(backed.obs) == ["kind"]


def test_results_of_a_former_map_do_not_stay(cells):
    tl.embedding_game(cells, **QUICK)
    cells.uns[f"{KEY}_cluster_colors"] = ["#ff0000"]
    cells.obs[f"{KEY}_stability"] = 1.0
    tl.embedding_game(cells, method="pca")
    assert f"{KEY}_pressure" not in cells.obs  # not defined for PCA
    assert f"{KEY}_stability" not in cells.obs
    assert f"{KEY}_cluster_colors" not in cells.uns


def test_scanpy_draws_it_and_a_file_holds_it(cells, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")  # another test may have taken the display away
    sc = pytest.importorskip("scanpy")
    tl.embedding_game(cells, n_clusters=3, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = sc.pl.embedding(
            cells, f"X_{KEY}", color=f"{KEY}_cluster", show=False, return_fig=False
        )
        drawn = np.asarray(axes.collections[0].get_offsets())
    assert set(map(tuple, drawn)) == {
        tuple(place) for place in cells.obsm[f"X_{KEY}"].astype(drawn.dtype)
    }
    cells.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert back.uns[KEY]["parameters"]["n_clusters"] == 3
    np.testing.assert_array_equal(back.obsm[f"X_{KEY}"], cells.obsm[f"X_{KEY}"])


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"use_rep": "X_pca", "neighbors_key": "neighbors"}, InputError, "either"),
        ({"neighbors_key": "none"}, InputError, 'key_added="none"'),
        ({"neighbors_key": "neighbors", "metric": "cosine"}, InputError, "metric"),
        ({"method": "pca"}, InputError, r"uns\[\"neighbors\"\]: give use_rep"),
        ({"n_neighbors": 90}, InputError, r"again with sc\.pp\.neighbors"),
        ({"use_rep": "X_scvi"}, DataError, 'no space "X_scvi"'),
        ({"use_rep": "distances"}, InputError, "neighbors_key"),
        ({"use_rep": "X_pca", "method": "magic"}, InputError, "magic"),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(cells, options, error, told):
    with_neighbors(cells)
    with pytest.raises(error, match=told):
        tl.embedding_game(cells, **options)
    assert list(cells.obsm) == ["X_pca"]


def test_errors_speak_of_the_function_and_of_the_cells(cells):
    with pytest.raises(TypeError, match=r"game\(\) takes no .* 'mesh': choose"):
        tl.embedding_game(cells, mesh=True)
    with pytest.raises(TypeError, match=r"give method_params=\{'momentum': \.\.\.\}"):
        tl.embedding_game(cells, momentum=0.5)
    cells.obsm["X_pca"][[3, 9], 2] = np.nan
    with pytest.raises(InputError, match=r"X_pca.* in 2 of 150 cells, first in \"c3\""):
        tl.embedding_game(cells, use_rep="X_pca")
    assert KEY not in cells.uns


def test_steering_is_passed_on_and_noted(cells):
    steering = [(np.int64(10), {"repulsion": np.float32(600)})]
    tl.embedding_game(cells, use_rep="X_pca", steering=steering, stop_at=25, **QUICK)
    model = EmbeddingGame(random_state=0, **QUICK)
    model.fit(cells.obsm["X_pca"], steering=steering, stop_at=25)
    assert same(cells, model)
    noted = cells.uns[KEY]["parameters"]
    assert json.loads(noted["steering"]) == [[10, {"repulsion": 600.0}]]
    assert noted["stop_at"] == 25


@pytest.fixture
def session_file(cells, tmp_path):
    """A run on the cells of which a cluster was dragged, and pinned there."""
    cells.write_h5ad(tmp_path / "cells.h5ad")
    desk = worlds.Desk(read(tmp_path / "cells.h5ad"), **QUICK).play()
    desk.session.stop()
    desk.play(desk.session.move_cluster(3, np.array([4.0, 0.0]), is_pinned=True))
    return desk.save(tmp_path / "work.zip"), desk.session.snapshot


def test_a_run_that_a_hand_steered_is_replayed(cells, session_file):
    path, snapshot = session_file
    cells.obsm["X_pca"] = cells.obsm["X_pca"].astype("f4")
    copied = tl.replay(cells, path, use_rep="X_pca", n_clusters=4, copy=True)
    np.testing.assert_array_equal(copied.obsm["X_embedding_game"], snapshot.embedding)
    assert copied.obs[f"{KEY}_cluster"].nunique() == 4
    assert list(cells.obsm) == ["X_pca"]
    tl.replay(cells, path, use_rep="X_pca", key_added="mine")
    assert cells.obs["mine_cluster"].astype(int).tolist() == snapshot.labels.tolist()
    assert cells.uns["mine"]["parameters"]["n_landmarks"] == 20


def test_a_run_of_other_cells_is_not_replayed(cells, session_file):
    with pytest.raises(DataError, match="of 150 cells, and these are 140"):
        tl.replay(cells[:140].copy(), session_file[0], use_rep="X_pca")
    with pytest.raises(InputError, match="either"):
        tl.replay(cells, session_file[0], use_rep="X_pca", neighbors_key="neighbors")
    with pytest.raises(DataError, match="in another order"):
        tl.replay(cells[::-1].copy(), session_file[0], use_rep="X_pca")
    named = cells.copy()
    cells.obs_names = list(map(str, range(1, 151)))  # a count of its own
    tl.replay(cells, session_file[0], use_rep="X_pca")
    cells.obs_names = [*named.obs_names[:100], *(f"new {i}" for i in range(50))]
    with pytest.raises(DataError, match="other cells, some of which are here"):
        tl.replay(cells, session_file[0], use_rep="X_pca")
    cells.obs_names = [f"new {i}" for i in range(150)]
    with pytest.raises(DataError, match=r'names, such as "c0" where .* "new 0": give'):
        tl.replay(cells, session_file[0], use_rep="X_pca")
    cells.obs_names = range(cells.n_obs)  # as the sentence says
    tl.replay(cells, session_file[0], use_rep="X_pca")


def test_a_run_of_cells_without_names_is_replayed_on_named_ones(cells, tmp_path):
    named = cells.obs_names
    cells.obs_names = list(map(str, range(150)))
    cells.write_h5ad(tmp_path / "cells.h5ad")
    desk = worlds.Desk(read(tmp_path / "cells.h5ad"), **QUICK).play()
    desk.session.stop()
    path = desk.save(tmp_path / "work.zip")
    cells.obs_names = named
    tl.replay(cells, path, use_rep="X_pca")
    assert cells.obsm["X_embedding_game"].shape == (150, 2)


def test_stability_is_that_of_the_next_seeds_and_leaves_the_map(cells):
    tl.embedding_game(cells, use_rep="X_pca", random_state=3, key_added="mine", **QUICK)
    before = cells.obsm["mine"].copy()
    copied = tl.stability(cells, n_seeds=2, key_added="mine", copy=True)
    np.testing.assert_array_equal(copied.obsm["mine"], before)
    kept = []
    for seed in (4, 5):
        other = EmbeddingGame(random_state=seed, **QUICK).fit(cells.obsm["X_pca"])
        kept.append(measure_kept_neighbors(before, other.embedding_))
    np.testing.assert_allclose(copied.obs["mine_stability"], np.mean(kept, axis=0))
    assert "each of 2 maps from other seeds" in copied.uns["mine"]["stability"]
    assert "mine_stability" not in cells.obs


def test_stability_works_on_a_file_and_on_a_graph(cells, tmp_path):
    with_neighbors(cells, use_rep="X_pca", n_neighbors=10)
    tl.embedding_game(cells, **QUICK)
    cells.write_h5ad(tmp_path / "map.h5ad")
    read = anndata.read_h5ad(tmp_path / "map.h5ad")
    for one in (cells, read):
        tl.stability(one, n_seeds=1)
    assert "neighbours on a map from another seed." in cells.uns[KEY]["stability"]
    np.testing.assert_array_equal(
        read.obs[f"{KEY}_stability"], cells.obs[f"{KEY}_stability"]
    )


@pytest.mark.parametrize("space", ["X_pca", "distances"])
def test_stability_of_a_map_that_the_window_saved(cells, tmp_path, space):
    """A cell that was left out has none, and the others do not count it."""
    with_neighbors(cells, use_rep="X_pca", n_neighbors=15)
    X = cells.obsm["X_pca"] = cells.obsm["X_pca"].astype("f4")
    X[3] = np.nan
    cells.write_h5ad(tmp_path / "cells.h5ad")
    session = worlds.session_of(read(tmp_path / "cells.h5ad", space=space), **QUICK)
    worlds.play(session)
    write_result(session.dataset, session.to_result(), tmp_path / "map.h5ad")
    adata = anndata.read_h5ad(tmp_path / "map.h5ad")
    found = tl.stability(adata, n_seeds=1, copy=True).obs[f"{KEY}_stability"]
    rows = session.dataset.kept
    numbers, how = (X[rows], {}) if space == "X_pca" else (cells.obsp[space], PAIRS)
    other = EmbeddingGame(random_state=1, **QUICK, **how).fit_transform(numbers)
    kept = measure_kept_neighbors(session.snapshot.embedding, other)
    np.testing.assert_allclose(found[rows], kept)
    assert found[~rows].isna().all()
    del adata.obsp["distances"], adata.obsm["X_pca"]
    with pytest.raises(DataError, match='has no space "ob'):
        tl.stability(adata)


def test_stability_needs_a_map(cells):
    with pytest.raises(InputError, match=r"no map of tl.embedding_game in obsm"):
        tl.stability(cells)
    with pytest.raises(InputError, match="n_seeds"):
        tl.stability(cells, n_seeds=0)
    tl.embedding_game(cells, init=cells.obsm["X_pca"][:, :2], **QUICK)
    for _ in range(2):  # also of a file that does not tell it
        with pytest.raises(InputError, match="began at places that were given"):
            tl.stability(cells)
        cells.uns[KEY]["parameters"].pop("init", None)


def test_groups_are_compared_as_scanpy_compares_logarithms(cells):
    sc = pytest.importorskip("scanpy")
    cells.X, cells.uns["log1p"] = np.log1p(cells.X) / np.log(2), {"base": 2}
    inside = cells.obs["kind"] == "a"
    for corrects in (False, True):
        how = {"tie_correct": corrects}
        table = tl.compare(cells, inside, log1p=True, n_top=None, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            way = {"groups": ["a"], "method": "wilcoxon", **how}
            sc.tl.rank_genes_groups(cells, "kind", **way)
            ranked = sc.get.rank_genes_groups_df(cells, "a").set_index("names")
        table = table.set_index("names").loc[ranked.index]
        for figure in ("scores", "pvals_adj", "logfoldchanges"):
            np.testing.assert_allclose(table[figure], ranked[figure], rtol=1e-4)
    two = tl.compare(cells, inside, cells.obs["kind"] == "b", method="t-test")
    assert len(two) == 12
    with pytest.raises(InputError, match="both groups"):
        tl.compare(cells, inside, inside)
    with pytest.raises(InputError, match="n_top"):
        tl.compare(cells, inside, n_top=-1)


def test_a_group_goes_by_names_and_is_true_or_false(cells, tmp_path):
    inside = cells.obs["kind"] == "a"
    wanted = tl.compare(cells, inside)
    for same in (inside[::-1], inside.astype("boolean"), inside.to_numpy().tolist()):
        pd.testing.assert_frame_equal(tl.compare(cells, same), wanted)
    in_a_file = AnnData(sparse.csr_matrix(cells.X), cells.obs, cells.var)
    in_a_file.write_h5ad(tmp_path / "cells.h5ad")
    in_a_file = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    pd.testing.assert_frame_equal(tl.compare(in_a_file, inside), wanted)
    AnnData(cells.X, cells.obs, cells.var).write_h5ad(tmp_path / "dense.h5ad")
    dense = anndata.read_h5ad(tmp_path / "dense.h5ad", backed="r")
    assert tl.are_two(dense, inside, ~inside) == tl.are_two(in_a_file, inside, ~inside)
    told, other = str(tl.are_two(cells, inside, ~inside)), ~inside[::-1]
    cells.obsm["table"] = pd.DataFrame(cells.obsm["X_pca"], cells.obs_names)
    assert str(tl.are_two(cells, inside[::-1], other, use_rep="table")) == told
    gap = inside.astype("boolean")
    gap.iloc[0] = None
    for wrong in (inside.astype(float), cells.obs["kind"], gap, inside[:-1]):
        with pytest.raises(InputError, match="true or false for each of the 150"):
            tl.compare(cells, wrong)
    cells.obs_names = ["same"] * 2 + [*cells.obs_names[2:]]
    inside.index = cells.obs_names
    with pytest.raises(InputError, match="true or false"):  # whose is whose?
        tl.compare(cells, inside[::-1])
    cells.X = None
    with pytest.raises(InputError, match="no X"):
        tl.compare(cells, inside)


def test_a_part_of_the_cells_with_the_graph_of_all_is_told(cells):
    with_neighbors(cells, use_rep="X_pca", n_neighbors=9)
    part = cells[np.arange(150) % 5 == 0].copy()
    with pytest.raises(InputError, match="neighbours"):
        tl.embedding_game(part, **QUICK)
    tl.embedding_game(part, use_rep="X_pca", **QUICK)
    with pytest.raises(InputError, match=r"this is an AnnData: give adata\.obsm"):
        EmbeddingGame().fit(cells)


def test_numbers_of_clusters_and_two_groups_are_firm_or_not(cells):
    tl.embedding_game(cells, n_clusters=4, use_rep="X_pca", **QUICK)
    table = tl.firmness(cells)
    assert table.index[0] == 2
    assert set(table) == {"parted", "firm", "gap", "depth", "p"}
    n_kinds = cells.obs["kind"].nunique()
    assert table.attrs["suggested"] == (n_kinds,)
    assert table["firm"].sum() == n_kinds - 1
    a, b = (cells.obs["kind"] == kind for kind in "ab")
    assert str(tl.are_two(cells, a, b)).startswith("A gap lies between them: ")
    with pytest.raises(InputError, match="both groups"):
        tl.are_two(cells, a, a)
    with pytest.raises(InputError, match="each of the 150 cells"):
        tl.are_two(cells, a[:100], ~a[:100])
    rng = np.random.default_rng(0)  # the same directions at any length, in one group
    cells.obsm["long"] = cells.obsm["X_pca"] * rng.lognormal(size=(150, 1))
    cells.obsm["X_pca"] = rng.normal(size=(150, 8))
    tl.embedding_game(cells, use_rep="long", metric="cosine", **QUICK)
    noted = cells.uns[KEY]["parameters"]
    for name in ("use_rep", "space"):  # as the window notes it
        noted[name] = noted.pop("use_rep")
        assert tl.firmness(cells).attrs["suggested"] == (n_kinds,)
        assert tl.are_two(cells, a, b).is_firm
    whole = cells.obsm["X_embedding_game"].copy()
    cells.obsm["X_embedding_game"][:3] = np.nan  # left out, as the window writes it
    assert tl.firmness(cells).attrs["suggested"] == (n_kinds,)
    cells.obsm["X_embedding_game"] = whole
    noted["space"] = "obsp['distances']"
    assert tl.firmness(cells).attrs["suggested"] == ()
    del cells.obsm["X_embedding_game"]
    with pytest.raises(InputError, match=r"no map of tl.embedding_game in obsm"):
        tl.firmness(cells)


# Shares in samples


def test_shares_are_compared_by_samples_in_groups_and_on_the_map(cells):
    rng = np.random.default_rng(0)
    donors = rng.integers(6, size=150)
    is_first = (cells.obs["kind"] == "a").to_numpy()
    # Of the first kind most are of treated donors: 0, 2 and 4.
    donors[is_first] = [*np.repeat([0, 2, 4], 14), 1, 1, 3, 3, 3, 5, 5, 5]
    cells.obs["donor"] = [f"d{one}" for one in donors]
    cells.obs["arm"] = np.where(donors % 2, "placebo", "drug")
    table = tl.shares(cells, "kind", "donor", "arm")
    scores = table.set_index("kind")["score"]
    assert scores["a"] > 4 > 0 > scores[["b", "c"]].max()
    assert (np.diff(table["pval"]) >= 0).all()
    assert table.attrs["design"] == "Not paired: 3 against 3 samples."
    other = tl.shares(cells, "kind", "donor", "arm", levels=("placebo", "drug"))
    np.testing.assert_allclose(table["score"], -other["score"])
    tl.embedding_game(cells, **QUICK)
    found = tl.shares_on_map(cells, "donor", "arm", copy=True)
    changes = found.obs[f"{KEY}_change"]
    assert (changes[is_first] > 0).mean() > 0.8
    assert not (changes[~is_first] > 0).any()
    assert "of 20 landmarks have changed" in found.uns[KEY]["change"]
    with pytest.raises(InputError, match="two of the levels of obs"):
        tl.shares(cells, "kind", "donor", "arm", levels=("drug", "nothing"))
    with pytest.raises(InputError, match="no column 'sex'"):
        tl.shares(cells, "kind", "donor", "sex")
    few = cells[cells.obs["donor"].isin(["d0", "d1", "d3"])]
    for compare in (tl.shares, lambda data, _, *given: tl.shares_on_map(data, *given)):
        with pytest.raises(InputError, match="drug has 1 sample"):
            compare(few, "kind", "donor", "arm")


def test_new_cells_join_a_map_whose_cells_keep_their_names(cells):
    cells.obs_names = [f"c{i}" for i in range(150)]
    old, new, last = cells[:110].copy(), cells[110:130].copy(), cells[130:].copy()
    tl.embedding_game(old, use_rep="X_pca", n_clusters=3, **QUICK)
    cluster = old.obs[f"{KEY}_cluster"]
    name_of = old.obs.groupby(cluster, observed=True)["kind"].agg(lambda x: x.mode()[0])
    named = cluster.map(name_of).astype("category")
    old.obs[f"{KEY}_cluster"] = named
    old.obs[f"{KEY}_stability"] = 1.0
    old.uns[KEY]["session"] = np.zeros(3, np.uint8)  # which shows the former map
    old.obsm[f"X_{KEY}"][7] = np.nan  # left out of the map
    before, hash_before = old.obsm[f"X_{KEY}"].copy(), old.uns[KEY]["map_hash"]
    made = tl.add_cells(old, new, copy=True)
    np.testing.assert_array_equal(old.obsm[f"X_{KEY}"], before)
    assert f"X_{KEY}" not in new.obsm
    assert tl.add_cells(old, new) is None
    for one, copied in zip((old, new), made, strict=True):
        np.testing.assert_array_equal(one.obsm[f"X_{KEY}"], copied.obsm[f"X_{KEY}"])
        assert f"{KEY}_stability" not in one.obs
        assert "session" not in one.uns[KEY]
        assert one.uns[KEY]["map_hash"] != hash_before
        assert one.uns[KEY]["added"]["cells"] == 20
    after = old.obsm[f"X_{KEY}"]
    assert np.isnan(after[7]).all()
    moved = np.linalg.norm(np.delete(after - before, 7, axis=0), axis=1)
    assert 0 < np.median(moved) < 0.02 * np.nanmax(np.ptp(before[8:], axis=0))
    assert old.obs[f"{KEY}_cluster"].tolist() == named.tolist()
    assert (new.obs[f"{KEY}_cluster"].astype(str) == new.obs["kind"]).mean() > 0.9
    assert np.isfinite(new.obs[f"{KEY}_stretch"]).all()
    joined = anndata.concat([old, new], merge="first", uns_merge="first")
    tl.add_cells(joined, last)
    assert last.uns[KEY]["added"]["cells"] == 40
    assert last.obsm[f"X_{KEY}"].shape == (20, 2)


def test_cells_join_as_rows_do_by_the_estimator(cells):
    cells.obsm["X_pca"] = cells.obsm["X_pca"].astype(np.float32)
    old, new = cells[:120].copy(), cells[120:].copy()
    tl.embedding_game(old, use_rep="X_pca", **QUICK)
    tl.add_cells(old, new)
    model = EmbeddingGame(random_state=0, **QUICK).fit(old.obsm["X_pca"])
    model.partial_fit(new.obsm["X_pca"])
    found = np.concatenate([old.obsm[f"X_{KEY}"], new.obsm[f"X_{KEY}"]])
    np.testing.assert_array_equal(found, model.embedding_)
    assert new.uns[KEY]["map_hash"] == model.map_hash_


def test_cells_that_cannot_join_are_told_and_change_nothing(cells):
    old, new = cells[:120].copy(), cells[120:].copy()
    with pytest.raises(InputError, match="has no map"):
        tl.add_cells(old, new)
    tl.embedding_game(old, use_rep="X_pca", **QUICK)
    with pytest.raises(InputError, match=r'120 new cells have the name .* "c0"'):
        tl.add_cells(old, old.copy())
    del new.obsm["X_pca"]
    with pytest.raises(DataError, match="bring it along"):
        tl.add_cells(old, new)
    assert list(new.obsm) == []
    new.obsm["X_pca"] = cells.obsm["X_pca"][120:] + 50
    with pytest.warns(EmbeddingWarning, match="fit all rows again"):
        tl.add_cells(old, new)
    old.uns[KEY]["parameters"]["method"] = "ee_homotopy"
    other = new.copy()
    other.obs_names = [f"other{i}" for i in range(30)]
    with pytest.raises(InputError, match="played as a game"):
        tl.add_cells(old, other)
