"""Axes of a scatter plot."""

import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.axis_values import find_axis_values


def test_an_axis_is_what_is_called_so_before_what_is_in_other_letters():
    obs = pd.DataFrame({"cd4": np.arange(6.0)}, index=list("abcdef"))
    dataset = worlds.rows(np.ones((6, 2)), obs=obs, var_names=["CD4", "ACTB"])
    assert find_axis_values(dataset, "CD4").tolist() == [1] * 6
    assert find_axis_values(dataset, "cd4 ").tolist() == [0, 1, 2, 3, 4, 5]
    assert find_axis_values(dataset, "actb").name == "ACTB"
    with pytest.raises(DataError, match='column of numbers "Cd4"'):
        find_axis_values(dataset, "Cd4")
