"""Shell: policies as people write them: `strategy=NAME`, `queues TOPIC=N`, `without WHO`, combined with `+`. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from streaming.history.group_rows import GroupRows
from streaming.settings.suggestions import did_you_mean
from streaming.tables.errors import NotFoundError
from streaming.views.known_groups import UnknowableError
from streaming.views.wished_changes import NEEDS_SETTINGS, strategy_named
from udfs.group.replay.policy import Policy
from udfs.model.clients import host_of
from udfs.model.systems import SYSTEMS
from udfs.strategies.registry import names

_PART: Final = re.compile(r"strategy=(?P<strategy>\S+)|queues (?P<topic>\S+)=(?P<number>\d{1,7})|without (?P<who>\S+)")
FORM: Final = "strategy=NAME, queues TOPIC=N or without MEMBER|HOST|CLIENT, combined with +"


def policy_of(text: str, rows: GroupRows) -> Policy:
    """Return the policy that a text means for a group.

    Raises:
        NotFoundError: It is no policy, or it names what the group never had.
        UnknowableError: The tables cannot tell what it means.
    """
    policy = Policy()
    for part in text.split("+"):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise NotFoundError(f"{part.strip()!r} is no policy; a policy is {FORM}")
        if found["strategy"]:
            policy = msgspec.structs.replace(policy, strategy=strategy_named(rows.system, found["strategy"]))
        elif found["topic"]:
            queues = {
                **policy.queues,
                _topic(found["topic"], rows): _number(int(found["number"]), rows, found["topic"]),
            }
            policy = msgspec.structs.replace(policy, queues=queues)
        else:
            policy = msgspec.structs.replace(policy, without=policy.without | _members(found["who"], rows))
    return policy


def strategies_of(rows: GroupRows) -> list[str]:
    """Return a policy for each strategy of the group's system that needs no settings."""
    of_system = [name for name in names() if name.startswith(f"{rows.system}.") and name not in NEEDS_SETTINGS]
    return [f"strategy={name.partition('.')[2]}" for name in of_system]


def _topic(name: str, rows: GroupRows) -> str:
    topics = sorted({row["topic"] for row in rows.topics})
    if name not in topics:
        meant = did_you_mean(name, topics) or (f"; it had {', '.join(topics[:5])}" if topics else "")
        raise NotFoundError(f"group {rows.group_id} never subscribed to a topic {name} with known queues{meant}")
    return name


def _number(number: int, rows: GroupRows, topic: str) -> int:
    if number == 0:
        raise NotFoundError(f"queues {topic}=0: a topic that exists has at least one queue")
    counts = [row["queue_count"] for row in rows.topics if row["topic"] == topic]
    if not SYSTEMS[rows.system].counts_queues_per_broker and number < min(counts):
        raise UnknowableError(f"topic {topic} had {min(counts)} queues: partitions cannot be taken away")
    return number


def _members(who: str, rows: GroupRows) -> frozenset[str]:
    found = {
        session["member_id"] for session in rows.sessions if any(fnmatchcase(name, who) for name in _names(session))
    }
    if not found:
        named = sorted({name for session in rows.sessions for name in _names(session)})
        raise NotFoundError(f"group {rows.group_id} never had a member, host or client {who}{did_you_mean(who, named)}")
    return frozenset(found)


def _names(session: dict[str, object]) -> Iterable[str]:
    host = host_of(str(session["host"])) if session.get("host") else None
    values = (session["member_id"], session.get("client"), session.get("client_id"), session.get("instance_id"), host)
    return (str(value) for value in values if value)
