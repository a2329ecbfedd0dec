"""Tables of a small story, from which every result of the reading commands is worked out by hand.

orders, cluster c1: a joins at 0 s and holds queues 0 and 1; b joins at 10 s and takes queue 1 from a; a falls silent
and expires at 70 s, so that b takes queue 0. What b reports is one queue behind.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
from typer.testing import CliRunner, Result

from streaming.commands.app import app
from streaming.settings.locations import Location
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.materializer import Materializer
from streaming.tables.schema import CHANGES, REBALANCES, Row
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0, Journal, assigned, audited, joined, left, released, rows, stable
from tests.streaming.tables.signs import leave_recording_sign
from udfs.model import journal

STATIC_A = {
    "host": "h1",
    "address": "h1",
    "client_id": "app-a",
    "instance_id": "static-a",
    "client": "static-a",
    "session_timeout_ms": 45_000,
}
FIRST, SECOND, THIRD, FOURTH = "aa11", "aa22", "bb33", "cc44"


def rebalance(
    name: str, at: int, trigger: journal.TriggerKind, member: str | None, **more: object
) -> dict[str, object]:
    body = journal.Rebalance(
        rebalance_id=name,
        cluster="c1",
        system="kafka",
        group_id="orders",
        generation=int(name[-1]),
        generation_source="counted",
        event_time=T0 + at,
        detected_at=T0 + at + 3_000,
        trigger=trigger,
        triggers=[journal.Trigger(kind=trigger, member_id=member, event_id=f"event-{name}")],
        strategy="kafka.range",
        **more,
    )
    row = msgspec.structs.asdict(body)
    row["triggers"] = [msgspec.structs.asdict(each) for each in body.triggers]
    return row


def store(root: Location, rebalances: Sequence[Row], changes: Sequence[journal.Change] = ()) -> None:
    """Write both as the job does, and bring the other tables up to date."""
    DeltaRsTable(root, REBALANCES).append(to_arrow(REBALANCES, rebalances), Mark("job", 0))
    if changes:
        DeltaRsTable(root, CHANGES).append(to_arrow(CHANGES, rows(changes)), Mark("job", 0))
    Materializer(root, 0).run()
    leave_recording_sign(root, {row["cluster"] for row in rebalances} | {change.cluster for change in changes})


def write_audited_story(root: Path) -> None:
    """Write two generations of orders with their audits: the second differs on two queues."""
    history = Journal()
    differs = audited(SECOND, 10_000, missing=2)
    differs.reason, differs.detail = "stale_metadata", "It is so with fewer queues."
    group = stable(2, 2, 10_000)
    group.strategy_verdict, group.verdict_generations, group.verdict_from = "contradicted", 3, T0
    group.verdict_reason = "another_library"
    bodies: list[tuple[int, journal.Body]] = [(0, audited(FIRST, 0)), (10_000, differs), (10_000, group)]
    rows = [rebalance(FIRST, 0, "group_created", None), rebalance(SECOND, 10_000, "member_joined", "b")]
    store(root, rows, [history.change(at, body, group="orders") for at, body in bodies])


def write_story(root: Location) -> None:
    found = [
        rebalance(FIRST, 0, "group_created", None, members_after=1, queues_assigned=2, queues_after=2),
        rebalance(
            SECOND, 10_000, "member_joined", "b", members_before=1, members_after=2, queues_moved=1, queues_kept=1
        ),
        rebalance(
            THIRD,
            70_000,
            "session_expired",
            "a",
            members_before=2,
            members_after=1,
            queues_moved=1,
            queues_kept=1,
            agrees=False,
            queues_differing=1,
            pause_ms=3_200,
            outage_min_ms=30_000,
            outage_max_ms=45_000,
            queue_outage_min_ms=8_000,
            queue_outage_max_ms=12_000,
            outage_queues=5,
            outage_evidence="progress",
        ),
    ]
    history = Journal()
    finding = journal.FindingOpened(
        finding_id="f1",
        finding="expected_differs",
        severity="warning",
        message="orders: b reports 1 queue, the strategy gives it 2",
        advice="compare the strategies of the clients",
        evidence=["e1"],
        opened_at=T0 + 70_000,
    )
    happened = [
        (0, joined("a", 0, **STATIC_A)),
        (0, assigned(0, "a", 0)),
        (0, assigned(1, "a", 0)),
        (0, stable(1)),
        (10_000, joined("b", 10_000, host="h2", client="b@h2", address="h2")),
        (10_000, released(1, "a", 10_000)),
        (10_000, assigned(1, "b", 10_000, generation=2)),
        (10_000, assigned(1, "b", 10_000, generation=2, origin="reported")),
        (10_000, stable(2, generation=2, at=10_000)),
        (70_000, left("a", 0, 70_000, "expired")),
        (70_000, released(0, "a", 70_000)),
        (70_000, assigned(0, "b", 70_000, generation=3)),
        (70_000, stable(1, generation=3, at=70_000)),
        (70_000, finding),
    ]
    changes = [history.change(at, body, group="orders") for at, body in happened]
    shared = assigned(-1, "pop", 0, topic="events", broker="broker-a")
    changes += [history.change(0, shared, group="popping", cluster="c2"), history.change(0, stable(1), "popping", "c2")]
    changes += [history.change(0, stable(3), group="twin", cluster=cluster) for cluster in ("c1", "c2")]
    store(root, found, changes)


def write_static_story(root: Path) -> None:
    """Let a static member with two queues come back as another joins, which takes one of them."""
    found = [rebalance(FOURTH, 20_000, "member_joined", "b", queues_moved=1, queues_kept=1)]
    history = Journal()
    static = [
        (0, joined("old", 0, instance_id="static")),
        (0, assigned(0, "old", 0, instance_id="static")),
        (0, assigned(1, "old", 0, instance_id="static")),
        (
            20_000,
            journal.MemberReplaced(
                former_member_id="old", member_id="new", instance_id="static", replaced_at=T0 + 20_000
            ),
        ),
        (20_000, left("old", 0, 20_000, "replaced")),
        (20_000, joined("new", 20_000, instance_id="static", former_member_id="old")),
        (20_000, joined("b", 20_000)),
        (20_000, released(1, "new", 20_000)),
        (20_000, assigned(1, "b", 20_000, generation=4)),
    ]
    changes = [history.change(at, body, group="orders") for at, body in static]
    store(root, found, changes)


def run(tables: Location, *arguments: str) -> Result:
    """Run a command on these tables."""
    return CliRunner().invoke(app, [*arguments, "--tables", str(tables)])


def json_of(tables: Path, *arguments: str) -> list[dict[str, object]]:
    """Return the objects that a command writes with ``--json``."""
    result = run(tables, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def seconds(after: float) -> str:
    """Return a time of the story as an option's value."""
    return str(T0 + round(after * 1_000))
