"""Group epochs: what the records of a coordinator, one by one, make of its consumer groups."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.udfs.group.group_script import T0, Script
from tests.udfs.group.record_script import T_ID, RecordScript
from tests.udfs.kafka.broker_records import LINES, TOPIC_IDS
from udfs.group.format.state_format import decode_group, encode_group
from udfs.kafka.consumer_offsets import events_of
from udfs.model.events import AnyEvent
from udfs.model.journal import MemberEpoch
from udfs.model.spans import QueuesReassigned, SpansWithdrawn


def test_the_row_names_members_at_another_epoch_after_every_record() -> None:
    script = RecordScript()
    script.first_member()
    assert script.run(15).row().member_epochs == []
    script.second_member()
    script.delete_member(50, "a")
    script.epoch(50, 3)
    script.target(51, 3, {"b": "0 1 2 3"})
    script.current(60, "b", 3, "0 1 2 3")
    # Until the third epoch is decided the session of a is open, and no record shows an epoch of a any more.
    shown: dict[int, list[MemberEpoch]] = {
        20: [MemberEpoch("a", 1)],
        25: [MemberEpoch("a", 1)],
        30: [],
        35: [],
        50: [MemberEpoch("a")],
        51: [MemberEpoch("a"), MemberEpoch("b", 2)],
        60: [],
    }
    assert {at: script.run(at + 1).row().member_epochs for at in shown} == shown
    assert sorted(script.group.members) == ["b"]


def test_epochs_of_members_survive_a_state_between_two_records() -> None:
    script = RecordScript()
    script.first_member()
    script.second_member()
    script.run(25)
    before = script.group
    assert before.row is not None
    assert before.row.member_epochs == [MemberEpoch("a", 1)]
    assert decode_group(encode_group(before)) == before
    # Also where the records say otherwise than when the row was written.
    before.row.member_epochs = [MemberEpoch("a", None)]
    assert decode_group(encode_group(before)) == before
    before.row.member_epochs = None
    assert decode_group(encode_group(before)) == before
    assert [member.member_id for member in before.row.reconciling or ()] == ["a", "b"]
    before.row.reconciling = (before.row.reconciling or [])[:1]
    assert decode_group(encode_group(before)) == before
    before.row.reconciling = None
    assert decode_group(encode_group(before)) == before


def test_an_overtaken_epoch_has_a_row_that_names_the_next_one() -> None:
    script = RecordScript()
    script.first_member()
    script.second_member()
    script.member(33, "c")  # before b has its queues
    script.epoch(33, 3)
    script.target(33, 3, {"b": "2", "c": "3"})
    script.current(33, "c", 3, "", "unreleased")
    script.current(40, "b", 3, "2")
    script.current(41, "c", 3, "3")
    script.current(42, "a", 3, "0 1")
    script.waiting = [event for event in script.waiting if event.event_time != T0 + 35]
    script.run(60)
    assert script.decided()[1:] == ["33 #2 1->2 member_joined:b", "42 #3 2->3 member_joined:c"]
    overtaken, last = script.rebalances[1:]
    assert (overtaken.error, overtaken.agrees, overtaken.completed_at) == ("overtaken by epoch 3", True, None)
    assert (overtaken.began_at, overtaken.unassigned_queues) == (T0 + 20, 2)
    assert (last.error, last.agrees, last.began_at) == (None, True, T0 + 33)
    assert script.findings() == []


def test_a_topic_without_metadata_yet_delays_the_row_and_nothing_else() -> None:
    early, late = RecordScript(), RecordScript(partitions=None)
    for script in (early, late):
        script.first_member()
        script.second_member()
    late.run(60)
    assert late.decided() == []
    late.queues(100, "t", 4, topic_id=T_ID)
    assert late.run(120).decided() == early.run(120).decided()
    assert late.spans("reported") == early.spans("reported")
    assert late.row() == early.row()


# ---- a real broker


def recorded(group: str) -> Script:
    """Return what comes of the records of one group that a broker wrote."""
    script, base = Script(), LINES[0].at
    grown = next(line.at for line in LINES if line.shown and line.shown.get("epoch") == 6) - base
    for at, topic, count in ((-1000, "orders", 4), (-1000, "bills", 2), (grown - 1, "orders", 6)):
        script.queues(at, topic, count, topic_id=TOPIC_IDS[topic])
    for line in LINES:
        for event in events_of(line.key, line.value, line.at, "c"):
            if not isinstance(event, AnyEvent) or event.group != group:  # type: ignore[union-attr]
                continue
            script.ids += 1
            moved = {"event_time": line.at - base + T0, "group": "g", "event_id": f"e{script.ids}"}
            script.waiting.append(msgspec.structs.replace(event, **moved))
    return script.run(10**6)


def test_every_epoch_of_a_real_broker_has_its_cause_and_is_recomputed() -> None:
    script = recorded("shop")
    reported = [" ".join(cause.kind for cause in row.triggers) for row in script.rebalances]
    assert reported == [
        "group_created member_joined",
        "member_joined",
        "member_joined",
        "member_gone",
        "subscription_changed",
        "queue_count_changed",
        "member_gone",
    ]
    assert [row.generation for row in script.rebalances] == list(range(1, 8))
    assert all(row.agrees for row in script.rebalances)
    assert script.findings() == []


def test_a_pattern_of_a_real_broker_and_the_range_of_its_coordinator() -> None:
    script = recorded("pattern")
    assert [row.trigger for row in script.rebalances] == ["group_created", "subscription_changed", "member_gone"]
    assert [row.strategy for row in script.rebalances] == ["kafka.server.range", "kafka.server.range", None]
    assert [row.agrees for row in script.rebalances] == [True, True, None]


def test_a_real_group_that_changes_its_protocol_and_back_is_one_history() -> None:
    script = recorded("moving")
    reported = [(row.generation, [cause.kind for cause in row.triggers]) for row in script.rebalances]
    assert reported == [
        (1, ["group_created", "member_joined"]),
        (2, ["member_joined", "strategy_changed"]),
        (3, ["member_gone", "strategy_changed"]),
    ]
    assert [row.agrees for row in script.rebalances] == [True, True, True]


# ---- order and cuts


def history(dice: random.Random) -> Iterator[list[tuple[str, dict[str, object]]]]:
    """Yield the records of one time after another, as a coordinator writes them that assigns whatever it likes."""
    epoch = target_epoch = 0
    members: dict[str, dict[str, object]] = {}
    for _ in range(dice.randrange(4, 25)):
        step: list[tuple[str, dict[str, object]]] = []
        what = dice.choice(["join", "leave", "target", "beat", "beat", "beat", "bump"])
        if what == "join" or not members:
            name = f"m{dice.randrange(6)}"
            members.setdefault(name, {"epoch": 0, "owned": "", "target": ""})
            step.append(("member", {"member": name}))
        elif what == "leave":
            name = dice.choice(sorted(members))
            del members[name]
            step.append(("delete_member", {"member": name}))
        if what in ("join", "leave", "bump") or step:
            epoch += 1
            step.append(("epoch", {"epoch": epoch}))
        if members and (what == "target" or dice.random() < 0.5) and target_epoch < epoch:
            target_epoch = epoch
            shares = [dice.choice(sorted(members)) for _ in range(4)]
            for name in members:
                members[name]["target"] = " ".join(str(number) for number in range(4) if shares[number] == name)
            held = {name: str(member["target"]) for name, member in members.items()}
            step.append(("target", {"epoch": epoch, "held": held}))
        if what == "beat" and target_epoch:
            name = dice.choice(sorted(members))
            member = members[name]
            taken = {
                number for other in members.values() if other is not member for number in str(other["owned"]).split()
            }
            wanted = str(member["target"]).split()
            free = [number for number in wanted if number not in taken]
            member["epoch"], member["owned"] = target_epoch, " ".join(free)
            state = "stable" if free == wanted else "unreleased"
            step.append(("current", {"member": name, "epoch": target_epoch, "owned": " ".join(free), "state": state}))
        if step:
            yield step


@pytest.mark.parametrize("is_decided", [True, False])
def test_a_member_that_is_described_anew_as_it_departs_is_shown_so(is_decided: bool) -> None:
    script = RecordScript(has_offsets=True)
    script.member(10, "a", host="h0")
    script.epoch(10, 1)
    if is_decided:
        script.target(10, 1, {"a": "0 1 2 3"})
        script.current(10, "a", 1, "0 1 2 3")
    script.member(20, "a", host="h1")
    script.delete_member(20, "a")
    script.epoch(20, 2)
    script.run(100_000)
    assert [row.generation for row in script.rebalances] == [1, 2]
    assert script.group.departed["a"].member.host == "h1"


def play(script: RecordScript, steps: list[tuple[int, list[tuple[str, dict[str, object]]]]]) -> None:
    for at, step in steps:
        for name, fields in step:
            getattr(script, name)(at, **fields)
    for place, event in enumerate(script.waiting):
        assert isinstance(event, AnyEvent)
        script.waiting[place] = msgspec.structs.replace(event, event_id=str(hash_of(event)))


def hash_of(event: AnyEvent) -> str:
    return msgspec.json.encode(msgspec.structs.replace(event, event_id=None), order="sorted").decode()


def beside_spans(script: RecordScript) -> list[object]:
    return [change.body for change in script.written if not isinstance(change.body, QueuesReassigned | SpansWithdrawn)]


# A generation is decided at the end of the time at which its topic becomes known, with what was known when it began.
@example(seed=243, topics_at=15)
# Spans are corrected to the same ones, by other changes.
@example(seed=1083, topics_at=1000)
@example(seed=1428, topics_at=1000)
@given(seed=st.integers(0, 2**32), topics_at=st.sampled_from([0, 15, 1000]))
def test_decisions_do_not_depend_on_order_or_batches(seed: int, topics_at: int) -> None:
    dice = random.Random(seed)
    steps, at = [], 10
    for step in history(dice):
        steps.append((at, step))
        at += dice.randrange(3)  # several steps may be of one time
    stuck_after_ms = dice.randrange(1, 60)
    whole, cut = (RecordScript(partitions=None, stuck_after_ms=stuck_after_ms) for _ in range(2))
    for script in (whole, cut):
        script.queues(topics_at, "t", 4, topic_id=T_ID)
        play(script, steps)
    dice.shuffle(cut.waiting)
    for clock in sorted(dice.randrange(5, at + 5) for _ in range(dice.randrange(4))):
        cut.run(clock)
    whole.run(2000)
    cut.run(2000)
    assert cut.decided() == whole.decided()
    assert cut.rebalances == whole.rebalances
    assert [cut.spans("computed"), cut.spans("reported")] == [whole.spans("computed"), whole.spans("reported")]
    assert beside_spans(cut) == beside_spans(whole)
    assert whole.sessions() == cut.sessions()
    assert whole.findings() == cut.findings()
    generations = [row.generation for row in whole.rebalances]
    assert generations == sorted(set(generations))
    assert all(row.generations_missed is None for row in whole.rebalances)
    assert "unexplained" not in {row.trigger for row in whole.rebalances} or bumps_move_queues(whole)


def bumps_move_queues(script: RecordScript) -> bool:
    """Return whether queues moved in each epoch without a cause: this coordinator needs none to assign anew."""
    rows = [row for row in script.rebalances if row.trigger == "unexplained"]
    return all(row.queues_moved or row.queues_assigned or row.queues_revoked for row in rows)
