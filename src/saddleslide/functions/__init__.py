"""Functions f and g: a catalogue, sums, scalings, and the user's own."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.functions.base import Function
    from saddleslide.functions.blockwise import Blockwise
    from saddleslide.functions.composed import Composed
    from saddleslide.functions.conjugate import Conjugate, Translated
    from saddleslide.functions.constants import estimate_smoothness
    from saddleslide.functions.custom import Custom, from_callable, from_jax, from_torch
    from saddleslide.functions.direct_sum import DirectSum
    from saddleslide.functions.entropies import Entropy, KullbackLeibler, LogSumExp
    from saddleslide.functions.entrywise import Huber, Linear, Power, Zero
    from saddleslide.functions.foreign import from_odl, from_pyproximal
    from saddleslide.functions.indicator import Indicator
    from saddleslide.functions.inexact import Inexact
    from saddleslide.functions.losses import LeastSquares, Logistic, PoissonTransmission
    from saddleslide.functions.margins import EpsilonInsensitive, Hinge, PositivePart, Quantile, SquaredHinge
    from saddleslide.functions.minimum import tilted_minimum
    from saddleslide.functions.norms import L1, L2, L21, LInf, Max, Nuclear, PNorm
    from saddleslide.functions.parts import Partitioned, PartSum
    from saddleslide.functions.quadratic import Quadratic
    from saddleslide.functions.sampled import MiniBatch, Noisy, Sampled, SampledParts
    from saddleslide.functions.scaled import Scaled
    from saddleslide.functions.searched import TiltedMinimum
    from saddleslide.functions.separable import has_prox, prox
    from saddleslide.functions.sums import Sum
    from saddleslide.functions.variance import Variance

__all__ = [
    "L1", "L2", "L21", "Blockwise", "Composed", "Conjugate", "Custom", "DirectSum", "Entropy", "EpsilonInsensitive",
    "Function", "Hinge", "Huber", "Indicator", "Inexact", "KullbackLeibler", "LInf", "LeastSquares", "Linear",
    "LogSumExp", "Logistic", "Max", "MiniBatch", "Noisy", "Nuclear", "PNorm", "PartSum", "Partitioned",
    "PoissonTransmission", "PositivePart", "Power", "Quadratic", "Quantile", "Sampled", "SampledParts", "Scaled",
    "SquaredHinge", "Sum", "TiltedMinimum", "Translated", "Variance", "Zero", "estimate_smoothness", "from_callable",
    "from_jax", "from_odl", "from_pyproximal", "from_torch", "has_prox", "prox", "tilted_minimum",
]  # fmt: skip

# Where each name lives. A module of the catalogue is read when one of its names is first asked for.
_HOMES = {
    "base": ("Function",),
    "blockwise": ("Blockwise",),
    "composed": ("Composed",),
    "conjugate": ("Conjugate", "Translated"),
    "constants": ("estimate_smoothness",),
    "custom": ("Custom", "from_callable", "from_jax", "from_torch"),
    "direct_sum": ("DirectSum",),
    "entropies": ("Entropy", "KullbackLeibler", "LogSumExp"),
    "entrywise": ("Huber", "Linear", "Power", "Zero"),
    "foreign": ("from_odl", "from_pyproximal"),
    "indicator": ("Indicator",),
    "losses": ("LeastSquares", "Logistic", "PoissonTransmission"),
    "margins": ("EpsilonInsensitive", "Hinge", "PositivePart", "Quantile", "SquaredHinge"),
    "minimum": ("tilted_minimum",),
    "norms": ("L1", "L2", "L21", "LInf", "Max", "Nuclear", "PNorm"),
    "parts": ("PartSum", "Partitioned"),
    "quadratic": ("Quadratic",),
    "inexact": ("Inexact",),
    "sampled": ("MiniBatch", "Noisy", "Sampled", "SampledParts"),
    "scaled": ("Scaled",),
    "searched": ("TiltedMinimum",),
    "separable": ("has_prox", "prox"),
    "sums": ("Sum",),
    "variance": ("Variance",),
}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
