"""The monitor with a state store that damages what it is given: run as ``python -m tests.job.damaging run …``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

import streaming.pipeline.query
from streaming.commands import main
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


def damaging_function(rules: CoreConfig, **fields: Any) -> ShardFunction:
    advance = shard_function(rules, **fields)

    def advance_shard(
        key: tuple[str, int], frames: Iterable[pd.DataFrame], state: StateHandle
    ) -> Iterator[pd.DataFrame]:
        return advance(key, frames, Damaging(state))

    return advance_shard


if __name__ == "__main__":
    streaming.pipeline.query.shard_function = damaging_function  # type: ignore[assignment]
    main()
