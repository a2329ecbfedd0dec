"""Spans that end and open, packed and read again: the law by a naive model, the sizes by what was asked for."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.group.assignment import span_runs
from udfs.group.assignment.move_costs import MoveCost
from udfs.group.assignment.span_runs import NAMED_EVERY, Pauses, pack_reassignment, unpack_reassignment
from udfs.group.state.assignment_diff import changed_queues
from udfs.group.state.group import Owners, Queue
from udfs.model.spans import QueueAssigned, QueueReleased, QueuesReassigned

AT = 1_700_000_000_000
MEMBERS = [f"m{number}" for number in range(6)]
PLACES = [("t", None), ("u", "b1"), ("u", "b2")]


def pack(
    before: Owners,
    after: Owners,
    generation: int = 7,
    pauses: Pauses | None = None,
    costs: dict[Queue, MoveCost] | None = None,
) -> QueuesReassigned | None:
    """Pack, and read from JSON again."""
    change = pack_reassignment(
        before,
        changed_queues(before, after),
        origin="reported",
        at=AT,
        generation=generation,
        rebalance_id="r",
        names={},
        instance_ids={"m1": "i1"},
        inferred=lambda topic: topic == "u",
        pauses=pauses or {},
        costs=costs or {},
    )
    return None if change is None else msgspec.json.decode(msgspec.json.encode(change), type=QueuesReassigned)


def unpack(change: QueuesReassigned | None, before: Owners) -> list[QueueReleased | QueueAssigned]:
    if change is None:
        return []
    ids = {"m1": "i1"}
    return unpack_reassignment(change, lambda queue: [(name, ids.get(name)) for name in before.get(queue, ())])


def test_each_queue_has_its_own_cost_and_runs_stay_whole() -> None:
    before: Owners = {("t", None, number): ("a",) for number in range(4)}
    after: Owners = {("t", None, number): ("b",) for number in range(4)}
    costs = {("t", None, 1): MoveCost(3, None, 9), ("t", None, 3): MoveCost(None, 5, None)}
    change = pack(before, after, costs=costs)
    assert change is not None
    assert len(change.topics[0].assigned) == 1
    opened = [span for span in unpack(change, before) if isinstance(span, QueueAssigned)]
    assert [
        (span.queue_id, span.repeated_messages, span.repeated_estimated_messages, span.waiting_messages)
        for span in opened
    ] == [(0, None, None, None), (1, 3, None, 9), (2, None, None, None), (3, None, 5, None)]


def owners(chance: random.Random, shared: bool) -> Owners:
    """Draw who holds what: neighbours mostly hold neighbours."""
    found: Owners = {}
    for topic, broker in PLACES:
        holder = chance.choice(MEMBERS)
        for queue_id in range(chance.randrange(12)):
            if chance.random() < 0.4:
                holder = chance.choice(MEMBERS)
            held = {holder, *(chance.sample(MEMBERS, 2) if shared and chance.random() < 0.3 else ())}
            if chance.random() < 0.9:
                found[topic, broker, queue_id] = tuple(sorted(held))
    return found


@settings(max_examples=400)
@given(seed=st.integers(0, 2**32), shared=st.booleans(), generation=st.integers(1, 40), many=st.integers(0, 3))
def test_packed_spans_unpack_to_the_same(seed: int, shared: bool, generation: int, many: int) -> None:
    chance = random.Random(seed)
    before, after = owners(chance, shared), owners(chance, shared)
    pauses = {
        (queue, member): (chance.choice((None, 0, 9)), chance.choice((None, 5)))
        for queue, held in after.items()
        for member in held
        if chance.random() < 0.2
    }
    limit = span_runs.NAMED_AT_MOST
    span_runs.NAMED_AT_MOST = many  # type: ignore[misc]
    try:
        spans = unpack(pack(before, after, generation, pauses), before)
    finally:
        span_runs.NAMED_AT_MOST = limit  # type: ignore[misc]
    ended = {((s.topic, s.broker, s.queue_id), s.member_id) for s in spans if isinstance(s, QueueReleased)}
    opened = {((s.topic, s.broker, s.queue_id), s.member_id): s for s in spans if isinstance(s, QueueAssigned)}
    assert len(ended) + len(opened) == len(spans)
    pairs = [
        {(queue, member) for queue, held in assignment.items() for member in held} for assignment in (before, after)
    ]
    assert ended == pairs[0] - pairs[1]
    assert opened.keys() == pairs[1] - pairs[0]
    for key, span in opened.items():
        assert (span.pause_ms, span.pause_estimated_ms) == pauses.get(key, (None, None))
        assert (span.instance_id, span.inferred) == ("i1" if key[1] == "m1" else None, key[0][0] == "u")
        assert (span.valid_from, span.origin, span.generation, span.rebalance_id) == (AT, "reported", generation, "r")
    assert all(span.valid_to == AT for span in spans if isinstance(span, QueueReleased))


def in_blocks(members: list[str], queues: int) -> Owners:
    """Assign as ``range`` does, by the arithmetic of its documentation."""
    size, extra = divmod(queues, len(members))
    found: Owners = {}
    start = 0
    for place, member in enumerate(sorted(members)):
        end = start + size + (place < extra)
        found |= {("t", None, queue): (member,) for queue in range(start, end)}
        start = end
    return found


def ids(number: int) -> list[str]:
    chance = random.Random(4)
    return [f"consumer-orders-1-{chance.getrandbits(128):032x}" for _ in range(number)]


@pytest.mark.parametrize("place", [0, 1, 2_500, 4_999])
def test_a_join_that_shifts_thousands_of_members_is_one_small_change(place: int) -> None:
    members = sorted(ids(5_001))
    before = in_blocks([*members[:place], *members[place + 1 :]], 10_000)
    after = in_blocks(members, 10_000)
    change = pack(before, after)
    assert change is not None
    assert len(msgspec.json.encode(change)) < 2_000
    assert len([span for span in unpack(change, before) if isinstance(span, QueueAssigned)]) >= 2 * (4_990 - place)


def test_every_sixteenth_generation_repeats_all_members_for_readers_that_remember_nothing() -> None:
    members = sorted(ids(1_001))
    before, after = in_blocks(members[1:], 2_000), in_blocks(members, 2_000)
    named = pack(before, after, NAMED_EVERY * 3)
    assert named is not None
    spans = unpack_reassignment(named, lambda _queue: [])
    assert {(span.queue_id, span.member_id) for span in spans} == {
        (queue[2], held[0]) for queue, held in after.items() if before.get(queue) != held
    }
    shifted = pack(before, after, NAMED_EVERY * 3 + 1)
    assert shifted is not None
    # Who does not know who held what opens nothing that might be wrong.
    spans = unpack_reassignment(shifted, lambda _queue: [])
    assert {span.member_id for span in spans} == {members[0]}


def test_a_queue_of_an_uncertain_former_owner_stays_without_a_span() -> None:
    members = sorted(ids(1_001))
    before, after = in_blocks(members[1:], 2_000), in_blocks(members, 2_000)
    change = pack(before, after)
    assert change is not None

    def holders(queue: Queue) -> list[tuple[str, str | None]]:
        held = [(name, None) for name in before.get(queue, ())]
        return [*held, ("stale", None)] if queue[2] == 10 else held

    opened = {span.queue_id: span for span in unpack_reassignment(change, holders) if isinstance(span, QueueAssigned)}
    assert sorted({queue[2] for queue in after if before.get(queue) != after[queue]} - opened.keys()) == [12]


def test_all_open_spans_of_a_queue_end_when_all_its_owners_change() -> None:
    change = pack({("t", None, 0): ("a",)}, {("t", None, 0): ("b",)})
    assert change is not None
    spans = unpack_reassignment(change, lambda _queue: [("a", None), ("stale", None)])
    assert {span.member_id for span in spans if isinstance(span, QueueReleased)} == {"a", "stale"}
    # What is open already goes on.
    spans = unpack_reassignment(change, lambda _queue: [("b", None)])
    assert [type(span) for span in spans] == [QueueAssigned]


def test_nothing_changed_is_no_change() -> None:
    assert pack({("t", None, 0): ("a",)}, {("t", None, 0): ("a",)}) is None
