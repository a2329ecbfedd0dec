"""The columns for the subject of a finding."""

from __future__ import annotations

import msgspec

from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.finding_columns import FINDING_NAMES
from streaming.tables.projections import PROJECTIONS
from streaming.tables.row_edits import RowEdits
from streaming.tables.schema import FINDINGS, Row
from udfs.model.finding_names import NAMES, NamedClient, NamedMember, NamedQueue, NamedSubscription
from udfs.model.journal import Change, FindingChanged, FindingClosed, FindingOpened

TEXTS = {"finding": "unassigned_queues", "severity": "warning", "advice": "a", "evidence": ["e"], "opened_at": 1_000}
OPENED = FindingOpened(finding_id="f", message="1 queue", **TEXTS)  # type: ignore[arg-type]
CHANGED = FindingChanged(
    finding_id="f",
    message="2 queues",
    changed_at=2_000,
    queues=(NamedQueue("t", None, 3, "a", "not_subscribed", ("b",)),),
    queues_left_out=1,
    members=(NamedMember("a", "c@h", "range"),),
    clients=(NamedClient("c@h", 14),),
    subscriptions=(NamedSubscription(("t",), ("a",), 2),),
    caused_by="other",
    **TEXTS,  # type: ignore[arg-type]
)


def rows_after(*bodies: object, current: list[Row] | None = None) -> list[Row]:
    """Return the rows of ``findings`` after a piece of the journal, as it is written and read."""
    changes = [
        Change(cluster="c", group_id="g", subject=None, number=number, event_time=1, body=body)  # type: ignore[arg-type]
        for number, body in enumerate(bodies)
    ]
    read = [msgspec.json.decode(msgspec.json.encode(change), type=Change) for change in changes]
    projection = next(candidate for candidate in PROJECTIONS if candidate.table is FINDINGS)
    edits = RowEdits(current or [])
    projection.apply_changes([("c", "g", 1, change.body) for change in read], edits, {})  # type: ignore[misc]
    return [edit.now for edit in edits.edits if edit.now is not None]


def test_the_names_are_columns() -> None:
    assert [column.name for column in FINDING_NAMES] == [*NAMES, "changed_at"]


def test_an_open_finding_is_as_its_last_change_and_stays_so_when_it_closes() -> None:
    [opened] = rows_after(OPENED)
    assert (opened["message"], opened["queues"], opened["queues_left_out"], opened["changed_at"]) == (
        "1 queue",
        *[None] * 3,
    )
    [changed] = rows_after(CHANGED, current=from_arrow(FINDINGS, to_arrow(FINDINGS, [opened])))
    assert (changed["message"], changed["opened_at"], changed["changed_at"]) == ("2 queues", 1_000, 2_000)
    [stored] = from_arrow(FINDINGS, to_arrow(FINDINGS, [changed]))
    assert stored["queues"] == [
        {"topic": "t", "broker": None, "queue_id": 3, "member_id": "a", "reason": "not_subscribed", "owners": ["b"]}
    ]
    assert stored["subscriptions"] == [{"topics": ["t"], "members": ["a"], "members_left_out": 2}]
    assert stored["clients"] == [{"client": "c@h", "rebalances": 14}]
    [closed] = rows_after(FindingClosed(finding_id="f", closed_at=9_000), current=[stored])
    assert {**closed, "closed_at": None} == stored
    assert rows_after(OPENED, CHANGED, FindingClosed(finding_id="f", closed_at=9_000)) == [closed]
