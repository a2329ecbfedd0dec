"""A state store that damages the bytes it is given, for commands that run within ``damaged``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pandas as pd

import streaming.pipeline.query
from udfs.model.config import CoreConfig
from udfs.stateful import ShardFunction, StateHandle, shard_function


class Damaging:
    """A state's handle that writes one bit wrong."""

    def __init__(self, state: StateHandle) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def update(self, values: tuple[bytes]) -> None:
        data = bytearray(values[0])
        if data:
            data[len(data) // 2] ^= 1
        self._state.update((bytes(data),))


def damaging_function(config: CoreConfig, **fields: Any) -> ShardFunction:
    advance = shard_function(config, **fields)

    def advance_shard(
        key: tuple[str, int], frames: Iterable[pd.DataFrame], state: StateHandle
    ) -> Iterator[pd.DataFrame]:
        return advance(key, frames, Damaging(state))

    return advance_shard


def damaged() -> AbstractContextManager[object]:
    """Let the job write damaged state until the block is left."""
    return mock.patch.object(streaming.pipeline.query, "shard_function", damaging_function)
