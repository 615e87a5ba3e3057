"""Cells that load the data of a map, and prepare them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.data.as_anndata import FEATURES, SAMPLES, as_anndata
from napari_embedding_game.data.columns import NUMBERED, unique_names
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import stored_space
from napari_embedding_game.data.formats.anndata_contents import OBS, split_space
from napari_embedding_game.data.formats.anndata_parts import (
    GENES_OF_RAW,
    RAW_HOLDS_COUNTS,
)
from napari_embedding_game.data.formats.tables import TRANSPOSED
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import is_table
from napari_embedding_game.session.maps import PART
from napari_embedding_game.session.notebook.draft import (
    NUMPY,
    PANDAS,
    SCANPY,
    Draft,
    call,
    code_of,
)
from napari_embedding_game.session.notebook.recipe_cells import (
    harmony_cells,
    recipe_cells,
)

READ = "from napari_embedding_game import read"
READ_ZARR = "from anndata.io import read_zarr"
_SINGLE = "Single precision, as the window computes in it:"


@dataclass(frozen=True)
class Loaded:
    """What later cells have to know of the data."""

    where: dict[str, str]
    """``use_rep`` or ``neighbors_key`` of ``tl.embedding_game``."""
    use_raw: bool | None
    """Whether genes are those of ``.raw``; None where there is no choice."""
    has_genes: bool
    """Whether ``adata.X``, or ``.raw``, has the genes that the window compares."""
    is_counts: bool
    """Whether those are raw counts still."""


def is_part(key: str) -> bool:
    """Return whether the map of this key has only some rows of its parent."""
    return key.startswith(PART)


def load_cells(draft: Draft, dataset: Dataset, *, of_part: bool) -> Loaded:
    """Add the cells that load and prepare a dataset.

    Parameters
    ----------
    of_part : bool
        Whether only some of the rows that were read are on the map.

    Raises
    ------
    DataError
        The data were not there when the session was opened, and are in no file.
    """
    recipe = dataset.provenance.get("recipe")
    is_plain = dataset.source is not None and _is_plain(dataset, recipe)
    if is_plain:
        loaded = _by_scanpy(draft, dataset, recipe)
    elif _is_read_again(dataset, recipe):
        loaded = _by_our_reader(draft, dataset, recipe)
    else:
        return _from_beside(draft, dataset)
    is_whole = bool(dataset.kept.all())
    mixed = dataset.provenance.get("harmony")
    if mixed is not None:
        if is_plain and not is_whole:
            _keep_finite_rows(draft, dataset)
        rep = harmony_cells(draft, mixed, loaded.where["use_rep"])
        loaded = replace(loaded, where={"use_rep": rep})
    # Rows that were joined with label images leave out those about the background.
    if of_part or (dataset.source_objects is not None and not is_whole):
        _keep_named_rows(draft, dataset, of_part)
    elif recipe is None and mixed is None and is_plain and not is_whole:
        _keep_finite_rows(draft, dataset)
    return loaded


def _is_plain(dataset: Dataset, recipe: Any) -> bool:
    """Return whether anndata reads the same numbers as the window."""
    source = dataset.source
    assert source is not None
    space = _space_read(dataset)
    is_anndata = source.suffix.lower() in (".h5ad", ".zarr")
    if not is_anndata or space == OBS or space.startswith("tables"):
        return False
    if recipe is not None and (space.startswith("obsm") or _lacks_values(dataset)):
        return False
    stored = stored_space(source, space)
    if stored is None:
        return not source.exists()
    n_columns = dataset.X.shape[1] if recipe is None else _n_genes(dataset, recipe)
    is_whole = dataset.is_distances or stored.n_columns == n_columns
    return stored.form in ("dense", "csr", "csc") and is_whole


def _is_read_again(dataset: Dataset, recipe: Any) -> bool:
    """Return whether our reader gives the same numbers as the window had."""
    source = dataset.source
    if source is None:
        return dataset.name.lower() in SAMPLES
    is_whole = dataset.source_objects is None or bool(dataset.kept.all())
    if is_table(source) and not is_whole:
        return False  # columns were standardised without the rows of the background
    if recipe is None or not source.exists():
        return True
    from napari_embedding_game.data.readers import columns, spaces

    space = str(recipe["space"])
    if dataset.provenance.get(TRANSPOSED):
        return space in spaces(source)
    is_of_raw = any(note.startswith(GENES_OF_RAW) for note in dataset.notes)
    has_genes = not space.startswith("obsm") and not is_of_raw
    return has_genes and len(columns(source, space)) == _n_genes(dataset, recipe)


def _space_read(dataset: Dataset) -> str:
    """Return the space of the file, which the recipe or Harmony has made another of."""
    noted = (dataset.provenance.get(step) for step in ("recipe", "harmony"))
    return next((str(one["space"]) for one in noted if one is not None), dataset.space)


def _n_genes(dataset: Dataset, recipe: Any) -> int:
    """Return how many genes the recipe was given."""
    n_left = int(dataset.profile.shape[1])
    return n_left + int(recipe["genes_left_out"])


def _lacks_values(dataset: Dataset) -> bool:
    """Return whether rows were left out when they were read."""
    return any("missing or infinite" in note for note in dataset.notes)


def _by_scanpy(draft: Draft, dataset: Dataset, recipe: Any) -> Loaded:
    assert dataset.source is not None
    space = _space_read(dataset)
    stored = stored_space(dataset.source, space)
    draft.text("## Data")
    is_zarr = dataset.source.suffix.lower() == ".zarr"
    reads, reader = ("read_zarr", READ_ZARR) if is_zarr else ("sc.read_h5ad", SCANPY)
    lines = [f"adata = {reads}({code_of(draft.path_to(dataset.source))})"]
    if not dataset.source_obs_names.is_unique:
        lines.append("adata.obs_names_make_unique()")
    place = split_space(space)
    has_raw = stored is not None and stored.has_raw
    uses_raw = has_raw and recipe is None and RAW_HOLDS_COUNTS not in dataset.notes
    if any(note.startswith(NUMBERED) for note in dataset.notes):
        lines += _numbered(uses_raw=uses_raw)
    if recipe is not None:
        target = (
            "adata.X" if place is None else f"adata.{place[0]}[{code_of(place[1])}]"
        )
        is_ready = stored is not None and (stored.form, stored.dtype) == (
            "csr",
            "float32",
        )
        if not is_ready:
            lines.append(f'adata.X = csr_matrix({target}, dtype="float32")')
            imports = [reader, "from scipy.sparse import csr_matrix"]
        else:
            imports = [reader]
            if place is not None:
                lines.append(f"adata.X = {target}")
        draft.code(*lines, "adata", imports=imports)
        where = recipe_cells(draft, dataset, recipe)
        use_raw = False if has_raw else None
        return Loaded({"use_rep": where}, use_raw, True, False)
    is_single = dataset.X.dtype != np.float32 or (
        stored is not None and stored.dtype == "float32"
    )
    target = "adata.X" if place is None else f"adata.{place[0]}[{code_of(place[1])}]"
    if not is_single:
        lines += [f"# {_SINGLE}", f'{target} = {target}.astype("float32")']
    draft.code(*lines, "adata", imports=[reader, SCANPY])
    kind = dataset.expression.kind if dataset.profile.shape[1] else "values"
    return Loaded(
        _where(dataset, place),
        uses_raw if has_raw else None,
        bool(dataset.profile.shape[1]) and dataset.has_expression,
        kind == "counts",
    )


def _numbered(*, uses_raw: bool) -> list[str]:
    """Return the code that gives genes of one name a number, as the window does."""
    if not uses_raw:
        return ["adata.var_names_make_unique()"]
    return [
        "genes = adata.raw.to_adata()",
        "genes.var_names_make_unique()",
        "adata.raw = genes",
    ]


def _where(dataset: Dataset, place: tuple[str, str] | None) -> dict[str, str]:
    if place is None:
        return {"use_rep": "X"}
    if not dataset.is_distances:
        return {"use_rep": place[1] if place[0] == "obsm" else _space_read(dataset)}
    key = place[1].removesuffix("distances").rstrip("_")
    return {"neighbors_key": key or "neighbors"}


def _by_our_reader(draft: Draft, dataset: Dataset, recipe: Any) -> Loaded:
    """Read by ``read``: tables, arrays, 10x and other forms of AnnData."""
    options: dict[str, Any] = {}
    if dataset.source is None:
        source = dataset.name.lower()
    else:
        source = draft.path_to(dataset.source)
        options = _options(dataset)
    draft.text(
        "## Data",
        "`read` reads the file as the window does; what is embedded is in "
        f'`obsm["{FEATURES}"]`.',
    )
    lines = [call("adata = read", code_of(source), **options)]
    if not dataset.source_obs_names.is_unique:
        lines.append("adata.obs_names_make_unique()")
    if recipe is None:
        draft.code(*lines, "adata", imports=[READ, SCANPY])
        return Loaded(
            {"use_rep": FEATURES}, None, bool(dataset.profile.shape[1]), False
        )
    lines += [f'adata.X = csr_matrix(adata.obsm["{FEATURES}"])  # the counts']
    imports = [READ, SCANPY, "from scipy.sparse import csr_matrix"]
    draft.code(*lines, "adata", imports=imports)
    where = recipe_cells(draft, dataset, recipe)
    return Loaded({"use_rep": where}, None, True, False)


def _options(dataset: Dataset) -> dict[str, Any]:
    """Return what `read` has to be given beside the file."""
    steps = ("several", "id_column", "recipe", "batch_key")
    options = dataset.read_options or ReadOptions()
    return {
        field.name: list(value) if isinstance(value, tuple) else value
        for field in fields(options)
        if field.name not in steps
        and (value := getattr(options, field.name)) != field.default
    }


def _from_beside(draft: Draft, dataset: Dataset) -> Loaded:
    """Read numbers that were in no file, and are saved beside the notebook."""
    if not dataset.X.shape[1]:
        raise DataError(dataset.missing_reason)

    def write(path: Path) -> None:
        as_anndata(dataset).write_h5ad(path, compression="gzip")

    name = draft.beside("features.h5ad", write)
    why = "were not read from a file" if dataset.source is None else "are no file's"
    draft.text(
        "## Data",
        f"The numbers {why}: they are those of **{dataset.name}**, as they were in "
        f"napari. They were saved beside this notebook, in `{name}`.",
    )
    draft.code(f"adata = sc.read_h5ad({code_of(name)})", "adata", imports=[SCANPY])
    return Loaded({"use_rep": FEATURES}, None, bool(dataset.profile.shape[1]), False)


def _keep_finite_rows(draft: Draft, dataset: Dataset) -> None:
    """Leave out the rows of which the space lacks values."""
    place = split_space(_space_read(dataset))
    if place is None or place[0] != "obsm":
        _keep_named_rows(draft, dataset, of_part=False)
        return
    draft.text("Rows with missing values were left out.")
    draft.code(
        f"is_finite = np.isfinite(adata.obsm[{code_of(place[1])}]).all(axis=1)",
        "adata = adata[is_finite].copy()",
        imports=[NUMPY],
    )


def _keep_named_rows(draft: Draft, dataset: Dataset, of_part: bool) -> None:
    """Keep only the rows that are on the map, by their names."""
    names = pd.Index(unique_names(dataset.source_obs_names))[dataset.kept]

    def write(path: Path) -> None:
        pd.DataFrame({"row": np.flatnonzero(dataset.kept)}, names).rename_axis(
            "name"
        ).to_csv(path)

    name = draft.beside("rows.csv", write)
    why = "The map is of a part of the rows, which" if of_part else "Rows on the map"
    draft.text(f"{why} are listed in `{name}`.")
    draft.code(
        f'rows = pd.read_csv({code_of(name)}, index_col="name", dtype={{"name": str}})',
        "adata = adata[rows.index].copy()",
        imports=[PANDAS],
    )
