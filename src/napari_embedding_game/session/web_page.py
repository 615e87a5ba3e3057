"""A map as one web page that opens without a network, such as from a mail.

The page holds everything: the library that paints it, the map, the chosen columns and
genes, the markers of each group and the frames of a run.  Positions and numbers are
rounded to one 65,534th of their range, genes more coarsely (:mod:`web_page_genes`).
Texts of the data are inserted as text, never as HTML, so that they cannot run code.
"""

from __future__ import annotations

import base64
import gzip
import html
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.group_sums import run_to_result
from napari_embedding_game.core.inspect.markers import iter_leading_markers
from napari_embedding_game.core.inspect.quality import MapQuality, measure_map_quality
from napari_embedding_game.core.snapshot import MISPLACED_STRETCH
from napari_embedding_game.data.column_names import TEXT, is_sample_name
from napari_embedding_game.data.columns import (
    KEY,
    list_text,
    replace_infinite_by_nan,
    share_text,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import atomic_write
from napari_embedding_game.data.export.plots import make_paint_order
from napari_embedding_game.data.expression import Expression, GeneKind
from napari_embedding_game.data.formats.anndata import read_expression
from napari_embedding_game.data.formats.spaces import split_space
from napari_embedding_game.data.gene_names import find_names
from napari_embedding_game.data.palette import level_colors, to_hex_colors
from napari_embedding_game.session.quality import DOUBTFUL
from napari_embedding_game.session.web_page_genes import (
    N_VARIABLE,
    encode_first_genes,
    find_flagged,
    rank_genes_by_variation,
)

if TYPE_CHECKING:
    from anndata import AnnData

MISSING = 65_535
"""Code of a missing value."""
MAX_LEVELS = 200
"""Most levels of a column of groups: a column of more names the rows."""
N_COLUMNS, N_MARKERS = 5, 10
MAX_BYTES = 6_000_000
"""Size of a page up to which genes are added."""
MIN_GENE_BYTES = 1_500_000
"""Part of a page that is for genes, however large the rest is."""
MISPLACED = "Misplaced"
"""Title of the column of misplaced points."""
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
    data: Any = None,
) -> None:
    """Write a map as one .html file that needs no network.

    ``adata``: a map with its cells: ``obsm[basis]`` and ``obs``; categories have the
    colours of ``uns[column + "_colors"]``, as scanpy has them. ``basis``: key of
    ``obsm``; its first two axes are drawn. Rows that are NaN are left out.
    ``columns``: of ``obs``, to colour by. The first one with levels is that of the
    groups, which have markers and are counted in a selection. By default the clusters
    of the map and four others that are numbers or have at most 200 levels, columns of
    samples first.
    ``genes``: symbols or identifiers, to colour by; their expression is that of the
    window, of ``raw`` where there is one, and the page says what it is. By default
    the markers of the groups, then the genes of ``var["highly_variable"]`` and those
    that vary most, as many as fit into a page of 6 MB. Where fewer than 2,000 would
    fit, the genes have values of a random part of the rows. ``frames`` sequence of
    (n_obs, d) arrays: the run, to be played; of at most 20,000 of the points.
    ``gene_kind``: what the genes hold, "counts", "logarithms" or "values"; by default
    their numbers tell. ``data`` (n_obs, D): the rows that the map was made of, by which
    the page says how far to trust it; by default those that ``uns`` names in ``obsm``.

    Raises DataError: there is no such map, column or gene, or the file cannot be
    written.
    """
    positions = _read_positions(adata, basis)
    is_drawn = np.asarray(np.isfinite(positions).all(axis=1))
    if not is_drawn.any():
        raise DataError(f'The map "{basis}" has no row with a position.')
    rows = make_paint_order(len(positions))
    rows = rows[is_drawn[rows]]
    is_own_map = basis == f"X_{KEY}"
    data = _find_map_data(adata) if data is None and is_own_map else data
    chosen = [
        _encode_column(adata, name, rows) for name in _choose_columns(adata, columns)
    ]
    groups = next((one for one in chosen if "levels" in one), None)
    misplaced = _encode_misplaced(adata, rows) if is_own_map else None
    adata, positions = adata[rows], positions[rows]  # forgets levels without rows
    quality = _measure_quality(data, rows, positions, adata)
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
        "trust": _describe_trust(quality, misplaced),
        "is_doubtful": quality is not None and quality.trustworthiness < DOUBTFUL,
        "misplaced": MISPLACED if misplaced else "",
        "shades": to_hex_colors(colormaps["viridis"](range(256))),
        **encode_positions(positions),
        "limits": np.stack([low, high], axis=1).tolist(),
        "frame_step": step,
        "frames": [encode_positions(layout[::step]) for layout in moving],
        "columns": chosen if misplaced is None else [*chosen, misplaced],
    }
    budget = MAX_BYTES
    if genes is None:  # they have what the rest of the page leaves, as base64
        n_bytes = len(_fill_template(page).encode())
        budget = max(MAX_BYTES - n_bytes, MIN_GENE_BYTES) * 3 // 4
    page |= _encode_genes(adata, gene_kind, groups, genes, budget)
    for one in chosen:
        others = [other["name"] for other in page["columns"]]
        one["name"] = _make_unique_title(one["name"], others, page["genes"]["names"])
    page["groups"] = groups["name"] if groups else ""
    with atomic_write(target) as temporary:
        temporary.write_text(_fill_template(page), encoding="utf-8")


def _read_positions(adata: AnnData, basis: str) -> NDArray[np.float64]:
    """Return the first two axes of a map, (n_obs, 2).

    Raises DataError: there is no such map.
    """
    maps = [
        key for key, one in adata.obsm.items() if one.ndim == 2 and one.shape[1] > 1
    ]
    if basis not in maps:
        choices = list_text(maps) or "none"
        raise DataError(
            f'There is no map "{basis}" of two axes: choose one of {choices}.'
        )
    return np.asarray(adata.obsm[basis], dtype=float)[:, :2]


# --- How far to trust the map


def _find_map_data(adata: AnnData) -> Any:
    """Return the rows (n_obs, D) of ``obsm`` that a map was made of; None if unknown.

    ``uns`` names them, where this program has written the map.
    """
    record = adata.uns.get(KEY)
    if not isinstance(record, Mapping):
        return None
    space = split_space(str(record.get("input", {}).get("space", "")))
    key = record.get("components", space[1] if space and space[0] == "obsm" else "")
    return adata.obsm.get(str(key))


def _measure_quality(
    data: Any, rows: NDArray[np.intp], positions: NDArray[np.floating], adata: AnnData
) -> MapQuality | None:
    """Return the quality of the map of some rows; None without their data.

    ``data`` (n_obs, D), or None; ``rows`` (n,): of the data; ``positions`` (n, 2).  The
    distance is that of the map's record in ``uns`` of ``adata``, else Euclidean.
    """
    record = adata.uns.get(KEY, {})
    metric = record.get("parameters", {}).get("metric", "euclidean")
    if data is None or not data.shape[1] or metric == "precomputed":
        return None
    with suppress(InputError):  # a metric of another machine
        return measure_map_quality(data[rows], positions, metric=str(metric))
    return None


def _encode_misplaced(adata: AnnData, rows: NDArray[np.intp]) -> dict[str, Any] | None:
    """Return the column of points that are misplaced or not; None where unknown."""
    stretch = adata.obs.get(f"{KEY}_stretch")
    if stretch is None:
        return None
    values = stretch.to_numpy(dtype=float, na_value=np.nan)[rows]
    codes = np.where(np.isnan(values), MISSING, values <= MISPLACED_STRETCH)
    counts = [int((codes == level).sum()) for level in (0, 1)]
    return {
        "name": MISPLACED,
        "codes": codes.astype(np.uint16),
        "limits": (0.0, 0.0),
        "levels": ["misplaced", "not misplaced"],
        "colors": ["#d1242f", "#9a9aa2"],
        "counts": counts,
        "about": f"Misplaced: {MISPLACED_STRETCH:.0f} times as far from similar points "
        "as is usual on this map. Doubt their place.",
    }


def _describe_trust(
    quality: MapQuality | None, misplaced: Mapping[str, Any] | None
) -> list[str]:
    """Return the figures of the map in a line, and a sentence on what to believe."""
    figures, share = [], math.nan
    if quality is not None and not math.isnan(quality.trustworthiness):
        figures.append(f"Trustworthy {share_text(quality.trustworthiness)}")
    if misplaced is not None and sum(misplaced["counts"]):
        share = misplaced["counts"][0] / sum(misplaced["counts"])
        figures.append(f"{share_text(share)} misplaced")
    far = "Sizes of groups and distances between far groups mean little."
    if quality is None:
        near = "How alike neighbours on this map are in the data is not known."
    elif quality.trustworthiness < DOUBTFUL:
        near = "Doubt this map: many neighbours on it are not alike in the data."
    else:
        near = "Believe which points are in a group; doubt where misplaced points lie."
    return [" · ".join(figures), f"{near} {far}"]


# --- Columns and genes


def _encode_genes(
    adata: AnnData,
    gene_kind: GeneKind | None,
    groups: Mapping[str, Any] | None,
    genes: Sequence[str] | None,
    budget: int,
) -> dict[str, Any]:
    """Return the entries of a page on genes: their values, markers and unit.

    ``groups``: the column of groups, as encoded; ``genes``: names of genes, or None for
    those that fit; ``budget``: most bytes that the values may take.

    Raises DataError: a gene does not exist.
    """
    expression, names, ids = read_expression(adata, gene_kind)
    markers: dict[str, list[int]] = {}
    if groups is not None and names:
        markers = _find_markers_by_group(expression, groups)
    if genes is not None:
        order = [_find_gene(names, ids, name) for name in dict.fromkeys(genes)]
    else:
        ranked = itertools.zip_longest(*markers.values())
        leading = (gene for of_rank in ranked for gene in of_rank if gene is not None)
        flags = adata.var.get("highly_variable", pd.Series(False, adata.var_names))
        flagged = flags.index[flags.fillna(False).to_numpy(bool)].astype(str)
        is_flagged = find_flagged(names, ids, flagged)
        order = (
            rank_genes_by_variation(expression, [*leading], is_flagged) if names else []
        )
    stored = encode_first_genes(expression, order, budget, N_VARIABLE)
    all_names = np.array(names, dtype=object)
    return {
        "markers": {group: all_names[one].tolist() for group, one in markers.items()},
        "unit": expression.note if names else "",
        "genes": {
            "names": [names[i] for i in stored.indices],
            "lows": [_round_limit(low) for low, _ in stored.limits],
            "highs": [_round_limit(high) for _, high in stored.limits],
            "n_gaps": [len(gaps) for gaps, _ in stored.parts],
            "n_values": [len(steps) for _, steps in stored.parts],
            "n_steps": stored.n_steps,
            "n_rows": stored.n_rows,
            "n_all": len(names),
            "bytes": np.frombuffer(b"".join(itertools.chain(*stored.parts)), np.uint8),
        },
    }


def _round_limit(value: float) -> float:
    """Return a number with six significant digits."""
    return float(f"{value:.6g}")


def _find_gene(names: Sequence[str], ids: Sequence[str], name: str) -> int:
    """Return the column of a gene by its name or identifier.

    Raises DataError: there is no such gene.
    """
    indices = find_names([name], names, data_ids=ids).indices
    if not indices:
        raise DataError(f'There is no gene "{name}": choose one of var_names.')
    return int(indices[0])


def _choose_columns(adata: AnnData, names: Sequence[str] | None) -> list[str]:
    """Return the columns to colour by: the given names, or the clusters and others.

    By default the clusters of the map, if there are any, and four other columns that
    are numbers or have at most ``MAX_LEVELS`` levels: first those of samples, then in
    their order; columns of texts and of the map are left out.

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
        kept = sorted(columns, key=lambda x: not is_sample_name(x))[: N_COLUMNS - 1]
        kept.sort(key=columns.index)
        names = [clusters] * (clusters in usable) + kept
    missing = [name for name in names if name not in adata.obs]
    if missing:
        choices = list_text([str(name) for name in adata.obs]) or "none"
        raise DataError(f'There is no column "{missing[0]}": choose one of {choices}.')
    if not names:
        raise DataError("There is no column to colour the map by: choose one of obs.")
    return list(names)


def _make_unique_title(name: str, columns: Sequence[str], genes: Sequence[str]) -> str:
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
    column, about = adata.obs[name], f'Column "{name}" of the data.'
    if name.startswith(f"{KEY}_"):
        about = "Computed with this map."
    if column.dtype.kind in "iuf":
        return _encode_numbers(
            name, about, column.to_numpy(dtype=float, na_value=np.nan)[rows]
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
        "about": about,
        "is_samples": is_sample_name(name),
        "codes": np.where(codes < 0, MISSING, codes).astype(np.uint16),
        "limits": (0.0, 0.0),
        "levels": [levels[i] for i in used],
        "colors": [colors[i] for i in used],
        "counts": counts[used].tolist(),
    }


def _encode_numbers(
    name: str, about: str, values: NDArray[np.floating]
) -> dict[str, Any]:
    """Return a numeric column as the page stores it: codes between its limits.

    The limits are the lowest and highest finite value, or 0 without any; missing and
    infinite values have the code ``MISSING``.
    """
    values = replace_infinite_by_nan(values)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    return {
        "name": name,
        "about": about,
        "codes": _scale_to_codes(values, low, high),
        "limits": (float(low), float(high)),
    }


def _scale_to_codes(values: NDArray[np.floating], low: Any, high: Any) -> Codes:
    """Return values as integer codes, 0 at ``low`` and 65,534 at ``high``.

    Values that are NaN have the code ``MISSING``.
    """
    span = np.where(high > low, high - low, 1.0)
    codes = np.rint((values - low) / span * (MISSING - 1))
    return np.where(np.isfinite(codes), codes, MISSING).astype(np.uint16)


def _find_markers_by_group(
    expression: Expression, groups: Mapping[str, Any]
) -> dict[str, list[int]]:
    """Return columns of the leading markers of each group, best first, by its name.

    At most ``N_MARKERS`` of each. ``groups``: the column of groups, as encoded.
    """
    codes = groups["codes"].astype(np.intp)
    codes, is_log1p = np.where(codes == MISSING, -1, codes), expression.is_log1p
    n_groups = len(groups["levels"])
    leading = iter_leading_markers(expression.values, codes, n_groups, log1p=is_log1p)
    ranked = zip(groups["levels"], run_to_result(leading), strict=True)
    return {level: one[:N_MARKERS].tolist() for level, one in ranked}


# --- The file


def _pack_page(page: Mapping[str, Any]) -> bytes:
    """Return the content of a page, compressed.

    It is the length of a JSON, the JSON, and the arrays that it refers to, each at an
    even byte.
    """
    arrays: list[bytes] = []

    def store_array(array: NDArray[np.unsignedinteger]) -> dict[str, int]:
        """Keep an array, and return where it stands, in units of two bytes."""
        start = sum(map(len, arrays)) // 2
        kept = array.astype(array.dtype.newbyteorder("<")).tobytes()
        arrays.append(kept + bytes(len(kept) % 2))
        return {"start": start, "stop": start + len(arrays[-1]) // 2}

    text = json.dumps(page, default=store_array).encode()
    whole = b"".join([len(text).to_bytes(4, "little"), text, *arrays])
    return gzip.compress(whole, 9, mtime=0)


def _fill_template(page: Mapping[str, Any]) -> str:
    """Return the HTML of the page, with its content compressed and in base64."""
    payload = base64.b64encode(_pack_page(page)).decode()
    folder = Path(__file__).parent
    parts = {
        "%TITLE%": html.escape(page["title"]),
        "%LIBRARY%": (folder.parent / LIBRARY).read_text(encoding="utf-8"),
        "%SCRIPT%": (folder / "web_page.js").read_text(encoding="utf-8"),
        "%PAYLOAD%": payload,
    }
    text_of_page = (folder / "web_page.html").read_text(encoding="utf-8")
    return re.sub("|".join(parts), lambda match: parts[match.group()], text_of_page)
