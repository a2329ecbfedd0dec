"""Dashboard: one group with its members and their queues, its offsets, rebalances, audits and findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dashboard.reading.listing_query import Piece, piece
from dashboard.reading.listings import AUDITS, FINDINGS, GROUPS, MEMBERS, REBALANCES
from dashboard.reading.questions import ALL_ROWS, Reading
from streaming.tables.schema import Row
from streaming.views.group_sources import group_sources
from streaming.views.members import with_current_assignment
from streaming.views.name_checks import one_group
from streaming.views.progress import progress

_OFFSETS_FROM = ("queue_progress", "groups", "members", "assignments", "topics")


class GroupDetail(NamedTuple):
    """The current state of one group.

    Attributes:
        members: As its coordinator has them now, from ``with_current_assignment``.
        progress: Its offsets in each queue.
        rebalances, audits: The newest ones.
        findings: The open ones.
        source: Where the groups of its cluster come from, and why; None if there was no choice.
    """

    group: Row
    members: list[Row]
    progress: list[Row]
    rebalances: Piece
    audits: Piece
    findings: Piece
    source: str | None


def offsets_of(reading: Reading, group: Row, members: Sequence[Row]) -> list[Row]:
    """Return a group's ``progress``, computed once for each version of the tables.

    Args:
        group: Its row in ``groups``. members: Its current ones.
    """

    def compute() -> bytes:
        return msgspec.json.encode(progress(reading.tables, group, members))

    key = ("offsets", group["cluster"], group["group_id"])
    found: list[Row] = msgspec.json.decode(reading.kept(key, _OFFSETS_FROM, compute))
    return found


def group_detail(reading: Reading, name: str, cluster: str | None = None, *, last: int, most: int) -> GroupDetail:
    """Return one group.

    Args:
        cluster: None for the only one that has a group of this name.
        last: The number of rebalances and audits. most: The number of findings.

    Raises:
        NotFoundError, AmbiguousError: See ``one_group``.
    """
    cluster = one_group(reading.tables, name)["cluster"] if cluster is None else cluster
    of_group = {"cluster": cluster, "group_id": name}
    found = piece(reading, GROUPS, of_group, limit=1).rows
    group = found[0] if found else one_group(reading.tables, name, cluster)
    present = with_current_assignment(group, current_members(reading, cluster, name))
    return GroupDetail(
        group=group,
        members=present,
        progress=offsets_of(reading, group, present),
        rebalances=piece(reading, REBALANCES, of_group, limit=last),
        audits=piece(reading, AUDITS, of_group, limit=last),
        findings=piece(reading, FINDINGS, {**of_group, "open": "yes"}, limit=most),
        source=group_sources(reading.tables).get(cluster),
    )


def current_members(reading: Reading, cluster: str, group: str) -> list[Row]:
    """Return the current members of a group, with their queues, by id."""
    chosen = {"cluster": cluster, "group_id": group, "open": "yes"}
    return piece(reading, MEMBERS, chosen, sort="cluster", limit=ALL_ROWS, is_whole=True).rows
