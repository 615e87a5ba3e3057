"""Worlds that tests have in common: rows, cells of some kinds, played sessions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
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
    seen = [] if drawn is None else names.seen(drawn).tolist()
    return {t: one for t, one in zip(names.names.texts, seen, strict=False) if one > 0}
