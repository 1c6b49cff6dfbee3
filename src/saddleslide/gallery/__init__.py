"""Real problems and the paper's instances, ready to solve."""

from saddleslide.gallery.synthetic import synthetic

__all__ = ["synthetic"]
