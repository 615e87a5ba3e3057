"""Which learning rates a game bears: a collapse, or how near the best energy it comes.

Every pair of eta_y (points) and eta_z (landmarks) plays the default game from the same
start with the same seeds.  Said to be wrong is a map of which the program says so
(``alarms.alarm``: collapsed, in one heap, too slow), or whose points run away.  The
others are told by their true energy (Eq. 1) to that of the best pair of fixed rates on
the data set, the mean over the seeds.  The default are the rates of the fast schedule.

With ``--adaptive`` the rates find themselves (``adaptive_rates``), beginning from each
pair of five rates from 0.0001 to 30, or with ``--every`` of all eleven; rates above 1
begin at 1.  They are told beside the best of 25 pairs of fixed rates: the others are
wrong, or none is the best.  Also told is what adaptive rates do where nothing is set:
neighbours of the data kept on the map (recall), and how many neighbours on the map a
game from another seed keeps (as ``tl.stability`` counts them), for both.

With ``--reach`` the kernel is 1 / (1 + (u / s)^2) with s = 0.5, 1 and 2 instead, and
eta_y the default: told is the largest eta_z at which the map is half as wide as usual,
or more.  If the reach of the kernel is what limits the landmarks' step, that rate goes
with s.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.core.dynamics.alarms import alarm
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.pair_functions import KERNELS, PairFunction
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.affinities import Edges, edges
from napari_embedding_game.core.graph.initialization import start_layout
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import neighbor_recall, true_energy
from napari_embedding_game.core.inspect.stability import neighbors_kept
from napari_embedding_game.core.names import DEFAULT_AFFINITY
from napari_embedding_game.core.types import GameSettings
from shared import Input, arguments, finish, load_all, report

INPUTS = ("digits", "pbmc", "covid", "mnist 2000", "newsgroups")
MOST_ROWS = 2_000
RATES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 0.5, 1.0, 3.0, 10.0, 30.0)
GOOD_RATES = (0.1, 0.3, 0.5, 1.0, 3.0)
"""Those among them of which each data set has its best."""
FIRST_RATES = (1e-4, 1e-3, 1e-2, 0.1, 30.0)
"""What adaptive rates begin from."""
NEAR = 0.01
"""Of the best energy: as good."""
REACHES = (0.5, 1.0, 2.0)
FINE_RATES = tuple(np.round(np.geomspace(0.25, 32, 15), 3).tolist())
NARROW = 0.5
"""Share of the usual width below which a map has begun to collapse."""
OPTIONS: dict[str, dict[str, Any]] = {
    "seeds": {"type": int, "default": 3},
    "adaptive": {"action": "store_true", "help": "rates that find themselves"},
    "every": {"action": "store_true", "help": "adaptive rates begin from all pairs"},
    "reach": {"action": "store_true", "help": "the kernel's reach instead"},
    "inputs": {"nargs": "+", "default": list(INPUTS)},
    "figure": {"type": Path, "help": "also draw the energies of the pairs here"},
}


@dataclass(frozen=True)
class WideCauchy(PairFunction):
    """1 / (1 + s / reach^2)."""

    reach: float = 1.0

    def value(self, s: Any) -> Any:
        """Return the kernel."""
        return 1 / (1 + s / self.reach**2)

    def slope(self, s: Any) -> Any:
        """Return its derivative."""
        return -1 / self.reach**2 / (1 + s / self.reach**2) ** 2


@dataclass(frozen=True)
class Start:
    """What all games of one input and seed have in common."""

    weighted: Edges
    layout: np.ndarray
    seed: int


def starts_of(data: Input, n_seeds: int) -> list[Start]:
    """Return the start of every seed."""
    weighted = edges(knn_graph(data.X, search="exact"), DEFAULT_AFFINITY)
    return [
        Start(weighted, start_layout(weighted, data.X, random_state=seed), seed)
        for seed in range(n_seeds)
    ]


def energy_of(start: Start, settings: GameSettings) -> tuple[float, float]:
    """Return the true energy, infinite for a collapse, and the seconds of a game.

    They are those of one processor: others may use the machine too.
    """
    begin = time.process_time()
    try:
        last = finish(start.weighted, start.layout, settings, start.seed, n_jobs=1)
    except InputError:  # they have run off the map
        return np.inf, np.nan
    seconds = time.process_time() - begin
    if alarm(last.embedding, settings, last.labels, len(last.landmarks)):
        return np.inf, seconds
    strength = METHODS["game"].strength / len(start.layout)
    return true_energy(start.weighted, last.embedding, strength), seconds


def sweep(
    starts: list[Start], rates: tuple[float, ...] = RATES, *, adaptive: bool = False
) -> dict[tuple[Any, Any], np.ndarray]:
    """Return energy and seconds (seeds, 2) of each pair; of None it is the default."""
    pairs: list[tuple[Any, Any]] = [(None, None)]
    pairs += [(y, z) for y in rates for z in rates]
    found = {}
    for y, z in pairs:
        settings = GameSettings(
            learning_rate=y, landmark_learning_rate=z, adaptive_rates=adaptive
        )
        found[y, z] = np.array([energy_of(start, settings) for start in starts])
    return found


def kept(data: Input, starts: list[Start], *, adaptive: bool) -> tuple[float, float]:
    """Return recall, and the neighbours that maps of two seeds share, means."""
    settings = GameSettings(adaptive_rates=adaptive)
    maps = [
        finish(one.weighted, one.layout, settings, one.seed, n_jobs=1).embedding
        for one in starts
    ]
    nearest = knn_graph(data.X, search="exact").indices
    recall = np.mean([neighbor_recall(nearest, one) for one in maps])
    shared = [neighbors_kept(one, two).mean() for one, two in combinations(maps, 2)]
    return float(recall), float(np.mean(shared)) if shared else np.nan


def compared(
    data: Input, n_seeds: int, first: tuple[float, ...] = FIRST_RATES
) -> dict[str, Any]:
    """Return a line on adaptive rates beside fixed ones."""
    starts = starts_of(data, n_seeds)
    fixed = sweep(starts, GOOD_RATES)
    adaptive = sweep(starts, first, adaptive=True)
    default = fixed.pop((None, None))
    best = min(fixed, key=lambda pair: fixed[pair][:, 0].mean())
    least = fixed[best][:, 0].mean()
    energies = np.array([both[:, 0] for both in adaptive.values()])
    above = energies / least - 1
    seconds = [both[:, 1] for both in adaptive.values()]
    recalls, seeds = zip(
        *(kept(data, starts, adaptive=one) for one in (False, True)), strict=True
    )
    return {
        "input": f"{data.name}, {len(data.X):,}",
        "best pair": f"{best[0]:g}, {best[1]:g}",
        "default, to it": f"{default[:, 0].mean() / least - 1:+.2%}",
        "games": energies.size,
        "said to be wrong": int(np.isinf(energies).sum()),
        "adaptive, to it": f"{above.mean():+.2%}",
        "worst pair": f"{above.mean(axis=1).max():+.2%}",
        "worst game": f"{above.max():+.2%}",
        "s": round(float(np.median(seconds)), 3),
        "s, best pair": round(float(np.median(fixed[best][:, 1])), 3),
        "recall, default": round(recalls[0], 4),
        "adaptive": round(recalls[1], 4),
        "kept by other seeds, default": round(seeds[0], 3),
        "kept, adaptive": round(seeds[1], 3),
    }


def told(data: Input, found: dict[tuple[Any, Any], np.ndarray]) -> dict[str, Any]:
    """Return a line of the table."""
    energies = {pair: both[:, 0].mean() for pair, both in found.items()}
    default = energies.pop((None, None))
    best = min(energies, key=lambda pair: energies[pair])
    least = energies[best]
    all_runs = [both[:, 0] for pair, both in found.items() if pair != (None, None)]
    collapsed = np.isinf(np.concatenate(all_runs)).mean()
    near = [pair for pair, energy in energies.items() if energy <= (1 + NEAR) * least]
    return {
        "input": f"{data.name}, {len(data.X):,}",
        "said to be wrong": f"{collapsed:.0%}",
        "best pair": f"{best[0]:g}, {best[1]:g}",
        "pairs within 1 %": len(near),
        "default, to the best": f"{default / least - 1:+.2%}",
        "s": round(float(np.nanmedian(found[None, None][:, 1])), 2),
        "s, best pair": round(float(np.nanmedian(found[best][:, 1])), 2),
    }


def draw(path: Path, all_found: dict[str, dict[tuple[Any, Any], np.ndarray]]) -> None:
    """Draw for each input how far above the best energy each pair ends."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(all_found), figsize=(2.1 * len(all_found) + 0.8, 2.6), sharey=True
    )
    names = [f"{rate:g}" for rate in RATES]
    for axis, (name, found) in zip(np.atleast_1d(axes), all_found.items(), strict=True):
        energies = np.array([[found[y, z][:, 0].mean() for z in RATES] for y in RATES])
        above = 100 * (energies / np.nanmin(energies) - 1)
        above[np.isinf(above)] = np.nan
        image = axis.imshow(above, origin="lower", cmap="viridis_r", vmin=0, vmax=20)
        axis.set_title(name, fontsize=9)
        axis.set_xticks(range(len(RATES)), names, rotation=90, fontsize=6)
        axis.set_yticks(range(len(RATES)), names, fontsize=6)
        axis.set_xlabel("eta_z", fontsize=8)
        axis.set_facecolor("#d0d0d0")
        axis.plot(6, 5, "o", mfc="none", mec="#d03010", ms=8)
    np.atleast_1d(axes)[0].set_ylabel("eta_y", fontsize=8)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01)
    bar.set_label("% above the best", fontsize=7)
    bar.ax.tick_params(labelsize=6)
    figure.savefig(path, bbox_inches="tight", dpi=110)


# --- The kernel's reach


def width(embedding: np.ndarray) -> float:
    """Return the root mean square distance from the middle."""
    return float(
        np.sqrt(((embedding - embedding.mean(axis=0)) ** 2).sum(axis=1).mean())
    )


def largest_rate(starts: list[Start], reach: float) -> tuple[float, list[float]]:
    """Return the largest eta_z before the map gets narrow, and all its widths."""
    KERNELS["wide_cauchy"] = WideCauchy(reach)
    METHODS["wide_game"] = replace(METHODS["game"], kernel="wide_cauchy")
    widths = []
    for rate in FINE_RATES:
        settings = GameSettings(method="wide_game", landmark_learning_rate=rate)
        maps = [
            finish(one.weighted, one.layout, settings, one.seed, n_jobs=1).embedding
            for one in starts
        ]
        widths.append(float(np.mean([width(one) for one in maps])))
    usual = max(widths[:4])
    wide = [r for r, w in zip(FINE_RATES, widths, strict=True) if w > NARROW * usual]
    return max(wide, default=np.nan), [round(one / usual, 2) for one in widths]


def reach_rows(data: Input, n_seeds: int) -> list[dict[str, Any]]:
    """Return a line for each reach."""
    starts, rows = starts_of(data, n_seeds), []
    for reach in REACHES:
        largest, widths = largest_rate(starts, reach)
        rows.append(
            {
                "input": f"{data.name}, {len(data.X):,}",
                "reach": reach,
                "largest eta_z": largest,
                "to the reach": largest / reach,
                **{f"{r:g}": w for r, w in zip(FINE_RATES, widths, strict=True)},
            }
        )
    return rows


def draw_reach(path: Path, rows: list[dict[str, Any]]) -> None:
    """Draw how wide the maps are by the landmarks' rate, and by it to the reach."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7, 2.8), sharey=True)
    for row, color in zip(rows, ("#2b6cb0", "#2f855a", "#c05621"), strict=False):
        widths = [row[f"{rate:g}"] for rate in FINE_RATES]
        for axis, unit in zip(axes, (1.0, row["reach"]), strict=True):
            rates = np.array(FINE_RATES) / unit
            axis.plot(rates, widths, "o-", color=color, ms=3, lw=1.2)
            axis.axvline(row["largest eta_z"] / unit, color=color, lw=0.6, ls=":")
        axes[0].plot([], [], color=color, label=f"reach {row['reach']:g}")
    for axis, text in zip(axes, ("eta_z", "eta_z / reach"), strict=True):
        axis.set_xscale("log")
        axis.set_xlabel(text, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("width of the map, to the widest", fontsize=9)
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, bbox_inches="tight", dpi=110)


def main() -> None:
    """Print the tables."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    rows: list[dict[str, Any]] = []
    all_found = {}
    for data in load_all(args.inputs, args):
        some = data.some(MOST_ROWS)
        if args.reach:
            rows += reach_rows(some, args.seeds)
            continue
        if args.adaptive:
            first = RATES if args.every else FIRST_RATES
            rows.append(compared(some, args.seeds, first))
            print(rows[-1], flush=True)
            continue
        all_found[data.name] = sweep(starts_of(some, args.seeds))
        rows.append(told(some, all_found[data.name]))
        print(rows[-1], flush=True)
        print(
            {k: np.round(v[:, 0], 0).tolist() for k, v in all_found[data.name].items()}
        )
    title = "Reach of the kernel and largest eta_z" if args.reach else "Learning rates"
    report(title, rows, args)
    if args.figure is not None and args.reach:
        draw_reach(args.figure, rows[: len(REACHES)])
    if args.figure is not None and all_found:
        draw(args.figure, all_found)


if __name__ == "__main__":
    main()
