"""Real problems and the paper's instances, ready to solve."""

from saddleslide.gallery.phantoms import phantom, shaded_phantom
from saddleslide.gallery.synthetic import synthetic
from saddleslide.gallery.tomography import nonlocal_laplacian, projector, realistic_tomography, tomography

__all__ = [
    "nonlocal_laplacian",
    "phantom",
    "projector",
    "realistic_tomography",
    "shaded_phantom",
    "synthetic",
    "tomography",
]
