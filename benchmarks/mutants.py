"""One-line mutants of the core: each must be caught by the fast tests of its room.

    python benchmarks/mutants.py --out benchmarks/results/mutants.json

The package is copied, one line is changed, and the tests named beside it run against the copy until the first failure.
The file is written after each mutant; the same command goes on where it stopped and repeats those that survived.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
R, A, C, P = (
    "methods/sliding/recursion.py",
    "methods/adaptive_sliding.py",
    "methods/sliding/inner.py",
    "methods/restarted_primal_dual.py",
)
J, B, S, M = (
    "certificates/judge.py",
    "methods/sliding/bilinear.py",
    "certificates/residuals.py",
    "methods/sliding/anchors.py",
)
K, Q = "certificates/bounds.py", "certificates/inspection.py"
TRANSCRIPTIONS = ("tests/methods/test_transcriptions.py", "tests/methods/test_known_methods.py")
SOLVE = (
    "tests/methods/test_core_rates.py",
    "tests/methods/test_coupling_loop.py",
    "tests/certificates/test_guards.py",
    "tests/api/test_solve.py",
)
LIMITS = (
    "tests/runs/test_resume.py::test_a_budget_of_calls_is_never_passed_by_the_method",
    "tests/runs/test_resume.py::test_no_limit_is_passed_by_a_single_call_of_the_callables",
)
LOOP = ("tests/methods/test_core_rates.py", "tests/methods/test_coupling_loop.py")
THRIFT = ("tests/methods/test_thrift.py",)
KERNELS, INNERMOST, DUAL = (
    ("tests/kernels/test_kernels.py",),
    ("tests/methods/test_innermost.py",),
    ("tests/methods/test_primal_dual_level.py",),
)
FUNCTIONS, REGIMES = ("tests/functions/test_functions.py",), ("tests/methods/test_regimes.py",)
G = "certificates/certificate.py"
CONSTRAINED = ("tests/gallery/test_gallery_constrained.py",)
CERTIFICATE = ("tests/certificates/test_certificate.py",)
CHECKPOINT = ("tests/runs/test_checkpoint.py",)
GUARDS = ("tests/certificates/test_guards.py",)
ORACLES = ("tests/oracles/test_oracles.py",)
OWN_CODE = ("tests/functions/test_own_code.py",)
RESIDUALS = ("tests/certificates/test_residuals.py",)
RESUME = ("tests/runs/test_resume.py",)
SOLVE_PLANTED = ("tests/api/test_solve_planted.py",)
ROUNDING, CLOCK, ENTRIES = (
    ("tests/functions/test_rounding.py",),
    ("tests/runs/test_clock.py",),
    ("tests/functions/test_entries.py",),
)
SPARSE, SIZES, FORGED = (
    ("tests/operators/test_sparse_input.py",),
    ("tests/arrays/test_file_sizes.py",),
    ("tests/runs/test_forged_checkpoints.py",),
)
WITHIN, LEVELS, OBJECTIVES = (
    ("tests/certificates/test_within.py",),
    ("tests/certificates/test_levels.py",),
    ("tests/problem/test_objectives.py",),
)
INTERIOR, SETS, CATALOGUE = (
    ("tests/methods/test_interior_point.py",),
    ("tests/domains/test_catalogue.py",),
    ("tests/functions/test_catalogue.py",),
)
SLIDE = ("tests/api/test_inequality.py",)
# File, what stands there, what is put there, tests.
MUTANTS = (
    (R, "1.0 - alpha, this.average, self.scratch", "alpha, this.average, self.scratch", TRANSCRIPTIONS),
    (R, "eta = Gamma * alpha * this.level.step", "eta = alpha * this.level.step", TRANSCRIPTIONS),
    (R, "self._sweep(k + 1, Gamma * alpha, this.passed,", "self._sweep(k + 1, Gamma, this.passed,", TRANSCRIPTIONS),
    (R, "kept, base = Gamma * (1.0 - alpha)", "kept, base = Gamma * alpha", TRANSCRIPTIONS),
    (R, "Gamma * alpha, this.iterate", "alpha, this.iterate", TRANSCRIPTIONS),
    (R, "for j in range(this.level.T):", "for j in range(this.level.T - 1):", TRANSCRIPTIONS),
    (R, "self._advance(0, j, 1.0, self.top,", "self._advance(0, 0, 1.0, self.top,", TRANSCRIPTIONS),
    (R, "factors = 1.0 / (eta * this.own_weights)", "factors = -1.0 / (eta * this.own_weights)", TRANSCRIPTIONS),
    (R, "        self.domain.project(this.iterate, out=this.iterate)\n", "", TRANSCRIPTIONS),
    (R, "self.kernels.settle(this.average, this.iterate, ahead, alpha, self.scratch)",
     "self.kernels.combine(this.average, alpha, ahead, 1.0 - alpha, this.average, self.scratch)", TRANSCRIPTIONS),
    (R, "weights += above.weights", "weights += 0.0 * above.weights", TRANSCRIPTIONS),
    (R, "this.models[name] = (alpha * new[0] + (1.0 - alpha)", "this.models[name] = (new[0] + (1.0 - alpha)",
     CERTIFICATE),
    (B, "multiply(oracles.forward, x, out_y)", "multiply(oracles.forward, 2.0 * x, out_y)", TRANSCRIPTIONS),
    (B, "if at_start and not v.any():", "if at_start:", THRIFT),
    (R, "Ends(self.first and j == 0, self.last", "Ends(self.first, self.last", THRIFT),
    (R, "self.last and j == T - 1", "self.last", THRIFT),
    (R, "self.last and part.stop == T", "self.last", THRIFT),
    ("kernels/sweeps.py", "if spares & LAST and j == T - 1:", "if spares & LAST:", THRIFT),
    ("kernels/pictures.py", "spares if first + k == 0 else 0", "spares", THRIFT),
    ("kernels/sweeps.py", "if spares & LAST and j == alphas.size - 1:", "if j < 0:", THRIFT),
    (B, "        np.negative(out_y, out=out_y)\n", "", TRANSCRIPTIONS),
    (M, "of_x += at_g", "of_x -= at_g", REGIMES),
    (M, "self.kernels.combine(self.average, alpha, ahead", "self.kernels.combine(self.average, 1.0, ahead", THRIFT),
    (M, "        if first:\n", "        if True:\n", THRIFT),
    (A, "lift = self.oracles.problem.X.project(here.x + b * (here.x - before.x))",
     "lift = self.oracles.problem.X.project(here.x - b * (here.x - before.x))", SOLVE),
    (A, "bent = 2.0 * excess if", "bent = 0.02 * excess if", SOLVE),
    (A, "keep * old_constant + weight * constant", "old_constant + weight * constant", SOLVE),
    (A, "value - inner_product(slope, v.x) - lost", "value - lost", SOLVE),
    (C, "self.base = given.hessian.apply(given.center) - g", "self.base = given.hessian.apply(given.center) + g", LOOP),
    (C, "self.y_ahead = y + step", "self.y_ahead = y - step", LOOP),
    (C, "self.y + rho * Bx, 1.0 / rho", "self.y - rho * Bx, 1.0 / rho", LOOP),
    (P, "beyond = (1.0 + theta) * new -", "beyond = new -", SOLVE),
    (P, "new = oracles.prox_f(x - pull", "new = oracles.prox_f(x + pull", SOLVE),
    (P, "* beyond + share * x0", "* beyond + share * x", ("tests/kernels/test_grids.py",)),
    (K, "bound -= margin", "bound += 1e-3 * abs(bound)", SOLVE),
    (K, "bound += margin", "bound -= 1e-3 * abs(bound)", SOLVE),
    (J, "self.known_gap <= self.target", "self.known_gap <= 10.0 * self.target", SOLVE),
    (J, "self.accept_lower(constant + found.lower - g_value", "self.accept_lower(constant + found.lower", SOLVE),
    (J, "accept_upper(at.value - found.lower", "accept_upper(at.value - found.value", SOLVE_PLANTED),
    ("functions/searched.py", "0.5 * mu * way * way", "5.0 * mu * way * way", RESIDUALS),
    (S, "+ 0.5 * inner_product(move, turn)", "+ 5.0 * inner_product(move, turn)", RESIDUALS),
    (G, "f - above.lower + rounding", "f - above.lower - rounding", CERTIFICATE),
    (G, "below.lower - g - rounding", "below.lower + g - rounding", CERTIFICATE),
    ("oracles/oracles.py", "as_count(getattr(self.calls, name) + count)", "as_count(getattr(self.calls, name))",
     ORACLES),
    ("runs/checkpoint.py", "if not body or _hash(body) != digest:", "if not body:", CHECKPOINT),
    ("runs/snapshot.py", "array.flags.writeable = bool(node[\"w\"])", "array += 1e-16", RESUME),
    ("certificates/guards.py", "difference > ADJOINT * scale + rounding", "difference > scale", GUARDS),
    ("runs/control.py", "count > self.left(name)", "0.0 > self.left(name)", LIMITS),
    ("runs/result.py", "return not (self.known_target > 0.0 or", "return True or (self.known_target > 0.0 or", ORACLES),
    ("certificates/verdict.py", "        if self.assumes:\n            return Status.MET_AS_DECLARED\n", "", GUARDS),
    ("functions/searched.py", "            tally.count(cost)\n            found", "            found", OWN_CODE),
    ("functions/base.py", "return 1.0 if self.own_code else 0.5", "return 0.5", OWN_CODE),
    (G, "            oracles.add(self.name, tally.gradients)\n", "            pass\n", OWN_CODE),
    ("kernels/base_case.py", "        v[i] += center[i]\n", "        pass\n", KERNELS),
    ("kernels/base_case.py", "if bend == 0.0 and curve == 0.0:", "if bend == 0.0:", INNERMOST),
    ("kernels/base_case.py", "stiffness[start:end], threshold", "stiffness[: v.size], threshold", DUAL),
    ("kernels/pictures.py", "before if j == 0 else", "before if k == 0 else", DUAL),
    ("kernels/sweeps.py", "eta / before, lag)", "eta / eta, lag)", DUAL),
    ("methods/sliding/innermost.py", "1.0, y, eta / self.eta, self.lag", "1.0, y, 1.0, self.lag", DUAL),
    ("methods/sliding/innermost.py", "height = rows if couples else min(rows,", "height = min(rows,", KERNELS),
    ("functions/entrywise.py", "value += 0.5 * inner_product(x, bent)", "value += inner_product(x, bent)", FUNCTIONS),
    ("functions/separable.py", "inside = size <= v + stiffness * delta", "inside = size <= v", FUNCTIONS),
    ("theory/restarts.py", "Omega ** ((nu - 1.0)", "Omega ** ((1.0 - nu)", REGIMES),
    ("theory/mixed.py", "(16.0 * L_xy**2 * diameter**2)", "(4.0 * L_xy**2 * diameter**2)", REGIMES),
    ("methods/schedule/moduli.py", "problem.X, coupling, free_y)", "problem.X, coupling, free_x)", REGIMES),
    # What makes claims true, taken back.
    (G, "from_x = errors_at(problem.f, x, f).value", "from_x = 0.0", ROUNDING),
    (Q, "return candidate.value + simple, error + FEW *", "return candidate.value + simple, FEW *", ROUNDING),
    (J, "asked.f.margin(pull, at.pull_error, found)", "at.pull_error * float(np.linalg.norm(self.x))", ROUNDING),
    (K, "if not apart > 0.0:", "if not apart > 0.0 or True:", ROUNDING),
    ("functions/trust.py", "return is_callers(part)", "return False", ("tests/certificates/test_own_claims.py",)),
    ("functions/trust.py", "return isinstance(part, kind) and not is_own_class(part)", "return isinstance(part, kind)",
     ("tests/certificates/test_own_claims.py",)),
    ("arrays/kinds.py", 'return methods is None or not methods.isdisjoint(getattr(part, "__dict__", ()))',
     "return False", ("tests/certificates/test_own_claims.py",)),
    ("functions/quadratic.py", "            skew = 0.5 * self.symmetry_test.bound", "            skew = 0.0",
     ("tests/certificates/test_guards.py",)),
    ("runs/answer.py", "    return missed if missed > allowed else 0.0", "    return 0.0", CONSTRAINED),
    ("runs/stages.py", "guard.seen = 0 if np.array_equal(point, began) else int", "guard.seen = int",
     ("tests/certificates/test_guards.py",)),
    ("runs/loop.py", "                self.judge.latest = found\n", "                pass\n",
     ("tests/runs/test_points.py",)),
    ("runs/answer.py", "    if _excludes(oracles, around, result):\n", "    if False:\n", CONSTRAINED),
    ("runs/answer.py", "elif not around.holds(result.y):", "elif False:", CONSTRAINED),
    ("facts/requirements.py", "        return VIOLATED, \"no such constant",
     "        return COMPUTED, \"no such constant",
     ("tests/theory/test_hypotheses.py",)),
    ("certificates/guards.py", "count = int(min(ENOUGH - self.seen, left))", "count = 0", GUARDS),
    ("planner/forecast.py", "not (math.isfinite(D) and tol > 0.0)", "not math.isfinite(D)",
     ("tests/runs/test_second_try.py::test_a_relative_target_at_an_optimal_start_is_an_outcome",)),
    ("certificates/books.py", "self.calls = self.calls + Calls(**made)", "pass", CLOCK),
    ("certificates/books.py", "        self.look()\n        if part > 0.0 and", "        if part > 0.0 and", CLOCK),
    ("oracles/clock.py", "return time.perf_counter() - self.began\n",
     "return time.perf_counter() - self.began - self._spent[\"certificate\"]\n", CLOCK),
    ("operators/spectrum.py", "return math.prod(shape) <= DENSE_ENTRIES", "return min(shape) <= 1200", SPARSE),
    ("operators/sparse.py", "(high := places.max()) < count)", "(high := places.max()) <= count)", SPARSE),
    ("gallery/pictures.py", "if width * height > MOST_PIXELS else", "if width * height > 10**9 else", SIZES),
    ("gallery/files.py", "check_size(16.0 * (rows + columns) +", "check_size(0.0 * (rows + columns) +", SIZES),
    ("runs/checkpoint.py", "    _clear_away(path)\n    handle", "    handle", FORGED),
    ("api/resumption.py", "    except Exception as error:\n        if theirs",
     "    except OSError as error:\n        if theirs", FORGED),
    ("errors.py", "        error.add_note(_COPY)\n", "        pass\n", ("tests/operators/test_read_only.py",)),
    ("functions/linear_model.py", 'name=f"{name}: A")', 'name="B")', ("tests/operators/test_read_only.py",)),
    ("functions/entries.py", "np.where(large > 4.0 * small, mean, low", "np.where(large < 0.0, mean, low", ENTRIES),
    ("functions/entries.py", "if form is None or f.own_code:", "if True:", ENTRIES),
    # Bounds without ends, and what has come to the rooms since.
    ("certificates/within.py", "0.5 * tau * (way * way - radius * radius)", "0.5 * tau * way * way", WITHIN),
    ("certificates/within.py", "base - fall - inner * fall", "base - 0.9 * fall - inner * fall", WITHIN),
    ("functions/trust.py", "if found.value <= _SMALL_PART * abs(value) and", "if", ROUNDING),
    ("functions/searched.py", "L: float | None = None", "L: float | None = search.curvature(accuracy)", ROUNDING),
    ("certificates/cuts.py", "up = along - across / mu", "up = along + across / mu", RESIDUALS),
    ("certificates/cuts.py", "(last.gradient - first.gradient) / size", "(last.gradient - first.gradient)", RESIDUALS),
    ("certificates/levels.py", "return function.factor * slope, function.factor * offset", "return slope, offset",
     LEVELS),
    ("certificates/levels.py", "round_up(data + math.sqrt(2.0 * left), data)", "round_up(math.sqrt(left), data)",
     LEVELS),
    ("methods/optimality.py", "= -u[self.kinked]", "= u[self.kinked]", INTERIOR),
    ("methods/interior_point.py", "aims / products - 1.0 - way", "aims / products - 1.0 + way", INTERIOR),
    ("problem/objectives.py", "and has_prox(both, X)", "and has_prox(alone, X)", OBJECTIVES),
    ("problem/objectives.py", "dual = term.scale * parts[id(term)]", "dual = parts[id(term)]", OBJECTIVES),
    ("functions/norms.py", "max(size - float(step), 0.0) / size", "max(size - 2.0 * float(step), 0.0) / size",
     CATALOGUE),
    ("functions/norms.py", "shorten_groups(center, norms, step * spread(", "shorten_groups(center, norms, spread(",
     CATALOGUE),
    ("domains/simplices.py", "found /= found.sum()", "pass", SETS),
    ("domains/simplices.py", "if float(at(float(shifts[middle])).sum()) >= self.total:",
     "if float(at(float(shifts[middle])).sum()) < self.total:", SETS),
    ("domains/treeplex.py", "1.0 / (1.0 + sum(curve.slope", "1.0 / (2.0 + sum(curve.slope", SETS),
    ("domains/cones.py", "half = 0.5 * first + 0.5 * norm", "half = norm", SETS),
    ("domains/planes.py", "            out -= (float(np.vdot(normal, out)) - self.level) * normal\n", "",
     ("tests/certificates/test_within.py::test_no_contradiction_is_seen_from_projections_of_points_far_away",)),
    ("domains/matrices.py", "values[0] += self.ball_radius", "values[0] -= self.ball_radius", SETS),
    ("methods/krylov.py", "oracles.image(x) - g)", "oracles.image(x) + g)", ("tests/methods/test_krylov.py",)),
    ("functions/maxima.py", "float(weights @ self.values), weights @ self.slopes",
     "float(weights @ self.values), -(weights @ self.slopes)", ("tests/certificates/test_hull.py",)),
    ("functions/remembered.py", "own=_CANCELLED * FEW", "own=FEW", ROUNDING),
    ("certificates/weak_gap.py", "return sum(products) + one.error, _add_up", "return sum(products), _add_up", SLIDE),
    ("methods/sliding/component.py", "math.sqrt(2.0) if self.sample_operator", "1.0 if self.sample_operator", SLIDE),
)  # fmt: skip


def caught(number: int) -> tuple[str, str]:
    """Which test catches a mutant: its name, or why there is none."""
    name, old, new, tests = MUTANTS[number]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        # With what is compiled to bytecode already: reading the package anew takes longer than many of the tests.
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("*.nb?"))
        file = source / "saddleslide" / name
        text = file.read_text(encoding="utf-8")
        if text.count(old) != 1:
            return "missing", f"{text.count(old)} places have {old!r}"
        file.write_text(text.replace(old, new), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(source), "SADDLESLIDE_JIT": "0"}
        command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
        command += ["-o", "addopts=-p no:odl_plugins --import-mode=importlib -q"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode < 0:
            return "killed", f"the tests end with signal {-done.returncode}"
        if done.returncode not in (0, 1):
            return "not run", (done.stdout + done.stderr)[-200:]
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return ("killed", failed[0][:160]) if done.returncode == 1 and failed else ("survived", done.stdout[-200:])


def main() -> None:
    """Run all mutants that the file does not know as killed, or some by number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    known = json.loads(chosen.out.read_text(encoding="utf-8")) if chosen.out and chosen.out.exists() else []
    rows = {tuple(row["mutant"]): row for row in known}
    for number in chosen.numbers or range(len(MUTANTS)):
        mutant = MUTANTS[number][:3]
        if not chosen.numbers and rows.get(mutant, {}).get("outcome") == "killed":
            continue
        outcome, by = caught(number)
        rows[mutant] = {"mutant": mutant, "outcome": outcome, "by": by}
        sys.stdout.write(f"{number:3} {outcome:9} {MUTANTS[number][0]}: {by}\n")
        sys.stdout.flush()
        if chosen.out is not None:
            kept = [rows[m[:3]] for m in MUTANTS if m[:3] in rows]
            chosen.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
