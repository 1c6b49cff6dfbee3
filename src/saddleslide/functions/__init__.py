"""Functions f and g: a catalogue, sums, scalings, and the user's own."""

from saddleslide.functions.base import Function, Scaled, Sum
from saddleslide.functions.custom import Custom
from saddleslide.functions.losses import Huber, LeastSquares, Logistic
from saddleslide.functions.minimum import TiltedMinimum, tilted_minimum
from saddleslide.functions.power import Power
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.simple import Linear, Zero

__all__ = [
    "Custom",
    "Function",
    "Huber",
    "LeastSquares",
    "Linear",
    "Logistic",
    "Power",
    "Quadratic",
    "Scaled",
    "Sum",
    "TiltedMinimum",
    "Zero",
    "tilted_minimum",
]
