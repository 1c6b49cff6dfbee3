"""Methods: one a file, all with the same verbs: init, step, point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saddleslide.methods.base import Description, Method, Option, State, option
from saddleslide.methods.catalogue import HOMES, Methods, by_name

if TYPE_CHECKING:
    from saddleslide.methods.accelerated_gradient import AcceleratedGradient
    from saddleslide.methods.accelerated_mirror_prox import AcceleratedMirrorProx
    from saddleslide.methods.admm import ADMM
    from saddleslide.methods.apdg import APDG
    from saddleslide.methods.bundle import Bundle
    from saddleslide.methods.condat_vu import CondatVu
    from saddleslide.methods.gradient_sliding import GradientSliding
    from saddleslide.methods.interior_point import InteriorPoint
    from saddleslide.methods.krylov import Krylov
    from saddleslide.methods.lbfgs import LBFGS
    from saddleslide.methods.mirror_prox import MirrorProx
    from saddleslide.methods.mirror_prox_sliding import MirrorProxSliding
    from saddleslide.methods.opapc import OPAPC
    from saddleslide.methods.parameter_free_sliding import ParameterFreeSliding
    from saddleslide.methods.pdhg import PDHG
    from saddleslide.methods.proved_sliding import ProvedSliding
    from saddleslide.methods.recursive_sliding import Lockstep, RecursiveSliding, TwoLevelSliding
    from saddleslide.methods.uapd import UAPD
    from saddleslide.methods.universal_gradient import UniversalGradient
    from saddleslide.methods.universal_mirror_prox import UniversalMirrorProx
    from saddleslide.methods.universal_primal_dual import UniversalPrimalDual

__all__ = [
    "ADMM", "APDG", "LBFGS", "OPAPC", "PDHG", "UAPD", "AcceleratedGradient", "AcceleratedMirrorProx", "Bundle",
    "CondatVu", "Description", "GradientSliding", "InteriorPoint", "Krylov", "Lockstep", "Method", "Methods",
    "MirrorProx", "MirrorProxSliding", "Option", "ParameterFreeSliding", "ProvedSliding", "RecursiveSliding", "State",
    "TwoLevelSliding", "UniversalGradient",
    "UniversalMirrorProx", "UniversalPrimalDual", "by_name", "option",
]  # fmt: skip

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    def __getattr__(name: str) -> Any:
        for listed, (_, kind) in HOMES.items():
            if kind == name:
                return by_name[listed]
        raise AttributeError(f"module 'saddleslide.methods' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
