"""The result of a finished or stopped run, ready to be written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.clustering import Clustering, numbered

_VERSIONS_OF = (
    *("napari-embedding-game", "numpy", "scipy", "numba", "torch", "scikit-learn"),
    *("pynndescent", "anndata"),
)


@dataclass(frozen=True, eq=False)
class EmbeddingResult:
    """One layout of the n rows of a :class:`~.dataset.Dataset`."""

    embedding: NDArray[np.float32]
    """(n, d) positions of the points."""
    landmarks: NDArray[np.float32]
    """(L, d) positions of the landmarks."""
    labels: NDArray[np.int32]
    """(n,) landmark that is nearest to each point."""
    pressure: NDArray[np.float32]
    """(n,) pressure of each point, in units of the map; 0 where there is none, all NaN
    under methods that do not define it."""
    energy: float
    """Energy of the layout."""
    stretch: NDArray[np.float32] | None = None
    """(n,) how far each point lies from its neighbours in the data, 1 as usual; None
    where it is not known."""
    isolation: NDArray[np.float32] | None = None
    """(n,) how far each row is from those most like it in the data, 1 as usual; None
    where it is not known."""
    map_hash: str = ""
    """Digits by which the map is recognised on another machine."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Everything the run was started with and steered by."""
    clustering: Clustering | None = None
    """Its clusters as merged and edited, in colours; None: the landmarks."""
    session: bytes | None = None
    """The session file of the map; in an .h5ad file it makes the map complete."""

    @property
    def has_pressure(self) -> bool:
        """Whether pressure is defined; if not, no file has it."""
        return not np.isnan(self.pressure).all()

    @property
    def groups(self) -> Clustering:
        """The clusters, else those of the landmarks."""
        return numbered(self.labels) if self.clustering is None else self.clustering


def storable(value: Any) -> Any:
    """`value` in a form that an .h5ad file can hold.

    Mappings and sequences are converted through, None becomes "none" (a form
    that every anndata version reads), what has no such form becomes its text.
    """
    if isinstance(value, Mapping):
        return {str(k).replace("/", "_"): storable(v) for k, v in value.items()}
    if isinstance(value, PurePath):
        return value.name  # a folder's name may be private and is useless elsewhere
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        items = list(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return value
        if items and all(isinstance(v, bool | int | float | np.number) for v in items):
            return np.array(items)
        return np.array([str(storable(v)) for v in items], dtype=object)
    if isinstance(value, bool | int | float | str | np.generic):
        return value
    return "none" if value is None else str(value)


def versions() -> dict[str, str]:
    """Version of this package and of what computed the layout, where installed."""
    installed = dict.fromkeys(_VERSIONS_OF, "not installed")
    for package in installed:
        with suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed
