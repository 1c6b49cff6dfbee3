"""The saddle problem as three components on z = (x, y): f, g and B (eqs. SPP_decomposition, SPP_operator)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

import numpy as np

from saddleslide.arrays.base import Array, split, zeros
from saddleslide.certificates.candidate import Linearisation
from saddleslide.certificates.guards import PairGuard
from saddleslide.domains.base import Domain
from saddleslide.domains.product import Product
from saddleslide.functions.base import Function
from saddleslide.functions.constants import modulus_for_bounds
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import LowerModel, keep_modulus
from saddleslide.functions.roundings import FEW
from saddleslide.methods.sliding.anchors import Anchors, AnchorTerms
from saddleslide.methods.sliding.innermost import innermost_sweep
from saddleslide.methods.sliding.recursion import Extras, Model, Piece, Recursion, Savings, Writer
from saddleslide.methods.sliding.view import View
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory.restarts import Stage, anchor_calls

# So many gradients of a stage are compared with those before, and after that one in so many.
_GUARDED = 32


def product_domain(problem: SaddleProblem) -> Product:
    """Z = X x Y with two blocks."""
    return Product(problem.X, problem.Y)


def bilinear_recursion(
    oracles: Oracles, stage: Stage, start: tuple[Array, Array], view: View | None = None, anchors: Anchors | None = None
) -> Recursion:
    """The recursion of one stage on counted oracles, any permutation of f, g and B on the levels.

    What is called f and g is that of the view. Anchors are taken when missing.
    """
    view = View(oracles.problem) if view is None else view
    names = [level.term.name for level in stage.levels]
    values: dict[str, float] = {}
    gradients, pieces = gradient_writers(oracles, view.problem, values), model_pieces(view, values)
    coupled = any(level.term.M > 0.0 for level in stage.levels)
    spaces = view.spaces
    operator = spaces.dual(product_writer(oracles)) if coupled else None
    anchors = take_anchors(oracles, stage, start, view.problem) if anchors is None else anchors
    z = np.concatenate([start[0].ravel(), start[1].ravel()])
    terms = AnchorTerms(oracles, anchors, z, spaces.invert) if anchors.active else None
    savings = Savings(spaces.dual(product_writer(oracles, at_start=True)), partial(oracles.spare, 2))
    innermost = innermost_sweep(oracles, stage.levels, view, operator, savings, terms, z)
    return Recursion(
        stage.levels,
        [spaces.dual(gradients[name]) if name in gradients else None for name in names],
        [operator if name == "B" else None for name in names],
        product_domain(oracles.problem),
        z,
        Extras([pieces.get(name) for name in names], innermost, view.base(), savings, terms, project=spaces.project()),
    )


def model_pieces(view: View, values: dict[str, float]) -> dict[str, Piece]:
    """Lower models of f and g from their gradients, where values are known and an exact minimum is not.

    A value at the point of a gradient costs no oracle call: an oracle gives both together, and the last one is kept in
    `values` under the name of its function.
    """
    problem = view.problem

    def piece_of(block: int, name: str, function: Function, domain: Domain) -> Piece:
        modulus, guard = modulus_for_bounds(function, Zero(), domain), PairGuard(name, function, domain)
        calls = count()

        def piece(z: Array, gradient: Array) -> Model:
            point, slope, number = split(z, view.shapes)[block], split(gradient, view.shapes)[block], next(calls)
            # What was written is P^-1 of the slope.
            slope = slope if (metric := view.norms[block]) is None else metric.product(slope)
            if number < _GUARDED or number % _GUARDED == 0:
                guard.look(Linearisation(point.copy(), values[name], slope.copy()))
            model = LowerModel.from_gradient(function, domain, point, values[name], slope, modulus)
            return model.constant, model.slope

        return piece

    sides = ("f", problem.f, problem.X, view.f_simple), ("g", problem.g, problem.Y, view.g_simple)
    return {
        name: piece_of(block, name, function, domain)
        for block, (name, function, domain, simple) in enumerate(sides)
        # A model of the rest alone says nothing about the whole.
        if _is_modelled(function) and isinstance(simple, Zero)
    }


def _is_modelled(function: Function) -> bool:
    return function.has_value and not function.separable


def carried_models(recursion: Recursion, problem: SaddleProblem) -> dict[str, LowerModel]:
    """The averaged lower models of f and g that a run has carried along, by name, after at least one step."""
    return lower_models(recursion.levels[0].models, problem)


def lower_models(carried: Mapping[str, Model], problem: SaddleProblem) -> dict[str, LowerModel]:
    """Averages of pieces of f and g, by name, as models that are below the functions of a problem."""
    found = {}
    for name, (constant, slope) in carried.items():
        function, domain = (problem.f, problem.X) if name == "f" else (problem.g, problem.Y)
        # Every step of an average rounds once; its weights fade.
        constant -= 4.0 * FEW * abs(constant)
        found[name] = LowerModel(constant, slope, keep_modulus(modulus_for_bounds(function, Zero(), domain), domain))
    return found


def take_anchors(oracles: Oracles, stage: Stage, start: tuple[Array, Array], seen: SaddleProblem) -> Anchors:
    """The anchors g'(y_in) and f'(x_in) of the active terms; a sampled one is the mean of `anchor_batch` draws."""

    def mean_gradient(name: str, function: Function, point: Array) -> Array:
        mean = oracles.gradient(name, function, point).copy()
        for k in range(2, anchor_calls(stage, name) + 1):
            mean += (oracles.gradient(name, function, point) - mean) / k
        return mean.ravel()

    x, y = start
    at_g = mean_gradient("g", seen.g, y) if stage.beta_x > 0.0 else zeros(y.size, y)
    at_f = mean_gradient("f", seen.f, x) if stage.beta_y > 0.0 else zeros(x.size, x)
    return Anchors(stage.beta_x, stage.beta_y, at_f, at_g)


def gradient_writers(
    oracles: Oracles, seen: SaddleProblem, values: dict[str, float] | None = None
) -> dict[str, Writer]:
    """F' writes the x block only, g' the y block only; the other block stays 0. Models need `values`."""
    n = seen.X.size

    def writer(name: str, function: Function, part: slice, domain: Domain) -> Writer:
        modelled = _is_modelled(function)

        def write(z: Array, out: Array) -> None:
            point, into = z[part].reshape(domain.shape), out[part].reshape(domain.shape)
            if values is not None and modelled:
                values[name], _ = oracles.value_and_gradient(name, function, point, into)
            else:
                oracles.gradient(name, function, point, into)

        return write

    return {"f": writer("f", seen.f, slice(n), seen.X), "g": writer("g", seen.g, slice(n, None), seen.Y)}


def product_writer(oracles: Oracles, at_start: bool = False) -> Writer:
    """Q(x, y) = (B^T y, -B x): two products, less those of a block that is 0 at the start of a run."""
    shapes = [oracles.problem.X.shape, oracles.problem.Y.shape]

    def multiply(product: Callable[[Array, Array], Array], v: Array, out: Array) -> None:
        if at_start and not v.any():
            out[...] = 0.0
            oracles.spare(1)
        else:
            product(v, out)

    def write_coupling(z: Array, out: Array) -> None:
        (x, y), (out_x, out_y) = split(z, shapes), split(out, shapes)
        multiply(oracles.adjoint, y, out_x)
        multiply(oracles.forward, x, out_y)
        np.negative(out_y, out=out_y)

    return write_coupling
