"""Core: which groups to wake because a topic changed or a time passed. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from udfs.model.arrays import Int64
from udfs.shard.liveness import Bools
from udfs.shard.state_format import Buffer, must_hold, pack_column, pack_parts, unpack_column, unpack_parts

NEVER = 2**62  # later than every time


class WakeIndex:
    """For each group of a shard: when to wake it, and a 32-bit hash of each topic that it subscribes to.

    Two topics with the same hash wake each other's groups needlessly, which is harmless.
    """

    def __init__(self, groups: int, data: Buffer = b"") -> None:
        wake, counts, topics = unpack_parts(data, 3)
        self.wake_at: Int64 = unpack_column(wake, groups) if len(data) else np.full(groups, NEVER, dtype=np.int64)
        self.counts: Int64 = unpack_column(counts, groups) if len(data) else np.zeros(groups, dtype=np.int64)
        self.topics: npt.NDArray[np.uint32] = np.frombuffer(topics, dtype="<u4").astype(np.uint32, copy=False)
        fit = int(self.counts.sum()) == len(self.topics) and (self.counts >= 0).all()
        must_hold(fit, "topics do not match their groups")

    def encode(self) -> bytes:
        """Return bytes that decode to an equal table."""
        topics = self.topics.astype("<u4", copy=False).tobytes()
        return pack_parts(pack_column(self.wake_at), pack_column(self.counts), topics)

    def due(self, clock: int) -> Bools:
        """Return for each group whether its time to wake has passed."""
        return np.asarray(self.wake_at < clock)

    def subscribed(self, topics: Iterable[str]) -> Bools:
        """Return for each group whether it may subscribe to one of the topics."""
        wanted = np.asarray(sorted({topic_hash(topic) for topic in topics}), dtype=np.uint32)
        subscribed = np.zeros(len(self.counts), dtype=np.bool_)
        subscribed[np.repeat(np.arange(len(self.counts)), self.counts)[np.isin(self.topics, wanted)]] = True
        return subscribed

    def wake_of(self, number: int) -> int | None:
        """Return when to wake one group."""
        at = int(self.wake_at[number])
        return None if at == NEVER else at

    def topics_of(self, number: int) -> frozenset[int]:
        """Return the hashes of the topics that one group subscribes to."""
        end = int(self.counts[: number + 1].sum())
        return frozenset(self.topics[end - int(self.counts[number]) : end].tolist())

    def replace(
        self, inserted: Int64, numbers: Int64, wake_at: Sequence[int | None], topics: Sequence[Sequence[int]]
    ) -> None:
        """Insert new groups (as in ``Liveness.replace``), and set wake times and topic hashes of some."""
        self.wake_at = np.insert(self.wake_at, inserted, NEVER)
        self.counts = np.insert(self.counts, inserted, 0)
        self.wake_at[numbers] = [NEVER if at is None else at for at in wake_at]
        owners = np.repeat(np.arange(len(self.counts)), self.counts)
        stay = ~np.isin(owners, numbers)
        sizes = np.asarray([len(of_group) for of_group in topics], dtype=np.int64)
        where = np.searchsorted(owners[stay], np.repeat(numbers, sizes))
        fresh = np.fromiter((topic for of_group in topics for topic in of_group), np.uint32, int(sizes.sum()))
        self.topics = np.insert(self.topics[stay], where, fresh)
        self.counts[numbers] = sizes


def topic_hash(topic: str) -> int:
    """Return a 32-bit hash of a topic's name."""
    return int.from_bytes(hashlib.blake2b(topic.encode(), digest_size=4).digest(), "little")
