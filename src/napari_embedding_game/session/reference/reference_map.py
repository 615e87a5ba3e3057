"""A fitted map that new cells can be placed on: of a file, an AnnData, the window."""

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
    fill_approximation,
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
    root_from_anndata,
    split_space,
)
from napari_embedding_game.data.gene_names import gene_display_names
from napari_embedding_game.data.pca_projection import reconstruct_pca_projection
from napari_embedding_game.data.projection import Projection, infer_count_sum
from napari_embedding_game.data.read_options import ReadOptions

if TYPE_CHECKING:
    from anndata import AnnData

    from napari_embedding_game.core.new_rows.transform import FittedMap


@dataclass(frozen=True, eq=False)
class ReferenceMap:
    """A fitted map with what new cells need to be placed on it."""

    name: str
    dataset: Dataset
    """The reference's cells on the map, N of them."""
    fitted: FittedMap
    """Their positions, and the model that places new rows."""
    projection: Projection | None
    """The way from genes to its space; None where that is computed elsewhere, and new
    cells have to bring it."""
    symbols: Mapping[str, str]
    """Of its genes, by the identifiers in the index of its file."""
    notes: tuple[str, ...] = ()
    """What a person has to know of the reference."""
    path: str = ""
    """Its file; "" where it is none."""
    basis: str = ""
    """Key of ``obsm`` of a map that another program made; "" for one of ours."""
    unit: float = 1.0
    """Of its coordinates, in those of the model."""
    origin: NDArray[np.floating] | None = None
    """(d,) where the model's origin is in its coordinates."""


def read_reference_file(path: Path) -> AnnData:
    """Read a whole .h5ad file, after a look obsm_key its size."""
    if path.suffix.lower() != ".h5ad":
        raise DataError(
            f"{path.name} is no .h5ad file: write the cells with AnnData's write_h5ad."
        )
    if not path.is_file():
        raise DataError(f"{path} does not exist: check the name and the folder.")
    return anndata.read_whole_anndata(path)


def to_reference_map(adata: AnnData, name: str, path: str = "") -> ReferenceMap:
    """Return the reference of an AnnData that holds a result.

    ``adata``: with a map, as ``tl.embedding_game`` or a saved file leave it; or with
    one that another program made, of which ``X_umap`` is taken if there are more.
    ``name``: what it is called in sentences. ``path``: its file, if there is one.

    Raises DataError: there is no map, or new cells cannot be projected into its space.
    """
    obsm_key = f"X_{KEY}"
    if KEY not in adata.uns or obsm_key not in adata.obsm:
        return _reference_of_other_program(adata, name, path)
    noted = adata.uns[KEY]
    parameters = {k: restore_parameter(v) for k, v in noted["parameters"].items()}
    space, notes = _find_searched_space(adata, parameters, noted, name)
    dataset, symbols = _read_cells(adata, name, space), _symbols_by_gene_id(adata)
    embedding = np.asarray(adata.obsm[obsm_key], np.float32)
    on_map = np.asarray(np.isfinite(embedding).all(axis=1))[dataset.kept]
    if not on_map.all():
        dataset = dataset.subset(on_map)
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
    notes = (*notes, *_batch_notes(space, noted))
    return ReferenceMap(name, dataset, fitted, projection, symbols, notes, path)


def _read_cells(adata: AnnData, name: str, space: str | None = None) -> Dataset:
    options = ReadOptions(space=space, missing="drop")
    return from_anndata(adata, name, options, by_ids=True)


def _symbols_by_gene_id(adata: AnnData) -> dict[str, str]:
    """Return the symbols of the genes of `adata` and its raw, by their index."""
    symbols: dict[str, str] = {}
    for each in (adata.raw, adata):
        if each is not None:
            names = make_names_unique(gene_display_names(each.var))
            symbols |= zip(map(str, each.var.index), names, strict=True)
    return symbols


def _rebuild_fitted_map(
    X: Any, embedding: Any, landmarks: Any, parameters: Mapping[str, Any]
) -> FittedMap:
    """Take up a map; the neighbours of its rows are searched again.

    Landmarks that are None are fitted, and the map is scaled as the game's are.
    """
    from napari_embedding_game.core import pipeline
    from napari_embedding_game.core.dynamics.play import play
    from napari_embedding_game.core.new_rows.transform import make_fitted_map

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
    settings = fill_approximation(fill_affinity(Settings(**values).validate()), n)
    settings = replace(settings, n_neighbors=min(settings.n_neighbors, n - 1))
    graph = pipeline.find_neighbors(X, settings)
    edges, _ = pipeline.make_edges_and_layout(graph, X, settings, embedding)
    if landmarks is None:
        snapshot = next(s for s in play(edges, embedding, settings) if s.finished)
        embedding, landmarks = snapshot.embedding, snapshot.landmarks
    return make_fitted_map(X, graph, edges, settings, embedding, landmarks)


def _reference_of_other_program(adata: AnnData, name: str, path: str) -> ReferenceMap:
    """Return the reference of a map that another program made."""
    bases = find_map_keys(root_from_anndata(adata))
    if not bases:
        raise DataError(
            f"{name} holds no map to place new cells on: make one with "
            "tl.embedding_game, `fit`, or in the window, and save it as .h5ad."
        )
    basis = "X_umap" if "X_umap" in bases else bases[0]
    dataset = _read_cells(adata, name)
    positions = np.asarray(adata.obsm[basis], float)[dataset.kept]
    is_there = np.isfinite(positions).all(axis=1)
    dataset, positions = dataset.subset(is_there), positions[is_there]
    settings = {"method": "given", "random_state": 0}
    fitted = _rebuild_fitted_map(
        dataset.X, positions.astype(np.float32), None, settings
    )
    origin = positions.mean(axis=0)
    unit = float(np.linalg.norm(positions - origin) / np.linalg.norm(fitted.points))
    note = f"New cells are placed on {basis}, by those nearest in {dataset.space}."
    way = _find_projection(adata, dataset.space, name)
    of_file = _symbols_by_gene_id(adata), (note,), path
    return ReferenceMap(name, dataset, fitted, way, *of_file, basis, unit, origin)


def restore_parameter(value: Any) -> Any:
    """Return a parameter as it was before it was stored: no "none", no numpy."""
    if isinstance(value, str) and value == "none":
        return None
    return value.item() if isinstance(value, np.generic) else value


def find_space_of_map(adata: AnnData, noted: Mapping[str, Any]) -> str | None:
    """Return the space that a map is of, if it is one of the AnnData's.

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
    """Return the space of the rows of a map, and a note where it is guessed."""
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
    """Return the way from genes to a space of an AnnData, None where there is none."""
    if space in ("X", RAW):
        return _identity_projection(
            _read_cells(adata, name, space), read_log_base(adata)
        )
    is_pca = space in ("obsm['X_pca']", "obsm['X_pca_harmony']")
    if is_pca and "PCs" in adata.varm and "X_pca" in adata.obsm:
        return reconstruct_pca_projection(adata, name)
    return None


def _identity_projection(dataset: Dataset, base: Any) -> Projection | None:
    """Return the way from genes to genes: the map is of their logarithms of a base."""
    if guess_gene_kind(dataset.X) != "logarithms":
        return None
    n, unit = dataset.X.shape[1], to_natural_log(1.0, base)
    mean = np.asarray(dataset.X.mean(axis=0), np.float32).ravel()
    eye = sp.eye_array(n, dtype=np.float32, format="csr")
    std = np.full(n, unit, np.float32)
    target_sum = infer_count_sum(to_natural_log(dataset.X, base)) or TARGET_SUM
    return Projection(dataset.var_names, unit * mean, std, eye, -mean, target_sum)


def _batch_notes(space: str, noted: Mapping[str, Any]) -> tuple[str, ...]:
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
