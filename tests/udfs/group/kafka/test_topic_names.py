"""Names of topics that records call by their ids: by metadata, or because no other topic is left."""

from __future__ import annotations

import msgspec
import pytest

from tests.udfs.group.group_script import T0, Script
from tests.udfs.group.record_script import T_ID, U_ID, RecordScript, partitions
from udfs.group.kafka.topic_names import NAMES_WITHIN_MS, ids_by_name, next_check
from udfs.model.events import TopicPartitions, TopicQueues

T_AGAIN, U_AGAIN = "dDJ0MnQydDJ0MnQydDJ0Mg", "dTJ1MnUydTJ1MnUydTJ1Mg"


def two_topics(again: tuple[str, str]) -> RecordScript:
    """One member of ``t`` and ``u``; in epoch 2 they have these ids."""
    script = RecordScript()
    script.queues(0, "u", 2, topic_id=U_ID)
    script.member(10, "a", ("t", "u"))
    for at, epoch, (t, u) in ((10, 1, (T_ID, U_ID)), (20, 2, again)):
        script.epoch(at, epoch)
        held = (*partitions("0 1 2 3", t), *partitions("0 1", u))
        script.record(at, "target", epoch=epoch)
        script.record(at, "member_target", member_id="a", partitions=held)
        script.record(at + 1, "member_current", member_id="a", epoch=epoch, state="stable", partitions=held)
    return script


def test_one_id_without_a_name_is_that_of_the_topic_that_the_target_leaves_out() -> None:
    script = two_topics((T_ID, U_AGAIN)).run(30)
    assert script.decided()[1:] == ["21 #2 1->1 queue_count_changed:u"]
    assert script.spans("reported")[4:] == ["u/0 a 11..21", "u/0 a 21..", "u/1 a 11..21", "u/1 a 21.."]
    assert script.rebalances[1].agrees is True


def test_two_ids_without_names_wait_for_metadata() -> None:
    script = two_topics((T_AGAIN, U_AGAIN)).run(30)
    assert len(script.decided()) == 1
    script.queues(40, "t", 4, topic_id=T_AGAIN)
    assert script.run(50).decided()[1:] == ["21 #2 1->1 queue_count_changed:t queue_count_changed:u"]
    assert script.rebalances[1].agrees is True
    assert script.spans("reported")[-2:] == ["u/1 a 11..21", "u/1 a 21.."]


def test_ids_that_metadata_leaps_over_wait_no_longer_than_for_it() -> None:
    script = two_topics((T_AGAIN, U_AGAIN)).run(30)
    script.queues(40, "t", 4, topic_id=f"{T_AGAIN[:-1]}w")
    assert len(script.run(50).decided()) == 1
    script.queues(60, "u", 0)
    assert len(script.run(70).decided()) == 2
    assert f"{T_AGAIN}/0 a 21.." in script.spans("reported")


def group_that_empties(partitions: int | None = None) -> RecordScript:
    """One member, then nobody; the topic is known only later, if at all."""
    script = RecordScript(partitions)
    script.first_member(assignor="server.uniform")
    script.delete_member(20, "a")
    script.epoch(20, 2)
    script.target(20, 2, {})
    return script


def test_an_epoch_without_members_does_not_show_that_metadata_is_there() -> None:
    script = group_that_empties().run(30)
    assert script.decided() == []
    script.queues(40, "t", 4, topic_id=T_ID)
    script.run(50)
    assert script.decided() == group_that_empties(4).run(50).decided()
    assert [(row.agrees, row.agrees_reason) for row in script.rebalances] == [
        (None, "topics_unknown"),
        (None, "no_members"),
    ]
    assert script.findings() == []


def test_a_target_of_a_topic_without_metadata_is_not_compared() -> None:
    script = group_that_empties()
    script.record(30, "group", deleted=True)
    script.run(40)
    assert [(row.agrees, row.agrees_reason) for row in script.rebalances] == [
        (None, "topics_unknown"),
        (None, "no_members"),
    ]
    assert "expected_differs" not in str(script.findings())


def test_a_group_that_waits_for_metadata_is_shown_in_its_state() -> None:
    script = group_that_empties()
    states = [script.run(at).row().state for at in (15, 30)]
    assert states == ["stable", "empty"]


def test_the_cut_changes_nothing() -> None:
    runs = []
    for clocks in ((100,), (15, 25, 41, 100), tuple(range(1, 100, 3))):
        script = two_topics((T_AGAIN, U_AGAIN))
        script.queues(39, "t", 0)
        script.queues(40, "t", 4, topic_id=T_AGAIN)
        for clock in clocks:
            script.run(clock)
        runs.append((script.decided(), script.spans("reported"), script.spans("computed"), script.findings()))
    assert runs[0] == runs[1] == runs[2]
    assert len(runs[0][0]) == 2


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


def test_an_epoch_waits_for_a_topic_that_metadata_does_not_show_and_is_then_decided_with_the_others() -> None:
    group = HiddenTopics(h=U_ID)
    script = group.run(NAMES_WITHIN_MS + 11)
    assert (script.decided(), script.row().waits) == ([], f"epoch 1 waits for metadata of topic {U_ID}")
    assert script.row().state == "stable"
    group.run(NAMES_WITHIN_MS + 20)
    assert script.decided() == ["11 #1 0->1 group_created member_joined:a"]
    # The second one waits no more: its topics have names.
    group.run(NAMES_WITHIN_MS + 20_002)
    assert script.decided()[1:] == ["20001 #2 1->1 queue_count_changed:h"]
    assert (script.row().waits, script.row().queues) == (None, 7)
    assert [(row.status, row.agrees, row.agrees_reason) for row in script.rebalances] == [
        ("completed", None, "topics_unknown")
    ] * 2
    assert script.spans("reported")[:3] == ["h/0 a 11..", "h/1 a 11..", "h/2 a 20001.."]


def test_metadata_that_comes_later_changes_nothing_that_was_decided() -> None:
    group = HiddenTopics(h=U_ID)
    script = group.run(100_000)
    decided, computed = script.decided(), script.spans()
    script.queues(100_000, "h", 3, topic_id=U_ID)
    group.epoch(200_000, 3, "0 1 2")
    group.run(150_000)
    assert (script.decided(), script.spans(), script.findings()) == (decided, computed, [])
    script.member(200_000, "b", ("t", "h"))
    script.current(200_000, "b", 3, "")
    group.run(300_000)
    assert script.decided()[2:] == ["200001 #3 1->2 member_joined:b"]
    assert (script.rebalances[2].queues_kept, script.rebalances[2].queues_assigned) == (7, 0)


def test_ids_of_several_topics_that_metadata_does_not_show_are_their_names_until_it_does() -> None:
    group = HiddenTopics(h=U_ID, i=V_ID)
    script = group.run(100_000)
    assert [row.generation for row in script.rebalances] == [1, 2]
    assert [(row.agrees, row.agrees_reason) for row in script.rebalances] == [(None, "topics_unknown")] * 2
    assert f"{U_ID}/0 a 11.." in script.spans("reported")
    script.queues(100_000, "h", 3, topic_id=U_ID)
    group.run(150_000)
    assert len(script.decided()) == 2
    assert "h/0 a 100000.." in script.spans("reported")
    assert f"{U_ID}/0 a 11..100000" in script.spans("reported")
    group.epoch(200_000, 3, "0 1 2 3")
    group.run(300_000)
    # By then one id is left without a name, and one topic: it is that.
    assert "i/3 a 200001.." in script.spans("reported")
    assert (script.rebalances[2].queues_assigned, script.rebalances[2].queues_revoked) == (2, 0)


def metadata_of_another_topic(script: Script, at: int) -> None:
    """Have metadata show a topic to which nobody subscribes: the group has no event of it."""
    event = TopicQueues(schema_version=1, event_time=T0 + at, system="kafka", cluster="c", topic="other", queue_count=1)
    script.topics.take(event)


def test_without_any_metadata_an_epoch_waits_on() -> None:
    """Records may be older than the first metadata, which holds for all earlier time."""
    group = HiddenTopics(h=U_ID, i=V_ID)
    script = group.script
    script.waiting = [one for one in script.waiting if not isinstance(one, TopicQueues)]
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
    script.waiting = [one for one in script.waiting if not isinstance(one, TopicQueues)]
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
    script.waiting = [one for one in script.waiting if not isinstance(one, TopicQueues)]
    script.queues(1_000_000, "t", 4, topic_id=T_ID)
    assert len(group.run(1_060_001).decided()) == 2


def test_without_metadata_a_check_is_a_quarter_later_each_time() -> None:
    script = RecordScript(None)
    script.first_member()
    script.run(20)
    recorded = script.group.recorded
    assert recorded is not None
    checks = [T0 + 10]
    while checks[-1] < T0 + 86_400_000:
        checks.append(next_check(recorded, recorded.waiting, checks[-1]) or 0)
    assert [at - T0 - 10 for at in checks[:7]] == [0, 60_000, 120_000, 180_000, 240_000, 300_000, 375_000]
    assert len(checks) < 40


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
