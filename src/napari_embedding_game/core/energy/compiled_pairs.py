"""Pair functions inside compiled loops: their numba type, and rows of pairs.

A loop takes a pair function as an argument and is compiled once for its *class*, then
read from numba's cache on disk; the fields are numbers that may change.  The name of
the type carries a digest of the formulas, and of what turns them into machine code, so
that a formula that was edited is not answered from the cache.

In the rows of pairs: ``y`` (N, d) points, ``z`` (d, M) others, a row per coordinate,
d = 2 or 3; all arrays C-contiguous and of one type, float32 or float64.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
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

from napari_embedding_game.core.energy import lanes
from napari_embedding_game.core.energy.lanes import Lanes, Place, row_sums
from napari_embedding_game.core.energy.pair_functions import PairFunction

# --- The type -----------------------------------------------------------------------


class PairFunctionType(types.Type):
    """The type of a class of pair functions.

    Equal where the name is, which numba's cache asks for.  It is stored there as its
    name alone: a class that is gone, with a file of the user's own, would else keep all
    loops from being read back.
    """

    function_class: type[PairFunction]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return PairFunctionType, (self.name,)


@cache
def _type_of(function_class: type[PairFunction]) -> PairFunctionType:
    of = f"{function_class.__module__}.{function_class.__qualname__}"
    kind = PairFunctionType(name=f"{of}<{_digest(function_class)}>")
    # The same type may have been read back from the cache, without a class.
    kind.function_class = function_class
    return kind


def _digest(function_class: type[PairFunction]) -> str:
    digest = hashlib.sha256()
    for module in (lanes.__file__, __file__):
        digest.update(Path(module).read_bytes())
    for base in function_class.__mro__:
        for name, method in sorted(vars(base).items()):
            if isinstance(method, FunctionType):
                code = method.__code__
                parts = (name, code.co_code, code.co_consts, code.co_names)
                digest.update(repr(parts).encode())
    return digest.hexdigest()[:12]


@typeof_impl.register(PairFunction)
def _typeof(function: PairFunction, _context: Any) -> PairFunctionType:
    return _type_of(type(function))


@register_model(PairFunctionType)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: PairFunctionType) -> None:
        members = [(each.name, types.float64) for each in fields(kind.function_class)]
        super().__init__(manager, kind, members)


@unbox(PairFunctionType)
def _unbox(kind, function, c):
    native = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    for each in fields(kind.function_class):
        attribute = c.pyapi.object_getattr_string(function, each.name)
        number = c.pyapi.number_float(attribute)
        setattr(native, each.name, c.pyapi.float_as_double(number))
        c.pyapi.decref(number)
        c.pyapi.decref(attribute)
    failed = cgutils.is_not_null(c.builder, c.pyapi.err_occurred())
    return NativeValue(native._getvalue(), is_error=failed)


Fields = dict[str, Any]


def _fields(
    context: Any, builder: Any, kind: Any, function: Any, number: Any
) -> Fields:
    """Return the fields of a pair function as numbers of a type."""
    native = cgutils.create_struct_proxy(kind)(context, builder, value=function)
    is_single = isinstance(number, ir.FloatType)
    values = {}
    for each in fields(kind.function_class):
        value = getattr(native, each.name)
        values[each.name] = builder.fptrunc(value, number) if is_single else value
    return values


def _at_place(kind: Any, values: Fields, place: Place) -> PairFunction:
    """Return the pair function for the numbers at a place."""
    here = {name: place.all(value) for name, value in values.items()}
    function: PairFunction = kind.function_class(**here)
    return function


# --- One pair -----------------------------------------------------------------------


def _of_one(name: str) -> Callable[..., Any]:
    def typed(context, function, s):
        def code(context, builder, signature, arguments):
            kind = signature.args[0]
            number = arguments[1].type
            values = _fields(context, builder, kind, arguments[0], number)
            place = Place(builder, None, 1)
            formula = getattr(_at_place(kind, values, place), name)
            return formula(Lanes(builder, arguments[1])).value

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

    def row(self, index: Any) -> Any:
        """Return the pointer to the first number of a row."""
        if isinstance(index, int):
            index = self.shape[-1].type(index)
        return self._builder.gep(self.data, [self._builder.mul(index, self.shape[-1])])

    def entry(self, index: Any, column: int) -> Any:
        """Return the pointer to a number of a row."""
        return self._builder.gep(self.row(index), [self.shape[-1].type(column)])


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments, arrays among them as such."""
    return [
        _Array(context, builder, kind, value)
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


@contextmanager
def _dimension(builder: Any, n_components: Any, d: int) -> Iterator[None]:
    """Write what holds for maps of d dimensions."""
    is_it = builder.icmp_signed("==", n_components, n_components.type(d))
    with builder.if_then(is_it):
        yield


def _squared(
    place: Place, x: Sequence[Any], z: Sequence[Any]
) -> tuple[Lanes, list[Lanes]]:
    """Return squared distances of x to the z at a place, and the differences."""
    apart = [place.all(one) - place.load(row) for one, row in zip(x, z, strict=True)]
    s = apart[0] * apart[0]
    for each in apart[1:]:
        s = each.fused(each, s)
    return s, apart


def _repel(is_weighted: bool) -> Callable[..., Any]:
    def write(context, builder, signature, arguments):
        arrays = _arrays(context, builder, signature, arguments)
        function, i, count, y, z, weights, gradient, pull = arrays
        kind, number = signature.args[0], y.number
        values = _fields(context, builder, kind, function, number)
        result = cgutils.alloca_once_value(builder, number(0.0))
        for d in (2, 3):
            with _dimension(builder, y.shape[1], d):
                x = [builder.load(y.entry(i, k)) for k in range(d)]
                rows = [z.row(k) for k in range(d)]
                pulls = [pull.row(k) for k in range(d)]
                factors = weights.row(i) if is_weighted else None

                def terms(place, x=x, rows=rows, pulls=pulls, factors=factors):
                    s, apart = _squared(place, x, rows)
                    here = _at_place(kind, values, place)
                    value, slope = here.value(s), here.slope(s)
                    if factors is not None:
                        weight = place.load(factors)
                        value, slope = weight * value, weight * slope
                    steep = slope + slope
                    pushes = [steep * each for each in apart]
                    for push, row in zip(pushes, pulls, strict=True):
                        place.store(place.load(row) - push, row)
                    return [value, *pushes]

                total, *sums = row_sums(builder, count, number, d + 1, terms)
                for k, each in enumerate(sums):
                    builder.store(each.value, gradient.entry(i, k))
                builder.store(total.value, result)
        return builder.load(result)

    def typed(context, function, i, count, y, z, weights, gradient, pull):
        arguments = (function, types.intp, types.intp, y, z, weights, gradient, pull)
        return y.dtype(*arguments), write

    return typed


repel_row = intrinsic(_repel(is_weighted=False))
"""Return sum_j k(|y_i - z_j|^2) of one point, and write its gradient at both ends.

``repel_row(k, i, count, y, z, weights, gradient, pull)``: over the first ``count`` z;
d/dy_i is written to ``gradient[i]`` (N, d), d/dz_j added to ``pull`` (d, M).
"""
weighted_repel_row = intrinsic(_repel(is_weighted=True))
"""Like :func:`repel_row` for sum_j ``weights[i, j]`` k(|y_i - z_j|^2)."""


@intrinsic
def repel_shifted(context, function, begin, count, shift, y, gradient):
    """Return the sum over points i of k(|y_i - y_j|^2), j = i + shift, ``count`` of i.

    ``y`` and ``gradient`` (d, M) have a row per coordinate; the sum's derivative in
    y_i alone is added to ``gradient[:, i]``, i from ``begin`` on.
    """

    def write(context, builder, signature, arguments):
        arrays = _arrays(context, builder, signature, arguments)
        function, begin, count, shift, y, gradient = arrays
        kind, number = signature.args[0], y.number
        values = _fields(context, builder, kind, function, number)
        result = cgutils.alloca_once_value(builder, number(0.0))
        for d in (2, 3):
            with _dimension(builder, y.shape[0], d):
                heads = [builder.gep(y.row(k), [begin]) for k in range(d)]
                tails = [builder.gep(row, [shift]) for row in heads]
                gains = [builder.gep(gradient.row(k), [begin]) for k in range(d)]

                def terms(place, heads=heads, tails=tails, gains=gains):
                    ends = zip(heads, tails, strict=True)
                    apart = [place.load(one) - place.load(other) for one, other in ends]
                    s = apart[0] * apart[0]
                    for each in apart[1:]:
                        s = each.fused(each, s)
                    here = _at_place(kind, values, place)
                    steep = here.slope(s)
                    steep = steep + steep
                    for each, row in zip(apart, gains, strict=True):
                        place.store(steep.fused(each, place.load(row)), row)
                    return [here.value(s)]

                (total,) = row_sums(builder, count, number, 1, terms)
                builder.store(total.value, result)
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
        function, s, weights, height = arrays
        kind, number, wide = signature.args[0], s.number, ir.DoubleType()
        values = _fields(context, builder, kind, function, number)
        if isinstance(number, ir.FloatType):
            height = builder.fptrunc(height, number)

        def terms(place):
            lifted = place.load(s.data) + place.all(height)
            here = _at_place(kind, values, place)
            weight = place.load(weights.data).double()
            of_both = here.value(lifted), here.slope(lifted)
            return [weight * each.double() for each in of_both]

        sums = row_sums(builder, s.shape[0], wide, 2, terms)
        return context.make_tuple(builder, result, [each.value for each in sums])

    return result(function, s, weights, types.float64), write
