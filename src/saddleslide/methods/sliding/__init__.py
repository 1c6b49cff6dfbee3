"""The paper's method: the recursion for any number of levels, and the bilinear problem as components of it."""

from saddleslide.methods.sliding.bilinear import bilinear_recursion, carried_models
from saddleslide.methods.sliding.component import Component
from saddleslide.methods.sliding.recursion import Recursion

__all__ = ["Component", "Recursion", "bilinear_recursion", "carried_models"]
