"""Goes through the tutorials in a real window, and saves their pictures.

    xvfb-run -a -s "-screen 0 1600x1000x24" python tools/tutorial_pictures.py \
        --data FOLDER [--only cells conditions ...] [--out docs/images]

FOLDER holds the files that the tutorials name: ``covid_balf_counts.h5ad``, the folder
``nuclei_dsb2018`` and ``newsgroups_5000.npz`` with its texts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from skimage.io import imsave

from napari_embedding_game.ui.style.plot_canvas import PlotCanvas
from palette import in_few_colors, palette_of
from person import PLATE, TEACH, Person
from window import opened, picture

WINDOW = (1500, 950)
N_EXAMPLES = 10
"""Pictures that are sorted into each box."""
N_SOME = 100
"""Points of a cluster worth a picture."""
LARGEST = 250_000
"""Bytes of a picture."""
OUT = Path(__file__).parents[1] / "docs" / "images"

Shoot = Callable[[str], None]


def cells(person: Person, data: Path, shoot: Shoot, out: Path) -> None:
    """From raw counts to named cells."""
    import scanpy as sc

    person.open(data / "covid_balf_counts.h5ad")
    shoot("cells_open")
    person.run()
    judge(person)
    shoot("cells_map")
    person.set_clusters(10)
    wanted = largest_with(person, "FABP4")
    person.choose(wanted)
    print("markers:", ", ".join(person.markers()[:12]))
    shoot("cells_markers")
    person.click_marker(person.markers().index("C1QB"))
    person.press_escape()
    person.look_away()
    person.scroll_dock(1)
    shoot("cells_gene")
    person.color_by("Cluster")
    person.scroll_dock(0)
    person.choose(wanted)
    person.rename("Alveolar macrophages")
    person.press_escape()
    person.look_away()
    shoot("cells_named")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "covid_balf_counts_map.h5ad"
        person.save(path)
        adata = sc.read_h5ad(path)
    print(adata)
    figure = sc.pl.embedding(
        adata,
        basis="X_embedding_game",
        color="embedding_game_cluster",
        show=False,
        return_fig=True,
    )
    figure.savefig(out / "cells_scanpy.png", dpi=70, bbox_inches="tight")


def judge(person: Person) -> None:
    """Wait until it is known how good the map and how firm its clusters are."""
    line, strip = (
        person.dock.trust_controls.summary,
        person.dock.cluster_pane.slider.strip,
    )
    person.wait(lambda: line.text().startswith("Trustworthy"), "the quality")
    person.wait(lambda: strip.firmness and strip.firmness.is_complete, "the firmness")


def largest_with(person: Person, name: str) -> int:
    """Return the largest of the clusters of which most cells express a gene."""
    return clusters_with(person, name)[0]


def clusters_with(person: Person, name: str, share: float = 0.6) -> list[int]:
    """Return the clusters of which such a share expresses a gene, the largest first."""
    dataset = person.session.dataset
    column = dataset.profile[:, dataset.profile_names.index(name)]
    expressed = column.toarray().ravel() > 0
    labels = person.session.clusters.labels
    sizes = {
        cluster: int((labels == cluster).sum())
        for cluster in set(labels.tolist())
        if expressed[labels == cluster].mean() > share
    }
    return sorted(sizes, key=lambda cluster: -sizes[cluster])


def conditions(person: Person, data: Path, shoot: Shoot, out: Path) -> None:
    """From counts of two conditions to the genes that differ, and the notebook."""
    began = time.perf_counter()
    person.open(data / "ifnb_pbmc_counts.h5ad")
    recipe = person.dock.data_controls.recipe_panel
    person.unfold(recipe.fold)
    person.press(recipe.doublets)
    shoot("conditions_quality")
    person.run()
    print(person.dock.data_controls.notes.text())
    person.unfold(person.dock.trust_fold)
    person.wait(person.dock.trust_controls.warning.isVisible, "the quality")
    print(person.dock.trust_controls.note.text())
    person.show(person.dock.trust_controls.note)
    person.split_by("stim")
    shoot("conditions_apart")
    person.mix_samples("stim")
    note = person.dock.trust_controls.note
    person.wait(lambda: "same group" in note.text(), "the quality")
    print(note.text())
    person.show(note)
    person.look_away()
    shoot("conditions_mixed")
    person.split_by("Nothing: one map")
    person.set_clusters(12)
    one, other, *_ = clusters_with(person, "S100A8", 0.5)
    person.choose(one)
    person.choose_too(other)
    person.merge()
    person.rename("Monocytes")
    found = person.compare("stim", "STIM")
    print("in monocytes:", ", ".join(found[:15]))
    person.look_away()
    shoot("conditions_compared")
    person.open_tab("Volcano")
    shoot("conditions_volcano")
    person.open_tab("Selection")
    person.click_marker(found.index("CXCL10"))
    person.press_escape()
    person.split_by("stim")
    person.look_away()
    shoot("conditions_gene")
    person.open_tab("Expression")
    person.wait(lambda: person.dock.plots_tab.expression.result, "the expression")
    shoot("conditions_dots")
    with tempfile.TemporaryDirectory() as folder:
        person.save(Path(folder) / "ifnb.ipynb")
    seconds = time.perf_counter() - began
    print(
        f"{person.n_clicks} clicks and words, {seconds:.0f} s with all that is computed"
    )


def nuclei(person: Person, data: Path, shoot: Shoot, out: Path) -> None:
    """From an image and its labels to nuclei one can see."""
    folder = data / "nuclei_dsb2018"
    person.drop(folder / "images" / "0021.png").name = "nuclei"
    labels = person.convert_to_labels(person.drop(folder / "labels" / "0021.png"))
    labels.name = "nuclei labels"
    shoot("nuclei_open")
    person.run()
    shoot("nuclei_map")
    clusters = person.session.clusters.clusters
    person.choose(clusters[0].id)
    person.open_tab("Pictures")
    labels = person.dock.controller.workspace.linked_layers.current.labels
    person.show_contours()
    person.look_away()
    shoot("nuclei_pictures")
    rows = person.session.selection.rows
    middle = np.array(labels.data.shape) / 2
    centers = person.session.dataset.objects.centers[rows]
    person.click_object(int(rows[((centers - middle) ** 2).sum(axis=1).argmin()]))
    person.look_away()  # the cluster stays in view: its picture is among them
    shoot("nuclei_lit")
    both = zip(("round", "long"), roundest_and_longest(person), strict=True)
    for name, cluster in both:
        person.choose(cluster)
        person.sort(name, N_EXAMPLES)
    person.learn()
    print(person.open_widget(TEACH).state.text())
    person.press_escape()
    person.look_away()
    shoot("nuclei_taught")


def roundest_and_longest(person: Person) -> tuple[int, int]:
    """Return the clusters of the roundest and of the longest nuclei."""
    dataset, book = person.session.dataset, person.session.clusters
    long = dataset.profile[:, dataset.profile_names.index("eccentricity")]
    sized = [c.id for c in book.clusters if c.size >= 2 * N_EXAMPLES]
    sized.sort(key=lambda c: float(long[book.labels == c].mean()))
    return sized[0], sized[-1]


def plate(person: Person, data: Path, shoot: Shoot, out: Path) -> None:
    """Measure a plate of twelve made-up fields, and see a cluster by well."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "plate"
        make_plate(folder)
        person.open_images(folder)
        person.run()
        dose = person.session.dataset.obs["dose"].astype(int).to_numpy()
        labels = person.session.clusters.labels
        sized = [c.id for c in person.session.clusters.clusters if c.size >= 15]
        means = {cluster: dose[labels == cluster].mean() for cluster in sized}
        person.choose(max(means, key=means.__getitem__))
        person.open_widget(PLATE)
        person.look_away()
        shoot("plate_wells")


def make_plate(folder: Path) -> None:
    """Write twelve images with labels, and a table of doses: more swell at higher."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    grid = np.mgrid[:180, :180]
    table = ["well,dose"]
    for row, column in product("ABC", range(1, 5)):
        image = rng.normal(400, 40, grid.shape[1:])
        labels = np.zeros(image.shape, np.uint16)
        places = [*product(range(18, 170, 30), repeat=2)]
        for number, place in enumerate(rng.permutation(places)[:18], 1):
            swells = rng.random() < 0.2 * (column - 1)
            radii = rng.uniform(9, 12, 2) if swells else rng.uniform((6, 4), (8, 5))
            y, x = grid - (place + rng.uniform(-3, 3, 2))[:, None, None]
            angle = rng.uniform(0, np.pi)
            along = (x * np.cos(angle) + y * np.sin(angle)) / radii[0]
            across = (y * np.cos(angle) - x * np.sin(angle)) / radii[1]
            inside = along**2 + across**2 < 1
            labels[inside] = number
            bright = 1800 if swells else 900
            image[inside] += bright * (1 - 0.5 * (along**2 + across**2))[inside]
        well = f"{row}{column:02d}"
        imsave(folder / f"{well}.tif", image.astype(np.uint16), check_contrast=False)
        imsave(folder / f"{well}_labels.tif", labels, check_contrast=False)
        table.append(f"{well},{10 ** (column - 1)}")
    (folder / "layout.csv").write_text("\n".join(table))


def texts(person: Person, data: Path, shoot: Shoot, out: Path) -> None:
    """Read the texts of a cluster."""
    person.open(data / "newsgroups_5000.npz")
    person.run()
    judge(person)
    shoot("texts_map")
    person.choose(purest(person, "label"))
    person.look_away()
    shoot("texts_read")


def purest(person: Person, column: str) -> int:
    """Return the cluster of some size that has most of one value of a column."""
    book, values = person.session.clusters, person.session.dataset.obs[column]
    sized = [cluster.id for cluster in book.clusters if cluster.size >= N_SOME]
    return max(
        sized,
        key=lambda c: values[book.labels == c].value_counts(normalize=True).iloc[0],
    )


def tissue(person: Person, data: Path, shoot: Shoot, out: Path) -> None:
    """Show cells in tissue beside their map, and the map of each section."""
    person.open_sample("Simulated tissue (20,000 cells)")
    person.run()
    person.set_clusters(8)
    person.choose_in(person.dock.selection_controls.shown, "Map and tissue")
    judge(person)
    person.look_away()
    shoot("tissue_both")
    person.split_by("section")
    shoot("tissue_split")
    person.split_by("Nothing: one map")
    pane = person.dock.plots_tab.neighborhoods
    person.open_tab("Tissue")
    person.wait(lambda: pane.result is not None, "the neighbourhoods of clusters")
    of_clusters = pane.result
    person.choose_in(pane.grouping, "cell_type")
    person.wait(lambda: pane.result is not of_clusters, "those of types")
    person.look_away()
    shoot("tissue_neighbors")
    former = person.session.run
    person.choose_in(person.dock.data_controls.second_space, "Cells around")
    person.wait(lambda: person.session.run is not former, "the game of two spaces")
    person.wait(lambda: person.session.state == "finished", "the end of the game")
    share = person.dock.method_controls.controls["second_share"]
    person.show(share.native)
    share.value = 0.7
    person.wait(lambda: person.session.state == "running", "the next game")
    person.wait(lambda: person.session.state == "finished", "the end of the game")
    person.color_by("domain")
    person.look_away()
    shoot("tissue_domains")


TUTORIALS = {
    "cells": cells,
    "conditions": conditions,
    "nuclei": nuclei,
    "plate": plate,
    "texts": texts,
    "tissue": tissue,
}


def save(person: Person, path: Path) -> None:
    """Save the window as a small PNG, once all is drawn."""
    plots = [x for x in person.dock.findChildren(PlotCanvas) if x.plot is not None]
    person.wait(
        lambda: not any(x.needs_paint and x.isVisible() for x in plots), "plots"
    )
    person.rest(1)
    shown = picture(person)
    in_few_colors(shown, palette_of(shown)).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {size / 1000:.0f} kB")
    if size > LARGEST:
        raise SystemExit(f"{path.name} is larger than {LARGEST / 1000:.0f} kB.")


def main() -> None:
    """Make the pictures of the tutorials that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="*", choices=TUTORIALS, default=[*TUTORIALS])
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    for name in arguments.only:
        with opened(*WINDOW) as person:

            def shoot(shot: str, person: Person = person) -> None:
                save(person, arguments.out / f"{shot}.png")

            TUTORIALS[name](person, arguments.data, shoot, arguments.out)


if __name__ == "__main__":
    main()
