"""A map of the neighbours that a file brings: played, saved, opened and repeated."""

import numpy as np
import pytest
from anndata import AnnData, read_h5ad
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from worlds import play, read, session_of

SHORT = {"max_iter": 40, "n_landmarks": 20}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    X = load_digits().data[:300].astype(np.float32)
    # A random order: what is shown must not hang on that of the rows.
    X = X[np.random.default_rng(0).permutation(300)]
    cells = AnnData(obsm={"X_pca": X})
    # As scanpy's pp.neighbors(n_neighbors=15): the cell itself is counted.
    cells.obsp["distances"] = kneighbors_graph(X, 14, mode="distance")
    path = tmp_path_factory.mktemp("given") / "cells.h5ad"
    cells.write_h5ad(path)
    return path


@pytest.fixture
def session(path):
    return session_of(read(path, space="distances"), n_jobs=1, **SHORT)


@pytest.mark.usefixtures("torch")  # the command tells of any error in a sentence
def test_the_command_line_takes_them_too(command_line, path, tmp_path, session):
    out = tmp_path / "out.h5ad"
    arguments = ["fit", str(path), "--out", str(out), "--space", "distances"]
    arguments += ["--max-iter", "40", "--n-landmarks", "20", "--n-jobs", "1", "-q"]
    told = command_line(*arguments)
    assert told.exit_code == 0, told.output
    result = read_h5ad(out)
    np.testing.assert_array_equal(
        result.obsm["X_embedding_game"], play(session).embedding
    )
    assert "distances" in result.obsp
