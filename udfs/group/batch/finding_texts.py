"""Core: names of queues, members and clients in the sentences of findings, the first few of each. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from udfs.model.finding_names import NOT_SUBSCRIBED, NamedClient, NamedMember, NamedQueue

# A sentence names at most this many of each; a finding's data has more.
NAMED_AT_MOST = 3
_RUNS_AT_MOST = 6
_BY_DASH = 3  # from this many on, consecutive queues are written as a range


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s in the plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def phrase(number: int, singular: str, plural: str, *rest: int) -> str:
    """Return the sentence for one or for many, with the number filled in."""
    return (singular if number == 1 else plural).format(number, *rest)


def named(names: Sequence[str], total: int | None = None) -> str:
    """Return names as a list; beyond the first few, only how many more there are.

    Args:
        total: How many there are if ``names`` are only the first of them.

    Example:
        >>> named(["a"]), named(["a", "b"]), named(["a", "b", "c"], 17)
        ('a', 'a and b', 'a, b, c and 14 more')
    """
    shown = names[:NAMED_AT_MOST]
    more = (len(names) if total is None else total) - len(shown)
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def members_text(members: Sequence[NamedMember], total: int, shown: Mapping[str, str]) -> str:
    """Name members as they are shown in sentences."""
    return named([shown.get(member.member_id, member.member_id) for member in members], total)


def clients_text(clients: Sequence[NamedClient], total: int, rebalances: int, version: str | None = None) -> str:
    """Name the clients and how many of the rebalances each caused.

    Args:
        total: The number of clients. version: Of the first client, if it reports one.

    Example:
        >>> clients_text([NamedClient("a", 14), NamedClient("b", 2)], 2, 16, "3.7.0")
        'a (version 3.7.0) caused 14 of 16, b 2'
    """
    first, *others = clients[:NAMED_AT_MOST]
    name = first.client if version is None else f"{first.client} (version {version})"
    text = f"{name} caused {first.rebalances} of {rebalances}"
    text += "".join(f", {client.client} {client.rebalances}" for client in others)
    more = total - 1 - len(others)
    return f"{text}, {counted(more, 'other client')} the rest" if more > 0 else text


def queues_text(queues: Iterable[NamedQueue], total: int | None = None) -> str:
    """Return queues as Kafka's tools name them, grouped by topic.

    Args:
        total: How many there are if ``queues`` are only the first of them.

    Example:
        >>> queues_text([NamedQueue("pay", "broker-b", 1), NamedQueue("pay", "broker-b", 2)])
        'pay@broker-b-1 and -2'
        >>> queues_text([NamedQueue("t", None, queue_id) for queue_id in (0, 1, 2, 5)], 18)
        't-0 to -2, t-5 and 14 more'
    """
    runs: list[tuple[str, list[int]]] = []
    number = 0
    for queue in queues:
        number += 1
        place = queue.topic if queue.broker is None else f"{queue.topic}@{queue.broker}"
        if runs and runs[-1][0] == place and runs[-1][1][-1] + 1 == queue.queue_id:
            runs[-1][1].append(queue.queue_id)
        else:
            runs.append((place, [queue.queue_id]))
    texts = [_run(place, ids) for place, ids in runs[:_RUNS_AT_MOST]]
    more = (number if total is None else total) - sum(len(ids) for _, ids in runs[:_RUNS_AT_MOST])
    return f"{', '.join(texts)} and {more} more" if more > 0 else ", ".join(texts)


def _run(place: str, ids: Sequence[int]) -> str:
    if ids[0] < 0:
        return place  # a topic that is shared by message has no queue numbers
    first, others = f"{place}-{ids[0]}", ids[1:]
    if not others:
        return first
    return f"{first} to -{others[-1]}" if len(ids) >= _BY_DASH else f"{first} and -{others[-1]}"


def ownerless_text(queues: Sequence[NamedQueue], strategy: str, shown: Mapping[str, str]) -> str:
    """Explain why queues have no owner, as an additional sentence; empty if unknown."""
    groups: dict[tuple[str, str | None], list[NamedQueue]] = {}
    for queue in queues:
        if queue.member_id is not None:
            groups.setdefault((queue.member_id, queue.reason), []).append(queue)
    sentences = []
    for (member_id, reason), some in list(groups.items())[:NAMED_AT_MOST]:
        them = queues_text(some) if len(some) < len(queues) else "them" if len(some) > 1 else "it"
        topics = named(sorted({queue.topic for queue in some}))
        why = f"does not subscribe to {topics}" if reason == NOT_SUBSCRIBED else f"does not own {them}"
        sentences.append(f"{strategy} assigns {them} to {shown.get(member_id, member_id)}, which {why}")
    if len(groups) > NAMED_AT_MOST:
        sentences.append(f"others to {counted(len(groups) - NAMED_AT_MOST, 'more member')}")
    return f" {'; '.join(sentences)}." if sentences else ""


def differing_text(queues: Sequence[NamedQueue], total: int, shown: Mapping[str, str]) -> str:
    """Describe the queues whose actual owner differs from the computed one."""
    groups: dict[tuple[tuple[str, ...], str | None], list[NamedQueue]] = {}
    for queue in queues:
        groups.setdefault((queue.owners, queue.member_id), []).append(queue)
    texts, number = [], 0
    for (owners, member_id), some in list(groups.items())[:NAMED_AT_MOST]:
        number += len(some)
        held = named([shown.get(owner, owner) for owner in owners]) or "nobody"
        due = "nobody" if member_id is None else shown.get(member_id, member_id)
        texts.append(f"{queues_text(some)}: {held} instead of {due}")
    more = total - number
    return f"{'; '.join(texts)}; and {more} more" if more > 0 else "; ".join(texts)


def differing_sentence(queues: Sequence[NamedQueue], total: int, shown: Mapping[str, str]) -> str:
    """Return which queues have no owner, several owners, or another owner than computed; without a full stop.

    Args:
        queues: The first of the differing queues, with their computed and their reported owners; at least one.
        total: Number of all differing queues. shown: The members' names in sentences, by their ids.

    Example:
        >>> without, other = NamedQueue("t", None, 0, "a"), NamedQueue("t", "b", 1, "a", None, ("b",))
        >>> differing_sentence([without], 1, {})
        '1 queue has no owner, though the strategy gives it one: t-0: nobody instead of a'
        >>> differing_sentence([other], 7, {})
        '1 queue has another owner than the strategy computes: t@b-1: b instead of a; and 6 more queues differ'
    """
    parts = [
        _part(
            [queue for queue in queues if not queue.owners],
            "has no owner, though the strategy gives it one",
            "have no owner, though the strategy gives one",
            shown,
        ),
        _part([queue for queue in queues if len(queue.owners) > 1], "has several owners", "have several owners", shown),
        _part(
            [queue for queue in queues if len(queue.owners) == 1],
            "has another owner than the strategy computes",
            "have other owners than the strategy computes",
            shown,
        ),
    ]
    more = total - len(queues)
    left = f"and {more} more queues differ" if more > 1 else "and one more queue differs" if more else ""
    return "; ".join(part for part in (*parts, left) if part)


def _part(queues: Sequence[NamedQueue], singular: str, plural: str, shown: Mapping[str, str]) -> str:
    if not queues:
        return ""
    number = f"1 queue {singular}" if len(queues) == 1 else f"{len(queues)} queues {plural}"
    return f"{number}: {differing_text(queues, len(queues), shown)}"
