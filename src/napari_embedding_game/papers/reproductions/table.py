"""List all reproductions.

To add a reproduction, add a line here and a function in the module of its paper, as
:mod:`frame` says.  The function returns its criteria as ``frame.Check``.
"""

from __future__ import annotations

from napari_embedding_game.data.errors import DataError

from .frame import Reproduction

PAPERS = {
    "fenchel": "Dimensionality reduction and the Fenchel game",
    "game": "Embedding game",
    "explain": "Unexplainable explanations",
    "pressure": "No pressure!",
}
# fmt: off
_ROWS = (
    ("fenchel-table", "Neighbours kept by PCA, random projection and gradient PCA",
     "Figures 1 and 2", "mnist", "compare_linear_maps"),
    ("fenchel-roll", "Laplacian eigenmaps LE, ALE and VRLE of a roll, for several t",
     "Figures 3 to 6, Remark 4.2", "", "compare_roll_eigenmaps"),
    ("fenchel-convergence", "Gradient descent and its Fenchel game, and their bound",
     "Theorem 6.20 and Lemma 6.22", "", "check_convergence_bound"),
    ("game-fig2", "Landmarks tile digits, cells and texts, and their members",
     "Figures 2 and 3", "mnist, covid, cells, texts", "compare_tilings"),
    ("game-fig4", "The learning rate of the landmarks: collapse, a window, collapse",
     "Figure 4", "mnist", "sweep_landmark_rates"),
    ("game-fig5", "Sampled edges, sampled and optimised landmarks: the maps",
     "Figure 5", "mnist", "compare_sampled_maps"),
    ("game-fig6", "Sampled edges, sampled and optimised landmarks: energy, gradient",
     "Figure 6", "mnist", "track_sampled_energies"),
    ("explain-fig2", "PCA by gradient descent, full and low-rank gradients",
     "Figure 2 and Lemma 3", "mnist", "compare_pca_descents"),
    ("explain-fig3", "Two-kernel PCA, t-SNE, UMAP and two-kernel LLE of digits",
     "Figure 3", "mnist", "compare_four_methods"),
    ("explain-conjecture1", "UMAP's expected gradient against that of two-kernel LLE",
     "Conjecture 1", "mnist, cells, words", "compare_gradients"),
    ("pressure-fig3", "Pressure of points in the wrong place: a roll, COIL-20",
     "Figure 3", "coil20", "locate_misplaced_points"),
    ("pressure-fig4", "Pressure of digits among others after 200 iterations of t-SNE",
     "Figure 4", "mnist", "locate_misplaced_digits"),
    ("pressure-fig5", "Spectral direction and pressured points, EE and s-SNE",
     "Figure 5 and section 6", "coil20, mnist", "compare_optimisers"),
    ("pressure-fig7", "EE of words from 100 starts, with and without pressured points",
     "Figure 7", "words", "compare_random_starts"),
)
# fmt: on
REPRODUCTIONS = {
    name: Reproduction(name, what, f"{PAPERS[of]}, {where}", data, f"{of}.{function}")
    for name, what, where, data, function in _ROWS
    for of in [name.partition("-")[0]]
}
"""All reproductions by the name that the command takes."""


def find_reproduction(name: str) -> Reproduction:
    """Return the reproduction with a name; DataError for an unknown name."""
    if name not in REPRODUCTIONS:
        raise DataError(
            f'There is no reproduction "{name}": choose one of '
            f"{', '.join(REPRODUCTIONS)}."
        )
    return REPRODUCTIONS[name]
