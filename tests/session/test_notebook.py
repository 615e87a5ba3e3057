"""A map as code: run from the input, it gives the map that was on show."""

import json
import re
import warnings
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.core.inspect.markers import markers
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.gene_sets import GeneSet, score_genes, with_score_column
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import ShownComparison
from napari_embedding_game.session.learned_classes import (
    add_class_columns,
    learn_from_examples,
)
from napari_embedding_game.session.notebook.export import write_code
from napari_embedding_game.session.notebook.methods import compose_methods_text
from napari_embedding_game.session.run.record import Steering

nbformat, sc = pytest.importorskip("nbformat"), pytest.importorskip("scanpy")

RECIPE = Recipe(min_genes=20, min_cells=2, n_top_genes=100, n_comps=10)
LIMITS = {"max_genes": 142, "min_counts": 240, "max_counts": 430, "max_mito": 3.0}
GENES = ("gene3", "gene9", "gene40")
SHORT = {"max_iter": 40, "n_landmarks": 45}


@pytest.fixture
def cells(tmp_path):
    """240 cells of three kinds from two days, as counts and components."""
    adata, rng = worlds.of_two_days(), np.random.default_rng(1)
    adata.var_names = [*adata.var_names[:290], *(f"MT-{i}" for i in range(10))]
    adata.obs["donor"] = pd.Categorical([f"donor{i // 6 % 4}" for i in range(240)])
    adata.obs["batch"] = np.where(np.arange(240) < 9, np.nan, np.arange(240) % 2)
    kinds = adata.obs["kind"].cat.codes.to_numpy()
    adata.obsm["X_pca"] = 4 * np.eye(3, 8)[kinds] + rng.normal(size=(240, 8))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return adata


class Desk(worlds.Desk):
    """A session with its maps, of which a person makes code."""

    def edit(self):
        """Choose, merge and name."""
        self.book.set_n_clusters(5)
        first, second, third = self.book.clusters[:3]
        self.book.rename(first.id, 'T <b>"helper"</b> cells [p](http://x)')
        self.book.merge([second.id, third.id])
        return self

    def saw(self, inside, outside=None, **options):
        how = {"title": "these against those", "method": "wilcoxon", **options}
        self.session.store_comparison(
            ShownComparison(inside=inside, outside=outside, **how)
        )

    @property
    def saved(self):
        captured = self.maps.to_saved_session()
        return captured[captured.current]


def of_file(path, **options):
    return Desk(worlds.read(path, **options), **SHORT)


def recipe(folder, cells):
    """Have all limits, doublets, Harmony and steering at once."""
    pytest.importorskip("harmonypy")
    chosen = replace(RECIPE, batch_key="day", doublets=True, **LIMITS)
    desk = of_file(folder / "cells.h5ad", space="X", recipe=chosen)
    settings = desk.session.settings
    settings.update(repulsion=137.5, large_picture=1.0)
    steered = {"repulsion": 411.0, "learning_rate": 0.3, "large_picture": 2.5}
    desk.play(at=20, then=lambda: settings.update(**steered))
    assert len(desk.session.run_record.steered) == 1
    desk.session.look.split_by, desk.session.look.color_by = "day", "gene3"
    return desk.edit()


def components(folder, cells):
    return of_file(folder / "cells.h5ad").play().edit()


def by_hand(folder, cells):
    desk = of_file(folder / "cells.h5ad").play(until=30)
    cluster = desk.book.clusters[0].id
    run = desk.session.move_cluster(cluster, np.array([5.0, 3.0]), is_pinned=True)
    return desk.play(run).edit()


def drawn_around(folder, cells):
    desk = of_file(folder / "cells.h5ad").play().edit()
    desk.book.make_group(np.arange(12), "NA")
    desk.session.split_cluster(desk.book.clusters[0].id, 2)
    return desk


def of_a_given_map(folder, cells):
    cells.obsm["X_umap"] = cells.obsm["X_pca"][:, :2]
    cells.write_h5ad(folder / "cells.h5ad")
    desk = of_file(folder / "cells.h5ad")
    desk.session.settings.choose_method("given")
    return desk.play().edit()


def stopped(folder, cells):
    return of_file(folder / "cells.h5ad").play(until=15)


def a_part(folder, cells):
    desk = of_file(folder / "cells.h5ad", space="X", recipe=RECIPE).play().edit()
    desk.maps.open_child_map(desk.book.labels == desk.book.clusters[1].id, "a part")
    desk.session.settings.n_landmarks = 20
    return desk.play()


def a_table(folder, cells):
    """Standardised columns, one twice, a row without a value, chosen by name."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 5)) + 5 * np.eye(3, 5)[np.arange(90) % 3]
    table = pd.DataFrame(X, columns=[*"abcde"])
    table["copy"], table.loc[4, "b"] = table["a"], np.nan
    table["kind"] = [*"xyz"] * 30
    table.to_csv(folder / "table.csv", index=False)
    reading = {"missing": "drop", "columns": [*"abce", "copy"]}
    desk = of_file(folder / "table.csv", **reading).play()
    desk.saw(desk.book.labels == desk.book.clusters[0].id)
    return desk


def no_file(folder, cells):
    """Have numbers of objects that were measured, in space."""
    X = np.random.default_rng(1).normal(size=(80, 4)) + 5 * np.eye(4)[np.arange(80) % 4]
    obs = pd.DataFrame({"area": X[:, 0]}, index=[str(i) for i in range(80)])
    obs["day"], obs["a"] = pd.Timestamp("2024-05-01"), X[:, 1]
    data = worlds.rows(X, name="nuclei", obs=obs, var_names=[*"abcd"])
    desk = Desk(data, **SHORT)
    desk.session.look.color_by = "a"  # a column, or a measure?
    desk.session.settings.n_components = 3
    return desk.play()


def same_names(folder, cells):
    """Have rows of one name, one without values, and a column called cluster."""
    names = cells.obs_names.to_list()
    names[1], names[2], names[3] = names[0], "a\rb", 'b, "c"\n'
    cells.obs["cluster"] = "of the file"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.obs_names = names
        cells.obsm["X_pca"][5] = np.nan
        cells.write_h5ad(folder / "cells.h5ad")
    return of_file(folder / "cells.h5ad", missing="drop").play().edit()


def mixed(folder, cells):
    """Have a part of components that were mixed, of a file that lacks values."""
    pytest.importorskip("harmonypy")
    cells.obsm["X_pca"][5] = np.nan
    cells.write_h5ad(folder / "cells.h5ad")
    reading = {"space": "X_pca", "missing": "drop", "batch_key": "day"}
    desk = of_file(folder / "cells.h5ad", **reading).play().edit()
    desk.maps.open_child_map(desk.book.labels != desk.book.clusters[1].id, "a part")
    return desk.play()


def neighbours(folder, cells):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"use_rep": "X_pca", "method": "gauss"}  # umap-learn loads for seconds
        sc.pp.neighbors(cells, n_neighbors=10, key_added="mine", **how)
    cells.write_h5ad(folder / "cells.h5ad")
    desk = of_file(folder / "cells.h5ad", space="obsp['mine_distances']")
    # The slider's value is left from former data, and its control is hidden.
    desk.session.settings.update(n_neighbors=9, large_picture=2.0)
    return desk.play().edit()


def looked_at(folder, cells):
    """Have comparisons of clusters, points and samples."""
    desk = of_file(folder / "cells.h5ad").play().edit()
    rows = [desk.book.labels == cluster.id for cluster in desk.book.clusters]
    desk.saw(rows[0], tie_correct=True)
    desk.saw(np.arange(240) < 30, rows[1] & (np.arange(240) >= 30), method="t-test")
    desk.saw((cells.obs["kind"] == "A").to_numpy(), samples="donor")
    return desk


def made_columns(folder, cells):
    """Have a score, taught classes, and what was worked out of the map."""
    desk = of_file(folder / "cells.h5ad", space="X", recipe=RECIPE).play()
    session = desk.session
    chosen = GeneSet("a set", GENES)
    session.add_columns(
        with_score_column, chosen, score_genes(session.dataset, chosen)[0]
    )
    kinds = session.dataset.obs["kind"].to_numpy()
    places = np.flatnonzero(session.dataset.kept)
    examples = {kind: tuple(places[kinds == kind][:4]) for kind in "ABC"}
    learned = finish(learn_from_examples(session.dataset, examples))
    session.add_columns(add_class_columns, "taught", learned, examples)
    session.add_columns(
        Dataset.with_map_column, "wanders", np.where(kinds == "A", np.nan, 0.5)
    )
    session.add_columns(
        Dataset.with_map_column, "said", np.where(kinds == "A", None, "yes")
    )
    session.add_columns(Dataset.with_map_column, "cluster", np.arange(len(kinds)) / 7)
    session.add_columns(Dataset.with_map_column, "name", np.arange(len(kinds)) / 7)
    session.add_columns(
        Dataset.with_map_column, "comparison 1", np.arange(len(kinds)) / 7
    )
    desk.saw(kinds == "A")
    session.look.color_by = "a set"
    return desk


SCENARIOS = {
    recipe: ("batch_key=", "steering=", 'color=["cluster", "gene3", "day"]'),
    components: (
        'read("cells.h5ad")',
        'T &lt;b>"helper"&lt;/b> cells &#91;p&#93;(http://x) (',
    ),
    by_hand: ("tl.replay(",),
    of_a_given_map: ("tl.replay(",),
    drawn_around: (),
    stopped: ("stop_at=",),
    a_part: (),
    a_table: ('missing="drop"', 'columns=("a", "b", "c", "e"'),
    no_file: ("they are those of **nuclei**", 'projection="3d"'),
    same_names: ("map_cluster",),
    mixed: ('batch_key="day"',),
    neighbours: ("obsp['mine_distances']", 'metric="precomputed"'),
    looked_at: ('samples="donor"', 'method="t-test"', "tie_correct=True"),
    made_columns: ('color=["map_cluster", "a set"]',),
}
"""What was done, and what the code of it has."""
BESIDE = dict.fromkeys((by_hand, of_a_given_map), "map_run.zip")
BESIDE[no_file] = "map_features.h5ad"


def code_in(path):
    """Return the code of all cells."""
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def run_code(path, monkeypatch):
    """Run a notebook without windows, and return what it has made."""
    import matplotlib.pyplot as plt

    made = {"__name__": "__main__"}
    monkeypatch.chdir(path.parent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plt.switch_backend("Agg")
        exec(code_in(path), made)
        plt.close("all")
    return made


def test_code_names_no_other_rows_of_a_file_that_was_sorted(tmp_path, monkeypatch):
    numbers = np.random.default_rng(0).normal(size=(60, 4))
    table = pd.DataFrame(numbers, columns=list("abcd"))
    table.to_csv(tmp_path / "cells.csv", index=False)
    desk = of_file(tmp_path / "cells.csv").play()
    write_code(desk.maps.to_saved_session(), path := tmp_path / "map.ipynb")
    run_code(path, monkeypatch)
    swapped = [1, 0, *range(2, 60)]
    table.iloc[swapped].to_csv(tmp_path / "cells.csv", index=False)
    with pytest.raises(DataError, match=r"^2 of 60 rows have other numbers under"):
        run_code(path, monkeypatch)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_the_code_gives_what_was_on_show(scenario, cells, tmp_path, monkeypatch):
    desk = scenario(tmp_path, cells)
    path = tmp_path / "map.ipynb"
    files = [one.name for one in write_code(desk.maps.to_saved_session(), path)]
    nbformat.validate(nbformat.read(path, as_version=4))
    assert {*files} == {"map.ipynb", "map_cells.csv", BESIDE.get(scenario, "map.ipynb")}
    code = path.read_text().replace('\\"', "'").lower()
    for words in SCENARIOS[scenario]:
        assert words.replace('"', "'").lower() in code
    made = run_code(path, monkeypatch)
    adata, shown = made["adata"], desk.session.snapshot
    has_one = scenario in (same_names, made_columns)
    column = "map_cluster" if has_one else "cluster"
    assert adata.obs[column].tolist() == desk.book.clustering.names_by_point.tolist()
    assert adata.obs[column].nunique() > 1
    assert len({*adata.uns[f"{column}_colors"]}) == adata.obs[column].nunique()
    np.testing.assert_array_equal(adata.obsm["X_embedding_game"], shown.embedding)
    assert made["is_same"]
    assert 0.5 < made["agreement"] <= 1
    if scenario in (components, by_hand, neighbours):  # each landmark is of a cluster
        assert made["agreement"] == 1
    if scenario is looked_at:
        is_the_comparison(desk, cells, made["found"])
    if scenario is made_columns:
        are_the_columns(desk.session.dataset.obs, adata.obs)


def is_the_comparison(desk, cells, found):
    expression, names = desk.session.dataset.expression, list(cells.var_names)
    last = list(desk.session.comparisons)[-1]
    donors = cells.obs["donor"].to_numpy()
    shown = markers(
        expression.values, last.inside, None, names, samples=donors, n_top=None
    )
    assert found["names"].tolist() == list(shown.names)
    np.testing.assert_allclose(found["logfoldchanges"], shown.logfoldchanges, rtol=1e-4)
    np.testing.assert_allclose(found["pvals_adj"], shown.pvals_adj, rtol=1e-3)
    shown_design = shown.design.describe("donor")
    assert found.attrs["design"] == shown_design
    text = compose_methods_text(desk.saved)
    assert "cells of each sample in a group (pseudobulk) were compared by" in text
    assert shown_design in text
    assert "Smyth GK. Linear models and empirical Bayes" in text
    assert "Wilcoxon rank-sum tests corrected for ties" in text
    assert len(markers(expression.values, last.inside, None, names)) == 20


def are_the_columns(there, obs):
    numbered = "cluster", "name", "comparison 1"
    for name in ("a set", "wanders", "taught_confidence", *numbered):
        np.testing.assert_allclose(obs[name], there[name], rtol=1e-6)
    assert obs["taught"].tolist() == there["taught"].tolist()
    assert obs["said"].isna().tolist() == there["said"].isna().tolist()


def test_a_session_file_gives_the_same_code(cells, tmp_path):
    desk = looked_at(tmp_path, cells)
    opened = Desk.opened(desk.save(tmp_path / "s.zip"))
    write_code(desk.maps.to_saved_session(), tmp_path / "one.ipynb")
    write_code(opened.maps.to_saved_session(), tmp_path / "two.ipynb")
    one, two = ((tmp_path / f"{n}.ipynb").read_text() for n in ("one", "two"))
    assert one.replace("one_", "two_") == two


def test_very_many_changes_of_settings_are_repeated_from_a_session_file(tmp_path):
    n_iter = 41
    saved = (
        Desk(worlds.rows(np.eye(60)), max_iter=n_iter).play().maps.to_saved_session()
    )
    shown, path = saved.maps[0], tmp_path / "map.ipynb"
    settings = shown.record.settings
    steps = tuple(Steering(iteration=i, settings=settings) for i in range(n_iter))
    for n, by in ((40, "tl.embedding_game("), (41, "tl.replay(")):
        record = replace(shown.record, steered=steps[:n])
        write_code(replace(saved, maps=(replace(shown, record=record),)), path)
        assert by in code_in(path)


def test_methods_tell_and_cite_only_what_was_used(cells, tmp_path):
    path = tmp_path / "cells.h5ad"
    text = compose_methods_text(of_file(path).play().saved)
    for words in ("240 cells of cells.h5ad", "lambda x N = 300", "45 landmarks"):
        assert words in text
    for word in ("scanpy", "Harmony", "Tucker", "Vladymyrov", "van der", "Leiden"):
        assert word not in text
    other = of_file(path, space="X", recipe=RECIPE)
    other.session.settings.choose_method("tsne")
    other.session.settings.init = "gradient_pca"
    text = compose_methods_text(other.play().edit().saved)
    clusters = other.session.clusters
    assert f"into {np.unique(clusters.state.cluster).size} clusters; " in text
    words = "scanpy", "van der Maaten", "Tucker", "perplexity 30", "annotated"
    for word in (*words, "repulsion by all pairs on a grid"):
        assert word in text
    assert "Anonymous" not in text
    text = compose_methods_text(recipe(tmp_path, cells).saved)
    assert "more than 3 % mitochondrial counts" in text
    assert 'levels of "day" were mixed in the components by Harmony' in text
    assert "Wolock" in text
    every = replace(RECIPE, min_genes=0, min_cells=0)
    text = compose_methods_text(of_file(path, space="X", recipe=every).play().saved)
    assert "cells with no genes (1), and genes in no cell (" in text
    desk, settings = of_file(path), ({"repulsion": r} for r in (99, 300))
    update = desk.session.settings.update
    desk.play(at=10, then=lambda: [update(**one) for one in settings])
    assert len(desk.session.run_record.steered) == 1
    assert "changed while it ran" not in compose_methods_text(desk.saved)
    update(init="gradient_pca")
    text = compose_methods_text(desk.play(desk.session.continue_run()).saved)
    assert "went on from an earlier map" in text
    assert "Tucker" not in text
    text = compose_methods_text(a_part(tmp_path, cells).saved)
    assert "Raw counts of 239 of 240 cells" in text
    assert "of these cells." in text


def test_what_cannot_be_written_is_told(cells, tmp_path):
    desk = of_file(tmp_path / "cells.h5ad")
    with pytest.raises(DataError, match="press Run first"):
        write_code(desk.maps.to_saved_session(), tmp_path / "map.ipynb")
    desk.play()
    with pytest.raises(DataError, match="choose a name that ends in"):
        write_code(desk.maps.to_saved_session(), tmp_path / "map.md")
    saved = desk.maps.to_saved_session()
    lost = replace(saved.maps[0], record=replace(saved.maps[0].record, is_branch=True))
    with pytest.raises(DataError, match="went on from another map"):
        write_code(replace(saved, maps=(lost,)), tmp_path / "map.ipynb")
    archive.save_session(saved, tmp_path / "s.zip")
    for ending in (".ipynb", ".txt"):
        with pytest.raises(DataError, match="are not loaded"):
            write_code(
                archive.load_session(tmp_path / "s.zip"), tmp_path / f"map{ending}"
            )
    (tmp_path / "map_cells.csv").write_text("a person's")
    with pytest.raises(DataError, match=r"file map_cells\.csv is there"):
        write_code(saved, tmp_path / "map.ipynb")
    left = {"cells.h5ad", "s.zip", "map_cells.csv"}
    assert {p.name for p in tmp_path.iterdir()} == left


def test_a_name_is_no_markup_of_a_notebook(cells, tmp_path):
    """Nor are a column, a note or a title; a viewer of notebooks loads no picture."""
    markdown = pytest.importorskip("markdown_it").MarkdownIt()
    picture, path = "![p](http://a.b/c.png)", tmp_path / "map.ipynb"
    desk = of_file(tmp_path / "cells.h5ad").play()
    first, second = desk.book.clusters[:2]
    desk.book.rename(first.id, f"{picture} *T* `x` &amp; <b>")
    desk.book.rename(second.id, f"`{picture}")
    desk.book.set_note(second.id, f"# {picture}")
    desk.session.add_columns(Dataset.with_map_column, f"`{picture}", np.arange(240.0))
    desk.saw(np.arange(240) < 99, title=picture)
    write_code(desk.maps.to_saved_session(), path)
    every = json.loads(path.read_text())["cells"]
    texts = ["".join(x["source"]) for x in every if x["cell_type"] == "markdown"]
    html = "".join(map(markdown.render, texts))
    assert "<img" not in html
    assert "<b>" not in html
    shown = unescape(re.sub("<.*?>", "", html))
    assert shown.count(picture) == 6
    assert f"{picture} *T* `x` &amp; <b> (" in shown
