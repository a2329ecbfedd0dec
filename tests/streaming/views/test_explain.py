"""One rebalance as a report: causes, moved queues, pauses, agreement."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.shared_columns import COST_NAMES
from streaming.terminal.format import time_text
from streaming.views import explain
from tests.streaming.tables.journals import T0, Journal, assigned, released
from tests.streaming.views.reconciled_story import RECONCILED, write_reconciled
from tests.streaming.views.story import FOURTH, THIRD, json_of, rebalance, run, store
from udfs.model import journal


def test_queues_that_a_static_member_keeps_under_its_new_id_did_not_move(static_tables: Path) -> None:
    (report,) = json_of(static_tables, "explain", FOURTH)
    assert [(move["queue_id"], move["before"], move["after"]) for move in report["moves"]["computed"]] == [
        (1, ["old"], ["b"])
    ]


def test_explain_reports_what_happened_why_and_what_moved(tables: Path) -> None:
    text = run(tables, "explain", THIRD).stdout
    for part in (
        "Group orders of kafka cluster c1 rebalanced at 2026-01-01T00:01:10.000Z: generation 3 (counted), completed.",
        "Members: 2 before, 1 after.",
        "session_expired: a (client app-a, host h1, instance static-a) sent no heartbeat for longer than its"
        " session timeout",
        "last heartbeat 2026-01-01T00:01:10.000Z",
        "[event event-bb33]",
        "orders-0: a → b",
        "Outage: nobody read 5 queues for 8.0 s to 12.0 s (the longest), 30.0 s to 45.0 s added up (progress).",
        "  The rebalance itself took 3.2 s.",
        "Clients: reported and computed assignment differ on 1 queue.",
    ):
        assert part in text, part
    assert "orders-1: " not in text


@pytest.mark.parametrize(
    ("fields", "sentence", "in_list"),
    [
        ({}, "Outage: not known.", "-"),
        ({"outage_min_ms": 0, "outage_max_ms": 0}, "Outage: no queue was left unread.", "0 ms"),
        ({"pause_ms": 40}, "The rebalance itself took 40 ms.", "-"),
        ({"pause_estimated_ms": 40}, "The rebalance itself took about 40 ms.", "-"),
        (
            {"outage_queues": 3, "outage_unknown_queues": 3},
            "Outage: 3 queues stopped, for how long is not known.",
            "unknown",
        ),
        (
            dict.fromkeys(("outage_min_ms", "queue_outage_min_ms"), 7)
            | dict.fromkeys(("outage_max_ms", "queue_outage_max_ms"), 1_500)
            | {"outage_queues": 3, "outage_unknown_queues": 2},
            "up to 1.5 s (the longest), up to 1.5 s added up; for 2 queues the end is unknown.",
            "up to 1.5 s (+2 unknown)",
        ),
    ],
)
def test_an_outage_is_reported_as_far_as_there_is_evidence(
    fields: dict[str, int], sentence: str, in_list: str, tmp_path: Path
) -> None:
    row = rebalance("r1", 10_000, "member_gone", "a", **{"pause_ms": None, "queue_pause_ms": None, **fields})
    store(tmp_path, [row])
    assert sentence in run(tmp_path, "explain", "r1").stdout
    head, values = (line.split("  ") for line in run(tmp_path, "show", "rebalances").stdout.splitlines())
    columns = [[cell.strip() for cell in line if cell] for line in (head, values)]
    assert dict(zip(*columns, strict=True))["OUTAGE"] == in_list


UNKNOWN = "Messages: how many were read twice or waited is not known."


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        ((None, None, None, None), UNKNOWN),
        (
            (7, 3, 40, None),
            "Messages: 7 were read twice, and about 3 more (estimated); 40 waited for new owners.",
        ),
        ((7, None, None, None), "Messages: 7 were read twice; how many waited is not known."),
        ((None, 0, None, None), "Messages: about 0 were read twice (estimated); how many waited is not known."),
        (
            (None, None, 0, 62),
            "Messages: how many were read twice is not known; 0 waited for new owners, and about 62 more (estimated).",
        ),
    ],
)
def test_explain_reports_the_cost_in_messages_as_far_as_there_is_evidence(
    costs: tuple[int | None, ...], sentence: str, tmp_path: Path
) -> None:
    row = rebalance("r1", 10_000, "member_gone", "a", **dict(zip(COST_NAMES, costs, strict=True)))
    store(tmp_path, [row])
    assert sentence in run(tmp_path, "explain", "r1").stdout.splitlines()


def test_a_queue_that_moved_has_its_own_cost(tmp_path: Path) -> None:
    costs = dict(zip(COST_NAMES, (None, 3, 40, None), strict=True))
    history = Journal()
    happened = [
        (0, assigned(0, "a", 0)),
        (10_000, released(0, "a", 10_000)),
        (10_000, assigned(0, "b", 10_000, generation=2, **costs)),
        (10_000, assigned(1, "b", 10_000, generation=2)),
    ]
    changes = [history.change(at, body, group="orders") for at, body in happened]
    store(tmp_path, [rebalance("r2", 10_000, "member_gone", "a")], changes)
    (report,) = json_of(tmp_path, "explain", "r2")
    (moved, new) = report["moves"]["computed"]
    assert {name: moved[name] for name in COST_NAMES} == costs
    assert {name: new[name] for name in COST_NAMES} == dict.fromkeys(COST_NAMES)


@pytest.mark.parametrize(
    ("trigger", "member", "more", "sentence"),
    [
        ("settings_changed", None, {"mode": "message"}, "; members share queues message by message (message)."),
        ("settings_changed", None, {"mode": "broadcasting"}, "; every member consumes every queue (broadcasting)."),
        ("settings_changed", None, {}, "; by kafka.range (clustering)."),
        ("settings_changed", "b", {}, "b changed the settings of its strategy"),
        ("strategy_changed", "b", {}, "b reports another strategy"),
        ("strategy_changed", None, {}, "the strategy changed"),
        ("member_left", "b", {"members_after": 0}, "; there is no member to assign queues to."),
        ("group_created", None, {}, "the group exists again"),
        ("group_created", None, {"generation_source": "reported"}, "the group was observed for the first time"),
    ],
)
def test_explain_describes_what_happened_in_fitting_sentences(
    tmp_path: Path, trigger: journal.TriggerKind, member: str | None, more: dict[str, object], sentence: str
) -> None:
    row = rebalance("r2", 0, trigger, member) | {"members_after": 2} | more
    store(tmp_path, [row])
    assert sentence in run(tmp_path, "explain", "r2").stdout


def test_explain_reports_the_phases_and_what_a_second_half_continues(tmp_path: Path) -> None:
    times = {"began_at": 8_000, "joined_at": 9_500, "completed_at": 10_000}
    phases = {name: T0 + at for name, at in times.items()}
    store(tmp_path, [rebalance("r2", 10_000, "cooperative_follow_up", None, logical_id="r1", **phases)])
    lines = run(tmp_path, "explain", "r2").stdout.splitlines()
    assert "It is a later part of logical rebalance r1." in lines
    began, joined, complete = (time_text(T0 + at) for at in times.values())
    assert "  Phases: join 1.5 s, sync 500 ms" in lines
    assert f"  began {began}, members had joined {joined}, complete {complete}" in lines


def test_explain_reports_how_long_each_queue_was_unread_and_its_owners_report(tmp_path: Path) -> None:
    outages = [
        {"topic": "orders", "broker": None, "queue_id": queue, "former_member_id": "a", "member_id": owner}
        | {"outage_min_ms": least, "outage_max_ms": most, "evidence": "progress"}
        for queue, owner, least, most in ((2, None, None, None), (0, "b", 0, 22_000), (1, "b", 0, 21_000))
    ]
    totals = {"outage_min_ms": 0, "outage_max_ms": 43_000, "queue_outage_min_ms": 0, "queue_outage_max_ms": 22_000}
    counts = {"outage_queues": 3, "outage_unknown_queues": 1, "outage_evidence": "progress"}
    row = rebalance("r2", 10_000, "member_gone", "a", outages=outages, **totals, **counts)
    history = Journal()
    happened = [
        (12_000, assigned(0, "b", 12_000, generation=2, origin="reported", outage_min_ms=0, outage_max_ms=9_000)),
        (13_000, assigned(1, "b", 13_000, generation=2, origin="reported")),
    ]
    changes = [history.change(at, body, group="orders") for at, body in happened]
    store(tmp_path, [row], changes)
    lines = run(tmp_path, "explain", "r2").stdout.splitlines()
    first = "Outage: nobody read 3 queues for up to 22.0 s (the longest), up to 43.0 s added up"
    start = lines.index(f"{first}; for 1 queue the end is unknown (progress).")
    assert lines[start + 1 : start + 5] == [
        "  orders-2: unknown, and nobody reads it",
        "  orders-0: up to 9.0 s, then read by b",
        "  orders-1: up to 21.0 s, then read by b",
        "",
    ]
    (as_json,) = json_of(tmp_path, "explain", "r2")
    assert [(span["queue_id"], span["outage_max_ms"]) for span in as_json["taken_over"]] == [(0, 9_000)]


def test_explain_lists_queues_that_moved_before_the_last_member_had_converged(tmp_path: Path) -> None:
    write_reconciled(tmp_path)
    lines = run(tmp_path, "explain", RECONCILED).stdout.splitlines()
    moved = ["  orders-2: a → c", "  orders-5: b → c"]
    start = lines.index("  computed:")
    assert lines[start + 1 : start + 6] == [*moved, "  reported:", *moved]
    assert [line for line in lines if "then read by" in line] == [
        "  orders-2: 500 ms, then read by c",
        "  orders-5: 500 ms, then read by c",
    ]


def test_an_audit_of_later_reports_is_not_said_to_be_of_none() -> None:
    row = {"agrees": None, "agrees_reason": "not_reported"}
    audit = {"verdict": "agrees", "queues_differing": 0, "audited_at": 1_795_143_602_000}
    text = explain._agreement({"rebalance": row, "audit": audit})
    assert text == [
        "Clients: there was nothing to compare yet; the audit is of 2026-11-20T03:00:02.000Z.",
        "Audit: the reported assignment is the recomputed one, queue by queue.",
    ]
    without = {**audit, "verdict": "not_recomputable", "reason": "custom_strategy", "detail": "x", "differing": []}
    assert "not compared" in explain._agreement({"rebalance": row, "audit": without})[0]
