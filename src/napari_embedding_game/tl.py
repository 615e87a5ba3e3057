"""The embedding game for AnnData, in scanpy's idiom: ``tl.embedding_game(adata)``.

>>> import scanpy as sc  # doctest: +SKIP
>>> from napari_embedding_game import tl  # doctest: +SKIP
>>> sc.pp.neighbors(adata)  # doctest: +SKIP
>>> tl.embedding_game(adata, n_clusters=12)  # doctest: +SKIP
>>> sc.pl.embedding(  # doctest: +SKIP
...     adata, "X_embedding_game", color="embedding_game_cluster"
... )
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anndata import AnnData

    from napari_embedding_game.core.estimator import EmbeddingGame

__all__ = ["embedding_game"]


def embedding_game(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    neighbors_key: str | None = None,
    n_neighbors: int | None = None,
    random_state: Any = 0,
    key_added: str | None = None,
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Map the cells of `adata` by :class:`~napari_embedding_game.EmbeddingGame`.

    The names of the results are those of an .h5ad file that the window saves.

    Parameters
    ----------
    adata : AnnData
    use_rep : str, optional
        Space whose neighbours are searched: "X_pca", "X_pca_harmony" or another key of
        ``obsm``, "X", or a key of ``layers``.
    neighbors_key : str, optional
        Key of ``uns`` where ``sc.pp.neighbors`` noted its graph.  By default, where no
        `use_rep` is given, "neighbors" if it is there, as for ``sc.tl.umap``; if not,
        ``obsm["X_pca"]``, else another entry of ``obsm`` that is no map, else ``X``.
    n_neighbors : int, optional
        K; by default as many as the graph was made with, or 15 in a space.
    random_state : int, RandomState or None, default=0
        As in scanpy, the map is the same each time unless None is given.
    key_added : str, optional
        Names the results instead of "X_embedding_game" in ``obsm`` and
        "embedding_game" in ``obs`` and ``uns``, all three.
    copy : bool, default=False
        Whether a copy gets the results and is returned.
    **parameters
        Any other parameter of the estimator, such as ``n_clusters=12``,
        ``method="tsne"`` or ``n_components=3``.

    Returns
    -------
    AnnData or None
        The copy, if asked for.  It, or `adata`, has

        ``obsm["X_embedding_game"]`` : (n_obs, d) float32
            The map.
        ``obs["embedding_game_cluster"]`` : category
            Cluster of each cell; without ``n_clusters`` its nearest landmark.
        ``obs["embedding_game_pressure"]``, ``obs["embedding_game_stretch"]`` : float32
            See ``pressure_`` and ``stretch_`` of the estimator; no pressure under
            methods that do not define it.
        ``uns["embedding_game"]`` : dict
            "parameters", with the space or the graph used and the seed; "landmarks",
            "energy" and "versions".

    Raises
    ------
    InputError
        `use_rep` and `neighbors_key` are both given, there is no such graph, a metric
        is given with a graph, or the estimator refuses the data or a parameter.
    DataError
        There is no such space.
    """
    from napari_embedding_game.core.errors import InputError
    from napari_embedding_game.core.estimator import EmbeddingGame

    if use_rep is not None and neighbors_key is not None:
        raise InputError(
            f'Give either use_rep ("{use_rep}") or neighbors_key ("{neighbors_key}"): '
            "neighbours are searched in a space, or were found before."
        )
    if neighbors_key is None and use_rep is None and "neighbors" in adata.uns:
        neighbors_key = "neighbors"
    adata = adata.copy() if copy else adata
    if neighbors_key is None:
        X, where = _space(adata, use_rep)
        wanted = 15 if n_neighbors is None else n_neighbors
    else:
        X, stored, where = _graph(adata, neighbors_key)
        wanted = stored if n_neighbors is None else n_neighbors
        if "metric" in parameters:
            raise InputError(
                f'The neighbours of uns["{neighbors_key}"] are used, and metric="'
                f'{parameters["metric"]}" would search others: leave it out, or give '
                "use_rep."
            )
        parameters = {**parameters, "metric": "precomputed"}
    model = EmbeddingGame(
        n_neighbors=wanted, random_state=random_state, **parameters
    ).fit(X)
    _write(adata, model, where, key_added)
    return adata if copy else None


def _space(adata: AnnData, use_rep: str | None) -> tuple[Any, dict[str, str]]:
    """Return the matrix of a space, the default one for None, and its name."""
    from napari_embedding_game.core.errors import InputError
    from napari_embedding_game.data.formats.anndata_contents import (
        object_contents,
        split_space,
    )

    space = object_contents(adata).choose(use_rep, "The AnnData")
    place = split_space(space)
    if place is not None and place[0] == "obsp":
        raise InputError(
            f'use_rep="{use_rep}" is a graph of neighbours, not a space: give the key '
            "of uns that notes it as neighbors_key."
        )
    return getattr(adata, place[0])[place[1]] if place else adata.X, {"use_rep": space}


def _graph(adata: AnnData, key: str) -> tuple[Any, int, dict[str, str]]:
    """Return distances between neighbours, the K they were made with, and their key."""
    import numpy as np

    from napari_embedding_game.core.errors import InputError

    noted = adata.uns.get(key)
    at = noted.get("distances_key", "distances") if hasattr(noted, "get") else None
    if at is None or at not in adata.obsp:
        raise InputError(
            f'The AnnData has no graph of neighbours under "{key}": compute it with '
            f'sc.pp.neighbors(adata, key_added="{key}"), or give use_rep.'
        )
    distances = adata.obsp[at]
    stored = noted.get("params", {}).get("n_neighbors")
    if stored is None:
        entries = distances.tocoo()
        others = entries.row[entries.row != entries.col]
        stored = np.bincount(others, minlength=adata.n_obs).min() + 1
    return distances, int(stored), {"neighbors_key": key, "distances_key": at}


def _write(
    adata: AnnData, model: EmbeddingGame, where: dict[str, str], key_added: str | None
) -> None:
    """Put the results of a fit into `adata`, and take away those of a former one."""
    import numpy as np
    import pandas as pd

    from napari_embedding_game.data.columns import KEY
    from napari_embedding_game.data.export.result import storable, versions

    key, at = key_added or KEY, key_added or f"X_{KEY}"
    present = np.unique(model.labels_).astype(str)
    clusters = pd.Categorical(model.labels_.astype(str), categories=present)
    adata.obs = adata.obs.drop(
        columns=[f"{key}_landmark", f"{key}_pressure"], errors="ignore"
    )
    adata.obs[f"{key}_cluster"] = clusters
    if not np.isnan(model.pressure_).all():
        adata.obs[f"{key}_pressure"] = model.pressure_
    adata.obs[f"{key}_stretch"] = model.stretch_
    adata.obsm[at] = model.embedding_
    adata.uns.pop(f"{key}_cluster_colors", None)
    adata.uns[key] = {
        "parameters": storable(
            {**model.get_params(), **where, "random_state": model.random_state_}
        ),
        "landmarks": model.landmarks_,
        "energy": float(model.energy_),
        "versions": versions(),
    }
