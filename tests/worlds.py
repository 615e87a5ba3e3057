"""Worlds that tests have in common: rows, cells of some kinds, played sessions."""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.result import EmbeddingResult
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


def play(session, run=None):
    """Play a run to its end, by default a new one; return the last snapshot."""
    run = session.begin() if run is None else run
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            break
    return session.snapshot
