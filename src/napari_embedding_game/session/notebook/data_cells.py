"""Cells that load the data of a map, and prepare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.data.as_anndata import FEATURES, SAMPLES, as_anndata
from napari_embedding_game.data.columns import unique_names
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import stored_space
from napari_embedding_game.data.formats.anndata_contents import OBS, split_space
from napari_embedding_game.data.formats.anndata_parts import RAW_HOLDS_COUNTS
from napari_embedding_game.session.maps import PART
from napari_embedding_game.session.notebook.draft import Draft, call, code_of

SCANPY = "import scanpy as sc"
PANDAS = "import pandas as pd"
NUMPY = "import numpy as np"
READ = "from napari_embedding_game import read"
HARMONY = "X_pca_harmony"
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
    elif dataset.source is not None or dataset.name.lower() in SAMPLES:
        loaded = _by_our_reader(draft, dataset, recipe)
    else:
        return _from_beside(draft, dataset)
    is_cut = of_part or (recipe is None and is_plain and not dataset.kept.all())
    if is_cut:
        _keep_rows(draft, dataset, of_part)
    return loaded


def _is_plain(dataset: Dataset, recipe: Any) -> bool:
    """Return whether scanpy reads the same numbers as the window."""
    source = dataset.source
    assert source is not None
    space = dataset.space if recipe is None else str(recipe["space"])
    if source.suffix.lower() != ".h5ad" or space == OBS or space.startswith("tables"):
        return False
    stored = stored_space(source, space)
    if stored is None:
        return not source.exists()
    n_columns = dataset.X.shape[1] if recipe is None else stored.n_columns
    is_whole = dataset.is_distances or stored.n_columns == n_columns
    return stored.form in ("dense", "csr", "csc") and is_whole


def _by_scanpy(draft: Draft, dataset: Dataset, recipe: Any) -> Loaded:
    assert dataset.source is not None
    space = dataset.space if recipe is None else str(recipe["space"])
    stored = stored_space(dataset.source, space)
    draft.text("## Data")
    lines = [f"adata = sc.read_h5ad({code_of(draft.path_to(dataset.source))})"]
    if not dataset.source_obs_names.is_unique:
        lines.append("adata.obs_names_make_unique()")
    place = split_space(space)
    has_raw = stored is not None and stored.has_raw
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
            imports = [SCANPY, "from scipy.sparse import csr_matrix"]
        else:
            imports = [SCANPY]
            if place is not None:
                lines.append(f"adata.X = {target}")
        draft.code(*lines, "adata", imports=imports)
        where = _recipe_cells(draft, dataset, recipe)
        use_raw = False if has_raw else None
        return Loaded({"use_rep": where}, use_raw, True, False)
    is_single = stored is not None and stored.dtype == "float32"
    target = "adata.X" if place is None else f"adata.{place[0]}[{code_of(place[1])}]"
    if not is_single:
        lines += [f"# {_SINGLE}", f'{target} = {target}.astype("float32")']
    draft.code(*lines, "adata", imports=[SCANPY])
    uses_raw = has_raw and RAW_HOLDS_COUNTS not in dataset.notes
    kind = dataset.expression.kind if dataset.profile.shape[1] else "values"
    return Loaded(
        _where(dataset, place),
        uses_raw if has_raw else None,
        bool(dataset.profile.shape[1]) and dataset.has_expression,
        kind == "counts",
    )


def _where(dataset: Dataset, place: tuple[str, str] | None) -> dict[str, str]:
    if place is None:
        return {"use_rep": "X"}
    if not dataset.is_distances:
        return {"use_rep": place[1] if place[0] == "obsm" else dataset.space}
    key = place[1].removesuffix("distances").rstrip("_")
    return {"neighbors_key": key or "neighbors"}


def _by_our_reader(draft: Draft, dataset: Dataset, recipe: Any) -> Loaded:
    """Read by ``read``: tables, arrays, 10x and other forms of AnnData."""
    options: dict[str, Any] = {}
    if dataset.source is None:
        source = dataset.name.lower()
    else:
        source = draft.path_to(dataset.source)
        options = _options(dataset, recipe)
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
    where = _recipe_cells(draft, dataset, recipe)
    return Loaded({"use_rep": where}, None, True, False)


def _options(dataset: Dataset, recipe: Any) -> dict[str, Any]:
    """Return how the file has to be read for the numbers of a dataset."""
    from napari_embedding_game.data.readers import columns, spaces

    assert dataset.source is not None
    space = dataset.space if recipe is None else str(recipe["space"])
    options: dict[str, Any] = {}
    known = spaces(dataset.source) if dataset.source.exists() else []
    if space in known[1:] or space == OBS:
        options["space"] = space
    offered = columns(dataset.source, options.get("space")) if known else []
    if recipe is None and offered and not dataset.is_distances:
        left_out = set(offered) - set(dataset.var_names)
        repeats = any("that repeat" in n and "Left out" in n for n in dataset.notes)
        if left_out and repeats:
            options["duplicates"] = "drop"
        elif left_out:
            options["columns"] = list(dataset.var_names)
    if any("missing or infinite" in note for note in dataset.notes):
        options["missing"] = "drop"
    return options


def _from_beside(draft: Draft, dataset: Dataset) -> Loaded:
    """Read numbers that were in no file, and are saved beside the notebook."""
    if not dataset.X.shape[1]:
        raise DataError(dataset.missing_reason)

    def write(path: Path) -> None:
        as_anndata(dataset).write_h5ad(path, compression="gzip")

    name = draft.beside("features.h5ad", write)
    draft.text(
        "## Data",
        f"The numbers were not read from a file: they are those of **{dataset.name}**, "
        f"as they were in napari. They were saved beside this notebook, in `{name}`.",
    )
    draft.code(f"adata = sc.read_h5ad({code_of(name)})", "adata", imports=[SCANPY])
    return Loaded({"use_rep": FEATURES}, None, bool(dataset.profile.shape[1]), False)


def _keep_rows(draft: Draft, dataset: Dataset, of_part: bool) -> None:
    """Keep only the rows that are on the map."""
    if not of_part and dataset.space.startswith("obsm["):
        key = dataset.space.split("'")[1]
        draft.text("Rows with missing values were left out.")
        draft.code(
            f"is_finite = np.isfinite(adata.obsm[{code_of(key)}]).all(axis=1)",
            "adata = adata[is_finite].copy()",
            imports=[NUMPY],
        )
        return
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


def _recipe_cells(draft: Draft, dataset: Dataset, recipe: Mapping[str, Any]) -> str:
    """Add the recipe for raw counts, step by step; return the space that it makes."""
    draft.text(
        "## From raw counts to principal components",
        "Cells with few genes and genes in few cells are left out; the counts of each "
        "cell are normalised, and logarithms taken. Of the genes that vary most, "
        "scaled, principal components are computed.",
    )
    draft.code(
        f"sc.pp.filter_cells(adata, min_genes={max(1, recipe['min_genes'])})",
        f"sc.pp.filter_genes(adata, min_cells={max(1, recipe['min_cells'])})",
        f"sc.pp.normalize_total(adata, target_sum={recipe['target_sum']:g})",
        "sc.pp.log1p(adata)",
        "",
        "sc.pp.highly_variable_genes(adata, "
        f"n_top_genes={min(recipe['n_top_genes'], dataset.profile.shape[1])})",
        'variable = adata[:, adata.var["highly_variable"]].copy()',
        "variable.X = variable.X.toarray()",
        f"sc.pp.scale(variable, max_value={recipe['max_value']:g})",
        f"sc.pp.pca(variable, n_comps={recipe['components']}, "
        f"random_state={recipe['random_state']})",
        'adata.obsm["X_pca"] = variable.obsm["X_pca"]',
        imports=[SCANPY],
    )
    draft.code("sc.pl.pca_variance_ratio(variable)")
    key = recipe.get("batch_key")
    if key is None:
        return "X_pca"
    draft.text(f"Harmony mixes the levels of `{key}` in the components.")
    draft.code(
        "harmony = harmonypy.run_harmony(",
        '    adata.obsm["X_pca"].astype("float64"),',
        f"    adata.obs[[{code_of(key)}]],",
        f"    [{code_of(key)}],",
        f"    random_state={recipe['random_state']},",
        "    verbose=False,",
        ")",
        f'adata.obsm["{HARMONY}"] = harmony.Z_corr.astype("float32")',
        imports=["import harmonypy"],
    )
    draft.code(f'sc.pl.embedding(adata, "{HARMONY}", color={code_of(key)})')
    return HARMONY
