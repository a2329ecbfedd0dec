"""Dashboard: the findings that name a client or a member."""

from __future__ import annotations

from collections.abc import Collection

from dashboard.reading.listing_query import plain_rows
from dashboard.reading.problems import NAMED
from dashboard.reading.questions import Reading
from streaming.tables.schema import Row
from streaming.views.related_findings import with_ways

MOST = 20
_NAMING = """
select * from found
where list_has_any(list_transform(coalesce(clients, []), lambda part: part.client), ?)
    or list_has_any(list_transform(coalesce(members, []), lambda part: part.client), ?)
    or list_has_any(list_transform(coalesce(members, []), lambda part: part.member_id), ?)
    or list_has_any(list_transform(coalesce(queues, []), lambda part: part.member_id), ?)
order by closed_at is not null, opened_at desc, finding_id limit ?
"""


def naming_findings(
    reading: Reading, clusters: Collection[str], clients: Collection[str], members: Collection[str]
) -> list[Row]:
    """Return the findings that name one of these clients or members, the open ones in front, then the newest.

    Returns: at most ``MOST``, with their ways, see ``with_ways``.
    """
    found = reading.tables.read("findings", where={"cluster": {*clusters}})
    names = [[*clients] or [""], [*clients] or [""], [*members] or [""], [*members] or [""], MOST]
    return with_ways(reading.tables, plain_rows(reading.sql(_NAMING, {"found": found}, names)), NAMED)
