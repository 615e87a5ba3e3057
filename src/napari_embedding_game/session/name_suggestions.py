"""Suggest a name for each cluster from a table of cell types, with the evidence."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.cell_types import OWN_TABLE, CellType, read_cell_types
from napari_embedding_game.data.clustering import find_label_indices
from napari_embedding_game.data.columns import count_text, list_text, share_text
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.gene_names import find_names

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.type_fits import TypeFits, TypeTable
    from napari_embedding_game.data.expression import Expression
    from napari_embedding_game.session.session import Session

MAX_SHOWN = 4
"""Most genes of a type that the evidence names, and of its parent."""
CLOSE = 0.8
"""Share of the best score from which on the second type fits nearly as well."""
HIGHEST_FOLD = 100
"""Fold changes above this one are given as "over 100 times"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A type that may be the name of a cluster."""

    name: str
    score: float
    """Standard deviations by which its genes are higher than random genes."""
    n_high: int
    """How many of its own genes are high in the cluster."""
    n_genes: int
    """How many genes of its own the table lists."""
    evidence: str
    """The high genes, how many times higher they are, and in what share of cells."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The type suggested for a cluster, and the next one."""

    best: Candidate | None = None
    """None where no type of the table fits."""
    second: Candidate | None = None

    @property
    def is_close(self) -> bool:
        """Whether the second type fits nearly as well as the best."""
        if self.best is None or self.second is None:
            return False
        return self.second.score >= CLOSE * self.best.score

    @property
    def second_text(self) -> str:
        """The second type, with a note where it fits nearly as well; "" for none."""
        if self.second is None:
            return ""
        return self.second.name + (" (nearly as good)" if self.is_close else "")


@dataclass(frozen=True, eq=False)
class NameSuggestions:
    """The suggestions for the clusters of one moment."""

    labels: NDArray[np.int32]
    """(n,) cluster id of each point."""
    by_id: Mapping[int, Suggestion]
    note: str
    """A sentence on the table, and on genes that the data lack."""

    def find_suggestion(
        self, cluster: int, labels: NDArray[np.int32]
    ) -> Suggestion | None:
        """Return the suggestion for a cluster; None if it has other points by now.

        ``labels`` (n,): the present cluster id of each point.
        """
        if cluster not in self.by_id or len(labels) != len(self.labels):
            return None
        if labels is not self.labels:
            was, now = self.labels == cluster, labels == cluster
            if not np.array_equal(was, now):
                return None
        return self.by_id[cluster]


def make_names_job(
    session: Session, path: Path = OWN_TABLE
) -> Callable[[], Generator[float, None, NameSuggestions]]:
    """Return a job, for any thread, that suggests a name for each cluster.

    The job is a generator function: it yields the share done, 0 to 1.  It raises
    DataError where the table cannot be read, or :func:`iter_suggestions` does.

    Raises DataError: there are no data, no map, or fewer than two clusters; points
    move; or the columns of the data are no genes.
    """
    dataset = session.require_data()
    if session.snapshot is None:
        raise DataError("There is no map yet: press Run, then ask for names.")
    if session.is_moving:
        raise DataError("Pause or stop the game to ask for names of its clusters.")
    validate_genes(dataset.expression, dataset.name)
    clustering, names = session.clusters.clustering, dataset.profile_names
    ids = [dataset.gene_ids.get(name, "") for name in names] if dataset.gene_ids else []
    numbers = list(clustering.by_id)
    codes = find_label_indices(numbers, clustering.labels)

    def suggest_names() -> Generator[float, None, NameSuggestions]:
        """Yield the share done, and return the suggestions."""
        found, note = yield from iter_suggestions(
            *(dataset.expression, names, ids, codes, len(numbers)),
            types=read_cell_types(path),
            table_name="the program's own table" if path == OWN_TABLE else path.name,
        )
        by_id = dict(zip(numbers, found, strict=True))
        return NameSuggestions(clustering.labels, by_id, note)

    return suggest_names


def validate_genes(expression: Expression, where: str) -> None:
    """Raise DataError unless the columns are genes with counts or their logarithms.

    ``where``: name of the data.
    """
    if not expression.is_expression:
        raise DataError(
            f"The columns of {where} are no genes, so that marker genes cannot name "
            "its clusters: open data with genes."
        )
    if expression.kind == "values":
        raise DataError(
            f"The genes of {where} hold neither counts nor log1p of counts, so that "
            "nobody can say how much higher a gene is: choose another space in Data, "
            "or say there what the genes hold."
        )


def iter_suggestions(
    expression: Expression,
    gene_names: Sequence[str],
    gene_ids: Sequence[str],
    codes: NDArray[np.integer],
    n_groups: int,
    *,
    types: Sequence[CellType],
    table_name: str,
) -> Generator[float, None, tuple[list[Suggestion], str]]:
    """Yield the share done, and return a suggestion for each group, and a note.

    Symbols are found without regard to case, so that human symbols find mouse genes of
    the same name.

    ``expression`` (n, G); ``gene_names``, ``gene_ids`` (G,): symbols, and Ensembl
    identifiers or an empty list; ``codes`` (n,): group of each row, -1 for none;
    ``table_name``: for sentences.

    Raises DataError: there are fewer than two groups, or the data have fewer than two
    genes of every type.
    """
    from napari_embedding_game.core.inspect.type_fits import iter_type_fits

    if n_groups < 2:
        raise DataError(
            "There is only one cluster, and genes are high only beside other clusters: "
            "choose a higher number of clusters."
        )
    every = list(dict.fromkeys(gene for one in types for gene in one.genes))
    match = find_names(every, gene_names, data_ids=gene_ids)
    column_of = dict(zip(every, match.index_of_each.tolist(), strict=True))
    table = _locate_genes(types, column_of)
    if max(map(len, table.columns), default=0) < 2:
        raise DataError(
            f"The data have at most one gene of each type of {table_name}. "
            f"{match.note} Use a table with the names that the data have, such as "
            "symbols."
        )
    fits = yield from iter_type_fits(expression.values, codes, n_groups, table)
    suggestions = [
        Suggestion(
            *(
                _describe_candidate(types, table, fits, group, int(chosen), gene_names)
                for chosen in (fits.best[group], fits.second[group])
            )
        )
        for group in range(n_groups)
    ]
    n_missing = len(match.missing)
    note = f"From {table_name}: {count_text(len(types), 'type')}."
    if n_missing:
        note += (
            f" {n_missing:,} of its {len(every):,} genes are not in the data: "
            f"{list_text(match.missing, 3)}."
        )
    return suggestions, note


def _locate_genes(types: Sequence[CellType], column_of: Mapping[str, int]) -> TypeTable:
    """Return where the genes of each type are in the data.

    ``column_of``: column of each gene, -1 for a gene that the data lack.
    """
    from napari_embedding_game.core.inspect.type_fits import TypeTable

    number_of = {one.name: number for number, one in enumerate(types)}
    located = [{column_of[gene] for gene in one.genes} - {-1} for one in types]
    return TypeTable(
        columns=tuple(np.array(sorted(one), np.intp) for one in located),
        n_listed=np.array([len(one.genes) for one in types], np.intp),
        parents=np.array([number_of.get(one.parent, -1) for one in types], np.intp),
    )


def _describe_candidate(
    types: Sequence[CellType],
    table: TypeTable,
    fits: TypeFits,
    group: int,
    chosen: int,
    gene_names: Sequence[str],
) -> Candidate | None:
    """Return a type of a group as a candidate, with its evidence; None for -1."""
    from napari_embedding_game.core.inspect.type_fits import find_evidence

    if chosen < 0:
        return None
    own, inherited = find_evidence(fits, table, group, chosen)
    kind = types[chosen]

    def describe_genes(genes: NDArray[np.intp]) -> str:
        """Return the first genes with fold change and share, as a list in words."""
        return ", ".join(
            f"{gene_names[fits.columns[gene]]} "
            f"{format_fold_change(fits.changes[group, gene])} in "
            f"{share_text(fits.shares[group, gene])}"
            for gene in genes[:MAX_SHOWN]
        )

    words = f"{len(own)} of {len(kind.genes)} genes high"
    evidence = f"{words}: {describe_genes(own)}" if len(own) else words
    if len(inherited):
        evidence += f". {kind.parent}: {describe_genes(inherited[:2])}"
    return Candidate(
        name=kind.name,
        score=float(fits.scores[group, chosen]),
        n_high=len(own),
        n_genes=len(kind.genes),
        evidence=evidence,
        source=kind.source,
    )


def format_fold_change(change: float) -> str:
    """Return a log2 fold change as text, such as "12x" or "over 100x"."""
    fold = 2.0**change
    if fold > HIGHEST_FOLD:
        return f"over {HIGHEST_FOLD}×"
    return f"{fold:.0f}×" if fold >= 10 else f"{fold:.1f}×"
