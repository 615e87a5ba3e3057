from napari_embedding_game.core.settings import Settings, resolve
from napari_embedding_game.session.settings import (
    ChosenSettings,
)


def test_a_change_is_told_once_by_its_name():
    settings, heard = ChosenSettings(), []
    settings.changed.connect(heard.append)
    settings.repulsion = 70.0
    settings.repulsion = 70.0
    assert heard == ["repulsion"]
    assert settings.value.repulsion == 70.0


def test_a_method_brings_its_own_edges_repulsion_and_approximation():
    settings = ChosenSettings()
    settings.repulsion = 1_000.0
    settings.approximation = "landmarks"
    settings.choose_method("umap")
    assert resolve(settings.value).affinity == "fuzzy"
    assert (settings.repulsion, settings.approximation) == (None, None)


def test_edges_that_a_method_cannot_be_played_on_are_left_to_it():
    settings = ChosenSettings()
    settings.affinity = "uniform"
    settings.choose_method("tsne")
    assert settings.affinity == "uniform"
    settings.choose_method("pca")
    assert settings.affinity == "auto"
    assert resolve(settings.value).affinity == "inner_products"
    settings.affinity = "inner_products"
    settings.choose_method("game")
    assert resolve(settings.value).affinity == "mixed"


def test_a_minimiser_brings_all_pairs():
    settings = ChosenSettings()
    settings.approximation = "sampled_edges"
    settings.choose_method("ee_homotopy")
    assert settings.value == Settings(method="ee_homotopy")
