import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.json_codec import dumps, loads
from napari_embedding_game.session.run.record import RunRecord, Steering

RATES = st.none() | st.floats(0, 10)
GAMES = st.builds(
    Settings,
    method=st.sampled_from(["game", "sampled_edges"]),
    repulsion=st.floats(1e-3, 1e6),
    n_landmarks=st.integers(1, 10**6),
    learning_rate=RATES,
    max_iter=st.none() | st.integers(1, 10**6),
)
RECORDS = st.builds(
    RunRecord,
    start=st.builds(Settings, metric=st.text(max_size=5)),
    game=GAMES,
    steered=st.lists(
        st.builds(Steering, iteration=st.integers(0, 10**6), game=GAMES), max_size=3
    ).map(tuple),
    n_iter=st.integers(0, 10**6),
)


@given(RECORDS)
def test_there_and_back(record):
    assert loads(RunRecord, dumps(record), "a file") == record


def test_a_field_of_a_later_version_with_a_default_may_be_missing():
    record = RunRecord(start=Settings(), game=Settings(), n_iter=3)
    values = json.loads(dumps(record))
    del values["steered"], values["game"]["method"]
    assert loads(RunRecord, json.dumps(values).encode(), "it") == record


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (("n_iter",), 1.5, "n_iter is 1.5"),
        (("n_iter",), True, "n_iter is True"),
        (("n_iter",), 10**30, "n_iter is 1000"),
        (("n_iter",), None, "n_iter is None"),
        (("game", "repulsion"), "300", "repulsion is '300'"),
        (("game", "approximation"), "magic", "approximation is 'magic'"),
        (("game",), [], r"game is \[\]"),
        (("steered",), {"0": 1}, "steered is"),
        (("steered",), [[0, 1]], "steered is"),
    ],
)
def test_a_wrong_value_is_named(place, value, sentence):
    record = RunRecord(start=Settings(), game=Settings(), n_iter=3)
    values = target = json.loads(dumps(record))
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    with pytest.raises(DataError, match=rf"^file\.zip is damaged: .*{sentence}"):
        loads(RunRecord, json.dumps(values).encode(), "file.zip")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"n_iter": NaN}',
        b'{"n_iter": ' + b"9" * 5000 + b"}",
        b"null",
        b"{}",
    ],
)
def test_no_text_breaks_it(text):
    with pytest.raises(DataError, match="is damaged"):
        loads(RunRecord, text, "file.zip")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_value_breaks_it(value):
    text = json.dumps({"start": value, "game": {}, "steered": [value], "n_iter": 1})
    with pytest.raises(DataError, match="is damaged"):
        loads(RunRecord, text.encode(), "file.zip")
