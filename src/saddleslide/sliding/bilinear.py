"""The saddle problem as three components on z = (x, y): f, g and B (eqs. SPP_decomposition, SPP_operator)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from saddleslide.arrays import Array, split
from saddleslide.domains import Product
from saddleslide.functions import Function, LowerModel, Zero
from saddleslide.oracles import Oracles
from saddleslide.planning.restarts import Stage, anchor_calls
from saddleslide.problem import SaddleProblem
from saddleslide.sliding.component import Writer
from saddleslide.sliding.recursion import Piece, Recursion
from saddleslide.sliding.view import View


def product_domain(problem: SaddleProblem) -> Product:
    """Z = X x Y with two blocks."""
    return Product(problem.X, problem.Y)


def bilinear_recursion(
    oracles: Oracles, stage: Stage, start: tuple[Array, Array], view: View | None = None
) -> Recursion:
    """The recursion of one stage on counted oracles, any permutation of f, g and B on the levels.

    With a view, the oracles are those of its problem, possibly sampled or regularised.
    """
    view = View(oracles.problem) if view is None else replace(view, problem=oracles.problem)
    names = [level.term.name for level in stage.levels]
    gradients, operators = gradient_writers(oracles), {}
    if any(level.term.M > 0.0 for level in stage.levels):
        operators["B"] = coupling_writer(oracles)
    if stage.beta_x > 0.0 or stage.beta_y > 0.0:
        gradients["B"] = anchor_writer(oracles, stage, start)
    z = np.concatenate([start[0].ravel(), start[1].ravel()])
    pieces = model_pieces(view)
    return Recursion(
        stage.levels,
        [view.dual(gradients[name]) if name in gradients else None for name in names],
        [view.dual(operators[name]) if name in operators else None for name in names],
        product_domain(oracles.problem),
        z,
        [pieces.get(name) for name in names],
        view.base(),
    )


def model_pieces(view: View) -> dict[str, Piece]:
    """Lower models of f and g from their gradients, where values are known and an exact minimum is not.

    A value at the point of a gradient costs no oracle call: an oracle gives both together.
    """
    problem = view.problem
    pieces: dict[str, Piece] = {}
    for block, (name, function, domain, simple) in enumerate(
        (("f", problem.f, problem.X, view.f_simple), ("g", problem.g, problem.Y, view.g_simple))
    ):
        # A model of the rest alone says nothing about the whole.
        if function.has_value and not function.separable and isinstance(simple, Zero):
            pieces[name] = _piece(view, function, block, function.strong_convexity(domain))
    return pieces


def _piece(view: View, function: Function, block: int, modulus: float) -> Piece:
    shapes = [view.problem.X.shape, view.problem.Y.shape]

    def piece(z: Array, gradient: Array) -> tuple[float, Array]:
        point, slope = split(z, shapes)[block], split(gradient, shapes)[block]
        slope = view.slope(slope) if block == 0 else slope
        model = LowerModel.at(point, function.value(point), slope, modulus)
        return model.constant, model.slope

    return piece


def carried_models(recursion: Recursion, stage: Stage, problem: SaddleProblem) -> dict[str, LowerModel]:
    """The averaged lower models of f and g that a run has carried along, by name."""
    found = {}
    for i, (constant, slope) in recursion.lower_models().items():
        name = stage.levels[i].term.name
        modulus = problem.f.strong_convexity(problem.X) if name == "f" else problem.g.strong_convexity(problem.Y)
        found[name] = LowerModel(constant, slope, modulus)
    return found


def anchor_writer(oracles: Oracles, stage: Stage, start: tuple[Array, Array]) -> Writer:
    """Gradient of p_3 = beta_x/2 |Bx - g'(y_in)|^2 + beta_y/2 |B^T y + f'(x_in)|^2; two products per active term.

    The anchors g'(y_in) and f'(x_in) are taken once and kept; a sampled one is the mean of `anchor_batch` draws.
    """
    shapes = [oracles.problem.X.shape, oracles.problem.Y.shape]
    beta_x, beta_y = stage.beta_x, stage.beta_y
    anchor_g = _mean(oracles.g_gradient, start[1], anchor_calls(stage, "g")) if beta_x > 0.0 else None
    anchor_f = _mean(oracles.f_gradient, start[0], anchor_calls(stage, "f")) if beta_y > 0.0 else None

    def write_anchors(z: Array, out: Array) -> None:
        x, y = split(z, shapes)
        out_x, out_y = split(out, shapes)
        if anchor_g is not None:
            oracles.adjoint(beta_x * (oracles.forward(x) - anchor_g), out_x)
        if anchor_f is not None:
            oracles.forward(beta_y * (oracles.adjoint(y) + anchor_f), out_y)

    return write_anchors


def _mean(gradient: Callable[[Array], Array], point: Array, count: int) -> Array:
    mean = gradient(point).copy()
    for k in range(2, count + 1):
        mean += (gradient(point) - mean) / k
    return mean


def gradient_writers(oracles: Oracles) -> dict[str, Writer]:
    """F' writes the x block only, g' the y block only; the other block stays 0."""
    shapes = [oracles.problem.X.shape, oracles.problem.Y.shape]

    def write_f(z: Array, out: Array) -> None:
        oracles.f_gradient(split(z, shapes)[0], split(out, shapes)[0])

    def write_g(z: Array, out: Array) -> None:
        oracles.g_gradient(split(z, shapes)[1], split(out, shapes)[1])

    return {"f": write_f, "g": write_g}


def coupling_writer(oracles: Oracles) -> Writer:
    """Q(x, y) = (B^T y, -B x): two products."""
    shapes = [oracles.problem.X.shape, oracles.problem.Y.shape]

    def write_coupling(z: Array, out: Array) -> None:
        x, y = split(z, shapes)
        out_x, out_y = split(out, shapes)
        oracles.adjoint(y, out_x)
        oracles.forward(x, out_y)
        np.negative(out_y, out=out_y)

    return write_coupling
