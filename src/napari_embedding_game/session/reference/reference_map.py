"""A reference: a fitted map, read from an AnnData, on which new cells can be placed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.settings import (
    Settings,
    fill_affinity,
    fill_approximation_by_size,
)
from napari_embedding_game.data.columns import KEY, make_names_unique
from napari_embedding_game.data.dataset import Dataset, is_pairwise_space
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import (
    TARGET_SUM,
    guess_gene_kind,
    read_log_base,
    to_natural_log,
)
from napari_embedding_game.data.formats import anndata
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.formats.spaces import (
    RAW,
    find_map_keys,
    make_root_from_anndata,
    split_space,
)
from napari_embedding_game.data.gene_names import choose_gene_display_names
from napari_embedding_game.data.pca_projection import reconstruct_pca_projection
from napari_embedding_game.data.projection import Projection, infer_target_sum
from napari_embedding_game.data.read_options import ReadOptions

if TYPE_CHECKING:
    from anndata import AnnData

    from napari_embedding_game.core.new_rows.transform import FittedMap


@dataclass(frozen=True, eq=False)
class ReferenceMap:
    """A fitted map, and the data by which new cells are projected and placed on it."""

    name: str
    dataset: Dataset
    """The reference's cells on the map, N of them."""
    fitted: FittedMap
    """The cells' positions, and the model that places new rows."""
    projection: Projection | None
    """The projection from genes to the space of the map; None where it is unknown, so
    that new cells have to come with coordinates in this space."""
    symbols: Mapping[str, str]
    """Symbols of the genes, by the identifiers in the index of the file."""
    notes: tuple[str, ...] = ()
    """Sentences on the reference that a person has to know."""
    path: str = ""
    """The file of the reference; "" where it is no file."""
    basis: str = ""
    """Key of ``obsm`` of a map by another program; "" for a map of this program."""
    unit: float = 1.0
    """Length, in coordinates of the map by another program, of 1 in the model."""
    origin: NDArray[np.floating] | None = None
    """(d,) the model's origin, in coordinates of the map by another program; None for a
    map of this program."""


def read_reference_file(path: Path) -> AnnData:
    """Read a whole .h5ad file into memory.

    Raises DataError: the file is missing, of another kind, or too large.
    """
    if path.suffix.lower() != ".h5ad":
        raise DataError(
            f"{path.name} is no .h5ad file: write the cells with AnnData's write_h5ad."
        )
    if not path.is_file():
        raise DataError(f"{path} does not exist: check the name and the folder.")
    return anndata.read_whole_anndata(path)


def to_reference_map(adata: AnnData, name: str, path: str = "") -> ReferenceMap:
    """Convert an AnnData with a map to a reference.

    Cells without a position are left out.  A map of this program comes before other
    maps.

    ``adata``: with a map by ``tl.embedding_game`` or a saved file, or with a map by
    another program, of which ``X_umap`` is preferred. ``name``: of the reference in
    sentences. ``path``: file of the AnnData; "" for none.

    Raises DataError: there is no map, or new cells cannot be projected into its space.
    """
    obsm_key = f"X_{KEY}"
    if KEY not in adata.uns or obsm_key not in adata.obsm:
        return _make_reference_of_other_program(adata, name, path)
    noted = adata.uns[KEY]
    parameters = {k: restore_parameter(v) for k, v in noted["parameters"].items()}
    space, notes = _find_searched_space(adata, parameters, noted, name)
    dataset = _make_dataset_by_gene_ids(adata, name, space)
    symbols = _find_symbols_by_gene_id(adata)
    embedding = np.asarray(adata.obsm[obsm_key], np.float32)
    on_map = np.asarray(np.isfinite(embedding).all(axis=1))[dataset.kept]
    if not on_map.all():
        dataset = dataset.subset(on_map).with_own_matrices()
    embedding = embedding[dataset.kept]
    projection = dataset.projection
    if projection is not None:  # the recipe names genes as people read them
        ids = {symbol: one for one, symbol in symbols.items()}
        genes = tuple(ids.get(gene, gene) for gene in projection.genes)
        projection = replace(projection, genes=genes)
    else:
        mixed = noted.get("provenance", {}).get("harmony", {})
        projection = _find_projection(adata, str(mixed.get("space", space)), name)
    landmarks = np.asarray(noted["landmarks"], np.float32)
    fitted = _rebuild_fitted_map(dataset.X, embedding, landmarks, parameters)
    notes = (*notes, *_note_mixed_batches(space, noted))
    return ReferenceMap(name, dataset, fitted, projection, symbols, notes, path)


def _make_dataset_by_gene_ids(
    adata: AnnData, name: str, space: str | None = None
) -> Dataset:
    """Return the dataset of an AnnData in a space, its genes by identifier.

    ``space``: None for the default. Rows with missing values are left out.
    """
    options = ReadOptions(space=space, missing="drop")
    return from_anndata(adata, name, options, by_ids=True)


def _find_symbols_by_gene_id(adata: AnnData) -> dict[str, str]:
    """Return the gene symbols of an AnnData and its raw, by their index.

    Where both have a gene, the symbol is that of the AnnData itself.
    """
    symbols: dict[str, str] = {}
    for each in (adata.raw, adata):
        if each is not None:
            names = make_names_unique(choose_gene_display_names(each.var))
            symbols |= zip(map(str, each.var.index), names, strict=True)
    return symbols


def _rebuild_fitted_map(
    X: Any, embedding: Any, landmarks: Any, parameters: Mapping[str, Any]
) -> FittedMap:
    """Return the fitted map of given positions, searching neighbours of X again.

    ``landmarks`` (L, d): of the map; None for a map by another program, to which
    landmarks are fitted, and which is scaled like a map of the game.
    ``parameters``: of the estimator.

    Raises DataError: the landmarks are not of the map's dimensions, or not finite.
    """
    from napari_embedding_game.core import pipeline
    from napari_embedding_game.core.dynamics.play import play
    from napari_embedding_game.core.new_rows.transform import make_fitted_map

    if parameters.get("second_space"):
        raise DataError(
            "This map mixes two spaces, and new cells are placed in one: make it again "
            "without the second space."
        )
    n, d = embedding.shape
    held = np.empty((0, d)) if landmarks is None else landmarks
    if held.shape[1:] != (d,) or not np.isfinite(held).all():
        raise DataError(
            f"The landmarks of the map are no places in its {d} dimensions: make it "
            "again."
        )
    names = [each.name for each in fields(Settings)]
    chosen: dict[str, Any] = {name: parameters.get(name) for name in names}
    chosen |= {"n_components": d, "init": "random", "device": "cpu", "n_jobs": None}
    if chosen["metric"] == "precomputed":
        chosen["metric"] = parameters.get("neighbors_metric") or "euclidean"
    values = {k: v for k, v in chosen.items() if k in parameters or v is not None}
    settings = fill_approximation_by_size(
        fill_affinity(Settings(**values).validate()), n
    )
    settings = replace(settings, n_neighbors=min(settings.n_neighbors, n - 1))
    graph = pipeline.find_neighbors(X, settings)
    edges, _ = pipeline.make_edges_and_layout(graph, X, settings, embedding)
    if landmarks is None:
        snapshot = next(s for s in play(edges, embedding, settings) if s.finished)
        embedding, landmarks = snapshot.embedding, snapshot.landmarks
    return make_fitted_map(X, graph, edges, settings, embedding, landmarks)


def _make_reference_of_other_program(
    adata: AnnData, name: str, path: str
) -> ReferenceMap:
    """Return the reference of an AnnData with a map by another program.

    The map is ``X_umap``, else the first one in ``obsm``.  Cells without a position are
    left out.

    Raises DataError: there is no such map.
    """
    bases = find_map_keys(make_root_from_anndata(adata))
    if not bases:
        raise DataError(
            f"{name} holds no map to place new cells on: make one with "
            "tl.embedding_game, `fit`, or in the window, and save it as .h5ad."
        )
    basis = "X_umap" if "X_umap" in bases else bases[0]
    dataset = _make_dataset_by_gene_ids(adata, name)
    positions = np.asarray(adata.obsm[basis], float)[dataset.kept]
    is_there = np.isfinite(positions).all(axis=1)
    dataset, positions = (
        dataset.subset(is_there).with_own_matrices(),
        positions[is_there],
    )
    settings = {"method": "given", "random_state": 0}
    fitted = _rebuild_fitted_map(
        dataset.X, positions.astype(np.float32), None, settings
    )
    origin = positions.mean(axis=0)
    unit = float(np.linalg.norm(positions - origin) / np.linalg.norm(fitted.points))
    note = f"New cells are placed on {basis}, by those nearest in {dataset.space}."
    return ReferenceMap(
        name=name,
        dataset=dataset,
        fitted=fitted,
        projection=_find_projection(adata, dataset.space, name),
        symbols=_find_symbols_by_gene_id(adata),
        notes=(note,),
        path=path,
        basis=basis,
        unit=unit,
        origin=origin,
    )


def restore_parameter(value: Any) -> Any:
    """Return a stored parameter as a Python value, with None for "none"."""
    if isinstance(value, str) and value == "none":
        return None
    return value.item() if isinstance(value, np.generic) else value


def find_space_of_map(adata: AnnData, noted: Mapping[str, Any]) -> str | None:
    """Return the name of the space that was embedded; None if the AnnData lacks it.

    The space of a stored projection comes first, then components of a recipe or
    Harmony, then the chosen space.

    ``noted``: the record of the map in ``uns``.
    """
    parameters, components = noted.get("parameters", {}), noted.get("components")
    space = str(parameters.get("use_rep", parameters.get("space")))
    if components is not None:  # by the recipe or Harmony
        space = f"obsm['{components}']"
    space = str(noted.get("projection", {}).get("space", space))
    group, key = split_space(space) or ("", "")
    is_there = group in ("obsm", "layers") and key in getattr(adata, group)
    is_there |= space == "X" or (space == RAW and adata.raw is not None)
    return space if is_there else None


def _find_searched_space(
    adata: AnnData, parameters: dict[str, Any], noted: Mapping[str, Any], name: str
) -> tuple[str, tuple[str, ...]]:
    """Return the space in which neighbours of a map are searched, and notes on it.

    Where the map was made of a graph of neighbours, this is the space of the graph,
    else ``X_pca``, else X; the graph's metric is set in ``parameters`` as
    "neighbors_metric".

    Raises DataError: the AnnData lacks the space.
    """
    space = find_space_of_map(adata, noted)
    if space is not None:
        return space, ()
    of = str(parameters.get("use_rep", parameters.get("space")) or "")
    if of and not is_pairwise_space(of):
        raise DataError(
            f"The map of {name} is of {of}, which {name} does not hold: make it of X, "
            "of a layer or of an entry of obsm."
        )
    key = str(parameters.get("neighbors_key") or "neighbors")
    search = adata.uns.get(key, {}).get("params", {})
    parameters["neighbors_metric"] = restore_parameter(search.get("metric"))
    used = search.get("use_rep") or ("X_pca" if "X_pca" in adata.obsm else "X")
    space = "X" if used == "X" else f"obsm['{used}']"
    note = f"The map is of a graph of neighbours; cells are placed by those in {space}."
    return space, (note,)


def _find_projection(adata: AnnData, space: str, name: str) -> Projection | None:
    """Return the projection from genes to a space of an AnnData; None where unknown.

    It is known for the genes themselves as logarithms, and for PCA by scanpy.
    """
    if space in ("X", RAW):
        return _make_identity_projection(
            _make_dataset_by_gene_ids(adata, name, space), read_log_base(adata)
        )
    is_pca = space in ("obsm['X_pca']", "obsm['X_pca_harmony']")
    if is_pca and "PCs" in adata.varm and "X_pca" in adata.obsm:
        return reconstruct_pca_projection(adata, name)
    return None


def _make_identity_projection(dataset: Dataset, base: Any) -> Projection | None:
    """Return the projection of genes to themselves, for a map of their logarithms.

    ``base``: of the logarithms, which the projection converts to natural ones. None
    where the values are no logarithms.
    """
    if guess_gene_kind(dataset.X) != "logarithms":
        return None
    n, unit = dataset.X.shape[1], to_natural_log(1.0, base)
    mean = np.asarray(dataset.X.mean(axis=0), np.float32).ravel()
    eye = sp.eye_array(n, dtype=np.float32, format="csr")
    std = np.full(n, unit, np.float32)
    target_sum = infer_target_sum(to_natural_log(dataset.X, base))
    target_sum = TARGET_SUM if target_sum is None else target_sum
    return Projection(dataset.var_names, unit * mean, std, eye, -mean, target_sum)


def _note_mixed_batches(space: str, noted: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note if Harmony mixed batches of the reference, else ().

    ``space``: of the map, which may name Harmony. ``noted``: record of the map in
    ``uns``.
    """
    provenance = noted.get("provenance", {})
    recipe, mixed = provenance.get("recipe", {}), provenance.get("harmony", {})
    key = restore_parameter(recipe.get("batch_key")) or restore_parameter(
        mixed.get("batch_key")
    )
    if key is None and "harmony" not in space.lower():
        return ()
    of = f' of "{key}"' if key else ""
    return (
        f"The batches{of} were mixed by Harmony in the reference, and no correction is "
        "known for the batch of the new cells: they are placed by their components as "
        "they are.",
    )
