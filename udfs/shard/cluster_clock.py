"""Core: how far a cluster's clock may advance in a batch. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.model.config import CoreConfig
from udfs.packets.packet import CarriedEvent, Packet
from udfs.shard.state import ShardState

_PACKED_SHARE = 8  # a packed heartbeat takes less than an eighth of an event's memory, so eight times as many may wait


def move_clock(
    state: ShardState, packets: Sequence[Packet], arrived: Sequence[CarriedEvent], batch_ms: int, config: CoreConfig
) -> tuple[int | None, int | None]:
    """Advance the clock to the cluster's time less the lateness: never back, never past the batch less the lateness.

    A flush mark sets it to one past the newest event, regardless of the batch.

    Returns: the clock, None before the first event; and the lead of the cluster's time over the batch, if it advanced.
    """
    header = state.header
    times = [packet.newest_ms for packet in packets if packet.newest_ms is not None]
    if header.newest is not None:
        times.append(header.newest)
    if not times:
        return None, None
    header.newest = max(times)
    latest = batch_ms - config.allowed_lateness_ms
    supported, ahead = state.time.advance(packets, header.newest, batch_ms, config)
    clock = min(supported - config.allowed_lateness_ms, latest)
    if config.silence == "expire":
        clock = max([clock, *(min(packet.tick_ms, latest) for packet in packets if packet.tick_ms is not None)])
    if any(packet.flush for packet in packets):
        clock = max(clock, header.newest + 1)
    if header.clock is not None:
        clock = max(clock, header.clock)
    header.clock = _make_room(clock, state, packets, arrived, config.max_waiting_events)
    return header.clock, ahead


def _make_room(
    clock: int, state: ShardState, packets: Sequence[Packet], arrived: Sequence[CarriedEvent], limit: int
) -> int:
    """Advance the clock further if too much would wait: the oldest events are applied early."""
    whole = [carried.event_time for carried in (*state.events, *arrived) if carried.event_time >= clock]
    whole += [heartbeat.time for heartbeat in state.unknown_member_heartbeats if heartbeat.time >= clock]
    packed = [state.live.waiting_times, state.commits.waiting_times]
    packed += [packet.heartbeats.times() for packet in packets if packet.heartbeats]
    packed += [np.frombuffer(packet.progress.times, "<i8") for packet in packets if packet.progress]
    packed += [np.frombuffer(packet.ends.times, "<i8") for packet in packets if packet.ends]
    times = np.concatenate(packed)
    moved = clock
    for waiting, most in ((np.asarray(whole), limit), (times[times >= clock], limit * _PACKED_SHARE)):
        if len(waiting) > most:
            moved = max(moved, int(np.sort(waiting)[len(waiting) - most - 1]) + 1)
    state.header.pushed_out += sum(at < moved for at in whole) if moved > clock else 0
    return moved
