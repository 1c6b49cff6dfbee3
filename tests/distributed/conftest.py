"""One small cluster for all tests of clusters: starting its processes takes longer than most of them."""

from __future__ import annotations

import pytest

import saddleslide as ss
from support import need


@pytest.fixture(scope="session")
def client():
    need("distributed")
    with ss.distributed.local(workers=2) as made:
        yield made
