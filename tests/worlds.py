"""Worlds that tests have in common: rows, cells of some kinds, played sessions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
import tifffile
from anndata import AnnData
from flowio import create_fcs

from napari_embedding_game.data.clustering import numbered
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.loading import load
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.run.replay import replay_frames
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session

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
    return EmbeddingResult(**{**known, **parts})


def clustering(labels, names, colors=None, notes=None):
    """Clusters with names, colours and notes, by their numbers."""
    known = numbered(np.asarray(labels, np.int32))
    said = {"name": names, "color": colors or {}, "note": notes or {}}
    clusters = (
        replace(one, **{k: v[one.id] for k, v in said.items() if one.id in v})
        for one in known.clusters
    )
    return replace(known, clusters=tuple(clusters))


def play(session, run=None):
    """Play a run to its end, by default a new one; return the last snapshot."""
    run = session.begin() if run is None else run
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            break
    return session.snapshot


def replay(X, record):
    """Return the last snapshot of a recorded run that is played again."""
    *_, last = replay_frames(X, record)
    return last


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
        spill = {"spill": "2,FITC-A,PE-A,1,0.4,0.1,1"}
        keywords = {**spill, **keywords}
    with open(path, "wb") as file:
        create_fcs(file, events.ravel().tolist(), names, markers, keywords)
    return kind


def names_read(dock):
    """The names that can be read on the map of a dock, and how strongly: 0 to 1."""
    drawn, names = dock.controller.scene.layers.projection(), dock.names
    seen = [] if drawn is None else names.lie(drawn)[1].tolist()
    return {t: one for t, one in zip(names.names.texts, seen, strict=False) if one > 0}
