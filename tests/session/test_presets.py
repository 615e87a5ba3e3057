"""Presets: settings under a name, built in or kept in a file of the person's own."""

import json
from dataclasses import asdict

import pytest

from napari_embedding_game.core.types import GameSettings, StartSettings
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file.check_settings import check_settings
from napari_embedding_game.session.presets import (
    BUILT_IN,
    FILE_VARIABLE,
    LEFT_ALONE,
    PRESET_FIELDS,
    PresetStore,
    apply,
    differing,
    preset_of,
    presets_path,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.settings import Settings

BY_NAME = {preset.name: preset for preset in BUILT_IN}


@pytest.fixture
def store(tmp_path):
    return PresetStore(tmp_path / "deep" / "presets.json")


@pytest.fixture
def settings():
    return Settings()


@pytest.mark.parametrize("preset", BUILT_IN, ids=lambda preset: preset.name)
def test_a_built_in_preset_can_be_played_and_is_known_again(preset, settings):
    settings.method, settings.n_landmarks, settings.momentum = "tsne", 30, 0.3
    settings.metric, settings.random_state = "cosine", 7
    apply(preset, settings)
    assert preset_of(settings, BUILT_IN) is preset
    assert (settings.metric, settings.random_state) == ("cosine", 7)
    check_settings(settings.start(), settings.game(), "it")
    assert preset.description
    # No two presets are the same.
    assert sum(differing(settings) == dict(other.values) for other in BUILT_IN) == 1


def test_the_first_is_the_defaults(settings):
    assert preset_of(settings, BUILT_IN) is BUILT_IN[0]
    settings.n_neighbors = 16
    assert preset_of(settings, BUILT_IN) is None
    settings.metric = "cosine"
    settings.n_neighbors = 15
    assert preset_of(settings, BUILT_IN) is BUILT_IN[0]


def test_every_setting_is_in_presets_or_left_alone():
    names = set(asdict(Settings()))
    assert set(PRESET_FIELDS) | LEFT_ALONE == names
    assert not set(PRESET_FIELDS) & LEFT_ALONE


def test_whoever_listens_hears_of_complete_settings(settings):
    settings.optimizer, settings.approximation = "lbfgs", None
    settings.affinity = "entropic"
    heard = []
    settings.events.connect(lambda info: heard.append(asdict(settings)))
    apply(BY_NAME["As in the paper"], settings)
    assert heard
    assert all(state == asdict(settings) for state in heard)


def test_a_running_game_takes_up_what_acts_at_once(engine, dataset):
    session = Session(engine)
    session.load(dataset)
    run = session.begin()
    frames = run.frames()
    while session.snapshot is None:
        session.receive(run, next(frames))
    apply(BY_NAME["Islands apart"], session.settings)
    assert not session.stale
    next(frames)
    assert engine.games[-1].strength == 100
    apply(BY_NAME["Continuity"], session.settings)
    assert session.stale  # other neighbours need a new run


def test_what_is_kept_is_there_the_next_time(store, settings):
    store.read()
    assert store.presets == BUILT_IN
    settings.method, settings.strength, settings.learning_rate = "tsne", 2.5, 0.25
    kept = store.save("  My   cells ", settings)
    assert kept.name == "My cells"
    again = PresetStore(store.path)
    again.read()
    assert again.presets == (*BUILT_IN, kept)
    other = Settings()
    apply(again.presets[-1], other)
    assert asdict(other) == asdict(settings)
    assert preset_of(other, again.presets) == kept


def test_the_same_name_is_replaced_and_deleted(store, settings):
    settings.n_neighbors = 20
    store.save("mine", settings)
    store.save("other", settings)
    settings.n_neighbors = 30
    store.save("Mine", settings)
    assert [(p.name, p.values["n_neighbors"]) for p in store.presets if p.is_own] == [
        ("other", 20),
        ("Mine", 30),
    ]
    store.delete("other")
    assert [p.name for p in store.presets if p.is_own] == ["Mine"]


def test_two_windows_keep_each_others_presets(store, settings):
    other = PresetStore(store.path)
    store.save("one", settings)
    other.save("two", settings)
    store.read()
    assert {p.name for p in store.presets if p.is_own} == {"one", "two"}


@pytest.mark.parametrize("name", ["", "   ", "x" * 41, "standard", "Quick Look"])
def test_a_name_that_cannot_be_is_refused(store, settings, name):
    with pytest.raises(DataError, match=r"name"):
        store.save(name, settings)
    assert not store.path.exists()


DAMAGED = {
    "no text": b"\xff\xfe",
    "no JSON": b"{",
    "a list": b"[]",
    "no name": b'{"presets": [{"values": {}}]}',
    "another type": b'{"presets": [{"name": "a", "values": {"n_neighbors": "b"}}]}',
    "an unknown setting": b'{"presets": [{"name": "a", "values": {"speed": 3}}]}',
    "an unknown method": b'{"presets": [{"name": "a", "values": {"method": "x"}}]}',
    "no number": b'{"presets": [{"name": "a", "values": {"strength": NaN}}]}',
    "not possible": b'{"presets": [{"name": "a", "values": {"n_landmarks": -3}}]}',
    "a seed": b'{"presets": [{"name": "a", "values": {"random_state": 3}}]}',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_told_and_put_aside(store, settings, text):
    store.path.parent.mkdir(parents=True)
    store.path.write_bytes(text)
    with pytest.raises(DataError) as caught:
        store.read()
    assert str(store.path) in str(caught.value)
    assert store.presets == BUILT_IN
    store.save("mine", settings)
    assert [p.name for p in store.presets if p.is_own] == ["mine"]
    assert store.path.with_suffix(".damaged.json").read_bytes() == text
    assert json.loads(store.path.read_bytes())["presets"][0]["name"] == "mine"


def test_a_folder_that_cannot_be_made_is_told(tmp_path, settings):
    (tmp_path / "file").write_text("")
    store = PresetStore(tmp_path / "file" / "presets.json")
    with pytest.raises(DataError, match="cannot be"):
        store.save("mine", settings)


def test_the_file_is_in_the_users_configuration(monkeypatch, tmp_path):
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    assert presets_path().name == "presets.json"
    assert "napari-embedding-game" in str(presets_path().parent)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "here.json"))
    assert PresetStore().path == tmp_path / "here.json"


def test_defaults_are_those_of_the_engine():
    apply(BUILT_IN[0], settings := Settings())
    assert settings.start() == Settings().start()
    assert settings.chosen_start() == StartSettings()
    assert settings.game() == GameSettings()
