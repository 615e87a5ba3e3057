"""Two maps of the timeline compared: what is seen, and what stays as it is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.moment import Moment
from napari_embedding_game.session.panels import STRAIGHT
from worlds import play, session_of


@pytest.fixture
def session(engine, dataset):
    session = session_of(dataset, engine)
    for seed in range(2):
        session.settings.random_state = seed
        play(session)
    first, shot = session.timeline.marks[0].number, session.snapshot
    mixed = np.random.default_rng(0).permutation(shot.embedding)
    session.timeline._replace(first, snapshot=replace(shot, embedding=mixed))
    return session


def begin(session):
    session.comparing.take(session.comparing.job(session.timeline.marks[0].number)())
    return session.comparing.current


def test_the_way_is_drawn_and_the_map_stays(session):
    base, told = session.snapshot, []
    session.comparing.moved.connect(lambda: told.append(session.comparing.share))
    current = begin(session)
    assert session.drawn is base
    session.comparing.show(0.5)
    middle = (current.maps.first + current.maps.second) / 2
    assert np.abs(middle - base.embedding).max() > 0.1
    np.testing.assert_allclose(session.drawn.embedding, middle, atol=1e-6)
    held = session.drawn.landmarks[base.labels[0]]
    among = middle[base.labels == base.labels[0]].mean(axis=0)
    np.testing.assert_allclose(held, among, atol=1e-5)
    assert session.snapshot is base
    assert session.result().embedding is base.embedding
    session.comparing.show(0.0)
    session.comparing.end()
    assert session.drawn is base
    assert told == [0.5, 0.0]


def test_it_is_told_what_differs(session):
    current = begin(session)
    here, there = current.qualities
    assert f"{here.neighbors_kept:.0%} on this map" in current.told()
    assert f"{there.neighbors_kept:.0%} on the other" in current.told()
    assert f"{np.median(current.maps.moved):.0%}" in current.told()


def test_without_rows_only_the_maps_are_compared(session, dataset):
    bare = replace(dataset, X=np.empty((40, 0)), var_names=[])
    session.restore(session.capture(), bare)
    session.mark("Here")
    twice = 2 * session.snapshot.embedding
    session.snapshot = replace(session.snapshot, embedding=twice)
    number = session.timeline.marks[-1].number
    compared = session.comparing.job(number)()
    assert compared.qualities is None
    assert compared.maps.moved.max() < 1e-5
    assert "Neighbours kept" not in compared.told()


@pytest.mark.parametrize("leave", ["look back", "play", "load"])
def test_it_ends_where_another_map_comes(session, dataset, leave):
    begin(session)
    session.comparing.show(0.7)
    if leave == "look back":
        session.look_back(session.timeline.marks[0].number)
    elif leave == "play":
        session.begin()
    else:
        session.load(dataset)
    assert session.comparing.current is None
    assert session.drawn is session.snapshot


def test_what_cannot_be_compared_is_told(session):
    with pytest.raises(DataError, match="no longer kept"):
        session.comparing.job(99)
    session.begin()
    with pytest.raises(DataError, match="Pause or stop"):
        session.comparing.job(session.timeline.marks[0].number)


def test_maps_lie_side_by_side_and_rows_stay_rows(session):
    base, told = session.snapshot, []
    session.comparing.laid_out.connect(
        lambda: told.append(session.comparing.is_side_by_side)
    )
    session.comparing.lay_side_by_side(True)
    assert told == []  # nothing to compare with
    current = begin(session)
    session.comparing.show(0.5)
    session.comparing.lay_side_by_side(True)
    assert told == [True]
    assert session.drawn is base  # the way is left
    n = len(base.embedding)
    seen = session.seen
    assert seen.shape == (2 * n, 2)
    np.testing.assert_array_equal(seen[:n], base.embedding)
    apart = seen[n:] - current.maps.second
    np.testing.assert_allclose(apart, np.tile(apart[0], (n, 1)), atol=1e-5)
    # No point of one panel lies in the other.
    assert seen[:n, 0].max() < seen[n:, 0].min()
    captions = session.panels.panels
    assert [panel.name for panel in captions] == ["This map", current.mark.title]
    here, there = current.qualities
    assert f"{here.neighbors_kept:.0%}" in captions[0].told
    assert f"{there.neighbors_kept:.0%}" in captions[1].told
    session.comparing.show(0.5)
    assert session.drawn is base
    session.comparing.end()
    assert told == [True, False]
    assert session.panels is None
    np.testing.assert_array_equal(session.seen, base.embedding)


def test_side_by_side_comes_before_the_groups_of_a_column(session):
    column = session.splitting
    samples = pd.Categorical(["a", "b"] * 20)
    session.dataset.add_taught("sample", samples, np.ones(40), {})
    session.look.split_by = "sample"
    assert column.is_shown
    begin(session)
    session.comparing.lay_side_by_side(True)
    assert not column.is_shown
    assert session.panels.panels[0].name == "This map"
    session.comparing.end()
    assert column.is_shown


def in_space(session, n_axes=3):
    """Have the session show a map in space, and compare it with its flat one."""
    shot = session.snapshot
    bent = shot.embedding[:, :1] * shot.embedding[:, 1:] / 5
    deep = np.hstack([shot.embedding, *(n_axes - 2) * [bent]])
    session.snapshot = replace(shot, embedding=deep)
    return begin(session)


@pytest.mark.parametrize("facing", [STRAIGHT, [[0.6, 0, 0.8], [0, 1, 0]]])
def test_maps_in_space_lie_side_by_side_for_whoever_looks_at_them(session, facing):
    compared = in_space(session)
    session.facing = np.array(facing, float)
    session.comparing.lay_side_by_side(True)
    n, panels = len(session.snapshot.embedding), session.panels
    # Each map is seen as it is, and no point of one is in front of the other.
    np.testing.assert_array_equal(session.seen[:n], session.snapshot.embedding)
    apart = session.seen[n:] - compared.maps.second
    np.testing.assert_allclose(apart, np.tile(panels.offsets[1], (n, 1)), atol=1e-5)
    right, up = np.array(facing, float)
    across = session.seen @ right
    assert across[:n].max() < across[n:].min()
    np.testing.assert_allclose(panels.offsets @ up, 0, atol=1e-5)
    np.testing.assert_allclose(panels.offsets @ np.cross(right, up), 0, atol=1e-5)
    assert panels.panels[1].told.endswith("%, 2 dimensions")
    assert "as a sheet" in compared.told()
    # The scale goes by what is the same from all sides.
    np.testing.assert_allclose(panels.box.mean(axis=0), panels.middle, atol=1e-5)


def test_a_map_of_more_dimensions_than_are_seen_lies_alone(session):
    in_space(session, 4)
    assert not session.comparing.can_lie_side_by_side
    session.comparing.lay_side_by_side(True)
    assert session.comparing.beside is None


def test_the_way_from_a_flat_map_to_one_in_space_stays_in_the_plane(session):
    flat = session.snapshot
    in_space(session)
    deep = session.snapshot
    mark = session.timeline.add(
        "Deep", "hand", Moment(settings=session.settings.value, snapshot=deep)
    )
    session.snapshot = flat
    session.comparing.take(session.comparing.job(mark.number)())
    session.comparing.show(1.0)
    assert session.drawn.embedding.shape == flat.embedding.shape
    assert "3 dimensions" in session.comparing.current.told()
