"""What is seen of a map: side by side, split, or hidden."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.panels import (
    MAX_PANELS,
    STRAIGHT,
    split_by_column,
    split_columns,
)
from napari_embedding_game.session.quality import make_comparison_job
from napari_embedding_game.session.session import Session
from worlds import play, rows, session_of


@pytest.fixture
def session(engine, dataset):
    """Two maps of 40 rows; the rows of the first map are mixed."""
    gaps = pd.Categorical([None, "control", "treated", "treated"] * 10)
    sites = pd.Categorical(["A", "B", "C", None] * 10, ["A", "B", "C", "D"])
    obs = dataset.obs.assign(sample=gaps, site=sites)
    session = session_of(replace(dataset, obs=obs), engine)
    for seed in range(2):
        session.settings.random_state = seed
        play(session)
    (first, *others), shot = session.timeline.marks, session.snapshot
    mixed = np.random.default_rng(0).permutation(shot.embedding)
    first = replace(first, snapshot=replace(shot, embedding=mixed))
    session.timeline.restore(replace(session.timeline.state, marks=(first, *others)))
    return session


def begin(session, place=0):
    number = session.timeline.marks[place].number
    session.view.set_comparison(make_comparison_job(session, number)())
    return session.view.comparison


# Two maps compared


def test_without_rows_only_the_maps_are_compared(session, dataset):
    bare = dataset.with_matrices(X=np.empty((40, 0)), var_names=[])
    session.restore(replace(session.to_saved_map(), dataset=bare))
    session.add_mark("Here")
    twice = 2 * session.snapshot.embedding
    session.snapshot = replace(session.snapshot, embedding=twice)
    compared = begin(session, -1)
    assert compared.qualities is None
    assert compared.maps.movement.max() < 1e-5
    assert "neighbours kept" not in str(session.view.panels.captions)


@pytest.mark.parametrize("leave", ["look back", "play", "load"])
def test_it_ends_where_another_map_comes(session, dataset, leave):
    begin(session)
    if leave == "look back":
        session.show_mark(session.timeline.marks[0].number)
    elif leave == "play":
        session.begin()
    else:
        session.load(dataset)
    assert session.view.comparison is None
    assert session.view.painted_snapshot is session.snapshot


def test_what_cannot_be_compared_is_told(session):
    with pytest.raises(DataError, match="no longer kept"):
        make_comparison_job(session, 99)
    session.begin()
    with pytest.raises(DataError, match="Pause or stop"):
        make_comparison_job(session, session.timeline.marks[0].number)


def test_maps_lie_side_by_side_and_rows_stay_rows(session):
    base, view, told = session.snapshot, session.view, []
    view.panels_changed.connect(lambda: told.append(view.is_side_by_side))
    session.look.split_by = "sample"
    assert view.layout.panel_of_points is not None
    compared = begin(session)
    assert told == [False, True]
    assert view.layout.panel_of_points is None
    n = len(base.embedding)
    assert view.positions.shape == (2 * n, 2)
    np.testing.assert_array_equal(view.positions[:n], base.embedding)
    apart = view.positions[n:] - compared.maps.aligned
    np.testing.assert_allclose(apart, np.tile(apart[0], (n, 1)), atol=1e-5)
    # No point of one panel lies in the other.
    assert view.positions[:n, 0].max() < view.positions[n:, 0].min()
    here, there = view.panels.captions
    assert (here[0], there[0]) == ("This map", compared.mark.title)
    for (_, said), one in zip((here, there), compared.qualities, strict=True):
        assert f"{one.neighbors_kept:.0%}" in said
    assert f"{np.median(compared.maps.movement):.0%}" in compared.describe_difference()
    assert view.painted_snapshot is session.snapshot is base
    session.look.split_by = ""
    view.set_comparison(None)
    assert view.comparison is None
    assert not told[-1]
    assert view.panels is None
    np.testing.assert_array_equal(view.positions, base.embedding)


def in_space(session, n_axes=3):
    """Have the session show a map in space, and compare it with its flat one."""
    shot = session.snapshot
    bent = shot.embedding[:, :1] * shot.embedding[:, 1:] / 5
    deep = np.hstack([shot.embedding, *(n_axes - 2) * [bent]])
    session.snapshot = replace(shot, embedding=deep)
    return begin(session)


@pytest.mark.parametrize("facing", [STRAIGHT, [[0.6, 0, 0.8], [0, 1, 0]]])
def test_maps_in_space_lie_side_by_side_for_whoever_looks_at_them(session, facing):
    view = session.view
    view.facing = np.array(facing, float)
    compared = in_space(session)
    n, panels, seen = len(session.snapshot.embedding), view.panels, view.positions
    # Each map is seen as it is, and no point of one is in front of the other.
    np.testing.assert_array_equal(seen[:n], session.snapshot.embedding)
    apart = seen[n:] - compared.maps.aligned
    np.testing.assert_allclose(apart, np.tile(panels.offsets[1], (n, 1)), atol=1e-5)
    right, up = np.array(facing, float)
    across = seen @ right
    assert across[:n].max() < across[n:].min()
    np.testing.assert_allclose(panels.offsets @ up, 0, atol=1e-5)
    np.testing.assert_allclose(panels.offsets @ np.cross(right, up), 0, atol=1e-5)
    assert panels.captions[1][1].endswith("%, 2 dimensions")
    assert "as a sheet" in compared.describe_difference()
    # The scale goes by what is the same from all sides.
    both = np.concatenate([seen[:n], compared.maps.aligned])
    middle = (both.min(axis=0) + both.max(axis=0)) / 2
    np.testing.assert_allclose(panels.box.mean(axis=0), middle, atol=1e-5)


# The groups of a column apart


def test_a_map_is_split_by_columns_of_2_to_20_groups():
    numbers = np.arange(42)
    of = {f"of {n}": [f"level {i % n}" for i in numbers] for n in (1, 2, 20, 21)}
    obs = pd.DataFrame(of, index=[f"row{i}" for i in numbers])
    obs["of 20 and gaps"] = obs["of 20"].where(numbers > 0)
    assert split_columns(rows(np.eye(42), obs=obs)) == ["of 2", "of 20"]


@pytest.mark.parametrize("n_groups", [2, 5, MAX_PANELS])
def test_each_group_lies_as_on_the_map_and_apart_from_the_others(
    make_snapshot, n_groups
):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_groups, 40)
    codes[:n_groups] = np.arange(n_groups)
    column = pd.Series(pd.Categorical([f"g{code:02}" for code in codes]))
    places = rng.normal(size=(40, 2)).astype(np.float32)
    found = split_by_column(replace(make_snapshot(), embedding=places), column)
    captions = [(f"g{i:02}", f"{(codes == i).sum()}") for i in range(n_groups)]
    assert list(found.panels.captions) == captions
    np.testing.assert_array_equal(found.panel_of_points, codes)
    extent, boxes = np.ptp(places, axis=0), []
    for number, at in enumerate(found.panels.positions):
        moved = (found.snapshot.embedding - places)[codes == number]
        np.testing.assert_allclose(moved, 0 * moved + moved[0], 0, 1e-5)
        low = places.min(axis=0) + moved[0]
        boxes.append((low, low + extent))
        assert low[0] < at[0] < low[0] + extent[0]
        assert at[1] > low[1] + extent[1]
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert (high < other_low).any() or (other_high < low).any()
    one, two = found.panels.positions[:2]
    assert one[0] < two[0]  # beside each other, the first at the left
    assert one[1] == two[1]


def test_only_what_is_drawn_at_rest_is_split(session, engine):
    view, heard = session.view, []
    view.panels_changed.connect(
        lambda: heard.append((session.state, view.layout.panel_of_points is not None))
    )
    before = session.snapshot
    session.look.split_by = "sample"
    captions = ("control", "10"), ("treated", "20"), ("(missing)", "10")
    assert view.panels.captions == captions
    assert view.painted_snapshot is not before
    assert view.painted_snapshot is view.painted_snapshot  # worked out once
    assert session.to_saved_map().snapshot is session.snapshot is before
    play(session)  # a map that moves is whole
    assert heard[0] == ("finished", True)
    assert heard[1] == ("preparing", False)
    assert heard[-1] == ("finished", True)
    session.show_mark(session.timeline.marks[0].number)
    expected = split_by_column(session.snapshot, session.dataset.obs["sample"]).snapshot
    np.testing.assert_array_equal(view.painted_snapshot.embedding, expected.embedding)
    other = Session(engine)
    other.restore(session.to_saved_map())
    np.testing.assert_array_equal(other.view.positions, view.positions)
    session.look.split_by = ""
    assert view.painted_snapshot is session.snapshot
