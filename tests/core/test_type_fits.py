"""Types fit the groups that have their genes, and no type fits by chance."""

import numpy as np
import pytest
import scipy.sparse as sp

from napari_embedding_game.core.inspect.group_sums import run_to_result
from napari_embedding_game.core.inspect.type_fits import (
    TypeTable,
    find_evidence,
    iter_type_fits,
)

N, G, C = 600, 500, 6
GENES = {0: [0, 1, 2, 3, 4], 1: [5, 6, 7, 8, 9], 2: [10, 11, 12, 13, 14]}
"""Genes of the first types; each is high in the groups of ``HIGH_IN``."""
HIGH_IN = {0: [0], 1: [1, 2], 2: [1]}
"""Type 2 is a kind of type 1: group 1 has the genes of both."""


def table_of(genes, parents=(-1, -1, 1)):
    return TypeTable(
        columns=tuple(np.array(columns) for columns in genes),
        n_listed=np.array([len(columns) for columns in genes]),
        parents=np.array(parents),
    )


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    codes = np.arange(N) % C
    rates = np.tile(rng.gamma(0.7, 0.6, G), (N, 1))
    for kind, genes in GENES.items():
        rates[np.ix_(np.isin(codes, HIGH_IN[kind]), genes)] += 1.5
        rates[np.ix_(~np.isin(codes, HIGH_IN[kind]), genes)] = 0.05
    return np.log1p(rng.poisson(rates)).astype(np.float32), codes


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_a_type_a_parent_and_its_kind_are_told(cells, kind):
    X, codes = cells
    table = table_of(GENES.values())
    fits = run_to_result(iter_type_fits(kind(X), codes, C, table))
    assert fits.best.tolist() == [0, 2, 1, -1, -1, -1]
    own, parent = find_evidence(fits, table, 1, 2)
    assert sorted(fits.columns[own]) == GENES[2]
    assert sorted(fits.columns[parent]) == GENES[1]
    strength = (fits.changes * fits.shares)[1, own]
    assert (np.diff(strength) <= 0).all()
    assert fits.is_high()[1, own].all()


def test_of_two_kinds_that_fit_alike_their_parent_is_told(cells):
    X, codes = cells
    genes = [GENES[0], GENES[1], GENES[2][:3], GENES[2][2:]]
    fits = run_to_result(iter_type_fits(X, codes, C, table_of(genes, (-1, -1, 1, 1))))
    assert fits.best[1] == 1
    assert fits.second[1] in (2, 3)


def test_a_type_in_more_than_half_of_the_rows_is_seen(cells):
    X, codes = cells
    codes = np.where(codes >= 3, 0, codes)  # most rows
    X[np.ix_(codes == 0, GENES[0])] = X[np.ix_(np.arange(N) % C == 0, GENES[0])].max()
    fits = run_to_result(iter_type_fits(X, codes, 3, table_of(GENES.values())))
    assert fits.best.tolist() == [0, 2, 1]


def test_a_type_whose_genes_few_rows_have_does_not_fit(cells):
    X, codes = cells
    few = np.arange(N) < 90  # 15 % of each group
    mixed = np.where(few | (codes != 0), codes, 3)
    mixed = np.where(mixed == 3, 0, mixed)
    X[np.ix_((codes == 0) & ~few, GENES[0])] = 0
    X[np.ix_((codes == 0) & few, GENES[0])] = 4
    fits = run_to_result(iter_type_fits(X, mixed, C, table_of(GENES.values())))
    assert fits.best[0] == -1


def test_random_genes_seldom_fit(cells):
    X, codes = cells
    rng = np.random.default_rng(1)
    n_named = 0
    for _ in range(8):
        genes = [rng.choice(np.arange(15, G), 6, replace=False) for _ in range(30)]
        table = table_of(genes, [-1] * 30)
        fits = run_to_result(iter_type_fits(X, codes, C, table))
        n_named += (fits.best >= 0).sum()
    assert n_named <= 2  # of 48
