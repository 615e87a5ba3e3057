"""The embedding game for AnnData, in the style of scanpy: ``tl.embedding_game(adata)``.

:func:`map_onto_reference` places new cells on a map and predicts their labels,
:func:`add_cells` adds new cells to a map, which then moves a little, :func:`replay`
repeats a run that a person steered by hand in the window, :func:`compare` ranks the
features by which two groups differ, :func:`shares` and :func:`shares_on_map` compare
how many cells samples have in groups and regions, :func:`tracks` follows objects
through time, :func:`are_two` tests whether two groups are distinct, :func:`firmness`
tests each number of clusters, :func:`stability` measures which cells keep their
neighbours with other seeds, :func:`neighborhoods` compares which groups lie beside each
other in tissue with chance, and :func:`suggest_names` suggests a cell type for each
cluster.

Results are written to `adata`, or with ``copy=True`` to a copy, which is returned.
``key_added`` replaces "X_embedding_game" in ``obsm`` and "embedding_game" in ``obs``
and ``uns``.  All functions raise InputError for a wrong argument or a missing map or
column, and DataError for a space that is missing or cannot be read.

>>> import scanpy as sc  # doctest: +SKIP
>>> from napari_embedding_game import tl  # doctest: +SKIP
>>> sc.pp.neighbors(adata)  # doctest: +SKIP
>>> tl.embedding_game(adata, n_clusters=12)  # doctest: +SKIP
>>> sc.pl.embedding(  # doctest: +SKIP
...     adata, "X_embedding_game", color="embedding_game_cluster"
... )
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from napari_embedding_game.core import estimator
from napari_embedding_game.core.addition import AddedRows, add_rows
from napari_embedding_game.core.errors import (
    EmbeddingWarning,
    InputError,
    PrecomputedDistancesError,
    check_integer,
)
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.tissue import find_tissue_neighbors
from napari_embedding_game.core.inspect.clusters import build_merge_tree, landmark_graph
from napari_embedding_game.core.inspect.firmness import (
    measure_cuts,
    suggest_n_clusters,
)
from napari_embedding_game.core.inspect.group_sums import run_to_result
from napari_embedding_game.core.inspect.map_comparison import measure_kept_neighbors
from napari_embedding_game.core.inspect.markers import MarkerMethod, markers
from napari_embedding_game.core.inspect.neighborhoods import (
    PERMUTATIONS,
    compare_neighborhoods,
)
from napari_embedding_game.core.inspect.sample_comparison import INSIDE, OUTSIDE
from napari_embedding_game.core.inspect.separation import (
    Separation,
    measure_separation,
)
from napari_embedding_game.core.inspect.shares import (
    MAX_FDR,
    compare_shares,
    find_landmark_changes,
)
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.data.cell_types import OWN_TABLE, CellType, read_cell_types
from napari_embedding_game.data.column_names import Role
from napari_embedding_game.data.columns import KEY, share_text
from napari_embedding_game.data.dataset import is_pairwise_space
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import MAP_COLUMNS
from napari_embedding_game.data.export.result import (
    find_installed_versions,
    to_storable,
)
from napari_embedding_game.data.expression import (
    read_log_base,
    to_dense,
    to_natural_log,
)
from napari_embedding_game.data.formats import spaces
from napari_embedding_game.data.formats.anndata import read_expression
from napari_embedding_game.data.formats.store import read_element
from napari_embedding_game.data.roles import convert_to_role, find_track_roles
from napari_embedding_game.data.stages import finish
from napari_embedding_game.data.tissue import to_tissue_positions
from napari_embedding_game.session.file.archive import load_recorded_map
from napari_embedding_game.session.name_suggestions import (
    iter_suggestions,
    validate_genes,
)
from napari_embedding_game.session.reference import reference_map
from napari_embedding_game.session.reference.mapping import (
    MIN_SHARED_GENES,
    map_cells,
    project_cells,
    vote_on_map,
    write_mapped_cells,
)
from napari_embedding_game.session.run.replay import replay_to_result
from napari_embedding_game.session.second_space import (
    TISSUE,
    average_in_tissue,
    number_sections,
)
from napari_embedding_game.session.tracks import build_tracks, make_track_columns

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = [
    "add_cells",
    "are_two",
    "compare",
    "embedding_game",
    "firmness",
    "map_onto_reference",
    "neighborhoods",
    "replay",
    "shares",
    "shares_on_map",
    "stability",
    "suggest_names",
    "tracks",
]
_COLUMNS = ("pressure", "stretch", "isolation")
_WRITTEN = ("embedding", "landmarks", "energy", "map_hash", *_COLUMNS)
"""Attributes of the estimator, or of a snapshot, that are written to the AnnData."""
_OF_ONE_MAP = ("stability", "change", "session")
"""Results in ``uns`` and ``obs``, and the window's session in ``uns``, which are of the
map before cells were added."""
STEADY = 0.5
"""Share of its neighbours that a steady cell keeps on the map of every seed."""


def embedding_game(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    neighbors_key: str | None = None,
    second_rep: str | None = None,
    section_key: str | Sequence[str] | None = None,
    n_neighbors: int | None = None,
    random_state: Any = 0,
    steering: estimator.Steering = (),
    stop_at: int | None = None,
    key_added: str | None = None,
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Embed the cells of `adata` by :class:`~napari_embedding_game.EmbeddingGame`.

    Results have the same names as in an .h5ad file that the window saves.  They replace
    those of a former map under the same key.

    Parameters
    ----------
    adata : AnnData
    use_rep : str, optional
        Space whose neighbours are searched: "X_pca", "X_pca_harmony" or another key of
        ``obsm``, "X", "raw", or a key of ``layers``.
    neighbors_key : str, optional
        Key of ``uns`` under which ``sc.pp.neighbors`` stored its graph.  Without
        `use_rep` and `neighbors_key`, "neighbors" is used if it exists, as by
        ``sc.tl.umap``; else ``obsm["X_pca"]``, else another entry of ``obsm`` that is
        no map, else ``X``.
    second_rep : str, optional
        Second space, in which cells have to be near, too: a key as of `use_rep`, or
        "tissue" for the mean of the 30 cells around each cell by ``obsm["spatial"]``.
        ``method_params={"second_share": 0.3}`` weighs it, from 0 to 1, by default 0.5.
    section_key : str or sequence of str, optional
        Column of ``obs`` with the section of each cell, for "tissue"; of a movie as for
        :func:`neighborhoods`.
    n_neighbors : int, optional
        Number of neighbours; by default that of the graph, or 15 in a space.
    random_state : int, RandomState or None, default=0
        The same seed gives the same map, see
        :class:`~napari_embedding_game.EmbeddingGame`; None chooses a random seed.
    steering : sequence of (iteration, dict of parameters), optional
        Changes during the run, such as ``[(120, {"repulsion": 700})]``: see
        :meth:`~napari_embedding_game.EmbeddingGame.fit`.
    stop_at : int, optional
        Iteration after which the run ends before the end of its schedule.
    **parameters
        Any other parameter of the estimator, such as ``n_clusters=12``,
        ``method="tsne"`` or ``n_components=3``.

    Returns
    -------
    ``obsm["X_embedding_game"]`` : (n_obs, d) float32
        The map.
    ``obs["embedding_game_cluster"]`` : category
        Cluster of each cell; without ``n_clusters`` its nearest landmark.
    ``obs["embedding_game_pressure"]``, ``..._stretch``, ``..._isolation`` : float32
        See ``pressure_``, ``stretch_`` and ``isolation_`` of the estimator; no pressure
        under methods that do not define it.
    ``uns["embedding_game"]`` : dict
        "parameters", with the space or the graph used and the seed; "landmarks",
        "energy", "map_hash" and "versions".
    """
    adata = _copy_if_asked(adata, copy)
    X, used_neighbors, noted = _find_input(adata, use_rep, neighbors_key)
    if "neighbors_key" in noted:
        if "metric" in parameters:
            raise InputError(
                f'The neighbours of uns["{noted["neighbors_key"]}"] are used, and '
                f'metric="{parameters["metric"]}" would search others: leave it out, '
                "or give use_rep."
            )
        parameters = {**parameters, "metric": "precomputed"}
    k = used_neighbors if n_neighbors is None else n_neighbors
    _validate_parameters(parameters)
    _validate_finite(X, adata, noted)
    given = parameters.get("method_params") or {}
    metric = parameters.get("metric", Settings().metric)
    second_X = _find_second_rows(adata, X, second_rep, section_key, metric)
    if second_rep is not None:
        parameters["method_params"] = {**given, "second_space": second_rep}
    model = estimator.EmbeddingGame(
        n_neighbors=k, random_state=random_state, **parameters
    )
    try:
        model.fit(X, steering=steering, stop_at=stop_at, second_X=second_X)
    except PrecomputedDistancesError as error:
        if "neighbors_key" not in noted:
            raise
        raise InputError(
            f'{error} Here these are the neighbours of uns["{noted["neighbors_key"]}"]'
            ': give use_rep, such as "X_pca", to search others in a space, or compute '
            "them again with sc.pp.neighbors."
        ) from error
    used = {**estimator.collect_fitted_parameters(model), **noted}
    if second_rep is not None and section_key:
        used["section_key"] = section_key
    if steering or stop_at is not None:
        steps = [(at, dict(changed)) for at, changed in steering]
        noted_steps = json.dumps(steps, default=reference_map.restore_parameter)
        used |= {"steering": noted_steps, "stop_at": stop_at}
    parts = {name: getattr(model, f"{name}_") for name in _WRITTEN}
    _write_map(adata, parts, model.labels_, used, key_added)
    return adata if copy else None


def _validate_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise TypeError for a parameter that the estimator does not have.

    The message says where a field of :class:`Settings` belongs instead, or what is
    offered.
    """
    offered = set(estimator.EmbeddingGame().get_params())
    for name in sorted(set(parameters) - offered):
        others = {each.name for each in fields(Settings)} - offered
        advice = f"give method_params={{{name!r}: ...}}"
        if name not in others:
            advice = f"choose one of {', '.join(sorted(offered))}"
        raise TypeError(f"tl.embedding_game() takes no parameter {name!r}: {advice}.")


def _validate_finite(X: Any, adata: AnnData, noted: Mapping[str, str]) -> None:
    """Raise InputError if a cell has missing or infinite values, naming the first one.

    ``X``: space or distances; ``noted``: the keys of its origin.  Nothing is raised for
    an ``X`` that is no table of numbers: the estimator says what is wrong with it.
    """
    values = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        return  # the estimator says what they are
    if (gap := estimator.find_first_nonfinite(values)) is not None:
        where = noted.get("use_rep") or f'obsp["{noted["distances_key"]}"]'
        raise InputError(
            f"{where} has missing or infinite values (NaN, inf) in {gap[2]:,} of "
            f'{adata.n_obs:,} cells, first in "{adata.obs_names[gap[0]]}": leave such '
            "cells out of adata, or compute it again."
        )


def replay(
    adata: AnnData,
    session: str | Path,
    *,
    use_rep: str | None = None,
    neighbors_key: str | None = None,
    second_rep: str | None = None,
    section_key: str | Sequence[str] | None = None,
    n_clusters: int | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Repeat the run of a session file on the cells of `adata`, with its steering.

    Changes by hand in the window are repeated, too: clusters that were dragged, points
    that were held, and branches from earlier maps.  With the same versions the map is
    identical bit for bit, on any processor.

    Parameters
    ----------
    adata : AnnData
        The cells of the run, in the same order.
    session : str or Path
        Session file (.zip) of the window; the map that it shows is replayed.
    use_rep, neighbors_key, second_rep, section_key : optional
        The spaces or graph of the run, as for :func:`embedding_game`.
    n_clusters : int, optional
        Number of clusters into which landmarks are merged; None for one per landmark.

    Returns
    -------
    The same entries as of :func:`embedding_game`.

    Raises
    ------
    DataError
        The session has no run, or `adata` has another number of cells, other cells or
        another order.  Cells that are numbered instead of named, here or in the
        session, are taken to be in the order of the run.
    """
    saved = load_recorded_map(session)
    record, cells, names = saved.record, saved.dataset.obs.index, adata.obs_names
    assert record is not None
    if len(cells) != adata.n_obs:
        raise DataError(
            f"The run of {Path(session).name} was of {len(cells):,} cells, and these "
            f"are {adata.n_obs:,}: leave out the same cells as then."
        )
    counts = [pd.RangeIndex(i, i + len(names)).astype(str) for i in (0, 1)]
    are_named = cells.is_unique and not any(map(names.equals, counts))
    overlaps = are_named and names.isin(cells).any()
    is_same = names.sort_values().equals(cells.sort_values())
    are_others = are_named and not overlaps and not _are_row_numbers(cells)
    if not names.equals(cells) and (is_same or overlaps or are_others):
        which = "other cells, some of which are here: leave out the same as then."
        if is_same:
            which = "these cells in another order: sort them as then."
        elif are_others:
            which = (
                f'cells of other names, such as "{cells[0]}" where these have '
                f'"{names[0]}": give the cells of the run. If these are they, in the '
                "same order, give them their names, or numbers: adata.obs_names = "
                "range(adata.n_obs)."
            )
        raise DataError(f"The run of {Path(session).name} was of {which}")
    adata = _copy_if_asked(adata, copy)
    X, _, noted = _find_input(adata, use_rep, neighbors_key)
    metric = record.settings.metric
    second_X = _find_second_rows(adata, X, second_rep, section_key, metric)
    result = replay_to_result(X, record, noted, n_clusters, second_X)
    parts = {name: getattr(result.snapshot, name) for name in _WRITTEN}
    _write_map(adata, parts, result.groups.labels, result.parameters, key_added)
    return adata if copy else None


def _are_row_numbers(names: pd.Index) -> bool:
    """Return whether names are whole numbers that increase, as of rows without names.

    Rows that were left out of a map are missing among them.
    """
    if not names.str.fullmatch(r"\d{1,18}").all():
        return False
    return bool(names.astype("int64").is_monotonic_increasing)


def map_onto_reference(
    adata: AnnData,
    reference: AnnData | str | Path,
    labels: str | Sequence[str] = "embedding_game_cluster",
    *,
    n_neighbors: int = 15,
    min_shared_genes: float = 0.5,
    unlike: float = 0.01,
    correct_batch: bool = False,
    copy: bool = False,
) -> AnnData | None:
    """Place new cells on the map of a reference, and predict their labels.

    Like ``sc.tl.ingest``, for maps of this program.  Genes are aligned by name; new
    cells are normalised, scaled and projected as the reference was, and placed by
    ``transform``.  The map of the reference does not change.

    Parameters
    ----------
    adata : AnnData
        New cells, with raw counts or their logarithms in ``X``, ``layers["counts"]`` or
        ``raw``; any order of genes.  If the reference's space is not of principal
        components, the same space in ``obsm``.
    reference : AnnData or path
        With the result of :func:`embedding_game`, ``fit`` or the window, or with a map
        that another program made (``obsm["X_umap"]``), as an object or as .h5ad file.
    labels : str or sequence of str
        Columns of the reference's ``obs`` to predict.
    n_neighbors : int
        Number of nearest reference cells on the map that vote on a label; the nearest
        has up to seven times the weight of the farthest.
    min_shared_genes : float
        Least share of the genes of the reference's components that `adata` must have,
        else DataError is raised; missing genes are set to the reference's mean.
    unlike : float
        A new cell is called unlike the reference if it scores higher than all but this
        share of the reference's cells.
    correct_batch : bool, default=False
        Whether to first remove differences between new cells and reference cells of the
        same kind, such as those of a batch or condition.  Use it only if both have
        about the same kinds: cells of other kinds would be moved to a wrong kind.

    Returns
    -------
    ``obsm["X_embedding_game"]`` : (n_obs, d) float32
        Positions on the reference's map.
    ``obsm["X_umap"]`` : (n_obs, d) float32
        The positions in coordinates of a map by another program, under its key.
    ``obsm["X_pca"]`` : (n_obs, C) float32
        Coordinates in the space of the reference, under the key of the space.
    ``obs["<label>_predicted"]`` : category
        The label with most votes.
    ``obs["<label>_predicted_confidence"]`` : float32
        The share of the votes for this label, 0 to 1.
    ``obs["unlike_reference"]`` : bool
        Whether the cell is unlike all cells of the reference.
    ``obs["reference_likeness"]`` : float32
        Share of the reference's cells that are at least as unlike the rest of the
        reference as this cell: below `unlike` for unlike cells.
    ``obs["reference_distance"]`` : float32
        Mean distance to the nearest reference cells; 1 where it equals the mean
        distance of these cells to their own nearest cells.
    ``uns["embedding_game_reference"]`` : dict
        Missing genes, parameters, figures and notes.
    """
    name = "The reference"
    if isinstance(reference, str | Path):
        name = Path(reference).name
        reference = reference_map.read_reference_file(Path(reference))
    fitted = reference_map.to_reference_map(reference, name)
    columns = [labels] if isinstance(labels, str) else list(labels)
    adata = _copy_if_asked(adata, copy)
    stages = map_cells(
        *(fitted, "The new data", adata, columns),
        n_neighbors=n_neighbors,
        min_shared_genes=min_shared_genes,
        unlike=unlike,
        correct_batch=correct_batch,
    )
    write_mapped_cells(adata, finish(stages))
    return adata if copy else None


def add_cells(
    adata: AnnData,
    new: AnnData,
    *,
    min_shared_genes: float = MIN_SHARED_GENES,
    copy: bool = False,
) -> tuple[AnnData, AnnData] | None:
    """Add the cells of `new` to the map of `adata`, whose cells hardly move.

    Unlike by :func:`map_onto_reference`, which leaves the map as it is, new cells
    become neighbours of the others, as by the estimator's
    :meth:`~napari_embedding_game.EmbeddingGame.partial_fit`.  The results are written
    to both, so that ``anndata.concat([adata, new], merge="first", uns_merge="first")``
    has the map of all cells, to which further cells can be added.  Before that, make
    sure that ``X`` holds the same kind of values in both: nothing converts it.

    Parameters
    ----------
    adata : AnnData
        With the map of :func:`embedding_game`, or of the window, and its space.
    new : AnnData
        New cells with other names, and the same kind of values as for
        :func:`map_onto_reference`, by which they are projected.
    min_shared_genes : float
        As for :func:`map_onto_reference`.
    copy : bool, default=False
        Whether to write to copies of both, which are returned.

    Returns
    -------
    ``obsm["X_embedding_game"]`` : (n_obs, d) float32
        Positions of the cells of each.
    ``obs["embedding_game_cluster"]`` : category
        Of `adata` unchanged; of `new` by a vote of the 15 nearest cells of `adata` on
        the map, and so ``embedding_game_annotation`` where `adata` has it.
    ``obs["embedding_game_pressure"]``, ``..._stretch``, ``..._isolation`` : float32
        As of :func:`embedding_game`.
    ``obsm["X_pca"]`` : (n_obs, C) float32
        Of `new`, its coordinates in the space of the map, under the key of the space.
    ``uns["embedding_game"]`` : dict
        The record of the map, with "landmarks", "energy" and "map_hash" of all cells,
        and "added": the number of cells that were added to the map, and notes.  A
        session of the window, which is of the former map, is left out: keep its file.

    Raises
    ------
    InputError
        There is no map, its method is no game, or cells have the same name.
    DataError
        As of :func:`map_onto_reference`.

    Warns
    -----
    EmbeddingWarning
        New cells are unlike those of the map, see
        :meth:`~napari_embedding_game.EmbeddingGame.partial_fit`.
    """
    _require_map_keys(adata, None)
    both = new.obs_names[new.obs_names.isin(adata.obs_names)]
    if len(both):
        raise InputError(
            f'{len(both):,} new cells have the name of a cell of the map, such as "'
            f'{both[0]}": leave out cells that are there, and give others other names.'
        )
    reference = reference_map.to_reference_map(adata, "adata")
    projected = project_cells("The new data", new, reference, min_shared_genes)
    added = add_rows(reference.fitted, projected.rows)
    adata, new = _copy_if_asked(adata, copy), _copy_if_asked(new, copy)
    is_on_map = reference.dataset.kept
    n, embedding = int(is_on_map.sum()), added.snapshot.embedding
    former = adata.uns[KEY]
    n_before = int(former.get("added", {}).get("cells", 0))
    record = {name: former[name] for name in former if name not in _OF_ONE_MAP}
    record |= {
        "landmarks": added.snapshot.landmarks,
        "energy": float(added.snapshot.energy),
        "map_hash": added.snapshot.map_hash,
        "versions": find_installed_versions(),
        "added": {
            "cells": n_before + new.n_obs,
            "notes": " ".join(projected.notes),
        },
    }
    for name in (f"{KEY}_cluster", f"{KEY}_annotation"):
        if name in adata.obs:
            column = adata.obs[name][is_on_map]
            voted, _ = vote_on_map(column, embedding[:n], embedding[n:])
            new.obs[name] = voted
    element = spaces.split_space(reference.dataset.space)
    if projected.match is not None and element is not None and element[0] == "obsm":
        new.obsm[element[1]] = projected.rows
    _write_added(adata, added, is_on_map, slice(None, n), record)
    _write_added(new, added, np.ones(new.n_obs, bool), slice(n, None), record)
    for told in filter(None, (added.warning, added.snapshot.warning)):
        warnings.warn(told, EmbeddingWarning, stacklevel=2)
    return (adata, new) if copy else None


def _write_added(
    adata: AnnData,
    added: AddedRows,
    is_on_map: NDArray[np.bool_],
    rows: slice,
    record: Mapping[str, Any],
) -> None:
    """Write positions and diagnostics of some rows of a map to their cells.

    ``is_on_map`` (n_obs,): the cells that the ``rows`` are; others get NaN.  Columns of
    the former map that no longer hold are removed.  ``record``: for ``uns``.
    """

    def expand(values: NDArray[Any]) -> NDArray[np.float32]:
        """Return values of the rows for all cells, (n_obs, ...), else NaN."""
        full = np.full((adata.n_obs, *values.shape[1:]), np.nan, np.float32)
        full[is_on_map] = values[rows]
        return full

    stale = [f"{KEY}_{name}" for name in (*_OF_ONE_MAP, *_COLUMNS, "landmark")]
    adata.obs = adata.obs.drop(columns=stale, errors="ignore")
    for name in _COLUMNS:
        values = getattr(added.snapshot, name)
        if values is not None and not np.isnan(values).all():
            adata.obs[f"{KEY}_{name}"] = expand(values)
    adata.obsm[f"X_{KEY}"] = expand(added.snapshot.embedding)
    adata.uns[KEY] = dict(record)


def compare(
    adata: AnnData,
    inside: Any,
    outside: Any = None,
    *,
    method: MarkerMethod = "wilcoxon",
    tie_correct: bool = False,
    samples: str | None = None,
    log1p: bool = False,
    n_top: int | None = 20,
) -> pd.DataFrame:
    """Rank the features of ``X`` by how much higher they are in one group of rows.

    The results equal those of the window, and of ``sc.tl.rank_genes_groups``, which
    takes ``raw`` (here ``adata.raw.to_adata()``) and logarithms (here ``log1p=True``).

    Parameters
    ----------
    adata : AnnData
    inside, outside : (n_obs,) bool array or Series
        Rows of the group, and rows to compare with, by default all other rows.  A
        Series indexed by the names of the rows may be in another order.
    method : {"wilcoxon", "t-test"}
        Test of single rows; not used with ``samples``.
    tie_correct : bool, default=False
        Whether Wilcoxon's variance is corrected for ties, as by scanpy's parameter.
        Without it p-values of genes that few cells have are too large.
    samples : str, optional
        Column of ``obs`` that names the sample (donor) of each row: the means of
        samples are compared, each counts once in a group (pseudobulk).  They are
        paired where more samples are in both groups than in one.  With ``log1p`` the
        test is limma's moderated t-test with a trend, and genes with too few counts
        (edgeR's ``filterByExpr``) are left out of the table; otherwise a t-test of each
        column.  Samples with fewer than 10 rows in a group are left out.
    log1p : bool
        Whether ``X`` holds ln(1 + x), or logarithms of the base that scanpy stored;
        fold changes and means of samples are computed of x.
    n_top : int, optional
        Number of features in the table; None for all.

    Returns
    -------
    DataFrame
        One line per feature by falling score, with the columns of
        ``sc.get.rank_genes_groups_df``.  For samples, ``attrs["design"]`` has a
        sentence on how they were compared.

    Raises
    ------
    InputError
        There is no ``X``, or no column ``samples`` in ``obs``; the groups overlap, have
        fewer than 2 rows or 2 samples, or hold values that are no finite numbers;
        ``method`` is unknown, or ``n_top`` below 1.
    """
    if adata.X is None:
        raise InputError("The AnnData has no X: put what is compared there.")
    if samples is not None and samples not in adata.obs:
        raise InputError(
            f"obs has no column {samples!r}: name the one that tells the sample of "
            "each row."
        )
    if n_top is not None:
        check_integer("n_top", n_top, 1)
    X = _to_matrix(adata.X)
    table = markers(
        to_natural_log(X, read_log_base(adata)) if log1p else X,
        _to_mask(adata, inside),
        None if outside is None else _to_mask(adata, outside),
        list(adata.var_names),
        method=method,
        tie_correct=tie_correct,
        samples=None if samples is None else adata.obs[samples].to_numpy(),
        n_top=n_top,
        log1p=log1p,
    )
    frame = table.to_frame()
    if table.design is not None:
        frame.attrs["design"] = table.design.describe(str(samples))
    return frame


def shares(
    adata: AnnData,
    groupby: str,
    samples: str,
    condition: str,
    *,
    levels: tuple[str, str] | None = None,
) -> pd.DataFrame:
    """Compare the shares of groups of cells between two conditions, over samples.

    Shares of samples are compared as logits by a moderated t-test, as propeller does
    (Phipson et al. 2022).  Samples are paired where more samples are in both conditions
    than in one.

    Parameters
    ----------
    adata : AnnData
    groupby : str
        Column of ``obs`` with the groups, such as clusters or cell types.
    samples : str
        Column of ``obs`` that names the sample (donor) of each cell.  Samples with
        fewer than 10 cells in a condition are left out.
    condition : str
        Column of ``obs`` with the condition of each cell.
    levels : (str, str), optional
        The condition whose shares are compared, and that it is compared with; by
        default the first two levels, in their order, if there are no more.

    Returns
    -------
    DataFrame
        One line per group by rising p.  "share_first", "share_second": mean share over
        the samples of each condition, 0 to 1.  "log2_fold_change": log2 of the ratio of
        these means, with half a cell added to each count.  "score": moderated t,
        positive where the share is larger in the first condition.  "pval", "pval_adj":
        two-sided p, and p adjusted by Benjamini and Hochberg.  ``attrs["design"]`` has
        a sentence on how the samples were compared.

    Raises
    ------
    InputError
        A column is missing; the condition has not these two levels; a condition has
        fewer than two samples of 10 cells.
    """
    groups = _require_column(adata, groupby).astype("category").cat
    sides, levels = _find_sides(adata, condition, levels)
    result = compare_shares(
        groups.codes.to_numpy(np.int64),
        len(groups.categories),
        sides,
        _require_column(adata, samples).to_numpy(),
        levels,
    )
    if result.refusal:
        raise InputError(result.refusal)
    frame = result.to_frame()
    frame.insert(0, groupby, groups.categories.astype(str))
    frame = frame.sort_values("pval", kind="stable", ignore_index=True)
    frame.attrs["design"] = result.describe(samples)
    return frame


def shares_on_map(
    adata: AnnData,
    samples: str,
    condition: str,
    *,
    levels: tuple[str, str] | None = None,
    use_rep: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Find where on a map the share of cells has changed between two conditions.

    Each landmark of the map is counted together with its neighbours in the graph, and
    compared over samples as :func:`shares` does.

    Parameters
    ----------
    adata : AnnData
        With the map of :func:`embedding_game`.
    samples, condition, levels
        As for :func:`shares`.
    use_rep : str, optional
        As for :func:`firmness`.

    Returns
    -------
    ``obs["embedding_game_change"]`` : float32
        Log2 fold change of the share at and around the landmark of a cell, where its
        false discovery rate is below 0.1; NaN elsewhere.
    ``uns["embedding_game"]["change"]`` : str
        A sentence on how many landmarks have changed.

    Raises
    ------
    InputError
        There is no map; otherwise as :func:`shares`.
    """
    key, at = _require_map_keys(adata, key_added)
    sides, levels = _find_sides(adata, condition, levels)
    names = _require_column(adata, samples).to_numpy()
    is_placed = _find_placed_cells(adata, at)
    _, labels, graph, _ = _find_landmarks(adata, key, at, use_rep)
    changes, text = find_landmark_changes(
        labels, graph, sides[is_placed], names[is_placed], levels
    )
    if text:
        raise InputError(text)
    adata = _copy_if_asked(adata, copy)
    values = np.full(adata.n_obs, np.nan, np.float32)
    values[is_placed] = changes[labels]
    adata.obs[f"{key}_change"] = values
    adata.uns[key]["change"] = (
        f"{np.isfinite(changes).sum():,} of {len(np.unique(labels)):,} landmarks have "
        f"changed in {levels[0]} against {levels[1]}, at a false discovery rate below "
        f"{MAX_FDR:g}."
    )
    return adata if copy else None


def tracks(
    adata: AnnData,
    groupby: str,
    *,
    track: str | None = None,
    time: str | None = None,
    movies: str | None = None,
    positions: Sequence[str] = (),
) -> pd.DataFrame:
    """Follow objects through time: their classes, speed and displacement.

    Parameters
    ----------
    adata : AnnData
        A row for each object at each time.
    groupby : str
        Column of ``obs`` with the classes, such as clusters.
    track, time : str, optional
        Columns of ``obs`` with the track and the time of each row; by default the first
        columns called like "track_id" and "frame".  Rows without either are left out.
    movies : str, optional
        Column that tells movies apart in which tracks have the same ids.
    positions : sequence of str
        Columns with the axes of positions, for speed and displacement.

    Returns
    -------
    DataFrame
        One line per track: "track", "moments", "from" and "to" (times), "majority",
        "first" and "last" class, and "sequence" of classes.

    ``obs["track_majority"]``, ``obs["track_first"]``, ``obs["track_last"]`` : category
    ``obs["track_sequence"]`` : str
        The same for each row.
    ``obs["track_speed"]``, ``obs["track_displacement"]`` : float64
        Distance from the former moment by the time since then, and distance from the
        first moment, in units of the columns; NaN at first moments.

    Raises
    ------
    InputError
        A column is missing, or none is called like tracks or times.
    DataError
        Times or positions hold texts or dates.
    """
    named = {"tracks": track, "times": time}
    known: dict[str, Role] = {}
    if track is not None:
        known[track] = "tracks"
    if time is not None:
        known[time] = "times"
    guessed = find_track_roles(adata.obs, known)
    found = {role: column for column, role in reversed(guessed.items())}
    for role, name in named.items():
        if name is None and role not in found:
            raise InputError(f"obs has no column of {role}: name it as {role[:-1]}.")
    ids, times = (
        _require_column(adata, named[role] or found[role])
        for role in ("tracks", "times")
    )
    times = convert_to_role(times, "times", "the AnnData")
    places = [
        convert_to_role(_require_column(adata, name), "positions", "the AnnData")
        for name in positions
    ]
    built = build_tracks(
        ids,
        times.to_numpy(np.float64, na_value=np.nan),
        [] if movies is None else [_require_column(adata, movies)],
        np.stack(places, axis=1).astype(float) if places else None,
    )
    classes = pd.Categorical(_require_column(adata, groupby))
    for ending, values in make_track_columns(built, classes).items():
        adata.obs[f"track{ending}"] = values
    return built.summarise_classes(classes)


def _require_column(adata: AnnData, name: str) -> pd.Series:
    """Return a column of ``obs``; raise InputError where there is none."""
    if name not in adata.obs:
        raise InputError(f"obs has no column {name!r}: name one of its columns.")
    return adata.obs[name]


def _find_sides(
    adata: AnnData, condition: str, levels: tuple[str, str] | None
) -> tuple[NDArray[np.int64], tuple[str, str]]:
    """Return the side of each cell, (n_obs,), and the two levels of a condition.

    Sides are INSIDE for the first level, OUTSIDE for the second, and -1 for neither.
    Raises InputError: the column has not these two levels, or more than two and
    ``levels`` is None.
    """
    column = _require_column(adata, condition)
    known = column.dropna().astype("category").cat.remove_unused_categories()
    present = [str(name) for name in known.cat.categories]
    chosen = tuple(present) if levels is None else tuple(map(str, levels))
    if len(set(chosen)) != 2 or not set(chosen) <= set(present):
        raise InputError(
            f"Give levels=(first, second), two of the levels of obs[{condition!r}]: "
            f"{', '.join(present)}."
        )
    texts = column.astype(object).map(str).to_numpy()
    sides = np.select([texts == one for one in chosen], [INSIDE, OUTSIDE], -1)
    return sides, (chosen[0], chosen[1])


def stability(
    adata: AnnData,
    *,
    n_seeds: int = 5,
    key_added: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Measure which cells keep their neighbours on maps from other seeds.

    The map of :func:`embedding_game`, or of the window, is made again with other seeds,
    and each new map is compared with it.  The map itself does not change.  Steering is
    not repeated, and cells that are not on the map get NaN.

    Parameters
    ----------
    adata : AnnData
        With the map, its parameters and its space; the map has no given start.
    n_seeds : int, default=5
        Number of other seeds.

    Returns
    -------
    ``obs["embedding_game_stability"]`` : float32
        Share of a cell's 15 nearest neighbours on the map that are among its 75 nearest
        with another seed, as mean over the seeds: 1 for a cell that keeps all.  Of
        fewer than 301 cells both numbers are smaller, so that chance keeps a quarter at
        most.
    ``uns["embedding_game"]["stability"]`` : str
        A sentence on the share of cells that are steady with every seed.

    Raises
    ------
    InputError
        There is no map, or the map began at given positions, which all seeds share.
    """
    check_integer("n_seeds", n_seeds, 1)
    key, at = _require_map_keys(adata, key_added)
    noted = adata.uns[key]["parameters"]
    parameters = {
        name: reference_map.restore_parameter(value) for name, value in noted.items()
    }
    is_free = isinstance(parameters.get("init"), str)
    if not is_free or "placed_on" in noted or parameters["method"] == "given":
        raise InputError(
            "The map began at places that were given, to which other seeds keep: make "
            'it with a start such as init="random" to ask how stable it is.'
        )
    adata = _copy_if_asked(adata, copy)
    is_placed = _find_placed_cells(adata, at)
    X, positions = _find_input_of_map(adata, key)[is_placed], adata.obsm[at][is_placed]
    X = X[:, is_placed] if parameters["metric"] == "precomputed" else X
    model = estimator.EmbeddingGame(**estimator.to_parameters(parameters))
    seed, all_shares = parameters["random_state"], []
    for number in range(n_seeds):
        model.set_params(random_state=(seed + 1 + number) % 2**32)
        all_shares.append(measure_kept_neighbors(positions, model.fit_transform(X)))
    shares = np.full(adata.n_obs, np.nan, np.float32)
    shares[is_placed] = np.mean(all_shares, axis=0)
    adata.obs[f"{key}_stability"] = shares
    steady = (np.min(all_shares, axis=0) >= STEADY).mean()
    maps = f"each of {n_seeds} maps from other seeds"
    maps = "a map from another seed" if n_seeds == 1 else maps
    adata.uns[key]["stability"] = (
        f"{share_text(steady)} of the cells keep at least half of their neighbours on "
        f"{maps}. Do not rely on what surrounds the others."
    )
    return adata if copy else None


def firmness(
    adata: AnnData, *, use_rep: str | None = None, key_added: str | None = None
) -> pd.DataFrame:
    """Test how firm each number of clusters of a map is.

    Each number of clusters divides one cluster of the next smaller number, along the
    merge tree of the map's landmarks.  The division is firm if cells are missing where
    its two parts meet, next to what any single group has there, skewed and flat groups
    included.

    Parameters
    ----------
    adata : AnnData
        With the map of :func:`embedding_game`.
    use_rep : str, optional
        Space in which cells are compared and neighbours searched, with the metric of
        the map; by default the space of the map, or, for a map made of a graph of
        neighbours, that of :func:`embedding_game`.

    Returns
    -------
    DataFrame
        Indexed by the number of clusters, from 2 on.  "parted": number of cells of the
        smaller part.  "firm": whether this number of clusters is firm.  "p":
        probability that as many cells are missing in a sample of one group.  "depth":
        share of the cells that are missing where the parts meet, 0 to 1.  "gap":
        whether fewer cells are there than on both sides of it.  Where a part is too
        small to be tested, "firm" and "gap" are False, and "p" and "depth" are NaN.
        ``attrs["suggested"]``: the coarse number, which is firm and has the highest
        modularity over the widest range of resolutions, and the fine number,
        the last that is firm up to resolution 1; only one number where both are
        equal, and () where no number is firm.
    """
    key, at = _require_map_keys(adata, key_added)
    X, labels, graph, metric = _find_landmarks(adata, key, at, use_rep)
    tree = build_merge_tree(graph, np.bincount(labels, minlength=graph.shape[0]))
    cuts = list(measure_cuts(X, tree, graph, labels, metric=metric))
    tested = [cut.separation for cut in cuts]
    columns = {
        "parted": [cut.n_parted for cut in cuts],
        "firm": [cut.is_firm for cut in cuts],
        "gap": [each is not None and each.has_gap for each in tested],
        "depth": [np.nan if each is None else each.depth for each in tested],
        "p": [np.nan if each is None else each.p for each in tested],
    }
    index = pd.Index([cut.n_clusters for cut in cuts], name="clusters")
    table = pd.DataFrame(columns, index)
    table.attrs["suggested"] = suggest_n_clusters(cuts)
    return table


def are_two(
    adata: AnnData, inside: Any, outside: Any, *, use_rep: str | None = None
) -> Separation:
    """Test whether two groups of cells are distinct, or parts of one group.

    Groups that were found in the same data always differ, and p-values of markers
    between them are too small.  So the cells are scored along the line from one group
    to the other, by a discriminant that other cells have taught.  The groups are two if
    more cells are missing where they meet than in any single group with a log-concave
    density (Gaussian, skewed, flat).  Cells of neither group count where they lie
    between the two.  Bent groups fail: the ends of an arc are two.

    Parameters
    ----------
    adata : AnnData
    inside, outside : (n_obs,) bool array or Series
        The two groups, as for :func:`compare`, of 10 cells or more each.
    use_rep : str, optional
        Space in which cells are compared; by default as for :func:`firmness`, with the
        metric of the map, where there is a map, else as for :func:`embedding_game`.

    Returns
    -------
    Separation
        Its ``str()`` is the answer in words.  ``p``: probability that as many cells are
        missing in a sample of one group; ``is_firm``: p < 0.01; ``depth``: share of the
        cells that are missing where the groups meet, 0 to 1; ``has_gap``: whether fewer
        cells are there than on both sides of it (dip test at 0.01).

    Raises
    ------
    InputError
        The groups overlap, are no masks of the cells, or have too few cells.
    """
    first, second = _to_mask(adata, inside), _to_mask(adata, outside)
    if (first & second).any():
        raise InputError("Some cells are in both groups: leave them out of one.")
    X, metric = _read_space_and_metric(adata, use_rep, adata.uns.get(KEY, {}))
    *rows, others = map(np.flatnonzero, (first, second, ~(first | second)))
    return measure_separation(X, *rows, others=others, metric=metric)


def suggest_names(
    adata: AnnData,
    groupby: str = "embedding_game_cluster",
    markers: str | Path | Mapping[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """Suggest a cell type for each group of cells, with the evidence; write nothing.

    A gene is high in a group if it is twice as high as in the half of the groups that
    have least of it, and above 0 in 10 % of the cells.  A type fits if a third of its
    genes are high (two at least; five are enough), and if its genes are higher than
    those of all but 1 % of tables in which each gene is replaced by another of the same
    mean expression.

    Parameters
    ----------
    adata : AnnData
        With counts or log1p of counts; the genes are those that the window shows, of
        ``raw`` where there is one, else of ``X``.
    groupby : str
        Column of ``obs`` that names the group of each cell.
    markers : str, Path or mapping, optional
        Genes of the types: a file (.csv with the columns "type" and "gene", .gmt, the
        tables of PanglaoDB and of CellTypist), or lists of genes by type.  By default
        the program's own table of 77 types in human symbols.  Case is ignored, so that
        mouse genes of the same name are found.

    Returns
    -------
    DataFrame
        Indexed by group.  "name": the suggested type, "" where none fits.  "evidence":
        its high genes, how many times higher each is than in the half of the groups
        that have least, and in what share of the cells it is above 0.  "score":
        standard deviations by which its genes are higher than random genes.
        "second", "second_evidence", "second_score": the next type that fits.  "source":
        publication that names the genes, "" if unknown.  ``attrs["note"]``: a sentence
        on the genes that the data lack.

    Raises
    ------
    InputError
        ``obs`` has no such column.
    DataError
        The column has one group only, the values are neither counts nor log1p, the data
        have not two genes of any type, or the table cannot be read.
    """
    column = _require_column(adata, groupby)
    if isinstance(markers, Mapping):
        types = [CellType(name, tuple(genes)) for name, genes in markers.items()]
        table_name = "the given lists"
    else:
        path = OWN_TABLE if markers is None else Path(markers)
        types, table_name = read_cell_types(path), path.name
    expression, names, ids = read_expression(adata)
    validate_genes(expression, "the AnnData")
    groups = column.astype("category").cat.remove_unused_categories().cat
    found, note = run_to_result(
        iter_suggestions(
            *(expression, names, ids, groups.codes.to_numpy(), len(groups.categories)),
            types=types,
            table_name=table_name,
        )
    )
    rows = []
    for one in found:
        best, second = one.best, one.second
        rows.append(
            {
                "name": best.name if best else "",
                "evidence": best.evidence if best else "",
                "score": best.score if best else np.nan,
                "second": second.name if second else "",
                "second_evidence": second.evidence if second else "",
                "second_score": second.score if second else np.nan,
                "source": best.source if best else "",
            }
        )
    table = pd.DataFrame(rows, pd.Index(groups.categories, name=groupby))
    table.attrs["note"] = note
    return table


def _to_mask(adata: AnnData, given: Any) -> NDArray[np.bool_]:
    """Return a mask as a bool array in the order of the cells, (n_obs,).

    ``given``: array or Series.  A Series indexed by cell names is put in their order; a
    Series indexed by 0, 1, 2 ... is taken as it is.

    Raises InputError: the mask has missing or other values, another length, or an index
    with repeated names.
    """
    names = adata.obs_names
    index = given.index if isinstance(given, pd.Series) else names
    if not (index.equals(names) or index.equals(pd.RangeIndex(len(index)))):
        given = given.reindex(names) if index.is_unique else given[:0]
    values = pd.Series(np.asarray(given, object).tolist(), dtype=object)
    mask = values.convert_dtypes()
    if mask.dtype != "boolean" or mask.hasnans or len(mask) != adata.n_obs:
        raise InputError(
            f"Give true or false for each of the {adata.n_obs:,} cells as either group."
        )
    return np.asarray(mask, bool)


def _require_map_keys(adata: AnnData, key_added: str | None) -> tuple[str, str]:
    """Return the key in obs and uns and the key in obsm of a map of this program.

    Raises InputError: there is no such map.
    """
    key, at = _find_result_keys(key_added)
    if at not in adata.obsm or "landmarks" not in adata.uns.get(key, {}):
        raise InputError(
            f'The AnnData has no map of tl.embedding_game in obsm["{at}"]: make one '
            "first, or give the key_added that it was made with."
        )
    return key, at


def _find_placed_cells(adata: AnnData, at: str) -> NDArray[np.bool_]:
    """Return which cells, (n_obs,), are on the map ``obsm[at]``, not left out."""
    is_placed: NDArray[np.bool_] = ~np.isnan(adata.obsm[at]).any(axis=1)
    return is_placed


def _find_landmarks(
    adata: AnnData, key: str, at: str, use_rep: str | None
) -> tuple[Any, NDArray[np.int32], sparse.csr_matrix, str]:
    """Return the space, landmark and graph of the n cells that are on a map.

    The space (n, D), the landmark of each cell (n,), the graph of weights between
    landmarks (L, L), and the metric of the space.  ``key``, ``at``: keys of the map, as
    :func:`_require_map_keys` returns them.
    """
    is_placed = _find_placed_cells(adata, at)
    X, metric = _read_space_and_metric(adata, use_rep, adata.uns[key])
    X, landmarks = X[is_placed], np.asarray(adata.uns[key]["landmarks"])
    labels = cKDTree(landmarks).query(adata.obsm[at][is_placed])[1].astype(np.int32)
    nearest = build_edges(knn_graph(X, metric=metric), "mixed")
    return X, labels, landmark_graph(nearest, labels, len(landmarks)), metric


def _find_input(
    adata: AnnData, use_rep: str | None, neighbors_key: str | None
) -> tuple[Any, int, dict[str, Any]]:
    """Return the matrix to embed, its number of neighbours, and the keys of its origin.

    The matrix is a space (n_obs, D), or sparse distances between neighbours (n_obs,
    n_obs).  Without ``use_rep`` and ``neighbors_key`` the graph "neighbors" of ``uns``
    is used if there is one, else the default space, with 15 neighbours.

    Raises InputError: both keys are given, ``use_rep`` is a graph, or there is no such
    graph.  Raises DataError: there is no such space.
    """
    if use_rep is not None and neighbors_key is not None:
        raise InputError(
            f'Give either use_rep ("{use_rep}") or neighbors_key ("{neighbors_key}"): '
            "neighbours are searched in a space, or were found before."
        )
    if use_rep is None and neighbors_key is None and "neighbors" in adata.uns:
        neighbors_key = "neighbors"
    if neighbors_key is not None:
        noted = adata.uns.get(neighbors_key, {})
        at = noted.get("distances_key", "distances")
        if not noted or at not in adata.obsp:
            raise InputError(
                "The AnnData has no graph of neighbours under "
                f'"{neighbors_key}": compute it with sc.pp.neighbors(adata, '
                f'key_added="{neighbors_key}"), or give use_rep.'
            )
        used_neighbors = noted.get("params", {}).get("n_neighbors", 15)
        used_neighbors = int(np.ravel(used_neighbors)[0])  # older files have [15]
        where = {"neighbors_key": neighbors_key, "distances_key": at}
        return adata.obsp[at], used_neighbors, where
    X, space = _read_space(adata, use_rep)
    return X, 15, {"use_rep": space}


def neighborhoods(
    adata: AnnData,
    cluster_key: str,
    *,
    n_neighbors: int = 6,
    radius: float | None = None,
    section_key: str | Sequence[str] | None = None,
    spatial_key: str = "spatial",
    n_permutations: int = PERMUTATIONS,
    random_state: int = 0,
) -> pd.DataFrame:
    """Count which groups lie beside each other in tissue, and compare with chance.

    Labels are permuted within each section.  z is that of squidpy's
    ``gr.nhood_enrichment`` where there is one section and the graph is the same.  Cells
    of one section are no independent samples: a small p does not say that another
    tissue would show the same.

    Parameters
    ----------
    adata : AnnData
    cluster_key : str
        Column of ``obs`` with the groups; cells of none take no part.
    n_neighbors : int, default=6
        Number of the nearest cells of a section that are the neighbours of a cell.
    radius : float, optional
        Largest distance of these neighbours, in units of the positions.
    section_key : str or sequence of str, optional
        Column of ``obs`` with the section of each cell; None for one section.  Of a
        movie the column of times, and of several movies theirs, too.
    spatial_key : str, default="spatial"
        Key of ``obsm`` with the positions, in 2 or 3 dimensions; NaN is unknown.
    n_permutations : int, default=1000
        p is at least 1 / (1 + n_permutations).
    random_state : int, default=0

    Returns
    -------
    DataFrame
        A row for each pair: "around", "neighbor", "counts", "expected", "ratio", "z",
        "p" (two-sided) and "p_adjusted" (Benjamini-Hochberg over all pairs).
    """
    groups = _require_column(adata, cluster_key)
    positions, sections = _find_tissue(adata, section_key, spatial_key)
    labels = groups.astype("category").cat.remove_unused_categories()
    most = np.inf if radius is None else radius
    check_integer("n_neighbors", n_neighbors, 1)
    near = find_tissue_neighbors(positions, sections, n_neighbors, most)
    codes = labels.cat.codes.to_numpy().astype(np.int64)
    result = compare_neighborhoods(
        near,
        codes,
        sections,
        n_permutations=n_permutations,
        random_state=random_state,
    )
    names = [str(name) for name in labels.cat.categories]
    return result.to_frame(names, names)


def _find_second_rows(
    adata: AnnData,
    X: Any,
    second_rep: str | None,
    section_key: str | Sequence[str] | None,
    metric: str,
) -> Any:
    """Return the rows of the second space, (n_obs, E); None without one.

    ``X``: rows of the first space, whose means are the space "tissue".  Raises
    DataError: there is no such space, or no positions.
    """
    if second_rep is None:
        return None
    if second_rep != TISSUE:
        return _read_space(adata, second_rep)[0]
    return average_in_tissue(X, *_find_tissue(adata, section_key), metric)


def _find_tissue(
    adata: AnnData,
    section_key: str | Sequence[str] | None,
    spatial_key: str = "spatial",
) -> tuple[NDArray[np.float32], NDArray[np.integer] | None]:
    """Return positions in tissue (n_obs, 2 or 3), and numbers of sections (n_obs,).

    Sections are None without a ``section_key``.  Raises DataError: there are no such
    positions.  Raises InputError: there is no such column.
    """
    if spatial_key not in adata.obsm:
        raise DataError(
            f'The AnnData has no positions in obsm["{spatial_key}"]: put x and y of '
            "each cell there."
        )
    positions = to_tissue_positions(to_dense(_to_matrix(adata.obsm[spatial_key])))
    if positions.shape[1:] not in ((2,), (3,)):
        raise DataError(
            f'obsm["{spatial_key}"] has {positions.shape[1]} columns, and positions '
            "have x and y, or x, y and z: keep these columns alone."
        )
    if section_key is None:
        return positions, None
    columns = [section_key] if isinstance(section_key, str) else [*section_key]
    for column in columns:
        _require_column(adata, column)
    return positions, number_sections(adata.obs, columns)


def _find_input_of_map(adata: AnnData, key: str) -> Any:
    """Return the matrix from which a map was made: a space, or sparse distances.

    ``key``: key of the map's record in ``uns``, which names the graph or the space.  A
    space that the AnnData lacks is searched again by its noted name.

    Raises InputError or DataError: there is no such graph or space.
    """
    noted = adata.uns[key]["parameters"]
    if "neighbors_key" in noted:
        return _find_input(adata, None, noted["neighbors_key"])[0]
    of = str(noted.get("use_rep", noted.get("space")))
    space = (
        of
        if is_pairwise_space(of)
        else reference_map.find_space_of_map(adata, adata.uns[key])
    )
    root = spaces.make_root_from_anndata(adata)
    chosen = spaces.choose_space(root, space or of, "The AnnData")
    return _to_matrix(spaces.get_space_item(root, chosen))


def _read_space(adata: AnnData, use_rep: str | None) -> tuple[Any, str]:
    """Return a space, (n_obs, D), and its full name.

    ``use_rep``: name of the space; None for the default space.

    Raises InputError: the name is of a graph of neighbours.  Raises DataError: there is
    no such space.
    """
    root = spaces.make_root_from_anndata(adata)
    space = spaces.choose_space(root, use_rep, "The AnnData")
    if is_pairwise_space(space):
        raise InputError(
            f'use_rep="{use_rep}" is a graph of neighbours, not a space: give the key '
            "of uns that notes it as neighbors_key."
        )
    return _to_matrix(spaces.get_space_item(root, space)), space


def _read_space_and_metric(
    adata: AnnData, use_rep: str | None, noted: Mapping[str, Any]
) -> tuple[Any, str]:
    """Return a space, by default that of a map, and the metric of the map.

    ``noted``: the record of the map in ``uns``; {} for no map.  The default space is
    used if the map was made of a graph, or its space is gone.  The metric is
    "euclidean" where there is no map, or one of a graph.

    Raises InputError or DataError: as :func:`_read_space`.
    """
    if noted and use_rep is None:
        use_rep = reference_map.find_space_of_map(adata, noted)
    metric = noted.get("parameters", {}).get("metric", "euclidean")
    return _read_space(adata, use_rep)[0], metric.replace("precomputed", "euclidean")


def _to_matrix(X: Any) -> Any:
    """Return a table, or an element of a file, as an array or sparse matrix.

    Missing values of a table become NaN.  Raises DataError: it cannot be read.
    """
    if hasattr(X, "to_numpy"):
        return X.to_numpy(float, na_value=float("nan"))
    return read_element(X, "The AnnData", "its X")


def _find_result_keys(key_added: str | None) -> tuple[str, str]:
    """Return the key of results in obs and uns, and the key in obsm.

    ``key_added`` replaces both; None for the usual keys.
    """
    return key_added or KEY, key_added or f"X_{KEY}"


def _copy_if_asked(adata: AnnData, copy: bool) -> AnnData:
    """Return the AnnData to write into: a copy in memory, or `adata` itself.

    Of an AnnData that is backed by a file all of it is read into memory.
    """
    if not copy:
        return adata
    return adata.to_memory() if adata.isbacked else adata.copy()


def _write_map(
    adata: AnnData,
    parts: Mapping[str, Any],
    clusters: NDArray[np.integer],
    parameters: Mapping[str, Any],
    key_added: str | None,
) -> None:
    """Write a map, its clusters and its record into `adata`, replacing a former map.

    Former columns of a map under the same key and the colours of its clusters are
    removed.  Diagnostics that are None, or NaN for all cells, get no column.

    ``parts``: the values of ``_WRITTEN`` by name.  ``clusters`` (n_obs,): cluster of
    each cell.  ``parameters``: for the record in ``uns``.
    """
    key, at = _find_result_keys(key_added)
    old_columns = [f"{key}_{name}" for name in MAP_COLUMNS]
    adata.obs = adata.obs.drop(columns=old_columns, errors="ignore")
    present = np.unique(clusters).astype(str)
    adata.obs[f"{key}_cluster"] = pd.Categorical(clusters.astype(str), present)
    for name in _COLUMNS:
        if parts[name] is not None and not np.isnan(parts[name]).all():
            adata.obs[f"{key}_{name}"] = parts[name]
    adata.obsm[at] = parts["embedding"]
    adata.uns.pop(f"{key}_cluster_colors", None)
    adata.uns[key] = {
        "parameters": to_storable(parameters),
        "landmarks": parts["landmarks"],
        "energy": float(parts["energy"]),
        "map_hash": parts["map_hash"],
        "versions": find_installed_versions(),
    }
