"""Bench: one shard of eight of a million members: what a batch of mere heartbeats costs, and what a member weighs.

The figure is the time of a shard's batch (state decoded, 1/8 of 333,000 heartbeats applied, state encoded) over
the time in which msgspec parses the same heartbeats from JSON lines, both in this process, alternating.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import msgspec
import numpy as np

from bench.fleet import FleetShape
from streaming.settings.model import load
from udfs.group import coordinator
from udfs.model.config import CoreConfig
from udfs.model.events import AnyEvent, MemberJoined, TopicQueues
from udfs.model.group_api import GroupLogic
from udfs.packets.packed_texts import PackedTexts
from udfs.packets.packet import (
    CarriedEvent,
    PackedHeartbeats,
    Packet,
    carry_event,
    decode_packet,
    encode_packet,
    group_keys,
    hash_texts,
)
from udfs.shard.base128 import characters_for
from udfs.shard.shard import Shard

_ROUNDS = 15
_EVERY = 3  # each batch brings a heartbeat of every third member: 333,000 of a million


def topics(shape: FleetShape) -> list[CarriedEvent]:
    """Return the topics of a fleet."""
    return [
        carry_event(
            TopicQueues(
                schema_version=1,
                event_time=shape.start_ms,
                system="kafka",
                cluster=shape.cluster,
                topic=f"topic-{topic:04d}",
                queue_count=shape.queues_per_topic,
            ),
            "",
            "",
        )
        for topic in range(shape.topics)
    ]


def joins(shape: FleetShape, groups: list[int]) -> list[CarriedEvent]:
    """Return a described join of every member of these groups."""
    events = []
    for group in groups:
        for number in range(group * shape.members_per_group, (group + 1) * shape.members_per_group):
            name, member = shape.member(number)
            event = MemberJoined(
                schema_version=1,
                event_time=shape.start_ms + 1,
                system="kafka",
                cluster=shape.cluster,
                group=name,
                member_id=member,
                client_id=member,
                host=f"/10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
                subscriptions=(f"topic-{group % shape.topics:04d}",),
                strategies=("range",),
                session_timeout_ms=45_000,
            )
            events.append(carry_event(event, "", ""))
    return events


def heartbeats(shape: FleetShape, groups: list[int], phase: int, at: int) -> tuple[bytes, list[bytes]]:
    """Return one batch for the shard, every third member: the packet, and the same as JSON lines."""
    names = [shape.member(group * shape.members_per_group)[0] for group in groups]
    count = len(groups) * shape.members_per_group
    chosen = np.arange(phase, count, _EVERY)
    ids = [
        shape.member(groups[n // shape.members_per_group] * shape.members_per_group + n % 10)[1]
        for n in chosen.tolist()
    ]
    times = at + np.arange(len(chosen)) % 5_000
    packed = PackedHeartbeats.pack(
        bytes(len(groups)),
        (group_keys(shape.cluster, names), PackedTexts.pack(names)),
        (chosen // shape.members_per_group, hash_texts(ids), PackedTexts.pack(ids)),
        (np.arange(len(chosen)), times),
    )
    lines = [
        f'{{"schema_version":1,"type":"heartbeat","event_time":{time_ms},"system":"kafka","cluster":"{shape.cluster}",'
        f'"group":"{names[number // 10]}","member_id":"{member}"}}'.encode()
        for number, member, time_ms in zip(chosen.tolist(), ids, times.tolist(), strict=True)
    ]
    return encode_packet(Packet(newest_ms=int(times.max()), heartbeats=packed)), lines


def measure(logic: GroupLogic, shape: FleetShape | None = None, config: CoreConfig | None = None) -> dict[str, Any]:
    """Seed one shard, feed it heartbeats, and answer figures by name."""
    shape, config = shape or FleetShape(), config or load().core_config()
    keys = group_keys(shape.cluster, [shape.member(n * shape.members_per_group)[0] for n in range(shape.groups)])
    groups = np.flatnonzero(keys % np.uint64(config.shards) == 0).tolist()
    members = len(groups) * shape.members_per_group
    later = shape.start_ms + 10**9
    seed = Packet(
        newest_ms=shape.start_ms + 10_000,
        events=[*topics(shape), *joins(shape, groups)],
    )
    began = time.perf_counter()
    shard = Shard(shape.cluster, 0, None, config, logic)
    rows = sum(1 for _ in shard.advance([seed], later))
    state = shard.encode()
    seeding = time.perf_counter() - began
    decoder = msgspec.json.Decoder(AnyEvent)
    batches, parses, silent = [], [], b""
    for number in range(_ROUNDS):
        at = shape.start_ms + 10_000 + 5_000 * number
        payload, lines = heartbeats(shape, groups, number % _EVERY, at)
        began = time.perf_counter()
        shard = Shard(shape.cluster, 0, state, config, logic)
        decided = sum(1 for _ in shard.advance([decode_packet(payload)], later))
        state = shard.encode()
        batches.append(time.perf_counter() - began)
        if decided:
            raise AssertionError(f"heartbeats alone decided {decided} rows")
        began = time.perf_counter()
        for line in lines:
            decoder.decode(line)
        parses.append(time.perf_counter() - began)
    shard = Shard(shape.cluster, 0, state, config, logic)
    list(shard.advance([Packet(newest_ms=shape.start_ms + 10_000 + 5_000 * _ROUNDS + 3_000)], later))
    silent = shard.encode()
    sections = Shard(shape.cluster, 0, silent, config, logic).state.header.sections
    return {
        "members of the shard": members,
        "rows when seeded": rows,
        "seeding, microseconds per group": round(1e6 * seeding / len(groups), 1),
        "shard's batch, ms, median": round(1e3 * statistics.median(batches[3:]), 2),
        "batch over parsing": round(statistics.median(batches[3:]) / statistics.median(parses[3:]), 3),
        "state, bytes per silent member": round(len(silent) / members, 2),
        "and once the ids of their joins are forgotten": round(
            (len(silent) - characters_for(dict(sections).get("repeats", 0))) / members, 2
        ),
        "of which, before they are spread over characters of seven bits": {
            name: round(size / members, 2) for name, size in sections
        },
    }


def main() -> None:
    """Print the figures."""
    for name, figure in measure(coordinator).items():
        print(f"{name}: {figure}")
