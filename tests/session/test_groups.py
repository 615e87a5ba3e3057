"""What can be compared with what, and what can name samples."""

import numpy as np
import pandas as pd

from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.session.groups import (
    count_selected_by_level,
    list_sample_columns,
)
from worlds import rows, session_of


def test_conditions_and_kinds_are_no_samples_unless_a_person_says_so():
    numbers = np.arange(40)
    names = "donor", "stim", "day", "timepoint", "cell_type", "leiden", "patient_id"
    of = {name: [f"level {i % 3}" for i in numbers] for name in names}
    obs = pd.DataFrame(of, index=[f"row{i}" for i in numbers])
    obs["donor"] = [f"level {i % 2}" for i in numbers]
    assert list_sample_columns(rows(np.eye(40), obs=obs)) == ["donor", "patient_id"]
    said = ReadOptions(roles={"cell_type": "samples", "day": "samples"})
    found = list_sample_columns(rows(np.eye(40), obs=obs, read_options=said))
    assert {*found} == {"donor", "patient_id", "cell_type", "day"}


def test_samples_are_three_or_more_of_ten_cells_on_average():
    numbers = np.arange(40)
    of = {f"of {n}": [f"level {i % n}" for i in numbers] for n in (2, 3, 4, 5)}
    obs = pd.DataFrame(of, index=[f"row{i}" for i in numbers])
    obs["cell_type"], obs["donor"] = obs["of 4"], obs["of 4"]
    found = list_sample_columns(rows(np.eye(40), obs=obs))
    assert found == ["donor", "of 3", "of 4"]


def test_levels_of_three_selected_points_are_compared():
    obs = pd.DataFrame({"kind": [*"aabbbccccd"]}, index=[*"0123456789"])
    session = session_of(rows(np.eye(10), obs=obs))
    assert count_selected_by_level(session, "kind") == {}
    session.selection.select_points(np.arange(9))
    assert count_selected_by_level(session, "kind") == {"b": 3, "c": 4}
    assert count_selected_by_level(session, "nothing") == {}
