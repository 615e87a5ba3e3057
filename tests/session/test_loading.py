"""How the data of each map were read, and what is asked for now: without a window."""

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.session.loading import Loading
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import LoadResult


class Source:
    name = "table"


def rows(space, n_columns):
    values = np.random.default_rng(0).normal(size=(40, n_columns)).astype(np.float32)
    names = [f"{space}{column}" for column in range(n_columns)]
    obs = pd.DataFrame(index=[f"row{row}" for row in range(40)])
    return Dataset.from_rows(
        name="table", X=values, obs=obs, var_names=names, space=space
    )


@pytest.fixture
def session(engine):
    return Session(engine, UNPACED)


@pytest.fixture
def maps(session):
    return MapTree(session)


@pytest.fixture
def loading(session, maps):
    return Loading(session, maps)


@pytest.fixture
def read(session, maps, loading):
    """Ask for a source, take it up and note it, as the window does."""

    def act(source, dataset, **changes):
        loading.ask(source)
        loading.change(**changes)
        if loading.is_again:
            maps.reload(dataset)
        else:
            session.load(dataset)
        loading.take_up(source, LoadResult(dataset=dataset, columns=dataset.var_names))
        return loading.shown

    return act


def test_another_source_is_read_anew_and_the_same_one_as_it_was_asked_for(loading):
    one, other = Source(), Source()
    assert loading.ask(one)
    loading.change(missing="drop")
    assert not loading.ask(one)
    assert loading.options == ReadOptions(missing="drop")
    assert loading.ask(other)
    assert loading.options == ReadOptions()


def test_what_is_given_up_leaves_what_is_on_show(loading, read):
    one = Source()
    shown = read(one, rows("X", 3), missing="drop")
    loading.ask(Source())
    assert not loading.is_again
    assert loading.is_reading
    loading.go_back()
    assert (loading.source, loading.options) == (one, ReadOptions(missing="drop"))
    assert loading.is_again
    assert not loading.is_reading
    assert loading.shown is shown
    assert loading.columns == ("X0", "X1", "X2")


def test_the_columns_on_offer_are_those_of_the_space_and_not_those_chosen(
    loading, read
):
    one = Source()
    read(one, rows("X", 3))
    read(one, rows("X", 2), columns=("X0", "X1"))
    assert loading.columns == ("X0", "X1", "X2")
    read(one, rows("pca", 4), space="pca", columns=None)
    assert loading.columns == ("pca0", "pca1", "pca2", "pca3")


def test_each_map_remembers_how_it_was_read(maps, loading, read, session):
    one, heard = Source(), []
    read(one, rows("X", 3))
    run = session.begin()
    for frame in run.frames():
        session.receive(run, frame)
        if frame.snapshot and frame.snapshot.finished:
            session.stop()
    first = maps.current
    second = read(one, rows("pca", 4), space="pca")
    loading.changed.connect(lambda: heard.append(loading.options.space))
    maps.open(first)
    assert heard == [None]
    assert loading.columns == ("X0", "X1", "X2")
    key = next(p.key for p in maps.places if p.parent is not None)
    maps.open(key)
    assert heard == [None, "pca"]
    assert loading.shown is second


def test_a_session_file_and_other_data_forget_how_maps_were_read(
    maps, loading, read, session
):
    read(Source(), rows("X", 3))
    loading.ask(None)
    assert (loading.source, loading.taken, loading.shown) == (None, None, None)
    heard = []
    read(Source(), rows("X", 3))
    session.load(rows("other", 5))
    loading.changed.connect(lambda: heard.append(True))
    loading.taken = None
    maps.changed.emit()
    assert heard == []
