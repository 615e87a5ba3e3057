"""What can be chosen for a game, in plain words, and the name of each in the code."""

from __future__ import annotations

from magicgui.widgets import FloatSpinBox

from napari_embedding_game.core.classical import CLASSICAL
from napari_embedding_game.core.compatibility import affinities, choose, optimizers
from napari_embedding_game.core.names import AffinityChoice

APPROXIMATIONS = [
    ("Landmarks that move", "landmarks"),
    ("Random pairs", "sampled_edges"),
    ("Random landmarks", "sampled_landmarks"),
    ("All pairs (slow)", "exact"),
]
AFFINITIES = [
    ("The method's own", "auto"),
    ("Partly by closeness", "mixed"),
    ("By closeness (fuzzy)", "fuzzy"),
    ("All the same", "uniform"),
    ("By chance (entropic)", "entropic"),
    ("By reconstruction (LLE)", "lle"),
    ("All rows, by inner products", "inner_products"),
]
INITS = [
    ("Spectral", "spectral"),
    ("At random", "random"),
    *((method.title, name) for name, method in CLASSICAL.items()),
]
UPDATES = [
    ("With momentum", "momentum"),
    ("Looking ahead (optimistic)", "optimistic"),
    ("Plain steps (as in the paper)", "omd"),
]
OPTIMIZERS = [
    ("The game's own", "game"),
    ("Spectral direction", "spectral_direction"),
    ("L-BFGS", "lbfgs"),
    ("Homotopy", "homotopy"),
    ("Pressured points", "pressured_points"),
]
SCHEDULES = [("Fast", "fast"), ("As in the paper (slow)", "paper")]
METRICS = ["euclidean", "cosine", "correlation", "manhattan"]
DEVICES = [
    ("Automatic", "auto"),
    ("Processor", "cpu"),
    ("NVIDIA graphics card", "cuda"),
    ("Apple graphics", "mps"),
]
AUTOMATIC = "automatic"


def approximations_of(method: str) -> list[tuple[str, str]]:
    """Return what can push the points of a method apart."""
    offered = choose(method, None)[0].approximations
    return [choice for choice in APPROXIMATIONS if choice[1] in offered]


def affinities_of(method: str) -> list[tuple[str, str]]:
    """Return the edges that a method can be played on."""
    offered = ("auto", *affinities(method))
    return [choice for choice in AFFINITIES if choice[1] in offered]


def optimizers_of(method: str, affinity: AffinityChoice) -> list[tuple[str, str]]:
    """Return what can move the points of a method that is played on such edges."""
    offered = optimizers(method, affinity)
    return [choice for choice in OPTIMIZERS if choice[1] in offered]


def automatic_float(low: float, high: float, step: float, tip: str) -> FloatSpinBox:
    """Return a number that is chosen automatically at its lowest value."""
    spin = FloatSpinBox(
        min=low, max=high, step=step, value=low, tooltip=f"{tip} Acts at once."
    )
    spin.native.setSpecialValueText(AUTOMATIC)
    return spin
