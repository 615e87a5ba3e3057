import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from napari_embedding_game.papers import reproductions
from napari_embedding_game.papers.reproductions.frame import (
    Check,
    Reproduction,
    Result,
)


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture
def toy(monkeypatch):
    """Return a function that makes a reproduction of one part and one criterion."""

    def make(run=None, value=0.5):
        def own(inputs, run_cached):
            run_cached(lambda key: 1, ["one"])
            rows = [{"k": 1000, "share": 0.123456, "n": np.int32(2)}]
            curves = {"a": pd.DataFrame({"a": [0, 1]})}
            return Result({"Shares": rows}, [Check("a", value, "<", 1)], curves)

        module = SimpleNamespace(run=run or own)
        monkeypatch.setitem(sys.modules, f"{reproductions.__name__}.toy", module)
        return Reproduction("toy", "A toy", "A paper, Figure 0", "", "toy.run")

    return make
