"""The table of all reproductions.

To add one: a line here, and its function in the module of its paper, as :mod:`frame`
says.
"""

from __future__ import annotations

from napari_embedding_game.data.errors import DataError

from .frame import Reproduction

_FENCHEL = "Dimensionality reduction and the Fenchel game"
_EXPLAIN = "Unexplainable explanations"
# fmt: off
REPRODUCTIONS: dict[str, Reproduction] = {row[0]: Reproduction(*row) for row in (
    ("fenchel-table", "Neighbours kept by PCA, random projection and gradient PCA",
     f"{_FENCHEL}, Figures 1 and 2", "mnist", "fenchel.table"),
    ("fenchel-roll", "Laplacian eigenmaps LE, ALE and VRLE of a roll, for several t",
     f"{_FENCHEL}, Figures 3 to 6, Remark 4.2", "", "fenchel.rolls"),
    ("fenchel-convergence",
     "Gradient descent and its Fenchel game, step for step, and their bound",
     f"{_FENCHEL}, Theorem 6.20 and Lemma 6.22", "", "fenchel.convergence"),
    ("game-fig2", "Landmarks tile digits, cells and texts",
     "Embedding game, Figure 2", "mnist, covid, cells, texts", "game.tilings"),
    ("game-fig3", "Random members of the first clusters of digits, cells and texts",
     "Embedding game, Figure 3", "mnist, covid, texts", "game.members"),
    ("game-fig4",
     "The learning rate of the landmarks, swept: collapse, a window, collapse",
     "Embedding game, Figure 4", "mnist", "game.rates"),
    ("game-fig5", "Sampled edges, sampled landmarks and optimised landmarks: the maps",
     "Embedding game, Figure 5", "mnist", "game.sampled_maps"),
    ("game-fig6",
     "Sampled edges, sampled landmarks and optimised landmarks: energy, gradient",
     "Embedding game, Figure 6", "mnist", "game.sampled_energies"),
    ("explain-fig2",
     "PCA by gradient descent from a random start, full and low-rank gradients",
     f"{_EXPLAIN}, Figure 2 and Lemma 3", "mnist", "explain.descents"),
    ("explain-fig3",
     "Two-kernel PCA, t-SNE, UMAP and two-kernel LLE of the same digits",
     f"{_EXPLAIN}, Figure 3", "mnist", "explain.four_methods"),
    ("explain-conjecture1",
     "UMAP's expected gradient against that of two-kernel LLE, along runs",
     f"{_EXPLAIN}, Conjecture 1", "mnist, cells, words", "explain.gradients"),
    ("pressure-fig3",
     "Pressure of points in the wrong place: a twisted roll, COIL-20 midway",
     "No pressure!, Figure 3", "coil20", "pressure.misplaced"),
    ("pressure-fig4",
     "Pressure of digits among other digits after 200 iterations of t-SNE",
     "No pressure!, Figure 4", "mnist", "pressure.misplaced_digits"),
    ("pressure-fig5",
     "Spectral direction and pressured points on COIL-20 and MNIST, EE and s-SNE",
     "No pressure!, Figure 5 and section 6", "coil20, mnist", "pressure.optimisers"),
    ("pressure-fig7",
     "EE of 5,000 words from 100 starts, with and without pressured points",
     "No pressure!, Figure 7", "words", "pressure.starts"),
)}
# fmt: on
"""By the name that the command knows."""


def find(name: str) -> Reproduction:
    """Return the reproduction of that name, or raise DataError."""
    if name not in REPRODUCTIONS:
        raise DataError(
            f'There is no reproduction "{name}": choose one of '
            f"{', '.join(REPRODUCTIONS)}."
        )
    return REPRODUCTIONS[name]
