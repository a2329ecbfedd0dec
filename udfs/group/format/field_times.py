"""Core: when each field of a member's description was reported, encoded in few bytes. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from udfs.group.state.group import Member
from udfs.model.member_fields import ADDED

# The byte order of the oldest fields, which the newer fields follow.
_FIRST = (
    *("subscriptions", "strategies", "client_id", "host", "session_timeout_ms", "rebalance_timeout_ms"),
    *("strategy_settings", "client_library", "client_version", "language", "ordered", "instance_id", "rack"),
    *("owned", "owned_generation", "protocol", "process_id"),
)
DESCRIBED = (*_FIRST, *ADDED)


class PresentFields:
    """The fields of their description that members have, computed once for all members that share a kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[int | bool, ...], tuple[str, ...]] = {}

    def of(self, member: Member, kind: int) -> tuple[str, ...]:
        """Return the fields that are not None.

        Args:
            kind: The number of the fields that a member shares with others: all except each member's own fields.
        """
        key = (
            kind,
            member.client_id is None,
            member.host is None,
            member.instance_id is None,
            member.rack is None,
            member.owned is None,
            member.owned_generation is None,
        )
        names = self._found.get(key)
        if names is None:
            names = self._found[key] = tuple(name for name in DESCRIBED if getattr(member, name) is not None)
        return names


def pack_field_times(
    member: Member, present: Sequence[str], base: int, number: Callable[[Any, Any], int]
) -> list[Any] | None:
    """Encode when each field was reported; return None if all set fields were reported at the join.

    A single time if one event reported all fields; otherwise also the other times by field, which polled members share.

    Args:
        present: The member's fields that are not None.
        number: Returns the number under which a shared value is written.
    """
    if member.field_times == dict.fromkeys(present, member.joined_at):
        return None
    newest = max(member.field_times.values(), default=None)
    if newest is not None and member.field_times == dict.fromkeys(present, newest):
        return [base - newest]
    times = map(member.field_times.get, DESCRIBED)
    ages = tuple(None if at is None else base - at for at in times)
    return [0, number(("field_times", ages), ages)]


def unpack_field_times(
    member: Member, present: Sequence[str], times: list[Any], values: list[Any], base: int
) -> dict[str, int]:
    """Decode what ``pack_field_times`` wrote."""
    if len(times) == 2:
        ages = zip(DESCRIBED, values[times[1]], strict=True)
        return {name: base - age for name, age in ages if age is not None}
    at = base - times[0] if times else member.joined_at
    return dict.fromkeys(present, at)
