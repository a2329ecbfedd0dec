"""Offsets of two reads of a group: which have moved, and where another number waits."""

from __future__ import annotations

import msgspec

from tests.streaming.collectors.rocketmq.surveys import ONE, TWO, Rounds, connections, info, lags, offsets, snapshots
from udfs.model.events import Progress


def test_offsets_are_reported_when_they_move_from_the_first_read_on() -> None:
    rounds = Rounds()
    first = lags(rounds.take(ONE, infos={"c1": info()}, offsets=offsets(q0=5, q1=7, q5=0, q6=-1)))
    assert first == {0: (5, 5, False), 1: (7, 7, False)}
    assert rounds.take(ONE, offsets=offsets(q0=5, q1=7)) == []
    (progress,) = rounds.take(ONE, offsets=offsets(q0=5, q1=(8, 100), q2=-1))
    assert isinstance(progress, Progress)
    assert [(queue.queue_id, queue.offset, queue.end_offset, queue.moved) for queue in progress.queues] == [
        (1, 8, 100, True)
    ]
    (progress,) = rounds.take(ONE, offsets=offsets(q0=5, q1=(8, 100), q3=1, q4=0))
    assert isinstance(progress, Progress)
    assert [(queue.queue_id, queue.offset) for queue in progress.queues] == [(3, 1)]  # the first commit ever
    rounds.restart()
    assert lags(rounds.take(ONE, offsets=offsets(q0=5, q1=9))) == {0: (5, 5, False), 1: (9, 9, False)}


def test_a_queue_is_reported_when_another_number_waits_there_though_no_member_commits() -> None:
    rounds = Rounds()
    reported = [
        lags(rounds.take(ONE, infos={"c1": info()}, offsets=offsets(q0=(5, 9), q1=7, q2=(-1, 4)))),
        lags(rounds.take(ONE, offsets=offsets(q0=(5, 9), q1=7))),
        lags(rounds.take(ONE, offsets=offsets(q0=(5, 12), q1=(7, 8)))),
        lags(rounds.take({"g": {"a": None}}, offsets=offsets(q0=(5, 13), q1=(7, 8)))),
        lags(rounds.take({"g": {"a": None}}, offsets=offsets(q0=(6, 14), q1=(7, 8), q3=(0, 2)))),
    ]
    rounds.restart()
    reported.append(lags(rounds.take({"g": {"a": None}}, offsets=offsets(q0=(6, 14), q1=8))))
    assert reported == [
        {0: (5, 9, False), 1: (7, 7, False)},
        {},
        {0: (5, 12, False), 1: (7, 8, False)},
        {0: (5, 13, False)},
        {0: (6, 14, True), 3: (0, 2, False)},  # the same number of messages waits, but a member has consumed more
        {0: (6, 14, False), 1: (8, 8, False)},
    ]


def test_when_the_message_read_last_was_stored_is_reported_with_its_offset() -> None:
    rounds = Rounds()
    stored = {0: 900, 1: 0, 2: 800}  # that of queue 1 was deleted, and nothing was ever read of queue 2
    read = offsets(q0=(5, 9), q1=(5, 9), q2=(0, 9))
    dated = {queue: msgspec.structs.replace(of, last_timestamp=stored[queue.queue_id]) for queue, of in read.items()}
    (progress,) = [event for event in rounds.take(ONE, infos={"c1": info()}, offsets=dated) if type(event) is Progress]
    written = [(queue.queue_id, queue.written_offset, queue.written_at) for queue in progress.queues]
    assert written == [(0, 4, 900), (1, None, None), (2, None, None)]


def test_a_group_is_reported_as_of_the_time_at_which_its_offsets_were_read() -> None:
    rounds = Rounds()
    rounds.take(TWO, infos={"c1": info(), "c2": info()}, offsets=offsets(q0=5))
    events = rounds.take(ONE, offsets=offsets(q0=8))
    (progress,) = [event for event in events if isinstance(event, Progress)]
    (snapshot,) = snapshots(events)
    assert progress.event_time == snapshot.event_time
    (snapshot,) = snapshots(rounds.take({"g": {"a": connections([])}}))
    assert snapshot.event_time < rounds.now_ms
