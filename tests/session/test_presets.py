"""Presets: settings under a name."""

import pytest

from napari_embedding_game.session.presets import (
    PRESETS,
    apply,
    preset_of,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.settings import ChosenSettings

BY_NAME = {preset.name: preset for preset in PRESETS}


@pytest.fixture
def settings():
    return ChosenSettings()


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_built_in_preset_can_be_played_and_is_known_again(preset, settings):
    settings.method, settings.n_landmarks, settings.momentum = "tsne", 30, 0.3
    settings.metric, settings.random_state = "cosine", 7
    apply(preset, settings)
    assert preset_of(settings) is preset
    assert (settings.metric, settings.random_state) == ("cosine", 7)
    settings.value.validate()
    assert preset.description


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
    assert engine.games[-1].repulsion == 100
    apply(BY_NAME["Continuity"], session.settings)
    assert session.stale  # other neighbours need a new run
