"""Which well each point comes from, and a figure of each well."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.session.plates import (
    describe_well,
    find_plates,
    list_well_columns,
)


@pytest.fixture
def plate(dataset):
    """Forty points in wells A01, A02, B02; C03 was measured and holds none."""
    n = len(dataset.obs)
    wells = np.array(["A01", "b2", "A02", "B02"])[np.arange(n) % 4]
    obs = dataset.obs.assign(
        Metadata_Well=pd.Categorical(wells),
        drug=np.where(np.char.startswith(wells.astype(str), "A"), "none", "X"),
        dose=np.where(wells == "A01", 0.5, np.where(wells == "A02", 0.25, 4.125)),
        area=np.arange(n) + 0.5,
    )
    images = [{"name": "c", "well": "C03", "drug": "X"}, {"name": "a", "well": "A01"}]
    return replace(dataset, obs=obs, provenance={"measured": {"images": images}})


def test_columns_that_are_known_of_a_whole_well(plate):
    plates = find_plates(plate)
    columns = list_well_columns(plate, plates)
    assert {"drug", "dose"} <= set(columns)
    assert "area" not in columns
    assert "Metadata_Well" not in columns
    told = describe_well(plate, plates[0], (2, 2), columns)
    assert told.splitlines() == ["C03: 0 points", "drug: X"]
    assert "dose: 4.125" in describe_well(plate, plates[0], (1, 1), ["dose"])


def test_plates_are_told_apart_and_rows_and_columns_are_wells(dataset):
    n = len(dataset.obs)
    obs = pd.DataFrame(
        {
            "plate": pd.Categorical(np.array(["p2", "p1"])[np.arange(n) % 2]),
            "row": "B",
            "column": np.arange(n) % 4 + 1,
        },
        index=dataset.obs.index,
    )
    first, second = find_plates(replace(dataset, obs=obs))
    assert (first.name, second.name) == ("p1", "p2")
    assert list(first.wells) == [(1, 1), (1, 3)]
    assert list(second.wells) == [(1, 0), (1, 2)]
    counted = obs.assign(row=np.arange(n) % 3, column=obs["column"].astype(str))
    counted = counted.drop(columns="plate")
    from_one = replace(dataset, obs=counted, source_obs=counted)
    (part,) = find_plates(from_one.subset(np.arange(n) % 3 > 0))
    assert {well[0] for well in part.wells} == {1, 2}  # no well moves up
    (from_one,) = find_plates(from_one)
    assert {well[0] for well in from_one.wells} == {0, 1, 2}
    assert {well[1] for well in from_one.wells} == {0, 1, 2, 3}


@pytest.mark.parametrize("values", [["liver", "lung"], ["well 1", "well 2"]])
def test_a_column_that_names_no_wells_makes_no_plate(dataset, values):
    n = len(dataset.obs)
    obs = dataset.obs.assign(well=np.resize(values, n))
    assert find_plates(replace(dataset, obs=obs)) == ()
    assert find_plates(dataset) == ()
    numbered = dataset.obs.assign(well_id=range(n), well_name="B03")
    assert list(find_plates(replace(dataset, obs=numbered))[0].wells) == [(1, 2)]
