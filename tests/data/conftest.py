import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read_in_stages
from napari_embedding_game.data.stages import finish


def _choices(path, space=None):
    return finish(read_in_stages(path, ReadOptions(space=space, missing="drop")))


@pytest.fixture
def spaces():
    """What can be embedded of a file, the default first."""
    return lambda path: list(_choices(path).spaces)


@pytest.fixture
def columns():
    """The columns of a space of a file."""
    return lambda path, space=None: list(_choices(path, space).columns)


@pytest.fixture
def counts():
    """60 cells of three kinds, 300 genes; cell 7 is empty but for five genes."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.5, 2, (3, 300))
    kinds = np.arange(60) % 3
    X = rng.poisson(rates[kinds]).astype(np.float32)
    X[7] = 0
    X[7, :5] = 1
    X[:, 10] = 0
    obs = pd.DataFrame(
        {"kind": pd.Categorical.from_codes(kinds, [*"ABC"]), "depth": X.sum(axis=1)},
        index=[f"cell{i}" for i in range(60)],
    )
    var = pd.DataFrame(index=[f"gene{i}" for i in range(300)])
    return AnnData(sp.csr_matrix(X), obs=obs, var=var)


@pytest.fixture
def counts_file(counts, tmp_path):
    counts.write_h5ad(tmp_path / "counts.h5ad")
    return tmp_path / "counts.h5ad"


@pytest.fixture
def labels():
    """Four objects of 40 x 50 pixels; 7 touches the edge, 2 is one pixel."""
    image = np.zeros((40, 50), dtype=np.uint16)
    image[0:6, 0:8] = 7
    image[10:20, 10:30] = 3
    rows, columns = np.ogrid[:40, :50]
    image[(rows - 30) ** 2 + (columns - 38) ** 2 <= 36] = 11
    image[25, 5] = 2
    return image
