"""The rebalance of one epoch: what it is compared with, and what it leaves to others."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.udfs.group.group_script import T0
from tests.udfs.group.random_coordinator import RandomCoordinator
from tests.udfs.group.record_script import RecordScript
from udfs.model.events import TopicPartitions
from udfs.model.spans import QueueAssigned


def test_an_epoch_is_computed_from_the_target_before_it_not_from_what_members_own() -> None:
    script = RecordScript()
    script.first_member()
    script.second_member()
    script.waiting = [event for event in script.waiting if event.event_time < T0 + 30]  # b never gets its queues
    script.delete_member(40, "b")
    script.epoch(40, 3)
    script.member(41, "c")
    script.epoch(41, 4)
    script.target(41, 4, {"a": "0 1", "c": "2 3"})
    script.current(42, "a", 4, "0 1")
    script.current(43, "c", 4, "2 3")
    script.run(60)
    rows = {row.generation: row for row in script.rebalances}
    assert {number: row.agrees for number, row in rows.items()} == {1: True, 2: True, 3: None, 4: True}
    assert (rows[3].agrees_reason, rows[3].error) == ("no_target", "overtaken by epoch 4")


# What is not compared before a topic has metadata is audited then. Metadata may show a growth before the
# coordinator does.
_VALID = {
    *((True, None), (True, "growth_not_due")),
    *((None, "no_members"), (None, "no_target"), (None, "topics_unknown")),
}


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_every_target_of_a_random_history_is_recomputed_from_the_one_before(first: int) -> None:
    agreed = 0
    for seed in range(first, first + 20):
        script = RecordScript(partitions=None)
        RandomCoordinator(seed, script).run(60)
        found = [(row.generation, row.agrees, row.agrees_reason) for row in script.run(10**6).rebalances]
        assert {answer[1:] for answer in found} <= _VALID, (seed, found)
        verdicts = [audited.verdict for audited in script.audits()]
        assert "differs" not in verdicts, (seed, found)
        # Of an epoch that never got a target the next one shows what it does.
        caused = [row.trigger for before, row in pairwise(script.rebalances) if before.agrees_reason != "no_target"]
        assert "unexplained" not in caused, (seed, script.decided())
        agreed += verdicts.count("agrees")
    assert agreed > 100


@pytest.mark.parametrize("first", [0, 1_000])
def test_targets_of_one_millisecond_are_recomputed_in_the_order_of_their_offsets(first: int) -> None:
    agreed = 0
    for seed in range(first, first + 20):
        script = RecordScript(partitions=None, has_offsets=True)
        RandomCoordinator(seed, script, at_once=0.4).run(60)
        found = [(row.generation, row.agrees, row.agrees_reason) for row in script.run(10**6).rebalances]
        assert {answer[1:] for answer in found} <= _VALID, (seed, found)
        verdicts = [audited.verdict for audited in script.audits()]
        assert "differs" not in verdicts, (seed, found)
        agreed += verdicts.count("agrees")
    assert agreed > 100


@pytest.mark.parametrize("at_once", [0.0, 0.3, 0.6])
def test_spans_name_the_owners_of_each_time(at_once: float) -> None:
    compared = 0
    for seed in range(20):
        script = RecordScript(partitions=None, has_offsets=True)
        coordinator = RandomCoordinator(seed, script, at_once=at_once)
        coordinator.run(60)
        script.run(10**6)
        # What members own since the last epoch began that they have not converged on is not decided yet.
        decided = max(row.event_time for row in script.rebalances) - T0
        times = [at for at in coordinator.owners if at < decided]
        compared += len(times)
        assert [at for at in times if script.owners(at, "reported") != coordinator.owners[at]] == [], seed
    assert compared > 400


# What Kafka's ``UniformAssignor`` 4.1.1 answers for equal and for different subscriptions.


def costs_of(script: RecordScript) -> dict[tuple[str, int, str], tuple[int | None, int | None]]:
    """Return what the last rebalance cost, of each span that it began: messages read twice, messages that wait."""
    number = script.rebalances[-1].generation
    spans = [change.body for change in script.changes if isinstance(change.body, QueueAssigned)]
    return {
        (span.origin, span.queue_id, span.member_id): (
            span.repeated_estimated_messages,
            span.waiting_estimated_messages,
        )
        for span in spans
        if span.generation == number
    }


def test_commits_of_the_new_owner_before_the_epoch_ends_are_not_its_predecessors() -> None:
    script = RecordScript()
    script.first_member()
    for queue, commits in {2: {6_000: 600, 20_012: 650}, 3: {6_000: 600, 20_050: 700}}.items():
        script.observe(1_000, "t", queue, committed=100)
        for at, committed in commits.items():
            script.observe(at, "t", queue, committed=committed)
    script.second_member(at=20_000)
    script.waiting = [
        event for event in script.waiting if getattr(event, "epoch", 0) != 2 or event.event_time != T0 + 20_010
    ]
    script.current(20_010, "a", 1, "0 1", "unrevoked")
    script.current(20_100, "a", 2, "0 1")
    script.run(30_000)
    assert script.rebalances[-1].event_time == T0 + 20_100
    # Of 2 the former owner gave back what it had read. Of 3 nothing shows how fast it read: its own are not enough.
    assert costs_of(script)["reported", 2, "b"] == (0, None)
    assert ("reported", 3, "b") in costs_of(script)
    assert costs_of(script)["reported", 3, "b"] == (None, None)


# Six topics of a real group, in the order of its coordinator's map. Those with 22 and 20 partitions share a slot.
IN_MAP = (
    ("ILvcyvuMQVK4bE6lvyQjAg", 9),
    ("oGqt068fTcSAnbp1spoeQg", 7),
    ("y3OhM1M5TguCmI3AoIdLGA", 22),
    ("Cu2sNR-ARuiOXbEq9jHHMw", 20),
    ("m-lnSwJrQueuB3cNkdx8kg", 9),
    ("VJumDKGkTW-PJMNFYxUMFw", 22),
)


@pytest.mark.parametrize(("swapped", "agrees"), [(False, True), (True, False)])
def test_the_order_of_the_record_decides_what_a_member_keeps_of_topics_sharing_a_slot(
    swapped: bool, agrees: bool
) -> None:
    script = RecordScript(partitions=None, has_offsets=True)
    for number, (topic_id, count) in enumerate(IN_MAP):
        script.queues(0, f"t{number}", count, topic_id=topic_id)
    topics = tuple(f"t{number}" for number in range(len(IN_MAP)))
    everything = [TopicPartitions(topic_id, tuple(range(count))) for topic_id, count in IN_MAP]
    if swapped:
        everything[2], everything[3] = everything[3], everything[2]
    kept = [*everything[:2], TopicPartitions("y3OhM1M5TguCmI3AoIdLGA", tuple(range(22)))]
    shared = TopicPartitions("Cu2sNR-ARuiOXbEq9jHHMw", tuple(range(7)))
    others = [TopicPartitions(shared.topic, tuple(range(7, 20))), *everything[4:]]
    script.member(10, "a", topics, assignor="server.uniform")
    script.epoch(10, 1)
    script.record(10, "target", epoch=1)
    script.record(10, "member_target", member_id="a", partitions=tuple(everything))
    script.record(10, "member_current", member_id="a", epoch=1, state="stable", partitions=tuple(sorted(everything)))
    script.member(20, "b", topics, assignor="server.uniform")
    script.epoch(20, 2)
    script.record(20, "target", epoch=2)
    for at, member, held in ((20, "b", others), (21, "a", [*kept, shared])):
        script.record(20, "member_target", member_id=member, partitions=tuple(held))
        script.record(at, "member_current", member_id=member, epoch=2, state="stable", partitions=tuple(sorted(held)))
    assert [row.agrees for row in script.run(50).rebalances] == [True, agrees]
