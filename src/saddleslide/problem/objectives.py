"""From an objective as people write it, f(x) + sum of h_i(K_i x), to a saddle problem, and back.

Every term goes where its part is cheapest: a gradient (f), a proximal step (the simple part of f), or a block of y. A
term behind an operator becomes a block where it has a proximal step: max over y of <y, K x> - h*(y). At most one simple
term stays on x, together with what has a common step with it: the step of a sum is not one step after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, Shape, length_of, split, to_complex
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.product import Product
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.composed import Composed
from saddleslide.functions.conjugate import Conjugate, Translated
from saddleslide.functions.dilated import dilate
from saddleslide.functions.direct_sum import DirectSum
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.indicator import Indicator
from saddleslide.functions.minimum import has_closed_minimum, tilted_minimum
from saddleslide.functions.scaled import Scaled
from saddleslide.functions.separable import has_prox
from saddleslide.functions.sums import Sum
from saddleslide.functions.trust import is_ours, is_own_class, known_smoothness, runs_own_code
from saddleslide.operators.base import COMPLEX, Operator
from saddleslide.operators.complex import is_complex
from saddleslide.operators.diagonal import Identity
from saddleslide.operators.explicit import Matrix
from saddleslide.operators.stacks import Part, Stack
from saddleslide.operators.void import Void
from saddleslide.problem.saddle import SaddleProblem

GRADIENT, PROX, BLOCK, SET = "gradient", "proximal step", "block of y", "set"


@dataclass(frozen=True)
class Term:
    """A term factor * function(K x) of an objective (K missing: of x itself), and where it went."""

    factor: float
    function: Function
    K: Operator | None = None
    place: str = GRADIENT
    # What its block of K was multiplied by, so that blocks of different units do not slow each other down.
    scale: float = 1.0
    # What turns K x into the few numbers that its block of y is of, where a constraint says no more.
    rows: Operator | None = None

    def block(self, X: Domain) -> tuple[Function, Operator]:
        """What its block of y is of: a function, and the operator before it."""
        if self.rows is None:
            return self.function, self.K or Identity(X.shape)
        assert isinstance(self.function, Indicator)
        box = self.function.domain.as_rows()[1]  # type: ignore[index]
        return Indicator(box), self.rows if self.K is None else self.rows @ self.K

    def image(self, x: Array) -> Array:
        """K x."""
        return x if self.K is None else self.K.forward(x)

    def judge(self, x: Array) -> tuple[float, float]:
        """The term at the point nearest to K x where it may be finite, and the distance of K x from there."""
        image, h = self.image(x), self.function
        if is_ours(h, Translated):
            # Moved back a point of a set may be beside it.
            image, h = image - h.b, h.function
        where = FullSpace(image.shape) if is_own_class(h) else h.effective_domain(image.shape)
        point = image if isinstance(where, FullSpace) else where.project(image)
        # A projection onto the set of an indicator is rounded, and counts as in it.
        value = 0.0 if isinstance(h, Indicator) else self.factor * h.value(point)
        return value, length_of(image - point)

    @property
    def multiple(self) -> Function:
        """The factor times the function."""
        return self.function if self.factor == 1.0 else self.factor * self.function

    @property
    def words(self) -> str:
        """The term as it was written."""
        words = repr(self.function) if self.K is None else f"{self.function!r} @ {self.K!r}"
        return words if self.factor == 1.0 else f"{self.factor:g} * {words}"

    def __str__(self) -> str:
        return f"{self.words}: {self.place}"


@dataclass(frozen=True)
class Objective:
    """Terms in the order in which they were written, and the saddle problem that they became."""

    terms: tuple[Term, ...]
    problem: SaddleProblem
    # Whether x is complex: pairs in the problem.
    is_complex: bool = False

    def judge(self, x: Array) -> tuple[float, float]:
        """The objective, each term at the nearest point where it may be finite, and the largest distance from there."""
        found = [term.judge(x) for term in self.terms]
        return math.fsum(value for value, _ in found), max((distance for _, distance in found), default=0.0)

    def name_broken(self, x: Array) -> list[str]:
        """The terms that are infinite at x, beyond rounding, as they were written."""
        distances = [term.judge(x)[1] for term in self.terms]
        return [term.words for term, far in zip(self.terms, distances, strict=True) if far > 1e-6 * max(distances)]

    def closed_minimiser(self) -> Array | None:
        """The minimiser, up to rounding, where a closed form gives it and nothing stands behind an operator."""
        f, X = self.problem.f, self.problem.X
        if self.problem.Y.size or runs_own_code(f) or X.own_code or not has_closed_minimum(f, X):
            return None
        found = tilted_minimum(f, np.zeros(X.shape), X)
        return X.project(found.point) if math.isfinite(found.value) else None

    def duals(self, x: Array, y: Array) -> tuple[Array, ...]:
        """One array per composed term: its block of y, or a subgradient of factor * h at K x; complex as K x is."""
        blocks = [term for term in self.terms if term.place == BLOCK]
        shapes = [term.block(self.problem.X)[1].y_shape for term in blocks]
        parts = dict(zip(map(id, blocks), split(y.reshape(-1), shapes), strict=True))
        found: list[Any] = []
        for term in self.terms:
            if term.K is None:
                continue
            if id(term) in parts:
                dual = term.scale * parts[id(term)]
                dual = dual if term.rows is None else term.rows.adjoint(dual)
            else:
                dual = term.factor * term.function.gradient(term.image(x))
            found.append(to_complex(dual) if term.K.y_dtype == COMPLEX else dual)
        return tuple(found)


def split_objective(objective: Any, over: Domain | None = None, dtype: Any = None) -> Objective:
    """The saddle problem of an objective over a set; the whole space when missing.

    x is complex where an operator, data, the set or `dtype` says so. Then everything is made of pairs of real numbers.
    """
    if not isinstance(objective, Function):
        raise InputError(
            f"minimize: objective is {type(objective).__name__}; expected functions of ss.functions, added with +, "
            "scaled by numbers, composed with @. ss.solve takes a SaddleProblem."
        )
    if not (over is None or isinstance(over, Domain)):
        example = "such as ss.domains.Box(0.0, 1.0, shape=(64, 64))"
        raise InputError(f"minimize: over is {type(over).__name__}; expected a set of ss.domains, {example}.")
    pairs = objective.is_complex or (over is not None and over.is_complex)
    if dtype is not None and is_complex(dtype, "minimize") != pairs:
        if pairs:
            raise InputError(f"minimize: dtype is {dtype!r}, but a term takes a complex x; expected complex or none.")
        pairs = True
    if pairs:
        objective, over = objective.of_pairs(), None if over is None else over.of_pairs()
    leaves = list(_leaves(objective, 1.0))
    X = FullSpace(_x_shape(leaves, over)) if over is None else over
    terms = [_term(factor, leaf, X.shape) for factor, leaf in leaves]
    terms, X = _take_sets(terms, X)
    for term in terms:
        _check_value(term)
    terms = _place(terms, X)
    f = _add_up([_on_x(term) for term in terms if term.place in (GRADIENT, PROX)])
    blocks = [term for term in terms if term.place == BLOCK]
    if not blocks:
        problem = SaddleProblem(f=f, g=Zero(), B=Void(X.shape), X=X, Y=FullSpace(0))
    elif len(blocks) == 1:
        h, operator = blocks[0].block(X)
        g, Y = _dual(h, blocks[0].factor, operator.y_shape)
        problem = SaddleProblem(f=f, g=g, B=operator, X=X, Y=Y)
    else:
        terms, problem = _stack(terms, f, X)
    object.__setattr__(problem, "terms", tuple(map(str, terms)))
    return Objective(tuple(terms), problem, pairs)


def _check_value(term: Term) -> None:
    """No conjugate behind an operator whose values are known at points of its own steps alone."""
    if term.K is None:
        return
    at = np.zeros(term.K.y_shape)
    for part in (term.function, *term.function.components):
        if is_ours(part, Conjugate) and part.lacks_values(at):
            raise InputError(
                f"minimize: {part!r} behind an operator has no value in closed form; expected one, for the objective. "
                "Solve ss.SaddleProblem(f=, g=, B=, X=, Y=) with the function itself for g, or write it as "
                "ss.functions.Custom(prox=, value=)."
            )


def _add_up(functions: Sequence[Function]) -> Function:
    total: Function | None = None
    for function in functions:
        total = function if total is None else total + function
    return Zero() if total is None else total


def _on_x(term: Term) -> Function:
    """A term of f: behind an operator by its gradient; least squares of K x have their own class."""
    if term.K is None:
        return term.multiple
    alone = _on_unknown(term)
    return term.factor * term.function.after(term.K) if alone is None or term.place == GRADIENT else alone


def _on_unknown(term: Term) -> Function | None:
    """A term of one of several unknowns as a function of x that is 0 on the others; None where K is another one."""
    K = term.K
    if not isinstance(K, Part):
        return None
    functions: list[Function] = [Zero()] * len(K.shapes)
    functions[K.index] = term.multiple
    return DirectSum(functions, K.shapes)


def _leaves(function: Function, factor: float) -> Iterator[tuple[float, Function]]:
    """The terms of a sum, each with its factor."""
    if is_ours(function, Sum):
        for part in function.parts:
            yield from _leaves(part, factor)
    elif is_ours(function, Scaled):
        yield from _leaves(function.function, factor * function.factor)
    elif not (isinstance(function, Zero) or factor == 0.0):
        yield factor, function


def _x_shape(leaves: Sequence[tuple[float, Function]], over: Domain | None) -> Shape:
    shapes = {leaf.shape for _, leaf in leaves} - {None}
    if len(shapes) == 1:
        return shapes.pop()  # type: ignore[return-value]
    found = "none of the terms has a shape" if not shapes else f"the terms have shapes {sorted(map(str, shapes))}"
    raise InputError(f"minimize: {found}; expected one shape of x. Pass over=ss.domains.FullSpace(shape).")


def _term(factor: float, leaf: Function, shape: Shape) -> Term:
    """A term that takes arrays of the shape of x; what takes vectors is given the shape."""
    if isinstance(leaf, Composed):
        return Term(factor, leaf.function, leaf.operator_on(shape))
    if leaf.shape not in (None, shape):
        raise InputError(
            f"minimize: {leaf!r} takes arrays of shape {leaf.shape}, x has shape {shape}; expected equal shapes. Pass "
            "x_shape= to what it is made of, or over= with its shape."
        )
    return Term(factor, leaf)


def _take_sets(terms: list[Term], X: Domain) -> tuple[list[Term], Domain]:
    """The first indicator of x itself is the set X, where that is the whole space; boxes meet in a box.

    Without one, X is where a function of x itself is finite.
    """
    found, words = [], [f"over={X!r}"]
    for term in terms:
        if isinstance(term.function, Indicator) and term.K is None:
            domain: Domain | None = term.function.domain
            is_box = isinstance(X, Box) and isinstance(domain, Box)
            if isinstance(X, FullSpace) or is_box:
                words = [*words, repr(term.function)] if is_box else [repr(term.function)]
                domain = X.meet(domain) if isinstance(X, Box) and isinstance(domain, Box) else domain
                if domain is None:
                    raise InputError(
                        f"minimize: {' and '.join(words)} have no point in common; expected boxes that meet."
                    )
                X, term = domain, Term(1.0, term.function, None, SET)
        found.append(term)
    # A start and bounds lie where every function of x itself is finite.
    for term in terms:
        if isinstance(X, FullSpace) and term.K is None and not is_own_class(term.function):
            where = term.function.effective_domain(X.shape)
            X = where if isinstance(where, Box) else X
    return found, X


def _place(terms: list[Term], X: Domain) -> list[Term]:
    """Where each term goes: see the head of this file.

    What has a gradient comes last, whatever the order written: it can leave the one proximal step to what has none.
    """
    places: dict[int, str] = {}
    simple: Function | None = None
    smooth = [_is_smooth(term, X) for term in terms]
    for index in sorted(range(len(terms)), key=smooth.__getitem__):
        term = terms[index]
        h, place = term.function, term.place
        if place == SET:
            continue
        alone = term.multiple if term.K is None else _on_unknown(term)
        both = alone if simple is None or alone is None else simple + alone
        if alone is not None and has_prox(alone, X) and both is not None and has_prox(both, X):
            simple, place = both, PROX
        elif term.K is not None:
            place = BLOCK if h.is_proximable and not h.quadratic else GRADIENT
        elif h.is_proximable and not smooth[index]:
            place = BLOCK
        places[index] = place
    placed = [replace(term, place=places.get(index, term.place)) for index, term in enumerate(terms)]
    return [replace(term, rows=_rows(term, X)) if term.place == BLOCK else term for term in placed]


def _rows(term: Term, X: Domain) -> Operator | None:
    """The rows of a half-space or of equations, so that their block of y is one number for each."""
    known = term.function.domain.as_rows() if is_ours(term.function, Indicator) else None
    return None if known is None else Matrix(known[0], X.shape if term.K is None else term.K.y_shape)


def _is_smooth(term: Term, X: Domain) -> bool:
    """Whether a term of x or of one of the unknowns with a proximal step has a Lipschitz gradient as well."""
    h, K = term.function, term.K
    if not h.is_proximable or not (K is None or isinstance(K, Part)):
        return False
    known = known_smoothness(h, X if K is None else FullSpace(K.y_shape))
    return known is not None and known.nu == 1.0


def _dual(h: Function, factor: float, shape: Shape) -> tuple[Function, Domain]:
    """The conjugate of a term and the set of its block of y; what does not fit names the term."""
    try:
        return h.dual(shape, factor)
    except InputError as wrong:
        raise InputError(f"minimize: {h!r} of arrays of shape {shape}: {wrong}") from wrong


def _stack(terms: list[Term], f: Function, X: Domain) -> tuple[list[Term], SaddleProblem]:
    """Several blocks of y: B stacked, each block with a norm near 1, where that is known and its set can be scaled."""
    found, functions, sets, operators = [], [], [], []
    for term in terms:
        if term.place != BLOCK:
            found.append(term)
            continue
        h, K = term.block(X)
        g, Y = _dual(h, term.factor, K.y_shape)
        # A power of 2, which rounds nothing: own code knows values of a conjugate at points of its steps alone.
        scale = 2.0 ** -round(math.log2(K.norm.upper)) if K.norm_at_hand and K.norm.upper > 0.0 else 1.0
        dilated = dilate(g, Y, scale)
        if dilated is None:
            scale = 1.0
        else:
            g, Y = dilated
        functions.append(g)
        sets.append(Y)
        operators.append((K, scale))
        found.append(replace(term, scale=scale))
    B = Stack(*(K for K, _ in operators), scales=[scale for _, scale in operators])
    Y = Product(*sets)
    g = DirectSum(functions, [part.shape for part in sets])
    free = all(isinstance(part, Zero) for part in functions)
    return found, SaddleProblem(f=f, g=Zero() if free else g, B=B, X=X, Y=Y)
