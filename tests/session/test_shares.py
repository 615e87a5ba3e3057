"""Which columns name samples and their conditions, and which level comes first."""

import numpy as np
import pandas as pd

from napari_embedding_game.session.shares import (
    Conditions,
    list_conditions_by_samples,
    list_levels,
    with_change_column,
)
from worlds import rows


def of_six_donors(**columns):
    """Return 120 rows of six donors, three of them treated."""
    donors = np.repeat(np.arange(6), 20)
    obs = pd.DataFrame(
        {
            "donor": [f"d{one}" for one in donors],
            "arm": np.where(donors % 2, "drug", "placebo"),
            "cell_type": ["B", "T", "NK"] * 40,
            **columns,
        },
        index=[f"cell{i}" for i in range(120)],
    )
    return rows(np.random.default_rng(0).normal(size=(120, 4)), obs=obs)


def test_conditions_are_of_whole_samples_or_are_named_so():
    half = ["before", "after"] * 60
    dataset = of_six_donors(timepoint=half, colour=half, alias=[*"abcdef"] * 20)
    dataset = rows(dataset.X, obs=dataset.obs.assign(id=dataset.obs["donor"]))
    offered = list_conditions_by_samples(dataset)
    assert offered["donor"] == ["timepoint", "arm"]  # named as one first
    assert list_levels(dataset, "arm") == ["drug", "placebo"]
    assert list_levels(dataset, "timepoint") == ["after", "before"]
    alone = rows(dataset.X, obs=dataset.obs[["donor", "cell_type"]])
    assert list_conditions_by_samples(alone) == {}


def test_changes_are_a_column_that_says_what_was_compared():
    dataset = of_six_donors()
    conditions = Conditions("donor", "arm", ("drug", "placebo"))
    sides = conditions.find_sides(dataset)
    np.testing.assert_array_equal(sides == 0, dataset.obs["arm"] == "drug")
    values = np.full(120, np.nan, np.float32)
    changed, name = with_change_column(dataset, conditions, values)
    changed, again = with_change_column(changed, conditions, values)
    assert name == again == "Change drug / placebo"
    assert changed.added[name].label == "arm: drug against placebo"
