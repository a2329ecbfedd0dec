"""What is due for a group, in the order of its times."""

import hypothesis.strategies as st
from hypothesis import given

from tests.udfs.shard.shard_script import T0, join, leave
from udfs.group.batch.event_queue import EXPIRY, HEARTBEAT, EventQueue, MemberDue
from udfs.model.group_api import DueEvent


def due(at: int, event_id: str = "e") -> DueEvent:
    return DueEvent(join("m", at), event_id)


def test_at_one_time_events_come_before_heartbeats_and_heartbeats_before_expiries() -> None:
    queue = EventQueue()
    queue.push_expiry(5, 4, "m")
    queue.push_heartbeat(5, 5, "m")
    queue.push_event(5, 0, (0, 0), due(5))
    queue.push_expiry(4, 4, "n")
    found = [queue.pop() for _ in range(4)]
    assert [(entry.at, entry.order) for entry in found] == [(4, EXPIRY), (5, 0), (5, HEARTBEAT), (5, EXPIRY)]
    assert found[0].what == MemberDue("expiry", "n")
    assert queue.next_at() is None


def test_events_of_one_place_come_by_their_own_times_generations_and_ids() -> None:
    queue = EventQueue()
    for own, generation, event_id in ((7, 0, "a"), (5, 2, "a"), (5, 1, "b"), (5, 1, "a")):
        queue.push_event(9, 3, (generation, 0), due(own, event_id))
    found = [queue.pop() for _ in range(4)]
    assert [(entry.own - T0, entry.snapshot_order[0], entry.tie) for entry in found] == [
        (5, 1, "a"),
        (5, 1, "b"),
        (5, 2, "a"),
        (7, 0, "a"),
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("ab")), max_size=8))
def test_two_equal_entries_come_as_they_were_pushed_and_are_never_compared_themselves(
    entries: list[tuple[int, int, str]],
) -> None:
    queue = EventQueue()
    pushed = []
    for at, order, event_id in entries:
        due_event = DueEvent(leave("m", 0), event_id)
        pushed.append((at, order, event_id, due_event))
        queue.push_event(at, order, (0, 0), due_event)
    found = [queue.pop().what for _ in entries]
    expected = [due_event for *_, due_event in sorted(pushed, key=lambda entry: entry[:3])]
    assert all(left is right for left, right in zip(found, expected, strict=True))


def test_all_events_of_the_next_time_are_taken_and_the_rest_stays() -> None:
    queue = EventQueue()
    queue.push_heartbeat(5, 5, "m")
    queue.push_event(5, 2, (0, 0), due(5, "b"))
    queue.push_event(5, 1, (0, 0), due(5, "a"))
    queue.push_event(6, 0, (0, 0), due(6, "c"))
    queue.push_expiry(5, 5, "m")
    assert queue.pop_events(4) == []
    assert [due_event.event_id for due_event in queue.pop_events(5)] == ["a", "b"]
    assert [queue.pop().order for _ in range(3)] == [HEARTBEAT, EXPIRY, 0]


def test_a_cleared_queue_is_empty() -> None:
    queue = EventQueue()
    queue.push_heartbeat(5, 5, "m")
    queue.clear()
    assert queue.next_at() is None
