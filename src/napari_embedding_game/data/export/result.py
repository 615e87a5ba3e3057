"""The result of a finished or stopped run, ready to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import PurePath, PureWindowsPath
from typing import Any

import numpy as np

from napari_embedding_game.data.clustering import Clustering, clustering_from_labels

_VERSIONS_OF = (
    *("napari-embedding-game", "numpy", "scipy", "numba", "torch", "scikit-learn"),
    *("pynndescent", "anndata"),
)


@dataclass(frozen=True, eq=False)
class EmbeddingResult:
    """One layout of the n rows of a :class:`~.dataset.Dataset`."""

    snapshot: Any
    """Its positions, landmarks and figures: the engine's ``Snapshot``."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Everything the run was started with and steered by."""
    clustering: Clustering | None = None
    """Its clusters as merged and edited, in colours; None: the landmarks."""
    session: bytes | None = None
    """The session file of the map; in an .h5ad file it makes the map complete."""

    @property
    def groups(self) -> Clustering:
        """The clusters, else those of the landmarks."""
        return self.clustering or clustering_from_labels(self.snapshot.labels)


def to_storable(value: Any) -> Any:
    """`value` in a form that an .h5ad file can hold.

    Mappings and sequences are converted through, None becomes "none" (a form
    that every anndata version reads), what has no such form becomes its text.
    """
    if isinstance(value, Mapping):
        return {str(k).replace("/", "_"): to_storable(v) for k, v in value.items()}
    if isinstance(value, PurePath):
        return value.name  # a folder's name may be private and is useless elsewhere
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        items = list(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return value
        if items and all(isinstance(v, bool | int | float | np.number) for v in items):
            return np.array(items)
        return np.array([str(to_storable(v)) for v in items], dtype=object)
    if isinstance(value, bool | int | float | str | np.generic):
        return value
    return "none" if value is None else str(value)


def last_path_part(path: str) -> str:
    """Return the last part of a path of any system."""
    return PureWindowsPath(path).name


def installed_versions() -> dict[str, str]:
    """Version of this package and of what computed the layout, where installed."""
    return {package: _installed_version(package) for package in _VERSIONS_OF}


@cache
def _installed_version(package: str) -> str:
    try:
        return metadata.version(package)  # 2 ms: it reads a file
    except metadata.PackageNotFoundError:
        return "not installed"
