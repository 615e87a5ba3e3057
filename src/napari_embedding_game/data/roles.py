"""Decide the role of each metadata column once, when it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

import numpy as np
import pandas as pd

from napari_embedding_game.data import columns
from napari_embedding_game.data.column_names import (
    TEXT,
    Role,
    is_measure_name,
    is_sample_name,
    is_time_name,
    is_track_name,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.validation import format_row_name

ROLES: tuple[Role, ...] = get_args(Role)
LEVELS: tuple[Role, ...] = ("samples", "groups")
"""Roles of columns whose levels group the rows."""
MAX_GROUPS = 500
"""Number of distinct values above which a column names single rows."""
MAX_GROUPS_OF_NUMBERS = 30
_MAX_UNNAMED = {"numbers": MAX_GROUPS_OF_NUMBERS, "texts": 100}
"""Such a number for columns whose names do not say that they hold groups."""
_MANY_GROUPS = re.compile(r"cluster|leiden|louvain", re.IGNORECASE)
_TIMES = re.compile(r"day|date|time|week|passage|^(t|frame)$", re.IGNORECASE)
"""Names of numbers with an order and distances, which are no groups if many."""


def convert_columns_by_role(
    obs: pd.DataFrame, chosen_roles: Mapping[str, Role], where: str
) -> tuple[pd.DataFrame, dict[str, Role]]:
    """Decide the role of each metadata column, and convert the columns to their roles.

    ``obs`` (n rows): the columns as a file has them. ``chosen_roles``: roles chosen by
    a person, keyed by the column's name; other roles are guessed. ``where``: the
    source, for a sentence.

    Returns the columns, groups as levels and numbers as numbers, and the role of each
    column. Columns whose guessed role is not of groups keep their values. Raises
    DataError if a column with the chosen role of numbers or positions holds a text.
    """
    read, roles = dict[str, pd.Series](), dict[str, Role]()
    of_tracks = find_track_roles(obs, chosen_roles)
    for name, column in obs.items():
        plain, chosen = _to_plain_column(column), chosen_roles.get(str(name))
        guess = of_tracks.get(str(name)) or guess_role(plain)
        roles[str(name)] = role = chosen or guess
        is_to_change = chosen is not None or role in LEVELS
        read[str(name)] = convert_to_role(plain, role, where) if is_to_change else plain
    return pd.DataFrame(read, index=obs.index), roles


def find_track_roles(
    table: pd.DataFrame, known_roles: Mapping[str, Role]
) -> dict[str, Role]:
    """Return the roles "tracks" and "times" of columns, by their names.

    Track ids are whole numbers, and times numbers. A day of a sample may be called
    "time", too, so that the result is empty unless the table has both roles, guessed
    or known. Columns of ``known_roles`` are left out.
    """
    found = dict[str, Role]()
    for name, column in table.items():
        types = pd.api.types
        is_number = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
        if str(name) in known_roles or not is_number or not column.notna().any():
            continue
        if is_time_name(str(name)):
            found[str(name)] = "times"
        elif is_track_name(str(name)) and columns.holds_integers(column):
            found[str(name)] = "tracks"
    roles = {*found.values(), *known_roles.values()}
    return found if {"times", "tracks"} <= roles else {}


def guess_role(column: pd.Series) -> Role:
    """Return the role of a column by its type and name.

    - Truth values, and texts of few levels, are "samples" if the name says so, else
      "groups"; so are categories, unless these are too many: then "ids".
    - Numbers: see :func:`_guess_role_of_numbers`.
    - Other texts are "texts" if the name says so, any of the first has a space, or any
      repeats among the first 1,000; else "ids". Dates and mixed values are "texts".
    """
    name, types = str(column.name), pd.api.types
    of_groups: Role = "samples" if is_sample_name(name) else "groups"
    if types.is_bool_dtype(column):
        return of_groups
    if isinstance(column.dtype, pd.CategoricalDtype):
        n = len(column.cat.categories)
        return "ids" if n > max(MAX_GROUPS, len(column) // 2) else of_groups
    if types.is_numeric_dtype(column):
        return _guess_role_of_numbers(column, name, of_groups)
    if types.infer_dtype(column, skipna=True) != "string":
        return "texts"
    if _has_few_levels(column, name, "texts"):
        return of_groups
    has_words = TEXT.match(name) or column.head(100).str.contains(" ").any()
    # Checking a million barcodes would take long.
    is_unique = column.head(1000).is_unique
    return "texts" if has_words or not is_unique else "ids"


def guess_role_unconverted(column: pd.Series) -> Role:
    """Return the role of a column that stays unconverted: numbers are never groups."""
    role, types = guess_role(column), pd.api.types
    is_number = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    return "numbers" if is_number and role in LEVELS else role


def _guess_role_of_numbers(column: pd.Series, name: str, group_role: Role) -> Role:
    """Return the role of a numeric column, by the first rule that applies.

    1. Axes of an external map are "positions"; names such as "n_genes" mean "numbers".
    2. Positions by name are "positions", unless the name is all letters or a time.
    3. A few levels of whole numbers have the role `group_role`, unless the name is of
       no groups and all values are equal.
    4. Other positions by name are "positions", and whole numbers named as ids "ids".
    5. Others are "numbers".
    """
    is_time, is_named = _TIMES.search(name), columns.is_id_or_group_name(name)
    if columns.is_external_map_name(name):
        return "positions"
    if is_measure_name(name):
        return "numbers"
    is_position = columns.is_position_name(name) and not is_time
    # Centroid_y is a position on a regular grid, too.
    if is_position and not name.isalpha():
        return "positions"
    is_few = _has_few_levels(column, name, "numbers")
    are_several = is_named or columns.count_levels(column, 1) > 1
    if (
        is_few and are_several and columns.holds_integers(column)
    ):  # classes may be called y
        return group_role
    if is_position:
        return "positions"
    is_id = is_named and not (is_few or is_time) and columns.holds_integers(column)
    return "ids" if is_id else "numbers"


def _has_few_levels(column: pd.Series, name: str, kind: str) -> bool:
    """Return whether a column has few enough distinct values to be groups.

    The limit for `kind` "numbers" is 30, for "texts" 100, and 500 if the name says that
    it holds samples or clusters and no times; never more than half the rows.
    """
    most = _MAX_UNNAMED[kind]
    is_named = is_sample_name(name) or _MANY_GROUPS.search(name)
    if is_named and not (kind == "numbers" and _TIMES.search(name)):
        most = MAX_GROUPS
    most = min(most, len(column) // 2)
    return columns.count_levels(column, most) <= most


def _to_plain_column(column: pd.Series) -> pd.Series:
    """Return a column in a type that files and lists of levels can hold.

    Truth values with gaps become nullable booleans; lists and other objects become
    texts. Other columns are returned unchanged.
    """
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "unknown-array":  # the type is a dictionary or list of Arrow
        return _to_plain_column(column.astype(object))
    if column.dtype != object:
        return column
    if kind == "boolean":
        return column.astype("boolean")  # the column may have gaps
    return column.astype(str).where(column.notna()) if kind == "mixed" else column


def convert_to_role(column: pd.Series, role: Role, where: str) -> pd.Series:
    """Return a column converted to the type of its role.

    Levels become categories, unless they are truth values; numbers, positions and times
    become numbers; texts and ids become texts or objects. Raises DataError if the role
    is of numbers, positions or times, and the column holds a text.
    """
    types = pd.api.types
    is_levels = isinstance(column.dtype, pd.CategoricalDtype)
    if role in LEVELS:
        is_ready = is_levels or types.is_bool_dtype(column)
        return column if is_ready else _to_levels(column)
    if role in ("numbers", "positions", "times"):
        if types.is_numeric_dtype(column) and not types.is_bool_dtype(column):
            return column
        numbers = columns.coerce_to_numbers(column)
        wrong = (column.notna() & numbers.isna()).to_numpy()
        if wrong.any():
            first = int(wrong.argmax())
            raise DataError(
                f'{column.name} of {where} has the text "{column.iloc[first]}" in '
                f"{format_row_name(first, column.index)}, so it can't be taken for "
                f"{role}: take it for groups, or correct the file."
            )
        values = numbers.to_numpy(np.float64, na_value=np.nan)
        return pd.Series(values, column.index, name=column.name)
    if role == "texts" and not is_levels and types.is_numeric_dtype(column):
        return column.astype(str).where(column.notna())
    return column.astype(object) if is_levels else column


def _to_levels(column: pd.Series) -> pd.Series:
    """Return a column as a categorical; the levels 1.0 and 2.0 become 1 and 2."""
    levels = column.astype("category")
    if pd.api.types.is_numeric_dtype(column):
        numbers = columns.parse_integers(levels.cat.categories.to_series())
        if numbers is not None:
            return levels.cat.rename_categories(numbers)
    return levels


def describe_roles(roles: Mapping[str, Role]) -> str:
    """Return sentences that list the columns by role, as "Samples: donor.".

    At most three columns of each role are named; columns of this program's maps are
    left out.
    """
    by_role: dict[Role, list[str]] = {role: [] for role in ROLES}
    for name, role in roles.items():
        if not columns.is_own_map_column(name):
            by_role[role].append(name)
    found = ((role, named) for role, named in by_role.items() if named)
    return " ".join(
        f"{role.capitalize()}: {columns.list_text(named, 3)}." for role, named in found
    )
