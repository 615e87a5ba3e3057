"""The numba type of pair functions, which compiled loops take as arguments.

The type's name contains the fields of the function and a digest of its formulas and of
the code that compiles them, so that numba's cache never serves an edited formula.
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
from napari_embedding_game.core.simd import make_intrinsic


class PairFunctionType(types.Opaque):
    """The numba type of a pair function; numba's cache stores only its name."""

    function: PairFunction

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return PairFunctionType, (self.name,)


register_model(PairFunctionType)(models.OpaqueModel)


@unbox(PairFunctionType)
def _unbox_pair_function(kind, function, c):
    return NativeValue(c.context.get_dummy_value())


@typeof_impl.register(PairFunction)
@cache
def _make_numba_type(function: PairFunction, _context: Any) -> PairFunctionType:
    """Return the numba type of a pair function, the same one for equal functions."""
    kind = PairFunctionType(name=f"{function!r}<{_digest_formulas(type(function))}>")
    # The same type may have been read back from the cache, without a function.
    kind.function = function
    return kind


def _digest_formulas(function_class: type[PairFunction]) -> str:
    """Return 12 hexadecimal digits of a class's methods and of the compiler modules.

    The digits change with the bytecode of a method, also an inherited one, and with the
    text of this module and of :mod:`simd`.
    """
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


def _make_pair_intrinsic(method_name: str) -> Callable[..., Any]:
    """Return a numba intrinsic (function, s) that calls a method of a pair function.

    ``method_name``: "value" or "slope"; ``s``: squared distances.
    """

    def type_intrinsic(context, function, s):
        def formula(numbers):
            return getattr(function.function, method_name)(numbers)

        return make_intrinsic(formula, (function, s), s)

    return intrinsic(type_intrinsic)


pair_value, pair_slope = _make_pair_intrinsic("value"), _make_pair_intrinsic("slope")
"""``pair_value(function, s)``, the function at squared distances s, and
``pair_slope(function, s)``, its derivative in s."""
