"""The paragraph on methods of a paper: what was done with a map, and by what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.settings import n_searched, repulsion_of
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.cluster_book import ClusterBook
from napari_embedding_game.session.clusters.clustering import Clustering
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.looked_at import ShownComparison
from napari_embedding_game.session.reference.placed_on import PlacedOn
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.settings import has_lambda
from napari_embedding_game.session.timeline import told_change

NOTHING_PLAYED = (
    "Nothing has been played on this map that could be written as code: press Run "
    "first."
)
REFERENCES = {
    "game": (
        "Anonymous authors",
        "Embedding game: dimensionality reduction as a two player zero-sum game. "
        "Unpublished manuscript.",
    ),
    "fenchel": (
        "Tucker",
        "Tucker L. Dimensionality reduction and the Fenchel game.",
    ),
    "explain": (
        "Draganov and Dohn",
        "Draganov A, Dohn S. Unexplainable Explanations: Towards Interpreting tSNE and "
        "UMAP Embeddings.",
    ),
    "pressure": (
        "Vladymyrov 2019",
        "Vladymyrov M. No Pressure! Addressing the Problem of Local Minima in Manifold "
        "Learning Algorithms. Advances in Neural Information Processing Systems 32, "
        "680-689 (2019).",
    ),
    "scanpy": (
        "Wolf et al. 2018",
        "Wolf FA, Angerer P, Theis FJ. SCANPY: large-scale single-cell gene expression "
        "data analysis. Genome Biology 19, 15 (2018).",
    ),
    "zheng": (
        "Zheng et al. 2017",
        "Zheng GXY et al. Massively parallel digital transcriptional profiling of "
        "single cells. Nature Communications 8, 14049 (2017).",
    ),
    "harmony": (
        "Korsunsky et al. 2019",
        "Korsunsky I et al. Fast, sensitive and accurate integration of single-cell "
        "data with Harmony. Nature Methods 16, 1289-1296 (2019).",
    ),
    "scrublet": (
        "Wolock et al. 2019",
        "Wolock SL, Lopez R, Klein AM. Scrublet: computational identification of cell "
        "doublets in single-cell transcriptomic data. Cell Systems 8, 281-291 (2019).",
    ),
    "tsne": (
        "van der Maaten and Hinton 2008",
        "van der Maaten L, Hinton G. Visualizing data using t-SNE. Journal of Machine "
        "Learning Research 9, 2579-2605 (2008).",
    ),
    "umap": (
        "McInnes et al. 2018",
        "McInnes L, Healy J, Melville J. UMAP: Uniform Manifold Approximation and "
        "Projection for dimension reduction. arXiv:1802.03426 (2018).",
    ),
}
"""How each work is cited in the text, and its entry in the list."""
_OF_METHODS = {
    "game": ("game",),
    "ee": ("game", "pressure"),
    "ssne": ("game", "pressure"),
    "tsne": ("tsne",),
    "umap": ("umap",),
    "umap_exact": ("umap",),
    "two_kernel_lle": ("explain",),
    "two_kernel_pca": ("explain",),
    "pca": ("explain",),
    "pca_low_rank": ("explain",),
}
_OF_FENCHEL = ("gradient_pca", "ale", "vrle")
"""Starts that are of the paper on the Fenchel game."""
_WORDS = {
    "lle": "LLE",
    "pca": "PCA",
    "le": "Laplacian eigenmaps",
    "ale": "ALE",
    "vrle": "VRLE",
    "isomap": "Isomap",
    "gradient_pca": "gradient PCA",
    "lbfgs": "L-BFGS",
}
"""What settings are called in a text, where it is not their own name."""
MOST_TOLD = 6
"""Changes of settings that are told one by one."""
_TIMES = {1: "once", 2: "twice"}
_TESTS = {"wilcoxon": "Wilcoxon rank-sum tests", "t-test": "Welch's t-tests"}
_TEST_OF_SAMPLES = "Welch's t-tests of the means of samples (pseudobulk)"


def methods_text(saved: SavedMap, comparisons: Iterable[ShownComparison] = ()) -> str:
    """Return a paragraph with all that was used, its versions, and its references.

    Parameters
    ----------
    saved : SavedMap
        Played.
    comparisons : iterable of ShownComparison
        Those that were kept or saved.

    Raises
    ------
    DataError
        Nothing was played on the map.
    """
    if saved.record is None or saved.snapshot is None:
        raise DataError(NOTHING_PLAYED)
    paper = _Paper()
    made = [*_of_data(saved.dataset, paper), *_of_run(saved, saved.record, paper)]
    sentences = [
        *made,
        how_merged(saved, clustering_of(saved)),
        *_of_columns(saved.dataset, paper),
        *_of_comparisons(saved.dataset, list(comparisons)),
    ]
    return "\n\n".join([" ".join(sentences), paper.references()])


class _Paper:
    """Collects what is cited, in the order in which it is."""

    def __init__(self) -> None:
        self._cited: dict[str, str] = {}

    def cite(self, *keys: str) -> str:
        """Return the citation of works, in brackets."""
        self._cited.update({key: REFERENCES[key][1] for key in keys})
        return f"({'; '.join(REFERENCES[key][0] for key in keys)})"

    def references(self) -> str:
        """Return the list of what was cited."""
        return "\n".join(["References", "", *(f"- {w}" for w in self._cited.values())])


def _of_data(dataset: Dataset, paper: _Paper) -> list[str]:
    n, n_all = len(dataset.obs), dataset.n_source_rows
    what = "cells" if dataset.has_expression else "rows"
    of_all = "" if n == n_all else f" of {n_all:,}"
    recipe = dataset.provenance.get("recipe")
    if recipe is None:
        n_columns = dataset.X.shape[1]
        rows = f"{n:,}{of_all} {what} of {dataset.name}"
        if dataset.is_distances:
            return [f"The neighbours of {rows} were those of its {dataset.space}."]
        columns = f"{n_columns:,} column{'' if n_columns == 1 else 's'}"
        mixed = dataset.provenance.get("harmony")
        space = dataset.space if mixed is None else mixed["space"]
        told = [f"The map shows {rows} ({space}, {columns})."]
        return told if mixed is None else [*told, _of_harmony(mixed, paper)]
    cite = paper.cite("scanpy", "zheng")
    used = recipe.get("cells_used", n)
    of_all = "" if used == n_all else f" of {n_all:,}"
    sentences = [
        f"Raw counts of {used:,}{of_all} cells of {dataset.name} were prepared with "
        f"scanpy {recipe['scanpy']} {cite}: "
        f"{_of_cells_left_out(recipe, paper)}, and genes in fewer than "
        f"{max(1, recipe['min_cells']):,} cells ({recipe['genes_left_out']:,}) were "
        f"left out, counts were normalised to {recipe['target_sum']:,.10g} per cell "
        f"and ln(1 + x) was taken, the {recipe['genes_used']:,} most variable genes "
        f"were scaled to unit variance (at most {recipe['max_value']:g}), and "
        f"{recipe['components']} principal components were computed."
    ]
    if recipe.get("batch_key") is not None:
        sentences.append(_of_harmony(recipe, paper))
    if n != used:
        sentences.append(f"The map shows {n:,} of these cells.")
    return sentences


def _of_harmony(noted: Mapping[str, Any], paper: _Paper) -> str:
    return (
        f'The levels of "{noted["batch_key"]}" were mixed in the components by Harmony '
        f"{paper.cite('harmony')[:-1]}; harmonypy {noted['harmonypy']})."
    )


def _limits_in_words(recipe: Mapping[str, Any]) -> str:
    """Return what cells have that are left out, with the number of them."""
    words = {
        "min_genes": "fewer than {:,} genes",
        "max_genes": "more than {:,} genes",
        "min_counts": "fewer than {:,} counts",
        "max_counts": "more than {:,} counts",
        "max_mito": "more than {:g} % mitochondrial counts",
    }
    # Cells without a gene are left out in any case; any other limit of 0 is none.
    limits = {**recipe, "min_genes": max(1, recipe["min_genes"])}
    *others, last = [
        f"{told.format(limits[name])} ({recipe['left_out'][name]:,})"
        for name, told in words.items()
        if limits[name]
    ]
    return f"{', '.join(others)} or {last}" if others else last


def _of_cells_left_out(recipe: Mapping[str, Any], paper: _Paper) -> str:
    """Return which cells were left out, with how many they were."""
    told = f"cells with {_limits_in_words(recipe)}"
    if not recipe.get("doublets"):
        return told
    key, n = recipe["batch_key"], recipe["left_out"]["doublets"]
    among = "" if key is None else f' in each level of "{key}"'
    return (
        f"{told}, then doublets that scrublet {paper.cite('scrublet')[:-1]}; scanpy's, "
        f"with exact neighbours) finds{among} ({n:,})"
    )


def _of_run(saved: SavedMap, record: RunRecord, paper: _Paper) -> list[str]:
    settings, snapshot = record.settings, saved.snapshot
    assert snapshot is not None
    if saved.behind is not None:
        return [_placed_told(saved.behind)]
    method, n = get_method(settings.method), len(snapshot.embedding)
    by = _named(settings.method, paper)
    k = n_searched(settings, n)
    told = [f"{k} nearest neighbours"]
    if settings.metric not in ("euclidean", "precomputed"):
        told[0] += f" by {settings.metric} distance"
    told.append(f"{_in_words(settings.affinity)} edge weights")
    if settings.affinity == "entropic":
        told.append(f"perplexity {settings.perplexity:g}")
    if not method.moved_by:
        told.append(f"{len(snapshot.landmarks)} landmarks")
        repulsion = repulsion_of(settings)
        is_lambda = has_lambda(settings.method)
        told.append(
            f"lambda {repulsion / n:.3g} (lambda x N = {repulsion:,.5g})"
            if is_lambda
            else f"repulsion x {repulsion:g}"
        )
    told.append(_start_told(settings.init, paper))
    told.append(f"seed {settings.random_state}")
    d = {1: "one-dimensional", 2: "two-dimensional", 3: "three-dimensional"}
    sentences = [
        f"A {d[settings.n_components]} map was made by {by} with napari-embedding-game "
        f"{metadata.version('napari-embedding-game')} in napari "
        f"{metadata.version('napari')} ({', '.join(told)}; {record.n_iter} "
        f"iterations{'' if snapshot.finished else ', then stopped'}; "
        f"map {snapshot.map_hash[:4]})."
    ]
    if settings.optimizer != "game" and not method.moved_by:
        is_papers = settings.optimizer == "pressured_points"
        cite = f" {paper.cite('pressure')}" if is_papers else ""
        name = _in_words(settings.optimizer)
        sentences.append(f"The energy was minimised by the optimiser {name}{cite}.")
    look = saved.look
    if snapshot.has_pressure and "Pressure" in (look.size_by, look.color_by):
        sentences.append(
            "Pressure, by which points would leave the plane, was shown "
            f"{paper.cite('pressure')}."
        )
    return [*sentences, *_of_steering(record, paper)]


def _placed_told(on: PlacedOn) -> str:
    n, name = len(on.cells), Path(on.reference).name
    return (
        f"The cells were placed on the map of a reference ({name}, {n:,} cells) with "
        f"napari-embedding-game {metadata.version('napari-embedding-game')}: each "
        "where its edges to the cells of the reference that are nearest to it, which "
        "stayed where they were, and their repulsion have it."
    )


def _named(method: str, paper: _Paper) -> str:
    """Return what a method is called, with its citation."""
    title = get_method(method).title
    name = "the embedding game" if method == "game" else title.split(" (")[0]
    return f"{name} {paper.cite(*_OF_METHODS[method])}"


def _start_told(init: str, paper: _Paper) -> str:
    cite = f" {paper.cite('fenchel')}" if init in _OF_FENCHEL else ""
    return f"{_in_words(init)} start{cite}"


def _in_words(name: str) -> str:
    """Return a name of a setting as it is written in a text."""
    return _WORDS.get(name, name.replace("_", " "))


def _of_steering(record: RunRecord, paper: _Paper) -> list[str]:
    sentences = []
    if record.is_branch:
        sentences.append(
            "The run went on from an earlier map of the same data, parts of which may "
            "have been moved by hand."
        )
    games = [record.settings, *(step.settings for step in record.steered)]
    changes = [
        f"{told_change(before, step.settings)} after {step.iteration} iterations"
        for before, step in zip(games, record.steered, strict=False)
    ]
    if n := len(changes):
        told = f": {'; '.join(changes)}" if len(changes) <= MOST_TOLD else ""
        sentences.append(
            f"Settings were changed {_TIMES.get(n, f'{n} times')} while it ran{told}."
        )
    for method in dict.fromkeys(one.method for one in games[1:]):
        if method != record.settings.method:
            sentences.append(f"It went on by {_named(method, paper)}.")
    hands = [event.forces for event in record.forced]
    acts = [words for words, has in _HANDS.items() if any(has(one) for one in hands)]
    if acts:
        sentences.append(f"By hand, {', '.join(acts)}.")
    return sentences


_HANDS: dict[str, Any] = {
    "clusters were drawn to a place": lambda one: bool(one.springs),
    "points were held in place": lambda one: bool(one.holds),
    "landmarks were moved, added or removed": lambda one: bool(
        one.landmarks or one.edits
    ),
}


def clustering_of(saved: SavedMap) -> Clustering:
    """Return the clusters of a saved map, as they were shown."""
    book = ClusterBook(len(saved.dataset.obs))
    book.restore(saved.book, *saved.landmark_labels, saved.merging)
    return book.clustering


def how_merged(saved: SavedMap, clustering: Clustering) -> str:
    """Return how the clusters came about, and what a person did to them."""
    shown, n_landmarks = clustering.clusters, saved.landmark_labels[1]
    how = "merged along the graph of neighbours"
    record = saved.record
    if record is not None and get_method(record.settings.method).moved_by:
        how = f"fitted to the finished map and {how}"
    counts = {
        "merged, split or drawn by hand": sum(one.is_by_hand for one in shown),
        "named": sum(one.is_named for one in shown),
    }
    edited = [f"{n} {'was' if n == 1 else 'were'} {w}" for w, n in counts.items() if n]
    besides = f", of which {' and '.join(edited)}" if edited else ""
    if len(shown) == n_landmarks:
        return f"Each of the {n_landmarks} landmarks was taken for a cluster{besides}."
    return (
        f"The {n_landmarks} landmarks were {how} into {len(shown)} clusters{besides}."
    )


def _of_columns(dataset: Dataset, paper: _Paper) -> list[str]:
    """Return what was made of the data besides: scores, labels and classes."""
    told = []
    if dataset.scores:
        names = ", ".join(f'"{name}"' for name in dataset.scores)
        scanpy = paper.cite("scanpy")
        told.append(
            f"Gene sets ({names}) were scored by scanpy's score_genes {scanpy}."
        )
    for one in dataset.predicted.values():
        batch = " after a batch effect was taken away" if one.correct_batch else ""
        told.append(
            f'Labels of "{one.label}" were predicted{batch} by the votes of the cells '
            f"of a reference ({Path(one.reference).name}) nearest on its map; "
            f"{int(one.unlike.sum()):,} of {len(one.unlike):,} cells were unlike any "
            "of it."
        )
    for name, examples in dataset.taught.items():
        n = sum(map(len, examples.values()))
        told.append(
            f'Classes "{name}" of all points are those that logistic regression gives '
            f"from {n:,} examples sorted by hand ({', '.join(examples)})."
        )
    return told


def _of_comparisons(dataset: Dataset, comparisons: list[ShownComparison]) -> list[str]:
    if not comparisons:
        return []
    tests = dict.fromkeys(
        _TEST_OF_SAMPLES if one.samples else _TESTS[one.method] for one in comparisons
    )
    what = f"{dataset.word}s"
    return [
        f"Groups of points were compared by {' and '.join(tests)} of all {what}, with "
        "p-values adjusted by Benjamini and Hochberg."
    ]
