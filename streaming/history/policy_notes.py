"""Shell: what a policy did to the members of a group, and what the tables cannot tell of it, as sentences. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from streaming.terminal.format import count, span_of_time
from udfs.group.replay.member_policies import Lived
from udfs.group.replay.policy import Policy
from udfs.model.first_few import first_few
from udfs.model.systems import SYSTEMS, System, is_server_side

_FEW: Final = 5


def notes_of(
    policy: Policy, lived: Lived | None, system: System, waits_ms: Sequence[int] | None = None
) -> Iterator[str]:
    """Yield what is to be said beside the figures of a policy.

    Args:
        waits_ms: For how long rebalances waited for silent members; None if that is not computed.
    """
    if is_server_side(policy.strategy):
        yield "topics whose ids no table has are ordered by their names, which decides who gets which"
    if lived is None:
        return
    members = policy.members
    if members.static or members.session_timeout_ms is not None:
        yield from _of_timeouts(policy, lived)
        yield from _of_waits(waits_ms, system)
    if members.is_graceful:
        if lived.kills:
            yield f"{count(lived.kills, 'kill')} became leaves, each right after the member's last heartbeat"
        if lived.static_kills:
            yield f"{count(lived.static_kills, 'kill')} of static members stayed: static members do not leave"
    if lived.unclear:
        yield f"how {count(lived.unclear, 'member')} departed is not known: they depart when that was observed"
    if lived.removed:
        yield f"the clients that came last are never there: {first_few(list(lived.removed), _FEW)}"
    if members.added:
        yield "new members are there whenever any member is, and never restart; their ids are taken to sort last"
    if members.join_delay_ms is not None and SYSTEMS[system].has_rebalance_loop:
        yield "every change is taken to wait for the rest of the delay; loops of clients are not in step"


def _of_timeouts(policy: Policy, lived: Lived) -> Iterator[str]:
    if lived.undone:
        yield f"{count(lived.undone, 'member')} would not have departed: each came back in time"
    if lived.by_client:
        yield (
            f"{count(lived.by_client, 'member')} of them came back under another id: the same client, taken to be the"
            " same process"
        )
    if lived.later:
        yield f"{count(lived.later, 'departure')} would have been noticed later"
    if lived.earlier:
        timeout = span_of_time(policy.members.session_timeout_ms or 0)
        yield (
            f"{count(lived.earlier, 'departure')} would have been noticed earlier; whether others were silent for"
            f" {timeout} no table has, so there may be more"
        )


def _of_waits(waits_ms: Sequence[int] | None, system: System) -> Iterator[str]:
    if waits_ms:
        yield (
            f"{count(len(waits_ms), 'rebalance')} would have waited for silent members, for"
            f" {span_of_time(max(waits_ms))} at the longest: all queues stand still meanwhile"
        )
    elif waits_ms is None and SYSTEMS[system].coordinator_assigns:
        yield "queue-pause has no part for the time in which others wait for a member that is silent"


def excluded_notes(reasons: Iterable[str | None]) -> Iterator[str]:
    """Yield how many recorded generations are not what the group's strategy gives, by reason."""
    counts = Counter(reasons)
    total = sum(counts.values())
    for reason, number in sorted((reason, number) for reason, number in counts.items() if reason is not None):
        of_all = f"in {number} of {count(total, 'generation')}"
        yield f"{of_all} members had other queues than their strategy gives: {reason}"


def undecided_notes(reasons: Iterable[str | None]) -> Iterator[str]:
    """Yield how many generations the core does not decide under a policy, by reason; their moves are not counted."""
    for reason, number in sorted(Counter(reason for reason in reasons if reason is not None).items()):
        yield f"{count(number, 'generation')} cannot be decided, so the figures are only a part: {reason}"
