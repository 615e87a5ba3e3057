"""Vectors for compiled loops, with sums in an order that no compiler changes.

In a loop ``broadcast(number, n)`` is a vector of n equal numbers, and ``load(row, at,
like)`` reads as many numbers of a row as ``like`` has lanes; vectors have the
arithmetic of numbers.  A sum over a row adds :data:`WIDE` numbers at a time,
:func:`sum_lanes` adds lanes by halves, and the rest is added one by one.  A compiler
that may reorder sums gives other last digits in newly compiled code than in code read
from numba's cache.  Divisions are exact, and products are fused with sums only by
:func:`fma`.  :class:`Lanes` generates the instructions.
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
"""Numbers in a vector of a loop's main part."""

STRICT = {"nnan", "ninf", "nsz"}
"""numba's ``fastmath`` flags of a loop whose digits matter: flags that change none."""

# Library calls do not vectorise, and round differently on each processor; these
# polynomials vectorise, with the same bits everywhere.  exp(x) = 2^n 2^f with
# |f| <= 1/2; log(x) = n log 2 + 2 atanh((m - 1) / (m + 1)) with x = 2^n m.
_LOG2 = 0.6931471805599453


class _Format(NamedTuple):
    """A floating-point type: its bit layout, and polynomials for exp and log."""

    bits: int
    suffix: str
    bias: int
    mantissa_bits: int
    root_half: int
    exp: list[float]
    atanh: list[float]


def _compute_exp_coefficients(n: int) -> list[float]:
    """Return the first ``n`` Taylor coefficients of 2^x: log(2)^k / k!."""
    terms = [1.0]
    for k in range(1, n):
        terms.append(terms[-1] * _LOG2 / k)
    return terms


def _compute_atanh_coefficients(n: int) -> list[float]:
    return [2 / (2 * k + 1) for k in range(n)]


_FORMATS = {
    "float": _Format(
        32,
        "f32",
        127,
        23,
        0x3F3504F3,
        _compute_exp_coefficients(7),
        _compute_atanh_coefficients(5),
    ),
    "double": _Format(
        64,
        "f64",
        1023,
        52,
        0x3FE6A09E667F3BCD,
        _compute_exp_coefficients(14),
        _compute_atanh_coefficients(12),
    ),
}


def _make_operator(name: str, is_reversed: bool = False) -> Any:
    """Return a method of :class:`Lanes` that calls an instruction of the LLVM builder.

    ``name``: the instruction, such as "fsub"; ``is_reversed`` exchanges the operands.
    """

    def operate(self: Lanes, other: Any) -> Lanes:
        both = self.value, self._to_lanes_value(other)
        instruction = getattr(self.builder, name)
        return self._wrap(instruction(*(both[::-1] if is_reversed else both)))

    return operate


class Lanes:
    """An LLVM vector of numbers while a loop is compiled, with arithmetic operators.

    Relative errors of ``exp``, ``log`` and ``log1p`` are below 1e-6 for float32, 4e-16
    for float64, and |x|/10 units of the type's precision.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value
        self._count = value.type.count
        self._format = _FORMATS[str(value.type.element)]

    __add__ = __radd__ = _make_operator("fadd")
    __sub__, __rsub__ = _make_operator("fsub"), _make_operator("fsub", is_reversed=True)
    __mul__ = __rmul__ = _make_operator("fmul")
    __truediv__, __rtruediv__ = (
        _make_operator("fdiv"),
        _make_operator("fdiv", is_reversed=True),
    )

    def __neg__(self) -> Lanes:
        return self._wrap(self.builder.fneg(self.value))

    def __pow__(self, power: int) -> Lanes:
        """Return an integer power; TypeError for other powers or below 0."""
        if power < 0 or power != int(power):
            raise TypeError(f"Only powers 0, 1, 2, ... are compiled, not {power}.")
        result = self._wrap(self._to_lanes_value(1))
        for factor in range(power):
            result = result * self if factor else self
        return result

    def fma(self, factor: Any, term: Any) -> Lanes:
        """Return self * factor + term, rounded once, on any processor."""
        return self._call_intrinsic(
            "fma", self._to_lanes_value(factor), self._to_lanes_value(term)
        )

    def to_float64(self) -> Lanes:
        """Return the numbers as float64, themselves if they have that type."""
        wide = ir.VectorType(ir.DoubleType(), self._count)
        if self.value.type == wide:
            return self
        return self._wrap(self.builder.fpext(self.value, wide))

    def exp(self) -> Lanes:
        """Return the exponential of each number.

        Results are clamped to the range of normal numbers, without 0 or infinity.
        """
        largest = self._format.bias - 1.0
        t = (
            (self * (1 / _LOG2))
            ._replace_unless(">", -largest)
            ._replace_unless("<", largest)
        )
        whole = (t + 0.5)._call_intrinsic("floor")
        power = self._evaluate_polynomial(t - whole, self._format.exp)
        exponent = self.builder.fptosi(whole.value, self._integer_type)
        biased = self.builder.add(exponent, self._broadcast_integer(self._format.bias))
        bits = self.builder.shl(
            biased, self._broadcast_integer(self._format.mantissa_bits)
        )
        return power * self._wrap(self.builder.bitcast(bits, self.value.type))

    def log(self) -> Lanes:
        """Return the natural logarithm of each number; numbers must be above 0."""
        builder = self.builder
        shift = self._broadcast_integer(self._format.mantissa_bits)
        bits = builder.bitcast(self.value, self._integer_type)
        above = builder.sub(bits, self._broadcast_integer(self._format.root_half))
        exponent = builder.ashr(above, shift)
        mantissa = builder.sub(bits, builder.shl(exponent, shift))
        m = self._wrap(builder.bitcast(mantissa, self.value.type))
        n = self._wrap(builder.sitofp(exponent, self.value.type))
        w = (m - 1) / (m + 1)
        return w.fma(self._evaluate_polynomial(w * w, self._format.atanh), n * _LOG2)

    def log1p(self) -> Lanes:
        """Return log(1 + x) of each number; near x = 0 the error is one unit of 1."""
        return (1 + self).log()

    def sum_lanes(self) -> Any:
        """Return the sum of the lanes, a number, by repeatedly adding the upper half.

        The number of lanes is a power of two.
        """
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
    def _integer_type(self) -> Any:
        return ir.VectorType(ir.IntType(self._format.bits), self._count)

    def _wrap(self, value: Any) -> Lanes:
        return Lanes(self.builder, value)

    def _to_lanes_value(self, other: Any) -> Any:
        """Return the LLVM value of other lanes, or of a Python number in every lane."""
        if isinstance(other, Lanes):
            return other.value
        kind = self.value.type
        return ir.Constant(kind, [kind.element(float(other))] * self._count)

    def _broadcast_integer(self, number: int) -> Any:
        """Return an LLVM vector of ``number``, integers as wide as the lanes."""
        return ir.Constant(
            self._integer_type, [self._integer_type.element(number)] * self._count
        )

    def _evaluate_polynomial(self, x: Lanes, coefficients: Sequence[float]) -> Lanes:
        """Return the polynomial of ``x`` by Horner's scheme.

        ``coefficients`` begin with the constant term.
        """
        total = self._wrap(self._to_lanes_value(coefficients[-1]))
        for coefficient in reversed(coefficients[:-1]):
            total = x.fma(total, coefficient)
        return total

    def _replace_unless(self, comparison: str, other: float) -> Lanes:
        """Return these numbers, or ``other`` where the comparison with it is false.

        ``comparison``: an operator such as "<", false for NaN.
        """
        bound = self._to_lanes_value(other)
        is_it = self.builder.fcmp_ordered(comparison, self.value, bound)
        return self._wrap(self.builder.select(is_it, self.value, bound))

    def _call_intrinsic(self, name: str, *others: Any) -> Lanes:
        """Return the result of an LLVM intrinsic of these and other numbers.

        ``name``: such as "fma"; ``others``: LLVM vectors of the same type.
        """
        kind, numbers = self.value.type, [self.value, *others]
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(kind, [kind] * len(numbers)),
            f"llvm.{name}.v{self._count}{self._format.suffix}",
        )
        return self._wrap(self.builder.call(function, numbers))


class LanesType(types.Type):
    """The numba type of a vector of ``count`` numbers of one type."""

    def __init__(self, number: Any, count: int) -> None:
        self.number, self.count = number, count
        super().__init__(f"{count} x {number}")


@register_default(LanesType)
def _make_data_model(manager: Any, kind: LanesType) -> models.PrimitiveModel:
    """Return numba's data model of lanes: an LLVM vector."""
    vector = ir.VectorType(manager[kind.number].get_value_type(), kind.count)
    return models.PrimitiveModel(manager, kind, vector)


def _broadcast_to_lanes(builder: Any, number: Any, count: int) -> Lanes:
    """Return an LLVM vector as :class:`Lanes`, or a number in ``count`` lanes."""
    if isinstance(number.type, ir.VectorType):
        return Lanes(builder, number)
    empty = ir.Constant(ir.VectorType(number.type, count), ir.Undefined)
    first = builder.insert_element(empty, number, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), count), None)
    return Lanes(builder, builder.shuffle_vector(first, empty, order))


def make_intrinsic(
    formula: Callable[..., Lanes], argument_types: Sequence[Any], result_type: Any
) -> Any:
    """Return the signature and the code of a numba intrinsic that computes a formula.

    ``formula`` takes and returns lanes.  Numbers become lanes of ``result_type``'s
    count; arguments that are neither lanes nor numbers are not passed on.  Lanes are
    summed where ``result_type`` is a number.
    """
    count, numbers = getattr(result_type, "count", 1), (types.Float, LanesType)

    def code(context, builder, signature, arguments):
        pairs = zip(arguments, argument_types, strict=True)
        each = (
            _broadcast_to_lanes(builder, a, count)
            for a, kind in pairs
            if isinstance(kind, numbers)
        )
        lanes = formula(*each)
        return lanes.value if isinstance(result_type, LanesType) else lanes.sum_lanes()

    return result_type(*argument_types), code


class _OperatorTyping(AbstractTemplate):
    """The typing of an operator of lanes; ``overload`` would compile functions."""

    def generic(self, args, kws):
        kinds = [kind for kind in args if isinstance(kind, LanesType)]
        return kinds[0](*args) if kinds else None


def _register_operator(operate: Any) -> None:
    """Teach numba the type and the code of an operator, such as ``operator.add``.

    Its operands are lanes, or lanes and a number.
    """
    infer_global(operate)(_OperatorTyping)

    def code(context, builder, signature, arguments):
        _, write = make_intrinsic(operate, signature.args, signature.return_type)
        return write(context, builder, signature, arguments)

    lanes, number = LanesType, types.Float
    for both in ((lanes, lanes), (lanes, number), (number, lanes)):
        lower_builtin(operate, *both)(code)


for _operator in (operator.add, operator.sub, operator.mul, operator.truediv):
    _register_operator(_operator)


@infer_global(len)
class _LengthTyping(AbstractTemplate):
    """The typing of ``len(lanes)``; ``overload`` would compile a function each."""

    def generic(self, args, kws):
        is_lanes = len(args) == 1 and isinstance(args[0], LanesType)
        return types.intp(*args) if is_lanes else None


@lower_builtin(len, LanesType)
def _lower_length(context, builder, signature, arguments):
    """Return the number of lanes, a constant of the type."""
    return context.get_constant(types.intp, signature.args[0].count)


@intrinsic
def fma(context, a, b, c):
    """Return a * b + c, rounded once, of numbers or lanes."""
    return make_intrinsic(Lanes.fma, (a, b, c), c)


@intrinsic
def to_float64(context, numbers):
    """Return lanes as float64."""
    kind = LanesType(types.float64, numbers.count)
    return make_intrinsic(Lanes.to_float64, (numbers,), kind)


@intrinsic(prefer_literal=True)
def broadcast(context, number, count):
    """Return lanes of ``count`` equal numbers; ``count`` is a constant."""
    kind = LanesType(number, count.literal_value)
    return make_intrinsic(lambda lanes: lanes, (number, count), kind)


@intrinsic
def pack_lanes(context, a, b, c, d):
    """Return four numbers of one type as four lanes, in the order of the arguments."""
    kind = LanesType(a, 4)

    def code(context, builder, signature, arguments):
        lanes = ir.Constant(context.get_value_type(kind), ir.Undefined)
        for place, number in enumerate(arguments):
            lanes = builder.insert_element(lanes, number, ir.IntType(32)(place))
        return lanes

    return kind(a, b, c, d), code


@intrinsic
def sum_lanes(context, lanes):
    """Return the sum of the lanes as a number."""
    return make_intrinsic(lambda lanes: lanes, (lanes,), lanes.number)


def _find_vector_pointer(
    context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Any
) -> Any:
    """Return the pointer to a vector of the type ``vector`` at an index of an array.

    ``kind``: the array's numba type; ``array`` and ``index``: LLVM values.
    """
    array = context.make_array(kind)(context, builder, array)
    shape, strides, index = (
        cgutils.unpack_tuple(builder, each, kind.ndim)
        for each in (array.shape, array.strides, index)
    )
    pointer = cgutils.get_item_pointer2(
        context, builder, array.data, shape, strides, "C", index
    )
    return builder.bitcast(pointer, vector.as_pointer())


def _index_type_and_item_size(array: Any) -> tuple[Any, int]:
    """Return the type of an array's indices, and the bytes of an element.

    Raises TypingError for an array that is not C-contiguous.
    """
    if array.layout != "C":
        raise TypingError("Arrays must be C-contiguous.")
    return types.UniTuple(types.intp, array.ndim), array.dtype.bitwidth // 8


@intrinsic
def load(context, array, index, like):
    """Return numbers of an array from an index on, as many as ``like`` has lanes.

    ``index``: a tuple of one integer for each axis; the array must be C-contiguous.
    Bounds are not checked.
    """
    kind, (index, size) = (
        LanesType(array.dtype, like.count),
        _index_type_and_item_size(array),
    )

    def code(context, builder, signature, arguments):
        vector = context.get_value_type(kind)
        numbers, at, _ = arguments
        pointer = _find_vector_pointer(context, builder, array, numbers, at, vector)
        return builder.load(pointer, align=size)

    return kind(array, index, like), code


@intrinsic
def store(context, lanes, array, index):
    """Write lanes into a C-contiguous array from an index on.

    ``index``: a tuple of one integer for each axis.  Bounds are not checked.
    """
    index, size = _index_type_and_item_size(array)

    def code(context, builder, signature, arguments):
        value, numbers, at = arguments
        pointer = _find_vector_pointer(context, builder, array, numbers, at, value.type)
        builder.store(value, pointer, align=size)
        return context.get_dummy_value()

    return types.void(lanes, array, index), code
