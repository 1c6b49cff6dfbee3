"""Real problems and the paper's instances, ready to solve; `problem.read(result)` says the solution in their words."""

from saddleslide.gallery.consensus import ConsensusSolution, consensus
from saddleslide.gallery.constrained import ConstrainedSolution, constrained
from saddleslide.gallery.game import GameSolution, matrix_game
from saddleslide.gallery.inverse import InverseSolution, lp_inverse
from saddleslide.gallery.phantoms import phantom, shaded_phantom
from saddleslide.gallery.pictures import blur, read_picture
from saddleslide.gallery.restoration import RestoredPicture, deblur, denoise, inpaint
from saddleslide.gallery.solution import Solution
from saddleslide.gallery.synthetic import synthetic
from saddleslide.gallery.tomography import nonlocal_laplacian, projector, realistic_tomography, tomography
from saddleslide.gallery.transport import TransportSolution, transport

__all__ = [
    "ConsensusSolution",
    "ConstrainedSolution",
    "GameSolution",
    "InverseSolution",
    "RestoredPicture",
    "Solution",
    "TransportSolution",
    "blur",
    "consensus",
    "constrained",
    "deblur",
    "denoise",
    "inpaint",
    "lp_inverse",
    "matrix_game",
    "nonlocal_laplacian",
    "phantom",
    "projector",
    "read_picture",
    "realistic_tomography",
    "shaded_phantom",
    "synthetic",
    "tomography",
    "transport",
]
