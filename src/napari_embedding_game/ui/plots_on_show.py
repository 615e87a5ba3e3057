"""Plots that the tabs show, for who draws a figure of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class PlotsOnShow:
    """Finds the plot of a kind that is on show; there is none without a dock."""

    def __init__(self) -> None:
        self._finders: dict[type, Callable[..., Any]] = {}

    def offer(self, kind: type[T], find: Callable[..., T | None]) -> None:
        """Ask this callable for the plot of a kind from now on."""
        self._finders[kind] = find

    def withdraw(self, kind: type, find: Callable[..., Any]) -> None:
        """Ask it no more, unless another has come in its place."""
        if self._finders.get(kind) == find:
            del self._finders[kind]

    def on_show(self, kind: type[T], *, is_saved: bool = False) -> T | None:
        """Return the plot of a kind as it is shown; None where there is none.

        ``is_saved``: it goes into a file, which a notebook may tell.
        """
        find = self._finders.get(kind)
        found: T | None = None if find is None else find(is_saved=is_saved)
        return found
