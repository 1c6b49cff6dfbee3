"""The saddle problem as three components on z = (x, y): f, g and B (eqs. SPP_decomposition, SPP_operator)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count

import numpy as np

from saddleslide.arrays.base import Array, Shape, on_host, split, zeros
from saddleslide.certificates.candidate import Linearisation
from saddleslide.certificates.guards import PairGuard
from saddleslide.domains import Domain, Product
from saddleslide.functions.base import Function
from saddleslide.functions.constants import bounding_modulus
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import LowerModel, spared
from saddleslide.functions.roundings import FEW
from saddleslide.methods.sliding.anchored_level import anchored_sweep
from saddleslide.methods.sliding.component import Writer
from saddleslide.methods.sliding.images import Images
from saddleslide.methods.sliding.innermost import Anchors, Sweep, compiled_sweep
from saddleslide.methods.sliding.primal_dual_level import PrimalDualLevel
from saddleslide.methods.sliding.recursion import Piece, Recursion
from saddleslide.methods.sliding.thrift import Thrift
from saddleslide.methods.sliding.view import View
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Level
from saddleslide.theory.restarts import Stage, anchor_calls

# So many gradients of a stage are compared with those before, and after that one in so many.
_GUARDED = 32


class Views:
    """Blocks of flat vectors. A run asks for the same few vectors again and again, so their views are kept."""

    def __init__(self, shapes: list[Shape]) -> None:
        self.shapes = shapes
        self._kept: dict[int, tuple[Array, list[Array]]] = {}

    def __call__(self, flat: Array) -> list[Array]:
        kept = self._kept.get(id(flat))
        if kept is None or kept[0] is not flat:
            if len(self._kept) > 32:
                self._kept.clear()
            kept = self._kept[id(flat)] = (flat, split(flat, self.shapes))
        return kept[1]


def product_domain(problem: SaddleProblem) -> Product:
    """Z = X x Y with two blocks."""
    return Product(problem.X, problem.Y)


def bilinear_recursion(
    oracles: Oracles,
    stage: Stage,
    start: tuple[Array, Array],
    view: View | None = None,
    anchors: Anchors | None = None,
) -> Recursion:
    """The recursion of one stage on counted oracles, any permutation of f, g and B on the levels.

    What is called f and g is that of the view. Anchors are taken when missing.
    """
    view = View(oracles.problem) if view is None else view
    names = [level.term.name for level in stage.levels]
    values: dict[str, float] = {}
    gradients, operators = gradient_writers(oracles, view.problem, values), {}
    if any(level.term.M > 0.0 for level in stage.levels):
        operators["B"] = coupling_writer(oracles)
    anchors = taken_anchors(oracles, stage, start, view.problem) if anchors is None else anchors
    z = np.concatenate([start[0].ravel(), start[1].ravel()])
    pieces = model_pieces(view, values)
    duals = {name: view.dual(write) for name, write in operators.items()}
    # Anchors are Euclidean: a run refuses them beside a metric.
    images = Images(oracles, anchors, z) if anchors.active else None
    thrift = Thrift(view.dual(coupling_writer(oracles, at_start=True)), partial(oracles.spare, 2))
    return Recursion(
        stage.levels,
        [view.dual(gradients[name]) if name in gradients else None for name in names],
        [duals.get(name) for name in names],
        product_domain(oracles.problem),
        z,
        [pieces.get(name) for name in names],
        _innermost(oracles, stage.levels, view, images, duals.get("B"), thrift, z),
        view.base(),
        thrift,
        images,
    )


def _innermost(
    oracles: Oracles,
    levels: Sequence[Level],
    view: View,
    images: Images | None,
    operator: Writer | None,
    thrift: Thrift,
    z: Array,
) -> Sweep | None:
    """All iterations of the last level at once, where it is the coupling's; None leaves them to the recursion."""
    # The outermost loop stays in Python: callers look at every one of its steps.
    if len(levels) == 1 or levels[-1].term.name != "B" or operator is None:
        return None
    if view.primal_dual:
        return PrimalDualLevel(oracles, levels[-1], view, z)
    if not on_host(z):
        return None
    if images is not None:
        return anchored_sweep(oracles, levels[-1], view, images)
    return compiled_sweep(oracles, levels[-1], view, operator, thrift)


def model_pieces(view: View, values: dict[str, float]) -> dict[str, Piece]:
    """Lower models of f and g from their gradients, where values are known and an exact minimum is not.

    A value at the point of a gradient costs no oracle call: an oracle gives both together, and the last one is kept in
    `values` under the name of its function.
    """
    problem = view.problem
    blocks = Views([problem.X.shape, problem.Y.shape])
    pieces: dict[str, Piece] = {}
    for block, (name, function, domain, simple) in enumerate(
        (("f", problem.f, problem.X, view.f_simple), ("g", problem.g, problem.Y, view.g_simple))
    ):
        # A model of the rest alone says nothing about the whole.
        if _is_modelled(function) and isinstance(simple, Zero):
            modulus = bounding_modulus(function, simple, domain)
            pieces[name] = _piece(
                view, function, domain, values, block, blocks, modulus, PairGuard(name, function, domain)
            )
    return pieces


def _is_modelled(function: Function) -> bool:
    return function.has_value and not function.separable


def _piece(
    view: View,
    function: Function,
    domain: Domain,
    values: dict[str, float],
    block: int,
    blocks: Views,
    modulus: float,
    guard: PairGuard,
) -> Piece:
    calls, name = count(), guard.name

    def piece(z: Array, gradient: Array) -> tuple[float, Array]:
        point, slope = blocks(z)[block], blocks(gradient)[block]
        slope = view.slope(slope) if block == 0 else slope
        number = next(calls)
        if number < _GUARDED or number % _GUARDED == 0:
            guard.look(Linearisation(point.copy(), values[name], slope.copy()))
        model = LowerModel.rounded(function, domain, point, values[name], slope, modulus)
        return model.constant, model.slope

    return piece


def carried_models(recursion: Recursion, stage: Stage, problem: SaddleProblem) -> dict[str, LowerModel]:
    """The averaged lower models of f and g that a run has carried along, by name."""
    carried = recursion.lower_models().items()
    return lower_models({stage.levels[i].term.name: model for i, model in carried}, problem)


def lower_models(carried: Mapping[str, tuple[float, Array]], problem: SaddleProblem) -> dict[str, LowerModel]:
    """Averages of pieces of f and g, by name, as models that are below the functions of a problem."""
    found = {}
    for name, (constant, slope) in carried.items():
        function, domain = (problem.f, problem.X) if name == "f" else (problem.g, problem.Y)
        # Every step of an average rounds once; its weights fade.
        constant -= 4.0 * FEW * abs(constant)
        found[name] = LowerModel(constant, slope, spared(bounding_modulus(function, Zero(), domain), domain))
    return found


def taken_anchors(oracles: Oracles, stage: Stage, start: tuple[Array, Array], seen: SaddleProblem) -> Anchors:
    """The anchors g'(y_in) and f'(x_in) of the active terms; a sampled one is the mean of `anchor_batch` draws."""
    at_f, at_g = zeros(start[0].size, start[0]), zeros(start[1].size, start[1])
    if stage.beta_x > 0.0:
        at_g = _mean(partial(oracles.gradient, "g", seen.g), start[1], anchor_calls(stage, "g")).ravel()
    if stage.beta_y > 0.0:
        at_f = _mean(partial(oracles.gradient, "f", seen.f), start[0], anchor_calls(stage, "f")).ravel()
    return Anchors(stage.beta_x, stage.beta_y, at_f, at_g)


def _mean(gradient: Callable[[Array], Array], point: Array, count: int) -> Array:
    mean = gradient(point).copy()
    for k in range(2, count + 1):
        mean += (gradient(point) - mean) / k
    return mean


def gradient_writers(
    oracles: Oracles, seen: SaddleProblem, values: dict[str, float] | None = None
) -> dict[str, Writer]:
    """F' writes the x block only, g' the y block only; the other block stays 0.

    Values that models need go to `values`, where it is given.
    """
    blocks = Views([seen.X.shape, seen.Y.shape])

    def writer(block: int, name: str, function: Function) -> Writer:
        def write(z: Array, out: Array) -> None:
            oracles.gradient(name, function, blocks(z)[block], blocks(out)[block])

        def write_keeping_value(z: Array, out: Array) -> None:
            assert values is not None
            values[name], _ = oracles.value_and_gradient(name, function, blocks(z)[block], blocks(out)[block])

        return write_keeping_value if values is not None and _is_modelled(function) else write

    return {"f": writer(0, "f", seen.f), "g": writer(1, "g", seen.g)}


def coupling_writer(oracles: Oracles, at_start: bool = False) -> Writer:
    """Q(x, y) = (B^T y, -B x): two products, less those of a block that is 0 at the start of a run."""
    blocks = Views([oracles.problem.X.shape, oracles.problem.Y.shape])

    def multiply(product: Callable[[Array, Array], Array], v: Array, out: Array) -> None:
        if at_start and not v.any():
            out[...] = 0.0
            oracles.spare(1)
        else:
            product(v, out)

    def write_coupling(z: Array, out: Array) -> None:
        x, y = blocks(z)
        out_x, out_y = blocks(out)
        multiply(oracles.adjoint, y, out_x)
        multiply(oracles.forward, x, out_y)
        np.negative(out_y, out=out_y)

    return write_coupling
