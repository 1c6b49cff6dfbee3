"""Functions f and g: a catalogue, sums, scalings, and the user's own."""

from saddleslide.functions.automatic import Evaluated, from_callable, from_jax, from_torch
from saddleslide.functions.base import Function, Scaled, Sum
from saddleslide.functions.blockwise import Blockwise
from saddleslide.functions.custom import Custom
from saddleslide.functions.diagonals import hessian_diagonal
from saddleslide.functions.estimates import estimated_smoothness
from saddleslide.functions.losses import Huber, LeastSquares, Logistic, PoissonTransmission
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.models import LowerModel
from saddleslide.functions.moduli import bounding_modulus, rests_on_declaration
from saddleslide.functions.part_sampling import SampledParts
from saddleslide.functions.parts import Partitioned, PartSum
from saddleslide.functions.power import Power
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.sampled import MiniBatch, Noisy, Sampled, check_sample, without_silent_noise
from saddleslide.functions.searched import Tally, TiltedMinimum, split_simple
from saddleslide.functions.separable import SeparableForm, has_prox, prox
from saddleslide.functions.simple import Linear, Zero
from saddleslide.functions.variance import Variance

__all__ = [
    "Blockwise",
    "Custom",
    "Evaluated",
    "Function",
    "Huber",
    "LeastSquares",
    "Linear",
    "Logistic",
    "LowerModel",
    "MiniBatch",
    "Noisy",
    "PartSum",
    "Partitioned",
    "PoissonTransmission",
    "Power",
    "Quadratic",
    "Sampled",
    "SampledParts",
    "Scaled",
    "SeparableForm",
    "Sum",
    "Tally",
    "TiltedMinimum",
    "Variance",
    "Zero",
    "bounding_modulus",
    "check_sample",
    "estimated_smoothness",
    "from_callable",
    "from_jax",
    "from_torch",
    "has_prox",
    "hessian_diagonal",
    "prox",
    "rests_on_declaration",
    "split_simple",
    "tilted_minimum",
    "without_silent_noise",
]
