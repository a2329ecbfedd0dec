"""Rows while a piece of the journal is applied to them, and the open spans among them."""

from __future__ import annotations

import pytest

from streaming.tables.journal_entries import Entry
from streaming.tables.row_edits import OpenSpans, RowEdits, ended
from streaming.tables.schema import Row
from tests.streaming.tables.journals import T0, assigned, of_one_group, released, resumed, stable
from tests.streaming.tables.projected_rows import BY_TABLE, apply_changes
from udfs.group.assignment.span_runs import unpack_reassignment
from udfs.model import journal
from udfs.model.spans import QueueAssigned, QueueReleased, QueuesReassigned

NAMES = ("member_id", "valid_from", "valid_to", "pause_ms", "pause_estimated_ms", "origin")


def open_row(member: str, queue: int, begin: int, **more: object) -> Row:
    span = {"topic": "orders", "broker": None, "queue_id": queue, "member_id": member, "origin": "computed"}
    return {**span, "cluster": "c1", "group_id": "g1", "valid_from": T0 + begin, "valid_to": None, **more}


def open_spans(rows: RowEdits) -> OpenSpans:
    """Return the spans that are open among these rows."""
    spans = OpenSpans()
    for edit in rows.edits:
        if edit.now is not None and edit.now["valid_to"] is None:
            spans.add(edit)
    return spans


def lines(rows: RowEdits) -> list[str]:
    """Return the rows as they are now: member, begin, end."""
    times = [(row["member_id"], row["valid_from"], row["valid_to"]) for row in (s.now for s in rows.edits) if row]
    return [f"{member} {begin - T0}..{'' if end is None else end - T0}" for member, begin, end in times]


# -- rows ------------------------------------------------------------------------------------------------------------


def test_a_row_that_ends_unchanged_is_not_written() -> None:
    changes = of_one_group((0, stable(1)), (1, stable(2)), (2, stable(1)))
    projection = BY_TABLE["groups"]
    rows = RowEdits(apply_changes("groups", changes[:1]))
    projection.apply_changes([Entry(c.cluster, c.group_id, c.event_time, c.body) for c in changes[1:]], rows, {})
    assert rows.outcome(projection.table.names) == ([], [])


def test_a_changed_row_is_replaced_a_new_one_added_and_a_removed_one_not_added_again() -> None:
    rows = RowEdits([{"a": 1}, {"a": 2}, {"a": 3}])
    rows.edits[1].now = {"a": 9}
    rows.edits[2].now = None
    rows.add({"a": 4})
    rows.add({"a": 5}).now = None
    assert rows.outcome(["a"]) == ([1, 2], [{"a": 9}, {"a": 4}])


def test_only_the_columns_of_the_table_make_a_row_another_and_null_is_as_good_as_nothing() -> None:
    rows = RowEdits([{"a": 1}])
    rows.edits[0].now = {"a": 1, "b": None, "note": "of no column"}
    assert rows.outcome(["a", "b"]) == ([], [])
    assert rows.outcome(["a", "note"]) == ([0], [rows.edits[0].now])


def test_rows_that_were_read_are_never_changed_themselves() -> None:
    read = {"a": 1}
    rows = RowEdits([read])
    rows.edits[0].now |= {"a": 2}  # type: ignore[operator]
    assert read == {"a": 1}
    assert rows.outcome(["a"]) == ([0], [{"a": 2}])


@pytest.mark.parametrize(("at", "is_there"), [(4, False), (5, False), (6, True)])
def test_spans_without_length_leave_no_row(at: int, is_there: bool) -> None:
    row = {"begin": 5, "end": None}
    assert ended(row, "begin", "end", at) == ({"begin": 5, "end": at} if is_there else None)
    assert row["end"] is None


# -- open spans ------------------------------------------------------------------------------------------------------


def span_of(change: QueuesReassigned) -> QueueAssigned | QueueReleased:
    [span] = unpack_reassignment(change, lambda _: [])
    return span


def test_a_span_that_is_open_is_not_opened_again() -> None:
    rows = RowEdits([open_row("a", 0, 0)])
    spans = open_spans(rows)
    spans.apply(span_of(assigned(0, "a", 7)), rows, "c1", "g1")
    assert lines(rows) == ["a 0.."]
    spans.apply(span_of(assigned(0, "b", 7)), rows, "c1", "g1")
    assert lines(rows) == ["a 0..", "b 7.."]


def test_the_end_of_a_span_that_is_not_there_changes_nothing() -> None:
    rows = RowEdits([open_row("a", 0, 0)])
    spans = open_spans(rows)
    spans.apply(span_of(released(0, "b", 5)), rows, "c1", "g1")
    spans.apply(span_of(released(1, "a", 5)), rows, "c1", "g1")
    spans.apply(span_of(released(0, "a", 5, origin="reported")), rows, "c1", "g1")
    assert rows.outcome(NAMES) == ([], [])
    spans.apply(span_of(released(0, "a", 5)), rows, "c1", "g1")
    spans.apply(span_of(released(0, "a", 9)), rows, "c1", "g1")
    assert lines(rows) == ["a 0..5"]


def test_an_observed_pause_takes_the_place_of_an_estimated_one() -> None:
    rows = RowEdits([open_row("a", 0, 0, pause_estimated_ms=1_000), open_row("b", 0, 0, pause_estimated_ms=2_000)])
    open_spans(rows).resume(resumed(0, "a", 30, origin="computed"))
    assert [(row["pause_estimated_ms"], row.get("pause_ms")) for row in (edit.now or {} for edit in rows.edits)] == [
        (None, 30),
        (2_000, None),
    ]


def test_a_span_that_is_split_has_its_pause_in_its_first_part_alone() -> None:
    rows = RowEdits([open_row("a", 0, 0, pause_ms=30), open_row("b", 0, 0, pause_ms=40)])
    replaced = journal.MemberReplaced(former_member_id="a", member_id="a2", instance_id="i", replaced_at=T0 + 9)
    spans = open_spans(rows)
    spans.split(replaced, rows, T0 + 5)
    assert lines(rows) == ["a 0..5", "b 0..", "a2 5.."]
    assert [(edit.now or {})["pause_ms"] for edit in rows.edits] == [30, 40, None]
    assert spans.holders("computed")(("orders", None, 0)) == [("a2", "i"), ("b", None)]


def test_withdrawn_spans_are_those_that_were_computed_since() -> None:
    rows = RowEdits(
        [
            open_row("before", 0, 4, valid_to=T0 + 5),
            open_row("ended earlier", 1, 0, valid_to=T0 + 4),
            open_row("then", 0, 5),
            open_row("reported", 0, 6, origin="reported"),
        ]
    )
    spans = open_spans(rows)
    spans.withdraw(list(rows.edits), T0 + 5)
    assert lines(rows) == ["before 4..", "ended earlier 0..4", "reported 6.."]
    assert spans.holders("computed")(("orders", None, 0)) == [("before", None)]
    # A second time nothing is left to withdraw.
    spans.withdraw(list(rows.edits), T0 + 5)
    assert lines(rows) == ["before 4..", "ended earlier 0..4", "reported 6.."]


def test_the_holders_of_a_queue_are_those_of_one_origin_in_the_order_of_their_ids() -> None:
    rows = RowEdits(
        [
            open_row("b", 0, 0, instance_id="i"),
            open_row("a", 0, 0),
            open_row("c", 1, 0),
            open_row("d", 0, 0, origin="reported"),
            open_row("e", 0, 0, broker="k"),
        ]
    )
    spans = open_spans(rows)
    assert spans.holders("computed")(("orders", None, 0)) == [("a", None), ("b", "i")]
    assert spans.holders("reported")(("orders", None, 0)) == [("d", None)]
    assert spans.holders("computed")(("orders", "k", 0)) == [("e", None)]
    assert spans.holders("computed")(("orders", None, 9)) == []
