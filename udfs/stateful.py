"""Core: the function that Spark's ``applyInPandasWithState`` calls for each (cluster, shard). No I/O.

It imports no Spark: the state's handle is passed in. It reads no clock: the batch's own timestamp comes with the
handle, and is the same if the batch is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec
import pandas as pd

from udfs.group import coordinator
from udfs.model.config import CoreConfig
from udfs.model.errors import StateVersionError
from udfs.model.group_api import GroupLogic
from udfs.model.journal import Change, ClusterBegun, ClusterObserved, Rebalance, Rejected, Unfinished
from udfs.model.queue_progress import QueueProgress
from udfs.packets.packet import STATELESS, Packet, decode_packet
from udfs.shard.shard import Row, Shard

PAYLOAD = "payload"  # the input's column of packets; the key's columns are not read
DECIDED_SCHEMA = "kind string, cluster string, body string"
STATE_SCHEMA = "state binary"
_KINDS: dict[type[Row], str] = {
    Rebalance: "rebalance",
    Change: "change",
    Rejected: "rejected",
    ClusterBegun: "begun",
    ClusterObserved: "observed",
    QueueProgress: "progress",
    Unfinished: "unfinished",
}
_encode = msgspec.json.Encoder().encode
_ROWS_AT_ONCE = 10_000  # bounds the memory of a batch with many decisions


class StateHandle(Protocol):
    """The used part of Spark's ``GroupState``, under its names."""

    @property
    def exists(self) -> bool: ...
    @property
    def get(self) -> tuple[bytes]: ...
    def update(self, newValue: tuple[bytes]) -> None: ...  # noqa: N803
    def getCurrentProcessingTimeMs(self) -> int: ...  # noqa: N802


ShardFunction = Callable[[tuple[str, int], Iterable[pd.DataFrame], StateHandle], Iterator[pd.DataFrame]]


def shard_function(config: CoreConfig, logic: GroupLogic = coordinator, *, checkpoint: str = "") -> ShardFunction:
    """Return the function of the stateful operator.

    Args:
        logic: The groups' decisions. checkpoint: The owner of the state, for errors.
    """

    def advance_shard(
        key: tuple[str, int], frames: Iterable[pd.DataFrame], state: StateHandle
    ) -> Iterator[pd.DataFrame]:
        """Return the batch's decisions, as rows of kind, cluster and JSON text; every path updates the state."""
        cluster, number = str(key[0]), int(key[1])
        packets = [decode_packet(payload) for frame in frames for payload in frame[PAYLOAD]]
        if cluster == STATELESS:
            yield from _frames(cluster, _stateless(packets))
            state.update((b"",))
            return
        data = bytes(state.get[0]) if state.exists else None
        try:
            shard = Shard(cluster, number, data, config, logic)
            yield from _frames(cluster, shard.advance(packets, state.getCurrentProcessingTimeMs()))
        except StateVersionError as error:
            raise error.at(checkpoint, cluster, number) from None
        state.update((shard.encode(),))

    return advance_shard


def _stateless(packets: list[Packet]) -> Iterator[Row]:
    for packet in packets:
        yield from packet.rejected
        yield from packet.annotations


def _frames(cluster: str, rows: Iterable[Row]) -> Iterator[pd.DataFrame]:
    kinds: list[str] = []
    bodies: list[str] = []
    for row in rows:
        kinds.append(_KINDS[type(row)])
        bodies.append(_encode(row).decode())
        if len(bodies) == _ROWS_AT_ONCE:
            yield pd.DataFrame({"kind": kinds, "cluster": cluster, "body": bodies})
            kinds, bodies = [], []
    if bodies:
        yield pd.DataFrame({"kind": kinds, "cluster": cluster, "body": bodies})
