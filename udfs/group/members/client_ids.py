"""Core: the member id of each connection: two live connections may use one client id. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from udfs.group.state.group import Group, Member
from udfs.model.events import Departure, GroupSnapshot, MemberInfo


def resolve_member_id(group: Group, client: str, host: str | None) -> tuple[str, str]:
    """Return the member id and the client id of the reporting member.

    The first live connection has the plain id, others ``id#2``, ``id#3``: the lowest free number.
    """
    plain = group.members.get(client)
    if plain is not None and (host is None or plain.host is None or plain.host == host):
        return client, plain.name
    if host is None:
        return client, client
    for member in group.members.values():
        if member.name == client and member.host == host:
            return member.member_id, client
    return _free_id(group.members.keys(), client), client


def match_connections(group: Group, infos: Iterable[MemberInfo]) -> dict[str, MemberInfo]:
    """Return the member id of each entry of a snapshot, in the order of the snapshot.

    Entries first match the member of their id and address; the rest match remaining members of their id, by address.
    """
    entries = list(infos)
    by_client: dict[str, list[MemberInfo]] = {}
    for info in entries:
        by_client.setdefault(info.member_id, []).append(info)
    if all(len(same) == 1 for same in by_client.values()) and all(m.name == i for i, m in group.members.items()):
        return {info.member_id: info for info in entries}
    ids: dict[int, str] = {}
    for client, same in by_client.items():
        live = sorted((m for m in group.members.values() if m.name == client), key=_number)
        left = sorted(same, key=lambda info: info.host or "")
        for info in list(left):
            mine = next((member for member in live if member.host == info.host), None)
            if mine is not None:
                ids[id(info)] = mine.member_id
                live.remove(mine)
                left.remove(info)
        taken = {ids[id(info)] for info in same if id(info) in ids}
        for info in left:
            chosen = live.pop(0).member_id if live else _free_id(taken, client)
            ids[id(info)] = chosen
            taken.add(chosen)
    return {ids[id(info)]: info for info in entries}


def reporting_member(group: Group, member_id: str, host: str | None) -> Member | None:
    """Return the member that reports under an id and, if given, from an address.

    An id that only one live connection uses belongs to that connection, whatever its address: clients reconnect.
    """
    if host is None:
        return group.members.get(member_id)
    live = [member for member in group.members.values() if member.name == member_id]
    if len(live) == 1:
        return live[0]
    return next((member for member in live if member.host == host), None if live else group.members.get(member_id))


def replaced(group: Group, snapshot: GroupSnapshot) -> dict[str, Departure]:
    """Return members whose departure is reported by address while the snapshot has their id at another address."""
    if not snapshot.departures:
        return {}
    shown = {(info.member_id, info.host) for info in snapshot.members}
    names = {name for name, _ in shown}
    reported: dict[tuple[str, str | None], Departure] = {
        (departure.member_id, departure.host): departure
        for departure in snapshot.departures
        if departure.host is not None
    }
    return {
        member.member_id: reported[member.name, member.host]
        for member in group.members.values()
        if member.name in names and (member.name, member.host) in reported.keys() - shown
    }


def match_departures(departed: Sequence[Member], reported: Iterable[Departure]) -> dict[str, Departure]:
    """Return the reported cause, if any, of each departure; each report concerns one connection.

    Args:
        departed: In the order in which reports without an address are matched.
    """
    matched: dict[str, Departure] = {}
    hosts = {(member.name, member.host) for member in departed}
    # Reports with an address come first, because others may concern any connection.
    for departure in sorted(reported, key=lambda report: (report.member_id, report.host) not in hosts):
        same = [member for member in departed if departure.member_id in (member.name, member.member_id)]
        left = [member for member in same if member.member_id not in matched]
        if departure.host is not None and any(member.host == departure.host for member in same):
            left = [member for member in left if member.host == departure.host]
        elif departure.host is not None and len(left) > 1:
            continue  # an unknown address is accepted as long as only one connection matches
        if left:
            matched[left[0].member_id] = departure
    return matched


def _number(member: Member) -> int:
    tail = member.member_id[len(member.name) + 1 :]
    return int(tail) if tail.isdigit() else 1


def _free_id(taken: Iterable[str], client: str) -> str:
    used = set(taken)
    if client not in used:
        return client
    number = 2
    while f"{client}#{number}" in used:
        number += 1
    return f"{client}#{number}"
