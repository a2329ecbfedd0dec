"""Members' queues are reported when they change, and once more with the first pull."""

from __future__ import annotations

from streaming.collectors.rocketmq.remoting.messages import MessageRequestMode
from tests.streaming.collectors.rocketmq.surveys import (
    ONE,
    START_MS,
    TWO,
    Rounds,
    broker,
    connections,
    info,
    reports,
)


def test_a_members_queues_are_reported_when_they_change_and_not_when_a_pull_moves() -> None:
    rounds = Rounds()
    (report,) = reports(rounds.take(ONE, infos={"c1": info(("t", "a", 0), ("t", "a", 1))}))
    assert [(queue.topic, queue.broker, queue.queue_id) for queue in report.queues] == [("t", "a", 0), ("t", "a", 1)]
    assert report.queues[0].last_pull_at == START_MS
    assert report.queues[0].locked is None
    assert report.host == "c1:1"
    for number in range(1, 4):
        later = info(("t", "a", 0), ("t", "a", 1), pulled_ms=START_MS + number)
        assert rounds.take(ONE, infos={"c1": later}) == []
    (report,) = reports(rounds.take(ONE, infos={"c1": info(("t", "a", 1))}))
    assert len(report.queues) == 1


def test_the_first_pull_of_a_queue_that_was_taken_over_is_reported_once() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info(("t", "a", 0))})
    two = (("t", "a", 0), ("t", "a", 1))
    assert len(reports(rounds.take(ONE, infos={"c1": info(*two, pulled_ms=START_MS + 10)}))) == 1
    assert reports(rounds.take(ONE, infos={"c1": info(*two, pulled_ms=START_MS + 10)})) == []
    (report,) = reports(rounds.take(ONE, infos={"c1": info(*two, pulled_ms=START_MS + 400)}))
    assert {queue.last_pull_at for queue in report.queues} == {START_MS + 400}
    assert reports(rounds.take(ONE, infos={"c1": info(*two, pulled_ms=START_MS + 900)})) == []


def test_a_newcomers_first_pull_is_reported_too_and_that_of_a_newly_observed_group_is_not() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info(("t", "a", 0))})
    assert reports(rounds.take(ONE, infos={"c1": info(("t", "a", 0), pulled_ms=START_MS + 1)})) == []
    rounds.take(TWO, infos={"c2": info(("t", "a", 1))})
    assert len(reports(rounds.take(TWO, infos={"c2": info(("t", "a", 1), pulled_ms=START_MS + 1)}))) == 1


def test_a_lock_is_reported_of_members_that_consume_in_order() -> None:
    rounds = Rounds()
    rounds.take(ONE, infos={"c1": info(("t", "a", 0), PROP_CONSUMEORDERLY="true", locked=False)})
    locked = info(("t", "a", 0), PROP_CONSUMEORDERLY="true", locked=True)
    (report,) = reports(rounds.take(ONE, infos={"c1": locked}))
    assert report.queues[0].locked is True


def test_times_that_are_none_and_queues_that_are_given_up_or_pseudo_are_left_out() -> None:
    rounds = Rounds()
    (report,) = reports(rounds.take(ONE, infos={"c1": info(("t", "a", 0), ("t", "a", -1), pulled_ms=0)}))
    assert [(queue.queue_id, queue.last_pull_at) for queue in report.queues] == [(0, None)]


def test_one_of_two_members_with_the_same_id_reports_without_its_address() -> None:
    rounds = Rounds()
    twice = {"g": {"a": connections([("c1", "x:1"), ("c1", "y:1")])}}
    (report,) = reports(rounds.take(twice, infos={"c1": info(("t", "a", 0))}))
    assert report.host is None


def test_queues_are_given_up_when_messages_are_shared() -> None:
    rounds = Rounds()
    pulls = info(("t", "a", 0), clientRebalance="false")
    rounds.take(ONE, infos={"c1": pulls})
    popping = broker("a", modes=(MessageRequestMode("t", "g", "POP", 0),))
    (report,) = reports(rounds.take(ONE, brokers=[popping], infos={"c1": pulls}))
    assert report.queues == ()
