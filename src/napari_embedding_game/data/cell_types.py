"""Read tables of cell types and their marker genes."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from napari_embedding_game.data.columns import list_text
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats.tables import decode_utf8
from napari_embedding_game.data.gene_names import split_names
from napari_embedding_game.data.gene_sets import MAX_FILE, read_gene_sets
from napari_embedding_game.data.limits import memory

OWN_TABLE = Path(__file__).parent.parent / "resources" / "cell_type_markers.csv"
"""The program's own table."""
MAX_TYPES = 1_000
"""Most types of a table, for the time that random tables take."""
NOT_A_TABLE = (
    "{} is no table of cell types: it needs the columns type and gene, with a line for "
    "each gene, or those of PanglaoDB or CellTypist; a .gmt file has a type in each "
    "line."
)
_TYPE_COLUMNS = ("type", "cell_type", "cell type", "low-hierarchy cell types")
_GENE_COLUMNS = (
    *("gene", "genes", "official gene symbol", "curated markers"),
    "top 10 important genes from the celltypist model",
)
_PARENT_COLUMNS = ("parent", "high-hierarchy cell types")
_CANONICAL = "canonical marker"
"""Column of PanglaoDB: "1" for genes that its authors call canonical."""


@dataclass(frozen=True, slots=True)
class CellType:
    """A cell type with its marker genes."""

    name: str
    genes: tuple[str, ...]
    """Symbols; distinct, in the order of the table."""
    parent: str = ""
    """Name of the type of the table that this type is a kind of; "" for none."""
    source: str = ""
    """Publication or database that names the genes as markers; "" if unknown."""


def read_cell_types(path: Path = OWN_TABLE) -> list[CellType]:
    """Read the cell types of a table, in its order.

    Formats are

    - .csv and .tsv, also as .gz, with a heading and the columns "type", "gene" and,
      if wanted, "parent" and "source"; a line can hold several genes
    - PanglaoDB's .tsv, of which only canonical markers are taken, where it has any
    - CellTypist's table of its types, saved as .csv: curated markers
    - .gmt, where each line is a type

    Raises DataError if the file cannot be read, has no such columns or no genes, has
    more than ``MAX_TYPES`` types, or names a parent that is no type of the table or is
    itself a kind of another type.
    """
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind in (".xlsx", ".xls", ".ods"):
        raise DataError(
            f"{path.name} is a workbook: save its sheet as .csv (File > Save As in "
            "Excel), and open that."
        )
    if kind == ".gmt":
        sets = read_gene_sets(path)
        types = [CellType(one.name, one.genes, source=path.name) for one in sets]
        types = _join_repeated_types(types)
    else:
        with wrap_read_errors(path, "a table of cell types"):
            content = memory.read_unpacked(path)
            if len(content) > MAX_FILE:
                raise DataError(
                    f"{path.name} is larger than tables of cell types are "
                    f"({MAX_FILE // 1_000_000} MB): choose another file."
                )
            types = _parse_table(decode_utf8(content, path.name), path.name)
    if len(types) > MAX_TYPES:
        raise DataError(
            f"{path.name} has {len(types):,} types, and {MAX_TYPES:,} can be compared: "
            "leave out those that cannot be in your tissue."
        )
    return types


def _parse_table(text: str, name: str) -> list[CellType]:
    """Return the types of a table with a heading, read from its text.

    ``name``: of the file.  Raises DataError if columns, genes or parents are missing.
    """
    heading = text.partition("\n")[0]
    separator = max("\t,;", key=heading.count)
    reader = csv.DictReader(io.StringIO(text), delimiter=separator)
    columns = {str(c).strip().casefold(): c for c in reader.fieldnames or ()}

    def find_column(names: tuple[str, ...]) -> str:
        """Return the first of these columns that the table has; "" for none."""
        return next((columns[one] for one in names if one in columns), "")

    of_type, of_gene = find_column(_TYPE_COLUMNS), find_column(_GENE_COLUMNS)
    if not (of_type and of_gene):
        raise DataError(NOT_A_TABLE.format(name))
    of_parent, lines = find_column(_PARENT_COLUMNS), list(reader)
    if canonical := columns.get(_CANONICAL, ""):
        chosen = [line for line in lines if _is_yes(line.get(canonical))]
        lines = chosen or lines
    listed = []
    for line in lines:
        type_name = (line.get(of_type) or "").strip()
        parent = (line.get(of_parent) or "").strip() if of_parent else ""
        source = (line.get(columns.get("source", "")) or "").strip()
        genes = tuple(split_names(line.get(of_gene) or ""))
        if type_name and genes:
            listed.append(CellType(type_name, genes, parent, source))
    types = _join_repeated_types(listed)
    if not types:
        raise DataError(f"{name} has no genes: give each type one gene or more.")
    if of_parent == columns.get("parent"):
        _validate_parents(types, name)
        return types
    # CellTypist's families are often no types of the table.
    return [CellType(x.name, x.genes, source=x.source) for x in types]


def _is_yes(text: str | None) -> bool:
    """Return whether a cell of PanglaoDB's column says 1, also as "1.0"."""
    return (text or "").strip() in ("1", "1.0")


def _join_repeated_types(listed: list[CellType]) -> list[CellType]:
    """Return each type once, with the genes of all its entries.

    Parent and source are those of its first entry.
    """
    genes: dict[str, dict[str, None]] = {}
    first: dict[str, CellType] = {}
    for one in listed:
        first.setdefault(one.name, one)
        genes.setdefault(one.name, {}).update(dict.fromkeys(one.genes))
    return [
        CellType(one.name, tuple(genes[name]), one.parent, one.source)
        for name, one in first.items()
    ]


def _validate_parents(types: list[CellType], name: str) -> None:
    """Raise DataError where a parent is not in the table, or is itself a kind."""
    tops = {one.name for one in types if not one.parent}
    lost = {one.parent for one in types if one.parent and one.parent not in tops}
    if lost:
        raise DataError(
            f"{name} names parents that are no types of the table, or have a parent "
            f"themselves: {list_text(sorted(lost), 3)}. Add lines with their genes and "
            "no parent, or leave the parent out."
        )
