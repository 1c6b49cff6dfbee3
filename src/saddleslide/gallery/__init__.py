"""Real problems and the paper's instances, ready to solve; `problem.read(result)` says the solution in their words."""

from saddleslide.gallery.constrained import ConstrainedSolution, constrained
from saddleslide.gallery.game import GameSolution, matrix_game
from saddleslide.gallery.phantoms import phantom, shaded_phantom
from saddleslide.gallery.solution import Solution
from saddleslide.gallery.synthetic import synthetic
from saddleslide.gallery.tomography import nonlocal_laplacian, projector, realistic_tomography, tomography
from saddleslide.gallery.transport import TransportSolution, transport

__all__ = [
    "ConstrainedSolution",
    "GameSolution",
    "Solution",
    "TransportSolution",
    "constrained",
    "matrix_game",
    "nonlocal_laplacian",
    "phantom",
    "projector",
    "realistic_tomography",
    "shaded_phantom",
    "synthetic",
    "tomography",
    "transport",
]
