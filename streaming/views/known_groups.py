"""Shell: a group with its members, topics and owners at one time, from the tables, and what they do not tell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import Row
from streaming.terminal.format import time_text
from streaming.views.audit_texts import strategy_text
from streaming.views.group_state_texts import NOT_FOLLOWED, is_under_way
from streaming.views.member_descriptions import description
from streaming.views.name_checks import one_group
from streaming.views.reader import Reader, Within, holds_at
from udfs.group.assignment.library_choice import DEPENDS_ON_LIBRARY
from udfs.group.state.assignment_diff import owners_of
from udfs.group.state.group import Member, Owners, Queue
from udfs.group.what_if.known_group import KnownGroup
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo
from udfs.model.first_few import first_few
from udfs.model.queues import numbered
from udfs.model.systems import is_server_side
from udfs.strategies.allocate import own_strategies
from udfs.strategies.kafka.coordinator_release import COORDINATOR
from udfs.strategies.registry import names, qualified_name

# Names in a sentence.
_FEW: Final = 5
_RELEASE: Final = re.compile(r"kafka-([0-9.]+)")
# A second live connection with the id of another one has this after it.
_NUMBERED: Final = re.compile(r"#\d+$")
# What the rebalances of a group tell of it, and of what it cost.
_REBALANCE_COLUMNS: Final = (
    *("event_time", "generation", "strategy", "library", "leader", "mode", "settings", "trigger", "triggers", "status"),
    *("members_before", "members_after", "queues_moved", "queues_assigned", "pause_ms", "pause_estimated_ms"),
    *("queue_outage_min_ms", "queue_outage_max_ms", "repeated_messages", "repeated_estimated_messages"),
    *("waiting_messages", "waiting_estimated_messages", "outage_queues"),
)


class UnknowableError(NotFoundError):
    """The tables lack what a prediction needs."""


class FoundGroup(NamedTuple):
    """A group as the tables have it at one time.

    Attributes:
        row: Its row of ``groups``, which is of now. strategy: The qualified name of what assigns it then.
        computed: The owners by its strategy, as the job computed them; None if it computed none.
        rebalances: Its rebalances up to then, oldest first, with the columns that are used here.
        doubts: Sentences on what a prediction can not rely on.
    """

    row: Row
    known: KnownGroup
    strategy: str
    computed: Owners | None
    rebalances: list[Row]
    doubts: list[str]


def found_group(reader: Reader, name: str, cluster: str | None, at_ms: int | None, tie_order: str) -> FoundGroup:
    """Return a group at a time; None for now.

    Raises:
        NotFoundError, AmbiguousError: See ``one_group``.
        UnknowableError: The tables do not know its members, what they subscribe to, its queues or its strategy.
    """
    row = one_group(reader, name, cluster)
    where = {"cluster": row["cluster"], "group_id": name}
    if row["state"] == NOT_FOLLOWED:
        kind = f" ({row['protocol']})" if row["protocol"] else ""
        raise UnknowableError(f"group {name} is of a kind that is not recomputed{kind}")
    _require_kept(reader, row["cluster"], at_ms)
    members = _members(reader, where, name, at_ms)
    until = Within(until_ms=None if at_ms is None else at_ms + 1)
    rebalances = _rebalances(reader, where | {"event_time": until})
    shown = _shown(row, rebalances, name, at_ms)
    topics, topic_ids = _topics(reader, row["cluster"], members, at_ms)
    unknown_topics = {topic for member in members for topic in member.subscriptions or ()} - topics.keys()
    origins = _owners(reader, where, at_ms)
    computed = origins.get("computed")
    owners = origins.get("reported", computed or {})
    lacking = sorted({queue[0] for queue in owners if queue[2] >= 0} & unknown_topics)
    if lacking:
        raise UnknowableError(f"the tables do not have the queues of {first_few(lacking, _FEW)}")
    strategy = str(shown["strategy"])
    known = KnownGroup(
        cluster=row["cluster"],
        group_id=name,
        system=row["system"],
        mode=shown["mode"],
        strategy=_set_strategy(row["system"], strategy, members, tie_order),
        settings=_settings(strategy, shown["library"], rebalances[-1]["settings"] if rebalances else None),
        leader=shown["leader"],
        generation=shown["generation"] or 0,
        members=tuple(members),
        topics=topics,
        owners=owners,
        topic_ids=topic_ids,
    )
    doubts = [*_doubts_of_group(row, rebalances, at_ms), *_doubts_of_time(reader, where, rebalances, at_ms)]
    if unknown_topics:
        named = first_few(sorted(unknown_topics), _FEW)
        doubts.append(f"of {named} no queues are known: they are taken to have none")
    return FoundGroup(row, known, strategy, computed, rebalances, doubts)


def _require_kept(reader: Reader, cluster: str, at_ms: int | None) -> None:
    for table in ("members", "assignments", "topics"):
        before = reader.dropped_before(table).get(cluster) if at_ms is not None else None
        if before is not None and at_ms is not None and at_ms < before:
            raise UnknowableError(f"what ended before {time_text(before)} was dropped from {table} (retention)")


def _rebalances(reader: Reader, where: Mapping[str, Any]) -> list[Row]:
    found = reader.read("rebalances", columns=_REBALANCE_COLUMNS, where=where)
    rows = zip(*from_arrow_columns(found, _REBALANCE_COLUMNS), strict=True)
    return sorted(
        (dict(zip(_REBALANCE_COLUMNS, values, strict=True)) for values in rows),
        key=lambda row: (row["event_time"], row["generation"] or 0),
    )


def _shown(row: Row, rebalances: list[Row], name: str, at_ms: int | None) -> Row:
    """Return strategy, library, mode, leader and generation: of the group's row if it is of now, else of its past."""
    last = rebalances[-1] if rebalances else {}
    shown = {key: last.get(key) for key in ("strategy", "library", "mode", "leader", "generation")}
    if at_ms is None:
        shown |= {key: row.get(key) for key in ("strategy", "library", "mode", "generation")}
    if shown["strategy"] is None:
        when = "" if at_ms is None else f" at {time_text(at_ms)}"
        raise UnknowableError(f"the strategy of group {name}{when} is not known")
    return shown


def _members(reader: Reader, where: dict[str, Any], name: str, at_ms: int | None) -> list[Member]:
    rows = reader.rows("members", where=where, keep=holds_at("joined_at", "left_at", at_ms))
    when = "" if at_ms is None else f" at {time_text(at_ms)}"
    if not rows:
        raise UnknowableError(f"group {name} has no members{when}: what new ones would subscribe to is not known")
    unknown = sorted(row["member_id"] for row in rows if row["subscriptions"] is None)
    if unknown:
        raise UnknowableError(
            f"the subscriptions of {first_few(unknown, _FEW)} are not known: the source does not show them"
        )
    ids = {row["member_id"] for row in rows}
    return [_member(row, ids, at_ms) for row in sorted(rows, key=lambda row: (row["joined_at"], row["member_id"]))]


def _member(row: Row, ids: set[str], at_ms: int | None) -> Member:
    plain = _NUMBERED.sub("", row["member_id"])
    name = plain if plain in ids else row["member_id"]
    return Member(**description(row, at_ms), member_id=row["member_id"], name=name, joined_at=row["joined_at"])


def _topics(
    reader: Reader, cluster: str, members: list[Member], at_ms: int | None
) -> tuple[dict[str, tuple[QueueInfo, ...]], dict[str, str]]:
    """Return the queues of the topics that members subscribe to, and the ids of topics, both as far as known."""
    subscribed = {topic for member in members for topic in member.subscriptions or ()}
    rows = reader.rows(
        "topics", where={"cluster": cluster, "topic": subscribed}, keep=holds_at("valid_from", "valid_to", at_ms)
    )
    found: dict[str, tuple[QueueInfo, ...]] = {}
    for row in rows:
        listed = row["queues"]
        infos = (
            numbered(row["queue_count"] or 0)
            if listed is None
            else tuple(QueueInfo(queue["queue_id"], queue["broker"], racks=_racks(queue["racks"])) for queue in listed)
        )
        found[row["topic"]] = infos
    return found, {row["topic"]: row["topic_id"] for row in rows if row.get("topic_id") is not None}


def _racks(racks: list[str] | None) -> tuple[str, ...] | None:
    return tuple(racks) if racks else None


def _owners(reader: Reader, where: Mapping[str, Any], at_ms: int | None) -> dict[str, Owners]:
    """Return the owners of each queue by origin."""
    names = ("origin", "member_id", "topic", "broker", "queue_id")
    spans = reader.read(
        "assignments",
        columns=[*names, "valid_from", "valid_to"],
        where=where,
        keep=holds_at("valid_from", "valid_to", at_ms),
    )
    held: dict[str, dict[str, list[Queue]]] = {}
    for origin, member, *queue in zip(*from_arrow_columns(spans, names), strict=True):
        held.setdefault(origin, {}).setdefault(member, []).append((queue[0], queue[1], queue[2]))
    return {origin: owners_of(of_origin) for origin, of_origin in held.items()}


def _set_strategy(system: str, strategy: str, members: list[Member], tie_order: str) -> str | None:
    """Return the strategy if it is set for the group; None if it is what its members choose by themselves."""
    if is_server_side(strategy):
        return strategy
    try:
        own = own_strategies(system, members, tie_order)
    except StrategyError:
        own = ""
    return None if own == strategy or ", " in strategy else qualified_name(strategy, system)


def _settings(strategy: str, library: str | None, text: str | None) -> dict[str, object]:
    """Return the settings of the strategy: what was set, and what its library, or the broker's release, adds."""
    named: dict[str, object] = json.loads(text or "{}").get("settings", {})
    if library is None:
        return named
    if strategy in DEPENDS_ON_LIBRARY:
        return named | {"library": library}
    release = _RELEASE.search(library)
    return named | ({COORDINATOR: release[1].rstrip(".")} if release and is_server_side(strategy) else {})


def _doubts_of_group(row: Row, rebalances: list[Row], at_ms: int | None) -> list[str]:
    found: list[str] = []
    if at_ms is None and is_under_way(row):
        found.append(f"the group rebalances ({row['state']}): members and owners are as the tables have them meanwhile")
    if rebalances and rebalances[-1]["status"] == "failed":
        found.append("its last rebalance failed: members kept what they had")
    if row.get("strategy_verdict") != "proven":
        found.append(not_proven(row))
    return found


def not_proven(row: Row) -> str:
    """Return the doubt about a group whose strategy audits have not proven."""
    return f"its strategy is not proven by audits: {strategy_text(row)}"


def _doubts_of_time(reader: Reader, where: dict[str, Any], rebalances: list[Row], at_ms: int | None) -> list[str]:
    """Return that descriptions of members are newer than the time, if no table has what they were."""
    if at_ms is None or (rebalances and rebalances[-1]["settings"] is not None):
        return []
    later = reader.read("rebalances", columns=["triggers"], where=where | {"event_time": Within(since_ms=at_ms + 1)})
    kinds = {cause["kind"] for causes in later["triggers"].to_pylist() for cause in causes or []}
    if not kinds & {"subscription_changed", "settings_changed"}:
        return []
    return ["subscriptions or settings changed since: a release up to 0.2.0 kept only the newest of each member"]


def load_custom_strategies(found: FoundGroup, wished: str | None) -> None:
    """Load the custom strategies that are installed, unless only built-in ones are asked for."""
    used = {found.strategy, found.strategy if wished is None else qualified_name(wished, found.known.system)}
    if not used <= set(names()):
        from streaming.allocation.plugins import installed_user_strategies

        installed_user_strategies()
