"""Thirty questions about three minutes of the demo's fleet, each with its answer in SQL, by hand from the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
from deltalake import DeltaTable

from streaming.tables.schema import TABLES

Said = Mapping[str, Any]
# A group of each system, with many rebalances; and one whose members all left.
SEARCH = {"cluster": "rocketmq-orders", "group_id": "clicks-search"}
EXPORT = {"cluster": "metaq-legacy", "group_id": "shipments-export"}
KAFKA = {"cluster": "kafka-main", "group_id": "shipments-search"}
EMPTY = {"cluster": "rocketmq-orders", "group_id": "users-fraud"}
MINUTE = "2026-01-01T00:01:00Z"


class Facts:
    """The tables, without any code of the product beside their names."""

    def __init__(self, root: Path) -> None:
        self._tables = {
            name: DeltaTable(str(root / name)).to_pyarrow_table() for name in TABLES if (root / name).exists()
        }

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with duckdb.connect() as database:
            database.execute("set timezone = 'UTC'")
            for name, table in self._tables.items():
                database.register(name, table)
            return database.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> Any:
        """Return the only value of a query."""
        ((value,),) = self.rows(sql, *values)
        return value


class Asked(NamedTuple):
    """A question.

    Attributes:
        tool, arguments: What a client calls; arguments that are functions are computed from the tables.
        said: What an answer says. true: The same from the tables.
    """

    question: str
    tool: str
    arguments: Mapping[str, Any]
    said: Callable[[Said], Any]
    true: Callable[[Facts], Any]


def of(group: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments that name a group."""
    return {"cluster": group["cluster"], "group": group["group_id"]}


def where(group: Mapping[str, str]) -> str:
    """Return the condition of a group."""
    return f"cluster = '{group['cluster']}' and group_id = '{group['group_id']}'"


def each(name: str, *columns: str) -> Callable[[Said], Any]:
    """Return columns of the rows of a list, sorted."""
    return lambda answer: sorted(tuple(row[column] for column in columns) for row in answer[name])


_TIME = "strftime({}, '%Y-%m-%dT%H:%M:%S.%g') || 'Z'"
_WORST = "select rebalance_id from rebalances order by queue_outage_max_ms desc nulls last, rebalance_id limit 1"
_LAST = "select rebalance_id from rebalances where {} order by event_time desc, generation desc limit 1"
_OPEN = "closed_at is null and severity <> 'info'"
_MEMBER = "select min(member_id) from members where cluster = 'kafka-main' and left_reason = 'expired'"

THIRTY = (
    Asked(
        "How many groups are there?",
        "find_groups",
        {},
        lambda a: a["groups_found"],
        lambda f: f.one("select count(*) from groups"),
    ),
    Asked(
        "Which groups of Kafka are there?",
        "find_groups",
        {"system": "kafka"},
        each("groups", "group_id"),
        lambda f: sorted(f.rows("select group_id from groups where system = 'kafka'")),
    ),
    Asked(
        "Up to when was shipments-search decided again for advice?",
        "advise",
        of(KAFKA),
        lambda a: a["covers_to"],
        lambda f: f.one(f"select {_TIME.format('max(event_time)')} from rebalances where {where(KAFKA)}"),
    ),
    Asked(
        "In which groups do subscriptions differ now?",
        "find_groups",
        {"finding": "subscriptions_differ"},
        each("groups", "group_id"),
        lambda f: sorted(
            f.rows("select group_id from findings where kind = 'subscriptions_differ' and closed_at is null")
        ),
    ),
    Asked(
        "How large are the groups of MetaQ?",
        "find_groups",
        {"cluster": "metaq-legacy"},
        each("groups", "group_id", "members", "queues"),
        lambda f: sorted(f.rows("select group_id, members, queues from groups where cluster = 'metaq-legacy'")),
    ),
    Asked(
        "How many rebalances had clicks-search in the last day?",
        "find_groups",
        {"text": "clicks-search", "cluster": "rocketmq-orders"},
        each("groups", "rebalances_day"),
        lambda f: f.rows(f"select count(*) from rebalances where {where(SEARCH)}"),
    ),
    Asked(
        "What is wrong?",
        "what_is_wrong",
        {},
        each("findings", "finding_id"),
        lambda f: sorted(f.rows(f"select finding_id from findings where {_OPEN}")),
    ),
    Asked(
        "How many findings of each kind are open in RocketMQ?",
        "what_is_wrong",
        {"cluster": "rocketmq-orders"},
        lambda a: sorted(a["open_findings"].items()),
        lambda f: sorted(
            f.rows(
                "select severity || ' ' || kind, count(*) from findings"
                f" where {_OPEN} and cluster = 'rocketmq-orders' group by all"
            )
        ),
    ),
    Asked(
        "What is wrong with clicks-search, and since when?",
        "what_is_wrong",
        of(SEARCH),
        each("findings", "kind", "opened_at"),
        lambda f: sorted(
            f.rows(f"select kind, {_TIME.format('opened_at')} from findings where {_OPEN} and {where(SEARCH)}")
        ),
    ),
    Asked(
        "What was wrong after a minute?",
        "what_is_wrong",
        {"at": MINUTE},
        each("findings", "finding_id"),
        lambda f: sorted(
            f.rows(
                "select finding_id from findings where severity <> 'info' and opened_at <= ?::timestamptz"
                " and (closed_at is null or closed_at > ?::timestamptz)",
                MINUTE,
                MINUTE,
            )
        ),
    ),
    Asked(
        "Why did the last rebalance of shipments-export happen?",
        "explain_rebalance",
        of(EXPORT),
        lambda a: (a["rebalance_id"], a["trigger"]),
        lambda f: f.rows(
            f"select rebalance_id, trigger from rebalances where rebalance_id = ({_LAST.format(where(EXPORT))})"
        )[0],
    ),
    Asked(
        "Which members caused the rebalance with the longest outage?",
        "explain_rebalance",
        {"rebalance_id": lambda f: f.one(_WORST)},
        lambda a: [(cause["kind"], cause["member_id"], cause["event_id"]) for cause in a["causes"]],
        lambda f: f.rows(
            "select c.kind, c.member_id, c.event_id from (select unnest(triggers) as c,"
            " generate_subscripts(triggers, 1) as n from rebalances"
            f" where rebalance_id = ({_WORST})) order by n"
        ),
    ),
    Asked(
        "For how long did it leave a queue unread, and how many queues moved?",
        "explain_rebalance",
        {"rebalance_id": lambda f: f.one(_WORST)[:12]},
        lambda a: (a["queue_outage_min_ms"], a["queue_outage_max_ms"], a["queues_moved"]),
        lambda f: f.rows(
            "select queue_outage_min_ms, queue_outage_max_ms, queues_moved from rebalances"
            f" where rebalance_id = ({_WORST})"
        )[0],
    ),
    Asked(
        "How many members had shipments-search before and after its last rebalance?",
        "explain_rebalance",
        of(KAFKA),
        lambda a: (a["members_before"], a["members_after"], a["generation"]),
        lambda f: f.rows(
            "select members_before, members_after, generation from rebalances where rebalance_id ="
            f" ({_LAST.format(where(KAFKA))})"
        )[0],
    ),
    Asked(
        "What happened to shipments-search, in order?",
        "timeline",
        {**of(KAFKA), "limit": 100},
        lambda a: [event["id"] for event in a["events"] if event["what"] == "rebalance"],
        lambda f: [
            name
            for (name,) in f.rows(
                f"select rebalance_id from rebalances where {where(KAFKA)} order by event_time desc, generation desc"
            )
        ],
    ),
    Asked(
        "How often did clicks-search rebalance in its second minute?",
        "timeline",
        {**of(SEARCH), "since": MINUTE, "until": "2026-01-01T00:02:00Z"},
        lambda a: a["rebalances"],
        lambda f: f.one(
            f"select count(*) from rebalances where {where(SEARCH)} and event_time >= '2026-01-01 00:01:00Z'"
            " and event_time < '2026-01-01 00:02:00Z'"
        ),
    ),
    Asked(
        "Which findings opened in clicks-search?",
        "timeline",
        {**of(SEARCH), "limit": 100},
        lambda a: sorted({event["id"] for event in a["events"] if event["what"] == "finding opened"}),
        lambda f: sorted(name for (name,) in f.rows(f"select finding_id from findings where {where(SEARCH)}")),
    ),
    Asked(
        "Who owns queue 0 of clicks now?",
        "who_owned",
        {"topic": "clicks", "queue": 0},
        each("owners", "cluster", "group_id", "member_id", "origin"),
        lambda f: sorted(
            f.rows(
                "select cluster, group_id, member_id, origin from assignments"
                " where topic = 'clicks' and queue_id = 0 and valid_to is null"
            )
        ),
    ),
    Asked(
        "Who owned queue 1 of invoices in shipments-search after a minute?",
        "who_owned",
        {"topic": "invoices", "queue": 1, "at": MINUTE, **of(KAFKA)},
        each("owners", "member_id", "origin"),
        lambda f: sorted(
            f.rows(
                f"select member_id, origin from assignments where {where(KAFKA)} and topic = 'invoices'"
                " and queue_id = 1 and valid_from <= '2026-01-01 00:01:00Z'"
                " and (valid_to is null or valid_to > '2026-01-01 00:01:00Z')"
            )
        ),
    ),
    Asked(
        "Who is in shipments-search, and on which host?",
        "members",
        of(KAFKA),
        each("members", "member_id", "host"),
        lambda f: sorted(f.rows(f"select member_id, host from members where {where(KAFKA)} and left_at is null")),
    ),
    Asked(
        "Who was in clicks-search after a minute?",
        "members",
        {**of(SEARCH), "at": MINUTE},
        each("members", "member_id"),
        lambda f: sorted(
            f.rows(
                f"select member_id from members where {where(SEARCH)} and joined_at <= '2026-01-01 00:01:00Z'"
                " and (left_at is null or left_at > '2026-01-01 00:01:00Z')"
            )
        ),
    ),
    Asked(
        "How did the members of users-fraud leave?",
        "members",
        {**of(EMPTY), "history": True, "limit": 100},
        each("members", "member_id", "left_reason"),
        lambda f: sorted(f.rows(f"select member_id, left_reason from members where {where(EMPTY)}")),
    ),
    Asked(
        "When did that member leave?",
        "members",
        {
            "group": lambda f: f.one(f"select any_value(group_id) from members where member_id = ({_MEMBER})"),
            "cluster": "kafka-main",
            "member": lambda f: f.one(_MEMBER)[:-2],
            "history": True,
        },
        each("members", "member_id", "left_at"),
        lambda f: sorted(
            f.rows(
                f"select member_id, {_TIME.format('left_at')} from members where member_id = ({_MEMBER})"
                " and cluster = 'kafka-main'"
            )
        ),
    ),
    Asked(
        "How far has clicks-fraud come in each queue?",
        "lag",
        {"group": "clicks-fraud", "cluster": "kafka-main", "limit": 100},
        lambda a: sorted(
            (row["topic"], row["queue_id"], row["committed_offset"])
            for row in a["queues"]
            if row["committed_offset"] is not None
        ),
        lambda f: sorted(
            f.rows(
                "select topic, queue_id, arg_max(committed_offset, event_time) from queue_progress"
                " where group_id = 'clicks-fraud' and cluster = 'kafka-main' group by all"
            )
        ),
    ),
    Asked(
        "Which groups rebalance most?",
        "run_question",
        {"question_name": "most-rebalances", "limit": 3},
        lambda a: [row["rebalances"] for row in a["rows"]],
        lambda f: [
            number
            for (number,) in f.rows(
                "select count(*) from rebalances group by cluster, group_id order by count(*) desc limit 3"
            )
        ],
    ),
    Asked(
        "What are the main causes of Kafka's rebalances?",
        "run_question",
        {"question_name": "main-causes", "cluster": "kafka-main"},
        each("rows", "trigger", "rebalances"),
        lambda f: sorted(
            f.rows("select trigger, count(*) from rebalances where cluster = 'kafka-main' group by trigger")
        ),
    ),
    Asked(
        "Which rebalance left a queue unread longest?",
        "run_question",
        {"question_name": "longest-outages", "limit": 1},
        lambda a: a["rows"][0]["rebalance_id"],
        lambda f: f.one(_WORST),
    ),
    Asked(
        "Where are queues without an owner?",
        "run_question",
        {"question_name": "unassigned-queues"},
        each("rows", "group_id", "unassigned_queues"),
        lambda f: sorted(f.rows("select group_id, unassigned_queues from groups where unassigned_queues > 0")),
    ),
    Asked(
        "What would one more member do to shipments-search?",
        "what_if",
        {**of(KAFKA), "add": 1},
        lambda a: (
            sum(row["before"] or 0 for row in a["members"]),
            sum(row["after"] or 0 for row in a["members"]),
            len(a["members"]),
            a["queues_moved"] == sum(row["number"] for row in a["moves"]),
        ),
        lambda f: (
            *f.rows(
                f"select count(*), count(*) from assignments where {where(KAFKA)} and valid_to is null"
                " and origin = 'computed'"
            )[0],
            f.one(f"select members + 1 from groups where {where(KAFKA)}"),
            True,
        ),
    ),
    Asked(
        "What if its first member left?",
        "what_if",
        {
            **of(KAFKA),
            "remove": lambda f: [f.one(f"select min(member_id) from members where {where(KAFKA)} and left_at is null")],
        },
        lambda a: [row["member_id"] for row in a["members"] if row["after"] is None],
        lambda f: [f.one(f"select min(member_id) from members where {where(KAFKA)} and left_at is null")],
    ),
)
