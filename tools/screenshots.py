r"""Shows the docks in each of their states; finds what is cut off or disabled there.

    xvfb-run -a -s "-screen 0 2100x1300x24" python tools/screenshots.py OUT \
        [--only cells digits nuclei space large ...] [--themes dark light system] \
        [--widths 1100 1500]

For each state, theme and width a picture of the window is saved in the folder OUT.  The
data are made up, or are samples.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QTabBar,
    QToolButton,
    QWidget,
)

from napari_embedding_game.ui.inspector.two_clusters import LOOKING
from person import LEFT, PLUGIN, Person
from window import opened, picture

HEIGHTS = {1100: 750, 1500: 950, 2000: 1200}
"""Of the window, for each width."""
THEMES = ("dark", "light", "system")
N_CELLS, N_GENES, N_KINDS, N_MANY = 1_200, 300, 5, 250_000
N_FRAMES, N_OBJECTS = 20, 40
COMPARED = {QComboBox: 26, QAbstractSpinBox: 20, QCheckBox: 20, QRadioButton: 20,
          QPushButton: 0, QToolButton: 0, QLabel: 0}  # fmt: skip
"""Pixels of a widget that its arrow, its box or its edges take from the text."""
Shoot = Callable[[str], None]


# --- What is cut off


def cut_texts(root: QWidget) -> Iterator[str]:
    """Yield what is visible below a widget and disabled, or too small for its text."""
    for widget in root.findChildren(QWidget):
        if widget.isVisible() and not widget.visibleRegion().isEmpty():
            if not widget.isEnabled():
                yield f"{type(widget).__name__} is disabled"
            for text, needed, there in _fits(widget):
                if needed > there:
                    kind = type(widget).__name__
                    yield f"{kind} {text!r}: {needed} of {there} pixels"


def _fits(widget: QWidget) -> Iterator[tuple[str, int, int]]:
    """Yield texts of a widget, the pixels that each needs, and those it has."""
    wide = widget.fontMetrics().horizontalAdvance
    if isinstance(widget, QTabBar):
        for place in filter(widget.isTabVisible, range(widget.count())):
            text = widget.tabText(place)
            yield text, wide(text), widget.tabRect(place).width()
    elif isinstance(widget, QHeaderView):
        is_flat = widget.orientation() == Qt.Orientation.Horizontal
        for section in range(widget.count() if is_flat else 0):
            text = widget.model().headerData(section, widget.orientation())
            if isinstance(text, str) and not widget.isSectionHidden(section):
                yield text, wide(text), widget.sectionSize(section)
    elif isinstance(widget, QLabel) and widget.wordWrap():
        needed = widget.heightForWidth(widget.width())
        yield f"{widget.text()} (height)", needed, widget.height()
    else:
        for kind, beside in COMPARED.items():
            if isinstance(widget, kind):
                text = widget.currentText() if kind is QComboBox else widget.text()
                if "<" not in text:
                    text = max(text.replace("&", "").split("\n"), key=wide)
                    yield text, wide(text), widget.width() - beside


def texts_of(root: QWidget) -> Iterator[str]:
    """Yield every text and tooltip of a widget and of all inside, hidden ones too."""
    for widget in (root, *root.findChildren(QWidget)):
        yield QWidget.toolTip(widget)  # some call a part of theirs as Qt's own
        if isinstance(widget, QLabel | QAbstractButton):
            yield widget.text()
        if isinstance(widget, QLineEdit):
            yield widget.placeholderText()
        for action in QWidget.actions(widget):
            yield action.text()
            if action.toolTip() not in action.text():  # by default that, without "…"
                yield action.toolTip()
        if isinstance(widget, QComboBox):
            yield from map(widget.itemText, range(min(widget.count(), 12)))
        if isinstance(widget, QTabBar):
            yield from map(widget.tabText, range(widget.count()))


# --- The states


def cells(person: Person, shoot: Shoot, folder: Path) -> None:
    """Counts of cells: from the start to plots of genes."""
    dock, session = person.dock, person.session
    shoot("start")
    person.open(_made_cells(folder / "made_cells.h5ad"))
    person.unfold(dock.data_controls.recipe_panel.fold)
    shoot("ready")
    session.settings.max_iter = 200_000
    person.press(dock.run_controls.run_button)
    person.wait(lambda: session.snapshot is not None, "the first frame")
    shoot("running")
    person.press(dock.run_controls.pause_button)
    person.wait(lambda: session.state == "paused", "the pause")
    shoot("paused")
    person.press(dock.run_controls.stop_button)
    person.wait(lambda: session.state == "stopped", "the stop")
    session.settings.max_iter = None
    for rate in (10.0, None):  # the first makes a collapse, and a warning
        session.settings.learning_rate = session.settings.landmark_learning_rate = rate
        person.run()
        shoot("map" if rate is None else "warned")
    person.unfold(dock.trust_fold)
    person.wait(
        lambda: "Trustworthy" in dock.trust_controls.summary.text(), "the quality"
    )
    shoot("quality")
    strip = dock.timeline_controls
    strip.begin_comparison(session.timeline.marks[-1].number)
    shoot("comparing")
    person.press(strip.end)
    person.show_mark(len(session.timeline.marks) - 2)
    shoot("looking_back")
    person.unfold(dock.method_controls.more)
    person.show(dock.method_controls.more)
    shoot("method")
    person.show_mark(len(session.timeline.marks) - 1)
    person.split_by("sample")
    person.show(dock.display_controls)
    shoot("split")
    person.split_by("Nothing: one map")
    person.choose(session.clusters.clusters[0].id)
    person.markers()
    person.look_away()
    shoot("markers")
    person.compare("condition", "treated")
    person.look_away()
    shoot("conditions")
    for tab in ("Volcano", "Expression"):
        person.open_tab(tab)
        person.rest(1)
        shoot(tab.lower())
    plots = dock.plots_tab
    plots.tabs.setCurrentWidget(plots.conditions)
    for pane in plots.conditions.choice.choices:
        plots.conditions.choice.value = pane
        person.rest(2)
        shoot(f"plots_{type(pane).__name__.lower()}")
    person.choose(session.clusters.clusters[0].id)
    person.press(person.dock.selection_controls.embed_button)
    person.wait(lambda: session.state == "finished", "the map of the selection")
    shoot("child_map")


def digits(person: Person, shoot: Shoot, folder: Path) -> None:
    """Pictures, the brush, and examples of classes."""
    person.open_sample("Handwritten digits (1,797 images)")
    person.run()
    first, second, *_ = person.session.clusters.clusters
    person.choose(first.id)
    person.open_tab("Pictures")
    person.look_away()
    shoot("pictures")
    person.press_escape()
    person.press(person.dock.selection_controls.brush_button)
    middle = person.canvas.rect().center()
    QTest.mousePress(person.canvas, LEFT, pos=middle)
    for step in range(12):
        QTest.mouseMove(person.canvas, middle + QPoint(6 * step, 0))
        person.rest(0.05)
    shoot("brush")
    QTest.mouseRelease(person.canvas, LEFT)
    person.rest(0.5)
    person.press(person.dock.selection_controls.brush_button)
    person.press_escape()
    for name, cluster in (("round and upright", first), ("others", second)):
        person.choose(cluster.id)
        person.sort(name, 3)
    person.learn()
    person.look_away()
    shoot("taught")


def nuclei(person: Person, shoot: Shoot, folder: Path) -> None:
    """Objects of an image."""
    person.open_sample("Nuclei of a stained section (image + labels)")
    shoot("nuclei")
    person.run()
    person.choose(person.session.clusters.clusters[0].id)
    person.open_tab("Pictures")
    person.look_away()
    shoot("nuclei_pictures")


def space(person: Person, shoot: Shoot, folder: Path) -> None:
    """A map of three dimensions."""
    person.open_sample("Blood cells, PBMC (700 cells)")
    person.run()
    person.dock.method_controls.controls["n_components"].value = 3
    person.wait(lambda: person.session.state == "finished", "the end in space")
    shoot("in_space")


def large(person: Person, shoot: Shoot, folder: Path) -> None:
    """More points than pixels, which are drawn as a density."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 6))[rng.integers(12, size=N_MANY)] * 3
    np.save(folder / "many.npy", (rows + rng.normal(size=rows.shape)).astype("f4"))
    person.open(folder / "many.npy")
    person.session.settings.max_iter = 30
    person.run()
    shoot("density")


def objects(person: Person, shoot: Shoot, folder: Path) -> None:
    """Objects that are measured, saved and opened again without their layers."""
    from skimage.data import coins
    from skimage.measure import label
    from skimage.morphology import remove_small_objects

    image = coins()
    labels = label(remove_small_objects(image > 110, max_size=60))
    person.viewer.add_image(image, name="coins")
    person.viewer.add_labels(labels, name="coins_labels")
    shoot("measure")
    person.run()
    path = folder / "coins.zip"
    person.dock.controller.writing.save(path)
    person.wait(path.exists, "the session file")
    person.viewer.layers.clear()
    person.dock.controller.reading.open_session(path)
    person.wait(
        lambda: not person.dock.data_controls.relink_panel.isHidden(), "what is missing"
    )
    shoot("relink")


def firmness(person: Person, shoot: Shoot, folder: Path) -> None:
    """Each answer on two clusters, with the bars of the number of clusters above."""
    rng = np.random.default_rng(0)
    angles = np.pi * rng.random(1_500)
    arc = 10 * np.column_stack([np.cos(angles), np.sin(angles)])
    few = rng.normal(size=(400, 8))
    few[:8, 0] += 30
    for answer, rows in {
        "gap": rng.normal(size=(900, 8)) + 8 * (np.arange(900)[:, None] < 300),
        "no_gap": np.pad(arc, ((0, 0), (0, 6))) + rng.normal(size=(1_500, 8)),
        "one_group": rng.normal(size=(900, 8)),
        "too_few": few,
    }.items():
        np.save(folder / f"{answer}.npy", rows.astype(np.float32))
        person.open(folder / f"{answer}.npy")
        person.run()
        person.set_clusters(2)
        strip = person.dock.cluster_pane.slider.strip
        person.show(strip)
        person.wait(
            lambda s=strip: s.firmness is not None and s.firmness.is_complete,
            "the bars",
        )
        shoot(f"bars_{answer}")
        first, second = (cluster.id for cluster in person.session.clusters.clusters)
        person.choose(first)
        person.choose_too(second)
        two = person.inspector.two
        person.press(two.ask)
        person.wait(
            lambda two=two: two.answer.text() not in ("", LOOKING), "the answer"
        )
        person.look_away()
        print(f"{answer}: {two.answer.text()}")
        shoot(f"answer_{answer}")


def widgets(person: Person, shoot: Shoot, folder: Path) -> None:
    """Widgets of the Plugins menu, beside the map of cells of a plate."""
    person.open(_made_cells(folder / "made_cells.h5ad"))
    person.run()
    for name in ("Plate", "Reference", "Tracks"):
        widget = person.open_widget(f"{name} ({PLUGIN})")
        shoot(name.lower().replace(" ", "_"))
        person.viewer.window.remove_dock_widget(widget)


def tissue(person: Person, shoot: Shoot, folder: Path) -> None:
    """Cells in tissue: beside the map and alone, in sections, on a picture, in 3-D."""
    shown = person.dock.selection_controls.shown
    person.open_sample("Simulated tissue (20,000 cells)")
    person.run()
    person.set_clusters(8)
    person.choose_in(shown, "Map and tissue")
    person.look_away()
    shoot("tissue_beside")
    person.choose(person.session.clusters.clusters[0].id)
    person.look_away()
    shoot("tissue_selected")
    person.press_escape()
    person.split_by("section")
    shoot("tissue_split")
    person.split_by("Nothing: one map")
    person.choose_in(shown, "Tissue")
    shoot("tissue_alone")
    person.open_tab("Tissue")
    person.rest(2)
    shoot("plots_tissue")
    for name, n_axes in (("picture", 2), ("depth", 3)):
        person.open(_made_tissue(folder / f"{name}.h5ad", n_axes))
        person.run()
        person.choose_in(shown, "Map and tissue")
        person.look_away()
        shoot(f"tissue_{name}_beside")
        person.choose_in(shown, "Tissue")
        shoot(f"tissue_{name}_alone")


def tracks(person: Person, shoot: Shoot, folder: Path) -> None:
    """Objects that move, with a Tracks layer: a moment, a track, and the widget."""
    image, labels, vertices = _made_movie()
    person.viewer.add_image(image, name="movie")
    person.viewer.add_labels(labels, name="cells")
    person.viewer.add_tracks(vertices, name="tracks")
    shoot("tracks_measure")
    person.run()
    person.viewer.dims.set_current_step(0, N_FRAMES // 2)
    shoot("tracks_map")
    person.click_point(N_FRAMES // 2)
    person.look_away()
    shoot("tracks_moment")
    person.double_click_point(N_FRAMES // 2)
    person.look_away()
    shoot("tracks_track")
    widget = person.open_widget(f"Tracks ({PLUGIN})")
    shoot("tracks_widget")
    person.viewer.window.remove_dock_widget(widget)


PARTS = {
    each.__name__: each
    for each in (
        cells, objects, widgets, firmness, digits, nuclei, space, large, tissue, tracks
    )
}  # fmt: skip


def _made_cells(path: Path) -> Path:
    """Write counts of cells of some kinds, from samples and conditions."""
    import anndata
    import pandas as pd

    rng = np.random.default_rng(0)
    kind, sample = (rng.integers(n, size=N_CELLS) for n in (N_KINDS, 4))
    rates = rng.gamma(2.0, 1.0, N_GENES) * rng.gamma(40, 1 / 40, (4, N_GENES))[sample]
    own = np.arange(N_GENES) // 3
    rates += 12 * (own == kind[:, None])  # three genes for each kind
    level = "positive blood cell, activated"
    obs = pd.DataFrame(
        {
            "sample": pd.Categorical([f"donor_{s + 1}_PBMC" for s in sample]),
            "condition": pd.Categorical(np.where(sample % 2, "treated", "control")),
            "well": [f"{'ABCDEFGH'[i % 8]}{i % 12 + 1:02}" for i in range(N_CELLS)],
            "cell_type_of_the_atlas_level_2": [f"gene {k}-{level}" for k in kind],
        },
        index=[f"cell{i}" for i in range(N_CELLS)],
    )
    var = pd.DataFrame(index=[f"GENE{i}" for i in range(N_GENES)])
    counts = rng.poisson(rates).astype(np.float32)
    anndata.AnnData(counts, obs=obs, var=var).write_h5ad(path)
    return path


def _made_tissue(path: Path, n_axes: int) -> Path:
    """Write the made-up cells with positions; flat ones lie on a picture of tissue."""
    import anndata
    from skimage.data import immunohistochemistry

    adata = anndata.read_h5ad(_made_cells(path))
    picture = immunohistochemistry()
    rng = np.random.default_rng(1)
    sides = [2 * picture.shape[1], 2 * picture.shape[0], 200][:n_axes]
    adata.obsm["spatial"] = rng.uniform(0, sides, (adata.n_obs, n_axes))
    if n_axes == 2:
        factors = {"tissue_hires_scalef": 0.5, "spot_diameter_fullres": 20.0}
        library = {"images": {"hires": picture}, "scalefactors": factors}
        adata.uns["spatial"] = {"section": library}
    adata.write_h5ad(path)
    return path


def _made_movie() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return images and labels (t, y, x) of squares that move, and their tracks."""
    rng = np.random.default_rng(0)
    labels = np.zeros((N_FRAMES, 200, 300), np.int32)
    image, vertices = rng.normal(100, 3, labels.shape), []
    for t in range(N_FRAMES):
        for i in range(N_OBJECTS):
            y, x, side = 8 + 32 * (i // 8), 4 + 34 * (i % 8) + t, 8 + i % 5
            at = np.s_[t, y : y + side, x : x + side]
            labels[at] = i + 1
            image[at] += 4 * (t + i) + rng.normal(0, 5, labels[at].shape)
            vertices.append((i + 1, t, y + side / 2, x + side / 2))
    return image, labels, np.array(sorted(vertices), float)


def main() -> None:
    """Take the pictures that are asked for, and print what is cut off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=[*PARTS])
    parser.add_argument("--themes", nargs="*", choices=THEMES, default=[*THEMES])
    parser.add_argument("--widths", nargs="*", type=int, default=[*HEIGHTS])
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    said: set[str] = set()
    for name in chosen.only:
        with opened(1500, 950) as person, tempfile.TemporaryDirectory() as folder:

            def shoot(state: str, person: Person = person) -> None:
                window = person.viewer.window._qt_window
                for dock in person.viewer.window.dock_widgets.values():
                    said.update(texts_of(dock))
                for theme in chosen.themes:
                    person.viewer.theme = theme
                    for width in chosen.widths:
                        window.resize(width, HEIGHTS.get(width, 950))
                        person.rest(0.8)  # until everything is laid out anew
                        person.viewer.reset_view()
                        person.rest(0.2)
                        path = chosen.out / f"{state}_{width}_{theme}.png"
                        picture(person).save(path)
                        for dock in person.viewer.window.dock_widgets.values():
                            for told in sorted(set(cut_texts(dock))):
                                print(f"{state} {width}: {told}", flush=True)

            PARTS[name](person, shoot, Path(folder))
    n_words = sum(len(re.findall(r"[^\W\d_][\w'-]*", text)) for text in said)
    print(f"{n_words:,} words in {len(said):,} texts and tooltips")


if __name__ == "__main__":
    main()
