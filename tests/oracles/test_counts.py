"""Every call that the caller's own code sees is in `calls`: those of the choice and of the first weights too."""

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.facts.facts import Facts
from support import gathered


class Seen:
    """A strongly convex problem away from 0 whose gradients and products count themselves."""

    def __init__(self, linear=False):
        rng = np.random.default_rng(2)
        self.made = dict.fromkeys(("f", "g", "B", "f alone", "g alone"), 0)
        B = rng.standard_normal((4, 5))
        f, g = (self._quadratic(name, n, rng) for name, n in (("f", 5), ("g", 4)))
        pair = self._counted("B", lambda x: B @ x), self._counted("B", lambda y: B.T @ y)
        self.problem = ss.SaddleProblem(
            f=f,
            g=ss.functions.Linear(np.ones(4)) if linear else g,
            B=ss.operators.as_operator(pair, (5,), (4,), norm=float(np.linalg.norm(B, 2))),
            X=ss.domains.Box(0.5, 2.0, shape=5),
            Y=ss.domains.Box(0.5, 2.0, shape=4),
        )

    def _counted(self, name, call):
        def counted(v):
            self.made[name] += 1
            return call(v)

        return counted

    def _quadratic(self, name, n, rng):
        root, slope = rng.standard_normal((n, n)), rng.standard_normal(n)
        A = root @ root.T / n + 0.3 * np.eye(n)
        low, *_, high = np.linalg.eigvalsh(A)
        gradient = self._counted(name, lambda v: A @ v + slope)
        value = self._counted(f"{name} alone", lambda v: float(v @ A @ v / 2 + slope @ v))
        return ss.functions.Custom(gradient, value, ss.Holder(1.0, high), 0.9 * low)

    def since(self):
        made = dict(self.made)
        self.made.update(dict.fromkeys(made, 0))
        return made


@pytest.mark.parametrize(
    ("method", "linear"),
    [
        ("auto", False),
        ("adaptive", False),
        ("condat-vu", False),
        ("mirror-prox", False),
        ("accelerated-mirror-prox", False),
        ("auto", True),
        ("condat-vu", True),
        ("gradient-sliding", True),
    ],
)
@gathered("target", [{"tol": 1e-6}, {"reduction": 1e-6}])
def test_what_the_callables_saw_is_counted_in_every_solve(method, linear, target):
    seen = Seen(linear)
    for _ in range(2):
        result = ss.solve(seen.problem, method=method, max_steps=8, **target)
        made = seen.since()
        assert made["B"] == result.calls.B
        for name in "f" if linear else "fg":
            # A value alone is a call; one at the point of a gradient may come with it.
            counted = getattr(result.calls, name)
            assert made[name] <= counted <= made[name] + made[f"{name} alone"]


@pytest.mark.parametrize(("method", "linear"), [("condat-vu", False), ("gradient-sliding", True)])
def test_nothing_is_called_to_get_ready_for_a_resumed_run(method, linear, tmp_path):
    seen, path = Seen(linear), tmp_path / "run.npz"
    ss.solve(seen.problem, 1e-9, method=method, max_steps=4, checkpoint=path)
    seen.since()
    stored = path.read_bytes()
    ss.resume(path, seen.problem, time_limit=0.0)
    assert not any(seen.since().values())
    # That run has written its own limit.
    path.write_bytes(stored)
    on = ss.resume(path, seen.problem, max_steps=8)
    whole = ss.solve(seen.problem, 1e-9, method=method, max_steps=8)
    assert on.x.tobytes() == whole.x.tobytes() and on.calls == whole.calls and on.gap == whole.gap


def test_what_is_assumed_is_a_value_of_its_own():
    facts = Facts(Seen().problem)
    true = facts.distances
    near, far = (facts.with_distances(facts.sizes.within((slope, slope))) for slope in (1e-6, 1e-3))
    assert near.distances != far.distances and facts.distances == true
    assert near.f is facts.f
