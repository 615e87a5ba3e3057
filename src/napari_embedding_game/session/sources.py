"""Where data can come from: a file, the table of a layer, a sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from napari_embedding_game.data import readers, samples, tables
from napari_embedding_game.data.validation import Missing

if TYPE_CHECKING:
    import pandas as pd

    from napari_embedding_game.data.dataset import Dataset

SAMPLES = {
    "digits": "Handwritten digits (1,797 images)",
    "pbmc": "Blood cells, PBMC (700 cells)",
    "mnist": "MNIST digits (70,000 images, download)",
}


class Source(Protocol):
    """Something that can be read, again and in another way if need be."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    def read(self, space: str | None, missing: Missing) -> Dataset:
        """Read and check it; raise :class:`DataError` with one sentence."""
        ...

    def spaces(self) -> list[str]:
        """Return what can be embedded in it; one or none: there is no choice."""
        ...


@dataclass(frozen=True)
class FileSource:
    """A file of any kind that can be read."""

    path: Path

    @property
    def name(self) -> str:
        """Return the name shown to the person."""
        return self.path.name

    def read(self, space: str | None, missing: Missing) -> Dataset:
        """Read and check it."""
        return readers.read(self.path, space=space, missing=missing)

    def spaces(self) -> list[str]:
        """Return what can be embedded."""
        return readers.spaces(self.path)


@dataclass(frozen=True, eq=False)
class FeaturesSource:
    """The features table of a napari layer, as it was when asked for."""

    features: pd.DataFrame
    layer_name: str

    @property
    def name(self) -> str:
        """Return the name shown to the person."""
        return f"the table of layer '{self.layer_name}'"

    def read(self, space: str | None, missing: Missing) -> Dataset:
        """Read and check it."""
        return tables.from_features(
            self.features, self.layer_name, space=space, missing=missing
        )

    def spaces(self) -> list[str]:
        """Return what can be embedded."""
        return []


@dataclass(frozen=True)
class SampleSource:
    """One of the ``SAMPLES``; MNIST may be given as a file or a folder."""

    key: str
    path: Path | None = None

    @property
    def name(self) -> str:
        """Return the name shown to the person."""
        return f"the sample {self.key}"

    def read(self, space: str | None, missing: Missing) -> Dataset:
        """Read and check it."""
        if self.key == "mnist":
            return samples.mnist(self.path)
        return {"digits": samples.digits, "pbmc": samples.pbmc}[self.key]()

    def spaces(self) -> list[str]:
        """Return what can be embedded."""
        return []
