"""What a piece of the journal does to the rows of a table; expected rows are written by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.tables.journal_entries import Entry
from streaming.tables.projections import EFFECTS, Projection
from streaming.tables.row_slots import Rows
from streaming.tables.schema import Row
from tests.streaming.tables.journals import T0, Journal, assigned, gone, joined, rebalanced, released, resumed, stable
from tests.udfs.group.single_spans import SingleSpans
from tests.udfs.shard.random_streams import Dice
from tests.udfs.shard.shard_script import Cluster
from udfs.group import coordinator as group_logic
from udfs.group import span_runs
from udfs.model import journal

BY_TABLE = {effect.table.name: effect for effect in EFFECTS}


def kind(body: journal.Body) -> str:
    return str(type(body).__struct_config__.tag)


def apply_changes(
    name: str, changes: Sequence[journal.Change], standing: Sequence[Row] = (), groups: Sequence[Row] = ()
) -> list[Row]:
    """Return the table's rows after these changes."""
    effect: Projection = BY_TABLE[name]
    entries = [
        Entry(change.cluster, change.group_id, change.event_time, change.body)
        for change in changes
        if effect.concerns(kind(change.body), change.group_id)
    ]
    names = effect.table.names
    rows = Rows(standing)
    effect.apply_changes(entries, rows, {(row["cluster"], row["group_id"]): row for row in groups})
    going, coming = rows.outcome(names)
    stay = [row for index, row in enumerate(standing) if index not in going]
    full = [{column: row.get(column) for column in names} for row in [*stay, *coming]]
    return sorted(full, key=lambda row: [str(row[column]) for column in names])


def spans(changes: Sequence[journal.Change], standing: Sequence[Row] = ()) -> list[tuple[int, str, int, int | None]]:
    return [
        (row["queue_id"], row["member_id"], row["valid_from"] - T0, row["valid_to"] and row["valid_to"] - T0)
        for row in apply_changes("assignments", changes, standing)
    ]


def of_one_group(*bodies: tuple[int, journal.Body]) -> list[journal.Change]:
    history = Journal()
    return [history.change(at, body) for at, body in bodies]


def test_a_queue_that_moves_has_two_spans_that_touch() -> None:
    changes = of_one_group((0, assigned(0, "a", 0)), (10, released(0, "a", 10)), (10, assigned(0, "b", 10)))
    assert spans(changes) == [(0, "a", 0, 10), (0, "b", 10, None)]


def test_a_span_of_no_length_leaves_no_row() -> None:
    changes = of_one_group((5, assigned(0, "a", 5)), (5, released(0, "a", 5)))
    assert spans(changes) == []


def test_a_span_of_no_length_goes_also_when_it_was_written_before() -> None:
    changes = of_one_group((5, assigned(0, "a", 5)), (5, released(0, "a", 5)))
    standing = apply_changes("assignments", changes[:1])
    assert len(standing) == 1
    assert spans(changes[1:], standing) == []


def test_reported_and_computed_spans_of_one_queue_do_not_end_each_other() -> None:
    changes = of_one_group(
        (0, assigned(0, "a", 0)),
        (0, assigned(0, "a", 0, origin="reported")),
        (7, released(0, "a", 7, origin="reported")),
    )
    assert [(row["origin"], row["valid_to"]) for row in apply_changes("assignments", changes)] == [
        ("computed", None),
        ("reported", T0 + 7),
    ]


def test_a_span_tells_for_how_long_its_queue_stood_still_before() -> None:
    changes = of_one_group(
        (0, assigned(0, "a", 0, origin="reported", pause_ms=7)),
        (0, assigned(1, "a", 0, origin="reported", pause_estimated_ms=1_000)),
        (0, assigned(2, "a", 0, origin="reported", pause_estimated_ms=1_000)),
        (9, resumed(1, "a", 1_300)),
        (9, resumed(2, "b", 5)),  # of nobody's span
    )
    told = [(row["pause_ms"], row["pause_estimated_ms"]) for row in apply_changes("assignments", changes)]
    assert told == [(7, None), (1_300, None), (None, 1_000)]
    # And so it does when it is told later.
    standing = apply_changes("assignments", changes[:3])
    assert apply_changes("assignments", changes[3:], standing) == apply_changes("assignments", changes)


def test_spans_of_a_static_member_end_under_its_old_id_and_begin_under_its_new_one() -> None:
    replaced = journal.MemberReplaced(former_member_id="a1", member_id="a2", instance_id="i", replaced_at=T0 + 5)
    changes = of_one_group(
        (0, assigned(0, "a1", 0, instance_id="i", generation=7, pause_ms=3)),
        (2, assigned(1, "a1", 2, origin="reported", inferred=True)),
        (5, assigned(2, "a1", 5)),
        (5, replaced),
        (9, released(0, "a2", 9)),
    )
    whole = apply_changes("assignments", changes)

    assert spans(changes) == [(0, "a1", 0, 5), (0, "a2", 5, 9), (1, "a1", 2, 5), (1, "a2", 5, None), (2, "a2", 5, None)]
    kept = [(row["generation"], row["rebalance_id"], row["instance_id"]) for row in whole if row["queue_id"] == 0]
    assert kept == [(7, "r7", "i")] * 2
    assert sorted(row["pause_ms"] or 0 for row in whole if row["queue_id"] == 0) == [0, 3]
    for cut in range(len(changes) + 1):
        assert apply_changes("assignments", changes[cut:], apply_changes("assignments", changes[:cut])) == whole


def test_guessed_spans_that_are_withdrawn_are_gone_and_those_before_them_go_on() -> None:
    changes = of_one_group(
        (0, assigned(0, "a", 0)),
        (0, assigned(1, "a", 0)),
        (0, assigned(2, "a", 0)),
        (0, assigned(1, "a", 0, origin="reported")),
        (4, released(2, "a", 4)),
        (5, released(1, "a", 5)),
        (5, assigned(1, "b", 5)),
        (5, released(1, "a", 5, origin="reported")),
        (7, journal.MemberReplaced(former_member_id="a", member_id="a2", instance_id="i", replaced_at=T0 + 7)),
        (7, journal.MemberReplaced(former_member_id="b", member_id="b2", instance_id="j", replaced_at=T0 + 7)),
        (9, journal.SpansWithdrawn(since=T0 + 5)),
        (5, released(0, "a", 5)),
        (5, assigned(0, "b", 5)),
    )
    whole = spans(changes)
    assert whole == [(0, "a", 0, 5), (0, "b", 5, None), (1, "a", 0, None), (1, "a", 0, 5), (2, "a", 0, 4)]
    for cut in range(len(changes) + 1):
        assert spans(changes[cut:], apply_changes("assignments", changes[:cut])) == whole


def test_a_span_that_began_anew_and_is_withdrawn_goes_on_as_before_and_ends_once() -> None:
    changes = of_one_group(
        (0, assigned(0, "a", 0)),
        (5, released(0, "a", 5)),
        (5, assigned(0, "a", 5)),
        (5, journal.SpansWithdrawn(since=T0 + 5)),
        (9, released(0, "a", 9)),
    )
    assert spans(changes) == [(0, "a", 0, 9)]


def test_a_packed_change_tells_for_how_long_its_queues_had_no_owner() -> None:
    runs = [journal.AssignedRun(0, 2, 0, 0, 7), journal.AssignedRun(3, 3, 0, 0, None, 1_000)]
    body = journal.QueuesReassigned(
        origin="reported",
        at=T0,
        generation=1,
        rebalance_id="r1",
        members=[("a", "i")],
        topics=[journal.ReassignedTopic("orders", None, [], runs)],
    )
    changes = of_one_group((0, body), (9, resumed(3, "a", 5)))
    told = [(row["pause_ms"], row["pause_estimated_ms"]) for row in apply_changes("assignments", changes)]
    assert told == [(7, None)] * 3 + [(5, None)]
    [minute] = apply_changes("group_minutes", changes)
    assert minute["queue_pause_ms"] == 3 * 7 + 5


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), place=st.floats(0, 1))
def test_packed_spans_in_pieces_give_the_rows_of_single_ones(seed: int, place: float) -> None:
    dice = Dice(seed)
    limit = span_runs.NAMED_AT_MOST
    span_runs.NAMED_AT_MOST = 0  # type: ignore[misc]
    try:
        cluster = Cluster(group_logic)
        cluster.batch(*dice.stream(40), flush=True)
    finally:
        span_runs.NAMED_AT_MOST = limit  # type: ignore[misc]
    changes = [row for row in cluster.rows if isinstance(row, journal.Change) and row.group_id is not None]
    single = SingleSpans().of(changes)
    end = round(place * len(changes))
    for name in ("assignments", "group_minutes"):
        groups = apply_changes("groups", changes[:end])
        pieces = apply_changes(name, changes[end:], apply_changes(name, changes[:end]), groups)
        assert pieces == apply_changes(name, single)


def test_a_session_that_a_journal_of_an_older_version_renames_goes_on_and_its_spans_are_split() -> None:
    renamed = journal.MemberChanged(member_id="a2", joined_at=T0, former_member_id="a1", instance_id="i")
    changes = of_one_group(
        (0, joined("a1", 0, instance_id="i")), (0, assigned(0, "a1", 0)), (5, renamed), (9, released(0, "a2", 9))
    )
    assert spans(changes) == [(0, "a1", 0, 5), (0, "a2", 5, 9)]
    (session,) = apply_changes("members", changes)
    assert (session["member_id"], session["former_member_id"], session["joined_at"]) == ("a2", "a1", T0)


def test_a_session_that_ended_by_mistake_goes_on() -> None:
    changes = of_one_group(
        (0, joined("a", 0, host="h")),
        (45, gone("a", 0, 45, "expired")),
        (60, journal.MemberReopened(member_id="a", joined_at=T0)),
    )
    (closed,) = apply_changes("members", changes[:2])
    assert (closed["left_at"], closed["left_reason"], closed["last_heartbeat_at"]) == (T0 + 45, "expired", T0 + 45)
    (session,) = apply_changes("members", changes[2:], [closed])
    assert (session["left_at"], session["left_reason"], session["last_heartbeat_at"]) == (None, None, None)
    assert session["host"] == "h"


def test_the_end_of_a_session_is_corrected_in_its_row() -> None:
    changes = of_one_group((0, joined("a", 0)), (45, gone("a", 0, 45, "expired")), (90, gone("a", 0, 70, "expired")))
    (session,) = apply_changes("members", changes)
    assert session["left_at"] == T0 + 70


def test_a_session_described_anew_keeps_its_begin() -> None:
    changed = journal.MemberChanged(member_id="a", joined_at=T0, rack="r2", subscriptions=["orders"])
    (session,) = apply_changes("members", of_one_group((0, joined("a", 0, rack="r1")), (5, changed)))
    assert (session["rack"], session["subscriptions"], session["joined_at"]) == ("r2", ["orders"], T0)


def test_a_removed_group_has_no_row_and_one_that_comes_back_has_one() -> None:
    changes = of_one_group((0, stable(1)), (5, journal.GroupRemoved()), (9, stable(2, generation=2)))
    assert apply_changes("groups", changes[:2]) == []
    assert [row["members"] for row in apply_changes("groups", changes)] == [2]


def test_a_topic_has_one_span_for_each_set_of_queues_and_none_while_deleted() -> None:
    history = Journal()

    def count(at: int, queues: int) -> journal.Change:
        body = journal.TopicChanged(
            topic="orders",
            queue_count=queues,
            queues=[{"broker": None, "queue_id": queue, "racks": None} for queue in range(queues)],
            valid_from=T0 + at,
        )
        return history.change(at, body, group=None, subject="orders")

    rows = apply_changes("topics", [count(0, 2), count(10, 4), count(20, 0), count(30, 1)])
    assert [(row["queue_count"], row["valid_from"] - T0, row["valid_to"] and row["valid_to"] - T0) for row in rows] == [
        (1, 30, None),
        (2, 0, 10),
        (4, 10, 20),
    ]


def test_a_finding_is_one_row_from_opening_to_closing() -> None:
    opened = journal.FindingOpened(
        finding_id="f1",
        finding="source_silent",
        severity="warning",
        message="m",
        advice="a",
        evidence=["e1"],
        opened_at=T0,
    )
    history = Journal()
    changes = [
        history.change(0, opened, group=None),
        history.change(9, journal.FindingClosed(finding_id="f1", closed_at=T0 + 9), group=None),
    ]
    (open_row,) = apply_changes("findings", changes[:1])
    (row,) = apply_changes("findings", changes[1:], [open_row])
    assert (open_row["kind"], open_row["closed_at"], row["closed_at"]) == ("source_silent", None, T0 + 9)


MINUTE = 60_000


def test_a_minute_sums_its_rebalances_and_tells_the_state_at_its_end() -> None:
    changes = of_one_group(
        (10, rebalanced(1)),
        (10, stable(1)),
        (20, rebalanced(2, moved=3, pause_ms=40)),
        (20, stable(2)),
        (MINUTE, rebalanced(1, moved=1, pause_ms=None)),
        (MINUTE, stable(1)),
    )
    rows = apply_changes("group_minutes", changes)
    told = [
        (row["minute"] - T0, row["members"], row["rebalances"], row["queues_moved"], row["queue_pause_ms"])
        for row in rows
    ]
    assert told == [(0, 2, 2, 3, 40), (MINUTE, 1, 1, 1, None)]


@pytest.mark.parametrize("cut", range(7))
def test_a_minute_sums_the_pauses_of_queues_that_were_taken_over_in_it(cut: int) -> None:
    changes = of_one_group(
        (5, assigned(0, "a", 5, origin="reported", pause_ms=30)),
        (10, rebalanced(2)),
        (10, assigned(1, "a", 10, origin="reported", pause_ms=7)),
        (11, assigned(2, "a", 11, origin="reported", pause_estimated_ms=1_000)),
        (MINUTE, resumed(2, "a", 1_300)),
        (2 * MINUTE, rebalanced(2)),
    )
    rows = apply_changes("group_minutes", changes[cut:], apply_changes("group_minutes", changes[:cut]))
    assert [row["queue_pause_ms"] for row in rows] == [37, 1_300, None]


def test_a_minute_without_a_rebalance_carries_the_state_on() -> None:
    history = Journal()
    before = [history.change(10, rebalanced(3)), history.change(10, stable(3))]
    described = [history.change(5 * MINUTE, journal.MemberChanged(member_id="a", joined_at=T0, rack="r"))]
    rows = apply_changes(
        "group_minutes", described, apply_changes("group_minutes", before), apply_changes("groups", before)
    )
    assert [(row["minute"] - T0, row["members"], row["rebalances"]) for row in rows] == [(0, 3, 1), (5 * MINUTE, 3, 0)]


def test_what_ends_as_it_was_is_not_written() -> None:
    changes = of_one_group((0, stable(1)), (1, stable(2)), (2, stable(1)))
    effect = BY_TABLE["groups"]
    rows = Rows(apply_changes("groups", changes[:1]))
    effect.apply_changes([Entry(c.cluster, c.group_id, c.event_time, c.body) for c in changes[1:]], rows, {})
    assert rows.outcome(effect.table.names) == ([], [])


def a_history(random_source: random.Random, length: int) -> list[journal.Change]:
    """Two groups whose members come, go, come back, are renamed, and whose queues go from hand to hand."""
    history, changes, time = Journal(), [], 0
    owner: dict[tuple[str, int], str] = {}
    open_sessions: dict[tuple[str, str], int] = {}
    closed: dict[tuple[str, str], int] = {}
    for _ in range(length):
        time += random_source.choice([0, 0, 1, 30_000])
        group, member, queue = (
            random_source.choice(["g1", "g2"]),
            random_source.choice("abc"),
            random_source.randrange(3),
        )

        def tell(body: journal.Body, group: str = group, time: int = time) -> None:
            changes.append(history.change(time, body, group=group))

        match random_source.randrange(6):
            case 0 if (group, member) not in open_sessions and closed.get((group, member)) != time:
                open_sessions[group, member] = time
                tell(joined(member, time))
            case 1 if (group, member) in open_sessions:
                closed[group, member] = begin = open_sessions.pop((group, member))
                tell(gone(member, begin, time, "expired"))
                if time > begin and random_source.random() < 0.5:
                    tell(journal.MemberReopened(member_id=member, joined_at=T0 + begin))
                    open_sessions[group, member] = begin
            case 2:
                held = owner.pop((group, queue), None)
                if held is not None:
                    tell(released(queue, held, time))
                if held != member:
                    owner[group, queue] = member
                    tell(assigned(queue, member, time, pause_ms=random_source.choice([None, 0, 4])))
                    if random_source.random() < 0.5:
                        tell(resumed(queue, member, 9, origin="computed"))
            case 3:
                tell(
                    rebalanced(random_source.randrange(4), random_source.randrange(3), random_source.choice([None, 5]))
                )
                tell(stable(random_source.randrange(4), generation=time))
            case 4 if (group, member) in open_sessions:
                body = journal.MemberChanged(
                    member_id=member, joined_at=T0 + open_sessions[group, member], rack=str(time)
                )
                tell(body)
            case _ if random_source.random() < 0.2:
                tell(journal.GroupRemoved())
    return changes


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.lists(st.integers(0, 60), max_size=5))
@pytest.mark.parametrize("name", ["assignments", "members", "groups", "group_minutes"])
def test_pieces_one_after_another_do_what_the_whole_does(name: str, seed: int, cuts: list[int]) -> None:
    changes = a_history(random.Random(seed), 60)
    standing: list[Row] = []
    groups: list[Row] = []
    ends = sorted({min(cut, len(changes)) for cut in cuts} | {len(changes)})
    for begin, end in zip([0, *ends], ends, strict=False):
        standing = apply_changes(name, changes[begin:end], standing, groups)
        groups = apply_changes("groups", changes[begin:end], groups)
    assert standing == apply_changes(name, changes)
