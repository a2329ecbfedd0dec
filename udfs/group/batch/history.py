"""Core: what one group writes in one batch: changes of its history, its row, its findings. No I/O."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from udfs.group.batch.event_time import BeforeEventTime, EventTimeView
from udfs.group.batch.findings import STUCK, Found
from udfs.group.batch.recorded_row import with_epochs
from udfs.group.state.group import Group, GroupFinding, observed_by
from udfs.group.state.strategy_verdict import with_verdict
from udfs.model.config import CoreConfig
from udfs.model.group_api import GroupInput, TopicsView
from udfs.model.ids import finding_id
from udfs.model.journal import UNDER_WAY, Body, Change, FindingClosed, FindingOpened, GroupChanged, MemberReplaced
from udfs.model.spans import QueuesReassigned


class GroupHistory(EventTimeView):
    """One group through one batch, as its journal continues."""

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, config: CoreConfig) -> None:
        super().__init__(group, facts, topics, config)
        self._computed_before = group.last_rebalance_at if group.computed_at is None else group.computed_at
        self._spans_at: int | None = None

    def begin_event_time(self) -> None:
        """Record the state before the first event of one event time."""
        self.before = BeforeEventTime(self.group, len(self.output.changes))

    def write(self, at: int, body: Body) -> None:
        """Write one change of the group's history."""
        self.group.number += 1
        if isinstance(body, MemberReplaced) or (isinstance(body, QueuesReassigned) and body.origin == "computed"):
            self.group.computed_at = None if at == self.group.last_rebalance_at else at
        self.output.changes.append(
            Change(
                cluster=self.facts.cluster,
                group_id=self.facts.group_id,
                subject=None,
                number=self.group.number,
                event_time=at,
                body=body,
            )
        )

    def begin_spans(self, at: int) -> None:
        """Record how many changes were written before the spans of one time; those of earlier batches are not kept."""
        if at != self._spans_at:
            self._spans_at, self._first_change = at, len(self.output.changes)
            self._earlier_spans = None if self._computed_before == at else []

    def note_earlier_spans(self, bodies: list[QueuesReassigned | MemberReplaced]) -> None:
        """Keep what became of computed spans at this time in batches before."""
        self._earlier_spans = bodies

    def take_back_changes(self, counts: Callable[[Body], bool]) -> None:
        """Strike changes of this event time that do not count, and number the others anew."""
        written = self.output.changes[self.before.changes :]
        left = [change for change in written if counts(change.body)]
        number = self.group.number - len(written)
        self.output.changes[self.before.changes :] = [
            msgspec.structs.replace(one, number=number + place) for place, one in enumerate(left, start=1)
        ]
        self.group.number = number + len(left)

    def write_row(self, at: int, row: GroupChanged) -> None:
        """Write the group's current row, if it changed, with the audits' verdict on its strategy."""
        row = msgspec.structs.replace(row, observed_by=observed_by(self.group, row.generation_source))
        if self.group.recorded is not None:
            row = with_epochs(self.group.recorded, row, self.group.members)
        row = with_verdict(row, self.group)
        if row != self.group.row:
            self.group.row = row
            self.write(at, row)
        self.note_under_way(at)

    def note_under_way(self, at: int) -> None:
        """Note since when the group rebalances, and close the finding that it does so for too long."""
        group = self.group
        if self.shown_state not in UNDER_WAY:
            group.under_way_since = None
            self.set_finding(STUCK, None, at)
        elif group.under_way_since is None:
            group.under_way_since = at

    def set_finding(self, key: str, found: Found | None, at: int, kind: str | None = None) -> None:
        """Open or close the finding under one key; its kind is the key unless ``kind`` is given."""
        group = self.group
        current = group.findings.get(key)
        if found is None:
            if current is not None:
                del group.findings[key]
                self.write(at, FindingClosed(finding_id=current.finding_id, closed_at=at))
            return
        if current is not None:
            if found.closes_at is not None:
                current.closes_at = found.closes_at
            return
        name = finding_id(self.facts.cluster, self.facts.group_id, key, at)
        group.findings[key] = GroupFinding(name, at, found.closes_at)
        self.write(
            at,
            FindingOpened(
                finding_id=name,
                finding=kind or key,
                severity=found.severity,
                message=found.message,
                advice=found.advice,
                evidence=list(found.evidence),
                opened_at=at,
            ),
        )
