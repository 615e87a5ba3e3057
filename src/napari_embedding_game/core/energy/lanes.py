"""Sums over rows in an order that no compiler changes: :data:`LANES` at a time.

A sum of single numbers waits for each addition.  A compiler that may reorder it
(``reassoc`` in numba's ``fastmath``) adds several at a time, but how many depends on
what it has inlined: code that was just compiled ends in other last digits than the
same code read back from numba's cache, and a game in another map.  So the sums that
decide anything are written here as vectors: a term goes to the lane of its place, the
lanes are added by halves, and what is left over follows in fewer lanes, in the end
one by one.

Divisions are exact, and not by an estimate of 1 / x as ``arcp`` and ``afn`` allow: that
differs between vectors and single numbers, and between processors.  A product is fused
with what it is added to where it says so and the processor can.

All arrays are C-contiguous and of one type, float32 or float64.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

LANES = 8

STRICT = {"nnan", "ninf", "nsz"}
"""numba's ``fastmath`` for loops that decide anything: nothing that changes digits."""


class _Place:
    """Numbers at one place of a row, ``LANES`` of them or a single one."""

    def __init__(self, builder: Any, index: Any, n_lanes: int) -> None:
        self.builder = builder
        self._index = index
        self._n_lanes = n_lanes

    def type_of(self, number: Any) -> Any:
        """Return the type of so many numbers."""
        return number if self._n_lanes == 1 else ir.VectorType(number, self._n_lanes)

    def load(self, row: Any) -> Any:
        """Return the numbers of a row, given by the pointer to its first."""
        at, align = self._at(row)
        return self.builder.load(at, align=align)

    def store(self, numbers: Any, row: Any) -> None:
        """Write the numbers of a row."""
        at, align = self._at(row)
        self.builder.store(numbers, at, align=align)

    def all(self, number: Any) -> Any:
        """Return a number in every lane."""
        if self._n_lanes == 1:
            return number
        builder, wide = self.builder, self.type_of(number.type)
        empty = ir.Constant(wide, ir.Undefined)
        first = builder.insert_element(empty, number, ir.IntType(32)(0))
        order = ir.Constant(ir.VectorType(ir.IntType(32), self._n_lanes), None)
        return builder.shuffle_vector(first, empty, order)

    def double(self, numbers: Any) -> Any:
        """Return the numbers as float64."""
        wide = self.type_of(ir.DoubleType())
        return numbers if numbers.type == wide else self.builder.fpext(numbers, wide)

    def fused(self, a: Any, b: Any, c: Any) -> Any:
        """Return a * b + c."""
        return _fused(self.builder, a, b, c)

    def _at(self, row: Any) -> tuple[Any, int]:
        number = row.type.pointee
        at = self.builder.gep(row, [self._index])
        at = self.builder.bitcast(at, self.type_of(number).as_pointer())
        return at, 4 if isinstance(number, ir.FloatType) else 8


Terms = Callable[[_Place], Sequence[Any]]
"""What each sum gains at a place."""


def _sums(
    builder: Any,
    count: Any,
    number: Any,
    n_sums: int,
    terms: Terms,
    widths: Sequence[int] = (4 * LANES, LANES, 1),
) -> Any:
    """Build the loops over a row; return its sums, of the type ``number``."""
    sums = [number(0.0)] * n_sums
    begin = count.type(0)
    for width in widths:
        end = builder.and_(count, count.type(-width))
        lanes = _loop(builder, (begin, end), number, width, n_sums, terms)
        parts = (_across(builder, each, width) for each in lanes)
        sums = [builder.fadd(*pair) for pair in zip(sums, parts, strict=True)]
        begin = end
    return sums


def _loop(
    builder: Any,
    reach: tuple[Any, Any],
    number: Any,
    n_lanes: int,
    n_sums: int,
    terms: Terms,
) -> list[Any]:
    begin, end = reach
    zero = _Place(builder, begin, n_lanes).all(number(0.0))
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(n_sums)]
    with cgutils.for_range_slice(builder, begin, end, begin.type(n_lanes)) as (at, _):
        for total, term in zip(sums, terms(_Place(builder, at, n_lanes)), strict=True):
            builder.store(builder.fadd(builder.load(total), term), total)
    return [builder.load(total) for total in sums]


def _across(builder: Any, lanes: Any, n_lanes: int) -> Any:
    """Add up the lanes: the upper half to the lower one, and again."""
    if n_lanes == 1:
        return lanes
    while n_lanes > 1:
        n_lanes //= 2
        lower, upper = (
            _part(builder, lanes, range(begin, begin + n_lanes))
            for begin in (0, n_lanes)
        )
        lanes = builder.fadd(lower, upper)
    return builder.extract_element(lanes, ir.IntType(32)(0))


def _part(builder: Any, lanes: Any, chosen: range) -> Any:
    order = ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), list(chosen))
    return builder.shuffle_vector(lanes, ir.Constant(lanes.type, ir.Undefined), order)


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = a.type
    is_vector = isinstance(kind, ir.VectorType)
    number = kind.element if is_vector else kind
    name = "f32" if isinstance(number, ir.FloatType) else "f64"
    name = f"v{kind.count}{name}" if is_vector else name
    call = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.{name}"
    )
    return builder.call(call, [a, b, c])


def _rows(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the pointers to the numbers of arrays."""
    if any(kind.layout != "C" for kind in signature):
        raise TypingError("The rows must be C-contiguous.")
    return [
        context.make_array(kind)(context, builder, value).data
        for kind, value in zip(signature, arguments, strict=True)
    ]


def _length(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    array = context.make_array(kind)(context, builder, value)
    return cgutils.unpack_tuple(builder, array.shape, 1)[0]


@intrinsic
def fused(context, a, b, c):
    """Return a * b + c, rounded once where the processor can."""

    def code(context, builder, signature, arguments):
        return _fused(builder, *arguments)

    return a(a, a, a), code


@intrinsic
def row_sum(context, row):
    """Return the sum of a row, in its own type."""

    def code(context, builder, signature, arguments):
        (values,) = _rows(context, builder, signature.args, arguments)
        count = _length(context, builder, signature.args[0], arguments[0])

        def terms(at):
            return [at.load(values)]

        return _sums(builder, count, values.type.pointee, 1, terms)[0]

    return row.dtype(row), code


@intrinsic
def row_product(context, one, other):
    """Return the sum of the products of two rows, float64; the first's length."""

    def code(context, builder, signature, arguments):
        rows = _rows(context, builder, signature.args, arguments)
        count = _length(context, builder, signature.args[0], arguments[0])

        def terms(at):
            a, b = (at.double(at.load(row)) for row in rows)
            return [builder.fmul(a, b)]

        return _sums(builder, count, ir.DoubleType(), 1, terms)[0]

    return types.float64(one, other), code


@intrinsic
def row_push(context, slope, x, row):
    """Return the sum of slope_j (x - row_j); ``slope`` may be longer."""

    def code(context, builder, signature, arguments):
        slopes, _, rows = arguments
        (steep,) = _rows(context, builder, signature.args[:1], [slopes])
        (places,) = _rows(context, builder, signature.args[2:], [rows])
        count = _length(context, builder, signature.args[2], rows)
        here = arguments[1]

        def terms(at):
            apart = builder.fsub(at.all(here), at.load(places))
            return [builder.fmul(at.load(steep), apart)]

        return _sums(builder, count, here.type, 1, terms)[0]

    return x(slope, x, row), code


@intrinsic
def row_push_both(context, slope, x, row, back):
    """Return what :func:`row_push` does, and take each term from ``back``."""

    def code(context, builder, signature, arguments):
        slopes, here, rows, backs = arguments
        kinds = signature.args[0], signature.args[2], signature.args[3]
        steep, places, others = _rows(context, builder, kinds, [slopes, rows, backs])
        count = _length(context, builder, signature.args[2], rows)

        def terms(at):
            apart = builder.fsub(at.all(here), at.load(places))
            push = builder.fmul(at.load(steep), apart)
            at.store(builder.fsub(at.load(others), push), others)
            return [push]

        return _sums(builder, count, here.type, 1, terms)[0]

    return x(slope, x, row, back), code


@intrinsic
def row_powers(context, row, weights, u):
    """Return the sums of w p, w p^2 and w p^3, p = 1 / (1 + row + u), all float64."""
    result = types.UniTuple(types.float64, 3)

    def code(context, builder, signature, arguments):
        rows = _rows(context, builder, signature.args[:2], arguments[:2])
        count = _length(context, builder, signature.args[0], arguments[0])
        one = ir.DoubleType()(1.0)
        base = builder.fadd(one, arguments[2])

        def terms(at):
            apart, weight = (at.double(at.load(row)) for row in rows)
            p = builder.fdiv(at.all(one), builder.fadd(at.all(base), apart))
            first = builder.fmul(weight, p)
            second = builder.fmul(first, p)
            return [first, second, builder.fmul(second, p)]

        sums = _sums(builder, count, ir.DoubleType(), 3, terms, (LANES, 1))
        return context.make_tuple(builder, result, sums)

    return result(row, weights, types.float64), code


@intrinsic
def repel_row(context, here, landmarks, pull):
    """Return s = sum_a q(|x - z_a|) of one point and ds/dx; add ds/dz to ``pull``.

    q(u) = 1 / (1 + u^2).  ``here``: a tuple of d numbers; ``landmarks`` and ``pull``:
    tuples of d rows.  Returns d + 1 numbers.
    """
    result = types.UniTuple(here.dtype, len(here) + 1)

    def code(context, builder, signature, arguments):
        d = len(signature.args[0])
        x, rows, pulls = (cgutils.unpack_tuple(builder, part, d) for part in arguments)
        kinds = [signature.args[1].dtype] * d
        count = _length(context, builder, kinds[0], rows[0])
        z = _rows(context, builder, kinds, rows)
        kinds = [signature.args[2].dtype] * d
        p = _rows(context, builder, kinds, pulls)
        number = x[0].type
        one = number(1.0)

        def terms(at):
            apart = [builder.fsub(at.all(x[k]), at.load(z[k])) for k in range(d)]
            near = at.all(one)
            for each in apart:
                near = at.fused(each, each, near)
            q = builder.fdiv(at.all(one), near)
            steep = builder.fmul(q, builder.fadd(q, q))
            pushes = [builder.fmul(steep, each) for each in apart]
            for push, row in zip(pushes, p, strict=True):
                at.store(builder.fadd(at.load(row), push), row)
            return [q, *pushes]

        s, *sums = _sums(builder, count, number, d + 1, terms, (LANES, 1))
        down = [builder.fneg(each) for each in sums]
        return context.make_tuple(builder, result, [s, *down])

    return result(here, landmarks, pull), code
