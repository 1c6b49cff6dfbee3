"""The user's own functions: callables with declared constants, or PyTorch or JAX code that is differentiated."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, final

import numpy as np

from saddleslide.arrays.arguments import as_flag
from saddleslide.arrays.base import Array, as_number, receive, receive_number, to_complex, to_real
from saddleslide.arrays.kinds import NUMPY, ArrayKind, as_kind, kind_of
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError, MissingExtraError, UnknownConstantError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.constants import estimate_smoothness
from saddleslide.functions.sampled import estimate_variance
from saddleslide.functions.trust import envelope_gradient, gradient_aside, run_aside
from saddleslide.functions.variance import EXACT, Variance
from saddleslide.operators.complex import is_complex
from saddleslide.theory.holder import Holder
from saddleslide.watcher import lend

# Draws per point when a variance is estimated; their mean stands for a gradient that is not known.
_DRAWS = 200


def _join_pairs(pairs: Any) -> Any:
    """Pairs of any library as complex numbers."""
    return to_complex(pairs) if isinstance(pairs, np.ndarray) else pairs[..., 0] + 1j * pairs[..., 1]


def _part_pairs(z: Any) -> Any:
    """Complex numbers of any library as pairs."""
    kind = kind_of(z)
    if kind == NUMPY:
        return to_real(z)
    library = importlib.import_module("jax.numpy" if kind.library == "jax" else kind.library)
    return library.stack((z.real, z.imag), -1)


def _on_pairs(work: Callable[..., Any] | None, to_pairs: bool) -> Any:
    """Code of complex arrays as code of pairs, its answer too where that is an array."""
    if work is None:
        return None
    return lambda x, *others: (_part_pairs if to_pairs else lambda answer: answer)(work(_join_pairs(x), *others))


class Declared(Function):
    """Code of the caller's, with the constants that it declares."""

    def __init__(self, name: str, smoothness: Holder | None, strong_convexity: float) -> None:
        self._name, self._smoothness = name, smoothness
        self._strong_convexity = as_number(strong_convexity, f"{name}: strong_convexity", 0.0)

    def __repr__(self) -> str:
        return f"{self._name}({self._smoothness or 'smoothness unknown'})"

    def smoothness(self, domain: Domain) -> Holder:
        if self._smoothness is None:
            raise UnknownConstantError(f"{self._name}: smoothness was not declared; pass smoothness=Holder(nu, H).")
        return self._smoothness

    def strong_convexity(self, domain: Domain) -> float:
        return self._strong_convexity

    def certain_convexity(self, domain: Domain) -> float:
        return 0.0

    @property
    def own_code(self) -> bool:
        return True


@final
class Custom(Declared):
    """A convex function of your own: its gradient or its proximal step, its value (if known) and its constants.

    Parameters
    ----------
    gradient : callable, optional
        x -> (sub)gradient, of the shape of x. The argument is read-only. May be left out when `sample` is given; then
        no gap can be certified.
    value : callable, optional
        x -> number. Without it no gap can be certified.
    smoothness : Holder, optional
        Valid on the domain the function is used on, in the Euclidean norm. `solve` does without; plans of the paper's
        method estimate it from a few gradients and say so.
    strong_convexity : float, optional
        Modulus in the Euclidean norm, >= 0.
    sample : callable, optional
        (x, rng) -> an unbiased estimate of the gradient from a fresh draw of the NumPy generator `rng`.
    variance : float or "estimate", optional
        A bound on E|sample - gradient|^2 on the domain; needed with `sample`. "estimate" takes the largest variance of
        200 draws at a few points, and every plan marks it as an estimate.
    batch : int, optional
        Samples that one call of `sample` draws, for the counts.
    prox : callable, optional
        (center, step) -> the point x that minimises f(x) + |x - center|^2 / (2 step): with it, the function is a simple
        term, which costs no gradients. It may stand in place of `gradient`.
    conjugate : callable, optional
        y -> f*(y), a number or infinity. Certificates go by proximal steps and values instead, which they compare.
    domain : Domain, optional
        Where f is finite, the whole space when missing.
    entry_steps : bool, optional
        Whether `prox` takes an array of steps, one per entry, as for a sum over entries.
    dtype : float or complex, optional
        With complex, all callables take complex arrays, and gradients g are those with f(x + h) = f(x) + Re <g, h>: of
        1/2 |A x - b|^2 it is A^H (A x - b). PyTorch's autograd gives this g, `jax.grad` its conjugate.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = Custom(gradient=lambda x: x**3, value=lambda x: (x**4).sum() / 4, smoothness=ss.Holder(1.0, 3.0))
    >>> f.value_and_gradient(np.array([1.0]))
    (0.25, array([1.]))
    >>> shrink = Custom(prox=lambda c, t: np.sign(c) * np.maximum(abs(c) - t, 0), value=lambda x: abs(x).sum())
    >>> shrink.prox(np.array([3.0, 0.5]), 1.0)
    array([2., 0.])
    >>> f = Custom(lambda x: x - 1j, lambda x: np.vdot(x - 1j, x - 1j).real / 2, dtype=complex)
    >>> f.value_and_gradient(ss.operators.to_real([3.0]))
    (5.0, array([[ 3., -1.]]))
    >>> draw = lambda x, rng: x + rng.standard_normal(x.shape)
    >>> Custom(sample=draw, variance=3.0, smoothness=ss.Holder(1.0, 1.0)).variance(ss.domains.FullSpace(3)).value
    3.0
    """

    def __init__(
        self,
        gradient: Callable[[Array], Any] | None = None,
        value: Callable[[Array], Any] | None = None,
        smoothness: Holder | None = None,
        strong_convexity: float = 0.0,
        sample: Callable[[Array, np.random.Generator], Any] | None = None,
        variance: float | str | None = None,
        batch: int = 1,
        prox: Callable[[Array, Any], Any] | None = None,
        conjugate: Callable[[Array], Any] | None = None,
        domain: Domain | None = None,
        entry_steps: bool = False,
        dtype: Any = None,
    ) -> None:
        given = {"gradient": gradient, "value": value, "sample": sample, "prox": prox, "conjugate": conjugate}
        complaints = [
            f"{name} is not callable; expected a function of x."
            for name, part in given.items()
            if not (part is None or callable(part))
        ]
        if gradient is None and sample is None and prox is None:
            complaints.append("gradient and prox are missing; expected at least one of them, functions of x.")
        if callable(prox) and not _takes_two(prox):
            complaints.append(
                "prox can not be called with center and step; expected a function (center, step) -> point."
            )
        if not (domain is None or isinstance(domain, Domain)):
            complaints.append(f"domain is {type(domain).__name__}; expected a set of ss.domains.")
        if not (smoothness is None or isinstance(smoothness, Holder)):
            complaints.append(f"smoothness is {smoothness!r}; expected Holder(nu, H) of the gradient, or None.")
        self.is_complex = dtype is not None and is_complex(dtype, "Custom")
        if self.is_complex and (entry_steps is True or domain is not None):
            complaints.append("entry_steps or domain is given with complex numbers; expected neither of them.")
        raise_all("Custom", complaints + _check_sampling(sample, variance, batch))
        super().__init__("Custom", smoothness, strong_convexity)
        if self.is_complex:
            gradient, sample, prox = (_on_pairs(work, True) for work in (gradient, sample, prox))
            value, conjugate = (_on_pairs(work, False) for work in (value, conjugate))
        self._gradient, self._value, self._sample, self._variance = gradient, value, sample, variance
        self._prox, self._conjugate, self.domain = prox, conjugate, domain
        self.has_entry_steps, self.has_gradient = as_flag(entry_steps, "Custom: entry_steps"), gradient is not None
        self.shape = None if domain is None else domain.shape
        # Certificates search with exact gradients or proximal steps, so a value alone is of no use.
        self.has_value = value is not None and not (gradient is None and prox is None)
        self.sampled = sample is not None and variance != 0.0
        self.batch = int(batch) if self.sampled else 0

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return ("Custom: NumPy code",)

    def value(self, x: Array) -> float:
        """Value at x, NaN when it was not given."""
        return math.nan if self._value is None else receive_number(NUMPY.hand(self._value, x), "Custom: value")

    @property
    def is_proximable(self) -> bool:
        return self._prox is not None

    def prox(self, center: Array, step: Array | float) -> Array:
        if self._prox is None:
            return super().prox(center, step)
        own = self._prox
        found = lend(lambda: NUMPY.hand(own, center, step))
        return receive(found, center.shape, "Custom: prox", None, center)

    def conjugate_value(self, y: Array) -> float:
        if self._conjugate is None:
            return math.nan
        own = self._conjugate
        return receive_number(lend(lambda: NUMPY.hand(own, y)), "Custom: conjugate")

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        if self._gradient is None and self._prox is not None:
            return receive(envelope_gradient(self, x), x.shape, "Custom: prox", out, x)
        if self._gradient is None:
            raise InputError(
                "Custom: it has a sampled gradient only, and an exact one is asked for; expected gradient=, or "
                "smoothness= if only its constants are wanted."
            )
        return receive(NUMPY.hand(self._gradient, x), x.shape, "Custom: gradient", out, x)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.value(x), self.gradient(x, out)

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        if self._sample is None:
            return self.gradient(x, out)
        return receive(NUMPY.hand(self._sample, x, rng), x.shape, "Custom: sample", out, x)

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        if not self.sampled:
            return EXACT
        if not isinstance(self._variance, str):
            return Variance(as_number(self._variance, "Custom: variance", 0.0), "declared")
        slope = partial(gradient_aside, self) if self._gradient is not None else self._mean_draw
        x = domain.project(np.zeros(domain.shape)) if start is None else start
        known = self._smoothness or estimate_smoothness(self, domain, x)
        return estimate_variance(self._variance_at, slope, known.H, domain, x)

    def _draws(self, x: Array) -> Array:
        """Seeded draws at x, counted for the call under way."""
        rng = np.random.default_rng(0)
        return np.stack([run_aside(self, lambda: self.sample(x, rng)) for _ in range(_DRAWS)])

    def _variance_at(self, x: Array) -> float:
        """The variance from draws alone, unbiased in expectation; the mean of the draws stands for f'."""
        return float(np.sum(np.var(self._draws(x).reshape(_DRAWS, -1), axis=0, ddof=1)))

    def _mean_draw(self, x: Array) -> Array:
        mean: Array = np.mean(self._draws(x), axis=0)
        return mean


def _check_sampling(sample: object, variance: Any, batch: Any) -> list[str]:
    complaints = []
    if callable(sample) and not _takes_two(sample):
        complaints.append("sample can not be called with x and rng; expected a function (x, rng) -> gradient estimate.")
    if sample is not None and variance is None:
        complaints.append("variance is missing with sample; expected a bound on E|sample - gradient|^2, or 'estimate'.")
    if sample is None and variance is not None:
        complaints.append("variance is given without sample; expected both or neither.")
    if isinstance(variance, str) and variance != "estimate":
        complaints.append(f"variance is {variance!r}; expected a number >= 0 or 'estimate'.")
    elif not isinstance(variance, str) and variance is not None:
        as_number(variance, "Custom: variance", 0.0)
    if isinstance(batch, bool) or not isinstance(batch, Integral) or batch < 1:
        complaints.append(f"batch is {batch!r}; expected a whole number >= 1.")
    return complaints


def _takes_two(work: Callable[..., Any]) -> bool:
    """Whether code can be called with two arguments; some compiled functions do not say what they take."""
    try:
        signature = inspect.signature(work)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(None, None)
    except TypeError:
        return False
    return True


@final
class Evaluated(Declared):
    """A convex function given by one callable x -> (value, gradient): `from_callable`, `from_torch`, `from_jax`."""

    def __init__(
        self,
        evaluate: Callable[[Any], Any],
        smoothness: Holder | None = None,
        strong_convexity: float = 0.0,
        name: str = "from_callable",
        kind: ArrayKind = NUMPY,
        value: Callable[[Any], Any] | None = None,
    ) -> None:
        if not callable(evaluate):
            raise InputError(f"{name}: received {type(evaluate).__name__}; expected a function of x.")
        if not (smoothness is None or isinstance(smoothness, Holder)):
            raise InputError(f"{name}: smoothness is {smoothness!r}; expected Holder(nu, H) of the gradient, or None.")
        super().__init__(name, smoothness, strong_convexity)
        self._evaluate, self._kind, self._value = evaluate, kind, value

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        own = self._kind.library
        return () if own == kind.library else (f"{self._name}: {'NumPy' if own == 'numpy' else own} code",)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        with self._kind.scope():
            answer = self._kind.hand(self._evaluate, x)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise InputError(
                f"{self._name}: the function returned {type(answer).__name__}; expected (value, gradient)."
            )
        value, gradient = receive_number(answer[0], f"{self._name}: value"), self._kind.receive(answer[1], x)
        return value, receive(gradient, x.shape, f"{self._name}: gradient", out, x)

    def value(self, x: Array) -> float:
        """The value alone, without a derivative where the code can do without."""
        if self._value is None:
            return self.value_and_gradient(x)[0]
        with self._kind.scope():
            return float(self._kind.hand(self._value, x))


def from_callable(
    value_and_gradient: Callable[[Any], Any],
    *,
    smoothness: Holder | None = None,
    strong_convexity: float = 0.0,
    like: Any = None,
    dtype: Any = None,
) -> Function:
    """A convex function from one callable x -> (value, gradient).

    Parameters
    ----------
    value_and_gradient : callable
        Called with a read-only array; returns a number and an array of the shape of x.
    smoothness : Holder, optional
        Hölder condition of the gradient. `solve` does without; plans of the paper's method estimate it and say so.
    strong_convexity : float, optional
        Modulus in the Euclidean norm, >= 0.
    like : "torch", "jax", "cupy" or an array of theirs, optional
        Kind of arrays that the callable takes and returns, on the device of that array; NumPy when missing.
    dtype : float or complex, optional
        Numbers that it takes and returns; complex gradients g are those with f(x + h) = f(x) + Re <g, h>, see `Custom`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.from_callable(lambda x: (np.sum(x**4) / 4, x**3))
    >>> f.value_and_gradient(np.array([2.0]))
    (4.0, array([8.]))
    """
    kind, pairs = as_kind(like, "from_callable: like"), dtype is not None and is_complex(dtype, "from_callable")

    def evaluate(x: Any) -> Any:
        answer = value_and_gradient(_join_pairs(x))
        is_pair = isinstance(answer, tuple | list) and len(answer) == 2
        return (answer[0], _part_pairs(answer[1])) if is_pair else answer

    work = evaluate if pairs and callable(value_and_gradient) else value_and_gradient
    made = Evaluated(work, smoothness, strong_convexity, kind=kind)
    made.origin, made.is_complex = kind, pairs
    return made


def from_torch(
    function: Callable[[Any], Any],
    *,
    smoothness: Holder | None = None,
    strong_convexity: float = 0.0,
    device: Any = "cpu",
    dtype: Any = None,
) -> Function:
    """A convex function from PyTorch code, differentiated by autograd in double precision.

    Parameters
    ----------
    function : callable
        A function of a tensor (float64) that returns a scalar tensor. Tensors that it uses must be float64 too.
    smoothness, strong_convexity
        As for `from_callable`.
    device : str or torch.device, optional
        Where the tensor lies.
    dtype : float or complex, optional
        With complex, the function takes a tensor of complex128, and returns a float64 one as ever.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.functions.from_torch(3)
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: from_torch: received int; expected a function of x.
    """
    torch = _library("torch", "PyTorch", function)
    pairs = dtype is not None and is_complex(dtype, "from_torch")
    # Derivatives are taken by the pairs, so that no convention of complex ones matters.
    work = _on_pairs(function, False) if pairs else function

    def check_number(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.dtype != torch.float64:
            kind = f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value)
            raise InputError(
                f"from_torch: the function returned {kind}; expected one number, a float64 tensor. Turn the tensors "
                "that it uses into float64 with .double()."
            )
        return value

    def evaluate(x: Any) -> tuple[float, Any]:
        x.requires_grad_()
        # The caller may be inside torch.no_grad().
        with torch.enable_grad():
            value = check_number(work(x))
        if not value.requires_grad:
            raise InputError("from_torch: the value does not depend on x; expected it without detach() or item().")
        (gradient,) = torch.autograd.grad(value, x)
        return float(value.detach()), gradient

    def value_alone(x: Any) -> float:
        with torch.no_grad():
            return float(check_number(work(x)))

    made = Evaluated(evaluate, smoothness, strong_convexity, "from_torch", ArrayKind("torch", device), value_alone)
    made.is_complex = pairs
    return made


def from_jax(
    function: Callable[[Any], Any],
    *,
    smoothness: Holder | None = None,
    strong_convexity: float = 0.0,
    dtype: Any = None,
) -> Function:
    """A convex function from JAX code: compiled and differentiated once per shape, in double precision.

    Parameters
    ----------
    function : callable
        A JAX function of an array that returns a scalar.
    smoothness, strong_convexity
        As for `from_callable`.
    dtype : float or complex, optional
        With complex, the function takes complex arrays, and returns a real number as ever.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.functions.from_jax(3)
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: from_jax: received int; expected a function of x.
    """
    jax = _library("jax", "JAX", function)
    # Single precision, JAX's default, would spoil every certificate; the kind's scope lifts it for each call alone.
    pairs = dtype is not None and is_complex(dtype, "from_jax")
    # Derivatives are taken by the pairs: those by complex numbers are the conjugates of ours.
    work = _on_pairs(function, False) if pairs else function
    both, alone = jax.jit(jax.value_and_grad(work)), jax.jit(work)
    made = Evaluated(both, smoothness, strong_convexity, "from_jax", ArrayKind("jax"), alone)
    made.is_complex = pairs
    return made


def _library(package: str, name: str, function: object) -> Any:
    """The library that differentiates a function."""
    if not callable(function):
        raise InputError(f"from_{package}: received {type(function).__name__}; expected a function of x.")
    try:
        return importlib.import_module(package)
    except ImportError as missing:
        raise MissingExtraError(
            f"from_{package}: {name} is not installed; expected it for automatic gradients. Install it with "
            f"pip install 'saddleslide[{package}]', or write the gradient yourself and use from_callable."
        ) from missing
