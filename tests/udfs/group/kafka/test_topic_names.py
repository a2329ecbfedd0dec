"""Names of topics that records call by their ids: by metadata, or because no other topic is left."""

from __future__ import annotations

from tests.udfs.group.record_script import T_ID, U_ID, RecordScript, partitions
from udfs.group.kafka.topic_names import ids_by_name

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
    assert [row.agrees for row in script.rebalances] == [True, None]
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
