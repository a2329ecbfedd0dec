"""Shell: the sessions of the same client and host in other groups, around the departure of a member.

A process that crashes loses all of its memberships within a session timeout; a process that leaves a group, or whose
consumer hangs, keeps those elsewhere. The same client id on the same host is assumed to be the same process. If a host
is lost, the sessions of all its clients end, in all groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.settings.defaults import default
from streaming.tables.schema import Row
from streaming.terminal.format import count
from streaming.views.reader import Reader, time_scalar

# The session timeout if a session reports none.
_SESSION_MS: Final[int] = default("session_timeouts", "kafka_ms")
_IN_ORDER: Final = ("left", "replaced")


class Siblings(NamedTuple):
    """The client's sessions in other groups.

    Attributes:
        ended: How many ended within a session timeout of the departure. went_on: How many did not.
    """

    ended: int
    went_on: int

    @property
    def total(self) -> int:
        """Return the total number."""
        return self.ended + self.went_on

    @property
    def text(self) -> str:
        """Return the counts as text.

        Example:
            >>> Siblings(ended=1, went_on=2).text
            'the same client in 3 other groups: its session ended with it in 1, went on in 2 (inferred)'
        """
        others = count(self.total, "other group")
        became = f"its session ended with it in {self.ended}, went on in {self.went_on}"
        return f"the same client in {others}: {became} (inferred)"


class HostSessions(NamedTuple):
    """The sessions on a host in other groups.

    Attributes:
        ended: How many ended within a session timeout of the departure, and not in order. went_on: How many did not.
        groups: The number of groups.
    """

    host: str
    ended: int
    went_on: int
    groups: int

    @property
    def total(self) -> int:
        """Return the total number."""
        return self.ended + self.went_on

    @property
    def text(self) -> str:
        """Return the counts as text.

        Example:
            >>> HostSessions("10.0.0.7", ended=4, went_on=0, groups=3).text
            'all 4 sessions on host 10.0.0.7 in 3 other groups ended with it (inferred)'
            >>> HostSessions("10.0.0.7", ended=1, went_on=3, groups=1).text
            '1 of 4 sessions on host 10.0.0.7 in 1 other group ended with it (inferred)'
        """
        number = f"{self.ended} of {count(self.total, 'session')}" if self.went_on else f"all {self.total} sessions"
        number = "1 session" if self.total == self.ended == 1 else number
        return f"{number} on host {self.host} in {count(self.groups, 'other group')} ended with it (inferred)"


def siblings_of(reader: Reader, session: Row, cluster: str, group: str, at_ms: int) -> Siblings | None:
    """Return the fate of the client's sessions elsewhere; None if it has none or is not distinguishable."""
    same = {"cluster": cluster, "client_id": session.get("client_id"), "host": session.get("host")}
    others, ended = _others(reader, same, session, group, at_ms)
    return Siblings(len(ended), len(others) - len(ended)) if others else None


def host_sessions(reader: Reader, session: Row, cluster: str, group: str, at_ms: int) -> HostSessions | None:
    """Return the fate of the sessions on a member's host in other groups; None if there are none, or unknown."""
    same = {"cluster": cluster, "address": session.get("address")}
    others, ended = _others(reader, same, session, group, at_ms)
    if not others:
        return None
    lost = sum(sibling["left_reason"] not in _IN_ORDER for sibling in ended)
    return HostSessions(
        same["address"] or "", lost, len(others) - lost, len({sibling["group_id"] for sibling in others})
    )


def _others(reader: Reader, same: Row, session: Row, group: str, at_ms: int) -> tuple[list[Row], list[Row]]:
    """Return the sessions of other groups with these fields, and those of them that ended with a session.

    Args:
        same: The required fields; if one has no value, no session matches.
    """
    if not all(same.values()):
        return [], []
    span = session.get("session_timeout_ms") or _SESSION_MS
    others = reader.rows("members", where=same, keep=_elsewhere(group, at_ms, span))
    return others, [
        sibling for sibling in others if sibling["left_at"] is not None and sibling["left_at"] <= at_ms + span
    ]


def _elsewhere(group: str, at_ms: int, span: int) -> Callable[[pa.Table], pa.ChunkedArray]:
    """Return a filter for sessions of other groups that existed a session timeout before a time."""

    def current(rows: pa.Table) -> pa.ChunkedArray:
        joined = pc.less_equal(rows["joined_at"], time_scalar(at_ms - span))
        lasting = pc.or_kleene(rows["left_at"].is_null(), pc.greater_equal(rows["left_at"], time_scalar(at_ms - span)))
        return pc.and_kleene(pc.and_kleene(joined, lasting), pc.not_equal(rows["group_id"], group))

    return current
