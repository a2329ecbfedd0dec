"""Core: the findings ``queue_stalled``, ``member_stalled`` and ``group_stalled`` in words. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from udfs.group.batch.finding_texts import counted, members_text, named, phrase, queues_text
from udfs.group.batch.findings import Found, Severity
from udfs.model.finding_names import FindingNames
from udfs.model.timestamps import write_timestamp

QUEUE_STALLED: Final = "queue_stalled"
MEMBER_STALLED: Final = "member_stalled"
GROUP_STALLED: Final = "group_stalled"

POLL_TIMEOUT: Final = "poll timeout (inferred)"

_SEVERITIES: Mapping[str, Severity] = {QUEUE_STALLED: "warning", MEMBER_STALLED: "warning", GROUP_STALLED: "critical"}
_ADVICE = (
    "Take a thread dump of the consumer before it is restarted: look for a handler that blocks, a message that fails"
    " for ever, paused queues, a call without a timeout. If it may take so long, raise findings.stalled_after_ms."
)


class Stalled(msgspec.Struct, kw_only=True):
    """What the message says, times in epoch ms.

    Attributes:
        queues, members: How many stand. owned: How many queues those members own.
        advanced: When the first of them was last committed; None if that was not observed. since: Since when messages
            wait. held_since: Since when their owners hold all of them.
        waiting: How many messages, or bytes, waited at ``counted_at``; None if the source does not show it.
    """

    kind: str
    names: FindingNames
    queues: int
    members: int
    owned: int
    advanced: int | None
    since: int
    held_since: int
    last_rebalance_at: int | None
    waiting: int | None
    counted_at: int
    unit: str


def stalled_text(stalled: Stalled, shown: Mapping[str, str]) -> str:
    """Return the message; ``shown``: the members' names in sentences, by id."""
    owners = members_text(stalled.names.members, stalled.members, shown)
    queues = queues_text(stalled.names.queues, stalled.queues)
    is_one = stalled.queues == 1
    moved = f"{'has' if is_one else 'have'} not moved since {_since(stalled)}"
    if stalled.kind == GROUP_STALLED:
        text = f"Nobody in the group reads: {queues} {moved}"
    elif stalled.kind == MEMBER_STALLED:
        reads = "reads" if stalled.members == 1 else "read"
        whose = "its" if stalled.members == 1 else "their"
        text = f"{owners} {reads} none of {whose} {counted(stalled.owned, 'queue')}: {queues} {moved}"
    else:
        text = f"{queues} {moved}"
    text += _waiting(stalled)
    if stalled.kind == MEMBER_STALLED:
        owners = "It" if stalled.members == 1 else "They"
    alive, holds = ("is", "holds") if stalled.members == 1 else ("are", "hold")
    text += (
        f" {owners} {alive} alive and {holds} {'it' if is_one else 'them'} since {write_timestamp(stalled.held_since)}"
    )
    last = stalled.last_rebalance_at
    return text + (f"; no rebalance since {write_timestamp(last)}." if last is not None else ".")


def _since(stalled: Stalled) -> str:
    at = stalled.advanced
    return f"before {write_timestamp(stalled.since)}" if at is None else write_timestamp(at)


def _waiting(stalled: Stalled) -> str:
    since = write_timestamp(stalled.since)
    if stalled.waiting is None:
        return f", and more came since {since}."
    waits = phrase(stalled.waiting, f"{{:,}} {stalled.unit} waits", f"{{:,}} {stalled.unit}s wait")
    return f". At {write_timestamp(stalled.counted_at)} {waits}, the first since {since}."


def stalled_found(kind: str, message: str, names: FindingNames) -> Found:
    """Return the finding."""
    fields = {name: getattr(names, name) for name in FindingNames.__struct_fields__}
    return Found(severity=_SEVERITIES[kind], message=message, advice=_ADVICE, **fields)


def ended(message: str, at: int, how: str) -> str:
    """Return the last message: how and when it ended."""
    return f"{message} It ended at {write_timestamp(at)}: {how}."


def names_late_poll(detail: str | None) -> bool:
    """Return whether a cause's detail says that the member left because its application polled too late.

    ``poll timeout`` is the coordinator's word, in its log; ``polled too late`` that of ``inferred_departures``.
    """
    return detail is not None and ("poll timeout" in detail or "polled too late" in detail)


def departure_text(names: Sequence[str], reasons: Sequence[tuple[str, str | None]]) -> str:
    """Return how the members departed.

    Args:
        names: Their names in sentences. reasons: Kind and detail of each one's cause in the rebalance.
    """
    details = [detail or "" for _, detail in reasons]
    kinds = {kind for kind, _ in reasons}
    if reasons and all(map(names_late_poll, details)):
        inferred = " (inferred)" if POLL_TIMEOUT in details else ""
        how = f"left by poll timeout, max.poll.interval.ms{inferred}"
    elif kinds == {"session_expired"}:
        how = "expired"
    elif kinds == {"member_left"}:
        how = "left"
    else:
        how = "departed"
    return f"{named(names)} {how}"
