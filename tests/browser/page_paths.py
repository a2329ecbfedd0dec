"""One address of each kind of page, whatever tables are shown."""

from __future__ import annotations

from urllib.parse import urlencode

import httpx2

KINDS = (
    *("groups", "group", "rebalances", "rebalance", "member", "members"),
    *("findings", "rejected events", "job", "login", "error"),
)


def paths(url: str) -> dict[str, str]:
    """Return one address of each kind of page."""

    def first(listing: str) -> dict[str, str]:
        found: dict[str, str] = httpx2.get(f"{url}/api/v1/{listing}&limit=1", trust_env=False, timeout=60).json()[
            "rows"
        ][0]
        return found

    group, rebalance = first("groups?sort=-queues"), first("rebalances?since=0&sort=-queues_moved")
    return {
        "groups": "/",
        "group": "/group?" + urlencode({"cluster": group["cluster"], "group": group["group_id"]}),
        "rebalances": "/rebalances?since=0",
        "rebalance": f"/rebalance?id={rebalance['rebalance_id']}",
        "member": "/member?" + urlencode({"member": first("members?open=yes")["member_id"]}),
        "members": "/members",
        "findings": "/findings?open=any",
        "rejected events": "/rejected-events",
        "job": "/job",
        "login": "/login",
        "error": "/findings?open=any&q=nothing%20at%20all%20fits",
    }
