"""Shell: classic groups in the middle of a rebalance, as their brokers list them.

Group records are written when a rebalance is complete. A poll that finds a group in between shows that the rebalance
had begun by then; if it takes longer than the interval of polls, records alone show only the end. If no record ends it
(the poll was dated after it, by a clock that is ahead, or the coordinator died), later polls do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.events import GroupSnapshot, event_fields

_OVER: Final = "Stable"  # without members, because it is only known that it no longer rebalances
# A rebalance is over once this many polls lack the group: its broker may have missed one, and its generation's record
# comes first.
_POLLS: Final = 2


class GroupsUnderWay:
    """Reports each state of each group once, and the end of its rebalance.

    Args:
        groups: Groups that an earlier collector has reported; their states are no longer known.
    """

    def __init__(self, cluster: str, patterns: GroupPatterns, groups: Iterable[str] = ()) -> None:
        self._cluster = cluster
        self._patterns = patterns
        self._reported: dict[str, str] = dict.fromkeys(groups, "")
        self._lacking: dict[str, int] = {}

    @property
    def groups(self) -> frozenset[str]:
        """Return the groups that were reported to be rebalancing."""
        return frozenset(self._reported)

    def diff(self, states: Mapping[str, str], at_ms: int) -> list[GroupSnapshot]:
        """Return the differences between a poll and the previous one.

        Args:
            states: ``PreparingRebalance`` or ``CompletingRebalance`` by group. at_ms: A time before the poll.
        """
        changed = {
            group: state
            for group, state in states.items()
            if self._reported.get(group) != state or group in self._lacking  # it may be another rebalance
        }
        lacking = self._reported.keys() - states.keys()
        self._lacking = {group: self._lacking.get(group, 0) + 1 for group in lacking}
        over = [group for group, polls in self._lacking.items() if polls >= _POLLS]
        self._reported |= changed
        for group in over:
            del self._reported[group], self._lacking[group]
        changed |= dict.fromkeys(over, _OVER)
        return [
            GroupSnapshot(
                **event_fields("kafka", self._cluster, at_ms),
                group=group,
                state=changed[group],
            )
            for group in sorted(changed)
            if self._patterns.follow(group)
        ]
