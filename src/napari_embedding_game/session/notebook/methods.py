"""The methods paragraph of a paper on a map: data, run, clusters and references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import PureWindowsPath as Path  # it splits paths of any system
from typing import Any

import numpy as np

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.graph.tissue import AROUND
from napari_embedding_game.core.inspect.sample_comparison import (
    INSIDE,
    OUTSIDE,
    plan_sample_comparison,
)
from napari_embedding_game.core.inspect.shares import MAX_FDR
from napari_embedding_game.core.settings import resolve_n_neighbors, resolve_repulsion
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.columns import count_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.prediction import REFERENCE, UNLIKE
from napari_embedding_game.data.quality_control import (
    LIMITS,
    describe_limit,
    describe_rare_genes,
)
from napari_embedding_game.session.clusters.state import ClusterState
from napari_embedding_game.session.file.saved_map import SavedMap, ShownComparison
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.second_space import TISSUE
from napari_embedding_game.session.settings import has_lambda
from napari_embedding_game.session.timeline import describe_changes

NOTHING_PLAYED = "Nothing was played on this map to write as code: press Run first."
_REFERENCES = {
    "Anonymous authors": "Embedding game: dimensionality reduction as a two player "
    "zero-sum game. Unpublished manuscript.",
    "Tucker": "Tucker L. Dimensionality reduction and the Fenchel game.",
    "Draganov and Dohn": "Draganov A, Dohn S. Unexplainable Explanations: Towards "
    "Interpreting tSNE and UMAP Embeddings.",
    "Vladymyrov 2019": "Vladymyrov M. No Pressure! Addressing the Problem of Local "
    "Minima in Manifold Learning Algorithms. Advances in Neural Information Processing "
    "Systems 32, 680-689 (2019).",
    "Wolf et al. 2018": "Wolf FA, Angerer P, Theis FJ. SCANPY: large-scale single-cell "
    "gene expression data analysis. Genome Biology 19, 15 (2018).",
    "Zheng et al. 2017": "Zheng GXY et al. Massively parallel digital transcriptional "
    "profiling of single cells. Nature Communications 8, 14049 (2017).",
    "Korsunsky et al. 2019": "Korsunsky I et al. Fast, sensitive and accurate "
    "integration of single-cell data with Harmony. Nature Methods 16, 1289-1296 "
    "(2019).",
    "Wolock et al. 2019": "Wolock SL, Lopez R, Klein AM. Scrublet: computational "
    "identification of cell doublets in single-cell transcriptomic data. Cell Systems "
    "8, 281-291 (2019).",
    "van der Maaten and Hinton 2008": "van der Maaten L, Hinton G. Visualizing data "
    "using t-SNE. Journal of Machine Learning Research 9, 2579-2605 (2008).",
    "Smyth 2004": "Smyth GK. Linear models and empirical Bayes methods for assessing "
    "differential expression in microarray experiments. Statistical Applications in "
    "Genetics and Molecular Biology 3, 3 (2004).",
    "Law et al. 2014": "Law CW, Chen Y, Shi W, Smyth GK. voom: precision weights "
    "unlock linear model analysis tools for RNA-seq read counts. Genome Biology 15, "
    "R29 (2014).",
    "Chen et al. 2016": "Chen Y, Lun ATL, Smyth GK. From reads to genes to pathways: "
    "differential expression analysis of RNA-Seq experiments using Rsubread and the "
    "edgeR quasi-likelihood pipeline. F1000Research 5, 1438 (2016).",
    "McInnes et al. 2018": "McInnes L, Healy J, Melville J. UMAP: Uniform Manifold "
    "Approximation and Projection for dimension reduction. arXiv:1802.03426 (2018).",
}
"""The references, by their citation in the text."""
_OF_METHODS = {
    "game": "(Anonymous authors)",
    "ee": "(Anonymous authors; Vladymyrov 2019)",
    "ssne": "(Anonymous authors; Vladymyrov 2019)",
    "tsne": "(van der Maaten and Hinton 2008)",
    "umap": "(McInnes et al. 2018)",
    "umap_exact": "(McInnes et al. 2018)",
}
_MINIMISED = ("ee_", "ssne_")
"""Prefixes of methods by Vladymyrov 2019."""
_OF_FENCHEL = ("gradient_pca", "ale", "vrle")
"""Start layouts of the paper on the Fenchel game."""
_WORDS = {"le": "Laplacian eigenmaps", "gradient_pca": "gradient PCA"}
_WORDS |= {"mesh": "all pairs on a grid", "exact": "all pairs"}
_WORDS |= {name: name.upper() for name in ("lle", "pca", "ale", "vrle")}
"""Words for values of settings that differ from their names."""
_TESTS = {"wilcoxon": "Wilcoxon rank-sum tests", "t-test": "Welch's t-tests"}
_OF_SAMPLES = {
    True: "the moderated t-test of limma (limma-trend) (Smyth 2004; Law et al. 2014)",
    False: "a t-test of the linear model",
}
"""Tests of samples, by whether the values are logarithms of expression."""


def compose_methods_text(saved: SavedMap) -> str:
    """Return a methods paragraph on a map, followed by the list of references.

    Only references that the paragraph cites are listed, in its order.

    Raises DataError: nothing was played on the map.
    """
    if saved.record is None or saved.snapshot is None:
        raise DataError(NOTHING_PLAYED)
    sentences = [
        *_iter_data_sentences(saved.dataset),
        *_iter_run_sentences(saved, saved.record),
    ]
    sentences.append(describe_clustering(saved.clusters, saved.snapshot))
    text = " ".join(
        [
            *sentences,
            *_iter_column_sentences(saved.dataset),
            *_iter_comparison_sentences(saved),
        ]
    )
    work = f"(?:{'|'.join(_REFERENCES)})"
    cited = "; ".join(re.findall(rf"\(({work}(?:; {work})*)\)", text)).split("; ")
    works = [f"- {_REFERENCES[one]}" for one in dict.fromkeys(filter(None, cited))]
    references = ["", "References", "", *works] if works else []
    return "\n".join([text, *references])


def _iter_data_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield sentences on the data: rows and space, or the recipe of counts.

    Harmony and rows that are not on the map are said, too.
    """
    n, n_all = len(dataset.obs), dataset.n_source_rows
    recipe, mixed = (dataset.provenance.get(key) for key in ("recipe", "harmony"))
    if recipe is None:
        noun, of_all = dataset.source_row_noun, "" if n == n_all else f" of {n_all:,}"
        rows = f"{n:,}{of_all} {noun}s of {dataset.name}"
        if dataset.is_distances:
            yield f"The neighbours of {rows} were those of its {dataset.space}."
            return
        space = dataset.space if mixed is None else mixed["space"]
        n_columns = len(dataset.var_names)
        columns = f"{n_columns:,} column{'s' * (n_columns != 1)}"
        yield f"The map shows {rows} ({space}, {columns})."
        if mixed is not None:
            yield _describe_harmony(mixed)
        return
    used, rare = recipe.get("cells_used", n), describe_rare_genes(recipe["min_cells"])
    yield (
        f"Raw counts of {used:,}{'' if used == n_all else f' of {n_all:,}'} cells of "
        f"{dataset.name} were prepared with scanpy {recipe['scanpy']} "
        f"(Wolf et al. 2018; Zheng et al. 2017): {_describe_excluded_cells(recipe)}, "
        f"and genes in {rare} ({recipe['genes_left_out']:,}) were "
        f"left out, counts were normalised to {recipe['target_sum']:,.10g} per cell "
        f"and ln(1 + x) was taken, the {recipe['genes_used']:,} most variable genes "
        f"were scaled to unit variance (at most {recipe['max_value']:g}), and "
        f"{recipe['components']} principal components were computed."
    )
    if recipe.get("batch_key") is not None:
        yield _describe_harmony(recipe)
    if n != used:
        yield f"The map shows {n:,} of these cells."


def _describe_harmony(noted: Mapping[str, Any]) -> str:
    """Return a sentence on the batches that Harmony mixed. ``noted``: its record."""
    return (
        f'The levels of "{noted["batch_key"]}" were mixed in the components by Harmony '
        f"(harmonypy {noted['harmonypy']}) (Korsunsky et al. 2019)."
    )


def _describe_excluded_cells(recipe: Mapping[str, Any]) -> str:
    """Return which cells the recipe left out, with their numbers.

    Limits of 0 are not told, except that of genes; doublets are, if they were removed.
    """
    # Cells without a gene are left out in any case; any other limit of 0 is none.
    *others, last = [
        f"{describe_limit(name, recipe[name])} ({recipe['left_out'][name]:,})"
        for name in LIMITS
        if recipe[name] or name == "min_genes"
    ]
    text = f"cells with {', '.join(others)}{' or ' if others else ''}{last}"
    if recipe.get("doublets"):
        key, n = recipe["batch_key"], recipe["left_out"]["doublets"]
        among = "" if key is None else f' in each level of "{key}"'
        text += (
            ", then doublets that scanpy's scrublet (Wolock et al. 2019), with exact "
            f"neighbours, finds{among} ({n:,})"
        )
    return text


def _iter_run_sentences(saved: SavedMap, record: RunRecord) -> Iterator[str]:
    """Yield sentences on the run: placed, given, or by a method and its settings.

    Settings that the method does not use, and some that have their default, are left
    out. Sentences on changes during a run by a method follow.
    """
    settings, snapshot = record.settings, saved.snapshot
    assert snapshot is not None
    program = f"napari-embedding-game {metadata.version('napari-embedding-game')}"
    if (on := saved.placed_on) is not None and on.has_layout_of(snapshot):
        yield (
            f"The cells were placed on the map of a reference "
            f"({Path(on.reference).name}, {len(on.cells):,} cells) with {program}: "
            "each where its edges to the cells of the reference that are nearest to "
            "it, which stayed where they were, and their repulsion have it."
        )
        return
    method, n = get_method(settings.method), len(snapshot.embedding)
    if settings.method == "given":
        yield (
            "The map came with the data, and was scaled and centred. Its clusters and "
            f"misplaced points were found with {program} among the "
            f"{resolve_n_neighbors(settings, n)} nearest neighbours (map "
            f"{snapshot.map_hash[:4]})."
        )
        return
    parts = [f"{resolve_n_neighbors(settings, n)} nearest neighbours"]
    if settings.metric not in ("euclidean", "precomputed"):
        parts[0] += f" by {settings.metric} distance"
    if settings.second_space:
        name = settings.second_space
        second = f"the mean of the {AROUND} cells around each cell in tissue"
        parts.append(
            f"near in this space and in {second if name == TISSUE else name}, whose "
            f"share is {settings.second_share:g}"
        )
    parts.append(f"{_setting_to_words(settings.affinity)} edge weights")
    if settings.affinity == "entropic":
        parts.append(f"perplexity {settings.perplexity:g}")
    if method.takes_repulsion:
        repulsion = resolve_repulsion(settings)
        parts.append(f"{len(snapshot.landmarks)} landmarks")
        approximation = settings.approximation or method.approximations[0]
        if approximation != "landmarks":
            parts.append(f"repulsion by {_setting_to_words(approximation)}")
        of_game = f"lambda {repulsion / n:.3g} (lambda x N = {repulsion:,.5g})"
        is_lambda = has_lambda(settings.method)
        parts.append(of_game if is_lambda else f"repulsion x {repulsion:g}")
        if settings.large_picture:
            parts.append(f"large picture {settings.large_picture:g}")
    if not record.is_branch:
        cited = " (Tucker)" if settings.init in _OF_FENCHEL else ""
        parts.append(f"{_setting_to_words(settings.init)} start{cited}")
    parts.append(f"seed {settings.random_state}")
    d = {1: "one", 2: "two", 3: "three"}[settings.n_components]
    yield (
        f"A {d}-dimensional map was made by {_name_with_citation(settings.method)} "
        f"with {program} "
        f"in napari {metadata.version('napari')} ({', '.join(parts)}; {record.n_iter} "
        f"iterations{'' if snapshot.finished else ', then stopped'}; "
        f"map {snapshot.map_hash[:4]})."
    )
    if snapshot.has_pressure and saved.look.color_by == "Pressure":
        yield "Pressure, by which points leave the plane, was shown (Vladymyrov 2019)."
    yield from _iter_steering_sentences(record)


def _iter_steering_sentences(record: RunRecord) -> Iterator[str]:
    """Yield sentences on changes during the run, by settings or by hand.

    A branch, and other methods that the run went on by, are told as well.
    """
    if record.is_branch:
        yield (
            "The run went on from an earlier map of the same data, parts of which may "
            "have been moved by hand."
        )
    games = [record.settings, *(step.settings for step in record.steered)]
    changes = [
        f"{change} after {step.iteration} iterations"
        for before, step in zip(games, record.steered, strict=False)
        if (
            change := describe_changes(before, step.settings)
        )  # "" where it went to and fro
    ]
    if changes:
        yield f"Settings were changed while it ran: {'; '.join(changes)}."
    for method in dict.fromkeys(one.method for one in games[1:]):
        if method != record.settings.method:
            yield f"It went on by {_name_with_citation(method)}."
    if record.forced:
        yield "Points, clusters or landmarks were held or moved by hand."


def _name_with_citation(method: str) -> str:
    """Return the name of a method in a sentence, with its citation."""
    title = get_method(method).title
    name = "the embedding game" if method == "game" else title.split(" (")[0]
    others = "Vladymyrov 2019" if method.startswith(_MINIMISED) else "Draganov and Dohn"
    return f"{name} {_OF_METHODS.get(method, f'({others})')}"


def _setting_to_words(name: str) -> str:
    """Return a value of a setting in words: "lle" as "LLE", "a_b" as "a b"."""
    return _WORDS.get(name, name.replace("_", " "))


def describe_clustering(state: ClusterState, snapshot: Snapshot) -> str:
    """Return a sentence on how the clusters were made, and on annotated groups.

    If there are as many clusters as landmarks with points, the sentence says that each
    such landmark is a cluster.
    """
    n_landmarks, n = len(snapshot.landmarks), len(state.annotation.groups)
    n_clusters = np.count_nonzero(np.bincount(state.cluster))
    n_used = np.count_nonzero(np.bincount(snapshot.labels))
    if n_clusters == n_used:
        text = f"Each of the {n_used} landmarks with points was taken for a cluster"
    else:
        text = (
            f"The {n_landmarks} landmarks were merged along the graph of neighbours "
            f"into {n_clusters} clusters"
        )
    verb = "was" if n == 1 else "were"
    return text + (
        f"; {count_text(n, 'group')} of points {verb} annotated." if n else "."
    )


def _iter_column_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield sentences on scores, predicted labels, learned classes and changes."""
    if scores := dataset.added_of_kind("score"):
        names = ", ".join(f'"{name}"' for name in scores)
        scored = "were scored by scanpy's score_genes (Wolf et al. 2018)"
        yield f"Gene sets ({names}) {scored}."
    for name, one in dataset.added_of_kind("predicted").items():
        batch = " after a batch effect was taken away" if one.correct_batch else ""
        unlike = dataset.obs[name + REFERENCE] == UNLIKE
        yield (
            f'Labels of "{one.label}" were predicted{batch} by the votes of the cells '
            f"of a reference ({Path(one.reference).name}) nearest on its map; "
            f"{int(unlike.sum()):,} of {len(unlike):,} cells were unlike any of it."
        )
    for name, one in dataset.added_of_kind("taught").items():
        yield (
            f'Classes "{name}" of all points are those that logistic regression gives '
            f"from {sum(map(len, one.examples.values())):,} examples sorted by hand "
            f"({', '.join(one.examples)})."
        )
    for name, one in dataset.added_of_kind("change").items():
        yield (
            f'"{name}" ({one.label}) is the log2 fold change of the share of the cells '
            "of a sample at a landmark and around it, where a moderated t-test over "
            f"samples gave a false discovery rate below {MAX_FDR:g}."
        )


def _iter_comparison_sentences(saved: SavedMap) -> Iterator[str]:
    """Yield one sentence on all tests of points, then one on each test of samples."""
    of_points = [one for one in saved.comparisons if not one.samples]
    tests = dict.fromkeys(
        _TESTS[one.method] + " corrected for ties" * one.tie_correct
        for one in of_points
    )
    if tests:
        yield (
            f"Groups of points were compared by {' and '.join(tests)} of all "
            f"{saved.dataset.column_noun}s, with p-values adjusted by Benjamini and "
            "Hochberg."
        )
    for one in saved.comparisons:
        if one.samples:
            yield _describe_sample_comparison(saved.dataset, one)


def _describe_sample_comparison(dataset: Dataset, one: ShownComparison) -> str:
    """Return how samples were compared: the model, the pairs, and what was left out.

    ``one``: a comparison by samples.
    """
    outside = ~one.inside if one.outside is None else one.outside
    groups = np.select([one.inside, outside], [INSIDE, OUTSIDE], -1)
    design = plan_sample_comparison(groups, dataset.obs[one.samples].to_numpy())
    is_log1p = dataset.expression.is_log1p
    of_means = (
        "log2 of the mean normalised counts, scaled to equal medians,"
        if is_log1p
        else "the means"
    )
    text = (
        f"{one.title}: {of_means} of the cells of each sample in a group (pseudobulk) "
        f"were compared by {_OF_SAMPLES[is_log1p]}. {design.describe(one.samples)}"
    )
    if is_log1p:
        text += (
            " Genes with too few counts by the rule of edgeR's filterByExpr (Chen et "
            "al. 2016) were not tested."
        )
    return text + " p-values were adjusted by Benjamini and Hochberg."
