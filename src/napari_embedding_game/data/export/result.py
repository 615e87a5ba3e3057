"""Result of a finished or stopped run, ready to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import PurePath, PureWindowsPath
from typing import Any

import numpy as np

from napari_embedding_game.data.clustering import (
    Clustering,
    make_clustering_from_labels,
)

_VERSIONS_OF = (
    *("napari-embedding-game", "numpy", "scipy", "numba", "torch", "scikit-learn"),
    *("pynndescent", "anndata"),
)


@dataclass(frozen=True, eq=False)
class EmbeddingResult:
    """One map of the n rows of a :class:`~.dataset.Dataset`."""

    snapshot: Any
    """Positions, landmarks and figures of the map: the engine's ``Snapshot``."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the run was started with and steered by."""
    clustering: Clustering | None = None
    """Clusters as merged and edited, with colours; None: the landmarks."""
    session: bytes | None = None
    """Session file of the map, stored in an .h5ad file to make the map complete."""

    @property
    def groups(self) -> Clustering:
        """Clusters of the result, else one cluster for each landmark."""
        return self.clustering or make_clustering_from_labels(self.snapshot.labels)


def to_storable(value: Any) -> Any:
    """Convert `value` to a form that an .h5ad file can hold.

    - Mappings are converted recursively, with "_" for "/" in keys.
    - Sequences of numbers become arrays, other sequences arrays of texts.
    - None becomes "none", which every anndata version reads.
    - A path becomes its last part, and any other object a text.
    """
    if isinstance(value, Mapping):
        return {str(k).replace("/", "_"): to_storable(v) for k, v in value.items()}
    if isinstance(value, PurePath):
        return value.name  # names of folders may be private
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


def get_last_path_part(path: str) -> str:
    """Return the last part of a path of any operating system."""
    return PureWindowsPath(path).name


def find_installed_versions() -> dict[str, str]:
    """Return the versions of this package and its main libraries, by name.

    A library that is missing has "not installed".
    """
    return {package: _find_installed_version(package) for package in _VERSIONS_OF}


@cache
def _find_installed_version(package: str) -> str:
    """Return the version of an installed package, or "not installed"."""
    try:
        return metadata.version(package)  # reads a file, which takes 2 ms
    except metadata.PackageNotFoundError:
        return "not installed"
