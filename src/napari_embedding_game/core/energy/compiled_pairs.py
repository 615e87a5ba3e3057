"""Pair functions inside compiled loops: their numba type.

Its name carries the fields and a digest of the formulas and of what turns them into
machine code, so that numba's cache never answers for a formula that was edited.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import types
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from napari_embedding_game.core import simd
from napari_embedding_game.core.energy.pair_functions import PairFunction
from napari_embedding_game.core.simd import written


class PairFunctionType(types.Opaque):
    """The type of a pair function; numba's cache stores its name alone."""

    function: PairFunction

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return PairFunctionType, (self.name,)


register_model(PairFunctionType)(models.OpaqueModel)


@unbox(PairFunctionType)
def _unbox(kind, function, c):
    return NativeValue(c.context.get_dummy_value())


@typeof_impl.register(PairFunction)
@cache
def _typeof(function: PairFunction, _context: Any) -> PairFunctionType:
    kind = PairFunctionType(name=f"{function!r}<{_digest(type(function))}>")
    # The same type may have been read back from the cache, without a function.
    kind.function = function
    return kind


def _digest(function_class: type[PairFunction]) -> str:
    digest = hashlib.sha256(f"{function_class.__module__}".encode())
    for module in (simd.__file__, __file__):
        digest.update(Path(module).read_bytes())
    for base in function_class.__mro__:
        for name, method in sorted(vars(base).items()):
            if isinstance(method, FunctionType):
                code = method.__code__
                parts = (name, code.co_code, code.co_consts, code.co_names)
                digest.update(repr(parts).encode())
    return digest.hexdigest()[:12]


def _of(name: str) -> Callable[..., Any]:
    def typed(context, function, s):
        def formula(numbers):
            return getattr(function.function, name)(numbers)

        return written(formula, (function, s), s)

    return intrinsic(typed)


pair_value, pair_slope = _of("value"), _of("slope")
"""``pair_value(function, s)``: the function at squared distances; its derivative."""
