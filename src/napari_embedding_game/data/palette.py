"""Colours of groups: from the file, else of a palette in which any two differ.

A palette begins with chosen colours (for colour-blind eyes those of Okabe and Ito).
Each further colour was computed: the one of the screen that is farthest from all
colours before it, in OKLab (Ottosson, 2020), as all such eyes see it (Machado and
others, 2009).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.clustering import (
    Cluster,
    Clustering,
    find_label_indices,
)

Colors = NDArray[np.float32]

USUAL, COLOR_BLIND = "Usual", "For colour-blind eyes"
_HEXES = {
    USUAL: """
    4c8dd6 f28e2b 3fae6a d6504f 9a7bc8 b5836a e377c2 8c9aa6 bcb22d 29b5c2 286b5e
    942894 bcc9f2 3651c9 6be4ae 944300 008600 865e79 ffaeae 867900 ffa1ff ae1b51
    79aeff c94394 28d7ff aebca1 ffbc43 009494 8651c9 ff6b79 bc94ff 436ba1 c9d700
    6bc951 c9a1bc 6b5e1b 6b796b d76b00 94a16b 5e6be4 00c9a1 ae5e28 86a100 bc280d
    8686ff bc6b86 bcd786 bc5ec9 6b5194 438651 7979a1 c9a16b ae861b 86bcd7 a151a1
    86e46b ae515e 94d7d7 f29486 ff86ae 436b00 28a128 00a1ff d7aef2 e45e94 bc86ae
    6b9479 5e5e6b 86bc79 0079d7 7936ae d7bc79 865e43 e486f2 a1a1d7 28bcf2 944379
    947951 ffae79 367986 d77979 5e5ebc ae79f2 5eae94 f25e43 6ba1d7 43d7c9 6b9443
    3686ae d7bcbc 00a1c9 944351 a16b6b 5186ff c9365e a16ba1 f2a1c9 005eae aea194
    """,
    COLOR_BLIND: """
    e69f00 56b4e9 009e73 f0e442 0072b2 d55e00 cc79a7 79f2e4 5e86ff 1bd794 7900ff
    bc2828 28796b 5ed7ff 6bffa1 d700bc 43c9c9 d7c951 28bc79 e436e4 d78636 c93694
    ae1b94 c91b5e 51e4bc 5e79d7 d73643 43a1bc 79e486 bc795e 6bbca1 bcbc5e 940dd7
    79a1ff 0079ff d779c9 1be4e4 5ef2ae f24386 bcf279 00c9ff 00a194 d7d700 e4a1bc
    c9a15e 5e79a1 c9360d 0d94e4 a151bc c90d79 51ffc9 f2ae00 367951 6ba1d7 a136e4
    00f2ff 79c9e4 6b94ff c97943 5ebcd7 c9bc86 6bae94 5e6bc9 f2c979 bc945e 5ee4a1
    c92843 a179c9 51f2c9 d7285e d79400 0d9479 f29479 51ff43 865e86 868600 c9c9d7
    28bcff ffa151 ff3628 a1a1ae 79f294 e400ae 435eff 36e46b ae28ae 5ec9a1 ff94d7
    e44343 d79486 43e4ff bc7994 6bd7ae c96bae 436ba1 6b945e 6bc943 f279bc 7986d7
    """,
}
_LIGHTNESS_RANGE = 0.4, 0.88
"""Lowest and highest lightness that is visible on black and on white."""
_LIGHT_WEIGHTS = np.array([0.21, 0.72, 0.07], np.float32)
"""Weights of red, green and blue in the lightness: yellow is as bright as white."""
_chosen = {"palette": USUAL}


def choose_palette(palette: str) -> None:
    """Use a palette from now on in the whole program.

    An unknown name selects the usual palette.
    """
    _chosen["palette"] = palette if palette in _HEXES else USUAL


def make_palette_colors(n_levels: int) -> Colors:
    """Return the first colours of the chosen palette, (n_levels, 4).

    After 99 colours they repeat.
    """
    content = bytes.fromhex(_HEXES[_chosen["palette"]])
    rgb = np.frombuffer(content, np.uint8).reshape(-1, 3) / 255
    colors: Colors = np.ones((n_levels, 4), np.float32)
    colors[:, :3] = rgb[np.arange(n_levels) % len(rgb)]
    return colors


def level_colors(
    levels: Sequence[object],
    stored_colors: Mapping[str, str],
    *,
    adjusts_lightness: bool = True,
) -> Colors:
    """Return a colour for each level, (L, 4): the stored one, else the palette's.

    ``stored_colors``: colours keyed by the level's text; texts that are no colour are
    ignored. ``adjusts_lightness``: whether a stored white becomes a pale grey and black
    a dark grey, to be visible in a white or black window.

    A child map has all levels of its parent, so that levels keep their colours.
    """
    colors = make_palette_colors(len(levels))
    if not stored_colors:
        return colors
    from matplotlib import colors as named

    for i, level in enumerate(levels):
        if named.is_color_like(text := stored_colors.get(str(level), "")):
            colors[i] = named.to_rgba(text)
            if adjusts_lightness:
                rgb = colors[i, :3]
                lightness = np.sqrt(rgb**2 @ _LIGHT_WEIGHTS)
                rgb += np.clip(lightness, *_LIGHTNESS_RANGE) - lightness
                rgb.clip(0, 1, out=rgb)
    return colors


def cluster_colors(clusters: Sequence[Cluster]) -> Colors:
    """Return the colour of each cluster, (C, 4): the chosen one, else by its id.

    Cluster 1 has the first colour of the palette.
    """
    ids = np.array([cluster.id for cluster in clusters], int)
    # Ids count from 1; the cluster of landmark 0 has the last colour.
    colors: Colors = make_palette_colors(int(ids.max(initial=0)) + 1)[ids - 1]
    for i, cluster in enumerate(clusters):
        if cluster.color:
            rgb = np.frombuffer(bytes.fromhex(cluster.color[1:]), np.uint8)
            colors[i, :3] = rgb / 255
    return colors


def make_point_colors(clustering: Clustering) -> Colors:
    """Return the colour of each point's cluster, (N, 4)."""
    codes = find_label_indices([*clustering.by_id], clustering.labels)
    # ``take`` is many times faster than an index here.
    colors: Colors = cluster_colors(clustering.clusters).take(codes, axis=0)
    return colors


def to_hex_colors(colors: NDArray[np.floating]) -> list[str]:
    """Convert colours (L, 4) to texts such as "#4c8dd6"."""
    levels = np.rint(255 * colors[:, :3]).astype(np.uint8)
    return [f"#{level.tobytes().hex()}" for level in levels]


def make_scanpy_color_arrays(
    obs: pd.DataFrame, colors_by_column: Mapping[str, Mapping[str, str]]
) -> dict[str, NDArray[Any]]:
    """Return the colours of levels as scanpy has them in ``uns``.

    Each array has a colour such as "#4c8dd6" for each level of a column, under the key
    "<column>_colors". ``colors_by_column``: colours by column and level, "" or absent
    for the palette's. Only its categorical columns are returned.
    """
    categorical, arrays = obs.select_dtypes("category"), dict[str, NDArray[Any]]()
    for name in categorical.columns.intersection(list(colors_by_column)):
        levels = categorical[name].cat.categories
        colors = level_colors(levels, colors_by_column[name], adjusts_lightness=False)
        arrays[f"{name}_colors"] = np.array(to_hex_colors(colors), dtype=object)
    return arrays
