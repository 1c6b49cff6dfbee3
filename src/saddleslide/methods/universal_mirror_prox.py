"""Generalized (universal) Mirror-Prox (Stonyakin et al. 2022): no constant needed, steps by backtracking."""

from __future__ import annotations

import math
from functools import partial
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.fewest import fewest_on_bounded
from saddleslide.methods.field import METRIC, Mean, Point, calls_of, field_of, unpromised
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import MOST_SHORTENED, SHORTER, Oracles
from saddleslide.problem import SaddleProblem

# Doublings after which an operator is taken to be broken; rounding can not need more.
_MOST_DOUBLINGS = 200


@final
class UniversalMirrorProx(Method):
    """Mirror-Prox with L_k halved at every iteration and doubled until the inexact test with slack eps/2 holds.

    F(z_k) is kept while backtracking. The output is the mean of the w_k with weights 1/L_k.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.75, 0.25, seed=0)
    >>> result = ss.solve(problem, tol=1.0, method="universal-mirror-prox")
    >>> result.status.name, result.calls.f == result.calls.g
    ('SOLVED', True)
    """

    description = Description(
        name="universal-mirror-prox",
        needs=(),
        guarantee="Gap at most eps after 2 Omega (L_nu / eps)^(2 / (1 + nu)) iterations on bounded domains, for every "
        "nu for which the operator is Hölder, known or not.",
        reference="Stonyakin, Gasnikov, Dvurechensky, Titov and Alkousa, Generalized mirror prox algorithm for "
        "monotone variational inequalities: universality and inexact oracle, J. Optim. Theory Appl. 194 (2022)",
        options=(
            Option("accuracy", None, "eps of the backtracking test; by default the target"),
            Option("L0", 1.0, "first guess of the Lipschitz constant"),
            METRIC,
        ),
    )

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.field = field_of(oracles, origin, self.options)
        given = self.options["accuracy"]
        self.eps = tol if given is None else float(given)
        self.L = float(self.options["L0"] or 1.0)
        self.z: Point = origin
        self.asked: Point | None = None
        self.mean = Mean()
        self.mean.add(origin, 0.0)

    def advance(self) -> None:
        z, at_z, shortened = *self._begun(), 0
        self.L *= 0.5
        for _ in range(_MOST_DOUBLINGS):
            trial = partial(self._trial, z, at_z)
            found = self.field.oracles.tried(trial) if shortened < MOST_SHORTENED else trial()
            if found is None:
                # An oracle overflows there, and is finite at z.
                shortened, self.L = shortened + 1, SHORTER * self.L
                continue
            accepted, w, following = found
            if accepted:
                break
            self.L *= 2.0
        self.mean.add(w, 1.0 / self.L)
        self.z, self.asked = following, w

    def _trial(self, z: Point, at_z: Point) -> tuple[bool, Point, Point]:
        """Both halves of a step with the present L, and whether it passes."""
        w = self.field.step(z, at_z, 1.0 / self.L)
        at_w = self.field(w)
        following = self.field.step(z, at_w, 1.0 / self.L)
        return self._accepted(z, at_z, w, at_w, following), w, following

    def _begun(self) -> tuple[Point, Point]:
        """Where the step begins, with F there: at z, or where F was asked last if an oracle overflows at z."""
        found = self.field.oracles.tried(lambda: self.field(self.z)) if self.asked is not None else self.field(self.z)
        if found is None:
            assert self.asked is not None
            self.z, self.L = self.asked, SHORTER * self.L
            found = self.field(self.z)
        return self.z, found

    def _accepted(self, z: Point, at_z: Point, w: Point, at_w: Point, following: Point) -> bool:
        """<F(w) - F(z), w - z+> <= L/2 (|w - z|^2 + |w - z+|^2) + eps/2."""
        left = sum(
            float(np.vdot(b - a, u - v)) for a, b, u, v in zip(at_z, at_w, w, following, strict=True)
        )  # fmt: skip
        norm = self.field.norm
        right = 0.5 * self.L * (norm.squared_distance(w, z) + norm.squared_distance(w, following))
        # Distances that overflow prove nothing.
        return left <= right + 0.5 * self.eps < math.inf

    def output(self) -> tuple[Array, Array]:
        return self.mean.point

    @property
    def notes(self) -> tuple[str, ...]:
        about = f"eps = {self.eps:.6g} in the backtracking test, L_0 = {self.options['L0']}"
        return (about, *unpromised(self.field.problem))

    def fewest_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        return fewest_on_bounded(problem, tol)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        origin = problem.start()
        field = field_of(Oracles(problem), origin, self.options)
        condition, Omega = field.holder(), field.size(origin)
        if condition is None or not math.isfinite(Omega):
            return None
        N = max(1, math.ceil(2.0 * Omega * (condition.H / tol) ** (2.0 / (1.0 + condition.nu))))
        # One evaluation at z and, on average, two while backtracking.
        return calls_of(problem, 3 * N, 3 * N, 6 * N)
