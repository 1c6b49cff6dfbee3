"""Pictures cleaned of noise, blur and holes with (Huber) total variation; what solutions that are pictures share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

import numpy as np

import saddleslide as ss
from saddleslide.arrays.arguments import as_flag, as_path, as_word
from saddleslide.arrays.base import Array, Shape, as_number, as_real
from saddleslide.arrays.kinds import to_host
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace, NonNegative
from saddleslide.domains.product import Product
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.composed import Composed
from saddleslide.functions.entropies import KullbackLeibler
from saddleslide.functions.entrywise import Huber, Linear
from saddleslide.functions.losses import LeastSquares
from saddleslide.functions.norms import L1, L21
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.sums import Sum
from saddleslide.gallery.pictures import blur, psnr
from saddleslide.gallery.solution import Fact, ResultArray, Solution, keep_kind
from saddleslide.operators.base import Operator
from saddleslide.operators.stacks import Part, split_unknowns
from saddleslide.operators.structured import FiniteDifferences, SymmetricGradient
from saddleslide.plots import require_matplotlib
from saddleslide.problem import SaddleProblem
from saddleslide.problem.objectives import split_objective

# What a picture may be written as.
_FORMATS = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".eps", ".ps")
# Curvature of the deblurring problem in the directions that the blur wipes out.
_RIDGE = 1e-4
# How differences are added up, and how data are compared.
TV, DATA = ("anisotropic", "isotropic", "tgv"), ("squares", "l1", "kl")
# Weight of the second order of the generalised variation beside the first: what the literature takes.
_SECOND_ORDER = 2.0


@dataclass(frozen=True, eq=False)
class Variation:
    """A (Huber) total variation of pictures on a grid; the generalised one has a field beside the picture in x."""

    # Of x: the picture itself, or both one after the other.
    function: Function
    grid: Shape
    picture: Part | None = None


class _Picture(ResultArray):
    """The picture in x."""

    def __get__(self, solution: Any, owner: Any = None) -> Any:
        part = None if solution is None else solution.tv.picture
        found = super().__get__(solution, owner)
        return found if part is None else found[part.start : part.stop].reshape(part.y_shape)


class PictureSolution(Solution):
    """A result whose x is a picture: grey, in colours, or a volume.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.denoise(np.full((2, 2), 0.1), weight=0.1)
    >>> isinstance(problem.read(ss.solve(problem, tol=1e-9)), ss.gallery.PictureSolution)
    True
    """

    tv: Variation
    image = _Picture("x", "The picture.")

    @property
    def variation(self) -> float:
        """The (Huber) total variation: of absolute differences of neighbours, or of lengths of their gradients.

        The generalised one is that of the field that was found.
        """
        return self.tv.function.value(to_host(self.result.x))

    def psnr(self, truth: Any) -> float:
        """Peak signal-to-noise ratio against the true picture with values in [0, 1], in decibels."""
        return psnr(self.image, as_real(truth, "psnr: truth", self.image.shape))

    def shown(self, picture: Array) -> Array:
        """What of an array like the picture a page can show, within [0, 1]: of a volume the middle slice."""
        for _ in self.tv.grid[2:]:
            picture = picture[len(picture) // 2]
        return np.clip(picture, 0.0, 1.0)

    def save(self, path: str | Path) -> None:
        """Write the picture as a file, of a volume the middle slice; values below 0 are black, above 1 white."""
        require_matplotlib()
        from matplotlib.image import imsave

        place = as_path(path, "save: path", "picture.png")
        if place.suffix.lower() not in _FORMATS:
            raise InputError(f"save: path is {str(place)!r}; expected a name that ends in one of {_FORMATS}.")
        imsave(place, self.shown(self.image), cmap="gray", vmin=0.0, vmax=1.0)


def total_variation(shape: Shape, huber: float = 0.0, tv: str = "anisotropic", colour: bool = False) -> Variation:
    """The (Huber) total variation of pictures of a shape; colours share their edges where it is not anisotropic."""
    grid, channels = (shape[:-1], shape[-1]) if colour else (shape, None)
    D = FiniteDifferences(grid, channels)
    axis = None if tv == "anisotropic" else (0, len(shape)) if colour else (0,)
    h = Huber(huber, axis) if huber > 0.0 else L1() if axis is None else L21(axis)
    if axis is None or tv == "isotropic":
        return Variation(h @ D, grid)
    u, w = split_unknowns(shape, D.y_shape)
    second = L21(axis) @ (SymmetricGradient(grid, channels) @ w)
    return Variation(h @ (D @ u - w) + _SECOND_ORDER * second, grid, u)


P = TypeVar("P", bound=PictureSolution)


def tv_problem(
    f: Function, weight: float, huber: float, tv: Variation, X: Domain, reader: Callable[[ss.Result], P]
) -> SaddleProblem[P]:
    """Min f(x) + weight TV(x) over pictures x in X, where f has a gradient or a proximal step of its own."""
    composed = tv.function
    assert isinstance(composed, Composed)
    g, Y = composed.function.dual(composed.K.y_shape, weight)
    # On |y| <= weight, the maximum of y t - huber / (2 weight) y^2 is weight times the Huber function of t.
    g = Quadratic(huber / weight) if huber > 0.0 else g
    return SaddleProblem(f=f, g=g, B=composed.K, X=X, Y=Y, reader=reader)


def misfit(
    data: str, b: Array, weights: Array | None, A: Operator | None = None, ridge: float = 0.0
) -> tuple[Function, float]:
    """What differs between A x (or x) and b, weighted, plus ridge/2 |x|^2: a function, and the number to add to it."""
    w = np.ones(b.shape) if weights is None else weights
    damping = [Quadratic(ridge)] if ridge > 0.0 else []
    offset = 0.0
    if data == "squares":
        if A is not None:
            return LeastSquares(A, b, ridge=ridge, weights=weights), 0.0
        return Quadratic(1.0 if weights is None else w, diagonal=True) + Linear(-(w * b)), 0.5 * float(
            np.vdot(b, w * b)
        )
    if data == "l1":
        h: Function = L1(w).translated(b)
    else:
        h = KullbackLeibler(w * b)
    terms = [h if A is None else h @ A, *damping]
    if data == "kl" and weights is not None:
        # w (z - b + b log(b / z)) is the divergence of z from w b, plus (w - 1) z - w b log w.
        terms.append(Linear(w - 1.0 if A is None else A.adjoint(w - 1.0)))
        offset = -float(np.sum(w * b * np.log(w, out=np.zeros_like(w), where=w > 0.0)))
    return sum(terms[1:], terms[0]), offset


def as_weights(weights: Any, shape: Shape, name: str) -> Array | None:
    """Weights of the data, numbers >= 0 and some above, or what is wrong with them."""
    if weights is None:
        return None
    found = as_real(weights, f"{name}: weights", shape)
    if float(found.min(initial=0.0)) < 0.0 or not found.any():
        raise InputError(
            f"{name}: weights go from {found.min():g} to {found.max():g}; expected numbers >= 0, some of them above 0."
        )
    return found


def check_data(data: str, b: Array, name: str) -> None:
    """A known way to compare data, and counts >= 0 for the divergence."""
    as_word(data, f"{name}: data", DATA)
    if data == "kl" and float(b.min()) < 0.0:
        raise InputError(f"{name}: the data have a negative value {b.min():g}; expected numbers >= 0 with data='kl'.")


def as_positive(value: Any, name: str) -> float:
    """A finite number > 0, or what is wrong with it."""
    number = as_number(value, name, 0.0)
    if number == 0.0:
        raise InputError(f"{name} is 0; expected a number > 0.")
    return number


@final
@dataclass(frozen=True, eq=False, repr=False)
class RestoredPicture(PictureSolution):
    """The picture, what it was made from, and how good it is.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> noisy = np.array([[0.0, 0.1, 0.9, 1.0]] * 4)
    >>> problem = ss.gallery.denoise(noisy, weight=0.1)
    >>> problem.read(ss.solve(problem, tol=1e-9)).image[0].round(3).tolist()
    [0.1, 0.1, 0.9, 0.9]
    """

    given: Array
    offset: float
    weight: float
    huber: float
    tv: Variation
    f: Function
    result: ss.Result

    @property
    def objective(self) -> float:
        """Misfit plus weight times (Huber) total variation, at the picture; the minimum is at least `lower`."""
        return self.f.value(self.image) + self.offset + self.weight * self.variation

    @property
    def lower(self) -> float:
        """Certified lower bound on the minimum."""
        return self.result.lower + self.offset

    def facts(self) -> dict[str, Fact]:
        return {"objective": self.objective, "minimum at least": self.lower, "total variation": self.variation}

    def draw(self, figure: Any) -> None:
        pictures = {"given": self.given, "restored": self.image}
        for ax, (title, picture) in zip(figure.subplots(1, 2), pictures.items(), strict=True):
            ax.imshow(self.shown(picture), cmap="gray", vmin=0.0, vmax=1.0)
            ax.set(title=title, xticks=[], yticks=[])


@keep_kind
def denoise(
    picture: Any, weight: float, *, huber: float = 0.0, tv: str = "anisotropic", data: str = "squares",
    weights: Any = None, nonnegative: bool = False, colour: bool | None = None,
) -> SaddleProblem[RestoredPicture]:  # fmt: skip
    """Remove noise: min misfit(x, picture) + weight TV(x).

    Parameters
    ----------
    picture : array (rows, columns), (rows, columns, 3) or (slices, rows, columns)
        Grey values, colours or a volume, about 0 to 1. `ss.gallery.read_picture` reads files.
    weight : float
        Weight of the total variation, > 0.
    huber : float, optional
        Differences (of isotropic TV: gradients) below this are squared instead (Huber-TV), which avoids flat patches; 0
        is plain TV.
    tv : "anisotropic", "isotropic" or "tgv", optional
        Absolute differences of neighbours, or lengths of gradients: the second has no preferred directions, and colours
        share their edges. "tgv" is the total generalised variation, the least of |D x - w| + 2 |E w| over fields w with
        E their symmetric differences: slopes cost nothing, and shades do not become stairs.
    data : "squares", "l1" or "kl", optional
        Misfit: 1/2 |x - picture|^2 (Gaussian noise), sum |x - picture| (outliers, salt and pepper) or the divergence
        sum x - picture + picture log(picture / x) (counts).
    weights : array like the picture, optional
        Weights >= 0 of its entries in the misfit; 1 when missing.
    nonnegative : bool, optional
        Demand x >= 0.
    colour : bool, optional
        Whether the last axis holds colours; when missing, whether it is the third of three and has three entries.

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is a RestoredPicture.

    Examples
    --------
    >>> import numpy as np
    >>> denoise(np.zeros((8, 8)), weight=0.1, huber=0.01).g
    Quadratic(diagonal, any shape)
    >>> denoise(np.zeros((8, 8, 3)), weight=0.1, tv="isotropic").Y
    GroupBalls(0.1, axis=(0, 3), shape=(2, 8, 8, 3))
    """
    given, colour = _picture(picture, colour, "denoise")
    wishes = _Wishes("denoise", weight, huber, tv, data, nonnegative, colour)
    return _pointwise(given, as_weights(weights, given.shape, "denoise"), wishes)


@keep_kind
def inpaint(
    picture: Any, known: Any, weight: float, *, huber: float = 0.0, tv: str = "anisotropic", data: str = "squares",
    weights: Any = None, nonnegative: bool = False, colour: bool | None = None,
) -> SaddleProblem[RestoredPicture]:  # fmt: skip
    """Fill holes: min misfit(x, picture) on what is known + weight TV(x).

    Parameters
    ----------
    picture : array (rows, columns), (rows, columns, 3) or (slices, rows, columns)
        Grey values, colours or a volume; what stands in the holes does not matter, NaN included.
    known : array of bool
        True where the picture is known; for colours also one for each pixel.
    weight, huber, tv, data, weights, nonnegative, colour
        As for `denoise`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> picture = np.array([[1.0, np.nan, 1.0]])
    >>> problem = inpaint(picture, ~np.isnan(picture), weight=0.01)
    >>> problem.read(ss.solve(problem, tol=1e-9)).image.round(3)
    array([[1., 1., 1.]])
    """
    for name, part in (("known", known), ("picture", picture)):
        if np.ma.is_masked(part):
            raise InputError(f"inpaint: {name} is a masked array; expected known=~picture.mask and picture.filled(0).")
    mask, picture = to_host(known), to_host(picture)
    shape = np.shape(picture)
    if mask.dtype == bool and len(shape) == 3 and mask.shape == shape[:2] and _has_colours(shape, colour):
        mask = np.repeat(mask[..., None], shape[2], axis=2)
    if mask.dtype != bool or mask.shape != shape or not mask.any():
        raise InputError(
            f"inpaint: known has shape {mask.shape}, dtype {mask.dtype}, {int(np.count_nonzero(mask))} known pixels; "
            f"expected booleans of shape {shape}, some of them True."
        )
    given, colour = _picture(np.where(mask, picture, 0.0), colour, "inpaint")
    w = as_weights(weights, given.shape, "inpaint")
    w = mask.astype(np.float64) if w is None else as_weights(mask * w, given.shape, "inpaint")
    return _pointwise(given, w, _Wishes("inpaint", weight, huber, tv, data, nonnegative, colour))


class _Wishes(NamedTuple):
    """What denoise, inpaint and deblur are asked alike, and which of them is."""

    name: str
    weight: float
    huber: float
    tv: str
    data: str
    nonnegative: bool
    colour: bool


def _pointwise(given: Array, weights: Array | None, wishes: _Wishes) -> SaddleProblem[RestoredPicture]:
    """The problem whose misfit compares x with the picture itself."""
    nonnegative = as_flag(wishes.nonnegative, f"{wishes.name}: nonnegative")
    check_data(wishes.data, given, wishes.name)
    f, offset = misfit(wishes.data, given, weights)
    seen = given if weights is None else given[weights > 0.0]
    if (weights is None and wishes.data == "squares") or wishes.tv == "tgv":
        X: Domain = NonNegative(given.shape) if nonnegative else FullSpace(given.shape)
    else:
        # A minimiser never leaves the range of the known values: clipping to it lowers both terms, but not slopes.
        low, high = (max(float(end), 0.0) if nonnegative else float(end) for end in (seen.min(), seen.max()))
        X = Box(low, high, shape=given.shape)
    return _problem(f, given, offset, X, wishes)


@keep_kind
def deblur(
    picture: Any, kernel: Any, weight: float, *, huber: float = 0.0, ridge: float = _RIDGE, tv: str = "anisotropic",
    data: str = "squares", weights: Any = None, nonnegative: bool = False, colour: bool | None = None,
) -> SaddleProblem[RestoredPicture]:  # fmt: skip
    """Remove blur: min misfit(kernel * x, picture) + ridge/2 |x|^2 + weight TV(x).

    Parameters
    ----------
    picture : array (rows, columns), (rows, columns, 3) or (slices, rows, columns)
        Grey values, colours or a volume.
    kernel : array with odd sides
        What the blur makes of one bright pixel, with as many axes as the grid of pixels. The picture is reflected at
        its sides; colours are blurred alike.
    ridge : float, optional
        Weight of |x|^2 / 2, > 0: without it the gap could not be certified.
    weight, huber, tv, data, weights, nonnegative, colour
        As for `denoise`.

    Examples
    --------
    >>> import numpy as np
    >>> deblur(np.zeros((8, 8)), np.full((3, 3), 1 / 9), weight=0.01).f
    LeastSquares((8, 8) -> (8, 8), ridge=0.0001)
    """
    given, colour = _picture(picture, colour, "deblur")
    check_data(data, given, "deblur")
    A = blur(kernel, given.shape, colour)
    w = as_weights(weights, given.shape, "deblur")
    f, offset = misfit(data, given, w, A, as_positive(ridge, "deblur: ridge"))
    X = NonNegative(given.shape) if nonnegative else FullSpace(given.shape)
    return _problem(f, given, offset, X, _Wishes("deblur", weight, huber, tv, data, nonnegative, colour))


def _problem(f: Function, given: Array, offset: float, X: Domain, wishes: _Wishes) -> SaddleProblem[RestoredPicture]:
    name, weight, huber, tv, data, nonnegative, colour = wishes
    strength, threshold = as_positive(weight, f"{name}: weight"), as_number(huber, f"{name}: huber", 0.0)
    as_flag(nonnegative, f"{name}: nonnegative")
    variation = total_variation(given.shape, threshold, as_word(tv, f"{name}: tv", TV), colour)
    reader = partial(RestoredPicture, given, offset, strength, threshold, variation, f)
    return restoration(f, strength, threshold, variation, data, X, reader)


def restoration(
    f: Function, weight: float, huber: float, tv: Variation, data: str, X: Domain,
    reader: Callable[[ss.Result], P],
) -> SaddleProblem[P]:  # fmt: skip
    """Min f(x) + weight TV(x) over X; a misfit that is not smooth may become a block of y."""
    if tv.picture is not None:
        f, X = _of_part(f, tv.picture), Product(X, FullSpace(tv.picture.shapes[1]))
    elif data == "squares":
        return tv_problem(f, weight, huber, tv, X, reader)
    problem = split_objective(f + weight * tv.function, X).problem
    return replace(problem, B=problem.coupling, reader=reader)


def _of_part(f: Function, u: Part) -> Function:
    """F of the picture as a function of x, term by term."""
    if isinstance(f, Sum):
        return _of_part(f.parts[0], u) + _of_part(f.parts[1], u)
    if isinstance(f, LeastSquares) and f.A is not None:
        squares = LeastSquares(f.A @ u, f.b, weights=f.weights)
        return squares + Quadratic(f.ridge) @ u if f.ridge > 0.0 else squares
    return f @ u


def _has_colours(shape: Shape, colour: bool | None) -> bool:
    return len(shape) == 3 and shape[2] == 3 if colour is None else colour


def _picture(picture: Any, colour: bool | None, name: str) -> tuple[Array, bool]:
    """The picture, and whether its last axis holds colours."""
    given = as_real(picture, f"{name}: picture")
    colours = _has_colours(given.shape, None if colour is None else as_flag(colour, f"{name}: colour"))
    if given.ndim - colours not in (2, 3) or given.size == 0:
        raise InputError(
            f"{name}: picture has shape {given.shape}; expected grey values (rows, columns), colours "
            "(rows, columns, 3) or a volume (slices, rows, columns)."
        )
    return given, colours
