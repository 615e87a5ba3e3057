"""The tutorials, gone through in a real window with small data."""

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from skimage.io import imsave

KINDS = ("Macrophages", "T", "Epithelial")
PLANTED = 6
"""Genes that a kind of cell has and no other, the first ones."""


def gene_of(kind, number):
    return f"{kind}-{number}"


def write_counts(path, rng, kinds, rates, genes=(), twins=0, **obs):
    """Write counts of cells of three kinds, each with a few genes of its own.

    The first cells are two in one droplet, as many as there are twins.
    """
    for kind in range(3):
        own = slice(kind * PLANTED, (kind + 1) * PLANTED)
        rates[:, own] = np.where(kinds == kind, 8, 0.05)[:, None]
    names = [gene_of(kind, number) for kind in KINDS for number in range(PLANTED)]
    names += [f"gene{i}" for i in range(500 - len(names) - len(genes))]
    counts = rng.poisson(rates)
    counts[:twins] += rng.poisson(rates[::-1])[:twins]
    cells = anndata.AnnData(sp.csr_matrix(counts.astype(np.float32)))
    cells.var_names = [*names, *genes]
    kind = pd.Categorical.from_codes(kinds, KINDS)
    cells.obs = pd.DataFrame({"kind": kind, **obs}, [f"cell{i}" for i in range(240)])
    cells.write_h5ad(path)
    return path


@pytest.fixture
def counts_file(tmp_path):
    """Raw counts of 240 cells."""
    rng = np.random.default_rng(0)
    kinds = rng.permutation(np.repeat(np.arange(3), 80))
    rates = np.tile(rng.gamma(1.0, 1.0, 500), (240, 1))
    return write_counts(tmp_path / "c.h5ad", rng, kinds, rates, cluster=kinds + 20)


def cluster_of(person, wanted):
    """Return the cluster that most of the rows in a mask are in."""
    return int(np.bincount(person.session.clusters.labels[wanted]).argmax())


def test_from_raw_counts_to_named_cells(person, counts_file, tmp_path):
    person.open(counts_file)
    assert "raw counts" in person.dock.data_controls.recipe_panel.offer.text()
    for name, number in {"min_genes": 50, "n_top_genes": 200, "n_comps": 10}.items():
        person.dock.data_controls.recipe_panel.numbers[name].value = number
    person.run()
    person.set_clusters(3)
    is_wanted = (person.session.dataset.obs["kind"] == "Macrophages").to_numpy()
    person.choose(cluster_of(person, is_wanted))
    planted = {gene_of("Macrophages", number) for number in range(PLANTED)}
    assert set(person.markers()[:PLANTED]) == planted
    person.save_comparison(tmp_path / "markers.csv")
    person.click_marker(0)
    assert person.session.look.color_by in planted
    person.rename("Lung macrophages")
    out = tmp_path / "map.h5ad"
    person.save(out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what scanpy says of its own dependencies
        import scanpy as sc

        adata = sc.read_h5ad(out)
        figure = sc.pl.embedding(
            adata,
            basis="X_embedding_game",
            color="embedding_game_cluster",
            show=False,
            return_fig=True,
        )
    found = adata.obs["embedding_game_cluster"] == "Lung macrophages"
    np.testing.assert_array_equal(found, is_wanted)
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "Lung macrophages" in legend
    np.testing.assert_array_equal(
        adata.obsm["X_embedding_game"], person.session.snapshot.embedding
    )
    points = person.dock.controller.scene.map_layers.points
    person.wait(lambda: "cluster (file)" in points.features, "the layer's table")
    table = points.features
    assert list(table["cluster (file)"]) == list(adata.obs["cluster"])


@pytest.fixture
def conditions_file(tmp_path):
    """Counts of three kinds in two conditions, which parts them.

    Two genes answer in one kind alone; some cells are two in one droplet.
    """
    rng = np.random.default_rng(1)
    kinds = rng.permutation(np.repeat(np.arange(3), 80))
    treated = rng.random(240) < 0.5
    rates = np.tile(rng.gamma(1.0, 1.0, 500), (240, 1))
    answers = treated & (kinds == 0)
    rates[:, -2:] = np.where(answers, 12, 0.05)[:, None]
    rates[:, 100:200] *= np.where(treated, 2.5, 1)[:, None]
    stim = pd.Categorical(np.where(treated, "drug", "control"))
    genes = "answer1", "answer2"
    return write_counts(tmp_path / "c.h5ad", rng, kinds, rates, genes, 12, stim=stim)


def test_two_conditions_are_compared_inside_a_kind(person, conditions_file, tmp_path):
    person.open(conditions_file)
    recipe = person.dock.data_controls.recipe_panel
    person.unfold(recipe.fold)
    for name, number in {"n_top_genes": 200, "n_comps": 10}.items():
        recipe.numbers[name].value = number
    recipe.numbers["max_counts"].value = 1_000
    person.run()
    assert "more than 1,000 counts" in person.dock.data_controls.notes.text()
    person.unfold(person.dock.trust_fold)
    person.wait(person.dock.trust_controls.warning.isVisible, "the quality")
    assert "Batch effect of stim" in person.dock.trust_fold.button.text()
    person.mix_samples("stim")
    assert "Harmony mixed" in person.dock.data_controls.notes.text()
    person.split_by("stim")
    captions = person.session.view.panels.captions
    assert [name for name, _ in captions] == ["control", "drug"]
    person.split_by("Nothing: one map")
    person.set_clusters(3)
    obs = person.session.dataset.obs
    is_kind = (obs["kind"] == "Macrophages").to_numpy()
    person.choose(cluster_of(person, is_kind))
    person.rename("Macrophages")
    found = person.compare("stim", "drug")
    assert set(found[:2]) == {"answer1", "answer2"}
    pane = person.inspector.conditions
    n_treated = int((is_kind & (obs["stim"] == "drug").to_numpy()).sum())
    assert pane.state.text().startswith(f"{n_treated} cells against")
    person.save_comparison(tmp_path / "markers.csv")
    person.open_tab("Volcano")
    person.press_escape()
    person.split_by("stim")
    person.open_tab("Expression")
    dots = person.dock.plots_tab.expression
    person.wait(lambda: dots.result, "the expression")
    person.save(tmp_path / "map.ipynb")
    assert person.n_clicks < 50, person.n_clicks
    names = person.session.clusters.clustering.names_by_point
    clusters = pd.Series(names, obs.index.astype(str))
    check_notebook(tmp_path / "map.ipynb", clusters)
    shown = person.session.snapshot.embedding
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), shown)


def check_notebook(path, clusters):
    """Run a notebook from its file, and look at what it has made."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    save = 'import numpy as np; np.save("map.npy", adata.obsm["X_embedding_game"])'
    notebook.cells.append(nbformat.v4.new_code_cell(save))
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, resources=resources, timeout=120).execute()
    made = pd.read_csv(path.with_name("map_cells.csv"), index_col=0, dtype=str)
    named = clusters.astype(str)
    pd.testing.assert_series_equal(made["cluster"], named, check_names=False)
    code = "".join(cell.source for cell in notebook.cells)
    for call in ("batch_key=", "VolcanoPlot("):
        assert call in code
    pictures = sum("image/png" in str(cell.get("outputs")) for cell in notebook.cells)
    assert pictures >= 2  # the map, a comparison's volcano plot


@pytest.fixture
def image_and_labels():
    """48 discs: every other one is small and bright."""
    rng = np.random.default_rng(0)
    labels = np.zeros((160, 240), np.int32)
    image = rng.normal(20, 2, labels.shape)
    rows, columns = np.ogrid[:160, :240]
    for number in range(48):
        row, column = divmod(number, 8)
        middle = 14 + 26 * row, 15 + 30 * column
        radius = (8, 5)[number % 2] + rng.normal(0, 0.3)
        inside = (rows - middle[0]) ** 2 + (columns - middle[1]) ** 2 <= radius**2
        labels[inside] = number + 1
        image[inside] += (40, 150)[number % 2] + rng.normal(0, 4)
    return image.astype(np.float32), labels


# napari says so of every image that it converts to labels
@pytest.mark.filterwarnings("ignore:projection mode .mean. is not compatible")
def test_from_an_image_to_nuclei_and_back(person, image_and_labels, tmp_path, lit):
    image, labels = image_and_labels
    for name, pixels in {"nuclei": image, "masks": labels.astype(np.uint16)}.items():
        imsave(tmp_path / f"{name}.tif", pixels, check_contrast=False)
    person.drop(tmp_path / "nuclei.tif")
    person.convert_to_labels(person.drop(tmp_path / "masks.tif"))
    assert person.dock.run_controls.run_button.text() == "Measure and run"
    person.run()
    assert len(person.session.dataset.objects) == 48
    person.set_clusters(2)
    is_bright = person.session.dataset.objects.label_ids % 2 == 0
    person.choose(cluster_of(person, is_bright))
    np.testing.assert_array_equal(person.session.selection.points, is_bright)
    layer = person.dock.controller.workspace.linked_layers.current.labels
    assert lit(layer) == np.unique(labels[labels % 2 == 0])[1:].tolist()
    person.open_tab("Pictures")
    assert person.inspector.thumbnails.count() > 0
    person.show_contours()  # as the tutorial says, to see what is lit
    person.click_object(6)
    assert person.session.selection.rows.tolist() == [6]
    assert lit(layer) == [7]
