"""Real problems and the paper's instances, ready to solve; `problem.read(result)` says the solution in their words."""

from saddleslide.gallery.chains import Chain, ChainSolution, chain_gap, hard_chains
from saddleslide.gallery.consensus import ConsensusSolution, consensus
from saddleslide.gallery.constrained import ConstrainedSolution, constrained
from saddleslide.gallery.game import GameSolution, SyntheticSolution, matrix_game, synthetic
from saddleslide.gallery.inverse import InverseSolution, lp_inverse
from saddleslide.gallery.pictures import blur, phantom, read_picture, shaded_phantom
from saddleslide.gallery.projectors import Scanner, parallel_beam, projector
from saddleslide.gallery.restoration import PictureSolution, RestoredPicture, deblur, denoise, inpaint
from saddleslide.gallery.sequence import SequenceSolution, kuhn_poker, sequence_game
from saddleslide.gallery.solution import Solution
from saddleslide.gallery.tomography import (
    ChosenWeight,
    Reconstruction,
    choose_weight,
    nonlocal_laplacian,
    realistic_tomography,
    reconstruct,
    tomography,
)
from saddleslide.gallery.transport import TransportSolution, transport

__all__ = [
    "Chain", "ChainSolution", "ChosenWeight", "ConsensusSolution", "ConstrainedSolution", "GameSolution",
    "InverseSolution", "PictureSolution", "Reconstruction", "RestoredPicture", "Scanner", "SequenceSolution",
    "Solution", "SyntheticSolution", "TransportSolution", "blur", "chain_gap", "choose_weight", "consensus",
    "constrained", "deblur", "denoise", "hard_chains", "inpaint", "kuhn_poker", "lp_inverse", "matrix_game",
    "nonlocal_laplacian", "parallel_beam", "phantom", "projector", "read_picture", "realistic_tomography",
    "reconstruct", "sequence_game", "shaded_phantom", "synthetic", "tomography", "transport",
]  # fmt: skip
