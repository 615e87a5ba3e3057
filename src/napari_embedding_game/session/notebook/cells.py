"""The cells of a notebook or script: templates of their texts and code."""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

WIDTH = 88
"""Most characters of a line of code, where it can be broken."""

TITLE = """\
# {title}

The map that was on show in napari on {date}, as code: written by \
napari-embedding-game {version}. With the same versions of all packages the map is \
the same bit for bit, on any processor; on a GPU sums may be rounded otherwise, and \
it then differs in detail.

Versions: {versions}."""

IMPORTS = """\
import pandas as pd
import scanpy as sc

from napari_embedding_game import read, tl
from napari_embedding_game.data.export.plots import VolcanoPlot, draw
from napari_embedding_game.data.read_options import Recipe"""

DATA = """\
## Data

{how} What is embedded is in `obsm["X_features"]`; `X` has the genes, with counts as \
logarithms, or the columns. `{table}` has what was known of each row in the window, by \
its name: its cluster, and the groups it was in."""

ROWS = """\
rows = pd.read_csv({table}, dtype=str, keep_default_na=False).set_index("name")
adata = adata[rows.index].copy()
adata"""

CLUSTERS = """\
## Clusters

{how} They are those of the window, with their names: {sizes}."""

NAMED = """\
clusters = {clusters}
adata.obs[{column}] = pd.Categorical(rows["cluster"], list(clusters))
adata.uns[{colors}] = list(clusters.values())
table = pd.crosstab(adata.obs["embedding_game_cluster"], adata.obs[{column}])
agreement = table.max(axis=1).sum() / adata.n_obs
is_same = adata.uns["embedding_game"]["map_hash"] == {map_hash}
print(
    "The map is", "the same" if is_same else "another in detail", "as in the window;",
    f"{{agreement:.1%}} of the rows are of the cluster of most around their landmark",
    "(there {agreement:.1%})."
)"""

MADE = """\
## Columns that were made in the window

{told}"""

COMPARED = """\
inside = rows[{column}] == "inside"
outside = rows[{column}] == "outside"
{found}
draw(
    VolcanoPlot(
        names=found["names"].to_numpy(),
        changes=found["logfoldchanges"].to_numpy(),
        p_values=found["pvals_adj"].to_numpy(),
        title={title},
    )
)"""

SOME_ROWS = """\
some = adata.obs.sample(frac=1, random_state=0)
some = some.groupby({column}, observed=True).head({n}).index"""


class Cell(NamedTuple):
    """One cell: a text in Markdown, or code."""

    kind: Literal["markdown", "code"]
    source: str


class Code(str):
    """An expression that stands in the code as it is, not as a text in quotes."""

    __slots__ = ()


def code_of(value: Any) -> str:
    """Return the code of a value: texts in double quotes, as formatters write them."""
    if isinstance(value, str):
        is_code = isinstance(value, Code)
        return str(value) if is_code else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(code_of, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(code_of, value))}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        pairs = (f"{code_of(key)}: {code_of(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    return repr(value.item() if hasattr(value, "item") else value)


def call(function: str, *positional: str, **named: Any) -> str:
    """Return the code of a call, over several lines where it is long.

    Parameters
    ----------
    function : str
        May begin with what the result is assigned to.
    positional : str
        Expressions.
    named : any
        Values, which are written as such; a :class:`Code` is an expression.
    """
    arguments = [*positional, *(f"{name}={code_of(v)}" for name, v in named.items())]
    one_line = f"{function}({', '.join(arguments)})"
    if len(one_line) <= WIDTH:
        return one_line
    return "\n".join([f"{function}(", *(f"    {one}," for one in arguments), ")"])


def as_notebook(cells: list[Cell]) -> str:
    """Return the text of an .ipynb file, in version 4.5 of the format."""
    made = []
    for number, cell in enumerate(cells):
        source = cell.source.splitlines(keepends=True)
        part: dict[str, Any] = {"cell_type": cell.kind, "id": f"cell-{number}"}
        if cell.kind == "code":
            part |= {"execution_count": None, "outputs": []}
        made.append({**part, "metadata": {}, "source": source})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def as_script(cells: list[Cell]) -> str:
    """Return a Python script; ``# %%`` begins a cell, as editors know it."""
    parts = []
    for kind, source in cells:
        if kind == "markdown":
            lines = [f"# {line}".rstrip() for line in source.splitlines()]
            source = "\n".join(lines)
        parts.append(f"# %%{' [markdown]' if kind == 'markdown' else ''}\n{source}")
    return "\n\n".join(parts) + "\n"
