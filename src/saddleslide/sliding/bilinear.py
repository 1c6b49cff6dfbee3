"""The saddle problem as three components on z = (x, y): f, g and B (eqs. SPP_decomposition, SPP_operator)."""

from __future__ import annotations

import numpy as np

from saddleslide.arrays import Array, split
from saddleslide.domains import Product
from saddleslide.oracles import Oracles
from saddleslide.planning import Plan
from saddleslide.problem import SaddleProblem
from saddleslide.sliding.component import Writer
from saddleslide.sliding.recursion import Recursion


def product_domain(problem: SaddleProblem) -> Product:
    """Z = X x Y with two blocks."""
    return Product(problem.X, problem.Y)


def bilinear_recursion(oracles: Oracles, plan: Plan, start: tuple[Array, Array]) -> Recursion:
    """The recursion of a plan on counted oracles, any permutation of f, g and B on the levels."""
    problem = oracles.problem
    gradients, operators = gradient_writers(oracles), {"B": coupling_writer(oracles)}
    names = [level.term.name for level in plan.levels]
    active = {"B": any(level.term.M > 0.0 for level in plan.levels)}
    z = np.concatenate([start[0].ravel(), start[1].ravel()])
    return Recursion(
        plan.levels,
        [gradients.get(name) for name in names],
        [operators.get(name) if active.get(name) else None for name in names],
        product_domain(problem),
        z,
    )


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
