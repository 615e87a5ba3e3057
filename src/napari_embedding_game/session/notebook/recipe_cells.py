"""Cells that do again what the recipe did to raw counts, step by step in scanpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.quality_control import MITOCHONDRIAL
from napari_embedding_game.session.notebook.draft import SCANPY, Draft, call, code_of

_COLUMNS = ("total_counts", "n_genes_by_counts", "pct_counts_mt")
"""Of obs, where the recipe notes the quality of the cells."""
_SCORE = "doublet_score"


def recipe_cells(draft: Draft, dataset: Dataset, recipe: Mapping[str, Any]) -> str:
    """Add the recipe; return the space of ``obsm`` that it makes.

    Parameters
    ----------
    draft : Draft
        Its ``adata.X`` has the counts, as CSR in single precision.
    dataset : Dataset
        Made by the recipe.
    recipe : mapping
        Its ``provenance["recipe"]``.
    """
    draft.text("## Quality of the cells", _told_of_limits(recipe))
    _quality(draft, dataset, recipe)
    if recipe["doublets"]:
        _doublets(draft, dataset, recipe)
    _components(draft, dataset, recipe)
    if recipe["batch_key"] is None:
        return "X_pca"
    return harmony_cells(draft, recipe, "X_pca")


def limits_in_words(recipe: Mapping[str, Any]) -> list[str]:
    """Return what cells have that are left out, with the number of them."""
    numbers = recipe.get("left_out", {})  # older files tell none
    words = {
        "min_genes": "fewer than {:,} genes",
        "max_genes": "more than {:,} genes",
        "min_counts": "fewer than {:,} counts",
        "max_counts": "more than {:,} counts",
        "max_mito": "more than {:g} % mitochondrial counts",
    }
    # Cells without a gene are left out in any case; any other limit of 0 is none.
    limits = {"min_genes": max(1, recipe["min_genes"])}
    limits |= {name: recipe[name] for name in words if recipe.get(name)}
    return [
        words[name].format(limit) + (f" ({numbers[name]:,})" if name in numbers else "")
        for name, limit in limits.items()
    ]


def listed_in_words(parts: list[str], last: str = "or") -> str:
    """Return "a, b or c"."""
    *others, end = parts
    return f"{', '.join(others)} {last} {end}" if others else end


def number_of(value: float) -> str:
    """Return the code of a number, a whole one without its point."""
    return repr(int(value)) if float(value).is_integer() else repr(float(value))


def _told_of_limits(recipe: Mapping[str, Any]) -> str:
    limits = limits_in_words(recipe)
    first = "; a cell counts under the first that it is out of"
    return (
        f"Cells with {listed_in_words(limits)} are left out. In brackets is how many "
        f"these were{first if len(limits) > 1 else ''}."
    )


def _quality(draft: Draft, dataset: Dataset, recipe: Mapping[str, Any]) -> None:
    has_mito = "pct_counts_mt" in dataset.obs or bool(recipe["max_mito"])
    figures = _COLUMNS if has_mito else _COLUMNS[:2]
    options: dict[str, Any] = {"percent_top": None, "log1p": False}
    lines = []
    if has_mito:
        names = call(
            "adata.var_names.str.match", code_of(MITOCHONDRIAL.pattern), case=False
        )
        lines = [f'adata.var["mt"] = {names}']
        options = {"qc_vars": ["mt"], **options}
    lines.append(call("quality, _ = sc.pp.calculate_qc_metrics", "adata", **options))
    noted = [name for name in figures if _is_new(dataset, name)]
    lines.append(f"figures = {code_of(list(figures))}")
    if len(noted) == len(figures):
        lines.append("adata.obs[figures] = quality[figures]")
    elif noted:
        lines += [
            "# Columns of the file stay:",
            f"adata.obs[{code_of(noted)}] = quality[{code_of(noted)}]",
        ]
    lines.append(
        "axes = quality[figures].hist(bins=60, figsize=(12, 3), layout=(1, -1))"
    )
    draft.code(*lines, imports=[SCANPY])
    draft.code(*_limits(recipe), "adata")


def _limits(recipe: Mapping[str, Any]) -> list[str]:
    """Return the code that keeps the cells within the limits."""
    lines = ['genes, counts = quality["n_genes_by_counts"], quality["total_counts"]']
    asked = [f"(genes >= {max(1, recipe['min_genes'])})"]
    if recipe["max_genes"]:
        asked.append(f"(genes <= {recipe['max_genes']})")
    if recipe["min_counts"]:
        asked.append(f"(counts >= {recipe['min_counts']})")
    if recipe["max_counts"]:
        asked.append(f"(counts <= {recipe['max_counts']})")
    if recipe["max_mito"]:
        # "pct_counts_mt" is rounded, so that cells at the limit could pass or fail.
        share = '100 * quality["total_counts_mt"].astype(float) / counts'
        lines.append(f"share = {share}  # per cent")
        asked.append(f"~(share > {number_of(recipe['max_mito'])})")
    if len(asked) == 1:
        return [
            *lines[1:],
            f'is_good = quality["n_genes_by_counts"] {asked[0][7:-1]}',
            "adata = adata[is_good.to_numpy()].copy()",
        ]
    first, *others = asked
    return [
        *lines,
        "is_good = (",
        f"    {first}",
        *(f"    & {one}" for one in others),
        ")",
        "adata = adata[is_good.to_numpy()].copy()",
    ]


def _doublets(draft: Draft, dataset: Dataset, recipe: Mapping[str, Any]) -> None:
    key, n = recipe["batch_key"], recipe["left_out"]["doublets"]
    among = "" if key is None else f" among the cells of each level of `{key}`"
    draft.text(
        f"Scrublet finds doublets{among}, two cells in one droplet: {n:,} were left "
        "out."
    )
    batches = {} if key is None else {"batch_key": key}
    lines = [
        call(
            "found = sc.pp.scrublet",
            "adata",
            **batches,
            use_approx_neighbors=False,
            random_state=recipe["random_state"],
            verbose=False,
            copy=True,
        )
    ]
    if _is_new(dataset, _SCORE):
        lines.append(f'adata.obs["{_SCORE}"] = found.obs["{_SCORE}"]')
    draft.code(
        *lines,
        'is_single = ~found.obs["predicted_doublet"].to_numpy(bool)',
        "adata = adata[is_single].copy()",
        "adata",
        imports=[SCANPY],
    )


def _is_new(dataset: Dataset, column: str) -> bool:
    """Return whether a column of obs is the recipe's, and no column of the file."""
    of_file = dataset.source_obs
    return column in dataset.obs and (of_file is None or column not in of_file)


def _components(draft: Draft, dataset: Dataset, recipe: Mapping[str, Any]) -> None:
    draft.text(
        "## From raw counts to principal components",
        "Genes in few cells are left out; the counts of each cell are normalised, and "
        "logarithms taken. Of the genes that vary most, scaled, principal components "
        "are computed.",
    )
    draft.code(
        f"sc.pp.filter_genes(adata, min_cells={max(1, recipe['min_cells'])})",
        f"sc.pp.normalize_total(adata, target_sum={number_of(recipe['target_sum'])})",
        "sc.pp.log1p(adata)",
        "",
        "sc.pp.highly_variable_genes(adata, "
        f"n_top_genes={min(recipe['n_top_genes'], dataset.profile.shape[1])})",
        'variable = adata[:, adata.var["highly_variable"]].copy()',
        "variable.X = variable.X.toarray()",
        f"sc.pp.scale(variable, max_value={number_of(recipe['max_value'])})",
        f"sc.pp.pca(variable, n_comps={recipe['components']}, "
        f"random_state={recipe['random_state']})",
        'adata.obsm["X_pca"] = variable.obsm["X_pca"]',
        imports=[SCANPY],
    )
    draft.code("sc.pl.pca_variance_ratio(variable)")


def harmony_cells(draft: Draft, noted: Mapping[str, Any], space: str) -> str:
    """Add the mixing of batches; return the space of ``obsm`` that it makes.

    Parameters
    ----------
    draft : Draft
    noted : mapping
        ``batch_key`` and ``random_state``.
    space : str
        Key of the components in ``obsm``.
    """
    key, mixed = noted["batch_key"], f"{space}_harmony"
    draft.text(f"Harmony mixes the levels of `{key}` in the components.")
    draft.code(
        "harmony = harmonypy.run_harmony(",
        f'    adata.obsm[{code_of(space)}].astype("float64"),',
        f"    adata.obs[[{code_of(key)}]],",
        f"    [{code_of(key)}],",
        f"    random_state={noted['random_state']},",
        "    verbose=False,",
        ")",
        f'adata.obsm[{code_of(mixed)}] = harmony.Z_corr.astype("float32")',
        imports=["import harmonypy"],
    )
    draft.code(
        f"sc.pl.embedding(adata, {code_of(mixed)}, color={code_of(key)})",
        imports=[SCANPY],
    )
    return mixed
