"""Shell: when the next unread messages of Kafka's groups were written, as events of the groups.

Brokers are asked for commits of some groups at a time, then for the first messages after some times: a search for each
partition in which messages wait, all of them in the same few requests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from streaming.collectors.kafka.message_search import DatedMessage, MessageSearch
from streaming.collectors.kafka.metadata_client import MetadataClient, next_few
from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.events import Progress, QueueOffset, event_fields

_Place: TypeAlias = tuple[str, int]

# Requests to each broker, for all partitions together; the search goes on at the next read. Of one group it takes five;
# where groups share partitions more, because a request has one time for each partition.
_STEPS_AT_ONCE = 24
_LONGEST_S = 2.0  # no request is sent after that, because clocks wait for the end of a poll
_QUEUES_AT_ONCE = 1_000  # with the most waiting messages; the others have the history of their ends
# Of so many queues of groups the search is remembered; beyond that all begin anew.
_REMEMBERED = 50_000
# What is known is reported again after so long, because what came before the first commit counts for nobody.
_AGAIN_MS = 60_000


class UnreadMessages:
    """The next unread messages of a cluster's groups, and what was last reported of them.

    Args:
        most_groups: The commits of at most so many groups are read at a time: one request for each. Half of them are
            those in which most messages waited when they were last read, the others come in turn. 0: none.
    """

    def __init__(self, cluster: str, most_groups: int, patterns: GroupPatterns) -> None:
        self._cluster, self._most, self._patterns = cluster, most_groups, patterns
        self._waiting: dict[str, int] = {}
        self._last = ""
        self._searches: dict[tuple[str, _Place], MessageSearch] = {}
        self._reported: dict[tuple[str, _Place], tuple[DatedMessage, int]] = {}

    def read(self, view: MetadataClient, ends: Mapping[_Place, int], at_ms: int) -> list[Progress]:
        """Return when next unread messages were written, as far as that is found now and was not reported lately.

        Args:
            ends: The ends of all partitions. at_ms: The time of the events.
        """
        if not self._most:
            return []
        groups = self._chosen([name for name in view.consumer_groups() if self._patterns.follow(name)])
        lags = {
            (group, place): (committed, ends[place])
            for group, commits in view.committed(groups).items()
            for place, committed in commits.items()
            if 0 <= committed < ends.get(place, 0)
        }
        self._note_lags(groups, lags)
        largest = sorted(lags, key=lambda queue: lags[queue][0] - lags[queue][1])[:_QUEUES_AT_ONCE]
        if len(self._searches) + len(largest) > _REMEMBERED:
            self._searches, self._reported = {}, {}
        for queue in largest:
            self._searches[queue] = self._search(queue, *lags[queue], at_ms)
        self._advance(view, largest)
        return self._events(largest, at_ms)

    def _chosen(self, groups: Sequence[str]) -> list[str]:
        self._waiting = {name: lag for name, lag in self._waiting.items() if name in set(groups)}
        behind = sorted(self._waiting, key=lambda name: (-self._waiting[name], name))[: self._most // 2]
        others = next_few(sorted(set(groups) - set(behind)), self._last, self._most - len(behind))
        self._last = others[-1] if others else ""
        return [*behind, *others]

    def _note_lags(self, groups: Sequence[str], lags: Mapping[tuple[str, _Place], tuple[int, int]]) -> None:
        """Remember in which of these groups messages wait; forget their queues in which none does."""
        read = set(groups)
        self._waiting = {name: lag for name, lag in self._waiting.items() if name not in read}
        for (group, _), (committed, end) in lags.items():
            self._waiting[group] = self._waiting.get(group, 0) + end - committed
        self._searches = {
            queue: search for queue, search in self._searches.items() if queue[0] not in read or queue in lags
        }
        self._reported = {queue: news for queue, news in self._reported.items() if queue in self._searches}

    def _search(self, queue: tuple[str, _Place], committed: int, end: int, now_ms: int) -> MessageSearch:
        former = self._searches.get(queue)
        if former is not None and former.offset == committed and not former.is_deleted:
            return former
        before = None if former is None else former.found or former.before
        # A message beyond the commit, or the end, is that of a group that went back, or of a topic that was made again.
        return MessageSearch(committed, end, now_ms, before if before and before.offset <= committed else None)

    def _advance(self, view: MetadataClient, queues: Sequence[tuple[str, _Place]]) -> None:
        """Request times until all are found, or the limits are reached."""
        deadline = time.monotonic() + _LONGEST_S
        searched: dict[_Place, list[MessageSearch]] = {}
        for group, place in queues:
            searched.setdefault(place, []).append(self._searches[group, place])
        for _ in range(_STEPS_AT_ONCE):
            times: dict[_Place, int] = {}
            for place, searches in searched.items():
                # A request has one time for each partition; what it shows is of use to the searches of all groups.
                if unfinished := [search for search in searches if search.found is None and not search.is_deleted]:
                    times[place] = min(unfinished, key=lambda search: search.steps).next_time
            if not times or time.monotonic() > deadline:
                return
            answers = view.first_since(times)
            searched = {place: searched[place] for place in answers}
            for place, first in answers.items():
                for search in searched[place]:
                    search.learn(times[place], first)

    def _events(self, queues: Sequence[tuple[str, _Place]], at_ms: int) -> list[Progress]:
        news: dict[str, list[QueueOffset]] = {}
        for queue in sorted(queues):
            message = self._searches[queue].found
            former, reported_at = self._reported.get(queue, (None, 0))
            if message is None or (message == former and at_ms < reported_at + _AGAIN_MS):
                continue
            self._reported[queue] = message, at_ms
            group, (topic, partition) = queue
            dated = QueueOffset(
                topic, partition, moved=False, written_offset=message.offset, written_at=message.written_at
            )
            news.setdefault(group, []).append(dated)
        return [
            Progress(**event_fields("kafka", self._cluster, at_ms), group=group, queues=tuple(dated))
            for group, dated in news.items()
        ]
