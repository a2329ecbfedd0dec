"""Dashboard: the page of a search, from which the field in the header of every page takes its hits."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from dashboard.pages.page_addresses import (
    RANGE,
    address,
    client_address,
    finding_address,
    group_address,
    host_address,
    member_address,
    rebalance_address,
    topic_address,
)
from dashboard.pages.page_routes import NO_RANGE, page
from dashboard.reading.listing_query import refuse_others
from dashboard.reading.questions import Reading
from dashboard.reading.search import LONGEST, SHORTEST, Hit, queue_parts, search
from dashboard.reading.time_range import TimeRange

router = APIRouter(include_in_schema=False)

# Of each kind.
MOST = 25


@router.get("/search")
def search_page(request: Request, q: Annotated[str, Query(max_length=LONGEST)] = "") -> Response:
    """Show what has a text in its name."""
    refuse_others((key for key, _ in request.query_params.multi_items()), ("q", *RANGE), "this page")

    def compute(reading: Reading, _: TimeRange) -> dict[str, Any]:
        hits = search(reading, q, MOST)
        of_kind = {hit.kind: sum(other.kind == hit.kind for other in hits) for hit in hits}
        return NO_RANGE | {
            "q": q,
            "hits": [(hit, address_of(hit)) for hit in hits],
            "is_short": len(q.strip()) < SHORTEST,
            "cut": [kind for kind, number in of_kind.items() if number >= MOST],
            "most": MOST,
        }

    return page(request, "search.html", compute)


def address_of(hit: Hit) -> str:
    """Return the address of the page that shows a hit."""
    match hit.kind:
        case "group":
            return group_address(hit.cluster, hit.id)
        case "member":
            return member_address(hit.id, hit.cluster)
        case "client":
            return client_address(hit.id, hit.cluster)
        case "host":
            return host_address(hit.id, hit.cluster)
        case "rebalance":
            return rebalance_address(hit.id)
        case "topic":
            return topic_address(hit.id, hit.cluster)
        case "queue":
            topic, broker, number = queue_parts(hit.id) or (hit.id, "", 0)
            return address("/topic", cluster=hit.cluster, topic=topic, broker=broker, queue=number)
        case "finding":
            return finding_address(hit.id)
