"""Numbers side by side, and sums over rows in an order that no compiler changes.

:class:`Lanes` are the numbers that a pair function is given while a loop is compiled:
each operation on them writes the instruction for :data:`LANES` numbers at once, or for
one.  So a formula is written once, see :mod:`pair_functions`.

A sum of single numbers waits for each addition.  A compiler that may reorder it
(``reassoc`` in numba's ``fastmath``) adds several at a time, but how many depends on
what it has inlined: code that was just compiled ends in other last digits than the
same code read back from numba's cache, and a game in another map.  So the sums that
decide anything are written here as vectors: a term goes to the lane of its place, the
lanes are added by halves, and what is left over follows one by one.

Divisions are exact, and not by an estimate of 1 / x as ``arcp`` and ``afn`` allow: that
differs between vectors and single numbers, and between processors.  A product is fused
with what it is added to where it says so and the processor can.

All arrays are C-contiguous and of one type, float32 or float64.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16

STRICT = {"nnan", "ninf", "nsz"}
"""numba's ``fastmath`` for loops that decide anything: nothing that changes digits."""

# Library calls do not vectorise, and round by the processor; these polynomials do
# neither.  exp(x) = 2^n 2^f with |f| <= 1/2; log(x) = n log 2 + 2 atanh((m - 1) /
# (m + 1)) with x = 2^n m.
_LOG2 = 0.6931471805599453


class _Format(NamedTuple):
    """A type of numbers: its exponent and mantissa, and what it is rounded after."""

    bias: int
    mantissa_bits: int
    root_half: int
    exp: list[float]
    atanh: list[float]


def _format(bias: int, bits: int, root_half: int, n_exp: int, n_atanh: int) -> _Format:
    exp = [1.0]
    for k in range(1, n_exp):
        exp.append(exp[-1] * _LOG2 / k)
    return _Format(
        bias, bits, root_half, exp, [2 / (2 * k + 1) for k in range(n_atanh)]
    )


_SINGLE = _format(127, 23, 0x3F3504F3, 7, 5)
_DOUBLE = _format(1023, 52, 0x3FE6A09E667F3BCD, 14, 12)


class Lanes:
    """Numbers of one type side by side, with the arithmetic of a formula.

    ``exp``, ``log`` and ``log1p`` of float32 are good to 1e-6, and to |x|/10 units of
    its precision; those of float64 to 4e-16 and the same.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self._builder = builder
        self.value = value

    def __add__(self, other: Any) -> Lanes:
        return self._of(self._builder.fadd(self.value, self._like(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Lanes:
        return self._of(self._builder.fsub(self.value, self._like(other)))

    def __rsub__(self, other: Any) -> Lanes:
        return self._of(self._builder.fsub(self._like(other), self.value))

    def __mul__(self, other: Any) -> Lanes:
        return self._of(self._builder.fmul(self.value, self._like(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Lanes:
        return self._of(self._builder.fdiv(self.value, self._like(other)))

    def __rtruediv__(self, other: Any) -> Lanes:
        return self._of(self._builder.fdiv(self._like(other), self.value))

    def __neg__(self) -> Lanes:
        return self._of(self._builder.fneg(self.value))

    def __pow__(self, power: int) -> Lanes:
        """Return a whole power, at least 0."""
        if power < 0 or power != int(power):
            raise TypeError(f"Only powers 0, 1, 2, ... are compiled, not {power}.")
        result = self._of(self._like(1))
        for factor in range(power):
            result = result * self if factor else self
        return result

    def fused(self, factor: Any, term: Any) -> Lanes:
        """Return self * factor + term, rounded once, on processors without it too."""
        return self._call("fma", self._like(factor), self._like(term))

    def double(self) -> Lanes:
        """Return the numbers as float64."""
        if self._is_double:
            return self
        wide = ir.DoubleType()
        wide = wide if self._n_lanes == 1 else ir.VectorType(wide, self._n_lanes)
        return self._of(self._builder.fpext(self.value, wide))

    def exp(self) -> Lanes:
        """Return e to the power of each."""
        largest = self._format.bias - 1.0
        t = (self * (1 / _LOG2))._choose(">", -largest)._choose("<", largest)
        whole = (t + 0.5)._call("floor")
        power = self._polynomial(t - whole, self._format.exp)
        exponent = self._builder.fptosi(whole.value, self._bits)
        biased = self._builder.add(exponent, self._whole(self._format.bias))
        bits = self._builder.shl(biased, self._whole(self._format.mantissa_bits))
        return power * self._of(self._builder.bitcast(bits, self.value.type))

    def log(self) -> Lanes:
        """Return the natural logarithm of each, all above 0."""
        builder = self._builder
        shift = self._whole(self._format.mantissa_bits)
        bits = builder.bitcast(self.value, self._bits)
        above = builder.sub(bits, self._whole(self._format.root_half))
        exponent = builder.ashr(above, shift)
        mantissa = builder.sub(bits, builder.shl(exponent, shift))
        m = self._of(builder.bitcast(mantissa, self.value.type))
        n = self._of(builder.sitofp(exponent, self.value.type))
        w = (m - 1) / (m + 1)
        return w.fused(self._polynomial(w * w, self._format.atanh), n * _LOG2)

    def log1p(self) -> Lanes:
        """Return log(1 + x) of each; to a unit of 1's precision, where x is near 0."""
        return (1 + self).log()

    @property
    def _n_lanes(self) -> int:
        kind = self.value.type
        return kind.count if isinstance(kind, ir.VectorType) else 1

    @property
    def _number(self) -> Any:
        kind = self.value.type
        return kind.element if isinstance(kind, ir.VectorType) else kind

    @property
    def _is_double(self) -> bool:
        return isinstance(self._number, ir.DoubleType)

    @property
    def _bits(self) -> Any:
        whole = ir.IntType(64 if self._is_double else 32)
        return whole if self._n_lanes == 1 else ir.VectorType(whole, self._n_lanes)

    def _of(self, value: Any) -> Lanes:
        return Lanes(self._builder, value)

    def _like(self, other: Any) -> Any:
        """Return other lanes, or a number in every lane."""
        if isinstance(other, Lanes):
            return other.value
        return _everywhere(self.value.type, self._number(float(other)))

    @property
    def _format(self) -> _Format:
        return _DOUBLE if self._is_double else _SINGLE

    def _whole(self, number: int) -> Any:
        bits = self._bits
        kind = bits.element if isinstance(bits, ir.VectorType) else bits
        return _everywhere(bits, kind(number))

    def _polynomial(self, x: Lanes, coefficients: Sequence[float]) -> Lanes:
        total = self._of(self._like(coefficients[-1]))
        for coefficient in reversed(coefficients[:-1]):
            total = x.fused(total, coefficient)
        return total

    def _choose(self, comparison: str, other: float) -> Lanes:
        """Return the numbers of which the comparison holds, and the other one."""
        bound = self._like(other)
        is_it = self._builder.fcmp_ordered(comparison, self.value, bound)
        return self._of(self._builder.select(is_it, self.value, bound))

    def _call(self, name: str, *others: Any) -> Lanes:
        """Call one of LLVM's own functions on these numbers and others like them."""
        kind = self.value.type
        suffix = "f64" if self._is_double else "f32"
        suffix = suffix if self._n_lanes == 1 else f"v{self._n_lanes}{suffix}"
        numbers = [self.value, *others]
        function = cgutils.get_or_insert_function(
            self._builder.module,
            ir.FunctionType(kind, [kind] * len(numbers)),
            f"llvm.{name}.{suffix}",
        )
        return self._of(self._builder.call(function, numbers))


def _everywhere(kind: Any, constant: Any) -> Any:
    """Return a constant in every lane of a type."""
    if not isinstance(kind, ir.VectorType):
        return constant
    return ir.Constant(kind, [constant] * kind.count)


class Place:
    """A place in rows: ``n_lanes`` numbers from an index on."""

    def __init__(self, builder: Any, index: Any, n_lanes: int) -> None:
        self._builder = builder
        self._index = index
        self._n_lanes = n_lanes

    def load(self, row: Any) -> Lanes:
        """Return the numbers of a row, given by the pointer to its first."""
        at, align = self._at(row)
        return Lanes(self._builder, self._builder.load(at, align=align))

    def store(self, numbers: Lanes, row: Any) -> None:
        """Write the numbers of a row."""
        at, align = self._at(row)
        self._builder.store(numbers.value, at, align=align)

    def all(self, number: Any) -> Lanes:
        """Return a number in every lane."""
        if self._n_lanes == 1:
            return Lanes(self._builder, number)
        builder, wide = self._builder, self._type_of(number.type)
        empty = ir.Constant(wide, ir.Undefined)
        first = builder.insert_element(empty, number, ir.IntType(32)(0))
        order = ir.Constant(ir.VectorType(ir.IntType(32), self._n_lanes), None)
        return Lanes(builder, builder.shuffle_vector(first, empty, order))

    def _at(self, row: Any) -> tuple[Any, int]:
        number = row.type.pointee
        at = self._builder.gep(row, [self._index])
        at = self._builder.bitcast(at, self._type_of(number).as_pointer())
        return at, 4 if isinstance(number, ir.FloatType) else 8

    def _type_of(self, number: Any) -> Any:
        return number if self._n_lanes == 1 else ir.VectorType(number, self._n_lanes)


Terms = Callable[[Place], Sequence[Lanes]]
"""What each sum gains at a place."""


def row_sums(
    builder: Any, count: Any, number: Any, n_sums: int, terms: Terms
) -> list[Lanes]:
    """Build the loops over rows of ``count`` numbers; return the sums of the terms.

    ``number``: the terms' type.
    """
    sums = [Lanes(builder, number(0.0))] * n_sums
    begin = count.type(0)
    for width in (LANES, 1):
        end = builder.and_(count, count.type(-width))
        lanes = _loop(builder, (begin, end), number, width, n_sums, terms)
        sums = [
            total + Lanes(builder, _across(builder, each, width))
            for total, each in zip(sums, lanes, strict=True)
        ]
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
    zero = Place(builder, begin, n_lanes).all(number(0.0)).value
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(n_sums)]
    with cgutils.for_range_slice(builder, begin, end, begin.type(n_lanes)) as (at, _):
        for total, term in zip(sums, terms(Place(builder, at, n_lanes)), strict=True):
            builder.store(builder.fadd(builder.load(total), term.value), total)
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


@intrinsic
def fused(context, a, b, c):
    """Return a * b + c, rounded once."""

    def code(context, builder, signature, arguments):
        one, *others = (Lanes(builder, each) for each in arguments)
        return one.fused(*others).value

    return a(a, a, a), code
