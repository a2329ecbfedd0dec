"""Core: findings that only a source can make, from the observations in its snapshots. No I/O.

They stay open until a snapshot comes without them.
"""

from __future__ import annotations

from collections.abc import Sequence

from udfs.group.batch.findings import MAX_DETAIL_LENGTH, Found, Severity, of_members
from udfs.model.finding_names import NamedMember

# The most observations of one snapshot, in the order of their kinds.
MAX_OBSERVATIONS = 64

# A source's observation: kind, severity, message, advice; the source's detail follows the message.
OBSERVED: dict[str, tuple[Severity, str, str]] = {
    "brokers_disagree": (
        "warning",
        "Brokers return different member lists; clients may compute different assignments.",
        "It closes once all clients have sent heartbeats to all brokers (30 s). If it stays open, check for a client"
        " that cannot reach a broker.",
    ),
    "changes_missed": (
        "warning",
        "The group changed more often than it was polled: rebalances in between are unknown.",
        "Check for members that join and leave within seconds, and for a source that was not read for a while.",
    ),
    "duplicate_unreachable": (
        "warning",
        "Two connections use the same client id: only one of them can be queried for its queues.",
        "Give each consumer a unique client id (instance name, or one address for each process).",
    ),
    "members_unseen": (
        "warning",
        "The group has members that the brokers do not list, such as clients behind a proxy.",
        "Name the proxies in rocketmq.proxies, so that their clients are followed. Until then the monitor guesses"
        " neither members nor queues.",
    ),
    "not_polled": (
        "warning",
        "Not every server answered for the group in time: what is reported of it is older than one poll interval.",
        "Start again what is named as away. If nothing is, raise the poll interval, or exclude groups that need not be"
        " monitored.",
    ),
    "running_info_missing": (
        "warning",
        "Members do not report their queues: they hang, or their client does not support the query.",
        "Check those processes; a broker drops a client that sends no heartbeat for two minutes.",
    ),
    "static_topic": (
        "info",
        "The topic is static: its queues are logical, and their brokers are not those that store the messages.",
        "No action is needed.",
    ),
    "unreadable_nodes": (
        "warning",
        "The content of some of the group's nodes cannot be parsed: those members or owners are left out.",
        "Check which program writes them: another client version, or another program under the same root.",
    ),
    "subscriptions_flap": (
        "critical",
        "Members of the group overwrite each other's subscription at the broker with every heartbeat.",
        "Subscribe all consumers of the group to the same topics with the same expressions.",
    ),
}


def observed(kind: str, details: Sequence[str], event_id: str, members: Sequence[NamedMember] = ()) -> Found:
    """Return the finding of an observation; an unknown kind is reported by its name.

    Args:
        details: The source's details, distinct, in order. members: Members that the source names, in order.
    """
    text = "; ".join(details)
    text = text if len(text) <= MAX_DETAIL_LENGTH else text[: MAX_DETAIL_LENGTH - 1] + "…"
    severity, sentence, advice = OBSERVED.get(
        kind, ("info", f"The source reports: {kind:.100}.", "See the source's documentation.")
    )
    message = f"{sentence} {text}" if text else sentence
    return Found(severity=severity, message=message, advice=advice, evidence=(event_id,), **of_members(members))
