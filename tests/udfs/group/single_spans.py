"""Journals span by span: what ``QueuesReassigned`` packs as one change for each span, as tests compare them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from udfs.group.assignment.span_runs import Holders, unpack_reassignment
from udfs.group.state.group import Queue
from udfs.model.journal import Change, MemberReplaced
from udfs.model.spans import Origin, QueueAssigned, QueueReleased, QueuesReassigned, SpansWithdrawn

Group: TypeAlias = tuple[str, str | None]


class Span(msgspec.Struct):
    """The owner of a queue for a time."""

    queue: Queue
    member_id: str
    instance_id: str | None
    begin: int
    end: int | None = None


class SingleSpans:
    """Reads changes of any groups in their order, and remembers who holds what."""

    def __init__(self) -> None:
        self._spans: dict[tuple[Group, Origin], list[Span]] = {}
        self._open: dict[tuple[Group, Origin], dict[Queue, dict[str, Span]]] = {}

    def of(self, changes: Iterable[Change]) -> list[Change]:
        """Return the changes, those of several spans as one change for each of these."""
        found: list[Change] = []
        for change in changes:
            group, body = (change.cluster, change.group_id), change.body
            if isinstance(body, MemberReplaced):
                self._split(group, body, change.event_time)
            elif isinstance(body, SpansWithdrawn):
                self._withdraw(group, body.since)
            if not isinstance(body, QueuesReassigned):
                found.append(change)
                continue
            for span in unpack_reassignment(body, self._holders(group, body.origin)):
                self._take(group, span)
                found.append(msgspec.structs.replace(change, body=span))
        return found

    def _holders(self, group: Group, origin: Origin) -> Holders:
        held = self._open.get((group, origin), {})
        return lambda queue: [(member_id, span.instance_id) for member_id, span in sorted(held.get(queue, {}).items())]

    def _split(self, group: Group, body: MemberReplaced, at: int) -> None:
        for (span_group, origin), queues in self._open.items():
            for queue, members in queues.items():
                span = members.pop(body.former_member_id, None) if span_group == group else None
                if span is not None:
                    span.end = at
                    self._begin(group, origin, Span(queue, body.member_id, body.instance_id, at))

    def _withdraw(self, group: Group, since: int) -> None:
        spans, held = self._spans.get((group, "computed"), []), self._open.get((group, "computed"), {})
        for span in [span for span in spans if span.begin >= since]:
            spans.remove(span)
            if span.end is None:
                del held[span.queue][span.member_id]
        for span in spans:
            if span.end is not None and span.end >= since:
                span.end = None
                held[span.queue][span.member_id] = span

    def _begin(self, group: Group, origin: Origin, span: Span) -> None:
        held = self._open.setdefault((group, origin), {}).setdefault(span.queue, {})
        assert span.member_id not in held, f"opened twice: {span}"
        held[span.member_id] = span
        self._spans.setdefault((group, origin), []).append(span)

    def _take(self, group: Group, span: QueueAssigned | QueueReleased) -> None:
        queue = (span.topic, span.broker, span.queue_id)
        if isinstance(span, QueueAssigned):
            self._begin(group, span.origin, Span(queue, span.member_id, span.instance_id, span.valid_from))
            return
        held = self._open.get((group, span.origin), {}).get(queue, {})
        assert span.member_id in held, f"ended, and not open: {span}"
        held.pop(span.member_id).end = span.valid_to
