"""Names of topics that records call by their ids: by metadata, or because no other topic is left."""

from __future__ import annotations

import msgspec
import pytest

from tests.udfs.group.group_script import T0, Script
from tests.udfs.group.record_script import T_ID, U_ID, RecordScript, partitions
from udfs.group.kafka.topic_names import ids_by_name
from udfs.model.events import TopicPartitions, TopicQueues


def test_an_id_without_a_name_is_its_own_name() -> None:
    target = {"a": partitions("0"), "b": (*partitions("1"), *partitions("0", U_ID))}
    assert ids_by_name(target, {T_ID: "t"}) == {"t": T_ID, U_ID: U_ID}
    assert ids_by_name(None, {}) == {}


# ---- topics that metadata never shows

V_ID = "dnZ2dnZ2dnZ2dnZ2dnZ2dg"


class HiddenTopics:
    """One member of ``t`` and of topics that this user may not describe; epochs 1 and 2, and 3 later."""

    def __init__(self, **hidden: str) -> None:
        self.script, self.hidden = RecordScript(), hidden
        self.epoch(10, 1, "0 1")
        self.epoch(20_000, 2, "0 1 2")

    def epoch(self, at: int, epoch: int, queues: str) -> None:
        """Give the member all of ``t``, and these queues of each hidden topic."""
        held: tuple[TopicPartitions, ...] = partitions("0 1 2 3")
        for topic_id in self.hidden.values():
            held += partitions(queues, topic_id)
        script = self.script
        script.member(at, "a", ("t", *self.hidden))
        script.epoch(at, epoch)
        script.record(at, "target", epoch=epoch)
        script.record(at, "member_target", member_id="a", partitions=held)
        script.record(at + 1, "member_current", member_id="a", epoch=epoch, state="stable", partitions=held)

    def run(self, clock: int) -> Script:
        return self.script.run(clock)


def metadata_of_another_topic(script: Script, at: int) -> None:
    """Have metadata show a topic to which nobody subscribes: the group has no event of it."""
    event = TopicQueues(schema_version=1, event_time=T0 + at, system="kafka", cluster="c", topic="other", queue_count=1)
    script.topics.take(event)


def test_without_any_metadata_an_epoch_waits_on() -> None:
    """Records may be older than the first metadata, which holds for all earlier time."""
    group = HiddenTopics(h=U_ID, i=V_ID)
    script = group.script
    script.waiting = [event for event in script.waiting if not isinstance(event, TopicQueues)]
    group.run(10_000_000)
    assert script.decided() == []
    assert script.row().waits == f"epoch 1 waits for metadata of topic {T_ID}, {U_ID}, {V_ID}"
    metadata_of_another_topic(script, 10_000_000)
    group.run(10_000_001)
    assert script.decided() == []
    group.run(13_000_000)
    assert len(script.decided()) == 2


def test_an_epoch_that_is_older_than_the_first_metadata_waits_from_then_on() -> None:
    """The first poll may not show all topics."""
    group = HiddenTopics(h=U_ID)
    script = group.script
    script.waiting = [event for event in script.waiting if not isinstance(event, TopicQueues)]
    script.queues(1_000_000, "t", 4, topic_id=T_ID)
    assert group.run(1_060_000).decided() == []
    script.queues(1_060_000, "h", 4, topic_id=U_ID)
    group.run(1_100_000)
    assert [(row.generation, row.agrees_reason) for row in script.rebalances] == [
        (1, "topics_unknown"),
        (2, "topics_unknown"),
    ]
    group = HiddenTopics(h=U_ID)
    script = group.script
    script.waiting = [event for event in script.waiting if not isinstance(event, TopicQueues)]
    script.queues(1_000_000, "t", 4, topic_id=T_ID)
    assert len(group.run(1_060_001).decided()) == 2


@pytest.mark.parametrize("hidden", [{"h": U_ID}, {"h": U_ID, "i": V_ID}])
def test_when_an_epoch_stops_waiting_does_not_depend_on_batches(hidden: dict[str, str]) -> None:
    runs = []
    for clocks in ((), (61_000, 100_001), range(5_000, 300_000, 5_000), (20_000, 60_011, 60_012, 80_001, 80_002)):
        group = HiddenTopics(**hidden)
        group.script.queues(100_000, "h", 3, topic_id=U_ID)
        group.epoch(200_000, 3, "0 1 2 3")
        for clock in (*clocks, 400_000):
            group.run(clock)
        script = group.script
        rows = [msgspec.structs.replace(row, detected_at=0) for row in script.rebalances]
        runs.append((rows, script.spans("reported"), script.spans("computed"), script.findings(), script.row()))
    assert runs[0] == runs[1] == runs[2] == runs[3]
