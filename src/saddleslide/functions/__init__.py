"""Functions f and g: a catalogue, sums, scalings, and the user's own."""

from saddleslide.functions.base import Function, Scaled, Sum, Variance
from saddleslide.functions.base import check_sample as check_sample
from saddleslide.functions.base import without_silent_noise as without_silent_noise
from saddleslide.functions.blockwise import Blockwise
from saddleslide.functions.composed import Composed
from saddleslide.functions.conjugate import Conjugate, Translated
from saddleslide.functions.constants import estimated_smoothness
from saddleslide.functions.constants import hessian_diagonal as hessian_diagonal
from saddleslide.functions.constants import modulus_for_bounds as modulus_for_bounds
from saddleslide.functions.constants import rests_on_declaration as rests_on_declaration
from saddleslide.functions.custom import Custom, from_callable, from_jax, from_torch
from saddleslide.functions.direct_sum import DirectSum
from saddleslide.functions.entropies import Entropy, KullbackLeibler, LogSumExp
from saddleslide.functions.entrywise import Huber, Linear, Power, Zero
from saddleslide.functions.foreign import from_odl, from_pyproximal
from saddleslide.functions.indicator import Indicator
from saddleslide.functions.losses import LeastSquares, Logistic, PoissonTransmission
from saddleslide.functions.margins import EpsilonInsensitive, Hinge, Quantile, SquaredHinge
from saddleslide.functions.minimum import LowerModel as LowerModel
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.norms import L1, L2, L21, LInf, Max, Nuclear, PNorm
from saddleslide.functions.parts import Partitioned, PartSum
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.sampled import MiniBatch, Noisy, Sampled, SampledParts
from saddleslide.functions.searched import Tally as Tally
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.functions.searched import split_simple as split_simple
from saddleslide.functions.separable import SeparableForm as SeparableForm
from saddleslide.functions.separable import has_prox, prox

# What people call. The machinery that is imported above under its own name serves the other rooms.
__all__ = [
    "L1",
    "L2",
    "L21",
    "Blockwise",
    "Composed",
    "Conjugate",
    "Custom",
    "DirectSum",
    "Entropy",
    "EpsilonInsensitive",
    "Function",
    "Hinge",
    "Huber",
    "Indicator",
    "KullbackLeibler",
    "LInf",
    "LeastSquares",
    "Linear",
    "LogSumExp",
    "Logistic",
    "Max",
    "MiniBatch",
    "Noisy",
    "Nuclear",
    "PNorm",
    "PartSum",
    "Partitioned",
    "PoissonTransmission",
    "Power",
    "Quadratic",
    "Quantile",
    "Sampled",
    "SampledParts",
    "Scaled",
    "SquaredHinge",
    "Sum",
    "TiltedMinimum",
    "Translated",
    "Variance",
    "Zero",
    "estimated_smoothness",
    "from_callable",
    "from_jax",
    "from_odl",
    "from_pyproximal",
    "from_torch",
    "has_prox",
    "prox",
    "tilted_minimum",
]


def __dir__() -> list[str]:
    return __all__
