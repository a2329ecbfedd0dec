"""Shell: the members of a RocketMQ group, by the lists of all brokers, with their own reports. Pure.

A broker that lists a member is evidence for it; a broker that does not is evidence against it only if it answered and
has had time for its members' heartbeats since it started.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from streaming.collectors.rocketmq.diffing.remembered import GroupEvidence, RememberedMember
from streaming.collectors.rocketmq.options import RETRY_PREFIX, RocketMqOptions
from streaming.collectors.rocketmq.polling.survey import ObservedMember
from streaming.collectors.rocketmq.remoting.messages import MemberConnection, RunningInfo
from udfs.model.events import Departure, MemberInfo
from udfs.strategies.rocketmq.java_classes import strategy_of

# In MQVersion, from V4_0_0_SNAPSHOT on, each release has two ordinals, its snapshot's and its own; a minor version has
# ten patches.
_FIRST_ORDINAL: Final = 212
_FIRST_MAJOR: Final = 4
_MINORS_TO_A_MAJOR: Final = 10
_PATCHES_TO_A_MINOR: Final = 10
# This many recent failed requests in a row make a member's departure an expiry; if the member is stuck, one is enough.
_SILENCES: Final = 2
_SILENT_WITHIN_MS: Final = 180_000


def version_name(ordinal: int) -> str | None:
    """Return the name of a client's version; None before 4.0, whose numbering is irregular.

    Example:
        >>> version_name(395), version_name(513), version_name(412)
        ('V4_9_1', 'V5_5_0', 'V5_0_0_SNAPSHOT')
    """
    number, is_release = divmod(ordinal - _FIRST_ORDINAL, 2)
    if number < 0:
        return None
    rest, patch = divmod(number, _PATCHES_TO_A_MINOR)
    major, minor = divmod(rest, _MINORS_TO_A_MAJOR)
    return f"V{_FIRST_MAJOR + major}_{minor}_{patch}" + ("" if is_release else "_SNAPSHOT")


def connected(
    remembered: Sequence[RememberedMember], evidence: GroupEvidence
) -> tuple[tuple[RememberedMember, ...], tuple[RememberedMember, ...]]:
    """Return the current members, sorted, and the departed ones.

    A client has one connection to each broker, each from another port; two members with one client id have two. So the
    broker with the most connections of an id decides how many members use it, and a member keeps its previous address
    as long as any broker lists that, or a broker that had listed the member cannot be polled.

    Proxies send each other their lists, and keep the connection of a client that has moved until it expires there. So
    the connections of an id that only proxies list are one member.

    Args:
        remembered: The members of the previous round. evidence: The lists, and the servers whose silence is evidence.
    """
    by_id: dict[str, dict[str, list[MemberConnection]]] = {}
    for broker in sorted(evidence.lists):
        listed = evidence.lists[broker]
        for connection in listed.connections if listed is not None else ():
            if not connection.client_id:
                continue  # a member without an id cannot be reported
            by_id.setdefault(connection.client_id, {}).setdefault(broker, []).append(connection)
    before: dict[str, list[RememberedMember]] = {}
    for member in remembered:
        before.setdefault(member.client_id, []).append(member)
    members: list[RememberedMember] = []
    departed: list[RememberedMember] = []
    for client_id in by_id.keys() | before.keys():
        now, left = _of_one_id(before.get(client_id, []), by_id.get(client_id, {}), evidence)
        members += now
        departed += left
    return tuple(sorted(members, key=_order)), tuple(sorted(departed, key=_order))


def _of_one_id(
    remembered: list[RememberedMember], listed: Mapping[str, list[MemberConnection]], evidence: GroupEvidence
) -> tuple[list[RememberedMember], list[RememberedMember]]:
    listed_at = {connection.client_addr: connection for connections in listed.values() for connection in connections}
    count = max(
        (1 if server in evidence.proxies else len(connections) for server, connections in listed.items()), default=0
    )
    # Members whose address is still listed come first.
    ordered = sorted(remembered, key=lambda member: member.info.host not in listed_at)
    staying, missing = ordered[:count], ordered[count:]
    found = [listed_at.get(member.info.host or "") for member in staying]
    free = _free(listed, [connection.client_addr for connection in found if connection is not None])
    members = [
        _listed(member, connection or free.pop(0), listed, evidence)
        for member, connection in zip(staying, found, strict=True)
    ]
    members += [_listed(None, free.pop(0), listed, evidence) for _ in range(count - len(staying))]
    departed: list[RememberedMember] = []
    for member in missing:
        were = member.listed_by.items()
        is_unknown = any(evidence.is_doubted(*listing) for listing in were) and not any(
            evidence.is_against(*listing) for listing in were
        )
        (members if is_unknown else departed).append(member)
    return members, departed


def _free(listed: Mapping[str, list[MemberConnection]], taken: Sequence[str]) -> list[MemberConnection]:
    """Return the unmatched connections of the broker with the most, among equals with the most matched ones."""
    if not listed:
        return []

    def rank(broker: str) -> tuple[int, int, str]:
        connections = listed[broker]
        return -len(connections), -sum(connection.client_addr in taken for connection in connections), broker

    free = sorted(listed[min(listed, key=rank)], key=lambda connection: connection.client_addr)
    for address in taken:
        mine = next((connection for connection in free if connection.client_addr == address), None)
        if mine is not None:
            free.remove(mine)
    return free


def _listed(
    member: RememberedMember | None,
    connection: MemberConnection,
    listed: Mapping[str, list[MemberConnection]],
    evidence: GroupEvidence,
) -> RememberedMember:
    before = member.listed_by if member is not None else {}
    listed_by = {broker: evidence.boots.get(broker, before.get(broker, 0)) for broker in sorted(listed)}
    doubted = {
        broker: boot_ms
        for broker, boot_ms in before.items()
        if broker not in listed and evidence.is_doubted(broker, boot_ms)
    }
    listed_by |= doubted
    if member is None:
        info = MemberInfo(member_id=connection.client_id, client_id=connection.client_id)
        member = RememberedMember(info=info)
    info = member.info
    # What a proxy reports of a gRPC client is its own version.
    version = None if listed.keys() <= evidence.proxies else version_name(connection.version)
    # Its previous address may belong to a broker that cannot be polled now.
    host = info.host if doubted and info.host else connection.client_addr
    reported = {"host": host, "client_version": version, "language": connection.language}
    if any(value is not None and getattr(info, name) != value for name, value in reported.items()):
        info = msgspec.structs.replace(info, **{name: value for name, value in reported.items() if value is not None})
    if info is member.info and listed_by == member.listed_by:
        return member
    return msgspec.structs.replace(member, info=info, listed_by=listed_by)


def _order(member: RememberedMember) -> tuple[str, str]:
    return member.client_id, member.info.host or ""


def described(member: RememberedMember, observed: ObservedMember, options: RocketMqOptions) -> RememberedMember:
    """Return a member with its own report, if it has one, without its queues."""
    info = observed.info
    if info is None:
        since_ms = member.failing_since_ms if member.failures else observed.at_ms
        return msgspec.structs.replace(
            member,
            failures=member.failures + 1,
            failing_since_ms=since_ms,
            failed_ms=observed.at_ms,
            failure=observed.failure,
        )
    strategy = strategy_of(info.strategy) if info.strategy is not None else None
    reported = {
        "subscriptions": followed((subscription.topic for subscription in info.subscriptions), options),
        "strategies": (strategy,) if strategy is not None else None,
        "ordered": info.is_ordered,
        "client_version": member.info.client_version or info.client_version,
    }
    changed = {
        name: value for name, value in reported.items() if value is not None and getattr(member.info, name) != value
    }
    after = msgspec.structs.replace(
        member,
        info=msgspec.structs.replace(member.info, **changed) if changed else member.info,
        is_described=True,
        failures=0,
        failing_since_ms=0,
        failed_ms=0,
        failure=None,
        is_stuck=False,
        message_model=info.message_model,
        is_client_rebalance=info.is_client_rebalance,
        pops=_pops(info),
    )
    return member if after == member else after


def watched(member: RememberedMember, listed: Collection[str], began_ms: int) -> RememberedMember:
    """Return a member that did not answer but is listed afterwards: connected and stuck.

    A member killed mid-request also fails to reply, but drops off the broker's list.

    Args:
        listed: Client ids, in a round that began at ``began_ms``.
    """
    if member.is_stuck or not member.is_silent or member.failed_ms > began_ms or member.client_id not in listed:
        return member
    return msgspec.structs.replace(member, is_stuck=True)


def _pops(info: RunningInfo) -> bool:
    return any(not queue.topic.startswith(RETRY_PREFIX) for queue in info.pop_queues)


def by_table(member: RememberedMember, topics: tuple[str, ...]) -> RememberedMember:
    """Return a member without its own report with the subscriptions of its group."""
    if member.is_described or not topics or member.info.subscriptions == topics:
        return member
    return msgspec.structs.replace(member, info=msgspec.structs.replace(member.info, subscriptions=topics))


def followed(topics: Iterable[str], options: RocketMqOptions) -> tuple[str, ...]:
    """Return the topics that are followed, sorted, each once."""
    return tuple(sorted({topic for topic in topics if options.follows_topic(topic)}))


def departure(member: RememberedMember, at_ms: int, restarted: Collection[str], evidence: GroupEvidence) -> Departure:
    """Return how a member departed, as far as that can be inferred, and the evidence.

    A killed process closes its connection at once, like one that is shut down; only a hung process is dropped by its
    brokers, by default 120 s after its last heartbeat, and does not answer before.

    Args:
        restarted: Brokers and proxies that restarted a while ago and have had time for its heartbeat since.
    """
    restarted = sorted(member.listed_by.keys() & set(restarted))
    is_proven = member.failures >= _SILENCES or member.is_stuck
    if member.is_silent and is_proven and at_ms - member.failed_ms <= _SILENT_WITHIN_MS:
        times = "once" if member.failures == 1 else f"{member.failures} times"
        text = (
            f"queried {times} since {time_text(member.failing_since_ms)}, it did not answer though connected; then "
            "its connection was closed"
        )
        return Departure(member_id=member.client_id, kind="expired", host=member.info.host, evidence=text)
    if member.is_behind(evidence.proxies):
        text = _departure_text(member, restarted)
    elif not member.listed_by.keys() & evidence.brokers:
        text = f"{_names(member.listed_by)} listed it and is not followed any more"
    elif restarted:
        text = f"it did not reconnect to {_names(restarted)} after the broker had restarted"
    elif member.is_described and not member.failures:
        text = "it answered, and then its connection was closed: a killed process looks like one that was shut down"
    else:
        text = "its connection was closed"
    return Departure(member_id=member.client_id, kind="gone", host=member.info.host, evidence=text, inferred=False)


def _departure_text(member: RememberedMember, restarted: Collection[str]) -> str:
    """Return the evidence that a client of proxies departed."""
    if restarted:
        return f"it did not connect again after proxy {_names(restarted)} had been away"
    return (
        f"it is no longer listed by proxy {_names(member.listed_by)}: it was shut down, or it was killed or"
        " hung two minutes before"
    )


def _names(servers: Iterable[str]) -> str:
    return ", ".join(sorted(servers))


def time_text(time_ms: int) -> str:
    """Write a time as RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
