"""Vectors for compiled loops, with sums in an order that no compiler changes.

In a loop ``spread(number, n)`` are n equal numbers and ``load(row, at, like)`` as many
of a row as ``like`` has: they have the arithmetic of numbers.  A sum over a row adds
:data:`WIDE` at a time, :func:`across` by halves, and what is left over one by one: a
compiler that may reorder ends in other last digits when code is just compiled than when
it is read back from numba's cache.  Divisions are exact, and a product is fused with
what it is added to only where it says so.  :class:`Lanes` write the instructions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.registry import register_default
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models

WIDE = 16
"""Numbers that are added side by side."""

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
        biased = self.builder.add(exponent, self._integer(self._format.bias))
        bits = self.builder.shl(biased, self._integer(self._format.mantissa_bits))
        return power * self._of(self.builder.bitcast(bits, self.value.type))

    def log(self) -> Lanes:
        """Return the natural logarithm of each, all above 0."""
        builder = self.builder
        shift = self._integer(self._format.mantissa_bits)
        bits = builder.bitcast(self.value, self._bits)
        above = builder.sub(bits, self._integer(self._format.root_half))
        exponent = builder.ashr(above, shift)
        mantissa = builder.sub(bits, builder.shl(exponent, shift))
        m = self._of(builder.bitcast(mantissa, self.value.type))
        n = self._of(builder.sitofp(exponent, self.value.type))
        w = (m - 1) / (m + 1)
        return w.fused(self._polynomial(w * w, self._format.atanh), n * _LOG2)

    def log1p(self) -> Lanes:
        """Return log(1 + x) of each; to a unit of 1's precision, where x is near 0."""
        return (1 + self).log()

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
        return self.builder.extract_element(lanes, ir.IntType(32)(0))

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

    def _integer(self, number: int) -> Any:
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
        """Call an LLVM intrinsic on these numbers and others of their type."""
        kind, numbers = self.value.type, [self.value, *others]
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(kind, [kind] * len(numbers)),
            f"llvm.{name}.v{self._count}{self._format.suffix}",
        )
        return self._of(self.builder.call(function, numbers))


class LanesType(types.Type):
    """The type of so many numbers side by side."""

    def __init__(self, number: Any, count: int) -> None:
        self.number, self.count = number, count
        super().__init__(f"{count} x {number}")


@register_default(LanesType)
def _model(manager: Any, kind: LanesType) -> models.PrimitiveModel:
    vector = ir.VectorType(manager[kind.number].get_value_type(), kind.count)
    return models.PrimitiveModel(manager, kind, vector)


def _spread(builder: Any, number: Any, count: int) -> Lanes:
    """Return lanes as they are, or a number in every one of ``count``."""
    if isinstance(number.type, ir.VectorType):
        return Lanes(builder, number)
    empty = ir.Constant(ir.VectorType(number.type, count), ir.Undefined)
    first = builder.insert_element(empty, number, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), count), None)
    return Lanes(builder, builder.shuffle_vector(first, empty, order))


def written(formula: Callable[..., Lanes], given: Sequence[Any], s: Any) -> Any:
    """Return what an intrinsic answers that writes a formula of lanes and numbers.

    ``given``: types of its arguments; ``s``: the type of the result.
    """
    count, numbers = getattr(s, "count", 1), (types.Float, LanesType)

    def code(context, builder, signature, arguments):
        pairs = zip(arguments, given, strict=True)
        each = (
            _spread(builder, a, count) for a, kind in pairs if isinstance(kind, numbers)
        )
        lanes = formula(*each)
        return lanes.value if isinstance(s, LanesType) else lanes.across()

    return s(*given), code


class _Operator(AbstractTemplate):
    """The type of an operator: not by ``overload``, which compiles a function each."""

    def generic(self, args, kws):
        kinds = [kind for kind in args if isinstance(kind, LanesType)]
        return kinds[0](*args) if kinds else None


def _compiled(operate: Any) -> None:
    infer_global(operate)(_Operator)

    def code(context, builder, signature, arguments):
        _, write = written(operate, signature.args, signature.return_type)
        return write(context, builder, signature, arguments)

    lanes, number = LanesType, types.Float
    for both in ((lanes, lanes), (lanes, number), (number, lanes)):
        lower_builtin(operate, *both)(code)


for _each in (operator.add, operator.sub, operator.mul, operator.truediv):
    _compiled(_each)


@infer_global(len)
class _Length(AbstractTemplate):
    """The type of ``len(lanes)``: by ``overload`` each count is compiled, as above."""

    def generic(self, args, kws):
        is_lanes = len(args) == 1 and isinstance(args[0], LanesType)
        return types.intp(*args) if is_lanes else None


@lower_builtin(len, LanesType)
def _write_length(context, builder, signature, arguments):
    return context.get_constant(types.intp, signature.args[0].count)


@intrinsic
def fused(context, a, b, c):
    """Return a * b + c, rounded once; numbers or lanes."""
    return written(Lanes.fused, (a, b, c), c)


@intrinsic
def double(context, numbers):
    """Return lanes as float64."""
    kind = LanesType(types.float64, numbers.count)
    return written(Lanes.double, (numbers,), kind)


@intrinsic(prefer_literal=True)
def spread(context, number, count):
    """Return ``count`` equal numbers; ``count`` is a constant."""
    kind = LanesType(number, count.literal_value)
    return written(lambda lanes: lanes, (number, count), kind)


@intrinsic
def join(context, a, b, c, d):
    """Return four numbers of one type as lanes."""
    kind = LanesType(a, 4)

    def code(context, builder, signature, arguments):
        lanes = ir.Constant(context.get_value_type(kind), ir.Undefined)
        for place, number in enumerate(arguments):
            lanes = builder.insert_element(lanes, number, ir.IntType(32)(place))
        return lanes

    return kind(a, b, c, d), code


@intrinsic
def across(context, lanes):
    """Return the sum of lanes."""
    return written(lambda lanes: lanes, (lanes,), lanes.number)


def _element(context: Any, builder: Any, kind: Any, given: Any, vector: Any) -> Any:
    """Return the pointer to a vector; ``given``: the array and an index."""
    array = context.make_array(kind)(context, builder, given[0])
    shape, strides, index = (
        cgutils.unpack_tuple(builder, each, kind.ndim)
        for each in (array.shape, array.strides, given[1])
    )
    pointer = cgutils.get_item_pointer2(
        context, builder, array.data, shape, strides, "C", index
    )
    return builder.bitcast(pointer, vector.as_pointer())


def _numbers(array: Any) -> tuple[Any, int]:
    """Return the type of an index into an array, and the bytes of an element."""
    if array.layout != "C":
        raise TypingError("Arrays must be C-contiguous.")
    return types.UniTuple(types.intp, array.ndim), array.dtype.bitwidth // 8


@intrinsic
def load(context, array, index, like):
    """Return numbers of an array from an index on, as many as ``like`` has."""
    kind, (index, size) = LanesType(array.dtype, like.count), _numbers(array)

    def code(context, builder, signature, arguments):
        vector = context.get_value_type(kind)
        pointer = _element(context, builder, array, arguments, vector)
        return builder.load(pointer, align=size)

    return kind(array, index, like), code


@intrinsic
def store(context, lanes, array, index):
    """Write lanes into an array from an index on."""
    index, size = _numbers(array)

    def code(context, builder, signature, arguments):
        value, *given = arguments
        pointer = _element(context, builder, array, given, value.type)
        builder.store(value, pointer, align=size)
        return context.get_dummy_value()

    return types.void(lanes, array, index), code
