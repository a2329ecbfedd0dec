"""One address of each kind of page, whatever tables are shown."""

from __future__ import annotations

from urllib.parse import urlencode

import httpx2

from dashboard.questions.catalog import questions

KINDS = (
    *("groups", "group", "topic", "rebalances", "rebalance", "member", "client", "host", "members"),
    *("findings", "nothing fits", "search", "rejected events", "job", "questions"),
    *("advice", "advice to a group", "replays", "what if", "what if of all strategies"),
    *(f"question {name}" for name in questions()),
)
# Pages that have nothing to show, and the status with which each of them says so.
ERRORS = {
    "/group?cluster=none&group=none": 404,
    "/no-such-page": 404,
    "/rebalances?colour=red": 400,
    "/group?cluster=none": 400,
}


def paths(url: str) -> dict[str, str]:
    """Return one address of each kind of page; without the page of a host where no member names one, as in MetaQ."""

    def first(listing: str) -> dict[str, str]:
        found: dict[str, str] = httpx2.get(f"{url}/api/v1/{listing}&limit=1", trust_env=False, timeout=60).json()[
            "rows"
        ][0]
        return found

    group, rebalance = first("groups?sort=-queues"), first("rebalances?since=0&sort=-queues_moved")
    span = first("assignments?open=yes")
    member = first("members?open=yes")
    changed = {"cluster": group["cluster"], "group": group["group_id"]}
    needed = {"topic": span["topic"], "queue": span["queue_id"]}
    return {
        "groups": "/",
        "group": "/group?" + urlencode({"cluster": group["cluster"], "group": group["group_id"]}),
        "topic": "/topic?" + urlencode({"cluster": span["cluster"], "topic": span["topic"]}),
        "rebalances": "/rebalances?since=0",
        "rebalance": f"/rebalance?id={rebalance['rebalance_id']}",
        "member": "/member?" + urlencode({"member": member["member_id"]}),
        "client": "/client?" + urlencode({"client": member["client"]}),
        **({} if member["address"] is None else {"host": "/host?" + urlencode({"host": member["address"]})}),
        "members": "/members",
        "findings": "/findings?open=any",
        "nothing fits": "/findings?open=any&q=nothing%20at%20all%20fits",
        "search": "/search?" + urlencode({"q": group["group_id"][:4]}),
        "rejected events": "/rejected-events",
        "job": "/job",
        "questions": "/questions",
        "advice": "/advice",
        "advice to a group": "/advice?" + urlencode({"cluster": group["cluster"], "group_id": group["group_id"]}),
        "replays": "/replays",
        "what if": "/what-if?" + urlencode(changed | {"add": 1, "remove": 1}),
        "what if of all strategies": "/what-if?" + urlencode(changed | {"strategy": "all"}),
        **{
            f"question {name}": f"/questions/{name}"
            + (f"?{urlencode(needed)}" if "topic" in question.parameters and "queue" in question.parameters else "")
            for name, question in questions().items()
        },
    }
