"""Shell: what became of the same client's sessions in other groups, when a member departed.

A process that crashes loses all of its memberships within a session timeout; one that leaves a group, or whose consumer
hangs, keeps those elsewhere. The same client id on the same host is taken for the same process: that is inferred.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.settings.defaults import default
from streaming.tables.schema import Row
from streaming.terminal.format import count
from streaming.views.reader import Reader, time_scalar

# Where a session reports none.
_SESSION_MS: Final[int] = default("session_timeouts", "kafka_ms")


class Siblings(NamedTuple):
    """The client's sessions in other groups.

    Attributes:
        ended: How many ended within a session timeout of the departure. went_on: How many did not.
    """

    ended: int
    went_on: int

    @property
    def text(self) -> str:
        """Return it as text.

        Example:
            >>> Siblings(ended=1, went_on=2).text
            'the same client in 3 other groups: its session ended with it in 1, went on in 2 (inferred)'
        """
        others = count(self.ended + self.went_on, "other group")
        became = f"its session ended with it in {self.ended}, went on in {self.went_on}"
        return f"the same client in {others}: {became} (inferred)"


def siblings_of(reader: Reader, session: Row, cluster: str, group: str, at_ms: int) -> Siblings | None:
    """Return what became of them; None: there are none, or the client cannot be distinguished from others.

    Args:
        session: Of the member that departed. at_ms: When.
    """
    client_id, host = session.get("client_id"), session.get("host")
    if not client_id or not host:
        return None
    span = session.get("session_timeout_ms") or _SESSION_MS

    def current(rows: pa.Table) -> pa.ChunkedArray:
        joined = pc.less_equal(rows["joined_at"], time_scalar(at_ms - span))
        lasting = pc.or_kleene(rows["left_at"].is_null(), pc.greater_equal(rows["left_at"], time_scalar(at_ms - span)))
        return pc.and_kleene(pc.and_kleene(joined, lasting), pc.not_equal(rows["group_id"], group))

    others = reader.rows("members", where={"cluster": cluster, "client_id": client_id, "host": host}, keep=current)
    if not others:
        return None
    ended = sum(one["left_at"] is not None and one["left_at"] <= at_ms + span for one in others)
    return Siblings(ended, len(others) - ended)
