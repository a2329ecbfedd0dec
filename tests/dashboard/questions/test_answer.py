"""The answers to the ready questions over the demo's fleet, against the same worked out row by row in Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dashboard.questions.answer import answer
from dashboard.questions.catalog import question, questions
from dashboard.reading.queries import Queries
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.schema import TABLES, Row
from streaming.tables.shared_columns import COST_NAMES
from streaming.views.pods import Pods
from streaming.views.reader import Reader
from tests.dashboard.demo_tables import SPAN_MS, START_MS

Tables = Mapping[str, Sequence[Row]]
HALF = START_MS + SPAN_MS // 2
HOUR_MS, WEEK_MS = 3_600_000, 7 * 86_400_000
EXPECTED: dict[str, Callable[[Tables], Iterable[tuple[Any, ...]]]] = {}


def expected(name: str) -> Callable[[Callable[[Tables], Any]], Callable[[Tables], Any]]:
    def keep(work: Callable[[Tables], Any]) -> Callable[[Tables], Any]:
        EXPECTED[name] = work
        return work

    return keep


def by(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


def seconds(values: Iterable[int | None]) -> Any:
    found = total_or_null(values)
    return None if found is None else near(found / 1000)


def total(values: Iterable[int | None]) -> int:
    return sum(value for value in values if value is not None)


def total_or_null(values: Iterable[int | None]) -> int | None:
    measured = [value for value in values if value is not None]
    return sum(measured) if measured else None


@pytest.fixture(scope="module")
def tables(demo_tables: Path) -> Tables:
    reader = Reader(demo_tables)
    return {name: reader.rows(name) for name in TABLES}


def rows_of(demo_tables: Path, name: str, **given: object) -> list[tuple[Any, ...]]:
    queries = Queries(memory_bytes=1 << 28, timeout_ms=60_000)
    found = answer(question(name), Reader(demo_tables), queries, {"limit": 100_000, **given})
    return [tuple(row[column] for column in found.columns) for row in found.rows]


@expected("most-rebalances")
def _(tables: Tables) -> Any:
    for key, rows in by(tables["rebalances"], "cluster", "group_id").items():
        failed = [row for row in rows if row["status"] == "failed"]
        yield (*key, len(rows), len(failed), total(r["queues_moved"] for r in rows), max(r["event_time"] for r in rows))


@expected("main-causes")
def _(tables: Tables) -> Any:
    of_cluster = Counter(row["cluster"] for row in tables["rebalances"])
    for key, rows in by(tables["rebalances"], "cluster", "trigger").items():
        yield *key, len(rows), len({r["group_id"] for r in rows}), near(100 * len(rows) / of_cluster[key[0]], 0.051)


@expected("causes-of-a-group")
def _(tables: Tables) -> Any:
    for row in tables["rebalances"]:
        for trigger in row["triggers"]:
            first = (row["event_time"], row["cluster"], row["group_id"], row["generation"])
            yield (
                *first,
                *(trigger[name] for name in ("kind", "member_id", "client", "topic", "detail")),
                row["rebalance_id"],
            )


@expected("lag-in-time")
def _(tables: Tables) -> Any:
    rows = tables["queue_progress"]
    known: dict[str, int] = {}
    for row in rows:
        known[row["cluster"]] = max(
            known.get(row["cluster"], 0), row["event_time"], row["committed_at"] or 0, row["end_at"] or 0
        )
    for key, history in by(rows, "cluster", "group_id", "topic", "broker", "queue_id").items():
        newest = max(history, key=lambda row: (row["event_time"], row["committed_at"] or 0, row["end_at"] or 0))
        if not newest["lag"]:
            continue
        ends = [row for row in history if row["end_offset"] is not None]
        up_to = [row["end_at"] for row in ends if row["end_offset"] <= newest["committed_offset"]]
        beyond = [(row["end_at"], row["event_time"]) for row in ends if row["end_offset"] > newest["committed_offset"]]
        written_by, minute = min(beyond)
        # A minute before the span in which the end was read it had been read, too.
        since = [min(written_by, max(*up_to, minute - 60_000))] if up_to and max(up_to) <= written_by else []
        if newest.get("written_offset") == newest["committed_offset"]:
            since = [written_by := newest.get("written_at")]
        elif (newest.get("written_offset") or newest["committed_offset"]) < newest["committed_offset"]:
            since += [at for at in [newest.get("written_at")] if at <= written_by]
        most = near((known[key[0]] - max(since)) / 1000, 0.051) if since else None
        yield *key, newest["lag"], near((known[key[0]] - written_by) / 1000, 0.051), most


@expected("members-that-cause")
def _(tables: Tables) -> Any:
    found = defaultdict(list)
    for row in tables["rebalances"]:
        for trigger in row["triggers"]:
            if trigger["client"] is not None:
                found[row["cluster"], row["group_id"], trigger["client"]].append((trigger, row))
    for key, causes in found.items():
        expired = {row["rebalance_id"] for trigger, row in causes if trigger["kind"] == "session_expired"}
        all_of, ids = {row["rebalance_id"] for _, row in causes}, {trigger["member_id"] for trigger, _ in causes}
        yield *key, len(all_of), len(expired), len(ids), max(row["event_time"] for _, row in causes)


@expected("cost-by-group")
def _(tables: Tables) -> Any:
    for key, rows in by(tables["rebalances"], "cluster", "group_id").items():
        bounds = [seconds(row[name] for row in rows) for name in ("outage_min_ms", "outage_max_ms")]
        yield (
            *key,
            len(rows),
            *bounds,
            total(row["outage_unknown_queues"] for row in rows),
            total(row["queues_moved"] for row in rows),
        )


@expected("cost-by-cause")
def _(tables: Tables) -> Any:
    for key, rows in by(tables["rebalances"], "trigger").items():
        bounds = [seconds(row[name] for row in rows) for name in ("outage_min_ms", "outage_max_ms")]
        longest = [row["queue_outage_max_ms"] for row in rows if row["queue_outage_max_ms"] is not None]
        mean = near(sum(longest) / len(longest) / 1000) if longest else None
        unknown = total_or_null(row["outage_unknown_queues"] for row in rows)
        messages = [total_or_null(row[name] for row in rows) for name in COST_NAMES]
        yield *key, len(rows), *bounds, unknown, mean, *messages, total(row["queues_moved"] for row in rows)


def of_pods(tables: Tables, named: Callable[[Row], str | None]) -> Any:
    """Return the costs by what a pod has, with each cause's pod as ``Pods`` finds it by its address."""
    lives = [row for row in tables["annotations"] if row["kind"] == "pod"]
    pods = Pods(lives, [row for row in tables["annotations"] if row["kind"] == "pods_followed"])
    found: dict[tuple[Any, str], tuple[dict[str, Row], set[str]]] = {}
    for row in tables["rebalances"]:
        for member_id in {trigger["member_id"] for trigger in row["triggers"]} - {None}:
            group = (row["cluster"], row["group_id"], member_id)
            of_member = by(tables["members"], "cluster", "group_id", "member_id").get(group, [])
            begun = [each for each in of_member if each["joined_at"] <= row["event_time"]]
            last = max(begun, key=lambda each: each["joined_at"], default={})
            life = pods.of({name: last.get(name) for name in ("cluster", "address", "joined_at")})
            value = None if life is None else named(life)
            key = (None, "unknown") if life is None else (life["platform"], value or "unknown")
            rebalances, member_ids = found.setdefault(key, ({}, set()))
            rebalances[row["rebalance_id"]] = row
            member_ids.add(member_id)
    for key, (of_key, member_ids) in found.items():
        rows = list(of_key.values())
        bounds = [seconds(row[name] for row in rows) for name in ("outage_min_ms", "outage_max_ms")]
        names = ("outage_unknown_queues", *COST_NAMES, "queues_moved")
        yield *key, len(rows), len(member_ids), *bounds, *(total_or_null(row[name] for row in rows) for name in names)


@expected("cost-by-workload")
def _(tables: Tables) -> Any:
    return of_pods(tables, lambda life: f"{life['namespace']}/{life['workload'] or 'pod ' + life['pod']}")


@expected("cost-by-node")
def _(tables: Tables) -> Any:
    return of_pods(tables, lambda life: life["node"])


@expected("cost-by-image")
def _(tables: Tables) -> Any:
    return of_pods(tables, lambda life: life["image"])


@expected("longest-outages")
def _(tables: Tables) -> Any:
    bounds = ("queue_outage_min_ms", "queue_outage_max_ms")
    names = ("event_time", "cluster", "group_id", "trigger", *bounds, "outage_unknown_queues", "outage_evidence")
    for row in tables["rebalances"]:
        if any(row[name] for name in bounds):
            yield tuple(row[name] for name in (*names, "members_after", "queues_after", "rebalance_id"))


@expected("flapping-groups")
def _(tables: Tables) -> Any:
    flapping = [row for row in tables["findings"] if row["kind"] == "flapping"]
    for key, rows in by(flapping, "cluster", "group_id").items():
        is_open = any(row["closed_at"] is None for row in rows)
        yield *key, len(rows), is_open, max(row["opened_at"] for row in rows)


@expected("rebalances-by-hour")
def _(tables: Tables) -> Any:
    counted: Counter[Any] = Counter()
    moved: Counter[Any] = Counter()
    # From the rebalances themselves, not from the minutes that the question reads.
    for row in tables["rebalances"]:
        key = (row["event_time"] // HOUR_MS * HOUR_MS, row["cluster"], row["group_id"])
        counted[key] += 1
        moved[key] += row["queues_moved"]
    return [(*key, number, moved[key]) for key, number in counted.items()]


@expected("uneven-groups")
def _(tables: Tables) -> Any:
    for row in tables["groups"]:
        if (row["spread"] or 0) > 1 and row["members"]:
            names = ("cluster", "group_id", "strategy", "members", "queues", "spread")
            yield *(row[name] for name in names), near(row["queues"] / row["members"], 0.051)


@expected("idle-capacity")
def _(tables: Tables) -> Any:
    for row in tables["groups"]:
        if row["idle_members"] and row["members"]:
            names = ("cluster", "group_id", "members", "idle_members", "queues")
            yield *(row[name] for name in names), near(100 * row["idle_members"] / row["members"], 0.051)


@expected("unassigned-queues")
def _(tables: Tables) -> Any:
    names = ("cluster", "group_id", "state", "members", "queues", "unassigned_queues", "last_rebalance_at")
    return [tuple(row[name] for name in names) for row in tables["groups"] if row["unassigned_queues"]]


def owned(row: Row, at_ms: int) -> bool:
    return bool(row["valid_from"] <= at_ms and (row["valid_to"] is None or at_ms < row["valid_to"]))


@expected("assignment-at")
def _(tables: Tables) -> Any:
    rows = [row for row in tables["assignments"] if owned(row, HALF)]
    grouped = by(rows, "cluster", "group_id", "origin", "member_id", "topic")
    return [(*key, len(found)) for key, found in grouped.items()]


def any_queue(tables: Tables) -> Row:
    """Return the queue with most owners at half of the time."""
    rows = [row for row in tables["assignments"] if owned(row, HALF)]
    (topic, queue), _ = Counter((row["topic"], row["queue_id"]) for row in rows).most_common(1)[0]
    return {"topic": topic, "queue": queue}


@expected("who-owned")
def _(tables: Tables) -> Any:
    queue = any_queue(tables)
    first = ("cluster", "group_id", "topic", "broker", "queue_id", "origin", "member_id")
    for row in tables["assignments"]:
        if row["topic"] == queue["topic"] and row["queue_id"] == queue["queue"] and owned(row, HALF):
            yield tuple(row[name] for name in (*first, "generation", "valid_from", "valid_to"))


@expected("queue-history")
def _(tables: Tables) -> Any:
    queue = any_queue(tables)
    names = ("valid_from", "valid_to", "cluster", "group_id", "broker", "origin", "member_id", "generation")
    for row in tables["assignments"]:
        if row["topic"] == queue["topic"] and row["queue_id"] == queue["queue"]:
            yield tuple(row[name] for name in (*names, "rebalance_id"))


@expected("compare-weeks")
def _(tables: Tables) -> Any:
    border = HALF
    for key, rows in by(tables["rebalances"], "cluster", "group_id").items():
        halves = (
            [row for row in rows if row["event_time"] >= border],
            [row for row in rows if row["event_time"] < border],
        )
        counts = [len(half) for half in halves] + [sum(row["status"] == "failed" for row in half) for half in halves]
        yield *key, *counts, *(near(total(row["outage_max_ms"] for row in half) / 1000) for half in halves)


@expected("disagreeing-groups")
def _(tables: Tables) -> Any:
    for key, rows in by(tables["rebalances"], "cluster", "group_id", "strategy").items():
        wrong = [row for row in rows if row["agrees"] is False]
        if compared := sum(row["agrees"] is not None for row in rows):
            differing = [row["queues_differing"] for row in rows if row["queues_differing"] is not None]
            last = max((row["event_time"] for row in wrong), default=None)
            yield *key, len(wrong), compared, sum(differing) if differing else None, last


@expected("strategy-verdicts")
def _(tables: Tables) -> Any:
    audited = by(tables["audits"], "cluster", "group_id")
    for row in tables["groups"]:
        if row["strategy_verdict"] is not None:
            verdicts = Counter(audit["verdict"] for audit in audited[row["cluster"], row["group_id"]])
            names = ("strategy_verdict", "verdict_generations", "verdict_from", "verdict_reason")
            counts = [verdicts[name] for name in ("agrees", "differs", "not_recomputable")]
            yield row["cluster"], row["group_id"], row["strategy"], *(row[name] for name in names), *counts


@expected("open-findings")
def _(tables: Tables) -> Any:
    current = [row for row in tables["findings"] if row["closed_at"] is None]
    for key, rows in by(current, "severity", "kind", "cluster").items():
        groups = {row["group_id"] for row in rows} - {None}
        yield *key, len(rows), len(groups), min(row["opened_at"] for row in rows)


@expected("finding-durations")
def _(tables: Tables) -> Any:
    closed = [row for row in tables["findings"] if row["closed_at"] is not None]
    for key, rows in by(closed, "kind", "severity").items():
        spans = [(row["closed_at"] - row["opened_at"]) / 1000 for row in rows]
        yield *key, len(rows), near(sum(spans) / len(spans), 0.051), near(max(spans), 0.051)


@expected("short-sessions")
def _(tables: Tables) -> Any:
    ended = [row for row in tables["members"] if row["left_at"] is not None]
    for key, rows in by(ended, "cluster", "group_id", "address").items():
        spans = [(row["left_at"] - row["joined_at"]) / 1000 for row in rows]
        expired = sum(row["left_reason"] == "expired" for row in rows)
        yield *key, len(rows), expired, near(min(spans), 0.051), near(sum(spans) / len(spans), 0.051)


def near(value: float, tolerance: float = 0.00051) -> Any:
    """A number that the answer rounds."""
    return pytest.approx(value, abs=tolerance, rel=0)


def given(name: str, tables: Tables) -> dict[str, object]:
    """The parameters with which each question is asked here."""
    at = {"at": HALF + WEEK_MS if name == "compare-weeks" else HALF}
    values: dict[str, object] = {**at, **any_queue(tables)}
    return {key: value for key, value in values.items() if key in question(name).parameters}


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    def key(row: tuple[Any, ...]) -> tuple[str, ...]:
        return tuple(
            "" if isinstance(value, float) or "approx" in type(value).__name__.lower() else str(value) for value in row
        )

    return sorted(rows, key=key)


@pytest.mark.parametrize("name", questions())
def test_the_answer_is_that_of_the_rows(demo_tables: Path, tables: Tables, name: str) -> None:
    found = rows_of(demo_tables, name, **given(name, tables))
    worked_out = list(EXPECTED[name](tables))
    # The demo has no flapping group, and at its end no queue without an owner: those are planted below.
    assert worked_out or name in PLANTED
    assert in_order(found) == in_order(worked_out)


def life(name: str, address: str, began: int, ended: int | None = None, **more: Any) -> Row:
    about = {"namespace": "shop", "workload": "deployment orders", "node": "n1", "image": "orders:1"}
    at = {"began_at": START_MS + began, "ended_at": None if ended is None else START_MS + ended}
    row = {"annotation_id": name, "kind": "pod", "platform": "k", "pod": name, "hosts": [address, name]}
    return row | about | at | {"written_at": START_MS + began} | more


def of_members(*members: tuple[str, str | None, int]) -> dict[str, list[Row]]:
    """Return a rebalance that each of these members caused, and one that no member caused.

    Args:
        members: Id, address, and ms of the beginning of its session.
    """
    group = {"cluster": "c", "group_id": "g"}
    costs = {"outage_max_ms": 4_000, "queues_moved": 2, "repeated_messages": 7}

    def rebalance(name: str, at: int, *causes: str | None) -> Row:
        triggers = [{"kind": "session_expired", "member_id": member_id} for member_id in causes]
        return group | costs | {"rebalance_id": name, "event_time": START_MS + at, "triggers": triggers}

    return {
        "rebalances": [
            *(rebalance(f"of {name}", 900, name) for name, _, _ in members),
            rebalance("of all", 901, *(name for name, _, _ in members), members[0][0]),
            rebalance("of the first", 902, members[0][0]),
            rebalance("of none", 903, None),
        ],
        "members": [
            group | {"member_id": name, "address": address, "joined_at": START_MS + joined}
            for name, address, joined in members
        ]
        # It came back after the rebalances.
        + [group | {"member_id": members[0][0], "address": "elsewhere", "joined_at": START_MS + 950}],
    }


COSTS_OF_PODS: dict[str, list[Row]] = of_members(
    ("m1", "a1", 100),
    ("m2", "a2", 100),
    ("of no address", None, 100),
    ("before its pod", "a1", 49),
    ("in the next pod", "a1", 200),
    ("of another cluster", "a3", 100),
    ("in one of two", "a4", 100),
    ("until it was known", "a5", 120),
    ("after it was known", "a5", 121),
    ("of a pod of nobody", "a6", 100),
) | {
    "annotations": [
        life("p1", "a1", 50, 200),
        life("p2", "a2", 60),
        life("next", "a1", 200, node="n2", image="orders:2"),
        life("p3", "a3", 50, cluster="another"),
        life("p4", "a4", 50),
        life("p4 again", "a4", 60),
        life("p5", "a5", 50, platform="killed"),
        life("p6", "a6", 50, workload=None),
        {"annotation_id": "f", "kind": "pods_followed", "platform": "k"}
        | {"began_at": START_MS + 50, "ended_at": START_MS + 900, "written_at": START_MS + 900},
        {"annotation_id": "g", "kind": "pods_followed", "platform": "killed"}
        | {"began_at": START_MS, "ended_at": START_MS + 120, "written_at": START_MS + 900},
        {"annotation_id": "d", "kind": "deploy", "hosts": ["a1"], "began_at": START_MS, "written_at": START_MS},
    ]
}


def of_queue(
    queue_id: int,
    *rows: tuple[int, int, int | None, int | None],
    written: tuple[int, int] | None = None,
    **more: Any,
) -> list[Row]:
    """Return rows of one queue of a group: the minute, and in seconds the ends' times; commit and end.

    Args:
        written: A message, and in ms when it was written.
    """
    same = {"cluster": "c", "group_id": "g", "topic": "t", "broker": None, "queue_id": queue_id} | more
    if written is not None:
        same |= {"written_offset": written[0], "written_at": START_MS + written[1]}
    return [
        same
        | {"event_time": START_MS + minute * 60_000, "committed_at": None, "committed_offset": commit}
        | {"end_at": START_MS + at * 1_000, "end_offset": end}
        | {"lag": None if commit is None or end is None else end - commit}
        for minute, at, commit, end in rows
    ]


PLANTED: dict[str, dict[str, list[Row]]] = {
    "lag-in-time": {
        "queue_progress": [
            *of_queue(0, (0, 50, 100, 100), (1, 110, 100, 130), (5, 350, 100, 900)),  # it stands
            *of_queue(1, (0, 50, 100, 200), (1, 110, 150, 400), (5, 350, 300, 900)),  # it is behind
            *of_queue(2, (0, 50, 100, 100), (5, 350, 100, 130)),  # nothing came for long
            *of_queue(3, (5, 350, 100, 130)),  # it was behind when it was first seen
            *of_queue(4, (0, 50, 100, 900), (1, 110, 10, 20), (2, 170, 10, 30)),  # its topic was made again
            *of_queue(5, (0, 50, 100, 130), (1, 110, 130, 130)),  # it has read all
            *of_queue(6, (0, 50, 100, 130), (1, 110, None, None)),  # its group was deleted
            *of_queue(7, (0, 50, 10, 10), (1, 110, 10, 30), broker="b"),
            *of_queue(0, (0, 50, 10, 10), (1, 110, 10, 30), group_id="h"),
            *of_queue(0, (9, 599, 10, 10), cluster="d"),
            # Brokers gave the time of the next unread message, of the one before it, and of much older ones.
            *of_queue(8, (0, 50, 100, 100), (1, 110, 100, 130), written=(100, 72_000)),
            *of_queue(9, (0, 50, 100, 100), (1, 110, 100, 130), written=(99, 71_000)),
            *of_queue(10, (0, 50, 100, 100), (1, 110, 100, 130), written=(90, 20_000)),
            *of_queue(11, (1, 110, 100, 130), written=(90, 20_000)),
            *of_queue(12, (1, 110, 100, 130), written=(100, 20_000)),
        ]
    },
    **dict.fromkeys(("cost-by-workload", "cost-by-node", "cost-by-image"), COSTS_OF_PODS),
    "cost-by-cause": {
        "rebalances": [
            {"cluster": "c", "trigger": trigger, "event_time": START_MS, "queues_moved": 1}
            | dict(zip(COST_NAMES, costs, strict=True))
            for trigger, costs in (
                ("member_left", (7, None, 40, None)),
                ("member_left", (5, 3, None, 9)),
                ("member_left", (None, None, None, None)),
                ("session_expired", (None, 0, None, None)),
            )
        ]
    },
    "flapping-groups": {
        "findings": [
            {"cluster": "c", "group_id": group, "kind": kind, "opened_at": at, "closed_at": until}
            for group, kind, at, until in (
                ("a", "flapping", START_MS, START_MS + 5),
                ("a", "flapping", START_MS + 9, None),
                ("b", "flapping", START_MS + 3, START_MS + 4),
                ("b", "idle_members", START_MS + 6, None),
            )
        ]
    },
    "unassigned-queues": {
        "groups": [
            {"cluster": "c", "group_id": group, "unassigned_queues": number, "members": 1}
            for group, number in (("a", 2), ("b", 0), ("c", 3))
        ]
    },
}


class PlantedReader:
    """Reads rows that are given, as ``Reader`` does."""

    def __init__(self, rows: dict[str, list[Row]]) -> None:
        self._rows = rows

    def read(self, name: str, *, columns: Sequence[str]) -> pa.Table:
        return to_arrow(TABLES[name], self._rows[name]).select(columns)


@pytest.mark.parametrize("name", PLANTED)
def test_rows_that_the_demo_lacks_are_found_among_planted_ones(name: str) -> None:
    rows = PLANTED[name]
    reader: Any = PlantedReader(rows)
    found = answer(question(name), reader, Queries(memory_bytes=1 << 28, timeout_ms=60_000), {})
    full = {table: [dict.fromkeys(TABLES[table].names) | row for row in each] for table, each in rows.items()}
    worked_out = list(EXPECTED[name](full))
    assert len(worked_out) >= 2
    assert in_order(tuple(row.values()) for row in found.rows) == in_order(worked_out)


def test_members_whose_pods_are_not_known_are_counted() -> None:
    reader: Any = PlantedReader(COSTS_OF_PODS)
    found = answer(question("cost-by-node"), reader, Queries(memory_bytes=1 << 28, timeout_ms=60_000), {}).rows
    counts = [[row[name] for name in ("platform", "node", "rebalances", "member_ids", "outage_max_s")] for row in found]
    assert counts == [
        [None, "unknown", 6, 5, 24.0],
        ["k", "n1", 5, 3, 20.0],
        ["k", "n2", 2, 1, 8.0],
        ["killed", "n1", 2, 1, 8.0],
    ]


@pytest.mark.parametrize("name", questions())
def test_a_limited_answer_is_the_beginning_of_the_whole_one(demo_tables: Path, tables: Tables, name: str) -> None:
    values = given(name, tables)
    assert rows_of(demo_tables, name, **values)[:3] == rows_of(demo_tables, name, **values, limit=3)


def test_span_cluster_and_group_narrow_the_answer(demo_tables: Path, tables: Tables) -> None:
    rebalance = tables["rebalances"][0]
    narrow = rows_of(
        demo_tables,
        "causes-of-a-group",
        since=rebalance["event_time"],
        until=rebalance["event_time"] + 1,
        cluster=rebalance["cluster"],
        group=rebalance["group_id"],
    )
    same = [row for row in EXPECTED["causes-of-a-group"](tables) if row[0] == rebalance["event_time"]]
    assert in_order(narrow) == in_order(
        row for row in same if row[1:3] == (rebalance["cluster"], rebalance["group_id"])
    )
    assert rows_of(demo_tables, "causes-of-a-group", group="' OR '1'='1") == []


@pytest.mark.spark
def test_spark_gives_the_same_answers(demo_tables: Path, tables: Tables, spark: Any) -> None:
    for name in {table for asked in questions().values() for table in asked.tables}:
        spark.read.format("delta").load(str(demo_tables / name)).createOrReplaceTempView(name)
    differing = []
    for name, asked in questions().items():
        values = {"limit": 100_000, **given(name, tables)}
        # The text with its values in it, as a user pastes it.
        found = spark.sql(asked.bound("spark", values))
        rows = [tuple(_plain(value) for value in row) for row in found.collect()]
        if rows != rows_of(demo_tables, name, **values) or found.columns != columns_of(demo_tables, name, values):
            differing.append(name)
    assert differing == []


def columns_of(demo_tables: Path, name: str, values: Mapping[str, object]) -> list[str]:
    return answer(question(name), Reader(demo_tables), Queries(memory_bytes=1 << 28, timeout_ms=60_000), values).columns


def _plain(value: Any) -> Any:
    import datetime
    import decimal

    if isinstance(value, datetime.datetime):
        # Spark gives times in this process's own zone, without its name.
        return round(value.astimezone(datetime.UTC).timestamp() * 1000)
    return float(value) if isinstance(value, decimal.Decimal) else value
