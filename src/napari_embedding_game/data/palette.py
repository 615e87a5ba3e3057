"""Colours of groups: those that a file has, else of a palette in which any two differ.

A palette begins with colours of a person's choice; each further one is the colour of
the screen that is farthest from all before it, in OKLab, where distances are those that
an eye sees (Ottosson, 2020).  So thirty groups differ in lightness, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.clustering import Cluster, Clustering, label_indices

Colors = NDArray[np.float32]

USUAL, COLOR_BLIND = "Usual", "For colour-blind eyes"
_FIRST = {
    USUAL: "4c8dd6 f28e2b 3fae6a d6504f 9a7bc8 b5836a e377c2 8c9aa6 bcb22d 29b5c2",
    COLOR_BLIND: "e69f00 56b4e9 009e73 f0e442 0072b2 d55e00 cc79a7",  # Okabe and Ito
}
# fmt: off
_NORMAL = np.eye(3)
# Of linear RGB, as eyes without one kind of cones see it (Machado and others, 2009).
_NO_RED = np.reshape([0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216,
                      -0.003882, -0.048116, 1.051998], (3, 3))
_NO_GREEN = np.reshape([0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413,
                        -0.011820, 0.042940, 0.968881], (3, 3))
_TO_LMS = np.reshape([0.4122214708, 0.5363325363, 0.0514459929,
                      0.2119034982, 0.6806995451, 0.1073969566,
                      0.0883024619, 0.2817188376, 0.6299787005], (3, 3))
_TO_LAB = np.reshape([0.2104542553, 0.7936177850, -0.0040720468,
                      1.9779984951, -2.4285922050, 0.4505937099,
                      0.0259040371, 0.7827717662, -0.8086757660], (3, 3))
# fmt: on
EYES = {USUAL: (_NORMAL,), COLOR_BLIND: (_NORMAL, _NO_RED, _NO_GREEN)}
"""The eyes that are to distinguish the colours of a palette."""
_WITHIN = {USUAL: (0.48, 0.84, 0.19), COLOR_BLIND: (0.52, 0.9, 0.4)}
"""Least and most lightness, and most chroma, of what is seen on black and on white and
does not glare; eyes without one kind of cones need all chroma there is."""
_STEPS = 20
"""Shades of red, green and blue of the screen that are chosen from."""
_SEEN = 0.4, 0.88
"""Least and most lightness of what can be seen on black and on white."""
N_COLORS = 256
"""More groups than these have the same colours again."""
_chosen = {"palette": USUAL}


def choose(palette: str) -> None:
    """Use a palette of :data:`EYES` from now on; an unknown one is the usual one."""
    _chosen["palette"] = palette if palette in EYES else USUAL


def category_colors(n_levels: int) -> Colors:
    """Return colours of the chosen palette for so many groups: (n_levels, 4)."""
    return _spread(_chosen["palette"])[np.arange(n_levels) % N_COLORS]


def level_colors(
    levels: Sequence[object], known: Mapping[str, str], *, is_visible: bool = True
) -> Colors:
    """Return a colour for each level (L, 4): the one known of it, else the palette's.

    A part of a map has all levels of the whole, so that they keep their colours.
    ``is_visible``: white is a pale grey, and black a dark one, as a window is black or
    white.
    """
    colors = category_colors(len(levels))
    if not known:
        return colors
    from matplotlib import colors as named

    for place, level in enumerate(levels):
        if named.is_color_like(text := known.get(str(level), "")):
            colors[place] = named.to_rgba(text)
            if is_visible:
                rgb = colors[place, :3]
                lightness = as_seen_by(rgb, _NORMAL)[0]
                rgb += np.clip(lightness, *_SEEN) - lightness
                rgb.clip(0, 1, out=rgb)
    return colors


def cluster_colors(clusters: Sequence[Cluster]) -> Colors:
    """Return the colour of each cluster (C, 4): the given one, else that of its id."""
    ids = np.array([cluster.id for cluster in clusters], int)
    # Ids count from 1; a landmark 0 that is a cluster has the last colour.
    colors: Colors = category_colors(int(ids.max(initial=0)) + 1)[ids - 1]
    for place, cluster in enumerate(clusters):
        if cluster.color:
            given = np.frombuffer(bytes.fromhex(cluster.color[1:]), np.uint8)
            colors[place, :3] = given / 255
    return colors


def point_colors(clustering: Clustering) -> Colors:
    """Return the colour of each point by its cluster: (N, 4)."""
    codes = label_indices([*clustering.by_id], clustering.labels)
    # ``take`` is many times quicker than an index here.
    colors: Colors = cluster_colors(clustering.clusters).take(codes, axis=0)
    return colors


def hexes(colors: NDArray[np.floating]) -> list[str]:
    """Return colours (L, 4) as texts such as "#4c8dd6"."""
    levels = np.rint(255 * colors[:, :3]).astype(np.uint8)
    return [f"#{level.tobytes().hex()}" for level in levels]


def scanpy_colors(
    obs: pd.DataFrame, known: Mapping[str, Mapping[str, str]]
) -> dict[str, NDArray[Any]]:
    """Return what scanpy keeps in ``uns``: colours of the levels of columns.

    `known` are colours by column and level.
    """
    found, made = obs.select_dtypes("category"), dict[str, NDArray[Any]]()
    for name in found.columns.intersection(list(known)):
        levels = found[name].cat.categories
        colors = level_colors(levels, known[name], is_visible=False)
        made[f"{name}_colors"] = np.array(hexes(colors), dtype=object)
    return made


def as_seen_by(rgb: NDArray[np.floating], eyes: NDArray[np.floating]) -> NDArray[Any]:
    """Return colours (..., 3) of the screen as such eyes see them, in OKLab."""
    bright = ((rgb + 0.055) / 1.055) ** 2.4
    linear = np.where(rgb <= 0.04045, rgb / 12.92, bright) @ eyes.T
    lab: NDArray[Any] = np.cbrt(np.clip(linear, 0, 1) @ _TO_LMS.T) @ _TO_LAB.T
    return lab


@lru_cache(maxsize=2)
def _spread(palette: str) -> Colors:
    """Return the colours of a palette, each as far from those before it as can be."""
    first = np.frombuffer(bytes.fromhex(_FIRST[palette]), np.uint8).reshape(-1, 3) / 255
    screen = np.stack(np.meshgrid(*[np.linspace(0, 1, _STEPS)] * 3), -1).reshape(-1, 3)
    lightness, *chroma = as_seen_by(screen, _NORMAL).T
    darkest, lightest, most = _WITHIN[palette]
    is_seen = (darkest <= lightness) & (lightness <= lightest)
    screen = screen[is_seen & (np.hypot(*chroma) <= most)]
    every = np.concatenate([first, screen])
    seen = [as_seen_by(every, eyes) for eyes in EYES[palette]]
    rows, nearest = np.arange(N_COLORS), np.full(len(every), np.inf)
    for place in range(N_COLORS):
        if place >= len(first):
            rows[place] = np.argmax(nearest.round(6))
        for lab in seen:
            away = np.linalg.norm(lab - lab[rows[place]], axis=1)
            nearest = np.minimum(nearest, away)
    rgba: Colors = np.ones((N_COLORS, 4), np.float32)
    rgba[:, :3] = every[rows]
    return rgba
