"""A piece of the journal changes the rows of a table; the expected rows are written by hand."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.columns import MAX_EARLIER
from streaming.tables.schema import GROUPS, Row
from tests.streaming.tables.journals import (
    PAUSED,
    T0,
    Journal,
    a_history,
    assigned,
    audited,
    joined,
    left,
    of_one_group,
    of_one_run,
    reassigned,
    rebalanced,
    resumed,
    stable,
)
from tests.streaming.tables.projected_rows import apply_changes
from tests.udfs.group.single_spans import SingleSpans
from tests.udfs.shard.random_streams import Dice
from tests.udfs.shard.shard_script import Cluster
from udfs.group import coordinator as group_logic
from udfs.group.assignment import span_runs
from udfs.model import journal
from udfs.model.spans import QueueAssigned, QueueReleased


def test_pauses_of_a_packed_change_count_in_its_minute_row() -> None:
    changes = of_one_group((0, reassigned(runs=PAUSED)), (9, resumed(3, "a", 5)))
    [minute] = apply_changes("group_minutes", changes)
    assert minute["queue_pause_ms"] == 3 * 7 + 5


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), place=st.floats(0, 1))
def test_packed_spans_in_pieces_give_the_rows_of_single_ones(seed: int, place: float) -> None:
    dice = Dice(seed)
    limit = span_runs.NAMED_AT_MOST
    span_runs.NAMED_AT_MOST = 0  # type: ignore[misc]
    try:
        cluster = Cluster(group_logic)
        cluster.batch(*dice.stream(40), flush=True)
    finally:
        span_runs.NAMED_AT_MOST = limit  # type: ignore[misc]
    changes = [row for row in cluster.rows if isinstance(row, journal.Change) and row.group_id is not None]
    single = [
        msgspec.structs.replace(change, body=of_one_run(change.body))
        if isinstance(change.body, QueueAssigned | QueueReleased)
        else change
        for change in SingleSpans().of(changes)
    ]
    end = round(place * len(changes))
    for name in ("assignments", "group_minutes"):
        groups = apply_changes("groups", changes[:end])
        pieces = apply_changes(name, changes[end:], apply_changes(name, changes[:end]), groups)
        assert pieces == apply_changes(name, single)


def test_a_session_that_ended_by_mistake_continues() -> None:
    changes = of_one_group(
        (0, joined("a", 0, host="h")),
        (45, left("a", 0, 45, "expired")),
        (60, journal.MemberReopened(member_id="a", joined_at=T0)),
    )
    (closed,) = apply_changes("members", changes[:2])
    assert (closed["left_at"], closed["left_reason"], closed["last_heartbeat_at"]) == (T0 + 45, "expired", T0 + 45)
    (session,) = apply_changes("members", changes[2:], [closed])
    assert (session["left_at"], session["left_reason"], session["last_heartbeat_at"]) == (None, None, None)
    assert session["host"] == "h"


def test_the_end_of_a_session_is_corrected_in_its_row() -> None:
    changes = of_one_group((0, joined("a", 0)), (45, left("a", 0, 45, "expired")), (90, left("a", 0, 70, "expired")))
    (session,) = apply_changes("members", changes)
    assert session["left_at"] == T0 + 70


def test_a_session_described_anew_keeps_its_begin() -> None:
    changed = journal.MemberChanged(member_id="a", joined_at=T0, rack="r2", subscriptions=["orders"])
    (session,) = apply_changes("members", of_one_group((0, joined("a", 0, rack="r1")), (5, changed)))
    assert (session["rack"], session["subscriptions"], session["joined_at"]) == ("r2", ["orders"], T0)


def test_a_session_keeps_its_earlier_descriptions_until_they_changed() -> None:
    def changed(*topics: str, **more: object) -> journal.MemberChanged:
        return journal.MemberChanged(member_id="a", joined_at=T0, subscriptions=topics, **more)

    changes = of_one_group(
        (0, joined("a", 0, subscriptions=("orders",))),
        (0, changed("clicks", strategy_settings={"ring": 3})),  # at one time with its begin: it never held
        (5, changed("clicks", strategy_settings={"ring": 3}, process_id="p")),  # decides nothing
        (7, changed("clicks", "users")),
        (7, changed("users")),
        (9, changed("users", rack="r2")),
    )
    (session,) = apply_changes("members", changes)
    held = [(former["until_ms"] - T0, former["subscriptions"], former["rack"]) for former in session["earlier"]]
    assert held == [(7, ["clicks"], None), (9, ["users"], None)]
    assert session["earlier"][0]["strategy_settings"] == '{"ring":3}'
    assert (session["subscriptions"], session["rack"], session["strategy_settings"]) == (["users"], "r2", None)
    many = [(at, changed(f"t{at}")) for at in range(1, MAX_EARLIER + 3)]
    (session,) = apply_changes("members", of_one_group((0, joined("a", 0)), *many))
    assert (len(session["earlier"]), session["earlier"][0]["until_ms"] - T0) == (MAX_EARLIER, 3)


def test_a_groups_row_has_the_epochs_of_its_members_as_they_are_now() -> None:
    bodies = [stable(2), stable(2), stable(2)]
    epochs: list[list[journal.MemberEpoch] | None] = [
        [journal.MemberEpoch("a", 1), journal.MemberEpoch("b")],
        [],
        None,
    ]
    for body, some in zip(bodies, epochs, strict=True):
        body.member_epochs = some
    expected: list[object] = [[{"member_id": "a", "epoch": 1}, {"member_id": "b", "epoch": None}], [], None]
    for number in range(1, 4):
        rows = apply_changes("groups", of_one_group(*enumerate(bodies[:number])))
        assert [row["member_epochs"] for row in rows] == expected[number - 1 : number]


def test_a_groups_row_has_its_members_while_it_reconciles() -> None:
    body = stable(2)
    held = journal.AssignedQueues("orders", (0, 2))
    body.reconciling = [journal.ReconcilingMember("a", None, "app", "/h", 1, "unrevoked", (), (held,), (held,))]
    (row,) = apply_changes("groups", of_one_group((0, body)))
    queues = [{"topic": "orders", "queue_ids": (0, 2)}]
    described = {"member_id": "a", "instance_id": None, "client_id": "app", "host": "/h", "epoch": 1}
    assert row["reconciling"] == [
        described | {"state": "unrevoked", "assigned": [], "revoking": queues, "target": queues}
    ]
    assert to_arrow(GROUPS, [row]).column("reconciling").to_pylist()[0][0]["target"][0]["queue_ids"] == [0, 2]


def test_a_removed_group_has_no_row_and_one_that_comes_back_has_one() -> None:
    changes = of_one_group((0, stable(1)), (5, journal.GroupRemoved()), (9, stable(2, generation=2)))
    assert apply_changes("groups", changes[:2]) == []
    assert [row["members"] for row in apply_changes("groups", changes)] == [2]


def test_a_topic_has_one_span_for_each_set_of_queues_and_none_while_deleted() -> None:
    history = Journal()

    def count(at: int, queues: int) -> journal.Change:
        body = journal.TopicChanged(
            topic="orders",
            queue_count=queues,
            queues=[{"broker": None, "queue_id": queue, "racks": None} for queue in range(queues)],
            valid_from=T0 + at,
        )
        return history.change(at, body, group=None, subject="orders")

    rows = apply_changes("topics", [count(0, 2), count(10, 4), count(20, 0), count(30, 1)])
    assert [(row["queue_count"], row["valid_from"] - T0, row["valid_to"] and row["valid_to"] - T0) for row in rows] == [
        (1, 30, None),
        (2, 0, 10),
        (4, 10, 20),
    ]


def test_a_finding_is_one_row_from_opening_to_closing() -> None:
    opened = journal.FindingOpened(
        finding_id="f1",
        finding="source_silent",
        severity="warning",
        message="m",
        advice="a",
        evidence=["e1"],
        opened_at=T0,
    )
    history = Journal()
    changes = [
        history.change(0, opened, group=None),
        history.change(9, journal.FindingClosed(finding_id="f1", closed_at=T0 + 9), group=None),
    ]
    (open_row,) = apply_changes("findings", changes[:1])
    (row,) = apply_changes("findings", changes[1:], [open_row])
    assert (open_row["kind"], open_row["closed_at"], row["closed_at"]) == ("source_silent", None, T0 + 9)


MINUTE = 60_000


def test_a_minute_sums_its_rebalances_and_has_the_state_at_its_end() -> None:
    changes = of_one_group(
        (10, rebalanced(1)),
        (10, stable(1)),
        (20, rebalanced(2, moved=3, pause_ms=40)),
        (20, stable(2)),
        (MINUTE, rebalanced(1, moved=1, pause_ms=None)),
        (MINUTE, stable(1)),
    )
    rows = apply_changes("group_minutes", changes)
    reported = [
        (row["minute"] - T0, row["members"], row["rebalances"], row["queues_moved"], row["queue_pause_ms"])
        for row in rows
    ]
    assert reported == [(0, 2, 2, 3, 40), (MINUTE, 1, 1, 1, None)]


@pytest.mark.parametrize("cut", range(7))
def test_a_minute_sums_the_pauses_of_queues_that_were_taken_over_in_it(cut: int) -> None:
    changes = of_one_group(
        (5, assigned(0, "a", 5, origin="reported", pause_ms=30)),
        (10, rebalanced(2)),
        (10, assigned(1, "a", 10, origin="reported", pause_ms=7)),
        (11, assigned(2, "a", 11, origin="reported", pause_estimated_ms=1_000)),
        (MINUTE, resumed(2, "a", 1_300)),
        (2 * MINUTE, rebalanced(2)),
    )
    rows = apply_changes("group_minutes", changes[cut:], apply_changes("group_minutes", changes[:cut]))
    assert [row["queue_pause_ms"] for row in rows] == [37, 1_300, None]


def test_a_minute_without_a_rebalance_carries_the_state_on() -> None:
    history = Journal()
    before = [history.change(10, rebalanced(3)), history.change(10, stable(3))]
    described = [history.change(5 * MINUTE, journal.MemberChanged(member_id="a", joined_at=T0, rack="r"))]
    rows = apply_changes(
        "group_minutes", described, apply_changes("group_minutes", before), apply_changes("groups", before)
    )
    assert [(row["minute"] - T0, row["members"], row["rebalances"]) for row in rows] == [(0, 3, 1), (5 * MINUTE, 3, 0)]


def test_a_later_audit_of_a_generation_takes_the_place_of_the_first() -> None:
    first, second = audited("r1", 5), audited("r1", 5, missing=2)
    current = apply_changes("audits", of_one_group((5, first), (5, audited("r2", 6))))
    rows = apply_changes("audits", of_one_group((5, second)), current)
    assert [(row["rebalance_id"], row["verdict"], row["event_time"] - T0) for row in rows] == [
        ("r1", "differs", 5),
        ("r2", "agrees", 6),
    ]
    assert rows[0]["differing"][1] == {
        "topic": "orders", "broker": None, "queue_id": 1, "kind": "missing", "expected": ["a"], "reported": [],
    }  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.lists(st.integers(0, 60), max_size=5))
@pytest.mark.parametrize("name", ["assignments", "members", "groups", "group_minutes", "audits"])
def test_pieces_one_after_another_do_what_the_whole_does(name: str, seed: int, cuts: list[int]) -> None:
    changes = a_history(random.Random(seed), 60)
    current: list[Row] = []
    groups: list[Row] = []
    ends = sorted({min(cut, len(changes)) for cut in cuts} | {len(changes)})
    for begin, end in zip([0, *ends], ends, strict=False):
        current = apply_changes(name, changes[begin:end], current, groups)
        groups = apply_changes("groups", changes[begin:end], groups)
    assert current == apply_changes(name, changes)


def test_a_group_without_a_number_of_members_has_null_in_its_row_and_minutes() -> None:
    history = Journal()
    polled = journal.GroupChanged(system="kafka", state="not_followed", members=None)
    first = [history.change(0, polled)]
    later = [history.change(MINUTE, journal.MemberChanged(member_id="a", joined_at=T0, rack="r"))]
    minutes, groups = apply_changes("group_minutes", first), apply_changes("groups", first)
    assert [row["members"] for row in groups] == [None]
    rows = apply_changes("group_minutes", [*later, history.change(2 * MINUTE, stable(2))], minutes, groups)
    assert [(row["members"], row["spread"]) for row in rows] == [(None, 0), (None, 0), (2, 0)]
