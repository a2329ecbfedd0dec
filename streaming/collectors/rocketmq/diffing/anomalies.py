"""Shell: problems of a RocketMQ group that its brokers show and that have no event of their own. Pure.

``udfs.group.batch.observed_findings`` knows the kinds. While nothing changes, each poll reports the same; each change
is another snapshot.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from streaming.collectors.rocketmq.diffing.remembered import (
    GroupEvidence,
    ObservedTables,
    RememberedGroup,
    RememberedMember,
    VolatileGroup,
)
from streaming.collectors.rocketmq.options import RETRY_PREFIX
from streaming.collectors.rocketmq.remoting.messages import ConsumerConnections
from udfs.model.events import Observation
from udfs.model.finding_names import MAX_NAMED
from udfs.model.first_few import first_few

# Members send heartbeats every 30 s, so a flapping table comes back within a minute; after two minutes it has settled.
FLAPPED_WITHIN_MS: Final = 120_000
_TABLES_AT_MOST: Final = 6
_NAMED_AT_MOST: Final = 3
_TEXT_LENGTH: Final = 200  # characters of the text of one table
_POP: Final = "CONSUME_POP"
# If a group's offsets move in this many reads in a row without members, it has some; if they stay in this many, it has
# none. The first read after the last departure may still show its last commits.
_MOVES: Final = 2
_STILL: Final = 3
_ROUNDS: Final = 2
_FAILURES: Final = 2


def observe(
    group: RememberedGroup,
    volatile: VolatileGroup,
    evidence: GroupEvidence,
    holders: Collection[str],
    static_topics: Collection[str],
    away_proxies: Sequence[str],
    now_ms: int,
) -> tuple[Observation, ...]:
    """Return all current problems, sorted.

    Args:
        holders: Brokers with queues of topics that the group consumes. static_topics: Static topics that the group
            reads. away_proxies: Those that do not answer.
    """
    members = group.members
    found = [
        *_disagreeing(volatile, evidence.lists, evidence.settled - evidence.proxies, holders),
        *_flapping(group, volatile, now_ms),
        *_unseen(members, volatile, evidence, away_proxies),
        *_unreported(members),
        *_unreachable_duplicates(members),
        *_kept(members, evidence),
        *_unpolled(volatile),
        *(Observation(kind="static_topic", detail=topic) for topic in static_topics),
    ]
    return tuple(sorted(found, key=lambda observation: (observation.kind, observation.detail or "")))


# ---- the brokers' lists


def lists_differ(
    lists: Mapping[str, ConsumerConnections | None], trusted: Collection[str], holders: Collection[str]
) -> bool:
    """Return whether brokers list different members.

    A broker that lists no member counts only if it has queues of the group's topics: members send heartbeats to the
    brokers in the routes of their topics.
    """
    return len({frozenset(counts.items()) for counts in _counted(lists, trusted, holders).values()}) > 1


def _counted(
    lists: Mapping[str, ConsumerConnections | None], trusted: Collection[str], holders: Collection[str]
) -> dict[str, Counter[str]]:
    counted = {}
    for broker in sorted(lists):
        listed = lists[broker]
        if broker in trusted and (listed is not None or broker in holders):
            counted[broker] = Counter(
                connection.client_id for connection in (listed.connections if listed is not None else ())
            )
    return counted


def _disagreeing(
    volatile: VolatileGroup,
    lists: Mapping[str, ConsumerConnections | None],
    trusted: Collection[str],
    holders: Collection[str],
) -> Iterable[Observation]:
    if volatile.differs < _ROUNDS:
        return
    counted = _counted(lists, trusted, holders)
    everybody: Counter[str] = Counter()
    for ids in counted.values():
        everybody |= ids
    for broker, ids in counted.items():
        missing = sorted((everybody - ids).elements())
        if missing:
            detail = (
                f"{broker} lists {ids.total()} of {everybody.total()} members: not {first_few(missing, _NAMED_AT_MOST)}"
            )
            yield Observation(kind="brokers_disagree", detail=detail, members=_first(missing))


# ---- the table of subscriptions


def watch_tables(
    group: RememberedGroup, lists: Mapping[str, ConsumerConnections | None], now_ms: int, *, is_same: bool
) -> ObservedTables:
    """Return the brokers' current tables, the recent ones, and when a table last flapped.

    A table flaps when it changes and changes back.

    Args:
        is_same: Whether the lists equal those of the previous round.
    """
    before = group.tables
    if is_same and not before.changed_ms:
        return before
    shown, texts = dict(before.shown), dict(before.texts)
    changed_ms, flapped_ms = before.changed_ms, before.flapped_ms
    for broker in sorted(lists):
        listed = lists[broker]
        if listed is None or not listed.subscriptions:
            continue
        text = ", ".join(
            f"{topic} ({subscription.sub_string or '*'})"
            for topic, subscription in sorted(listed.subscriptions.items())
            if not topic.startswith(RETRY_PREFIX)
        )
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        if shown.get(broker) == digest:
            continue
        if broker in shown:
            changed_ms = now_ms
            if digest in texts:
                flapped_ms = now_ms
        shown[broker] = digest
        texts[digest] = text[:_TEXT_LENGTH]
    if now_ms - changed_ms > FLAPPED_WITHIN_MS:
        texts = {digest: texts[digest] for digest in sorted(set(shown.values()))}
        changed_ms = flapped_ms = 0
    for digest in [digest for digest in texts if digest not in shown.values()][: max(0, len(texts) - _TABLES_AT_MOST)]:
        del texts[digest]
    after = ObservedTables(shown, texts, changed_ms, flapped_ms)
    return before if after == before else after


def tables_differ(lists: Mapping[str, ConsumerConnections | None], trusted: Collection[str]) -> bool:
    """Return whether the brokers currently have different tables of the group."""
    tables = {
        tuple(sorted((topic, subscription.sub_string) for topic, subscription in listed.subscriptions.items()))
        for broker, listed in lists.items()
        if broker in trusted and listed is not None and listed.connections
    }
    return len(tables) > 1


def _flapping(group: RememberedGroup, volatile: VolatileGroup, now_ms: int) -> Iterable[Observation]:
    tables = group.tables
    flaps = tables.flapped_ms and now_ms - tables.flapped_ms <= FLAPPED_WITHIN_MS
    if flaps or volatile.tables_differ >= _ROUNDS:
        text = "; or ".join(sorted(tables.texts.values())[:_NAMED_AT_MOST])
        yield Observation(kind="subscriptions_flap", detail=text)
    models = sorted({member.message_model for member in group.members if member.message_model is not None})
    if len(models) > 1:
        yield Observation(kind="subscriptions_flap", detail=f"message models: {', '.join(models)}")


# ---- members


def _unseen(
    members: Sequence[RememberedMember],
    volatile: VolatileGroup,
    evidence: GroupEvidence,
    away_proxies: Sequence[str],
) -> Iterable[Observation]:
    proxies = evidence.proxies
    if not members:
        if volatile.moves_alone >= _MOVES:
            detail = "offsets move, and no broker lists a member; rocketmq.proxies names no proxy"
            if proxies:
                detail = "offsets move, and neither a broker nor a proxy of rocketmq.proxies lists a member"
            if away_proxies:
                detail += f"; {first_few(away_proxies, _NAMED_AT_MOST)} does not answer"
            yield Observation(kind="members_unseen", detail=detail)
        return
    direct = [member for member in members if not member.is_behind(proxies)]
    lists = evidence.lists.items()
    pops = any(listed is not None and listed.consume_type == _POP and name not in proxies for name, listed in lists)
    if pops and direct and not any(member.is_described for member in direct):
        yield Observation(
            kind="members_unseen", detail="consumers pop, and none of them can be queried: clients of a proxy"
        )


def _unreported(members: Sequence[RememberedMember]) -> Iterable[Observation]:
    silent = [member.client_id for member in members if member.failures >= _FAILURES and member.is_silent]
    unable = [member.client_id for member in members if member.failures >= _FAILURES and not member.is_silent]
    if silent:
        detail = f"{first_few(silent, _NAMED_AT_MOST)}: no answer, though connected"
        yield Observation(kind="running_info_missing", detail=detail, members=_first(silent))
    if unable:
        detail = f"{first_few(unable, _NAMED_AT_MOST)}: cannot be queried"
        yield Observation(kind="running_info_missing", detail=detail, members=_first(unable))


def _unreachable_duplicates(members: Sequence[RememberedMember]) -> Iterable[Observation]:
    for client_id, count in sorted(Counter(member.client_id for member in members).items()):
        if count > 1:
            detail = f"{client_id}: {count} connections, and only one of them can be queried"
            yield Observation(kind="duplicate_unreachable", detail=detail, members=(client_id,))


def _kept(members: Sequence[RememberedMember], evidence: GroupEvidence) -> Iterable[Observation]:
    listed = {
        connection.client_id
        for answer in evidence.lists.values()
        if answer is not None
        for connection in answer.connections
    }
    kept = [member for member in members if member.client_id not in listed]
    if kept:
        doubted = {server for member in kept for server in member.listed_by if server not in evidence.settled}
        brokers = sorted(f"proxy {server}" if server in evidence.proxies else server for server in doubted)
        names = first_few([member.client_id for member in kept], _NAMED_AT_MOST)
        detail = f"{', '.join(brokers)} cannot list connections: it is unknown whether {names} are connected"
        yield Observation(kind="not_polled", detail=detail, members=_first([member.client_id for member in kept]))


def _unpolled(volatile: VolatileGroup) -> Iterable[Observation]:
    if volatile.unpolled > _ROUNDS:
        yield Observation(kind="not_polled", detail="not every broker or proxy answered in time")


def alone(volatile: VolatileGroup, *, is_alone: bool, moved: bool | None) -> tuple[int, int]:
    """Return how often in a row offsets moved, and did not, while no member was connected.

    Args:
        moved: None if not read.
    """
    if not is_alone:
        return 0, 0
    if moved is None or not volatile.was_alone:
        return volatile.moves_alone, volatile.still_alone
    if moved:
        return volatile.moves_alone + 1, 0
    still = volatile.still_alone + 1
    return (0 if still >= _STILL else volatile.moves_alone), still


def _first(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(ids))[:MAX_NAMED])
