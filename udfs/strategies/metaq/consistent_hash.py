"""Core: MetaQ's consistent hashing. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from udfs.strategies.hash_ring import HashRing, md5
from udfs.strategies.metaq.default import allocate_each_topic
from udfs.strategies.problem import Assignment, Problem

# ConsisHashStrategy.NUM_REPS has 160 points, four from each digest.
_DIGESTS: Final = 40
_POINTS_PER_DIGEST: Final = 4


def metaq_consistent_hash(problem: Problem) -> Assignment:
    """Return each partition for the subscriber whose point on a ring of MD5 hashes comes first at or after it.

    Each id has 160 points. When a member leaves, only its partitions move; when one joins, partitions move only to it.
    Known imbalance: nothing bounds the spread.

    Rolling restart: ids carry process and time, so a restarted client counts as another one: its partitions move, and
    so do some of the others' to it.

    Source: metamorphosis-client 1.4.6.2 ``ConsisHashStrategy``.

    Example: GroupC_idA and GroupC_idB, 12 partitions of broker 0: idB has 0-0, 0-11, 0-2, 0-3, 0-4.
    """
    rings: dict[tuple[str, ...], HashRing] = {}

    def allocate(partitions: Sequence[str], ids: Sequence[str]) -> dict[str, list[str]]:
        key = tuple(ids)
        if key not in rings:
            rings[key] = _ring(ids)
        shares: dict[str, list[str]] = {}
        for partition in partitions:
            owner = rings[key].owner(int.from_bytes(md5(partition)[:4], "little"))
            if owner is not None:
                shares.setdefault(owner, []).append(partition)
        return shares

    return allocate_each_topic(problem, allocate)


def _ring(ids: Sequence[str]) -> HashRing:
    owners: dict[int, str] = {}
    for name in ids:
        for number in range(_DIGESTS):
            digest = md5(f"{name}-{number}")
            for start in range(0, 4 * _POINTS_PER_DIGEST, 4):
                owners[int.from_bytes(digest[start : start + 4], "little")] = name
    return HashRing(owners)
