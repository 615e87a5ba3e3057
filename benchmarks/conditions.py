"""Genes that differ between two conditions, by samples: power, false ones, and ranks.

Three tables.  *Simulated*: cells of donors, 40 of 2,000 genes changed 4-fold; genes
with an adjusted p-value below 0.05, and how many of the first 40 are changed ones.
*No difference*: the same without changed genes; how many draws have any gene, and the
share of p-values below 0.05.  *ifnb*: untreated monocytes against those treated with
interferon-beta; the file names no donors, so that four are made of each condition at
random, each with effects of its own, by thinning of counts (after seqgendiff, Gerard,
BMC Bioinformatics 21, 206, 2020).  What is right there is said by the cells that were
not used, and by genes known to be switched on by interferon.

``--peers`` also asks pydeseq2 (``pip install pydeseq2``), once for each design.
"Welch" is the test of the samples' means that this program used before.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.core.inspect.markers import markers
from shared import arguments, report

LEVEL = 0.05
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


def read_monocytes(args: argparse.Namespace) -> tuple[Any, np.ndarray, list[str]]:
    """Return counts (sparse) of CD14 monocytes, which are stimulated, and genes."""
    import anndata

    cells = anndata.read_h5ad(args.data / "ifnb_pbmc_counts.h5ad")
    cells = cells[(cells.obs["cell_type"] == "CD14 Mono").to_numpy()]
    is_treated = (cells.obs["stim"] == "STIM").to_numpy()
    return cells.X.tocsr(), is_treated, list(cells.var_names)


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


# --- Tests: adjusted p-values (G,), and p-values to rank by


Found = tuple[np.ndarray, np.ndarray]


def test_samples(cells: Cells) -> Found:
    """Compare as the window does."""
    table = markers(
        cells.logarithms, cells.inside, samples=cells.donors, n_top=None, log1p=True
    )
    adjusted, p = np.ones((2, cells.counts.shape[1]))
    adjusted[table.columns], p[table.columns] = table.pvals_adj, table.pvals
    return adjusted, p


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
    p = np.nan_to_num(stats.ttest_ind(*sides, equal_var=False).pvalue, nan=1.0)
    return stats.false_discovery_control(p), p


def test_by_pydeseq2(cells: Cells) -> Found:
    """Compare sums of counts by DESeq2's Wald test, pairs as a factor."""
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
    table = sums.set_axis(about.index).set_axis([f"g{n}" for n in sums], axis=1)
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
    figures = wald.results_df[["padj", "pvalue"]].fillna(1.0).to_numpy()
    return figures[:, 0], figures[:, 1]


Test = Callable[[Cells], Found]


def iter_tests(draw: int, args: argparse.Namespace) -> Iterator[tuple[str, Test]]:
    """Yield the tests by their names; a peer's of the first draw only."""
    yield "this program", test_samples
    yield "Welch", test_by_welch
    if args.peers and draw == 0:
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
                adjusted, p = test(cells)
                significant = np.flatnonzero(adjusted < LEVEL)
                n_true = np.isin(significant, changed).sum()
                first = np.argsort(p, kind="stable")[:N_CHANGED]
                n_first = np.isin(first, changed).sum()
                found.setdefault((design.name, name), []).append(
                    (n_true, len(significant) - n_true, n_first)
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
            adjusted, p = test_samples(cells)
            is_tested = p < 1
            shares.append((p[is_tested] < LEVEL).mean())
            with_any.append((adjusted < LEVEL).any())
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
    counts, is_treated, genes = read_monocytes(args)
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
            adjusted, p = test(cells)
            significant = np.flatnonzero(adjusted < LEVEL)
            order = np.argsort(p, kind="stable")
            rows.append(
                {
                    "samples": f"{n_donors} {samples}",
                    "test": name,
                    "genes found": len(significant),
                    f"of the {len(right)} right ones": int(
                        np.isin(right, significant).sum()
                    ),
                    "right ones of the first 100": int(
                        np.isin(order[:100], right).sum()
                    ),
                    f"of {len(known)} interferon genes in the first 100": int(
                        np.isin(known, order[:100]).sum()
                    ),
                }
            )
    return rows


def main() -> None:
    """Print the three tables."""
    args = arguments(
        __doc__,
        draws={"type": int, "default": 20, "help": "simulated data sets a design"},
        null_draws={"type": int, "default": 200, "help": "the same, no difference"},
        peers={"action": "store_true", "help": "also ask pydeseq2"},
    )
    warnings.simplefilter("ignore")  # of the peers
    report(f"Simulated, 40 genes changed {FOLD:g}-fold", measure_power(args), args)
    report("No difference", measure_null(args), args)
    if (args.data / "ifnb_pbmc_counts.h5ad").exists():
        report("ifnb, monocytes", measure_ifnb(args), args)
    else:
        print(f"Skipped ifnb: there is no ifnb_pbmc_counts.h5ad in {args.data}.")


if __name__ == "__main__":
    main()
