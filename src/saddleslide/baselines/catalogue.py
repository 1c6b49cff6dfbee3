"""The collection of methods: by name, as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from saddleslide.baselines.accelerated_gradient import AcceleratedGradient
from saddleslide.baselines.accelerated_mirror_prox import AcceleratedMirrorProx
from saddleslide.baselines.base import Method
from saddleslide.baselines.lockstep import Lockstep
from saddleslide.baselines.mirror_prox import MirrorProx
from saddleslide.baselines.mirror_prox_sliding import MirrorProxSliding
from saddleslide.baselines.two_level import TwoLevelSliding
from saddleslide.baselines.universal_gradient import UniversalGradient
from saddleslide.baselines.universal_mirror_prox import UniversalMirrorProx
from saddleslide.errors import InputError

ALL: tuple[type[Method], ...] = (
    MirrorProx,
    AcceleratedMirrorProx,
    MirrorProxSliding,
    UniversalMirrorProx,
    TwoLevelSliding,
    Lockstep,
    AcceleratedGradient,
    UniversalGradient,
)


class Methods(Mapping[str, type[Method]]):
    """All methods by name; prints as a table of what each needs, promises and comes from.

    Examples
    --------
    >>> import saddleslide as ss
    >>> "mirror-prox" in ss.methods
    True
    >>> ss.methods["mirror-prox"].description.reference[:10]
    'Nemirovski'
    """

    def __init__(self, members: tuple[type[Method], ...]) -> None:
        self._members = {member.description.name: member for member in members}

    def __getitem__(self, name: str) -> type[Method]:
        if not isinstance(name, str) or name not in self._members:
            raise InputError(f"method: {name!r} is unknown; expected one of {', '.join(self)}.")
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        blocks = [_block(member) for member in self._members.values()]
        return "\n".join(blocks)


def _block(member: type[Method]) -> str:
    about = member.description
    rows = (("needs", ", ".join(about.needs) or "gradients"), ("promises", about.guarantee), ("from", about.reference))
    lines = [about.name]
    for title, text in rows:
        lines += textwrap.wrap(text, 100, initial_indent=f"  {title:<9}", subsequent_indent=" " * 11)
    return "\n".join(lines)


methods = Methods(ALL)
