"""Small helpers shared by the tests: samplers, counting oracles, brute-force references, lists of cases."""

import copy
import functools
import importlib
import importlib.util
import inspect
import itertools
import math
import os
import signal
import sys

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.certificates.books import count_aside
from saddleslide.facts.facts import Facts
from saddleslide.methods.sliding.component import component_terms
from saddleslide.planner.choice import choose
from saddleslide.theory.levels import place

# What a skipped test says of what it needs; `pytest --left-out` runs it, and what is missing is a failure then.
MISSING = "left out without {}"
SKIPS = True

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def need(library):
    """The library; where it is missing, the test is skipped."""
    # Importing ODL changes how NumPy prints arrays, which doctests would see.
    with np.printoptions():
        if SKIPS and importlib.util.find_spec(library.partition(".")[0]) is None:
            pytest.skip(MISSING.format(library.partition(".")[0]))
        return importlib.import_module(library)


def scattered(shape, density, rng):
    """A sparse array with uniform entries at random places. (SciPy calls the generator of its own `rng` since 1.15.)"""
    cells = math.prod(shape)
    places = rng.choice(cells, size=round(density * cells), replace=False)
    indices = tuple(index.astype(np.int32) for index in np.unravel_index(places, shape, order="F"))
    return scipy.sparse.coo_array((rng.uniform(size=len(places)), indices), shape=shape).tocsr()


def pairwise(**columns):
    """Parametrise a test by rows in which any two values of any two columns meet: far fewer than the full product.

    Each value of the first column is a test of its own; the rows that have it are gathered in it.
    """
    first, *others = columns
    values = [list(column) for column in columns.values()]
    rows: dict[int, list] = {}
    for row in covering_rows(values):
        case = (column[k] for column, k in zip(values[1:], row[1:], strict=True))
        rows.setdefault(row[0], []).append(pytest.param(*case))

    def decorated(test):
        own = inspect.signature(test)

        @functools.wraps(test)
        def rows_with_one_value(**given):
            at = given.pop(first)
            gathered(others, rows[at])(functools.partial(test, **{first: values[0][at]}))(**given)

        parameters = [p for p in own.parameters.values() if p.name not in others]
        rows_with_one_value.__signature__ = own.replace(parameters=parameters)
        titles = [value if isinstance(value, str) else repr(value) for value in values[0]]
        return pytest.mark.parametrize(first, range(len(titles)), ids=titles)(rows_with_one_value)

    return decorated


def covering_rows(values):
    """Rows of indices, one greedily after the other: the first pair that is missing, then what adds most pairs."""
    sizes = [len(column) for column in values]
    missing = {
        ((i, a), (j, b)): None
        for i, j in itertools.combinations(range(len(sizes)), 2)
        for a, b in itertools.product(range(sizes[i]), range(sizes[j]))
    }
    used = [[0] * size for size in sizes]
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for k in sorted(set(range(len(sizes))) - set(row), key=lambda k: -sizes[k]):
            gains = [sum(tuple(sorted(((k, c), cell))) in missing for cell in row.items()) for c in range(sizes[k])]
            row[k] = max(range(sizes[k]), key=lambda c: (gains[c], -used[k][c]))
        for k, c in row.items():
            used[k][c] += 1
        for pair in itertools.combinations(sorted(row.items()), 2):
            missing.pop(pair, None)
        rows.append([row[k] for k in range(len(sizes))])
    return rows


def gathered(names, cases, ids=None):
    """Parametrise like pytest, but as one test: all cases run; what fails, or is skipped, is listed."""
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = list(cases)
    given = [case.values if isinstance(case, type(pytest.param())) else case for case in cases]
    rows = [row if len(names) > 1 or row is not case else (row,) for row, case in zip(given, cases, strict=True)]
    titles = list(ids) if ids is not None and not callable(ids) else [", ".join(map(ids or repr, row)) for row in rows]

    def decorated(test):
        @functools.wraps(test)
        def all_cases(**others):
            failures, skipped = [], []
            for title, row in zip(titles, rows, strict=True):
                # Each case draws the same numbers as if it were alone.
                fresh = {
                    name: copy.deepcopy(v) if isinstance(v, np.random.Generator) else v for name, v in others.items()
                }
                try:
                    test(**fresh, **dict(zip(names, row, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append(f"{title}: {reason}")
                except (Exception, pytest.fail.Exception) as error:
                    failures.append((title, error))
            if failures:
                lines = [f"{title}: {type(error).__name__}: {error}" for title, error in failures]
                message = f"{len(failures)} of {len(rows)} cases fail\n" + "\n".join(lines)
                raise AssertionError(message) from failures[0][1]
            if skipped:
                pytest.skip(f"{len(skipped)} of {len(rows)} cases, the others pass\n" + "\n".join(skipped))

        own = inspect.signature(test)
        all_cases.__signature__ = own.replace(parameters=[p for p in own.parameters.values() if p.name not in names])
        return all_cases

    return decorated


class Counter:
    """Wraps a callable and counts its calls."""

    def __init__(self, call):
        self.call = call
        self.count = 0

    def __call__(self, argument):
        self.count += 1
        return self.call(argument)


class CountedProblem:
    """min max of 1/2 |x - a|^2 + <y, Bx> - 1/2 |y - b|^2 from plain callables, each with its own counter."""

    def __init__(self, B, X=None, Y=None, f_gradient=None, g_gradient=None, norm=None, modulus=0.0):
        B = np.array(B)
        rows, columns = B.shape
        a, b = np.linspace(-1.0, 1.0, columns), np.linspace(0.5, -0.5, rows)
        self.f = Counter(f_gradient or (lambda x: x - a))
        self.g = Counter(g_gradient or (lambda y: y - b))
        self.f_value = Counter(lambda x: 0.5 * float(np.sum((x - a) ** 2)))
        self.g_value = Counter(lambda y: 0.5 * float(np.sum((y - b) ** 2)))
        self.forward, self.adjoint = Counter(lambda x: B @ x), Counter(lambda y: B.T @ y)
        smoothness = ss.Holder(nu=1.0, H=1.0)
        self.f_function = ss.functions.Custom(self.f, self.f_value, smoothness, strong_convexity=modulus)
        self.g_function = ss.functions.Custom(self.g, self.g_value, smoothness, strong_convexity=modulus)
        self.X = X or ss.domains.Box(-1.0, 1.0, shape=columns)
        self.Y = Y or ss.domains.Box(-1.0, 1.0, shape=rows)
        self.norm = norm
        pair = (self.forward, self.adjoint)
        coupling = ss.operators.as_operator(pair, x_shape=(columns,), y_shape=(rows,), norm=norm)
        self.problem = ss.SaddleProblem(f=self.f_function, g=self.g_function, B=coupling, X=self.X, Y=self.Y)

    @property
    def gradients(self):
        return self.f.count, self.g.count

    @property
    def products(self):
        return self.forward.count + self.adjoint.count

    @property
    def total(self):
        return self.f.count + self.g.count + self.products + self.f_value.count + self.g_value.count


def points_of(domain, rng, count):
    """Points spread over a domain: projections of normal draws of several sizes, so its boundary is met too."""
    scales = rng.choice([0.3, 1.0, 4.0], size=count)
    return [domain.project(scale * rng.standard_normal(domain.shape)) for scale in scales]


def inner(a, b):
    """Correctly rounded inner product."""
    return math.fsum((np.ravel(a) * np.ravel(b)).tolist())


def central_difference(value, x, step=1e-6):
    """Gradient of a smooth function from values alone."""
    gradient = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (value(ahead) - value(behind)) / (2.0 * step)
    return gradient


def with_spectrum(values, rows, columns, rng):
    """A dense matrix with the given singular values and random singular vectors."""
    k = len(values)
    U = np.linalg.qr(rng.standard_normal((rows, k)))[0]
    V = np.linalg.qr(rng.standard_normal((columns, k)))[0]
    return (U * np.asarray(values)) @ V.T


def matrix_free(matrix):
    """The same map as two callables, with no matrix at hand."""
    rows, columns = matrix.shape
    pair = (lambda x: matrix @ x, lambda y: matrix.T @ y)
    return ss.operators.as_operator(pair, x_shape=(columns,), y_shape=(rows,))


def paper_plan(problem, tol=None, **options):
    """A plan as in the paper's tables: one run of Algorithm 1 in the identity metric unless said otherwise."""
    return ss.plan(problem, tol, **{"metric": "identity", "regime": "degenerate", **options})


def chosen(problem, tol, reduction, prices):
    """The method of "auto" at these prices, and all calls that choosing it took."""
    with count_aside(problem) as books:
        found = choose(Facts(problem), tol, reduction, prices, estimated=False)
    return found.method, books.calls


def die_or_double(number):
    """A task for worker processes: 3 kills its process."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def is_compiled(recursion):
    """Whether the innermost level is one compiled call; levels with a loop in NumPy say so themselves."""
    return recursion.innermost is not None and getattr(recursion.innermost, "compiled", True)


def component_levels(components, domain, start, loops, metric=1.0):
    """Components on levels with these loops, in one norm for all."""
    return place(component_terms(components, domain, start, metric), loops)
