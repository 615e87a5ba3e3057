"""Worlds that tests have in common: rows, cells of some kinds, played sessions."""

import gzip
import struct
import warnings
from dataclasses import replace

import anndata
import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp
import tifffile
from anndata import AnnData
from flowio import create_fcs
from scipy.io import mmwrite

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.clustering import make_clustering_from_labels
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.images.measure import measure_labels_in_stages
from napari_embedding_game.data.loader import load
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.recipe import apply_recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.run.replay import replay_frames
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session

SMALL = Recipe(min_genes=20, min_cells=2, n_top_genes=100, n_comps=10)
RATES = np.random.default_rng(5).gamma(0.6, 2, (4, 150))
"""Of 150 genes in the kinds of cells A, B, C and D."""


def rows(X, **parts):
    """Return rows of numbers as a dataset, named 0, 1, ..."""
    n, d = X.shape
    values = {
        "name": "rows",
        "obs": pd.DataFrame(index=[str(i) for i in range(n)]),
        "var_names": [f"column {i}" for i in range(d)],
        "space": "X",
    }
    if not sp.issparse(X):
        X = np.asarray(X, np.float32)
    return Dataset.from_rows(X=X, **(values | parts))


def read(path, **options):
    """Read and check a file."""
    return finish(load(path, **options))


def prepared(source, name="cells", **numbers):
    """Return the components that a small recipe makes of the counts of an AnnData."""
    dataset = source if isinstance(source, Dataset) else from_anndata(source, name)
    return finish(apply_recipe(dataset, replace(SMALL, **numbers)))


def cells(n, kinds="ABC", seed=0, column="kind"):
    """Return counts of n cells, each of one of these kinds, by a column of ``obs``."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, len(kinds), n)
    rates = RATES[["ABCD".index(k) for k in kinds]]
    counts = rng.poisson(rates[kind]).astype(np.float32)
    obs = pd.DataFrame({column: pd.Categorical(np.array([*kinds])[kind])})
    obs.index = [f"s{seed}c{i}" for i in range(n)]
    genes = pd.DataFrame(index=[f"g{i}" for i in range(150)])
    return AnnData(sp.csr_matrix(counts), obs, genes)


def of_two_days(n=240):
    """Return counts of cells of kinds A, B and C from two days, on which genes differ.

    Cell 7 is empty: recipes leave it out.
    """
    rng = np.random.default_rng(0)
    kinds, days = np.arange(n) % 3, np.arange(n) // 3 % 2
    rates = rng.gamma(0.5, 2, (3, 300))
    rates = np.stack([rates, rates * rng.gamma(2, 0.7, 300)])[days, kinds]
    counts = rng.poisson(rates).astype(np.float32)
    counts[7] = 0
    obs = pd.DataFrame({"kind": pd.Categorical.from_codes(kinds, [*"ABC"])})
    obs["day"] = pd.Categorical(np.array(["mon", "tue"])[days])
    obs.index = [f"cell{i}" for i in range(n)]
    genes = pd.DataFrame(index=[f"gene{i}" for i in range(300)])
    return AnnData(sp.csr_matrix(counts), obs, genes)


def crowd():
    """Return counts of 400 cells of three kinds, and of 20 that are two of them."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.3, 3, (3, 200))
    depths = rng.uniform(0.6, 1.6, 400)[:, None]
    single = rng.poisson(rates[np.arange(400) % 3] * depths)
    pairs = np.array([(i % 3, (i + 1) % 3) for i in range(20)])
    both = rng.poisson(rates[pairs].sum(axis=1))
    return np.concatenate([single, both]).astype(np.float32)


def raw_counts(n=60, n_genes=150, **obs):
    """Return counts of cells of one kind, with these columns of metadata."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(1.0, 2.0, (1, n_genes)), (n, n_genes))
    names = pd.DataFrame(obs, index=[f"cell{i}" for i in range(n)])
    return AnnData(counts.astype(np.float32), names)


def field(seed, n=5, shape=(40, 50)):
    """Return a 16-bit image and labels of n objects whose ids have gaps: 3, 6, 9 ..."""
    rng = np.random.default_rng(seed)
    labels = np.zeros(shape, np.uint16)
    for number in range(n):
        row, column = divmod(number, shape[1] // 14)
        height, width = rng.integers(4, 11, 2)
        top, left = 14 * row + 1, 14 * column + 1
        labels[top : top + height, left : left + width] = 3 * (number + 1)
    return rng.integers(300, 4000, shape).astype(np.uint16), labels


def write_field(folder, name, seed, n=5, shape=(40, 50)):
    """Write such an image and its labels, and return them."""
    image, labels = field(seed, n, shape)
    tifffile.imwrite(folder / f"{name}.tif", image)
    tifffile.imwrite(folder / f"{name}_labels.tif", labels)
    return image, labels


def measure(image, labels, **options):
    """Measure every object of a label image at once."""
    return finish(measure_labels_in_stages(image, labels, **options))


def session_of(dataset, engine=None, **settings):
    """Return a session with data and settings, on which nothing is played yet."""
    session = Session(engine, UNPACED)
    session.load(dataset)
    session.settings.update(**settings)
    return session


def layout(n, n_clusters=2, **parts):
    """What came of a run over n rows: clusters in turn, positions at random."""
    rng = np.random.default_rng(0)
    known = {
        "embedding": rng.normal(size=(n, 2)).astype(np.float32),
        "landmarks": rng.normal(size=(n_clusters, 2)).astype(np.float32),
        "labels": np.arange(n, dtype=np.int32) % n_clusters,
        "pressure": rng.random(n).astype(np.float32),
        "energy": 1.0,
    }
    return EmbeddingResult(Snapshot(iteration=0, n_iter=0, **known), **parts)


def clustering(labels, names, colors=None, notes=None):
    """Clusters with names, colours and notes, by their numbers."""
    known = make_clustering_from_labels(np.asarray(labels, np.int32))
    said = {"name": names, "color": colors or {}, "note": notes or {}}
    clusters = (
        replace(one, **{k: v[one.id] for k, v in said.items() if one.id in v})
        for one in known.clusters
    )
    return replace(known, clusters=tuple(clusters))


def play(session, run=None, at=None, then=None, until=None):
    """Play a run to its end, by default a new one; return the last snapshot.

    From an iteration on something is done `then`; `until` another one is stopped.
    """
    run = session.begin() if run is None else run
    for progress in run.iter_progress():
        session.receive_frame(run, progress)
        shown = -1 if progress.snapshot is None else progress.snapshot.iteration
        if at is not None and shown >= at:
            at = None
            then()
        elif until is not None and shown >= until:
            session.stop()
        elif session.state == "finished":
            break
    return session.snapshot


def frames_to(session, until=50, frames=None):
    """Play on to an iteration, by default a new run; return what frames are left."""
    frames = session.begin().iter_progress() if frames is None else frames
    for progress in frames:
        session.receive_frame(session.run, progress)
        if progress.snapshot is not None and progress.snapshot.iteration >= until:
            break
    return frames


class Desk:
    """A session with its maps, as a person has them."""

    def __init__(self, dataset=None, engine=None, **settings):
        self.session = Session(engine, UNPACED)
        self.maps = MapTree(self.session)
        self.book = self.session.clusters
        if dataset is not None:
            self.session.load(dataset)
        self.session.settings.update(**settings)

    @classmethod
    def opened(cls, path):
        """Open a session file, or the .h5ad of a map, of which nothing is missing."""
        opened, troubles = archive.open_session(path)
        assert troubles == []
        return cls.restored(opened)

    @classmethod
    def restored(cls, saved):
        """Open what was read of a session file."""
        desk = cls()
        desk.maps.restore(saved)
        return desk

    def play(self, run=None, **acts):
        """Play a run, see the function."""
        play(self.session, run, **acts)
        return self

    def save(self, path):
        """Write a session file, and return where it is."""
        archive.save_session(self.maps.to_saved_session(), path)
        return path


def replay(X, record):
    """Return the last snapshot of a recorded run that is played again."""
    *_, last = replay_frames(X, record)
    return last


def annotated(n=12, n_genes=6, **obsm):
    """Return an AnnData of cells of types B and T, with spaces of so many columns."""
    rng = np.random.default_rng(0)
    X = sp.random(n, n_genes, 0.5, format="csr", dtype=np.float32, random_state=0)
    obs = {"type": pd.Categorical(["B", "T"] * (n // 2)), "depth": np.arange(n)}
    adata = AnnData(
        X,
        pd.DataFrame(obs, index=[f"cell{i}" for i in range(n)]),
        pd.DataFrame(index=[f"gene{i}" for i in range(n_genes)]),
        layers={"dense": rng.normal(size=(n, n_genes))},
    )
    adata.obsm.update({key: rng.normal(size=(n, k)) for key, k in obsm.items()})
    return adata


def write_adata(adata, path, zarr_format=2):
    """Write .h5ad or .zarr without what anndata warns of, and return where it is."""
    with (
        warnings.catch_warnings(action="ignore"),
        anndata.settings.override(zarr_write_format=zarr_format),
    ):
        (adata.write_zarr if path.suffix == ".zarr" else adata.write_h5ad)(path)
    return path


def to_wkb(*rings):
    """Return a point (x, y), or a polygon of rings, in well-known binary."""
    if np.ndim(rings[0]) == 1:
        return struct.pack("<BI2d", 1, 1, *rings[0])
    corners = [np.asarray([*ring, ring[0]], "<f8") for ring in rings]
    parts = [struct.pack("<I", len(ring)) + ring.tobytes() for ring in corners]
    return struct.pack("<BII", 1, 3, len(rings)) + b"".join(parts)


def annotate(adata, regions, ids):
    """Say, as SpatialData does, which instance of which element each row is about."""
    adata.obs["region"], adata.obs["cell_id"] = pd.Categorical(regions), ids
    adata.uns["spatialdata_attrs"] = {
        "region": sorted({*regions}),
        "region_key": "region",
        "instance_key": "cell_id",
    }
    return adata


def transformation(kind, numbers=None, axes="xy", unit="unit", to="global"):
    """Return a transformation of coordinates as the elements of SpatialData have it."""
    key = {"sequence": "transformations"}.get(kind, kind)
    listed = [{"name": x, "type": "space", "unit": unit} for x in axes]
    return {
        "type": kind,
        **({} if numbers is None else {key: numbers}),
        "input": {"name": axes, "axes": listed},
        "output": {"name": to, "axes": listed},
    }


def write_spatialdata(path, table, elements, zarr_format=3):
    """Write a table, and elements with their transformation; return where they are.

    Elements are keyed by their path: "shapes/..." are tables with a column of geometry,
    "points/..." lists of tables.
    """
    import zarr

    zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    write_adata(table, path / "tables" / "cells.zarr", zarr_format)
    (path / "tables" / "cells.zarr").rename(path / "tables" / "cells")
    zarr.open_group(str(path / "tables"), mode="a", zarr_format=zarr_format)
    for name, (content, transformation) in elements.items():
        group = zarr.open_group(str(path / name), mode="w", zarr_format=zarr_format)
        group.attrs["coordinateTransformations"] = [transformation]
        if name.startswith("shapes"):
            content.to_parquet(path / name / "shapes.parquet")
            continue
        (parts := path / name / "points.parquet").mkdir()
        for i, part in enumerate(content):
            part.to_parquet(parts / f"part.{i}.parquet")
    return path


def tenx(path, counts, names=None, kinds=None, packed=False):
    """Write counts (cells, genes) as Cell Ranger does: .h5, or a folder; return it."""
    n_cells, n_genes = counts.shape
    matrix = sp.csc_matrix(counts.T.astype(np.int32))
    names = [f"gene{i}" for i in range(n_genes)] if names is None else names
    kinds = ["Gene Expression"] * n_genes if kinds is None else kinds
    cells, ids = [f"c{i}" for i in range(n_cells)], [f"id{i}" for i in range(n_genes)]
    if path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name in ("data", "indices", "indptr", "shape"):
                file[f"matrix/{name}"] = getattr(matrix, name)
            file["matrix/barcodes"] = [one.encode() for one in cells]
            texts = {"id": ids, "name": names, "feature_type": kinds}
            for name, known in texts.items():
                file[f"matrix/features/{name}"] = [one.encode() for one in known]
        return path
    path.mkdir()
    ending, opened = (".gz", gzip.open) if packed else ("", open)
    features = "".join(map("{}\t{}\t{}\n".format, ids, names, kinds))
    tables = {"barcodes": "\n".join(cells), "features": features}
    for name, text in tables.items():
        with opened(path / f"{name}.tsv{ending}", "wt") as file:
            file.write(text)
    with opened(path / f"matrix.mtx{ending}", "wb") as file:
        mmwrite(file, matrix)
    return path


def cytometry(path, n=300, is_mass=False, **keywords):
    """Write events of three kinds, by the markers CD3 and CD19, and return the kinds.

    A flow cytometer's leak between the detectors, as its spillover matrix says.
    """
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, n)
    bright = np.array([[6.0, 2.0], [2.0, 6.0], [2.0, 2.0]])[kind]
    events = rng.normal(5.0, 1.0, (n, 4))
    events[:, 1:3] = np.sinh(bright + rng.normal(0, 0.3, (n, 2))) * 150
    events[:, 3] = np.arange(n)
    names, markers = ["FSC-A", "FITC-A", "PE-A", "Time"], ["", "CD3", "CD19", ""]
    if is_mass:
        names, markers = ["Event_length", "Er168Di", "Yb174Di", "Time"], markers
    else:
        events[:, 1:3] = events[:, 1:3] @ [[1.0, 0.4], [0.1, 1.0]]
        spill = {"operator": "", "spill": "2,FITC-A,PE-A,1,0.4,0.1,1"}
        keywords = {**spill, **keywords}
    with open(path, "wb") as file:
        create_fcs(file, events.ravel().tolist(), names, markers, keywords)
    return kind


def names_read(dock):
    """The names that can be read on the map of a dock, and how strongly: 0 to 1."""
    drawn, names = dock.controller.scene.map_layers.projection(), dock.map_names
    seen = (
        [] if drawn is None else names.label_positions_and_opacities(drawn)[1].tolist()
    )
    return {t: one for t, one in zip(names.names.texts, seen, strict=False) if one > 0}


def choose(box, text):
    """Choose in a box of a dock, as a person does."""
    box.setCurrentText(text)
    box.activated.emit(box.currentIndex())


def click(widget):
    """Click on the middle of a widget, or of one of magicgui's."""
    from qtpy.QtCore import Qt
    from qtpy.QtTest import QTest

    QTest.mouseClick(getattr(widget, "native", widget), Qt.MouseButton.LeftButton)


def column(table, number=0):
    """Return the texts in a column of a table or a list."""
    model = table.model()
    return [model.index(row, number).data() for row in range(model.rowCount())]


def color_at(widget, place):
    """Return the colour of a widget at a place, on a screen of any scale."""
    from qtpy.QtCore import QRect, QSize

    picture = widget.grab(QRect(place, QSize(1, 1))).toImage()
    return picture.pixelColor(0, 0)


def drawn(qtbot, pane):
    """Wait until the plot of a pane is drawn as it is now, and return its canvas."""
    canvas = pane.canvas
    qtbot.waitUntil(lambda: canvas.axes is not None and not canvas.needs_paint)
    return canvas


def drag(qtbot, pane, one, other, key=None):
    """Drag with the mouse from a place of a plot's axes to another."""
    from qtpy.QtCore import Qt
    from qtpy.QtTest import QTest

    canvas, key = drawn(qtbot, pane), key or Qt.KeyboardModifier.NoModifier
    begin, end = canvas.position_to_pixel(*one), canvas.position_to_pixel(*other)
    QTest.mousePress(canvas.canvas, Qt.MouseButton.LeftButton, key, begin)
    QTest.mouseMove(canvas.canvas, (begin + end) / 2)
    QTest.mouseMove(canvas.canvas, end)
    QTest.mouseRelease(canvas.canvas, Qt.MouseButton.LeftButton, key, end)
