"""Shell: reads a MetaQ cluster's nodes and drafts events; the reported state is kept until the next read."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from streaming.collectors.metaq.group_diff import close_missed, diff_deleted, diff_group, report_settled
from streaming.collectors.metaq.observed import Folder, Violation, ZkGroup, ZkTopic
from streaming.collectors.metaq.offset_diff import OffsetDiff
from streaming.collectors.metaq.options import MetaqOptions
from streaming.collectors.metaq.read_context import ReadContext
from streaming.collectors.metaq.reported_state import ReportedGroupState, ReportedState, ReportedTopicState
from streaming.collectors.metaq.topic_diff import diff_topic
from streaming.collectors.metaq.watch_queue import FiredWatches
from streaming.collectors.metaq.zk_reader import ZkReader
from streaming.collectors.metaq.zk_times import ServerClock, TransactionTimes
from streaming.machine.clock import now_ms
from udfs.model.events import AnyEvent, Clock, event_fields

_READ_AGAIN: Final = 3  # if a group changes while it is read; after that its watch fires
_NO_TOPIC = ZkTopic(Folder(), {})


@dataclass
class PendingEvents:
    """Drafted events, and the reported state once they are in the log.

    Attributes:
        groups, topics: Changed ones; None if deleted. unread: Groups that changed while they were read.
    """

    events: list[AnyEvent] = field(default_factory=list)
    groups: dict[str, ReportedGroupState | None] = field(default_factory=dict)
    topics: dict[str, ReportedTopicState] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


class MetaqClusterDiff:
    """The reported state of a cluster, and the draft of the next report."""

    def __init__(self, options: MetaqOptions, memory: bytes | None = None) -> None:
        self._options = options
        self._reported = ReportedState() if memory is None else msgspec.json.decode(memory, type=ReportedState)
        self._clock = ServerClock()
        self._times = TransactionTimes()
        self._offsets = OffsetDiff(options.cluster)
        self._offsets_next = ""
        self._read_at: dict[str, int] = {}  # when each group was read, by this machine's clock
        # Groups that have not settled, with the time since which they are unchanged; all others have settled.
        self._unsettled = {name: 0 for name, group in self._reported.groups.items() if not group.settled}
        self._doubted = {name for name, topic in self._reported.topics.items() if topic.doubted_since is not None}

    @property
    def groups(self) -> int:
        """Return the number of groups."""
        return len(self._reported.groups)

    @property
    def topics(self) -> int:
        """Return the number of topics."""
        return len(self._reported.topics)

    def memory(self) -> bytes:
        """Return the state from which a new instance continues."""
        return msgspec.json.encode(self._reported, order="deterministic")

    # ---- reading

    def diff(self, reader: ZkReader, fired: FiredWatches) -> PendingEvents:
        """Read the nodes whose watches fired, and prepare the events."""
        pending = PendingEvents()
        began = now_ms()
        if fired.everything:
            topics = dict.fromkeys([*reader.topics(), *self._reported.topics], began)
            listed = set(reader.groups())
            self._drop_groups(pending, listed, began)
            self._read_topics(pending, reader, topics, continuous=False)
            self._read_groups(pending, reader, dict.fromkeys(listed, began), listed, continuous=False)
            return pending
        topics, groups = dict(fired.topics), dict(fired.groups)
        if fired.lists is not None:
            topics |= dict.fromkeys(self._topics_to_read(reader), fired.lists)
            listed = set(reader.groups())
            groups |= {name: fired.lists for name in listed if name not in self._reported.groups}
            groups = {name: at for name, at in groups.items() if name in listed}
            self._drop_groups(pending, listed, fired.lists)
        self._read_topics(pending, reader, topics)
        self._read_groups(pending, reader, groups, fired.described, continuous=True)
        return pending

    def diff_again(self, reader: ZkReader) -> PendingEvents:
        """Draft events about anything unchanged for long enough: removed queues, strategies, assignments."""
        pending = PendingEvents()
        if self._doubted:
            self._read_topics(pending, reader, dict.fromkeys(self._doubted, now_ms()))
        context = self._read(now_ms())
        for name, since in sorted(self._unsettled.items()):
            reported = self._group(pending, name)
            if reported is not None and not reported.settled and context.at - since >= self._options.settle_ms:
                self._put(pending, name, *report_settled(name, reported, self._topics_in(pending), context))
        return pending

    @property
    def is_waiting(self) -> bool:
        """Return whether ``diff_again`` has something to do."""
        return bool(self._unsettled or self._doubted)

    def round(self, reader: ZkReader, began: int) -> PendingEvents:
        """Draft commits and the ``clock``; every change that was noticed before ``began`` has been reported."""
        pending = PendingEvents()
        context = self._read(began)
        for name, reported in self._reported.groups.items():
            if reported.missed_at is not None:
                self._put(pending, name, *close_missed(name, reported, context))
        for name, offsets in sorted(reader.read_offsets(self._due_for_offsets()).items()):
            pending.events += self._offsets.diff(name, offsets, context.at)
        waiting = [
            topic.doubted_since - 1 for topic in self._reported.topics.values() if topic.doubted_since is not None
        ]
        pending.events.append(
            Clock(
                **event_fields("metaq", self._options.cluster, min([self._clock.advance(began), *waiting])),
            )
        )
        return pending

    def keep(self, pending: PendingEvents) -> None:
        """Mark a draft as reported, because its events are in the log."""
        at = self._clock.at(now_ms())
        for name, group in pending.groups.items():
            if group is None:
                self._reported.groups.pop(name, None)
                self._unsettled.pop(name, None)
                self._read_at.pop(name, None)
                self._offsets.forget(name)
                continue
            self._reported.groups[name] = group
            if group.settled:
                self._unsettled.pop(name, None)
            else:
                self._unsettled[name] = at
        for name, topic in pending.topics.items():
            self._reported.topics[name] = topic
            if topic.doubted_since is None:
                self._doubted.discard(name)
            else:
                self._doubted.add(name)

    def new_violations(self, pending: PendingEvents) -> list[Violation]:
        """Return unreadable nodes that were not reported before."""
        found: list[Violation] = []
        for name, topic in pending.topics.items():
            before = self._reported.topics.get(name)
            found += [
                violation
                for violation in topic.observed.violations
                if before is None or violation not in before.observed.violations
            ]
        for name, group in pending.groups.items():
            reported = self._reported.groups.get(name)
            new = group.observed.violations if group is not None else ()
            found += [
                violation for violation in new if reported is None or violation not in reported.observed.violations
            ]
        return sorted(found)

    # ---- internals

    def _read(self, noticed_ms: int, *, continuous: bool = True) -> ReadContext:
        at = self._clock.at(now_ms())
        return ReadContext(
            cluster=self._options.cluster,
            noticed=self._clock.at(noticed_ms) if continuous else at,
            at=at,
            continuous=continuous,
            settle_ms=self._options.settle_ms,
            times=self._times,
        )

    def _read_topics(
        self, pending: PendingEvents, reader: ZkReader, noticed: Mapping[str, int], *, continuous: bool = True
    ) -> None:
        wanted = sorted(name for name in noticed if self._options.follows_topic(name))
        changed: set[str] = set()
        for name, observed in reader.read_topics(wanted).items():
            before = self._reported.topics.get(name)
            if observed is None and before is None:
                continue
            context = self._read(noticed[name], continuous=continuous)
            events, reported = diff_topic(name, before, observed or _NO_TOPIC, context)
            pending.events += events
            if reported != before:
                pending.topics[name] = reported
            if events:
                changed.add(name)
        if changed:
            self._unsettle_subscribers(pending, changed)

    def _topics_to_read(self, reader: ZkReader) -> list[str]:
        """Return the topics that are new; all of them when the first broker of the current kind has appeared."""
        was_old = reader.is_old
        listed = reader.topics()
        if reader.is_old != was_old:
            return [*listed, *self._reported.topics]
        return [name for name in listed if name not in self._reported.topics]

    def _unsettle_subscribers(self, pending: PendingEvents, changed: set[str]) -> None:
        for name in self._reported.groups:
            group = self._group(pending, name)
            if group is not None and any(
                not changed.isdisjoint(member.subscriptions) for member in group.observed.members.values()
            ):
                pending.groups[name] = msgspec.structs.replace(group, settled=False)

    def _read_groups(
        self,
        pending: PendingEvents,
        reader: ZkReader,
        noticed: Mapping[str, int],
        described: Collection[str],
        *,
        continuous: bool,
    ) -> None:
        wanted = sorted(name for name in noticed if self._options.follows_group(name))
        previous = {
            name: None if (reported := self._group(pending, name)) is None else reported.observed for name in wanted
        }
        began = now_ms()
        found = reader.read_groups(previous, described=described)
        for _ in range(_READ_AGAIN):
            moving = {name: previous[name] for name, observed in found.items() if observed is None}
            if not moving:
                break
            found |= reader.read_groups(moving, described=described)
        if continuous:
            for name, observed in found.items():
                self._compare_clocks(name, previous[name], observed, noticed[name])
        for name, observed in found.items():
            if observed is None:
                pending.unread.append(name)
                continue
            reported = self._group(pending, name)
            context = self._read(noticed[name], continuous=continuous)
            self._put(pending, name, *diff_group(name, reported, observed, self._topics_in(pending), context))
            self._read_at[name] = began

    def _compare_clocks(self, name: str, before: ZkGroup | None, observed: ZkGroup | None, noticed: int) -> None:
        if before is None or observed is None:
            return
        made = [member.joined_at for key, member in observed.members.items() if before.members.get(key) != member]
        for topic, owners in observed.topics.items():
            was = before.topics[topic].owners if topic in before.topics else {}
            made += [owner.since for key, owner in owners.owners.items() if was.get(key) != owner]
        if made:
            self._clock.observe(max(made), noticed_ms=max(noticed, now_ms()), absent_ms=self._read_at.get(name))

    def _drop_groups(self, pending: PendingEvents, listed: Iterable[str], noticed: int) -> None:
        for name in sorted(self._reported.groups.keys() - set(listed)):
            pending.events += diff_deleted(name, self._reported.groups[name], self._read(noticed))
            pending.groups[name] = None

    def _put(self, pending: PendingEvents, name: str, events: Sequence[AnyEvent], reported: ReportedGroupState) -> None:
        pending.events += events
        if reported != self._group(pending, name):
            pending.groups[name] = reported

    def _group(self, pending: PendingEvents, name: str) -> ReportedGroupState | None:
        return pending.groups[name] if name in pending.groups else self._reported.groups.get(name)

    def _topics_in(self, pending: PendingEvents) -> Mapping[str, ReportedTopicState]:
        return ChainMap(pending.topics, self._reported.topics)

    def _due_for_offsets(self) -> list[str]:
        """Return the next groups in turn, each once per ``progress_interval_ms``."""
        names = sorted(self._reported.groups)
        rounds = max(1, self._options.progress_interval_ms // max(1, self._options.poll_interval_ms))
        count = -(-len(names) // rounds)
        later = [name for name in names if name > self._offsets_next]
        chosen = [*later, *(name for name in names if name <= self._offsets_next)][:count]
        if chosen:
            self._offsets_next = chosen[-1]
        return chosen
