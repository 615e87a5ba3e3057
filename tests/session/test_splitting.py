"""The map split by a column: what is drawn, and what stays as it is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.session.session import Session
from napari_embedding_game.session.splitting import (
    MOST_PANELS,
    NO_GROUP,
    split,
    split_columns,
)


def play(session):
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            break


@pytest.fixture
def session(engine, dataset):
    session = Session(engine)
    gaps = pd.Categorical([None, "control", "treated", "treated"] * 10)
    session.load(replace(dataset, obs=dataset.obs.assign(sample=gaps)))
    play(session)
    return session


@pytest.mark.parametrize("n_groups", [2, 3, 4, 5, MOST_PANELS])
def test_each_group_lies_as_on_the_map_and_apart_from_the_others(session, n_groups):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_groups, 40)
    codes[:n_groups] = np.arange(n_groups)
    column = pd.Series(pd.Categorical([f"g{code:02}" for code in codes]))
    shot = replace(
        session.snapshot, embedding=rng.normal(size=(40, 2)).astype(np.float32)
    )
    found = split(shot, column)
    assert [panel.name for panel in found.panels.panels] == [
        f"g{i:02}" for i in range(n_groups)
    ]
    np.testing.assert_array_equal(found.of_points, codes)
    extent = np.ptp(shot.embedding, axis=0)
    boxes = []
    for number, panel in enumerate(found.panels.panels):
        rows = codes == number
        assert panel.told == str(rows.sum())
        moved = found.snapshot.embedding[rows] - shot.embedding[rows]
        np.testing.assert_allclose(moved, np.tile(moved[0], (rows.sum(), 1)), atol=1e-5)
        low = shot.embedding.min(axis=0) + moved[0]
        boxes.append((low, low + extent))
        assert low[0] < panel.caption[0] < low[0] + extent[0]
        assert panel.caption[1] > low[1] + extent[1]
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert (high < other_low).any() or (other_high < low).any()
    names = [panel.caption for panel in found.panels.panels[:2]]
    assert names[0][0] < names[1][0]  # beside each other, the first at the left
    assert names[0][1] == names[1][1]


def test_points_without_a_group_have_a_panel_of_their_own(session):
    session.look.split_by = "sample"
    panels = session.splitting.current.panels.panels
    assert [(p.name, int(p.told)) for p in panels] == [
        ("control", 10),
        ("treated", 20),
        (NO_GROUP, 10),
    ]


def test_only_what_is_drawn_is_split(session):
    heard = []
    session.splitting.moved.connect(lambda: heard.append(session.drawn))
    before = session.snapshot
    assert session.drawn is before
    session.look.split_by = "sample"
    assert heard[-1] is session.drawn is not before
    assert session.drawn is session.drawn  # worked out once
    assert session.snapshot is before
    assert session.capture().snapshot is before
    session.look.split_by = ""
    assert heard[-1] is session.drawn is before


def test_a_map_that_moves_is_whole(session):
    session.look.split_by = "sample"
    states = []
    session.splitting.moved.connect(
        lambda: states.append((session.state, session.splitting.is_shown))
    )
    play(session)
    assert states[0] == ("preparing", False)
    assert states[-1] == ("finished", True)
    assert session.drawn is not session.snapshot
    number = session.timeline.marks[0].number
    session.look_back(number)
    expected = split(session.snapshot, session.dataset.obs["sample"])
    np.testing.assert_array_equal(session.drawn.embedding, expected.snapshot.embedding)


def test_columns_of_few_groups_split(dataset):
    n, most = len(dataset.obs), MOST_PANELS
    few = pd.Categorical(np.arange(n) % most)
    obs = dataset.obs.assign(
        one=pd.Categorical(["a"] * n),
        gaps=pd.Categorical(["a"] * (n - 1) + [None]),
        few=few,
        unused=few.add_categories([most]),
        many=pd.Categorical(np.arange(n) % (most + 1)),
        with_none=pd.Categorical([None, *few[1:]]),
    )
    found = split_columns(replace(dataset, obs=obs))
    assert found == ["kind", "gaps", "few", "unused"]
    assert split_columns(None) == []


def test_a_session_file_keeps_what_it_is_split_by(session, engine):
    session.look.split_by = "sample"
    other = Session(engine)
    other.restore(session.capture(), session.dataset)
    assert other.splitting.is_shown
    np.testing.assert_array_equal(other.drawn.embedding, session.drawn.embedding)
