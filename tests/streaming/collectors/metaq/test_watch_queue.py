"""Fired watches: the nodes to read, since when, and the thread that waits for them."""

from __future__ import annotations

import threading

import pytest
from kazoo.protocol.states import EventType, KazooState, WatchedEvent

from streaming.collectors.metaq import watch_queue
from streaming.collectors.metaq.watch_queue import OWNERS_WAIT_MS, FiredWatches, WatchQueue
from streaming.collectors.metaq.znodes import Paths

_TIMEOUT_S = 60
START_MS = 1_772_334_720_000


class Queue(WatchQueue):
    """A queue on a clock that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(Paths("/meta"))
        self.now_ms = START_MS
        monkeypatch.setattr(watch_queue, "now_ms", lambda: self.now_ms)

    def fire(self, path: str, kind: str = EventType.CHILD) -> None:
        self.see_event(WatchedEvent(kind, KazooState.CONNECTED, f"/meta{path}"))
        self.now_ms += 1


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    return Queue(monkeypatch)


def test_each_node_has_the_time_of_its_first_notification(queue: Queue) -> None:
    for path in (
        "/consumers/g/ids",
        "/brokers/topics-sub/t/0-m",
        "/consumers",
        "/consumers/g/ids",
        "/brokers/topics-sub",
    ):
        queue.fire(path)
    taken = queue.drain()
    assert taken == FiredWatches(lists=START_MS + 2, topics={"t": START_MS + 1}, groups={"g": START_MS})
    assert taken
    assert not queue.drain()


def test_a_member_that_was_written_again_is_named(queue: Queue) -> None:
    queue.fire("/consumers/g/ids/g_a", EventType.CHANGED)
    queue.fire("/consumers/h/ids", EventType.CHILD)
    assert queue.drain().described == {"g"}


def test_events_of_the_connection_and_of_other_nodes_are_none(queue: Queue) -> None:
    queue.fire("/consumers/g/ids", EventType.NONE)
    queue.fire("/brokers/ids")
    assert not queue.drain()


def test_owners_are_gathered_for_a_short_time_and_members_are_not(queue: Queue) -> None:
    queue.fire("/consumers/g/owners/t")
    queue.fire("/consumers/h/owners/t")
    queue.fire("/consumers/h/ids")
    # A change that comes together with the members is read together with them.
    assert queue.drain().groups == {"h": START_MS + 1}
    queue.now_ms = START_MS + OWNERS_WAIT_MS - 1
    assert not queue.drain()
    queue.now_ms += 1
    assert queue.drain().groups == {"g": START_MS}


def test_a_connection_that_is_back_makes_everything_new(queue: Queue) -> None:
    queue.fire("/consumers/g/ids")
    queue.fire("/consumers/g/owners/t")
    queue.see_state(KazooState.SUSPENDED)
    assert queue.state == KazooState.SUSPENDED
    queue.see_state(KazooState.CONNECTED)
    queue.now_ms += OWNERS_WAIT_MS
    assert queue.drain() == FiredWatches(everything=True)


def test_unreported_nodes_come_again_with_their_first_time(queue: Queue) -> None:
    queue.fire("/consumers/g/ids", EventType.CHANGED)
    queue.fire("/consumers")
    taken = queue.drain()
    queue.fire("/consumers/g/ids")
    queue.fire("/consumers/h/ids")
    queue.fire("/brokers/topics-sub")
    queue.give_back(taken)
    again = queue.drain()
    assert again.groups == {"g": START_MS, "h": START_MS + 3}
    assert (again.lists, again.described) == (START_MS + 1, {"g"})
    queue.give_back(FiredWatches(everything=True))
    assert queue.drain().everything


def waiting(queue: WatchQueue) -> threading.Thread:
    """Let a thread wait without a time limit."""
    thread = threading.Thread(target=queue.wait, args=(_TIMEOUT_S * 10,), daemon=True)
    thread.start()
    return thread


def test_waiting_ends_with_a_notification_while_connected(queue: Queue) -> None:
    queue.see_state(KazooState.CONNECTED)
    queue.drain()
    thread = waiting(queue)
    queue.fire("/consumers/g/ids")
    thread.join(_TIMEOUT_S)
    assert not thread.is_alive()


def test_waiting_ends_when_it_is_woken_and_only_once(queue: Queue) -> None:
    queue.wake()
    thread = waiting(queue)
    thread.join(_TIMEOUT_S)
    assert not thread.is_alive()
    assert not queue._is_ready()


def test_without_a_connection_nothing_can_be_read_and_owners_have_their_time_to_come(queue: Queue) -> None:
    queue.fire("/consumers/g/ids")
    assert not queue._is_ready()
    queue.see_state(KazooState.CONNECTED)
    queue.drain()
    queue.fire("/consumers/g/owners/t")
    assert not queue._is_ready()
    queue.now_ms += OWNERS_WAIT_MS
    assert queue._is_ready()
    queue.wait(_TIMEOUT_S)
