"""The AnnData whose genes, or other columns, a notebook compares and draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.expression import TARGET_SUM
from napari_embedding_game.session.notebook.data_cells import Loaded
from napari_embedding_game.session.notebook.draft import SCANPY, Draft, call, code_of


@dataclass(frozen=True)
class ExpressionCode:
    """How the code calls them."""

    adata: str
    """The name of the AnnData, whose ``obs`` is that of ``adata``."""
    options: dict[str, Any]
    """``use_raw`` for functions of scanpy, where there is a choice."""
    values: str
    """Code of an AnnData whose ``X`` holds them."""
    is_log1p: bool
    """Whether they are logarithms of genes, as scanpy takes them to be."""


def expression_cells(draft: Draft, dataset: Dataset, loaded: Loaded) -> ExpressionCode:
    """Add the cells that make what is compared, where the file has other numbers."""
    is_log1p = loaded.has_genes and dataset.expression.is_log1p
    if not loaded.has_genes and loaded.where.get("use_rep", "X") != "X":
        rep = loaded.where["use_rep"]
        draft.text(f"The columns of `{rep}` are what is compared: there are no genes.")
        draft.code(
            f"columns = sc.AnnData(adata.obsm[{code_of(rep)}], obs=adata.obs)",
            call("columns.var_names =", code_of(list(dataset.profile_names))),
            imports=[SCANPY],
        )
        return ExpressionCode("columns", {}, "columns", is_log1p)
    if loaded.is_counts:
        draft.text("Of raw counts the logarithms are compared, as in the window.")
        draft.code(
            f"genes = adata{'.raw.to_adata' if loaded.use_raw else '.copy'}()",
            f"sc.pp.normalize_total(genes, target_sum={TARGET_SUM:g})",
            "sc.pp.log1p(genes)",
            imports=[SCANPY],
        )
        return ExpressionCode("genes", {"use_raw": False}, "genes", is_log1p)
    if loaded.use_raw is None:
        return ExpressionCode("adata", {}, "adata", is_log1p)
    is_raw = loaded.has_genes and loaded.use_raw
    values = "adata.raw.to_adata()" if is_raw else "adata"
    return ExpressionCode("adata", {"use_raw": loaded.use_raw}, values, is_log1p)
