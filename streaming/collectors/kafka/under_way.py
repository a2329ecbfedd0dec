"""Shell: classic groups in the middle of a rebalance, as their brokers list them.

Group records are written when a rebalance is complete. A poll that finds a group in between shows that it had begun by
then: of rebalances that take longer than the interval of polls, records alone show only the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.events import SCHEMA_VERSION, GroupSnapshot


class GroupsUnderWay:
    """Reports each state of each group once."""

    def __init__(self, cluster: str, patterns: GroupPatterns) -> None:
        self._cluster = cluster
        self._patterns = patterns
        self._before: Mapping[str, str] = {}

    def diff(self, states: Mapping[str, str], at_ms: int) -> list[GroupSnapshot]:
        """Return what a poll shows and the one before did not.

        Args:
            states: By group: ``PreparingRebalance`` or ``CompletingRebalance``. at_ms: Before the poll.
        """
        fresh = sorted(group for group, state in states.items() if self._before.get(group) != state)
        self._before = dict(states)
        return [
            GroupSnapshot(
                schema_version=SCHEMA_VERSION,
                event_time=at_ms,
                system="kafka",
                cluster=self._cluster,
                group=group,
                state=states[group],
            )
            for group in fresh
            if self._patterns.follow(group)
        ]
