"""Loops over the pairs of a sparse row in vector code, which the compiler does not find by itself.

A pair is two neighbouring columns: one index, two weights, and one load or store of both entries of a vector; of four
numbers where two vectors lie side by side. Loops are written for LLVM; multiply and add may be rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_DOUBLE, _LONG, _SHORT = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_PAIR = ir.VectorType(_DOUBLE, 2)
_FUSED = ("contract",)
# One sum would wait for itself at every pair.
_SUMS = 4


@contextmanager
def _while_below(builder: Any, counter: Any, end: Any, ahead: int) -> Iterator[Any]:
    """A loop over counter as long as counter + ahead < end; the body moves the counter."""
    test, body, after = (builder.append_basic_block(name) for name in ("pairs.test", "pairs.body", "pairs.after"))
    builder.branch(test)
    builder.position_at_end(test)
    k = builder.load(counter)
    builder.cbranch(builder.icmp_unsigned("<", builder.add(k, _LONG(ahead)), end), body, after)
    builder.position_at_end(body)
    yield k
    builder.branch(test)
    builder.position_at_end(after)


class _Pairs:
    """Weights and columns of a row within a function that is being built, for one vector or two side by side."""

    def __init__(self, context: Any, builder: Any, kinds: Any, arrays: Any) -> None:
        self.builder, self.vectors = builder, kinds[2].ndim
        self.kind = ir.VectorType(_DOUBLE, 2 * self.vectors)
        pointers = zip(kinds, arrays, strict=True)
        self.weights, self.columns, self.v = (
            context.make_array(kind)(context, builder, array).data for kind, array in pointers
        )

    def at(self, k: Any) -> tuple[Any, Any]:
        """The weights of pair k, one for each number, and where the numbers of the vector lie."""
        builder = self.builder
        place = builder.gep(self.weights, [builder.shl(k, _LONG(1))])
        weights = builder.load(builder.bitcast(place, _PAIR.as_pointer()), align=8)
        column = builder.zext(builder.load(builder.gep(self.columns, [k])), _LONG)
        if self.vectors == 2:
            spread = ir.Constant(ir.VectorType(_SHORT, 4), [0, 0, 1, 1])
            weights, column = builder.shuffle_vector(weights, weights, spread), builder.shl(column, _LONG(1))
        return weights, builder.bitcast(builder.gep(self.v, [column]), self.kind.as_pointer())

    def plus(self, here: Any, weights: Any, numbers: Any) -> Any:
        product = self.builder.fmul(weights, numbers, flags=_FUSED)
        return self.builder.fadd(here, product, flags=_FUSED)


def _build_sum(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    begin, end = args[3:]
    pairs = _Pairs(context, builder, signature.args[:3], args[:3])
    vectors = pairs.vectors
    zero = ir.Constant(pairs.kind, [0.0] * (2 * vectors))
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(_SUMS)]
    counter = cgutils.alloca_once_value(builder, begin)
    for step in (_SUMS, 1):
        with _while_below(builder, counter, end, step - 1) as k:
            for i in range(step):
                own, place = pairs.at(builder.add(k, _LONG(i)))
                builder.store(pairs.plus(builder.load(sums[i]), own, builder.load(place, align=8)), sums[i])
            builder.store(builder.add(k, _LONG(step)), counter)
    first, second, third, fourth = (builder.load(each) for each in sums)
    total = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
    parts = [builder.extract_element(total, _SHORT(i)) for i in range(2 * vectors)]
    made = [builder.fadd(parts[i], parts[i + vectors]) for i in range(vectors)]
    return made[0] if vectors == 1 else context.make_tuple(builder, signature.return_type, made)


def _build_add(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    weights, columns, factor, out, begin, end = args
    pairs = _Pairs(context, builder, (*signature.args[:2], signature.args[3]), (weights, columns, out))
    vectors = pairs.vectors
    factors = [factor] if vectors == 1 else [builder.extract_value(factor, i) for i in range(2)]
    spread = ir.Constant(pairs.kind, ir.Undefined)
    for i in range(2 * vectors):
        spread = builder.insert_element(spread, factors[i % vectors], _SHORT(i))
    counter = cgutils.alloca_once_value(builder, begin)
    with _while_below(builder, counter, end, 0) as k:
        own, place = pairs.at(k)
        builder.store(pairs.plus(builder.load(place, align=8), own, spread), place, align=8)
        builder.store(builder.add(k, _LONG(1)), counter)
    return context.get_dummy_value()


@intrinsic  # type: ignore[untyped-decorator]
def pair_sum(_: Any, weights: Any, columns: Any, v: Any, k: Any, end: Any) -> Any:
    """The sum of weights times v over pairs k to end: a number, or two for a matrix of two columns."""
    result = types.float64 if v.ndim == 1 else types.UniTuple(types.float64, 2)
    return result(weights, columns, v, k, end), _build_sum


@intrinsic  # type: ignore[untyped-decorator]
def add_pairs(_: Any, weights: Any, columns: Any, factor: Any, out: Any, k: Any, end: Any) -> Any:
    """Add factor times weights to the entries of `out` in pairs k to end; a factor for each column of a matrix."""
    return types.void(weights, columns, factor, out, k, end), _build_add
