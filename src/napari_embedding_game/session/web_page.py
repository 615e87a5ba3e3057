"""A map as one web page that opens without a network, such as from a mail.

The page holds everything: the library that paints it, the map, the chosen columns and
genes, the markers of each group and the frames of a run.  Positions and numbers are
rounded to one 65,534th of their range, and compressed.  Texts of the data are inserted
as text, never as HTML, so that they cannot run code.
"""

from __future__ import annotations

import base64
import gzip
import html
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.group_sums import run_to_result
from napari_embedding_game.core.inspect.markers import iter_leading_markers
from napari_embedding_game.data.column_names import TEXT
from napari_embedding_game.data.columns import KEY, list_text, replace_infinite_by_nan
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import atomic_write
from napari_embedding_game.data.export.plots import paint_order
from napari_embedding_game.data.expression import Expression, GeneKind
from napari_embedding_game.data.formats.anndata import read_expression
from napari_embedding_game.data.gene_names import find_names
from napari_embedding_game.data.palette import level_colors, to_hex_colors

if TYPE_CHECKING:
    from anndata import AnnData

MISSING = 65_535
"""Code of a missing value."""
MAX_LEVELS = 200
"""Most levels of a column of groups: a column of more names the rows."""
N_COLUMNS, N_MARKERS, N_GENES = 5, 10, 10
MAX_MOVING = 20_000
"""Most points that the frames of the run show."""
LIBRARY = Path("resources", "regl-scatterplot.js")
"""The library that paints the points; the file says where it is from."""

Codes = NDArray[np.uint16]


def write_web_page(
    adata: AnnData,
    target: Path,
    *,
    basis: str = f"X_{KEY}",
    columns: Sequence[str] | None = None,
    genes: Sequence[str] | None = None,
    frames: Sequence[NDArray[np.floating]] = (),
    title: str = "",
    gene_kind: GeneKind | None = None,
) -> None:
    """Write a map as one .html file that needs no network.

    ``adata``: a map with its cells: ``obsm[basis]`` and ``obs``; categories have the
    colours of ``uns[column + "_colors"]``, as scanpy has them. ``basis``: key of
    ``obsm``; its first two axes are drawn. Rows that are NaN are left out.
    ``columns``: of ``obs``, to colour by. The first one with levels is that of the
    groups, which have markers and are counted in a selection. By default the clusters
    of the map and the first four others that are numbers or have at most 200 levels.
    ``genes``: symbols or identifiers, to colour by; their expression is that of the
    window, of ``raw`` where there is one, and the page says what it is. By default
    the first markers of the groups, at most 10. ``frames`` sequence of (n_obs, d)
    arrays: the run, to be played; of at most 20,000 of the points. ``gene_kind``: what
    the genes hold, "counts", "logarithms" or "values"; by default their numbers tell.

    Raises DataError: there is no such map, column or gene, or the file cannot be
    written.
    """
    maps = [
        key for key, one in adata.obsm.items() if one.ndim == 2 and one.shape[1] > 1
    ]
    if basis not in maps:
        choices = list_text(maps) or "none"
        raise DataError(
            f'There is no map "{basis}" of two axes: choose one of {choices}.'
        )
    positions = np.asarray(adata.obsm[basis], dtype=float)[:, :2]
    is_drawn = np.isfinite(positions).all(axis=1)
    if not is_drawn.any():
        raise DataError(f'The map "{basis}" has no row with a position.')
    rows = paint_order(len(positions))
    rows = rows[is_drawn[rows]]
    positions = positions[rows]
    chosen = [
        _encode_column(adata, name, rows) for name in _choose_columns(adata, columns)
    ]
    adata = adata[rows]  # which forgets levels that none of them has
    groups = next((one for one in chosen if "levels" in one), None)
    expression, gene_names, gene_ids = read_expression(adata, gene_kind)
    markers = {}
    if groups is not None and gene_names:
        markers = _markers_by_group(expression, gene_names, groups)
    if genes is None:
        ranked = itertools.zip_longest(*markers.values())
        first = (gene for of_rank in ranked for gene in of_rank if gene is not None)
        genes = list(itertools.islice(dict.fromkeys(first), N_GENES))
    for one in chosen:
        one["name"] = _unique_title(
            one["name"], [other["name"] for other in chosen], genes
        )
    chosen += [_encode_gene(expression, gene_names, gene_ids, name) for name in genes]
    moving = [np.asarray(frame, dtype=float)[rows, :2] for frame in frames]
    corners = [[m.min(axis=0), m.max(axis=0)] for m in [positions, *moving]]
    low, high = np.min(corners, axis=(0, 1)), np.max(corners, axis=(0, 1))

    def encode_positions(layout: NDArray[np.floating]) -> dict[str, Codes]:
        """Return the codes of a layout's two axes, on the scale of all layouts."""
        scaled = _scale_to_codes(layout, low, high)
        return {"x": scaled[:, 0], "y": scaled[:, 1]}

    texts = [adata.obs[one] for one in adata.obs if TEXT.match(str(one))][:1]
    step = -(-len(positions) // MAX_MOVING)
    page = {
        "title": title or "Map",
        "n": len(positions),
        "names": adata.obs_names.astype(str).tolist(),
        "texts": [one.astype(object).fillna("").map(str).tolist() for one in texts],
        "groups": groups["name"] if groups else "",
        "markers": markers,
        "unit": expression.note if gene_names else "",
        "shades": to_hex_colors(colormaps["viridis"](range(256))),
        **encode_positions(positions),
        "limits": np.stack([low, high], axis=1).tolist(),
        "frame_step": step,
        "frames": [encode_positions(layout[::step]) for layout in moving],
        "columns": chosen,
    }
    with atomic_write(target) as temporary:
        temporary.write_text(_fill_template(page), encoding="utf-8")


def _choose_columns(adata: AnnData, names: Sequence[str] | None) -> list[str]:
    """Return the columns to colour by: the given names, or the clusters and others.

    By default the clusters of the map, if there are any, and the first four other
    columns that are numbers or have at most ``MAX_LEVELS`` levels; columns of texts and
    of the map are left out.

    Raises DataError: a column does not exist, or there is no column.
    """
    if names is None:
        clusters = f"{KEY}_cluster"
        usable = [
            str(name)
            for name, column in adata.obs.items()
            if column.dtype.kind in "iuf" or column.nunique() <= MAX_LEVELS
        ]
        columns = [x for x in usable if not (x.startswith(KEY) or TEXT.match(x))]
        names = [clusters] * (clusters in usable) + columns[: N_COLUMNS - 1]
    missing = [name for name in names if name not in adata.obs]
    if missing:
        choices = list_text([str(name) for name in adata.obs]) or "none"
        raise DataError(f'There is no column "{missing[0]}": choose one of {choices}.')
    if not names:
        raise DataError("There is no column to colour the map by: choose one of obs.")
    return list(names)


def _unique_title(name: str, columns: Sequence[str], genes: Sequence[str]) -> str:
    """Return a column's title on the page, distinct from other columns and genes.

    A column of the map is named without its prefix, or with "map_" where another column
    has this name; "(column)" is added where a gene has the title.
    """
    short = name.removeprefix(f"{KEY}_")
    title = f"map_{short}" if short != name and short in columns else short
    return f"{title} (column)" if title in genes else title


def _encode_column(adata: AnnData, name: str, rows: NDArray[np.intp]) -> dict[str, Any]:
    """Return a column as the page stores it: levels, colours and codes, or numbers.

    Levels that no painted row has are left out.  The colours of the file are taken only
    where it has one for each level.

    ``rows``: the painted rows, in their order.

    Raises DataError: the column has more than ``MAX_LEVELS`` levels.
    """
    column = adata.obs[name]
    if column.dtype.kind in "iuf":
        return _encode_numbers(
            name, column.to_numpy(dtype=float, na_value=np.nan)[rows]
        )
    if column.nunique() > MAX_LEVELS:
        raise DataError(
            f'Column "{name}" has {column.nunique()} levels: choose one that has at '
            f"most {MAX_LEVELS}."
        )
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(str).where(column.notna()).astype("category")
    levels = [str(level) for level in column.cat.categories]
    of_file = [str(color) for color in adata.uns.get(f"{name}_colors", ())]
    # As scanpy has it, colours of fewer levels are none.
    is_whole = len(of_file) >= len(levels)
    colors_by_level = dict(zip(levels, of_file, strict=False)) if is_whole else {}
    colors = to_hex_colors(level_colors(levels, colors_by_level))
    codes = column.cat.codes.to_numpy(np.int64)[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    used = np.flatnonzero(counts)
    codes = pd.Index(used).get_indexer(codes)
    return {
        "name": name,
        "codes": np.where(codes < 0, MISSING, codes).astype(np.uint16),
        "limits": (0.0, 0.0),
        "is_gene": False,
        "levels": [levels[i] for i in used],
        "colors": [colors[i] for i in used],
        "counts": counts[used].tolist(),
    }


def _encode_gene(
    expression: Expression, names: Sequence[str], ids: Sequence[str], name: str
) -> dict[str, Any]:
    """Return the expression of a gene as the page stores it.

    ``name``: name or identifier of the gene, one of ``names`` or ``ids`` of the
    expression's columns.

    Raises DataError: there is no such gene.
    """
    indices = find_names([name], names, data_ids=ids).indices
    if not indices:
        raise DataError(f'There is no gene "{name}": choose one of var_names.')
    values = expression.dense_column(indices[0])
    return {**_encode_numbers(name, values.astype(float)), "is_gene": True}


def _encode_numbers(name: str, values: NDArray[np.floating]) -> dict[str, Any]:
    """Return a numeric column as the page stores it: codes between its limits.

    The limits are the lowest and highest finite value, or 0 without any; missing and
    infinite values have the code ``MISSING``.
    """
    values = replace_infinite_by_nan(values)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    return {
        "name": name,
        "codes": _scale_to_codes(values, low, high),
        "limits": (float(low), float(high)),
        "is_gene": False,
    }


def _scale_to_codes(values: NDArray[np.floating], low: Any, high: Any) -> Codes:
    """Return values as integer codes, 0 at ``low`` and 65,534 at ``high``.

    Values that are NaN have the code ``MISSING``.
    """
    span = np.where(high > low, high - low, 1.0)
    codes = np.rint((values - low) / span * (MISSING - 1))
    return np.where(np.isfinite(codes), codes, MISSING).astype(np.uint16)


def _markers_by_group(
    expression: Expression, names: Sequence[str], groups: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Return the leading markers of each group, best first, by name of the group.

    At most ``N_MARKERS`` of each. ``groups``: the column of groups, as encoded.
    """
    codes = groups["codes"].astype(np.intp)
    codes, is_log1p = np.where(codes == MISSING, -1, codes), expression.is_log1p
    n_groups = len(groups["levels"])
    leading = iter_leading_markers(expression.values, codes, n_groups, log1p=is_log1p)
    ranked = zip(groups["levels"], run_to_result(leading), strict=True)
    all_names = pd.Index(names)
    return {level: all_names[one[:N_MARKERS]].tolist() for level, one in ranked}


def _fill_template(page: Mapping[str, Any]) -> str:
    """Return the HTML of the page, with its content compressed and in base64.

    The content is the length of a JSON, the JSON, and the arrays it refers to.
    """
    arrays: list[bytes] = []

    def put(codes: Codes) -> dict[str, int]:
        """Keep an array of codes, and return where it stands among all codes."""
        start = sum(map(len, arrays)) // 2
        arrays.append(codes.astype("<u2").tobytes())
        return {"start": start, "stop": start + len(codes)}

    text = json.dumps(page, default=put).encode()
    whole = b"".join([len(text).to_bytes(4, "little"), text, *arrays])
    payload = base64.b64encode(gzip.compress(whole, 9, mtime=0)).decode()
    folder = Path(__file__).parent
    parts = {
        "%TITLE%": html.escape(page["title"]),
        "%LIBRARY%": (folder.parent / LIBRARY).read_text(encoding="utf-8"),
        "%SCRIPT%": (folder / "web_page.js").read_text(encoding="utf-8"),
        "%PAYLOAD%": payload,
    }
    text_of_page = (folder / "web_page.html").read_text(encoding="utf-8")
    return re.sub("|".join(parts), lambda match: parts[match.group()], text_of_page)
