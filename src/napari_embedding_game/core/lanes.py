"""Numbers side by side, and sums over rows in an order that no compiler changes.

:class:`Lanes` are what a pair function is given while a loop is compiled: each
operation writes the instruction for so many numbers at once.  In a sum a term goes to
the lane of its place, the lanes are added by halves, and what is left over follows one
by one: a compiler that may reorder ends in other last digits when code is just compiled
than when it is read back from numba's cache.  Divisions are exact, and a product is
fused with what it is added to only where it says so.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
WIDTHS = (LANES, 1)
"""Numbers that are added side by side, and then those left over."""

STRICT = {"nnan", "ninf", "nsz"}
"""numba's ``fastmath`` for loops that decide anything: nothing that changes digits."""

# Library calls do not vectorise, and round by the processor; these polynomials do
# neither.  exp(x) = 2^n 2^f with |f| <= 1/2; log(x) = n log 2 + 2 atanh((m - 1) /
# (m + 1)) with x = 2^n m.
_LOG2 = 0.6931471805599453


class _Format(NamedTuple):
    """A type of numbers: its exponent and mantissa, and what it is rounded after."""

    bits: int
    suffix: str
    bias: int
    mantissa_bits: int
    root_half: int
    exp: list[float]
    atanh: list[float]


def _exp_terms(n: int) -> list[float]:
    terms = [1.0]
    for k in range(1, n):
        terms.append(terms[-1] * _LOG2 / k)
    return terms


def _atanh_terms(n: int) -> list[float]:
    return [2 / (2 * k + 1) for k in range(n)]


_FORMATS = {
    "float": _Format(32, "f32", 127, 23, 0x3F3504F3, _exp_terms(7), _atanh_terms(5)),
    "double": _Format(
        64, "f64", 1023, 52, 0x3FE6A09E667F3BCD, _exp_terms(14), _atanh_terms(12)
    ),
}


def _operation(name: str, is_reversed: bool = False) -> Any:
    def operate(self: Lanes, other: Any) -> Lanes:
        both = self.value, self._like(other)
        instruction = getattr(self.builder, name)
        return self._of(instruction(*(both[::-1] if is_reversed else both)))

    return operate


class Lanes:
    """Numbers of one type side by side, a vector, with the arithmetic of a formula.

    ``exp``, ``log`` and ``log1p`` of float32 are good to 1e-6, and to |x|/10 units of
    its precision; those of float64 to 4e-16 and the same.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value
        self._count = value.type.count
        self._format = _FORMATS[str(value.type.element)]

    __add__ = __radd__ = _operation("fadd")
    __sub__, __rsub__ = _operation("fsub"), _operation("fsub", is_reversed=True)
    __mul__ = __rmul__ = _operation("fmul")
    __truediv__, __rtruediv__ = _operation("fdiv"), _operation("fdiv", is_reversed=True)

    def __neg__(self) -> Lanes:
        return self._of(self.builder.fneg(self.value))

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
        wide = ir.VectorType(ir.DoubleType(), self._count)
        if self.value.type == wide:
            return self
        return self._of(self.builder.fpext(self.value, wide))

    def exp(self) -> Lanes:
        """Return e to the power of each."""
        largest = self._format.bias - 1.0
        t = (self * (1 / _LOG2))._choose(">", -largest)._choose("<", largest)
        whole = (t + 0.5)._call("floor")
        power = self._polynomial(t - whole, self._format.exp)
        exponent = self.builder.fptosi(whole.value, self._bits)
        biased = self.builder.add(exponent, self._whole(self._format.bias))
        bits = self.builder.shl(biased, self._whole(self._format.mantissa_bits))
        return power * self._of(self.builder.bitcast(bits, self.value.type))

    def log(self) -> Lanes:
        """Return the natural logarithm of each, all above 0."""
        builder = self.builder
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

    def one(self) -> Any:
        """Return the number in the first lane."""
        return self.builder.extract_element(self.value, ir.IntType(32)(0))

    def across(self) -> Any:
        """Return the sum of the lanes: the upper half added to the lower one, again."""
        lanes = self.value
        while (half := lanes.type.count // 2) > 0:
            parts = []
            for begin in (0, half):
                chosen = list(range(begin, begin + half))
                order = ir.Constant(ir.VectorType(ir.IntType(32), half), chosen)
                none = ir.Constant(lanes.type, ir.Undefined)
                parts.append(self.builder.shuffle_vector(lanes, none, order))
            lanes = self.builder.fadd(*parts)
        return self._of(lanes).one()

    @property
    def _bits(self) -> Any:
        return ir.VectorType(ir.IntType(self._format.bits), self._count)

    def _of(self, value: Any) -> Lanes:
        return Lanes(self.builder, value)

    def _like(self, other: Any) -> Any:
        """Return other lanes, or a number in every lane."""
        if isinstance(other, Lanes):
            return other.value
        kind = self.value.type
        return ir.Constant(kind, [kind.element(float(other))] * self._count)

    def _whole(self, number: int) -> Any:
        return ir.Constant(self._bits, [self._bits.element(number)] * self._count)

    def _polynomial(self, x: Lanes, coefficients: Sequence[float]) -> Lanes:
        total = self._of(self._like(coefficients[-1]))
        for coefficient in reversed(coefficients[:-1]):
            total = x.fused(total, coefficient)
        return total

    def _choose(self, comparison: str, other: float) -> Lanes:
        """Return the numbers of which the comparison holds, and the other one."""
        bound = self._like(other)
        is_it = self.builder.fcmp_ordered(comparison, self.value, bound)
        return self._of(self.builder.select(is_it, self.value, bound))

    def _call(self, name: str, *others: Any) -> Lanes:
        """Call one of LLVM's own functions on these numbers and others like them."""
        kind, numbers = self.value.type, [self.value, *others]
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(kind, [kind] * len(numbers)),
            f"llvm.{name}.v{self._count}{self._format.suffix}",
        )
        return self._of(self.builder.call(function, numbers))


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
        empty = ir.Constant(ir.VectorType(number.type, self._n_lanes), ir.Undefined)
        first = self._builder.insert_element(empty, number, ir.IntType(32)(0))
        order = ir.Constant(ir.VectorType(ir.IntType(32), self._n_lanes), None)
        return Lanes(self._builder, self._builder.shuffle_vector(first, empty, order))

    def _at(self, row: Any) -> tuple[Any, int]:
        number = row.type.pointee
        at = self._builder.gep(row, [self._index])
        kind = ir.VectorType(number, self._n_lanes).as_pointer()
        return self._builder.bitcast(at, kind), _FORMATS[str(number)].bits // 8


Terms = Callable[[Place], Sequence[Lanes]]
"""What each sum gains at a place."""


def row_sums(
    builder: Any,
    count: Any,
    number: Any,
    n_sums: int,
    terms: Terms,
    widths: Sequence[int] = WIDTHS,
) -> list[Any]:
    """Build the loops over rows of ``count`` numbers; return the sums of the terms.

    ``number``: the terms' type.
    """
    sums, begin = [number(0.0)] * n_sums, count.type(0)
    for width in widths:
        end = builder.and_(count, count.type(-width))
        zero = Place(builder, begin, width).all(number(0.0)).value
        lanes = [cgutils.alloca_once_value(builder, zero) for _ in range(n_sums)]
        step = count.type(width)
        with cgutils.for_range_slice(builder, begin, end, step) as (at, _):
            for each, term in zip(lanes, terms(Place(builder, at, width)), strict=True):
                builder.store(builder.fadd(builder.load(each), term.value), each)
        sums = [
            builder.fadd(total, Lanes(builder, builder.load(each)).across())
            for total, each in zip(sums, lanes, strict=True)
        ]
        begin = end
    return sums


@intrinsic
def fused(context, a, b, c):
    """Return a * b + c, rounded once."""

    def code(context, builder, signature, arguments):
        place = Place(builder, None, 1)
        one, *others = (place.all(each) for each in arguments)
        return one.fused(*others).one()

    return a(a, a, a), code
