"""Bytes that were damaged in transit or at rest are refused, never believed, and cost little memory."""

from __future__ import annotations

import random
import resource
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.udfs.shard.shard_script import CLUSTER, FAR, Cluster, clock, packet_for
from tests.udfs.shard.state_samples import COUNTED, KINDS, RULES, WAITING, sample
from udfs.group import coordinator as group_logic
from udfs.ingest.parser import parse
from udfs.model.errors import PacketDamagedError, StateDamagedError, StateVersionError
from udfs.model.events import AnyEvent
from udfs.model.journal import Rejected
from udfs.model.rejection import Rejection
from udfs.packets.packet import carry_event, decode_packet, encode_packet
from udfs.shard.base128 import to_seven_bits
from udfs.shard.savepoint import EXPORTED, export_shard
from udfs.shard.shard import Shard
from udfs.shard.state_format import pack_column, unpack_column, unpack_state

MOST_MEMORY = 48 * 2**20
EACH = 800  # mutations of each kind of state


def mutated(data: bytes, dice: random.Random) -> bytes:
    """Return these bytes with damage of one of the usual kinds."""
    damaged = data
    while damaged == data:
        start = dice.randrange(len(data))
        end = min(len(data), start + dice.choice((1, 1, 2, 8, 100, len(data) // 3 or 1)))
        head, middle, tail = data[:start], data[start:end], data[end:]
        other = dice.randrange(len(data))
        damaged = dice.choice(
            (
                flipped(data, dice, 1),
                flipped(data, dice, dice.choice((2, 3, 8))),
                swapped(data, dice),
                head,  # truncated
                tail,
                data + dice.randbytes(end - start),  # extended
                data + middle,
                head + tail,  # a part lost
                head + middle + middle + tail,  # a part twice
                head + data[other : other + end - start] + tail,  # a part copied over another one
                head + bytes(end - start) + tail,
                head + b"\xff" * (end - start) + tail,
                head + dice.randbytes(end - start) + tail,
            )
        )
    return damaged


def flipped(data: bytes, dice: random.Random, bits: int) -> bytes:
    changed = bytearray(data)
    for _ in range(bits):
        changed[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def swapped(data: bytes, dice: random.Random) -> bytes:
    first, second, third, fourth = sorted(dice.randrange(len(data) + 1) for _ in range(4))
    return data[:first] + data[third:fourth] + data[second:third] + data[first:second] + data[fourth:]


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Fail if Python, NumPy or Arrow allocates more inside than a damaged value deserves."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        yield
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MOST_MEMORY
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4 * MOST_MEMORY // 1024


def advanced(state: bytes) -> list[Any]:
    shard = Shard(CLUSTER, 0, state, RULES, group_logic)
    rows = list(shard.advance([packet_for(0, [clock(200_000)], RULES)], FAR))
    shard.encode()
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_state_is_always_refused(kind: str) -> None:
    dice = random.Random(kind)
    state = sample(kind).states[0]
    assert state is not None
    advanced(state)
    with bounded_memory():
        for number in range(EACH):
            damaged = mutated(state, dice)
            with pytest.raises(StateVersionError) as refused:
                unpack_state(damaged)
            assert isinstance(refused.value, StateDamagedError), number


@pytest.mark.parametrize("kind", KINDS)
def test_every_single_bit_of_the_beginning_of_a_state_counts(kind: str) -> None:
    state = sample(kind).states[0]
    assert state is not None
    for bit in range(8 * 60):
        damaged = bytearray(state)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StateDamagedError):
            unpack_state(bytes(damaged))


def test_sections_of_another_state_are_refused() -> None:
    first, second = sample("counted"), sample("waiting")
    first_state, second_state = first.states[0], second.states[0]
    assert first_state is not None
    assert second_state is not None
    for place in range(17, min(len(first_state), len(second_state)), 16):
        with pytest.raises(StateDamagedError):
            unpack_state(first_state[:place] + second_state[place:])


@pytest.mark.parametrize("size", [2**31, 2**32 - 1])
def test_a_column_of_one_value_is_as_long_as_its_rows_and_no_longer(size: int) -> None:
    column = bytearray(pack_column(np.zeros(5, dtype=np.int64)))
    column[9:13] = size.to_bytes(4, "little")
    with bounded_memory(), pytest.raises(StateDamagedError):
        unpack_column(bytes(column))


def test_a_header_that_claims_gigabytes_allocates_nothing() -> None:
    with bounded_memory(), pytest.raises(StateDamagedError):
        unpack_state(b"\x01" + to_seven_bits((2**32 - 1).to_bytes(4, "little")) + bytes(64))


def test_a_damaged_packet_is_always_an_error() -> None:
    dice = random.Random(1)
    for events in (COUNTED, WAITING):
        payload = encode_packet(packet_for(0, events, RULES))
        assert decode_packet(payload).newest_ms is not None
        with bounded_memory():
            for _ in range(EACH):
                with pytest.raises(PacketDamagedError):
                    decode_packet(mutated(payload, dice))


def exported(kind: str) -> list[bytes]:
    state = sample(kind).states[0]
    assert state is not None
    events = export_shard(CLUSTER, 0, state, RULES, group_logic)
    return [line for line in map(msgspec.json.encode, events) if b'"restored":true' in line][:20]


def arrived(line: bytes) -> AnyEvent | None:
    event = parse(line, FAR, RULES)
    return None if isinstance(event, Rejection) else event


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_export_is_rejected_or_reads_as_before(kind: str) -> None:
    dice = random.Random(kind)
    lines = exported(kind)
    rejected = 0
    for number in range(EACH):
        line = dice.choice(lines)
        # Damage that replaces one letter by another may leave valid JSON.
        damaged = mutated(line, dice) if number % 2 else mutated_letter(line, dice)
        event, whole = arrived(damaged), arrived(line)
        if event is None or b'"restored' not in carry_event(event, "", "").content:
            continue  # The line was rejected before as well, or reads as another event.
        if event.event_id != EXPORTED and b'"restored_' not in carry_event(event, "", "").content:
            continue  # The damage hit both names that mark an exported state, so nothing shows that it is one.
        assert whole is not None
        if msgspec.structs.replace(event, event_id=None) == msgspec.structs.replace(whole, event_id=None):
            continue
        cluster = Cluster(group_logic, RULES)
        rows = cluster.batch(event)
        assert [row.reason for row in rows if isinstance(row, Rejected)] == ["restored_unreadable"], damaged
        assert len(rows) == 1
        rejected += 1
    assert rejected > EACH // 8


def mutated_letter(line: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(line))
    return line[:place] + bytes([dice.choice(b"abcdefgh0123456789")]) + line[place + 1 :]
