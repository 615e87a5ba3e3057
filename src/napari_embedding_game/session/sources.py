"""Sources of data: a file, a layer's table, measured objects, a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from napari_embedding_game.data import readers, samples
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats import tables
from napari_embedding_game.data.formats.anndata import (
    read_adata_in_stages,
    read_root_identity,
)
from napari_embedding_game.data.formats.spaces import make_root_from_anndata
from napari_embedding_game.data.identity import Identity, RowHashes
from napari_embedding_game.data.images.experiment import (
    ExperimentImages,
    measure_images,
    open_images,
)
from napari_embedding_game.data.images.join import JoinRequest, join_with_labels
from napari_embedding_game.data.images.measure import measure_labels_in_stages
from napari_embedding_game.data.images.nuclei import measure_nuclei_in_stages
from napari_embedding_game.data.label_join import (
    FINDING_STAGE,
    apply_join,
    load_with_labels,
)
from napari_embedding_game.data.loader import apply_recipe_or_mixing, load_read_result
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.reading_process import read_in_process
from napari_embedding_game.data.spatial_table import SpatialTable
from napari_embedding_game.data.stages import Stage, Stages

if TYPE_CHECKING:
    import pandas as pd

    from napari_embedding_game.data.dataset import Dataset

SAMPLES = {
    "digits": "Handwritten digits (1,797 images)",
    "pbmc": "Blood cells, PBMC (700 cells)",
    "tissue": "Simulated tissue (20,000 cells)",
    "nuclei": "Nuclei of a stained section (image + labels)",
}


def store_read_result(dataset: Dataset, read: ReadResult) -> None:
    """Store in a dataset how it was read."""
    itself: Any = None  # a reference cycle would keep the dataset in memory
    dataset.known["read"] = replace(read, dataset=itself)


def stored_read_result(dataset: Dataset) -> ReadResult | None:
    """Return how a dataset was read, as stored in it; None where nothing is stored."""
    read: ReadResult | None = dataset.known.get("read")
    return None if read is None else replace(read, dataset=dataset)


class Source:
    """A source of data that can be read again, with the same or other options."""

    words: ClassVar[str]
    """The name as a format string of the source's fields."""

    @property
    def name(self) -> str:
        """The name of the source in sentences."""
        return self.words.format(**vars(self))

    @property
    def pixels(self) -> Any:
        """The label image whose objects are the rows; None without one."""
        request = getattr(self, "request", None)
        return getattr(self, "labels", None) if request is None else request.pixels

    def with_label_image(self, pixels: Any) -> Source:
        """Return a copy of the source that refers to another label image.

        ``pixels``: the image, in place of :attr:`pixels`, which is not None.
        """
        source: Any = self
        request = getattr(self, "request", None)
        changed = {"labels": pixels}
        if request is not None:
            changed = {"request": replace(request, pixels=pixels)}
        result: Source = replace(source, **changed)
        return result

    def read(self, options: ReadOptions) -> Stages[ReadResult]:
        """Read and check the source in stages; raise :class:`DataError` on failure."""
        raise NotImplementedError

    def read_again(self, options: ReadOptions, known: Identity) -> Stages[ReadResult]:
        """Read the source as :meth:`read` does, to compare its rows with known rows.

        Where the new rows and the known rows share no kind of hash, the dataset also
        gets hashes of the numbers by which the known rows are identified, if the source
        still holds these numbers.
        """
        result = yield from self.read(options)
        dataset = result.dataset
        new = dataset.row_hashes
        if not known.row_hashes or known.row_hashes.keys() & new.keys():
            return result
        hashes = yield from self._hash_rows(known, options)
        dataset = replace(dataset, row_hashes={**new, **hashes})
        return replace(result, dataset=dataset)

    def _hash_rows(self, known: Identity, options: ReadOptions) -> Stages[RowHashes]:
        """Return hashes of the numbers that identify known rows; {} where missing."""
        yield from ()
        return {}


@dataclass(frozen=True)
class FileSource(Source):
    """A file or folder of any kind that can be read."""

    words = "{path.name}"

    path: Path
    request: JoinRequest | None = None
    """The label image to whose objects the rows are joined; None for no join."""

    def read(self, options: ReadOptions) -> Stages[ReadResult]:
        """Read and check the file, apply a recipe, and join the rows to objects.

        A transposed table is not joined.  Raises DataError also for a path that a
        session file cannot store.
        """
        text = str(self.path).encode(errors="replace").decode()
        if text != str(self.path):  # a session file could not store this path
            raise DataError(f"{text} has a letter of no alphabet: rename the file.")
        if self.request is None or options.transposed:
            return (yield from load_read_result(self.path, options))
        return (yield from load_with_labels(self.path, self.request, options))

    def _hash_rows(self, known: Identity, options: ReadOptions) -> Stages[RowHashes]:
        """Read and hash the numbers in the process that reads files."""
        read = readers.read_row_hashes
        hashes: RowHashes = yield from read_in_process(self.path, read, known, options)
        return hashes


@dataclass(frozen=True, eq=False)
class AnnDataSource(Source):
    """The table of a layer of SpatialData: an AnnData in memory."""

    words = "the AnnData of layer '{layer_name}'"

    table: SpatialTable
    layer_name: str
    labels: Any = None
    """The label image whose instances the rows are; None for a layer without labels."""

    def read(self, options: ReadOptions) -> Stages[ReadResult]:
        """Read the rows that annotate the layer, and join them to its objects, if any.

        The note of the table is the first of the dataset's notes.
        """
        yield Stage("Reading the table")
        part, name = self.table.adata, self.layer_name
        result = yield from read_adata_in_stages(part, name, options, is_shared=True)
        result = yield from apply_recipe_or_mixing(replace(result, columns=()), options)
        dataset = result.dataset
        if self.labels is not None:
            yield FINDING_STAGE
            assert dataset.source_obs is not None
            column = self.table.instance_key
            request = JoinRequest(self.layer_name, self.labels, column=column)
            where = f"the table of '{self.layer_name}'"
            dataset = apply_join(
                dataset, join_with_labels(dataset.source_obs, request, where)
            )
        if self.table.note:
            dataset = replace(dataset, notes=(self.table.note, *dataset.notes))
        return replace(result, dataset=dataset)

    def _hash_rows(self, known: Identity, options: ReadOptions) -> Stages[RowHashes]:
        """Hash the numbers in the AnnData."""
        yield Stage("Checking the numbers")
        return read_root_identity(
            make_root_from_anndata(self.table.adata), self.name, known
        ).row_hashes


@dataclass(frozen=True, eq=False)
class FeaturesSource(Source):
    """The features table of a napari layer, as it was when the source was made."""

    words = "the table of layer '{layer_name}'"

    features: pd.DataFrame
    layer_name: str
    request: JoinRequest | None = None
    """The label image to whose objects the rows are joined; None for no join."""

    def read(self, options: ReadOptions) -> Stages[ReadResult]:
        """Read and check the table, and join its rows to objects if requested.

        A space among the options is ignored; the column of a join becomes the id
        column.
        """
        link = None
        if self.request is not None:
            yield FINDING_STAGE
            where = f"the table of '{self.layer_name}'"
            link = join_with_labels(self.features, self.request, where)
            options = replace(options, id_column=link.column)
        yield Stage("Checking the numbers")
        how = replace(options, space=None)
        result = tables.result_from_features(self.features, self.layer_name, how)
        dataset = result.dataset if link is None else apply_join(result.dataset, link)
        return replace(result, dataset=dataset, join=link)


@dataclass(frozen=True, eq=False)
class MeasuredSource(Source):
    """The objects of a label image, as rows of measurements in an image."""

    words = "the objects of '{layer_name}'"

    image: Any
    """As for :func:`~.images.measure.measure_labels_in_stages`."""
    labels: Any
    layer_name: str
    how: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of :func:`~.images.measure.measure_labels_in_stages`."""
    notes: tuple[str, ...] = ()
    """Sentences on the measured images, shown with the result."""

    def read(self, options: ReadOptions) -> Stages[ReadResult]:
        """Measure every object; the notes of the source come before other notes."""
        how = {**self.how, "name": self.layer_name, "options": options}
        dataset = yield from measure_labels_in_stages(self.image, self.labels, **how)
        dataset = replace(dataset, notes=(*self.notes, *dataset.notes))
        dataset = dataset.with_roles_and_gene_kind(options)
        return ReadResult(dataset=dataset, columns=dataset.profile_names)


@dataclass(eq=False)
class ExperimentSource(Source):
    """A folder of images with label images, whose objects are measured."""

    words = "the images of '{folder.name}'"

    folder: Path
    images: ExperimentImages | None = None
    """The opened images, whose labels may be edited; None before the first reading."""

    @property
    def pixels(self) -> Any:
        """The labels of all images."""
        return None if self.images is None else self.images.labels

    def read(self, options: ReadOptions) -> Stages[ReadResult]:
        """Measure the objects of every image.

        The images are opened at the first reading only: later readings measure the
        labels as they were edited.
        """
        self.images = self.images or (yield from open_images(self.folder))
        dataset = yield from measure_images(self.images, options)
        dataset, names = replace(dataset, read_options=options), dataset.profile_names
        dataset = dataset.with_roles_and_gene_kind(options)
        return ReadResult(dataset, columns=names, images=self.images)


def make_source(path: Path) -> Source:
    """Return the source of a file or folder: an experiment, or any other file."""
    if readers.is_image_folder(path):
        return ExperimentSource(path)
    return FileSource(path)


@dataclass(frozen=True)
class SampleSource(Source):
    """A sample that comes with the program, by its key in ``SAMPLES``."""

    words = "the sample {key}"

    key: str

    def read(self, options: ReadOptions) -> Stages[ReadResult]:
        """Read the sample; of the options only column roles and gene kind are used."""
        if self.key == "nuclei":
            result = yield from measure_nuclei_in_stages()
            return replace(
                result, dataset=result.dataset.with_roles_and_gene_kind(options)
            )
        yield Stage("Opening the sample")
        if self.key != "pbmc":
            sample = getattr(samples, self.key)()
            return ReadResult(sample.with_roles_and_gene_kind(options))
        # Apart: here another thread, as it compiles, lets anndata's warnings through.
        dataset = yield from read_in_process(
            samples.find_pbmc_file(), samples.read_pbmc
        )
        return ReadResult(dataset.with_roles_and_gene_kind(options))
