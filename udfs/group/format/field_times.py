"""Core: when each field of a member's description was reported, in few bytes. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from udfs.group.state.group import Member
from udfs.model.member_fields import FIELDS

# The order of the bytes: newer fields at the end, in the order in which they were added.
_FIRST = (
    *("subscriptions", "strategies", "client_id", "host", "session_timeout_ms", "rebalance_timeout_ms"),
    *("strategy_settings", "client_library", "client_version", "language", "ordered", "instance_id", "rack"),
    *("owned", "owned_generation"),
)
DESCRIBED = (*_FIRST, *(name for name in FIELDS if name not in _FIRST))
_VALUES = attrgetter(*DESCRIBED)


def pack_field_times(member: Member, base: int, number: Callable[[Any, Any], int]) -> list[Any] | None:
    """Encode when each field was reported; None where all known fields were reported at the join.

    One time where one event reported all fields; else also the other times by field, which polled members share.

    Args:
        number: Returns the number under which a value that members share is written.
    """
    known = [name for name, value in zip(DESCRIBED, _VALUES(member), strict=True) if value is not None]
    if member.told_at == dict.fromkeys(known, member.joined_at):
        return None
    newest = max(member.told_at.values(), default=None)
    if newest is not None and member.told_at == dict.fromkeys(known, newest):
        return [base - newest]
    told = map(member.told_at.get, DESCRIBED)
    ages = tuple(None if at is None else base - at for at in told)
    return [0, number(("told", ages), ages)]


def unpack_field_times(member: Member, times: list[Any], values: list[Any], base: int) -> dict[str, int]:
    """Read back what ``pack_field_times`` wrote."""
    if len(times) == 2:
        ages = zip(DESCRIBED, values[times[1]], strict=False)  # an older release knew fewer
        return {name: base - age for name, age in ages if age is not None}
    at = base - times[0] if times else member.joined_at
    return {name: at for name in DESCRIBED if getattr(member, name) is not None}
