"""A map as one web page, that opens from a mail or a USB stick without a network.

The page holds everything: the library that draws it, the map, the chosen columns and
genes, the markers of each group and the frames of a run.  Positions and numbers are
rounded to one 65,534th of their range, and compressed; every text of the data is set as
text, so that none can act in the page.
"""

from __future__ import annotations

import base64
import gzip
import html
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.group_sums import finished
from napari_embedding_game.core.inspect.markers import iter_leading
from napari_embedding_game.data.columns import KEY, listed
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.data.expression import Expression

if TYPE_CHECKING:
    from anndata import AnnData

MISSING = 65_535
"""Code of a value that is not there."""
MOST_LEVELS = 200
"""A column of texts with more is a name of rows, not a group."""
N_COLUMNS, N_MARKERS, N_GENES = 5, 10, 10
MOST_MOVING = 20_000
"""Points that the frames of the run show."""
VIRIDIS = "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725"
LIBRARY = Path("resources", "regl-scatterplot.js")
"""Draws the points; the file says where it is from."""

Codes = NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class _Column:
    """One way of colouring: codes of levels, or numbers between limits."""

    name: str
    codes: Codes
    levels: Sequence[str] | None = None
    colors: Sequence[str] = ()
    limits: tuple[float, float] = (0.0, 0.0)
    is_gene: bool = False


class _Payload:
    """Whole numbers in one row; an array is found again by its start and stop."""

    def __init__(self) -> None:
        self._arrays: list[Codes] = []
        self._n = 0

    def add(self, codes: Codes) -> dict[str, int]:
        self._arrays.append(codes.astype("<u2"))
        self._n += len(codes)
        return {"start": self._n - len(codes), "stop": self._n}

    def packed(self, page: Mapping[str, Any]) -> str:
        """Return page and arrays, compressed, as letters."""
        text = json.dumps(page).encode()
        numbers = (array.tobytes() for array in self._arrays)
        whole = b"".join([len(text).to_bytes(4, "little"), text, *numbers])
        return base64.b64encode(gzip.compress(whole, 9, mtime=0)).decode()


def write_web_page(
    adata: AnnData,
    target: Path,
    *,
    basis: str = f"X_{KEY}",
    columns: Sequence[str] | None = None,
    genes: Sequence[str] | None = None,
    frames: Sequence[NDArray[np.floating]] = (),
    title: str = "",
) -> None:
    """Write a map as one .html file that needs no network.

    Parameters
    ----------
    adata : AnnData
        A map with its cells: ``obsm[basis]`` and ``obs``; categories have the
        colours of ``uns[column + "_colors"]``, as scanpy has them.
    target : Path
    basis : str, default "X_embedding_game"
        Key of ``obsm``; its first two axes are drawn.  Rows that are NaN are left out.
    columns : sequence of str, optional
        Of ``obs``, to colour by.  The first one with levels is that of the groups,
        which have markers and are counted in a selection.  By default the clusters of
        the map and the first four others that are numbers or have at most 200 levels.
    genes : sequence of str, optional
        Of ``var_names``, to colour by.  By default the first markers of the groups, at
        most 10.
    frames : sequence of (n_obs, d) arrays, optional
        The run, to be played; of at most 20,000 of the points.
    title : str, optional

    Raises
    ------
    DataError
        There is no such map, column or gene, or the file cannot be written.
    """
    if basis not in adata.obsm:
        known = listed([key for key in adata.obsm if np.ndim(adata.obsm[key]) == 2])
        raise DataError(f'There is no map "{basis}": choose one of {known or "none"}.')
    positions = np.asarray(adata.obsm[basis], dtype=float)[:, :2]
    is_drawn = np.isfinite(positions).all(axis=1)
    if not is_drawn.any():
        raise DataError(f'The map "{basis}" has no row with a position.')
    adata, positions = adata[is_drawn], positions[is_drawn]
    chosen = [_column(adata, name) for name in _columns(adata, columns)]
    groups = next((column for column in chosen if column.levels), None)
    expression = Expression(adata.X, is_expression=True)
    found = _markers(expression, groups) if adata.n_vars else {}
    markers = {
        level: adata.var_names[places].tolist() for level, places in found.items()
    }
    if genes is None:
        ranked = itertools.zip_longest(*markers.values())
        first = (gene for of_rank in ranked for gene in of_rank if gene is not None)
        genes = list(itertools.islice(dict.fromkeys(first), N_GENES))
    chosen += [_gene(adata, expression, name) for name in genes]

    payload = _Payload()
    moving = [np.asarray(frame, dtype=float)[is_drawn, :2] for frame in frames]
    ends = np.concatenate(
        [[m.min(axis=0), m.max(axis=0)] for m in [positions, *moving]]
    )
    low, high = ends.min(axis=0), ends.max(axis=0)

    def placed(layout: NDArray[np.floating]) -> dict[str, Any]:
        return {
            axis: payload.add(_scaled(layout[:, i], low[i], high[i]))
            for i, axis in enumerate("xy")
        }

    step = -(-len(positions) // MOST_MOVING)
    page = {
        "title": title or "Map",
        "n": len(positions),
        "names": adata.obs_names.astype(str).tolist(),
        "groups": groups.name.removeprefix(f"{KEY}_") if groups else "",
        "markers": markers,
        "shades": _shades(),
        **placed(positions),
        "limits": np.stack([low, high], axis=1).tolist(),
        "frame_step": step,
        "frames": [placed(layout[::step]) for layout in moving],
        "columns": [_described(column, payload) for column in chosen],
    }
    with whole_or_nothing(target) as temporary:
        temporary.write_text(
            _filled(page["title"], payload.packed(page)), encoding="utf-8"
        )


def _columns(adata: AnnData, names: Sequence[str] | None) -> list[str]:
    """Return the columns to colour by, one of groups first where there is one."""
    if names is None:
        clusters = f"{KEY}_cluster"
        usable = [str(name) for name in adata.obs if _is_usable(adata.obs[name])]
        others = [name for name in usable if not name.startswith(KEY)]
        names = [clusters] * (clusters in usable) + others[: N_COLUMNS - 1]
    missing = [name for name in names if name not in adata.obs]
    if missing:
        known = listed([str(name) for name in adata.obs]) or "none"
        raise DataError(f'There is no column "{missing[0]}": choose one of {known}.')
    if not names:
        raise DataError("There is no column to colour the map by: choose one of obs.")
    return list(names)


def _is_usable(column: pd.Series) -> bool:
    return _is_number(column) or column.nunique() <= MOST_LEVELS


def _is_number(column: pd.Series) -> bool:
    return column.dtype.kind in "iuf"


def _column(adata: AnnData, name: str) -> _Column:
    column = adata.obs[name]
    if _is_number(column):
        return _numbers(name, column.to_numpy(dtype=float, na_value=np.nan))
    if column.nunique() > MOST_LEVELS:
        raise DataError(
            f'Column "{name}" has {column.nunique()} levels: choose one that has at '
            f"most {MOST_LEVELS}."
        )
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(str).where(column.notna()).astype("category")
    levels = [str(level) for level in column.cat.categories]
    colors = [str(color) for color in adata.uns.get(f"{name}_colors", ())]
    if len(colors) != len(levels):
        colors = _palette(len(levels))
    codes = column.cat.codes.to_numpy(np.int64)
    codes = np.where(codes < 0, MISSING, codes)
    return _Column(name, codes.astype(np.uint16), levels, colors)


def _palette(n: int) -> list[str]:
    """Return hues as far apart as a golden angle leaves them, of two lightnesses."""
    hues = np.arange(n) * 137.508 % 360
    return [f"hsl({hue:.0f} 65% {62 if i % 2 else 45}%)" for i, hue in enumerate(hues)]


def _shades(n: int = 256) -> list[str]:
    """Return the colours of numbers, from low to high."""
    stops = [
        [int(color[i : i + 2], 16) for i in (0, 2, 4)] for color in VIRIDIS.split()
    ]
    at = np.linspace(0, len(stops) - 1, n)
    channels = [
        np.interp(at, range(len(stops)), channel)
        for channel in zip(*stops, strict=True)
    ]
    return ["#" + bytes(rgb).hex() for rgb in np.rint(channels).astype(int).T.tolist()]


def _gene(adata: AnnData, expression: Expression, name: str) -> _Column:
    if name not in adata.var_names:
        raise DataError(f'There is no gene "{name}": choose one of var_names.')
    values = expression.column(int(adata.var_names.get_indexer([name])[0]))
    return replace(_numbers(name, values.astype(float)), is_gene=True)


def _numbers(name: str, values: NDArray[np.float64]) -> _Column:
    finite = values[np.isfinite(values)]
    limits = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    low, high = float(limits[0]), float(limits[1])
    return _Column(name, _scaled(values, low, high), limits=(low, high))


def _scaled(values: NDArray[np.floating], low: float, high: float) -> Codes:
    """Return values as whole numbers, 0 at `low` and 65,534 at `high`."""
    span = high - low if high > low else 1.0
    codes = np.rint((np.asarray(values, dtype=float) - low) / span * (MISSING - 1))
    return np.where(np.isfinite(codes), codes, MISSING).astype(np.uint16)


def _markers(expression: Expression, groups: _Column | None) -> dict[str, list[int]]:
    """Return the columns that are highest in each group, by its name."""
    if groups is None or groups.levels is None:
        return {}
    codes = np.where(groups.codes == MISSING, -1, groups.codes.astype(np.intp))
    leading = iter_leading(
        expression.values, codes, len(groups.levels), log1p=expression.is_log1p
    )
    found = zip(groups.levels, finished(leading), strict=True)
    return {level: columns[:N_MARKERS].tolist() for level, columns in found}


def _described(column: _Column, payload: _Payload) -> dict[str, Any]:
    described = {
        "name": column.name.removeprefix(f"{KEY}_"),
        "codes": payload.add(column.codes),
        "limits": column.limits,
        "is_gene": column.is_gene,
    }
    if column.levels is None:
        return described
    known = column.codes[column.codes != MISSING]
    counts = np.bincount(known, minlength=len(column.levels)).tolist()
    levels = {"levels": column.levels, "colors": column.colors, "counts": counts}
    return described | levels


def _filled(title: str, payload: str) -> str:
    """Return the text of the page around what :meth:`_Payload.packed` returns."""
    folder = Path(__file__).parent
    parts = {
        "%TITLE%": html.escape(title),
        "%LIBRARY%": (folder.parent / LIBRARY).read_text(encoding="utf-8"),
        "%SCRIPT%": (folder / "web_page.js").read_text(encoding="utf-8"),
        "%PAYLOAD%": payload,
    }
    page = (folder / "web_page.html").read_text(encoding="utf-8")
    return re.sub("|".join(parts), lambda found: parts[found.group()], page)
