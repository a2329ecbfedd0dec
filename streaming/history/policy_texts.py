"""Shell: policies as people write them: parts such as `strategy=NAME`, combined with `+`. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import msgspec

from streaming.history.group_rows import GroupRows
from streaming.settings.model import duration_ms
from streaming.settings.suggestions import did_you_mean
from streaming.tables.errors import NotFoundError
from streaming.views import wished_changes
from streaming.views.known_groups import UnknowableError
from udfs.group.assignment.library_choice import COOPERATIVE
from udfs.group.replay.policy import Policy
from udfs.model.clients import host_of
from udfs.model.systems import SYSTEMS, system_of

# By which strategy a group is decided under a protocol. The eager strategy with the balance of the cooperative one is
# sticky; what coordinators of the newer protocol use by themselves is uniform.
PROTOCOLS: Final = {"eager": "kafka.sticky", "cooperative": COOPERATIVE, "consumer": "kafka.server.uniform"}

MOST_MEMBERS: Final = 9_999
MOST_QUEUES: Final = 9_999_999


class PolicyKind(NamedTuple):
    """A kind of policy.

    Attributes:
        name: The name in documents and in tables of settings. form: How it is written. pattern: What its text matches
            as a whole; the groups are its arguments. applied: Adds it to a policy, after checks. is_repeatable: Whether
            several add up.
    """

    name: str
    form: str
    pattern: re.Pattern[str]
    applied: Callable[[Policy, re.Match[str], GroupRows], Policy]
    is_repeatable: bool = False


def policy_of(text: str, rows: GroupRows) -> Policy:
    """Return the policy that a text means for a group.

    Raises:
        NotFoundError: It is no policy, or it names what the group never had.
        UnknowableError: The tables cannot tell what it means, or it means nothing for this group.
    """
    policy, given = Policy(), set()
    for part in _parts(text):
        kind, found = _kind_of(part)
        if kind.name in given and not kind.is_repeatable:
            raise NotFoundError(f"{part}: {kind.name} is given twice; one of them would be without effect")
        given.add(kind.name)
        reason = _meaningless(kind.name, rows)
        if reason is not None:
            raise UnknowableError(f"{part}: {reason}")
        policy = kind.applied(policy, found, rows)
    return policy


def parts_of(text: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield the parts that a text combines: the name of the kind, the text, the strategy or protocol that it names."""
    for part in _parts(text):
        kind, found = _kind_of(part)
        arguments = found.groupdict()
        value = arguments.get("strategy") or arguments.get("protocol")
        yield kind.name, part, _unqualified(value)


def _unqualified(strategy: str | None) -> str | None:
    """Return a strategy without the name of its system."""
    system = None if strategy is None else system_of(strategy)
    return strategy if strategy is None or system is None else strategy.removeprefix(f"{system}.")


def strategies_of(rows: GroupRows) -> list[str]:
    """Return a policy for each strategy of the group's system that needs no settings."""
    return [f"strategy={name}" for name in wished_changes.strategies_of(rows.system)]


def _parts(text: str) -> list[str]:
    # The sign of `members=+2` combines nothing.
    return [part.strip() for part in re.split(r"(?<!=)\+", text)]


def _kind_of(part: str) -> tuple[PolicyKind, re.Match[str]]:
    for kind in KINDS:
        found = kind.pattern.fullmatch(part)
        if found is not None:
            return kind, found
    raise NotFoundError(f"{part!r} is no policy; a policy is {FORM}")


def _meaningless(name: str, rows: GroupRows) -> str | None:
    """Return why a policy means nothing for a group, or None."""
    profile = SYSTEMS[rows.system]
    if name == "static" and not profile.has_static_members:
        return f"{profile.title} has no static members: a client that comes back has the place that its id gives it"
    if name == "join_delay" and not (profile.coordinator_assigns or profile.has_rebalance_loop):
        return f"{profile.title} has no delay: its clients rebalance as soon as ZooKeeper shows them a change"
    if name == "join_delay" and rows.is_reported:
        return "when members asked to join is not recorded, only when their generation began"
    if name == "protocol" and not rows.is_reported:
        return "only the members of a group whose coordinator reports its generations are known to speak a protocol"
    return None


# ---- the kinds


def _strategy(policy: Policy, found: re.Match[str], rows: GroupRows) -> Policy:
    return msgspec.structs.replace(policy, strategy=wished_changes.strategy_named(rows.system, found["strategy"]))


def _queues(policy: Policy, found: re.Match[str], rows: GroupRows) -> Policy:
    topic, number = _topic(found["topic"], rows), _within(found, MOST_QUEUES, least=0)
    queues = {**policy.queues, topic: _number(number, rows, topic)}
    return msgspec.structs.replace(policy, queues=queues)


def _without(policy: Policy, found: re.Match[str], rows: GroupRows) -> Policy:
    return msgspec.structs.replace(policy, without=policy.without | _members(found["who"], rows))


def _static(policy: Policy, found: re.Match[str], rows: GroupRows) -> Policy:
    return _about_members(policy, static=policy.members.static | _members(found["who"] or "*", rows))


def _session_timeout(policy: Policy, found: re.Match[str], _: GroupRows) -> Policy:
    return _about_members(policy, session_timeout_ms=_span(found))


def _graceful(policy: Policy, _: re.Match[str], __: GroupRows) -> Policy:
    return _about_members(policy, is_graceful=True)


def _number_of_members(policy: Policy, found: re.Match[str], rows: GroupRows) -> Policy:
    number = _within(found, MOST_MEMBERS)
    if found["sign"] == "+":
        return _about_members(policy, added=number)
    clients = {session.get("client") or session["member_id"] for session in rows.sessions}
    if number >= len(clients):
        raise NotFoundError(f"{found[0]}: group {rows.group_id} has had only {len(clients)} clients")
    return _about_members(policy, removed=number)


def _join_delay(policy: Policy, found: re.Match[str], _: GroupRows) -> Policy:
    return _about_members(policy, join_delay_ms=_span(found))


def _protocol(policy: Policy, found: re.Match[str], rows: GroupRows) -> Policy:
    if policy.strategy is not None:
        raise NotFoundError(f"{found[0]}: a protocol has its own strategies; give it or a strategy")
    used = {row["strategy"] for row in rows.rebalances}
    strategy = PROTOCOLS[found["protocol"]]
    if found["protocol"] == "eager" and COOPERATIVE not in used:
        return policy  # it is what the group has
    return msgspec.structs.replace(policy, strategy=strategy)


def _about_members(policy: Policy, **fields: object) -> Policy:
    return msgspec.structs.replace(policy, members=msgspec.structs.replace(policy.members, **fields))


KINDS: Final = (
    PolicyKind("strategy", "strategy=NAME", re.compile(r"strategy=(?P<strategy>\S+)"), _strategy),
    PolicyKind("queues", "queues TOPIC=N", re.compile(r"queues (?P<topic>\S+)=(?P<number>\d+)"), _queues, True),
    PolicyKind("without", "without MEMBER|HOST|CLIENT", re.compile(r"without (?P<who>\S+)"), _without, True),
    PolicyKind("static", "static or static=CLIENT", re.compile(r"static(?:=(?P<who>\S+))?"), _static, True),
    PolicyKind(
        "session_timeout", "session_timeout=30s", re.compile(r"session_timeout=(?P<span>\S+)"), _session_timeout
    ),
    PolicyKind("graceful", "graceful", re.compile("graceful"), _graceful),
    PolicyKind("members", "members=+2|-1", re.compile(r"members=(?P<sign>[+-])(?P<number>\d+)"), _number_of_members),
    PolicyKind(
        "protocol",
        "protocol=eager|cooperative|consumer",
        re.compile(r"protocol=(?P<protocol>eager|cooperative|consumer)"),
        _protocol,
    ),
    PolicyKind("join_delay", "join_delay=3s", re.compile(r"join_delay=(?P<span>\S+)"), _join_delay),
)
FORM: Final = f"{', '.join(kind.form for kind in KINDS[:-1])} or {KINDS[-1].form}, combined with +"


def _within(found: re.Match[str], most: int, least: int = 1) -> int:
    number = int(found["number"][:20])
    if not least <= number <= most:
        raise NotFoundError(f"{found[0]}: the number is to be from {least} to {most:,}")
    return number


def _span(found: re.Match[str]) -> int:
    if found["span"].isdecimal():
        raise NotFoundError(f"{found[0]}: a time has a unit: {found['span']}ms, or {found['span']}s")
    try:
        span_ms = duration_ms(found["span"])
    except ValueError as error:
        raise NotFoundError(f"{found[0]}: {error}") from error
    if span_ms == 0:
        raise NotFoundError(f"{found[0]}: a time is longer than nothing")
    return span_ms


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
