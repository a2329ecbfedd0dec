"""A piece of the journal changes spans; the expected rows are written by hand."""

from __future__ import annotations

from streaming.tables.journal_entries import Entry, RowFilter
from streaming.tables.span_projection import SPAN_KINDS, span_filter
from tests.streaming.tables.journals import PAUSED, T0, Journal, assigned, of_one_group, reassigned, released, resumed
from tests.streaming.tables.projected_rows import apply_changes, spans
from udfs.model import journal
from udfs.model.spans import AssignedRun, ReleasedRun, SpansWithdrawn


def test_a_queue_that_moves_has_two_spans_that_touch() -> None:
    changes = of_one_group((0, assigned(0, "a", 0)), (10, released(0, "a", 10)), (10, assigned(0, "b", 10)))
    assert spans(changes) == [(0, "a", 0, 10), (0, "b", 10, None)]


def test_a_span_of_no_length_leaves_no_row() -> None:
    changes = of_one_group((5, assigned(0, "a", 5)), (5, released(0, "a", 5)))
    assert spans(changes) == []


def test_a_span_of_no_length_is_removed_also_when_it_was_written_before() -> None:
    changes = of_one_group((5, assigned(0, "a", 5)), (5, released(0, "a", 5)))
    current = apply_changes("assignments", changes[:1])
    assert len(current) == 1
    assert spans(changes[1:], current) == []


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


def test_a_span_has_the_pause_of_its_queue_before() -> None:
    changes = of_one_group(
        (0, assigned(0, "a", 0, origin="reported", pause_ms=7)),
        (0, assigned(1, "a", 0, origin="reported", pause_estimated_ms=1_000)),
        (0, assigned(2, "a", 0, origin="reported", pause_estimated_ms=1_000)),
        (9, resumed(1, "a", 1_300)),
        (9, resumed(2, "b", 5)),  # no open span of this queue is b's
    )
    reported = [(row["pause_ms"], row["pause_estimated_ms"]) for row in apply_changes("assignments", changes)]
    assert reported == [(7, None), (1_300, None), (None, 1_000)]
    # The same holds if it is reported later.
    current = apply_changes("assignments", changes[:3])
    assert apply_changes("assignments", changes[3:], current) == apply_changes("assignments", changes)


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


def test_computed_spans_that_are_withdrawn_are_removed_and_those_before_them_continue() -> None:
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
        (9, SpansWithdrawn(since=T0 + 5)),
        (5, released(0, "a", 5)),
        (5, assigned(0, "b", 5)),
    )
    whole = spans(changes)
    assert whole == [(0, "a", 0, 5), (0, "b", 5, None), (1, "a", 0, None), (1, "a", 0, 5), (2, "a", 0, 4)]
    for cut in range(len(changes) + 1):
        assert spans(changes[cut:], apply_changes("assignments", changes[:cut])) == whole


def test_a_span_that_began_anew_and_is_withdrawn_continues_as_before_and_ends_once() -> None:
    changes = of_one_group(
        (0, assigned(0, "a", 0)),
        (5, released(0, "a", 5)),
        (5, assigned(0, "a", 5)),
        (5, SpansWithdrawn(since=T0 + 5)),
        (9, released(0, "a", 9)),
    )
    assert spans(changes) == [(0, "a", 0, 9)]


def test_spans_of_a_packed_change_have_the_pauses_of_their_queues() -> None:
    changes = of_one_group((0, reassigned(runs=PAUSED)), (9, resumed(3, "a", 5)))
    pauses = [(row["pause_ms"], row["pause_estimated_ms"]) for row in apply_changes("assignments", changes)]
    assert pauses == [(7, None)] * 3 + [(5, None)]


def test_a_released_run_without_a_member_ends_all_spans_that_are_not_reassigned() -> None:
    ends = [ReleasedRun(0, 1)]
    runs = [AssignedRun(0, 1, 0)]
    changes = of_one_group(
        (0, assigned(0, "a", 0, origin="reported")),
        (0, assigned(0, "b", 0, origin="reported")),
        (0, assigned(1, "b", 0, origin="reported")),
        (0, assigned(1, "b", 0)),
        (5, reassigned(5, ends, runs, [("a", None)])),
    )
    computed = (1, "b", 0, None)
    assert spans(changes) == [(0, "a", 0, None), (0, "b", 0, 5), (1, "a", 5, None), computed, (1, "b", 0, 5)]


def test_a_run_that_moves_by_a_distance_follows_the_spans_of_its_own_group() -> None:
    history = Journal()
    moved = reassigned(5, [ReleasedRun(1, 1)], [AssignedRun(1, 1, None, 1)], [])
    changes = [
        history.change(0, assigned(0, "a", 0, origin="reported")),
        history.change(0, assigned(1, "b", 0, origin="reported")),
        history.change(0, assigned(0, "x", 0, origin="reported"), group="g2"),
        history.change(5, moved),
    ]
    assert spans(changes) == [(0, "a", 0, None), (1, "a", 5, None), (1, "b", 0, 5), (0, "x", 0, None)]
    for cut in range(len(changes) + 1):
        assert spans(changes[cut:], apply_changes("assignments", changes[:cut])) == spans(changes)


def test_a_queue_without_a_certain_former_owner_gets_no_span() -> None:
    moved = reassigned(5, [ReleasedRun(0, 1)], [AssignedRun(1, 1, None, 1)], [])
    assert spans(of_one_group((5, moved))) == []


def test_one_group_does_not_change_the_spans_of_another() -> None:
    history = Journal()
    replaced = journal.MemberReplaced(former_member_id="a", member_id="a2", instance_id="i", replaced_at=T0 + 5)
    changes = [
        history.change(0, assigned(0, "a", 0)),
        history.change(0, assigned(0, "a", 0), cluster="c2"),
        history.change(5, released(0, "a", 5), group="g2"),
        history.change(5, replaced, group="g2"),
        history.change(5, SpansWithdrawn(since=T0), group="g2"),
    ]
    assert spans(changes) == [(0, "a", 0, None), (0, "a", 0, None)]


def test_spans_may_change_while_open_and_since_the_earliest_withdrawal() -> None:
    entries = [
        Entry("c2", "g1", T0, assigned(0, "a", 0)),
        Entry("c1", "g2", T0, released(0, "a", 0)),
        Entry("c1", "g1", T0, resumed(0, "a", 0)),
    ]
    groups = {"cluster": ["c1", "c2"], "group_id": ["g1", "g2"]}
    assert span_filter(entries) == RowFilter(groups, ends="valid_to", ended_since=None)
    withdrawn = [Entry("c1", "g1", T0 + 9, SpansWithdrawn(since=since)) for since in (T0 + 7, T0 + 3)]
    assert span_filter([*entries, *withdrawn]) == RowFilter(groups, ends="valid_to", ended_since=T0 + 3)


def test_a_piece_that_the_filter_keeps_ended_spans_from_does_what_all_rows_would() -> None:
    changes = of_one_group(
        (0, assigned(0, "a", 0)),
        (3, released(0, "a", 3)),
        (3, assigned(0, "b", 3)),
        (6, released(0, "b", 6)),
        (6, assigned(0, "c", 6)),
    )
    withdrawn = of_one_group((6, SpansWithdrawn(since=T0 + 6)), (8, released(0, "b", 8)))
    rows = apply_changes("assignments", changes)
    since = span_filter([Entry("c1", "g1", T0, change.body) for change in withdrawn]).ended_since or 0
    left_out = [row for row in rows if row["valid_to"] is not None and row["valid_to"] < since]
    assert [(row["member_id"], row["valid_to"]) for row in left_out] == [("a", T0 + 3)]
    read = [row for row in rows if row not in left_out]
    assert spans(withdrawn, read) == [(0, "b", 3, 8)]
    assert spans(withdrawn, rows) == [(0, "a", 0, 3), (0, "b", 3, 8)]


def test_the_table_of_spans_reads_every_change_of_them() -> None:
    assert {
        "queues_reassigned",
        "queue_resumed",
        "spans_withdrawn",
        "member_replaced",
    } == SPAN_KINDS
