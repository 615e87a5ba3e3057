"""Pair functions inside compiled loops: their numba type, and rows of pairs.

The name of the type carries the fields and a digest of the formulas and of what turns
them into machine code, so that numba's cache never answers for a formula that was
edited.  In the rows: ``y`` (N, d) points, ``z`` (d, M) others, d = 2 or 3; all arrays
C-contiguous and of one type, float32 or float64.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,no-any-return"

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from napari_embedding_game.core import lanes
from napari_embedding_game.core.energy.pair_functions import PairFunction
from napari_embedding_game.core.lanes import Lanes, Place, row_sums

# --- The type -----------------------------------------------------------------------


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
    for module in (lanes.__file__, __file__):
        digest.update(Path(module).read_bytes())
    for base in function_class.__mro__:
        for name, method in sorted(vars(base).items()):
            if isinstance(method, FunctionType):
                code = method.__code__
                parts = (name, code.co_code, code.co_consts, code.co_names)
                digest.update(repr(parts).encode())
    return digest.hexdigest()[:12]


# --- One pair -----------------------------------------------------------------------


def _of_one(name: str) -> Callable[..., Any]:
    def typed(context, function, s):
        def code(context, builder, signature, arguments):
            numbers = Place(builder, None, 1).all(arguments[1])
            return getattr(signature.args[0].function, name)(numbers).one()

        return s(function, s), code

    return typed


pair_value = intrinsic(_of_one("value"))
"""Return the function at one squared distance: ``pair_value(function, s)``."""
pair_slope = intrinsic(_of_one("slope"))
"""Return its derivative at one squared distance: ``pair_slope(function, s)``."""


# --- Rows of pairs ------------------------------------------------------------------


class _Array:
    """A C-contiguous array in a function that is being written."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        if kind.layout != "C":
            raise TypingError("The rows must be C-contiguous.")
        array = context.make_array(kind)(context, builder, value)
        self._builder = builder
        self.shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        self.data = array.data
        self.number = self.data.type.pointee

    def row(self, index: Any, at: Any = 0) -> Any:
        """Return the pointer to a number of a row, the first by default."""
        size = self.shape[-1]
        index, at = (size.type(i) if isinstance(i, int) else i for i in (index, at))
        begin = self._builder.gep(self.data, [self._builder.mul(index, size)])
        return self._builder.gep(begin, [at])


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments, arrays among them as such."""
    return [
        _Array(context, builder, kind, value)
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _dimensions(builder: Any, n_components: Any) -> Iterator[int]:
    """Yield 2 and 3: what is written meanwhile is for maps of so many dimensions."""
    for d in (2, 3):
        is_it = builder.icmp_signed("==", n_components, n_components.type(d))
        with builder.if_then(is_it):
            yield d


def _squared(apart: list[Lanes]) -> Lanes:
    s = apart[0] * apart[0]
    for each in apart[1:]:
        s = each.fused(each, s)
    return s


@intrinsic
def repel_row(context, function, i, count, y, z, weights, gradient, pull):
    """Return sum_j w_ij k(|y_i - z_j|^2) of one point; write its gradient at both ends.

    ``repel_row(k, i, count, y, z, weights, gradient, pull)``: over the first ``count``
    z; ``weights`` (N, M), or None where they are 1; d/dy_i is written to
    ``gradient[i]`` (N, d), d/dz_j added to ``pull`` (d, M).
    """
    is_weighted = isinstance(weights, types.Array)

    def write(context, builder, signature, arguments):
        arrays = _arrays(context, builder, signature, arguments)
        _, i, count, y, z, weights, gradient, pull = arrays
        k = signature.args[0].function
        result = cgutils.alloca_once_value(builder, y.number(0.0))
        for d in _dimensions(builder, y.shape[1]):
            x = [builder.load(y.row(i, c)) for c in range(d)]
            rows, pulls = ([of.row(c) for c in range(d)] for of in (z, pull))
            factors = weights.row(i) if is_weighted else None

            def terms(place, x=x, rows=rows, pulls=pulls, factors=factors):
                ends = zip(x, rows, strict=True)
                apart = [place.all(one) - place.load(row) for one, row in ends]
                s = _squared(apart)
                value, slope = k.value(s), k.slope(s)
                if factors is not None:
                    weight = place.load(factors)
                    value, slope = weight * value, weight * slope
                steep = slope + slope
                pushes = [steep * each for each in apart]
                for push, row in zip(pushes, pulls, strict=True):
                    place.store(place.load(row) - push, row)
                return [value, *pushes]

            total, *sums = row_sums(builder, count, y.number, d + 1, terms)
            for c, each in enumerate(sums):
                builder.store(each, gradient.row(i, c))
            builder.store(total, result)
        return builder.load(result)

    places = types.intp, types.intp
    return y.dtype(function, *places, y, z, weights, gradient, pull), write


@intrinsic
def repel_shifted(context, function, begin, count, shift, y, gradient):
    """Return the sum over points i of k(|y_i - y_j|^2), j = i + shift, ``count`` of i.

    ``y`` and ``gradient`` (d, M) have a row per coordinate; the sum's derivative in
    y_i alone is added to ``gradient[:, i]``, i from ``begin`` on.
    """

    def write(context, builder, signature, arguments):
        arrays = _arrays(context, builder, signature, arguments)
        _, begin, count, shift, y, gradient = arrays
        k = signature.args[0].function
        result = cgutils.alloca_once_value(builder, y.number(0.0))
        for d in _dimensions(builder, y.shape[0]):
            heads, gains = (
                [of.row(c, begin) for c in range(d)] for of in (y, gradient)
            )
            tails = [builder.gep(row, [shift]) for row in heads]

            def terms(place, heads=heads, tails=tails, gains=gains):
                ends = zip(heads, tails, strict=True)
                apart = [place.load(one) - place.load(other) for one, other in ends]
                s = _squared(apart)
                steep = k.slope(s)
                steep = steep + steep
                for each, row in zip(apart, gains, strict=True):
                    place.store(steep.fused(each, place.load(row)), row)
                return [k.value(s)]

            (total,) = row_sums(builder, count, y.number, 1, terms)
            builder.store(total, result)
        return builder.load(result)

    places = types.intp, types.intp, types.intp
    return y.dtype(function, *places, y, gradient), write


@intrinsic
def lifted_row(context, function, s, weights, u):
    """Return the sums of w f(s + u) and of w f'(s + u) over a row, both float64.

    ``s`` and ``weights`` (M,); ``weights`` may be longer.
    """
    result = types.UniTuple(types.float64, 2)

    def write(context, builder, signature, arguments):
        arrays = _arrays(context, builder, signature, arguments)
        _, s, weights, height = arrays
        k = signature.args[0].function
        if isinstance(s.number, ir.FloatType):
            height = builder.fptrunc(height, s.number)

        def terms(place):
            lifted = place.load(s.data) + place.all(height)
            weight = place.load(weights.data).double()
            of_both = k.value(lifted), k.slope(lifted)
            return [weight * each.double() for each in of_both]

        sums = row_sums(builder, s.shape[0], ir.DoubleType(), 2, terms)
        return context.make_tuple(builder, result, sums)

    return result(function, s, weights, types.float64), write
