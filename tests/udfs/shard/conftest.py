"""A cluster of shards whose groups only have sessions."""

from __future__ import annotations

import pytest

from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.shard_script import Cluster


@pytest.fixture
def logic() -> PlainLogic:
    """The groups' logic, and what it was given."""
    return PlainLogic()


@pytest.fixture
def cluster(logic: PlainLogic) -> Cluster:
    """A cluster of shards, fed batch by batch."""
    return Cluster(logic)
