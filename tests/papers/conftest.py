import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from napari_embedding_game.papers import reproductions
from napari_embedding_game.papers.reproductions.figures import curves
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
        def own(inputs, parts):
            """Do little.

            A note on
            two lines.
            """
            parts({"one": lambda: 1})
            rows = [{"k": 1000, "share": 0.123456, "n": np.int32(2)}]
            panel = curves("a", {"a": ([0, 1], [0, 1])}, "x")
            return Result({"Shares": rows}, [Check("a", value, "<", 1)], [panel])

        module = SimpleNamespace(run=run or own)
        monkeypatch.setitem(sys.modules, f"{reproductions.__name__}.toy", module)
        return Reproduction("toy", "A toy", "A paper, Figure 0", "", "toy.run")

    return make
