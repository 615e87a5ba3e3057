"""Genes that differ between two conditions, by samples: power, false ones, and ranks.

Three tables, or those named by ``--tables``.  *Simulated*: cells of donors, 40 of 2,000
genes changed 4-fold; genes with an adjusted p-value below 0.05, and how many of the
first 40 are changed ones.  *No difference*: the same without changed genes; how many
draws have any gene, and the share of p-values below 0.05.  *Monocytes* of ifnb:
untreated ones against those treated with interferon-beta; the file names no donors, so
that four are made of each condition at random, each with effects of its own, by
thinning of counts (after seqgendiff, Gerard, BMC Bioinformatics 21, 206, 2020).  What
is right there is said by the cells that were not used, and by genes known to be
switched on by interferon.

``--peers`` also asks pydeseq2 (``pip install pydeseq2``) in the first ``--peer_draws``
draws.  It has one table more, *cell types*: each type of ifnb with 200 cells or more of
each condition, given to four donors as above, by this program and by pydeseq2.  A null
of the same cells has the conditions of each donor's cells permuted.  "Welch" is the
test of the samples' means that this program used before.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from napari_embedding_game.core.inspect.markers import markers
from shared import arguments, report

TABLES = ("simulated", "no difference", "monocytes", "cell types")
LEVEL = 0.05
MIN_CELLS_OF_TYPE = 200
N_FIRST = 50, 200
"""Leading genes of which two tests have so many in common."""
N_CHANGED, FOLD = 40, 4.0
# fmt: off
INTERFERON_GENES = frozenset({
    "ISG15", "ISG20", "IFI6", "IFI27", "IFI35", "IFI44", "IFI44L", "IFIT1", "IFIT2",
    "IFIT3", "IFIT5", "IFITM1", "IFITM2", "IFITM3", "MX1", "MX2", "OAS1", "OAS2",
    "OAS3", "OASL", "IRF7", "IRF9", "STAT1", "STAT2", "RSAD2", "HERC5", "HERC6",
    "USP18", "CMPK2", "DDX58", "IFIH1", "LY6E", "BST2", "EPSTI1", "SAMD9", "SAMD9L",
    "PARP9", "PARP14", "XAF1", "TRIM22", "SP110", "CXCL10", "CXCL11", "TNFSF10",
    "LAMP3", "UBE2L6", "PSMB9", "EIF2AK2", "PLSCR1", "GBP1", "GBP4", "RTP4",
})
# fmt: on
"""Well known ones, most of them in the hallmark set of MSigDB."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts (N, G), which cells are of the chosen condition, and their donors."""

    counts: np.ndarray
    inside: np.ndarray
    donors: np.ndarray | None

    @property
    def logarithms(self) -> np.ndarray:
        """log(1 + x) of the counts in 10,000 of each cell."""
        depths = self.counts.sum(axis=1, keepdims=True)
        logarithms: np.ndarray = np.log1p(self.counts / np.maximum(depths, 1) * 1e4)
        return logarithms


@dataclass(frozen=True, slots=True)
class Design:
    """How many donors there are, and whether each is in both conditions."""

    name: str
    n_donors: int
    is_paired: bool


DESIGNS = (
    Design("2 pairs", 2, True),
    Design("4 pairs", 4, True),
    Design("2 against 2", 4, False),
    Design("3 against 3", 6, False),
)

# --- Cells


def simulate(
    rng: np.random.Generator, design: Design, n_genes: int, n_changed: int
) -> tuple[Cells, np.ndarray]:
    """Return cells of donors who differ, and the genes that the condition changes.

    Each gene has a spread of its own among donors, and a fifth of it between the two
    conditions of a donor; cells have a depth and each gene a gamma noise.
    """
    base = rng.lognormal(-1.6, 1.6, n_genes)
    base *= 2_500 / base.sum()
    changed = rng.choice(n_genes, n_changed, replace=False)
    folds = np.ones(n_genes)
    folds[changed] = np.where(np.arange(n_changed) % 2, FOLD, 1 / FOLD)
    spreads = (0.25 if design.is_paired else 0.1) / np.sqrt(
        rng.chisquare(8, n_genes) / 8
    )
    counts, inside, donors = [], [], []
    for donor in range(design.n_donors):
        of_donor = base * np.exp(rng.normal(0, spreads))
        sides = (True, False) if design.is_paired else (donor % 2 == 0,)
        for side in sides:
            rates = of_donor * np.exp(rng.normal(0, spreads / 5)) * folds**side
            n_cells = rng.integers(60, 160)
            depths = rng.gamma(8, 1 / 8, (n_cells, 1))
            noise = rng.gamma(2, 1 / 2, (n_cells, n_genes))
            counts.append(rng.poisson(rates * depths * noise).astype(np.float32))
            inside += [side] * n_cells
            donors += [f"donor {donor}"] * n_cells
    return Cells(np.concatenate(counts), np.array(inside), np.array(donors)), changed


def read_types(
    args: argparse.Namespace,
) -> Iterator[tuple[str, Any, np.ndarray, list[str]]]:
    """Yield each cell type of ifnb: counts (sparse), which are treated, and genes."""
    import anndata

    cells = anndata.read_h5ad(args.data / "ifnb_pbmc_counts.h5ad")
    is_treated = (cells.obs["stim"] == "STIM").to_numpy()
    for name, n_cells in cells.obs["cell_type"].value_counts().items():
        is_type = (cells.obs["cell_type"] == name).to_numpy()
        n_treated = (is_treated & is_type).sum()
        if min(n_treated, n_cells - n_treated) >= MIN_CELLS_OF_TYPE:
            counts = cells.X.tocsr()[is_type]
            yield name, counts, is_treated[is_type], list(cells.var_names)


def make_donors(
    rng: np.random.Generator,
    counts: Any,
    is_treated: np.ndarray,
    *,
    n_donors: int,
    is_paired: bool,
) -> Cells:
    """Give cells to donors at random, and each donor and gene an effect."""
    numbers = rng.integers(n_donors, size=len(is_treated))
    donors = numbers if is_paired else numbers + n_donors * is_treated
    thinned = counts.toarray().astype(np.int64)
    for donor in np.unique(donors):
        of_donor = rng.normal(0, 0.2, thinned.shape[1])
        for side in (True, False):
            rows = np.flatnonzero((donors == donor) & (is_treated == side))
            effects = of_donor + rng.normal(0, 0.1, thinned.shape[1])
            kept = np.minimum(0.6 * np.exp(effects), 1)
            thinned[rows] = rng.binomial(thinned[rows], kept)
    names = np.char.add("donor ", donors.astype(str))
    return Cells(thinned.astype(np.float32), is_treated, names)


# --- Tests


class Found(NamedTuple):
    """What a test says of the genes, (G,) each; NaN where it does not test one."""

    adjusted: np.ndarray
    p: np.ndarray
    scores: np.ndarray

    @property
    def significant(self) -> np.ndarray:
        """Numbers of the genes with an adjusted p-value below ``LEVEL``."""
        return np.flatnonzero(self.adjusted < LEVEL)

    def first(self, n_genes: int) -> np.ndarray:
        """Return the numbers of the first genes by p-value, untested ones last."""
        return np.argsort(self.p, kind="stable")[:n_genes]


def test_samples(cells: Cells) -> Found:
    """Compare as the window does."""
    table = markers(
        cells.logarithms, cells.inside, samples=cells.donors, n_top=None, log1p=True
    )
    figures = np.full((3, cells.counts.shape[1]), np.nan)
    figures[:, table.columns] = table.pvals_adj, table.pvals, table.scores
    return Found(*figures)


def test_by_welch(cells: Cells) -> Found:
    """Compare log1p of the means of samples, no pairs, by Welch's t-test."""
    from scipy import stats

    assert cells.donors is not None
    values = np.expm1(cells.logarithms)
    sides = [
        np.log1p(
            [
                values[(cells.inside == side) & (cells.donors == donor)].mean(axis=0)
                for donor in np.unique(cells.donors[cells.inside == side])
            ]
        )
        for side in (True, False)
    ]
    found = stats.ttest_ind(*sides, equal_var=False)
    p = np.nan_to_num(found.pvalue, nan=1.0)
    return Found(stats.false_discovery_control(p), p, found.statistic)


def test_by_pydeseq2(cells: Cells) -> Found:
    """Compare sums of counts by DESeq2's Wald test, pairs as a factor.

    Genes with fewer than 10 counts in all are left out, as DESeq2's manual advises.
    """
    from pydeseq2.dds import DeseqDataSet
    from pydeseq2.ds import DeseqStats

    keys = pd.DataFrame({"condition": cells.inside, "donor": cells.donors})
    sums = (
        pd.DataFrame(cells.counts.astype(int))
        .groupby([keys["condition"].to_numpy(), keys["donor"].to_numpy()])
        .sum()
    )
    about = sums.index.to_frame(index=False, name=["condition", "donor"])
    about["condition"] = np.where(about["condition"], "treated", "control")
    about.index = [f"sample {n}" for n in range(len(about))]
    is_paired = about["donor"].duplicated().any()
    is_kept = (sums.sum() >= 10).to_numpy()
    table = sums.loc[:, is_kept].set_axis(about.index)
    table = table.set_axis([f"g{n}" for n in table], axis=1)
    of_all = DeseqDataSet(
        counts=table,
        metadata=about,
        design="~donor + condition" if is_paired else "~condition",
        quiet=True,
        n_cpus=1,
    )
    of_all.deseq2()
    contrast = ["condition", "treated", "control"]
    wald = DeseqStats(of_all, contrast=contrast, quiet=True, n_cpus=1)
    wald.summary()
    figures = np.full((3, len(is_kept)), np.nan)
    columns = ["padj", "pvalue", "stat"]
    figures[:, is_kept] = wald.results_df[columns].to_numpy(float).T
    return Found(*figures)


Test = Callable[[Cells], Found]


def iter_tests(draw: int, args: argparse.Namespace) -> Iterator[tuple[str, Test]]:
    """Yield the tests by their names; a peer's of the first draws only."""
    yield "this program", test_samples
    yield "Welch", test_by_welch
    if args.peers and draw < args.peer_draws:
        yield "pydeseq2", test_by_pydeseq2


# --- Tables


def measure_power(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the table of simulated cells."""
    n_draws, n_genes = (2, 300) if args.quick else (args.draws, 2_000)
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for design in DESIGNS:
        for draw in range(n_draws):
            rng = np.random.default_rng(draw)
            cells, changed = simulate(rng, design, n_genes, N_CHANGED)
            for name, test in iter_tests(draw, args):
                told = test(cells)
                n_true = np.isin(told.significant, changed).sum()
                n_false = len(told.significant) - n_true
                n_first = np.isin(told.first(N_CHANGED), changed).sum()
                found.setdefault((design.name, name), []).append(
                    (n_true, n_false, n_first)
                )
    rows = []
    for (design_name, test_name), figures in found.items():
        true, false, first = np.mean(figures, axis=0)
        share = false / max(true + false, 1e-9)
        rows.append(
            {
                "samples": design_name,
                "test": test_name,
                "draws": len(figures),
                "changed genes found": f"{true:.1f} of {N_CHANGED}",
                "false ones": f"{false:.2f}",
                "share of false ones": f"{share:.1%}",
                f"changed ones of the first {N_CHANGED}": f"{first:.1f}",
            }
        )
    return rows


def measure_null(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the table of cells that do not differ."""
    n_draws, n_genes = (3, 200) if args.quick else (args.null_draws, 500)
    rows = []
    for design in DESIGNS:
        shares, with_any = [], []
        for draw in range(n_draws):
            rng = np.random.default_rng(10_000 + draw)
            cells, _ = simulate(rng, design, n_genes, 0)
            told = test_samples(cells)
            shares.append((told.p[~np.isnan(told.p)] < LEVEL).mean())
            with_any.append(len(told.significant) > 0)
        share = np.mean(with_any)
        error = 1.96 * np.sqrt(share * (1 - share) / n_draws)
        rows.append(
            {
                "samples": design.name,
                "draws": n_draws,
                "draws with any gene": f"{share:.1%} (± {error:.1%})",
                "p < 0.05": f"{np.mean(shares):.1%}",
            }
        )
    return rows


def measure_ifnb(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the table of monocytes; a row a design and test."""
    _, counts, is_treated, genes = next(
        each for each in read_types(args) if each[0] == "CD14 Mono"
    )
    rng = np.random.default_rng(0)
    # Half of the cells say what is right, the others are given to donors.
    is_used = rng.random(len(is_treated)) < 0.5
    others = Cells(counts[~is_used].toarray().astype(float), is_treated[~is_used], None)
    table = markers(
        others.logarithms, others.inside, tie_correct=True, n_top=None, log1p=True
    )
    is_right = (table.pvals_adj < 1e-3) & (np.abs(table.logfoldchanges) >= 1)
    right = table.columns[is_right]
    known = np.flatnonzero(np.isin(genes, [*INTERFERON_GENES]))
    n_donors, rows = 2 if args.quick else 4, []
    for is_paired in (True, False):
        cells = make_donors(
            rng,
            counts[is_used],
            is_treated[is_used],
            n_donors=n_donors,
            is_paired=is_paired,
        )
        samples = "pairs" if is_paired else f"against {n_donors}"
        for name, test in iter_tests(0, args):
            told = test(cells)
            rows.append(
                {
                    "samples": f"{n_donors} {samples}",
                    "test": name,
                    "genes found": len(told.significant),
                    f"of the {len(right)} right ones": int(
                        np.isin(right, told.significant).sum()
                    ),
                    "right ones of the first 100": int(
                        np.isin(told.first(100), right).sum()
                    ),
                    f"of {len(known)} interferon genes in the first 100": int(
                        np.isin(known, told.first(100)).sum()
                    ),
                }
            )
    return rows


def compare_types(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the table of cell types, treated against untreated, beside pydeseq2."""
    from scipy.stats import spearmanr

    rows = []
    for name, counts, is_treated, _ in read_types(args):
        cells = make_donors(
            np.random.default_rng(0), counts, is_treated, n_donors=4, is_paired=True
        )
        ours, our_seconds = run_timed(test_samples, cells)
        theirs, their_seconds = run_timed(test_by_pydeseq2, cells)
        is_tested = ~np.isnan(ours.scores) & ~np.isnan(theirs.scores)
        both = np.intersect1d(ours.significant, theirs.significant)
        common = [len(np.intersect1d(ours.first(n), theirs.first(n))) for n in N_FIRST]
        alike = spearmanr(ours.scores[is_tested], theirs.scores[is_tested])
        null = [count_null_genes(counts, is_treated, seed) for seed in args.null_seeds]
        row = {
            "cells": f"{name}, {len(is_treated):,}",
            "tested by both": int(is_tested.sum()),
            "found: this program, pydeseq2, both": (
                f"{len(ours.significant):,}, {len(theirs.significant):,}, {len(both):,}"
            ),
            **{
                f"of the first {n}, in both": c
                for n, c in zip(N_FIRST, common, strict=True)
            },
            "rank correlation of t and z": f"{alike.statistic:.3f}",
            "seconds": f"{our_seconds:.1f}, {their_seconds:.1f}",
        }
        for k, test_name in enumerate(("this program", "pydeseq2")):
            found, shares = np.array([each[k] for each in null]).T
            row[f"null, {test_name}: found; p < {LEVEL:g}"] = (
                f"{', '.join(f'{n:.0f}' for n in found)}; {shares.mean():.1%}"
            )
        rows.append(row)
    return rows


def run_timed(test: Test, cells: Cells) -> tuple[Found, float]:
    """Return what a test says, and the seconds of the processor that it takes."""
    begin = time.process_time()
    found = test(cells)
    return found, time.process_time() - begin


def count_null_genes(
    counts: Any, is_treated: np.ndarray, seed: int
) -> list[tuple[int, float]]:
    """Return genes found, and the share with p < 0.05, by both tests under the null.

    Cells are drawn into donors in the proportion of their conditions, and then named
    treated at random, so that both sides of a donor are the same mixture.
    """
    rng = np.random.default_rng(seed)
    permuted = rng.permutation(is_treated)
    cells = make_donors(rng, counts, permuted, n_donors=4, is_paired=True)
    tests: tuple[Test, ...] = (test_samples, test_by_pydeseq2)
    told = [test(cells) for test in tests]
    return [
        (len(one.significant), (one.p[~np.isnan(one.p)] < LEVEL).mean()) for one in told
    ]


def main() -> None:
    """Print the tables."""
    args = arguments(
        __doc__,
        draws={"type": int, "default": 20, "help": "simulated data sets a design"},
        null_draws={"type": int, "default": 200, "help": "the same, no difference"},
        peers={"action": "store_true", "help": "also ask pydeseq2"},
        peer_draws={"type": int, "default": 1, "help": "draws that pydeseq2 is asked"},
        null_seeds={"type": int, "nargs": "*", "default": [1, 2, 3]},
        tables={"nargs": "*", "default": TABLES, "choices": TABLES},
    )
    warnings.simplefilter("ignore")  # of the peers
    if "simulated" in args.tables:
        report(f"Simulated, 40 genes changed {FOLD:g}-fold", measure_power(args), args)
    if "no difference" in args.tables:
        report("No difference", measure_null(args), args)
    if not (args.data / "ifnb_pbmc_counts.h5ad").exists():
        print(f"Skipped ifnb: there is no ifnb_pbmc_counts.h5ad in {args.data}.")
        return
    if "monocytes" in args.tables:
        report("ifnb, monocytes", measure_ifnb(args), args)
    if args.peers and "cell types" in args.tables:
        report("ifnb, cell types", compare_types(args), args)


if __name__ == "__main__":
    main()
