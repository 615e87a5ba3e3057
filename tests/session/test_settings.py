from dataclasses import asdict

from napari_embedding_game.core.types import GameSettings, StartSettings
from napari_embedding_game.session.settings import Settings, paper_lambda


def test_fields_and_defaults_are_the_engine_s():
    assert Settings().start() == StartSettings()
    assert Settings().game() == GameSettings()
    ours = asdict(Settings())
    assert set(ours) == set(asdict(StartSettings())) | set(asdict(GameSettings()))


def test_a_change_is_told_once_by_its_name():
    settings, heard = Settings(), []
    settings.events.connect(lambda info: heard.append((info.signal.name, info.args)))
    settings.strength = 70.0
    settings.strength = 70.0
    assert heard == [("strength", (70.0, 300.0))]
    assert settings.game().strength == 70.0


def test_the_paper_s_lambda_for_mnist():
    assert paper_lambda(70.0, 70_000) == 0.001
