"""Core: the output of one group in one batch: changes of its history, its row, its findings. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from udfs.group.batch.episode_texts import episode_changed
from udfs.group.batch.event_time import BeforeEventTime
from udfs.group.batch.findings import STUCK, Found, stuck_found
from udfs.group.batch.recorded_row import with_epochs
from udfs.group.state.episodes import Episode, Root
from udfs.group.state.group import Group, GroupFinding, observed_by
from udfs.group.state.queue_findings import CommitsBack, ExpiredCommits, Standstill, UnreadQueues
from udfs.group.state.strategy_verdict import with_verdict
from udfs.group.state.view import GroupView
from udfs.group.state.writing import assign, entries
from udfs.model.clients import client_of
from udfs.model.config import CoreConfig
from udfs.model.finding_names import NAMES, NamedMember
from udfs.model.group_api import GroupInput, GroupOutput, TopicsView
from udfs.model.ids import finding_id
from udfs.model.journal import (
    UNDER_WAY,
    Body,
    Change,
    FindingChanged,
    FindingClosed,
    FindingOpened,
    GroupChanged,
    MemberReplaced,
)
from udfs.model.observations import QueueFall
from udfs.model.spans import QueuesReassigned


class GroupHistory(GroupView):
    """One group during one batch, writing its journal.

    Attributes:
        output: The output of the batch.
        before: The group before the events with this timestamp, and what these have noted so far.
        awaited_before: The generation that waited for topics when the batch began.
    """

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, config: CoreConfig) -> None:
        super().__init__(group, facts, topics, config)
        self.output = GroupOutput()
        self.before = BeforeEventTime(group)
        self.awaited_before = group.awaited
        self._first_change = 0  # the first change at this time, even if the group is deleted at it
        self._earlier_spans: list[QueuesReassigned | MemberReplaced] | None = []
        self._computed_before = group.last_rebalance_at if group.computed_at is None else group.computed_at
        self._spans_at: int | None = None
        self.number = group.number

    def begin_event_time(self, *, folds: bool = True) -> None:
        """Record the state before the first event of one event time; late events do not fold."""
        self.before = BeforeEventTime(self.group, folds=folds and self.group.generation is None)

    def write(self, at: int, body: Body) -> None:
        """Write one change of the group's history."""
        self.number += 1
        if isinstance(body, MemberReplaced) or (isinstance(body, QueuesReassigned) and body.origin == "computed"):
            assign(self.group, computed_at=None if at == self.group.last_rebalance_at else at)
        self.output.changes.append(
            Change(
                cluster=self.facts.cluster,
                group_id=self.facts.group_id,
                subject=None,
                number=self.number,
                event_time=at,
                body=body,
            )
        )

    def note_number(self) -> None:
        """Record how many changes were written."""
        assign(self.group, number=self.number)

    def begin_spans(self, at: int) -> None:
        """Record how many changes were written before the spans with this timestamp, not counting earlier batches."""
        if at != self._spans_at:
            self._spans_at, self._first_change = at, len(self.output.changes)
            self._earlier_spans = None if self._computed_before == at else []

    def computed_spans_of_now(self, at: int) -> list[QueuesReassigned | MemberReplaced] | None:
        """Return the changes of computed spans at this time so far; None if some of them are in earlier batches.

        A pending rebalance of an earlier time may have been decided in between; its changes do not count.
        """
        if self._earlier_spans is None:
            return None
        bodies = [change.body for change in self.output.changes[self._first_change :] if change.event_time == at]
        return self._earlier_spans + [
            body
            for body in bodies
            if isinstance(body, MemberReplaced) or (isinstance(body, QueuesReassigned) and body.origin == "computed")
        ]

    def note_earlier_spans(self, bodies: list[QueuesReassigned | MemberReplaced]) -> None:
        """Keep the changes of computed spans with this timestamp that earlier batches wrote."""
        self._earlier_spans = bodies

    def write_row(self, at: int, row: GroupChanged) -> None:
        """Write the group's current row, if it changed, with the audits' verdict on its strategy."""
        row = msgspec.structs.replace(row, observed_by=observed_by(self.group, row.generation_source))
        if self.group.recorded is not None:
            row = with_epochs(self.group.recorded, row, self.group.members)
        row = with_verdict(row, self.group)
        if row != self.group.row:
            assign(self.group, row=row)
            self.write(at, row)
        self.note_under_way(at)

    def note_under_way(self, at: int) -> None:
        """Record since when the group has been rebalancing, and close the finding that it takes too long."""
        group = self.group
        if self.shown_state not in UNDER_WAY:
            assign(group, under_way_since=None)
            self.set_finding(STUCK, None, at)
        elif group.under_way_since is None:
            assign(group, under_way_since=at)
        elif STUCK in group.findings:
            self.find_stuck(group.under_way_since, at)

    def find_stuck(self, since: int, at: int) -> None:
        """Open the finding that the group has been rebalancing since then, or update what it waits for."""
        row = self.group.row
        waits = None if row is None else row.waits
        self.set_finding(STUCK, stuck_found(since, self.shown_state, waits, self._awaited_members()), at)

    def set_standstill(self, standstill: Standstill | None) -> None:
        """Record the finding that queues stand, or that there is none."""
        assign(self.group, standstill=standstill)

    def set_unread(self, unread: UnreadQueues | None) -> None:
        """Record the queues that nobody reads."""
        assign(self.group, unread=unread)

    def set_retention(self, retention: dict[str, Standstill]) -> None:
        """Record the open findings that messages were lost, or are at risk."""
        assign(self.group, retention=retention)

    def set_commits_back(self, back: CommitsBack | None) -> None:
        """Record the commits that went back, or that there are none."""
        assign(self.group, went_back=back)

    def set_expired(self, expired: ExpiredCommits | None) -> None:
        """Record the commits that were deleted, or that there are none."""
        assign(self.group, expired=expired)

    def take_falls(self, until: int) -> list[QueueFall]:
        """Return the commits up to a time that are lower than those before, each once."""
        falls = self.facts.falls
        self.facts = msgspec.structs.replace(self.facts, falls=[fall for fall in falls if fall.at > until])
        return [fall for fall in falls if fall.at <= until]

    def note_episodes(
        self, at: int, roots: Sequence[Root], episodes: Sequence[Episode], changes: Iterable[Body]
    ) -> None:
        """Record the memory of rebalances, and write the episodes that changed."""
        assign(self.group, roots=roots, episodes=episodes)
        for change in changes:
            self.write(at, change)

    def end_episodes(self, ended: Collection[Episode], at: int) -> None:
        """Close episodes; their rebalances belong to no other."""
        kept = [episode for episode in self.group.episodes if episode not in ended]
        self.note_episodes(at, self.group.roots, kept, [episode_changed(episode, closed_at=at) for episode in ended])

    def note_look(self, at: int) -> None:
        """Record when the queues that stand were last evaluated."""
        self.looked_at = at
        if self.group.standstill is not None:
            assign(self.group.standstill, looked_at=at)

    def _awaited_members(self) -> list[NamedMember]:
        """Return the members that hold up a rebalance, as far as the coordinator shows them."""
        row = self.group.row
        if row is None:
            return []
        if row.reconciling is not None:
            return [
                NamedMember(m.member_id, client_of(m.instance_id, m.client_id, m.host) or m.member_id, m.state)
                for m in row.reconciling
                if m.state != "stable"
            ]
        return [
            NamedMember(
                member.member_id, self.client_of_id(member.member_id) or member.member_id, f"at epoch {member.epoch}"
            )
            for member in row.member_epochs or ()
        ]

    def set_finding(self, key: str, found: Found | None, at: int, kind: str | None = None) -> None:
        """Open, change or close the finding under one key; its kind is the key unless ``kind`` is given.

        An open finding is written again only if its content differs.
        """
        group = self.group
        current = group.findings.get(key)
        if found is None:
            if current is not None:
                del entries(group.findings)[key]
                self.write(at, FindingClosed(finding_id=current.finding_id, closed_at=at))
            return
        fields = self._finding_fields(kind or key, found, at)
        digest = _digest(fields)
        if current is not None:
            if found.closes_at is not None:
                assign(current, closes_at=found.closes_at)
            if digest != current.digest:
                assign(current, digest=digest)
                opened_at, changed_at = current.opened_at, max(at, current.opened_at)
                self.write(
                    at,
                    FindingChanged(finding_id=current.finding_id, opened_at=opened_at, changed_at=changed_at, **fields),
                )
            return
        name = finding_id(self.facts.cluster, self.facts.group_id, key, at)
        entries(group.findings)[key] = GroupFinding(name, at, found.closes_at, digest)
        self.write(at, FindingOpened(finding_id=name, opened_at=at, **fields))

    def set_findings(self, evaluated: Iterable[tuple[str, Found | None]], at: int) -> None:
        """Open, change or close findings by their kinds."""
        for kind, found in evaluated:
            self.set_finding(kind, found, at)

    def _finding_fields(self, kind: str, found: Found, at: int) -> dict[str, Any]:
        """Return the content of a finding's row; the finding that it follows from opens now if it is not open."""
        fields = {name: getattr(found, name) for name in NAMES}
        cause = found.caused_by
        if cause is not None:
            current = self.group.findings.get(cause)
            opened = finding_id(self.facts.cluster, self.facts.group_id, cause, at)
            fields["caused_by"] = opened if current is None else current.finding_id
        return fields | {
            "finding": kind,
            "severity": found.severity,
            "message": found.message,
            "advice": found.advice,
            "evidence": list(found.evidence),
        }


def _digest(fields: Mapping[str, Any]) -> int:
    """Return a 64-bit digest of a finding's content, except for its evidence, which changes with each rebalance."""
    said = {name: value for name, value in fields.items() if name != "evidence"}
    text = msgspec.json.encode(said, order="deterministic")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
