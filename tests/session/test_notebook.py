"""A map as code: run from the input, it gives the clusters that were on show."""

import json
import runpy
import warnings
from dataclasses import replace
from functools import partial

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

from napari_embedding_game.core.inspect.group_sums import summarize
from napari_embedding_game.core.inspect.markers import pseudobulk
from napari_embedding_game.data.as_anndata import read
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write
from napari_embedding_game.data.gene_sets import GeneSet, score_genes
from napari_embedding_game.data.loading import load
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.cluster_expression import iter_cluster_expression
from napari_embedding_game.session.expression_rows import RowChoice, rows_of
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.notebook.draft import Code, call, code_of
from napari_embedding_game.session.notebook.export import write_code
from napari_embedding_game.session.notebook.methods_text import methods_text
from napari_embedding_game.session.reference.predicting import (
    first_label,
    load_reference,
    predict_labels,
)
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.shown_comparisons import ShownComparison
from napari_embedding_game.session.shown_figures import ShownFigure
from napari_embedding_game.session.taught_classes import add_classes, learn_examples

sc = pytest.importorskip("scanpy")

RECIPE = Recipe(min_genes=20, min_cells=2, n_top_genes=100, n_comps=10)
LIMITS = {"max_genes": 142, "min_counts": 240, "max_counts": 430, "max_mito": 3.0}


@pytest.fixture
def cells():
    """240 cells of three kinds from two days, as counts and as components."""
    rng = np.random.default_rng(0)
    kinds, days = np.arange(240) % 3, np.arange(240) // 3 % 2
    rates = rng.gamma(0.5, 2, (3, 300))
    rates = np.stack([rates, rates * rng.gamma(2, 0.7, 300)])[days, kinds]
    counts = rng.poisson(rates).astype(np.float32)
    counts[7] = 0  # is left out by the recipe
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical.from_codes(kinds, [*"ABC"]),
            "day": pd.Categorical(np.array(["mon", "tue"])[days]),
            "donor": pd.Categorical([f"donor{i // 6 % 4}" for i in range(240)]),
        },
        index=[f"cell{i}" for i in range(240)],
    )
    genes = [f"gene{i}" for i in range(290)] + [f"MT-{i}" for i in range(10)]
    names = pd.DataFrame(index=genes)
    adata = anndata.AnnData(sp.csr_matrix(counts), obs=obs, var=names)
    adata.obsm["X_pca"] = 4 * np.eye(3, 8)[kinds] + rng.normal(size=(240, 8))
    return adata


class Desk:
    """A session with its maps, as a person uses them."""

    def __init__(self, dataset):
        self.session = Session(pace=UNPACED)
        self.maps = MapTree(self.session)
        self.session.load(dataset)
        self.session.settings.max_iter = 40
        self.session.settings.n_landmarks = 45
        self.book = self.session.clusters

    def play(self, run=None, at=None, then=None, until=None):
        """Play to the end, or to an iteration; at another one do something."""
        session = self.session
        run = run or session.begin()
        for progress in run.frames():
            session.receive(run, progress)
            shown = session.snapshot
            if at is not None and shown is not None and shown.iteration >= at:
                at = None
                then()
            elif until is not None and shown is not None and shown.iteration >= until:
                session.stop()
            elif session.state == "finished":
                break
        return self

    def edit(self):
        """Choose, merge and name."""
        self.book.set_n_clusters(5)
        first, second, third = self.book.clusters[:3]
        self.book.rename(first.id, 'T "helper" cells')
        self.book.merge([second.id, third.id])
        return self

    def saw(self, inside, outside=None, method="wilcoxon", **options):
        self.session.comparisons.add(
            ShownComparison(inside=inside, outside=outside, method=method, **options)
        )

    def drew(self, kind, genes=("gene3", "gene9", "gene40"), **options):
        self.session.figures.add(ShownFigure(kind=kind, genes=genes, **options))

    def write(self, path, **options):
        options.setdefault("comparisons", self.session.comparisons)
        return write_code(self.maps.capture(), path, **options)

    @property
    def names(self):
        return pd.Series(
            self.book.clustering.names, index=self.session.dataset.obs.index.astype(str)
        )


def run_here(path, monkeypatch):
    """Run a script in this process, and return the clusters that it wrote."""
    monkeypatch.chdir(path.parent)
    made = run_code(path)
    found = written(path)
    found.attrs["map"] = made["adata"].obsm["X_embedding_game"]
    return found


def run_code(path):
    """Run a script without windows, and return what it has made."""
    import matplotlib.pyplot as plt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plt.switch_backend("Agg")
        made = runpy.run_path(str(path))
        plt.close("all")
    return made


def written(path):
    table = pd.read_csv(f"{path.with_suffix('')}_clusters.csv", index_col=0, dtype=str)
    table.index = table.index.astype(str)
    return table.iloc[:, 0]


def same(found, desk):
    assert found.index.tolist() == desk.names.index.tolist()
    assert found.tolist() == desk.names.tolist()
    assert found.nunique() > 1
    if "map" in found.attrs:
        shown = desk.session.snapshot.embedding
        np.testing.assert_array_equal(found.attrs["map"], shown)
    return True


@pytest.fixture
def file(cells, tmp_path):
    path = tmp_path / "cells.h5ad"
    cells.write_h5ad(path)
    return path


@pytest.fixture
def desk(file):
    return Desk(finish(load(file)))


def steer(desk, **settings):
    def change():
        for name, value in settings.items():
            setattr(desk.session.settings, name, value)

    return change


def test_a_notebook_gives_the_clusters_that_were_on_show(file, tmp_path, monkeypatch):
    """All limits, doublets, Harmony and steering at once.

    The tutorial's test has Jupyter run its notebook.
    """
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("harmonypy")
    recipe = replace(RECIPE, batch_key="day", doublets=True, **LIMITS)
    desk = Desk(finish(load(file, space="X", recipe=recipe)))
    left_out = desk.session.dataset.provenance["recipe"]["left_out"]
    assert min(left_out.values()) > 0  # each limit, and scrublet
    desk.session.settings.repulsion = 137.5
    desk.play(at=20, then=steer(desk, repulsion=411.0, learning_rate=0.3)).edit()
    assert len(desk.session.played.steered) == 1
    rows = [desk.book.labels == cluster.id for cluster in desk.book.clusters]
    desk.saw(rows[0])
    desk.saw(rows[1], rows[0])
    desk.drew("dots")
    desk.session.look.split_by = "day"
    path = tmp_path / "map.ipynb"
    assert desk.write(path) == [path]
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    assert 'sc.read_h5ad("cells.h5ad")' in code
    assert "run_harmony" in code
    assert "steering=steering" in code
    methods = notebook.cells[-1].source
    for name, n in left_out.items():
        assert f"({n})" in methods, name
    assert "more than 3 % mitochondrial counts" in methods
    assert "Wolock" in methods
    script = tmp_path / "map.py"
    desk.write(script)
    told = script.read_text()
    assert all(c.source in told for c in notebook.cells if c.cell_type == "code")
    assert same(run_here(script, monkeypatch), desk)


def with_twins(cells):
    """Have some cells counted together, and the figures of another program."""
    counts = cells.X.toarray()
    counts[200:206] += counts[20:26]
    cells.X = sp.csr_matrix(counts)
    cells.obs["total_counts"] = np.arange(240.0)
    cells.obs["doublet_score"] = 0.5


def test_columns_of_the_file_stay_where_quality_has_their_names(
    cells, tmp_path, monkeypatch
):
    with_twins(cells)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    recipe = replace(RECIPE, min_genes=0, doublets=True, batch_key="day")
    desk = Desk(finish(load(tmp_path / "cells.h5ad", space="X", recipe=recipe)))
    desk.play()
    desk.session.look.color_by = "pct_counts_mt"
    path = tmp_path / "map.py"
    desk.write(path)
    monkeypatch.chdir(tmp_path)
    obs, shown = run_code(path)["adata"].obs, desk.session.dataset.obs
    assert same(written(path), desk)
    assert obs["total_counts"].tolist() == shown["total_counts"].tolist()
    assert set(obs["doublet_score"]) == {0.5}
    figures = ["n_genes_by_counts", "pct_counts_mt"]
    np.testing.assert_allclose(obs[figures], shown[figures], rtol=1e-6)
    assert 'color="pct_counts_mt"' in path.read_text()


def write_zarr(cells, folder):
    """Logarithms with other genes in .raw, and the counts in a layer."""
    cells.layers["counts"] = cells.X.copy()
    cells.X = np.log1p(cells.X)
    cells.raw = cells[:, ::-1].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the version of the format
        cells.write_zarr(folder / "cells.zarr")
    return folder / "cells.zarr", "layers['counts']"


def write_tenx(cells, folder):
    """Two genes of one name."""
    genes = cells.var_names.to_list()
    genes[1] = genes[0]
    table = pd.DataFrame({"id": cells.var_names, "name": genes})
    table["type"] = "Gene Expression"
    (folder / "tenx").mkdir()
    mmwrite(folder / "tenx" / "matrix.mtx", cells.X.T.astype(int))
    options = {"sep": "\t", "header": False, "index": False}
    table.to_csv(folder / "tenx" / "features.tsv", **options)
    barcodes = cells.obs_names.to_series()
    barcodes.to_csv(folder / "tenx" / "barcodes.tsv", **options)
    return folder / "tenx", None


def write_repeated(cells, folder):
    """Whole numbers of double precision, columns first, genes of one name."""
    cells.X = sp.csc_matrix(cells.X, dtype=np.float64)
    genes = cells.var_names.to_list()
    genes[1] = genes[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.var_names = genes
        cells.write_h5ad(folder / "cells.h5ad")
    return folder / "cells.h5ad", "X"


def write_table(cells, folder):
    """A column of numbers that is no gene, and a row without one of its counts."""
    table = pd.DataFrame(cells.X.toarray(), cells.obs_names, cells.var_names)
    table.loc["cell30", "gene5"] = np.nan
    table.assign(day=cells.obs["day"]).to_csv(folder / "cells.csv")
    return folder / "cells.csv", None


@pytest.mark.parametrize(
    "write_file", [write_zarr, write_tenx, write_repeated, write_table]
)
def test_counts_from_any_file_are_prepared_again(
    write_file, cells, tmp_path, monkeypatch
):
    source, space = write_file(cells, tmp_path)
    recipe = replace(RECIPE, target_sum=12_345.5, **LIMITS)
    reading = {"space": space, "missing": "drop"}
    desk = Desk(finish(load(source, recipe=recipe, **reading)))
    desk.play()
    desk.session.look.color_by = desk.session.dataset.profile_names[1]
    path = tmp_path / "map.py"
    assert desk.write(path) == [path]
    assert same(run_here(path, monkeypatch), desk)
    assert len(desk.names) == 213 - (write_file is write_table)


def test_what_no_reading_gives_is_saved_beside_it(cells, tmp_path, monkeypatch):
    """Counts of some genes alone, or of something else than the genes."""
    cells.obsm["protein"] = cells.X.toarray()[:, ::2]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    some = cells.var_names[:150].to_list()
    for options in ({"space": "X", "columns": some}, {"space": "protein"}):
        desk = Desk(finish(load(tmp_path / "cells.h5ad", recipe=RECIPE, **options)))
        desk.play()
        path = tmp_path / "map.py"
        assert [p.name for p in desk.write(path)] == ["map.py", "map_features.h5ad"]
        assert same(run_here(path, monkeypatch), desk)


def test_a_script_gives_the_clusters_that_were_on_show(desk, tmp_path, monkeypatch):
    desk.play().edit()
    path = tmp_path / "map.py"
    desk.write(path, colors=dict.fromkeys(set(desk.names), "#1f77b4"))
    assert same(run_here(path, monkeypatch), desk)
    code = path.read_text()
    compile(code, str(path), "exec")
    assert max(map(len, (x for x in code.splitlines() if x[:1] != "#"))) <= 100
    assert 'adata.obsm["X_pca"].astype("float32")' in code  # float64 in the file


def test_what_a_hand_did_is_repeated_from_a_file_beside_it(desk, tmp_path, monkeypatch):
    session = desk.session
    desk.play(until=30)
    cluster = desk.book.clusters[0]
    desk.play(session.move_cluster(cluster.id, np.array([5.0, 3.0]), is_pinned=True))
    assert session.played.is_branch
    assert session.played.forced
    desk.edit()
    path = tmp_path / "map.py"
    assert [p.name for p in desk.write(path)] == ["map.py", "map_run.zip"]
    assert same(run_here(path, monkeypatch), desk)
    assert "tl.replay(" in path.read_text()


def test_points_that_were_drawn_around_are_listed_beside_it(
    desk, tmp_path, monkeypatch
):
    desk.play().edit()
    desk.book.make_cluster(np.arange(12), "drawn")
    path = tmp_path / "map.py"
    assert [p.name for p in desk.write(path)] == ["map.py", "map_by_hand.csv"]
    assert same(run_here(path, monkeypatch), desk)
    table = pd.read_csv(tmp_path / "map_by_hand.csv")
    assert set(table["cluster"]) == {"drawn"}
    assert set(table["name"]) == {f"cell{i}" for i in range(12)}


def test_a_split_is_told_by_landmarks(desk, tmp_path, monkeypatch):
    desk.play()
    desk.book.set_n_clusters(3)
    desk.session.split(desk.book.clusters[0].id, 2)
    path = tmp_path / "map.py"
    desk.write(path)
    assert same(run_here(path, monkeypatch), desk)
    assert "n_clusters" not in path.read_text()


def test_a_run_that_was_stopped_stops_there_again(desk, tmp_path, monkeypatch):
    desk.play(until=15)
    assert not desk.session.snapshot.finished
    path = tmp_path / "map.py"
    desk.write(path)
    assert same(run_here(path, monkeypatch), desk)
    assert f"stop_at={desk.session.snapshot.iteration}" in path.read_text()


def test_a_run_that_was_steered_after_its_end_goes_on(desk, tmp_path, monkeypatch):
    session, done = desk.session, []
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            if done:
                break
            done.append(session.snapshot.iteration)
            session.settings.n_landmarks = 30
    assert session.played.steered[0].iteration == done[0] < session.played.n_iter
    path = tmp_path / "map.py"
    desk.write(path)
    assert same(run_here(path, monkeypatch), desk)


def test_a_map_of_a_part_takes_its_rows(file, tmp_path, monkeypatch):
    desk = Desk(finish(load(file, space="X", recipe=RECIPE)))
    desk.play().edit()
    chosen = desk.book.labels == desk.book.clusters[1].id
    desk.maps.embed(chosen, "a part")
    desk.session.settings.n_landmarks = 20
    desk.play()
    path = tmp_path / "map.py"
    desk.write(path)
    found = run_here(path, monkeypatch)
    assert same(found, desk)
    assert 10 < len(found) < 200
    saved = desk.maps.capture()
    text = methods_text(saved[saved.current])
    assert "Raw counts of 239 of 240 cells" in text
    assert f"The map shows {len(found)} of these cells." in text


def test_a_table_is_read_as_the_window_reads_it(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 5)) + 5 * np.eye(3, 5)[np.arange(90) % 3]
    table = pd.DataFrame(X, columns=[*"abcde"])
    table["copy"], table.loc[4, "b"] = table["a"], np.nan
    table["kind"] = [*"xyz"] * 30
    table.to_csv(tmp_path / "table.csv", index=False)
    reading = {"missing": "drop", "duplicates": "drop"}
    desk = Desk(finish(load(tmp_path / "table.csv", **reading)))
    desk.session.settings.n_components = 1
    desk.play()
    inside = desk.book.labels == desk.book.clusters[0].id
    desk.saw(inside)
    path = tmp_path / "map.py"
    desk.write(path)
    assert same(run_here(path, monkeypatch), desk)
    code = path.read_text()
    assert 'read("table.csv", missing="drop", duplicates="drop")' in code
    assert "found = tl.compare(adata, inside, outside, n_top=None)" in code


def test_chosen_columns_are_told(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 4)) + 5 * np.eye(4)[np.arange(80) % 4]
    pd.DataFrame(X, columns=[*"abcd"]).to_csv(tmp_path / "t.csv", index=False)
    desk = Desk(finish(load(tmp_path / "t.csv", columns=["a", "c", "d"])))
    desk.play()
    path = tmp_path / "map.py"
    desk.write(path)
    assert 'columns=["a", "c", "d"]' in path.read_text()
    assert same(run_here(path, monkeypatch), desk)


def test_numbers_of_no_file_are_saved_beside_it(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    X = (
        rng.normal(size=(80, 4)).astype("f4")
        + 5 * np.eye(4, dtype="f4")[np.arange(80) % 4]
    )
    dataset = Dataset.from_rows(
        name="nuclei",
        X=X,
        obs=pd.DataFrame({"area": X[:, 0]}, index=[str(i) for i in range(80)]),
        var_names=[*"abcd"],
        space="features",
    )
    desk = Desk(dataset)
    desk.session.settings.n_components = 3
    desk.play()
    path = tmp_path / "map.py"
    assert [p.name for p in desk.write(path)] == ["map.py", "map_features.h5ad"]
    assert same(run_here(path, monkeypatch), desk)
    assert "were not read from a file: they are those of **nuclei**" in path.read_text()


def test_rows_of_the_same_name_and_missing_values(cells, tmp_path, monkeypatch):
    names = cells.obs_names.to_list()
    names[1] = names[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.obs_names = names
        cells.obsm["X_pca"][5] = np.nan
        cells.write_h5ad(tmp_path / "cells.h5ad")
    desk = Desk(finish(load(tmp_path / "cells.h5ad", missing="drop")))
    desk.play().edit()
    desk.book.make_cluster(np.arange(3), "drawn")
    path = tmp_path / "map.py"
    desk.write(path)
    found = run_here(path, monkeypatch)
    assert found.tolist() == desk.names.tolist()
    assert len(found) == 239


def test_components_of_the_file_are_mixed_again(cells, tmp_path, monkeypatch):
    """In a map of a part, of a file with rows that lack values."""
    pytest.importorskip("harmonypy")
    cells.obsm["X_pca"][5] = np.nan
    cells.write_h5ad(tmp_path / "cells.h5ad")
    reading = {"space": "X_pca", "missing": "drop", "batch_key": "day"}
    desk = Desk(finish(load(tmp_path / "cells.h5ad", **reading)))
    desk.play().edit()
    path = tmp_path / "map.py"
    desk.write(path)
    assert same(run_here(path, monkeypatch), desk)
    desk.maps.embed(desk.book.labels != desk.book.clusters[1].id, "a part")
    desk.play()
    desk.write(path)
    assert same(run_here(path, monkeypatch), desk)
    assert 'use_rep="X_pca_harmony"' in path.read_text()
    text = methods_text(desk.maps.capture()[desk.maps.current])
    assert 'levels of "day" were mixed in the components by Harmony' in text


def test_neighbours_of_the_file_are_used_again(cells, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.neighbors(cells, n_neighbors=10, use_rep="X_pca", key_added="mine")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    space = "obsp['mine_distances']"
    desk = Desk(finish(load(tmp_path / "cells.h5ad", space=space)))
    desk.session.settings.n_neighbors = 9
    desk.play().edit()
    path = tmp_path / "map.py"
    desk.write(path)
    assert 'neighbors_key="mine"' in path.read_text()
    assert same(run_here(path, monkeypatch), desk)


def test_every_comparison_that_was_looked_at_is_made(desk, tmp_path, monkeypatch):
    desk.play().edit()
    book = desk.book
    rows = [book.labels == cluster.id for cluster in book.clusters]
    drawn = np.arange(240) < 30
    is_monday = (desk.session.dataset.obs["day"] == "mon").to_numpy()
    desk.saw(rows[0])
    desk.saw(rows[1], rows[0], method="t-test")
    desk.saw(rows[0] | rows[1])
    desk.saw(drawn, ~drawn & rows[0])
    levels = {"column": "day", "levels": ("mon", "tue"), "selected": rows[1]}
    desk.saw(rows[1] & is_monday, rows[1] & ~is_monday, **levels)
    path = tmp_path / "map.py"
    desk.write(path)
    assert same(run_here(path, monkeypatch), desk)
    code = path.read_text()
    assert code.count("sc.tl.rank_genes_groups(") == 5
    assert code.count("volcano(") == 6  # and what draws it
    assert f'"mon against tue in {book.clusters[1].name}"' in code
    assert "sc.pp.log1p(genes)" in code  # X holds counts
    assert 'method="t-test"' in code
    # The figures are those of the window's table.
    from napari_embedding_game.core.inspect.markers import markers

    dataset = desk.session.dataset
    table = markers(dataset.expression.values, rows[0], None, dataset.profile_names)
    made = run_code(path)
    ranked = sc.get.rank_genes_groups_df(made["genes"], group="mon")
    inside = markers(
        dataset.expression.values,
        rows[1] & is_monday,
        rows[1] & ~is_monday,
        dataset.profile_names,
    )
    assert ranked["names"][0] == inside.names[0]
    assert len(table) == 20


def test_samples_are_compared_again(desk, tmp_path, monkeypatch):
    desk.play()
    dataset = desk.session.dataset
    inside = (dataset.obs["kind"] == "A").to_numpy()
    desk.saw(inside, samples="donor")
    path = tmp_path / "map.py"
    desk.write(path)
    assert 'samples="donor"' in path.read_text()
    monkeypatch.chdir(tmp_path)
    found = run_code(path)["top"]
    expression = dataset.expression
    samples = dataset.obs["donor"].to_numpy()
    names = dataset.profile_names
    shown = pseudobulk(expression.values, inside, None, names, samples)
    assert shown.n_inside == 4
    assert found["names"].tolist() == list(shown.names)
    np.testing.assert_allclose(found["scores"], shown.scores, rtol=1e-4)
    saved = desk.maps.capture()
    text = methods_text(saved[saved.current], desk.session.comparisons)
    assert "means of samples (pseudobulk)" in text


def shown_summary(desk, genes, labels, names):
    """Return the means and shares that the window shows, in rows of these names."""
    dataset = desk.session.dataset
    places = [dataset.profile_names.index(gene) for gene in genes]
    codes = pd.Categorical(labels, names).codes
    summary = summarize(dataset.expression.columns(places), codes, len(names))
    return (
        pd.DataFrame(part, index=names, columns=list(genes))
        for part in (summary.means, summary.shares)
    )


def drawn_by(path, monkeypatch):
    """Run a script, and return what it has drawn by each function of scanpy."""
    drawn = []

    def draw(name, function, adata, *args, **options):
        drawn.append((name, adata.copy(), options))
        return function(adata, *args, **options)

    for name in ("dotplot", "matrixplot", "heatmap", "embedding"):
        monkeypatch.setattr(sc.pl, name, partial(draw, name, getattr(sc.pl, name)))
    monkeypatch.chdir(path.parent)
    run_code(path)
    return drawn


def test_figures_that_were_looked_at_are_drawn_again(
    cells, file, tmp_path, monkeypatch
):
    """Rows of clusters, of a column with gaps, and of both."""
    cells.obs["batch"] = np.where(np.arange(240) < 9, np.nan, np.arange(240) % 2)
    cells.write_h5ad(file)
    desk = Desk(finish(load(file)))
    desk.play().edit()
    genes = ("gene3", "gene9", "gene40")
    desk.drew("dots", are_leading=True)
    desk.drew("matrix", column="batch", is_scaled=False)
    desk.drew("cells", column="day", splits_clusters=True)
    desk.drew("dots", genes=("gene3", "gone"))
    desk.drew("dots", column="nowhere")
    path = tmp_path / "map.py"
    desk.write(path)
    dots, matrix, stripes = (
        one for one in drawn_by(path, monkeypatch) if one[0] != "embedding"
    )
    assert [one[2]["groupby"] for one in (dots, matrix, stripes)] == [
        "cluster",
        "batch (groups)",
        "clusters by day",
    ]
    assert all(tuple(one[2]["var_names"]) == genes for one in (dots, matrix, stripes))
    means, shares = shown_summary(
        desk, genes, desk.names, [c.name for c in desk.book.clusters]
    )
    plot = sc.pl.DotPlot(dots[1], list(genes), "cluster", use_raw=False)
    np.testing.assert_allclose(plot.dot_color_df, means, rtol=1e-5)
    np.testing.assert_allclose(plot.dot_size_df, shares, rtol=1e-6)
    assert plot.dot_color_df.index.tolist() == means.index.tolist()
    assert set(matrix[1].obs["batch (groups)"]) == {"0.0", "1.0", "missing"}
    assert "standard_scale" not in matrix[2]
    rows = rows_of(
        RowChoice("day", True),
        desk.session.dataset,
        desk.book.labels,
        desk.book.clusters,
    )
    named = stripes[1].obs["clusters by day"]
    assert named.cat.categories.tolist() == list(rows.names)
    part = finish(
        iter_cluster_expression(desk.session.dataset, rows.labels, rows.ids, genes)
    )
    drawn = stripes[1][:, list(genes)].X.toarray()
    np.testing.assert_allclose(drawn, np.concatenate(part.cells), rtol=1e-5)


def test_the_map_is_split_as_on_the_screen(cells, file, tmp_path, monkeypatch):
    cells.obs["day"] = cells.obs["day"].where(np.arange(240) > 3)
    cells.write_h5ad(file)
    desk = Desk(finish(load(file, space="X", recipe=RECIPE)))
    desk.play()
    desk.session.look.split_by = "day"
    desk.session.look.color_by = "gene3"
    path = tmp_path / "map.py"
    desk.write(path)
    drawn = [one for one in drawn_by(path, monkeypatch) if "ax" in one[2]]
    assert [options["title"] for _, _, options in drawn] == ["mon", "tue", "nan"]
    assert [part.n_obs for _, part, _ in drawn] == [116, 119, 4]
    column = desk.session.dataset.expression.column(
        desk.session.dataset.profile_names.index("gene3")
    )
    for _, _, options in drawn:
        assert options["color"] == "gene3"
        assert options["vmax"] == pytest.approx(column.max(), rel=1e-3)


def test_what_is_remembered_of_figures():
    session = Session(pace=UNPACED)
    for number in range(20):
        figure = ShownFigure(kind="dots", genes=(f"gene{number}",))
        session.figures.add(figure)
    assert len(session.figures) == 8
    session.figures.add(replace(figure, is_scaled=False))
    assert len(session.figures) == 8  # the same, once
    for number in range(3):  # the leading ones of clusters that have changed since
        leading = {"genes": (f"gene{number}",), "are_leading": True}
        session.figures.add(ShownFigure(kind="dots", **leading))
    assert len(session.figures) == 8
    assert [one.genes for one in session.figures if one.are_leading] == [("gene2",)]
    session.load(None)
    assert not len(session.figures)


def test_what_is_remembered_of_comparisons():
    session = Session(pace=UNPACED)
    mask = np.arange(30) < 4
    for number in range(20):
        session.comparisons.add(
            ShownComparison(
                inside=np.arange(30) < number % 15, outside=None, method="wilcoxon"
            )
        )
    assert len(session.comparisons) == 12
    session.comparisons.add(
        ShownComparison(inside=mask, outside=None, method="wilcoxon")
    )
    assert len(session.comparisons) == 12  # the same, once
    session.load(None)
    assert not len(session.comparisons)


def test_a_session_file_gives_the_same_code(desk, tmp_path):
    desk.play().edit()
    rows = [desk.book.labels == cluster.id for cluster in desk.book.clusters]
    is_monday = (desk.session.dataset.obs["day"] == "mon").to_numpy()
    levels = {"column": "day", "levels": ("mon", "tue"), "selected": rows[1]}
    desk.saw(rows[0])
    desk.saw(rows[1] & is_monday, rows[1] & ~is_monday, **levels)
    desk.saw(rows[0], rows[1], samples="donor")
    desk.drew("matrix", column="day", is_scaled=False)
    archive.save(desk.maps.capture(), tmp_path / "s.zip")
    opened, troubles = archive.open_session(tmp_path / "s.zip")
    assert not troubles
    desk.write(tmp_path / "one.py")
    write_code(opened, tmp_path / "two.py")
    one, two = ((tmp_path / f"{n}.py").read_text() for n in ("one", "two"))
    assert one.replace("one_", "two_") == two
    assert 'samples="donor"' in two
    assert "(adata.obs[" in two
    again = Session(pace=UNPACED)
    again.restore(opened.maps[0], opened.maps[0].dataset)
    shown = zip(again.comparisons, desk.session.comparisons, strict=True)
    assert all(one.is_as(other) for one, other in shown)
    assert "sc.pl.matrixplot(" in two
    assert list(again.figures) == list(desk.session.figures)


def test_methods_tell_and_cite_only_what_was_used(desk, file):
    desk.play()
    text = methods_text(desk.maps.capture()["".join(desk.maps.current)])
    assert "240 cells of cells.h5ad" in text
    assert "lambda x N = 300" in text
    assert "45 landmarks" in text
    assert "Anonymous" in text
    for word in ("scanpy", "Harmony", "Tucker", "Vladymyrov", "van der", "Leiden"):
        assert word not in text
    other = Desk(finish(load(file, space="X", recipe=RECIPE)))
    other.session.settings.choose_method("tsne")
    other.session.settings.init = "gradient_pca"
    other.play()
    other.edit()
    text = methods_text(other.maps.capture()[""], [])
    for word in (
        "scanpy",
        "van der Maaten",
        "Tucker",
        "perplexity 30",
        "and 1 was named",
    ):
        assert word in text
    assert "Anonymous" not in text
    assert "Harmony" not in text


def test_methods_of_a_recipe_of_an_older_file_tell_no_numbers_of_cells(desk):
    desk.play()
    saved = desk.maps.capture()[""]
    older = {"scanpy": "1.10", "min_genes": 200, "min_cells": 3, "target_sum": 1e4,
             "max_value": 10.0, "genes_used": 2000, "genes_left_out": 4,
             "components": 50}  # fmt: skip
    dataset = replace(saved.dataset, provenance={"recipe": older})
    text = methods_text(replace(saved, dataset=dataset))
    assert "cells with fewer than 200 genes, and genes in fewer than 3" in text


def test_what_cannot_be_written_is_told(desk, file, tmp_path):
    with pytest.raises(DataError, match="press Run first"):
        desk.write(tmp_path / "map.py")
    desk.play()
    with pytest.raises(DataError, match="choose a name that ends in"):
        desk.write(tmp_path / "map.md")
    saved = desk.maps.capture()
    lost = replace(saved.maps[0], record=replace(saved.maps[0].record, is_branch=True))
    with pytest.raises(DataError, match="went on from another map"):
        write_code(replace(saved, maps=(lost,)), tmp_path / "map.py")
    assert [p.name for p in tmp_path.iterdir()] == [file.name]


def test_code_is_written_as_a_formatter_does():
    assert code_of({"a": [1, "x"], "b": (None, Code("n / 2"))}) == (
        '{"a": [1, "x"], "b": (None, n / 2)}'
    )
    assert call("f", "x", name="y" * 90).count("\n") == 3


def test_a_notebook_is_one_of_the_format(desk, tmp_path):
    desk.play()
    desk.write(tmp_path / "map.ipynb")
    made = json.loads((tmp_path / "map.ipynb").read_text())
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_a_file_is_read_as_anndata(file, tmp_path):
    adata = read(file, space="X_pca")
    assert adata.obsm["X_features"].shape == (240, 8)
    assert adata.obsm["X_features"].dtype == np.float32
    assert adata.n_vars == 300
    assert read("digits").obsm["X_features"].shape == (1797, 64)
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "none.csv")


def test_columns_made_in_the_window_are_made_again(file, cells, tmp_path, monkeypatch):
    """Scores, labels from a reference and taught classes: equal to those on show."""
    desk = Desk(finish(load(file, space="X", recipe=RECIPE)))
    desk.play()
    known = tmp_path / "reference.h5ad"
    write(desk.session.dataset, desk.session.result(), known)
    desk = Desk(finish(load(file, space="X", recipe=RECIPE)))
    desk.play()
    session = desk.session
    genes = ("gene5", "GENE9", "nowhere", *(f"gene{i}" for i in range(20, 40)))
    session.add_score(score_genes(session.dataset, GeneSet("some genes", genes)))
    reference = finish(load_reference(known))
    label = first_label(reference)
    found, _ = finish(predict_labels(session.dataset, reference, known, label))
    assert session.add_predicted(found) == f"{label}_predicted"
    kinds = session.dataset.obs["kind"].to_numpy()
    examples = {
        kind: tuple(np.flatnonzero(session.dataset.kept)[kinds == kind][:4])
        for kind in "ABC"
    }
    learned = finish(learn_examples(session.dataset, examples))
    add_classes(session.dataset, "taught", learned, examples)
    session.look.color_by = "some genes"
    path = tmp_path / "map.py"
    written_files = [p.name for p in desk.write(path)]
    assert written_files == ["map.py", "map_taught.csv"]
    monkeypatch.chdir(tmp_path)
    made = run_code(path)["adata"].obs
    shown = session.dataset.obs
    np.testing.assert_allclose(made["some genes"], shown["some genes"], atol=1e-6)
    for column in (f"{label}_predicted", f"{label}_predicted_reference", "taught"):
        assert made[column].astype(str).tolist() == shown[column].astype(str).tolist()
    for column in (f"{label}_predicted_likeness", f"{label}_predicted_distance"):
        np.testing.assert_allclose(made[column], shown[column], rtol=1e-4)
    np.testing.assert_allclose(
        made["taught_confidence"], shown["taught_confidence"], atol=1e-5
    )
    captured = desk.maps.capture()
    told = methods_text(captured[captured.current])
    assert "reference.h5ad" in told
    assert "from 12 examples sorted by hand (A, B, C)" in told
    assert '"some genes"' in told
