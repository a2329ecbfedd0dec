"""Shell: which members a round queries: changed groups at once, others in turn, silent ones ever more rarely. Pure.

A member is queried through its broker, which keeps one of its few threads busy until the member answers, too expensive
for all members in every round. A change of a group shows in its list: other client ids, or a newer version of a
subscription, which a member sets whenever its queues changed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# After a change a group is queried in every round for this long: members without a notification have ticks of 20 s, but
# each member that takes or releases queues sets its subscription, which restarts this time.
CHANGED_FOR_MS: Final = 15_000
# A member that did not answer may be slow or hang: it is queried again in the next round, then after this long, after
# twice as long, and so on. Its broker waits for it for 10 s, whether or not the monitor still waits.
_SILENT_FIRST_MS: Final = 10_000
_SILENT_LONGEST_MS: Final = 60_000


class PollRequest(NamedTuple):
    """A request to a member of a group about itself."""

    group: str
    client_id: str
    is_silent: bool  # it did not answer the last request


@dataclass
class _Member:
    queried_ms: int = 0
    silences: int = 0
    not_before_ms: int = 0


@dataclass
class _Group:
    members: dict[str, _Member] = field(default_factory=dict)
    sub_version: int = 0
    changed_until_ms: int = 0
    offsets_requested_ms: int = 0

    def is_mute(self) -> bool:
        """Return whether no member of it answers."""
        return all(member.silences for member in self.members.values())


class MemberSchedule:
    """When each member was polled, and which is next.

    Args:
        share: The share of members of unchanged groups that is queried in one round, and of groups' offsets.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._groups: dict[str, _Group] = {}

    def remember(self, group: str, client_ids: Iterable[str], sub_version: int) -> None:
        """Add a group's state from before this process began."""
        self._groups[group] = _Group({client_id: _Member() for client_id in client_ids}, sub_version)

    def observe(self, group: str, client_ids: set[str], sub_version: int, now_ms: int) -> None:
        """Update the lists of a group."""
        remembered = self._groups.setdefault(group, _Group())
        if remembered.members.keys() != client_ids:
            remembered.members = {
                client_id: remembered.members.get(client_id, _Member()) for client_id in sorted(client_ids)
            }
            remembered.changed_until_ms = now_ms + CHANGED_FOR_MS
        if sub_version > remembered.sub_version:
            remembered.sub_version = sub_version
            remembered.changed_until_ms = now_ms + CHANGED_FOR_MS

    def keep_only(self, groups: Iterable[str]) -> None:
        """Forget all other groups."""
        kept = set(groups)
        self._groups = {name: group for name, group in self._groups.items() if name in kept}

    def next_members(self, now_ms: int, *, everybody: bool = False) -> list[PollRequest]:
        """Return the members to query, the most urgent first."""
        changed: list[tuple[int, PollRequest]] = []
        others: list[tuple[int, PollRequest]] = []
        silent: list[tuple[int, PollRequest]] = []
        total = 0
        for name, group in self._groups.items():
            is_changed = now_ms < group.changed_until_ms
            total += len(group.members)
            for client_id, member in group.members.items():
                if member.silences:
                    if everybody or member.not_before_ms <= now_ms:
                        silent.append((member.not_before_ms, PollRequest(name, client_id, True)))
                else:
                    (changed if is_changed else others).append((member.queried_ms, PollRequest(name, client_id, False)))
        between_generations = len(others) if everybody else math.ceil(self._share * total)
        return [*_oldest(changed, len(changed)), *_oldest(others, between_generations), *_oldest(silent, len(silent))]

    def answered(self, group: str, client_id: str, now_ms: int) -> None:
        """Record that a member answered, or its broker on its behalf."""
        member = self._member(group, client_id)
        if member is not None:
            member.queried_ms, member.silences, member.not_before_ms = now_ms, 0, 0

    def was_silent(self, group: str, client_id: str, now_ms: int) -> None:
        """Record that a member did not answer."""
        member = self._member(group, client_id)
        if member is not None:
            member.queried_ms = now_ms
            member.silences += 1
            wait_ms = min(_SILENT_LONGEST_MS, _SILENT_FIRST_MS * 2 ** min(member.silences - 2, 10))
            wait_ms = 0 if member.silences == 1 else wait_ms
            member.not_before_ms = now_ms + wait_ms

    def next_offsets(
        self, now_ms: int, queried: Collection[str] = frozenset(), *, everybody: bool = False
    ) -> list[str]:
        """Return the groups whose offsets to request, the most urgent first; they count as requested.

        Args:
            queried: Groups with members that are queried: how far a member is ahead of its commit is known only if both
                are read together. Groups without a member that answers have a share of their own.
        """
        waiting = sorted(
            (group.offsets_requested_ms, name)
            for name, group in self._groups.items()
            if now_ms >= group.changed_until_ms
        )
        changed = [name for name, group in self._groups.items() if now_ms < group.changed_until_ms]
        if everybody:
            chosen = [*changed, *(name for _, name in waiting)]
        else:
            together = [name for _, name in waiting if name in queried]
            alone = [name for _, name in waiting if name not in queried and self._groups[name].is_mute()]
            limit = 2 * math.ceil(self._share * len(self._groups))
            chosen = [*changed, *together[:limit], *alone[: math.ceil(self._share * len(self._groups))]]
        for name in chosen:
            self._groups[name].offsets_requested_ms = now_ms
        return chosen

    def _member(self, group: str, client_id: str) -> _Member | None:
        remembered = self._groups.get(group)
        return remembered.members.get(client_id) if remembered is not None else None


def _oldest(candidates: Sequence[tuple[int, PollRequest]], count: int) -> list[PollRequest]:
    return [request for _, request in sorted(candidates)[:count]]
