"""Core: a cluster's two newest times by different producers. No I/O.

A producer is a member, in any of its groups, a group's coordinator or poller, or the collector that sends ``clock``.
Counts of topics, settings and deletions are reported only once, so they support no producer's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from udfs.ingest.commit_columns import CommitColumns
from udfs.ingest.heartbeat_columns import HeartbeatColumns
from udfs.model.arrays import Int64, UInt64
from udfs.model.events import (
    AnyEvent,
    AssignmentReported,
    Clock,
    GroupRecord,
    GroupSnapshot,
    Heartbeat,
    MemberJoined,
    MemberLeft,
    Progress,
)
from udfs.packets.packet import COLLECTOR, Spoken, group_keys, hash_texts, two_newest

_Named: TypeAlias = dict[str, list[tuple[int, str]]]


def speakers(
    columns: HeartbeatColumns, commits: Sequence[CommitColumns], events: Iterable[AnyEvent], latest_ms: int
) -> dict[str, tuple[list[Spoken], list[Spoken]]]:
    """Return each cluster's two newest event times by different producers: up to the latest, and beyond it."""
    found: dict[str, list[Spoken]] = {}
    for cluster, times, keys in columns.speaking():
        found.setdefault(cluster, []).extend(_newest_of(times, keys, latest_ms))
    for part in commits:
        found.setdefault(part.cluster, []).extend(_newest_of(part.columns.times, part.columns.groups, latest_ms))
    members: _Named = {}
    groups: _Named = {}
    for event in events:
        match event:
            case MemberJoined() | Heartbeat() | MemberLeft() | AssignmentReported():
                members.setdefault(event.cluster, []).append((event.event_time, event.member_id))
            case GroupSnapshot() | GroupRecord() | Progress():
                groups.setdefault(event.cluster, []).append((event.event_time, event.group))
            case Clock():
                found.setdefault(event.cluster, []).append((event.event_time, COLLECTOR))
            case _:
                pass
    for cluster, named in members.items():
        found.setdefault(cluster, []).extend(_keyed(named, hash_texts([name for _, name in named])))
    for cluster, named in groups.items():
        found.setdefault(cluster, []).extend(_keyed(named, group_keys(cluster, [name for _, name in named])))
    return {
        cluster: (
            two_newest(time_and_key for time_and_key in spoken if time_and_key[0] <= latest_ms),
            two_newest(time_and_key for time_and_key in spoken if time_and_key[0] > latest_ms),
        )
        for cluster, spoken in found.items()
    }


def _keyed(named: Sequence[tuple[int, str]], keys: UInt64) -> list[Spoken]:
    return [(time, key) for (time, _), key in zip(named, keys.tolist(), strict=True)]


def _newest_of(times: Int64, keys: UInt64, latest_ms: int) -> list[Spoken]:
    """Return the two newest times by different producers, up to the latest and beyond it."""
    beyond = times > latest_ms
    if not beyond.any():
        return _two_newest(times, keys)
    return _two_newest(times[~beyond], keys[~beyond]) + _two_newest(times[beyond], keys[beyond])


def _two_newest(times: Int64, keys: UInt64) -> list[Spoken]:
    if not len(times):
        return []
    first = int(times.argmax())
    newest = (int(times[first]), int(keys[first]))
    others = np.flatnonzero(keys != keys[first])
    if not len(others):
        return [newest]
    second = int(others[times[others].argmax()])
    return [newest, (int(times[second]), int(keys[second]))]
