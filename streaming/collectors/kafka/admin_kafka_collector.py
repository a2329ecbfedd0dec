"""Shell: follows a cluster only by admin calls: its topics and, at each poll, the current state of its groups.

For principals that may not read ``__consumer_offsets``. It is less exact: see ``docs/kafka.md``. Times are those of
this machine when a round began, because no record shows the brokers' clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from streaming.collectors.event_log import EventLog
from streaming.collectors.kafka.collector import LATENESS_MS, KafkaCollector, Round
from streaming.collectors.kafka.group_diff import GroupDiff
from streaming.collectors.kafka.group_reader import GroupReader
from streaming.collectors.kafka.metadata_client import MetadataClient
from streaming.collectors.kafka.options import KafkaOptions
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from udfs.kafka.consumer_offsets import GroupPatterns

_log = logger("kafka")


class AdminKafkaCollector(KafkaCollector):
    """Follows one cluster's topics and groups, from ``start`` to ``stop``; also a context manager.

    Args:
        topics, groups: Logs of the two, in one folder or topic.
        poll_interval_ms: Time between rounds. lateness_ms: See ``KafkaCollector``.
    """

    def __init__(
        self,
        options: KafkaOptions,
        topics: EventLog,
        groups: EventLog,
        *,
        poll_interval_ms: int,
        lateness_ms: int = LATENESS_MS,
    ) -> None:
        self._group_log = groups
        self._patterns = GroupPatterns(options.include_groups, options.exclude_groups)
        options = replace(options, unread_groups=0)  # of these groups no commits are known
        super().__init__(
            options, topics, dict, poll_interval_ms=poll_interval_ms, lateness_ms=lateness_ms, view=GroupReader
        )
        self._groups = self._remembered_groups()
        self._unreadable: frozenset[str] = frozenset()
        self._status = msgspec.structs.replace(self._status, source="admin")

    def _observe(self) -> None:
        view = self._connected()
        if not isinstance(view, GroupReader):
            raise TypeError(f"{view} does not read groups")
        at_ms = self._clock.at(now_ms())
        self._report_topics(view, at_ms)
        polled = view.groups()
        described = view.described(self._groups.to_describe(polled))
        events = self._groups.diff(polled, described, at_ms)
        if events:
            self._group_log.append(events)
            self._group_log.keep_memory(self._groups.memory())
            self._early.add(at_ms)
        if polled.unreadable != self._unreadable:
            _log.warning("groups cannot be described", cluster=self._options.cluster, groups=len(polled.unreadable))
            self._unreadable = polled.unreadable
        self._status = msgspec.structs.replace(
            self._status, groups=len(self._groups.reported), unpolled=len(polled.unreadable)
        )
        if self._group_log.flush():  # no clock is written before groups that only wait for a disk
            self._owed.append(Round(at_ms, {}))
            self._write_allowed_clock()

    def _ends_now(self, view: MetadataClient) -> Mapping[int, int]:  # noqa: ARG002
        return {}  # no other process reads records

    def _forget_unwritten(self) -> None:
        super()._forget_unwritten()
        self._groups = self._remembered_groups()

    def _remembered_groups(self) -> GroupDiff:
        try:
            return GroupDiff(self._options.cluster, self._patterns, self._group_log.read_memory())
        except msgspec.DecodeError:
            _log.warning("the remembered groups are unreadable; all are reported again", cluster=self._options.cluster)
            return GroupDiff(self._options.cluster, self._patterns)
