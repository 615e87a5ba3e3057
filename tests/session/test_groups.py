"""Groups that are compared: of the selection, and what stands against it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.core.inspect.markers import markers
from napari_embedding_game.session.groups import REST, Against, GroupChoice
from napari_embedding_game.session.marker_table import write_markers
from napari_embedding_game.session.session import Session


@pytest.fixture
def session(engine, dataset):
    """Four clusters of ten cells, half of each stimulated."""
    rng = np.random.default_rng(0)
    obs = dataset.obs.assign(
        stim=pd.Categorical(["CTRL", "STIM"] * 20),
        donor=pd.Categorical(list("abcd") * 10),
        barcode=[f"b{i}" for i in range(40)],
        depth=rng.random(40),
    )
    session = Session(engine)
    session.load(replace(dataset, obs=obs))
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            break
    return session


@pytest.fixture
def choice(session):
    return GroupChoice(session)


def test_conditions_inside_the_selection(session, choice):
    session.selection.select_points(np.arange(20))
    stim = Against("levels", column="stim", levels=("STIM", "CTRL"))
    labels = {against: label for label, against in choice.offered()}
    assert labels[stim] == "stim: STIM against CTRL"
    assert labels[replace(stim, levels=("CTRL", "STIM"))] == "stim: CTRL against STIM"
    donor = Against("levels", column="donor", levels=("a", ""))
    assert labels[donor] == "donor: one level against another"
    assert [(one.name, one.n_points) for one in choice.levels("donor")] == [
        (name, 5) for name in "abcd"
    ]
    donor = replace(donor, levels=("b", ""))
    assert not any(against.column in ("barcode", "depth") for against in labels)
    groups = choice.groups(stim)
    np.testing.assert_array_equal(np.flatnonzero(groups.inside), np.arange(1, 20, 2))
    np.testing.assert_array_equal(np.flatnonzero(groups.outside), np.arange(0, 20, 2))
    groups = choice.groups(donor)
    np.testing.assert_array_equal(np.flatnonzero(groups.inside), np.arange(1, 20, 4))
    assert groups.outside.sum() == 15
    groups = choice.groups(replace(donor, levels=("b", "d")))
    np.testing.assert_array_equal(np.flatnonzero(groups.inside), np.arange(1, 20, 4))
    np.testing.assert_array_equal(np.flatnonzero(groups.outside), np.arange(3, 20, 4))


def test_clusters_and_the_rest(session, choice):
    one, other = session.clusters.clusters[:2]
    session.selection.select(one.id)
    offered = dict(choice.offered())
    assert offered["against all the rest"] == REST
    assert f"against cluster {one.name}" not in offered
    groups = choice.groups(offered[f"against cluster {other.name}"])
    np.testing.assert_array_equal(groups.inside, session.clusters.labels == one.id)
    np.testing.assert_array_equal(groups.outside, session.clusters.labels == other.id)
    assert choice.groups(REST).outside is None


def test_the_saved_table_is_that_of_scanpy(session, tmp_path):
    rng = np.random.default_rng(0)
    counts = rng.poisson(2.0, (40, 12)).astype(np.float32)
    counts[::2, 3] += 6
    inside = np.arange(40) % 2 == 0
    names = [f"g{i}" for i in range(12)]
    found = markers(np.log1p(counts), inside, names=names, n_top=None)
    write_markers(found, tmp_path / "table.csv")
    table = pd.read_csv(tmp_path / "table.csv")
    import anndata
    import scanpy as sc

    group = pd.Categorical(np.where(inside, "a", "b"))
    obs = pd.DataFrame({"group": group}, index=[f"c{i}" for i in range(40)])
    adata = anndata.AnnData(np.log1p(counts), obs, pd.DataFrame(index=names))
    adata.uns["log1p"] = {"base": None}
    sc.tl.rank_genes_groups(adata, "group", groups=["a"], method="wilcoxon", pts=True)
    wanted = sc.get.rank_genes_groups_df(adata, "a").set_index("names")
    ours = table.set_index("names").loc[wanted.index]
    assert ours.index[0] == "g3"
    for column in ("scores", "logfoldchanges", "pvals", "pvals_adj", "pct_nz_group"):
        np.testing.assert_allclose(ours[column], wanted[column], rtol=1e-4, atol=1e-9)
