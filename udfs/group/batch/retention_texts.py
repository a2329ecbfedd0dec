"""Core: the findings ``messages_lost`` and ``retention_risk`` in words. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from udfs.group.batch.finding_texts import NAMED_AT_MOST, phrase, queues_text
from udfs.group.batch.findings import Found, Severity
from udfs.model.finding_names import FindingNames, NamedQueue
from udfs.model.timestamps import write_timestamp

MESSAGES_LOST: Final = "messages_lost"
RETENTION_RISK: Final = "retention_risk"

_SEVERITIES: Mapping[str, Severity] = {MESSAGES_LOST: "critical", RETENTION_RISK: "warning"}
_ADVICE: Mapping[str, str] = {
    MESSAGES_LOST: (
        "They cannot be read any more. Raise the retention of the topic if no more are to follow, find out why the"
        " group is behind, and check where it goes on: auto.offset.reset may skip what is still kept."
    ),
    RETENTION_RISK: (
        "Raise the retention of the topic (retention.ms, retention.bytes) before the time is over, then find out why"
        " the group is behind: a consumer that stands, too few of them, slow processing."
    ),
}


class LostMessages(NamedTuple):
    """How many messages of a queue were deleted unread, from the next unread offset to the start of its log."""

    queue: NamedQueue
    number: int
    read: int
    start: int
    since: int


class MessagesAtRisk(NamedTuple):
    """How many messages of a queue wait, the next unread offset, the start of its log, the time until it is there."""

    queue: NamedQueue
    waiting: int
    read: int
    start: int
    left_ms: int


def lost_text(names: FindingNames, lost: Sequence[LostMessages], first: int, unit: str, owners: str) -> str:
    """Return the message about lost messages; ``first``: by when one was deleted; ``owners``: a sentence."""
    total = phrase(sum(each.number for each in lost), f"{{:,}} {unit} was deleted", f"{{:,}} {unit}s were deleted")
    details = [
        f"{queues_text([each.queue])}: {each.number:,}, from offset {each.read} on; its log begins at {each.start}"
        for each in sorted(lost, key=lambda each: -each.number)[:NAMED_AT_MOST]
    ]
    return (
        f"{total} by retention before the group had committed them, in {queues_text(names.queues, len(lost))}, the"
        f" first by {write_timestamp(first)}. {_listed(details, len(lost))}.{owners}"
    )


def risk_text(names: FindingNames, risky: Sequence[MessagesAtRisk], at: int, unit: str, owners: str) -> str:
    """Return the message about messages at risk; ``owners``: a sentence."""
    first = min(risky, key=lambda each: each.left_ms)
    details = [
        f"{queues_text([each.queue])}: offset {each.read} {_left_text(each.left_ms)}; its log begins at {each.start}"
        for each in sorted(risky, key=lambda each: each.left_ms)[:NAMED_AT_MOST]
    ]
    waiting = phrase(sum(each.waiting for each in risky), f"{{:,}} {unit} waits", f"{{:,}} {unit}s wait")
    return (
        f"Retention will delete unread {unit}s of {queues_text(names.queues, len(risky))}"
        f" {_left_text(first.left_ms)}, as fast as the log's start moved at {write_timestamp(at)}; {waiting}."
        f" {_listed(details, len(risky))}.{owners}"
    )


def _left_text(left_ms: int) -> str:
    return f"in about {span_text(left_ms)}" if left_ms >= 1_000 else "with its next deletion"


def span_text(span_ms: int) -> str:
    """Return a span in the unit in which it is read best.

    Example:
        >>> span_text(59_000), span_text(5_400_000), span_text(200_000_000)
        ('59 s', '90 min', '56 h')
    """
    seconds = span_ms / 1_000
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.0f} h"


def _listed(details: Sequence[str], total: int) -> str:
    more = total - len(details)
    return "; ".join([*details, *([f"and {more} more"] if more else [])])


def retention_found(kind: str, message: str, names: FindingNames) -> Found:
    """Return the finding."""
    fields = {name: getattr(names, name) for name in FindingNames.__struct_fields__}
    return Found(severity=_SEVERITIES[kind], message=message, advice=_ADVICE[kind], **fields)
