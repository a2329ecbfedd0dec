"""What the reading commands answer, on a small story whose every answer is worked out by hand.

orders, cluster c1: a joins at 0 s and holds queues 0 and 1; b joins at 10 s and takes queue 1 from a; a falls silent
and expires at 70 s, so that b takes queue 0. What b reports is one queue behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from streaming.commands.app import app
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_actions import Mark
from streaming.tables.delta_files import DeltaFiles
from streaming.tables.materializer import Materializer
from streaming.tables.schema import CHANGES, MEMBERS, REBALANCES
from tests.streaming.tables.journals import T0, Journal, assigned, gone, joined, released, resumed, rows, stable
from udfs.model import journal

FIRST, SECOND, THIRD, FOURTH = "aa11", "aa22", "bb33", "cc44"


def rebalance(
    name: str, at: int, trigger: journal.TriggerKind, member: str | None, **more: object
) -> dict[str, object]:
    told = journal.Rebalance(
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
    row = msgspec.structs.asdict(told)
    row["triggers"] = [msgspec.structs.asdict(each) for each in told.triggers]
    return row


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
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
            queue_pause_ms=45_000,
        ),
    ]
    DeltaFiles(root, REBALANCES).append(to_arrow(REBALANCES, found), Mark("job", 0))
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
    told = [
        (0, joined("a", 0, host="h1", client_id="app-a", instance_id="static-a", session_timeout_ms=45_000)),
        (0, assigned(0, "a", 0)),
        (0, assigned(1, "a", 0)),
        (0, stable(1)),
        (10_000, joined("b", 10_000, host="h2")),
        (10_000, released(1, "a", 10_000)),
        (10_000, assigned(1, "b", 10_000, generation=2)),
        (10_000, assigned(1, "b", 10_000, generation=2, origin="reported")),
        (10_000, stable(2, generation=2, at=10_000)),
        (70_000, gone("a", 0, 70_000, "expired")),
        (70_000, released(0, "a", 70_000)),
        (70_000, assigned(0, "b", 70_000, generation=3)),
        (70_000, stable(1, generation=3, at=70_000)),
        (70_000, finding),
    ]
    changes = [history.change(at, body, group="orders") for at, body in told]
    shared = journal.QueueAssigned(
        topic="events",
        broker="broker-a",
        queue_id=-1,
        member_id="pop",
        origin="computed",
        generation=1,
        rebalance_id="r",
        valid_from=T0,
    )
    changes += [history.change(0, shared, group="popping", cluster="c2"), history.change(0, stable(1), "popping", "c2")]
    changes += [history.change(0, stable(3), group="twin", cluster=cluster) for cluster in ("c1", "c2")]
    DeltaFiles(root, CHANGES).append(to_arrow(CHANGES, rows(changes)), Mark("job", 0))
    Materializer(root, 0).run()
    return root


@pytest.fixture(scope="module")
def static_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static member with two queues comes back as another joins, which takes one of them."""
    root = tmp_path_factory.mktemp("static")
    found = [rebalance(FOURTH, 20_000, "member_joined", "b", queues_moved=1, queues_kept=1)]
    DeltaFiles(root, REBALANCES).append(to_arrow(REBALANCES, found), Mark("job", 0))
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
        (20_000, gone("old", 0, 20_000, "replaced")),
        (20_000, joined("new", 20_000, instance_id="static", former_member_id="old")),
        (20_000, joined("b", 20_000)),
        (20_000, released(1, "new", 20_000)),
        (20_000, assigned(1, "b", 20_000, generation=4)),
    ]
    changes = [history.change(at, body, group="orders") for at, body in static]
    DeltaFiles(root, CHANGES).append(to_arrow(CHANGES, rows(changes)), Mark("job", 0))
    Materializer(root, 0).run()
    return root


def ask(tables: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--tables", str(tables)])


def answer(tables: Path, *arguments: str) -> list[dict[str, object]]:
    result = ask(tables, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def seconds(after: float) -> str:
    return str(T0 + round(after * 1_000))


@pytest.mark.parametrize(
    ("at", "owner"),
    [
        ("0", "a"),
        ("9.999", "a"),
        ("10", "b"),
        ("10.001", "b"),
    ],
)
def test_a_queue_belongs_to_who_held_it_then(tables: Path, at: str, owner: str) -> None:
    (row,) = [
        row
        for row in answer(tables, "who-owned", "orders", "1", "-g", "orders", "--at", seconds(float(at)))
        if row["origin"] == "computed"
    ]
    assert row["member_id"] == owner


def test_the_owner_of_a_queue_is_told_with_its_client(tables: Path) -> None:
    (row,) = answer(tables, "who-owned", "orders", "0", "--at", "2026-01-01T00:00:05Z")
    assert (row["member_id"], row["client_id"], row["host"], row["instance_id"]) == ("a", "app-a", "h1", "static-a")
    assert (row["valid_from"], row["valid_to"]) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:10.000Z")


@pytest.mark.parametrize(("at", "owner"), [("19.999", "old"), ("20", "new")])
def test_a_static_member_is_named_by_the_id_that_it_had_then(static_tables: Path, at: str, owner: str) -> None:
    (row,) = answer(static_tables, "who-owned", "orders", "0", "--at", seconds(float(at)))
    assert (row["member_id"], row["instance_id"], row["rebalance_id"]) == (owner, "static", "r1")


def test_what_a_static_member_keeps_under_its_new_id_did_not_move(static_tables: Path) -> None:
    (told,) = answer(static_tables, "explain", FOURTH)
    assert [(move["queue_id"], move["before"], move["after"]) for move in told["moves"]["computed"]] == [
        (1, ["old"], ["b"])
    ]


def test_a_queue_that_nobody_owned_is_not_found(tables: Path) -> None:
    result = ask(tables, "who-owned", "orders", "0", "--at", "2025-12-31T23:59:59.999Z")
    assert result.exit_code == 1
    assert "nobody owned orders-0 at 2025-12-31T23:59:59.999Z" in result.stderr


def test_a_topic_shared_by_message_names_all_who_share_it(tables: Path) -> None:
    (row,) = answer(tables, "who-owned", "events", "5")
    assert (row["member_id"], row["queue_id"]) == ("pop", -1)


def test_a_topic_that_no_table_knows_is_said_so(tables: Path) -> None:
    result = ask(tables, "who-owned", "nonsense", "0")
    assert (result.exit_code, "have no topic nonsense" in result.stderr) == (1, True)


def test_groups_are_listed_by_cluster_and_name(tables: Path) -> None:
    told = [(row["cluster"], row["group_id"], row["members"]) for row in answer(tables, "show", "groups")]
    assert told == [("c1", "orders", 1), ("c1", "twin", 3), ("c2", "popping", 1), ("c2", "twin", 3)]
    assert len(answer(tables, "show", "groups", "--cluster", "c2")) == 2


def test_a_group_shows_computed_and_reported_assignments_side_by_side(tables: Path) -> None:
    (group,) = answer(tables, "show", "group", "orders")
    (member,) = group["member_list"]
    assert [queue["queue_id"] for queue in member["computed"]] == [0, 1]
    assert [queue["queue_id"] for queue in member["reported"]] == [1]
    assert member["agrees"] is False
    assert [row["rebalance_id"] for row in group["last_rebalances"]] == [THIRD, SECOND, FIRST]
    assert [row["kind"] for row in group["open_findings"]] == ["expected_differs"]
    text = ask(tables, "show", "group", "orders").stdout
    assert "orders(0,1)  orders(1)  no" in text


def test_a_group_in_two_clusters_asks_which(tables: Path) -> None:
    result = ask(tables, "show", "group", "twin")
    assert (result.exit_code, "c1, c2" in result.stderr) == (2, True)
    assert answer(tables, "show", "group", "twin", "--cluster", "c2")[0]["cluster"] == "c2"


def test_members_are_those_of_the_time_asked_for(tables: Path) -> None:
    def names(at: float) -> list[object]:
        return [row["member_id"] for row in answer(tables, "show", "members", "-g", "orders", "--at", seconds(at))]

    assert (names(9.999), names(10), names(69.999), names(70)) == (["a"], ["a", "b"], ["a", "b"], ["b"])
    assert [row["member_id"] for row in answer(tables, "show", "members", "-g", "orders")] == ["b"]


def test_members_are_told_in_the_words_of_kafkas_own_tool(tables: Path) -> None:
    header = ask(tables, "show", "members", "-g", "orders").stdout.splitlines()[0]
    words = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert [word for word in header.split() if word in words] == words


def test_rebalances_come_newest_first_and_can_be_chosen(tables: Path) -> None:
    def ids(*options: str) -> list[object]:
        return [row["rebalance_id"] for row in answer(tables, "show", "rebalances", *options)]

    assert ids() == [THIRD, SECOND, FIRST]
    assert ids("-n", "1") == [THIRD]
    assert ids("--trigger", "member_joined") == [SECOND]
    assert ids("--since", seconds(10), "--until", seconds(70)) == [SECOND]
    assert ids("--status", "failed") == []
    assert ids("--cluster", "c2") == []


def test_assignments_are_now_or_then(tables: Path) -> None:
    def told(*options: str) -> list[tuple[object, ...]]:
        found = answer(tables, "show", "assignments", "-g", "orders", "--origin", "computed", *options)
        return [(row["queue_id"], row["member_id"]) for row in found]

    assert told() == [(0, "b"), (1, "b")]
    assert told("--at", seconds(69.999)) == [(0, "a"), (1, "b")]
    assert told("--member", "a") == []


def test_open_findings_are_told_with_advice(tables: Path) -> None:
    (finding,) = answer(tables, "show", "findings")
    assert (finding["severity"], finding["advice"]) == ("warning", "compare the strategies of the clients")
    assert answer(tables, "show", "findings", "--cluster", "c2") == []


def test_explain_tells_what_happened_why_and_what_moved(tables: Path) -> None:
    text = ask(tables, "explain", THIRD).stdout
    for part in (
        "Group orders of kafka cluster c1 rebalanced at 2026-01-01T00:01:10.000Z: generation 3 (counted), completed.",
        "Members: 2 before, 1 after.",
        "session_expired: a (client app-a, host h1, instance static-a) sent no heartbeat for longer than its"
        " session timeout",
        "last heartbeat 2026-01-01T00:01:10.000Z",
        "[event event-bb33]",
        "orders-0: a → b",
        "How long: 3.2 s; queues were paused for 45.0 s in total.",
        "Clients: reported and computed assignment differ on 1 queue.",
    ):
        assert part in text, part
    assert "orders-1: " not in text


@pytest.mark.parametrize(
    ("pauses", "said", "in_list"),
    [
        ({}, "How long: not observed.", "-"),
        ({"pause_ms": 40}, "How long: 40 ms; the pause of its queues was not observed.", "40 ms"),
        ({"pause_estimated_ms": 40}, "How long: about 40 ms (estimated); the pause of its queues was not", "~40 ms"),
        ({"queue_pause_ms": 2_000}, "How long: not observed; queues were paused for 2.0 s in total.", "-"),
    ],
)
def test_a_pause_is_told_as_far_as_it_was_seen(pauses: dict[str, int], said: str, in_list: str, tmp_path: Path) -> None:
    row = rebalance("r1", 10_000, "member_gone", "a", **{"pause_ms": None, "queue_pause_ms": None, **pauses})
    DeltaFiles(tmp_path, REBALANCES).append(to_arrow(REBALANCES, [row]), Mark("job", 0))
    assert said in ask(tmp_path, "explain", "r1").stdout
    head, told = (line.split("  ") for line in ask(tmp_path, "show", "rebalances").stdout.splitlines())
    columns = [[word.strip() for word in line if word] for line in (head, told)]
    assert dict(zip(*columns, strict=True))["PAUSE"] == in_list


@pytest.mark.parametrize(
    ("trigger", "member", "more", "said"),
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
def test_explain_says_what_happened_in_words_that_fit(
    tmp_path: Path, trigger: journal.TriggerKind, member: str | None, more: dict[str, object], said: str
) -> None:
    row = rebalance("r2", 0, trigger, member) | {"members_after": 2} | more
    DeltaFiles(tmp_path, REBALANCES).append(to_arrow(REBALANCES, [row]), Mark("job", 0))
    Materializer(tmp_path, 0).run()
    assert said in ask(tmp_path, "explain", "r2").stdout


def test_explain_tells_for_how_long_queues_stood_still_until_each_was_taken_over(tmp_path: Path) -> None:
    row = rebalance("r2", 10_000, "member_gone", "a", pause_estimated_ms=1_000, queue_pause_estimated_ms=2_000)
    DeltaFiles(tmp_path, REBALANCES).append(to_arrow(REBALANCES, [row]), Mark("job", 0))
    history = Journal()
    told = [
        (0, assigned(3, "b", 0, generation=2, origin="reported", pause_ms=9)),  # before it
        (12_000, assigned(0, "b", 12_000, generation=2, origin="reported", pause_estimated_ms=1_000)),
        (13_000, assigned(1, "b", 13_000, generation=2, origin="reported", pause_estimated_ms=1_000)),
        (13_000, assigned(2, "b", 13_000, generation=2, origin="reported")),
        (15_000, resumed(0, "b", 2_500)),
    ]
    changes = [history.change(at, body, group="orders") for at, body in told]
    DeltaFiles(tmp_path, CHANGES).append(to_arrow(CHANGES, rows(changes)), Mark("job", 0))
    Materializer(tmp_path, 0).run()
    lines = ask(tmp_path, "explain", "r2").stdout.splitlines()
    start = lines.index("How long: about 1.0 s (estimated); queues were paused for about 2.0 s (estimated) in total.")
    assert lines[start + 1 : start + 4] == [
        "  orders-0: 2.5 s, then owned by b",
        "  orders-1: about 1.0 s (estimated), then owned by b",
        "",
    ]
    (told_as_json,) = answer(tmp_path, "explain", "r2")
    assert [(one["queue_id"], one["pause_ms"]) for one in told_as_json["taken_over"]] == [(0, 2_500), (1, None)]


def test_explain_in_json_names_each_queue_that_changed_hands(tables: Path) -> None:
    (told,) = answer(tables, "explain", SECOND)
    assert told["moves"]["computed"] == [
        {"topic": "orders", "broker": None, "queue_id": 1, "before": ["a"], "after": ["b"]}
    ]
    assert told["causes"][0]["host"] == "h2"
    assert told["rebalance"]["event_time"] == "2026-01-01T00:00:10.000Z"


def test_the_beginning_of_an_id_is_enough_if_only_one_begins_so(tables: Path) -> None:
    assert answer(tables, "explain", "bb")[0]["rebalance"]["rebalance_id"] == THIRD
    several = ask(tables, "explain", "aa")
    assert several.exit_code == 2
    assert FIRST in several.stderr
    assert SECOND in several.stderr
    assert ask(tables, "explain", "zz").exit_code == 1
    assert ask(tables, "explain", "").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["show", "group", "nobody"], 1, "there is no group nobody"),
        (["show", "members", "-g", "nobody"], 1, "there is no group nobody"),
        (["show", "rebalances", "-g", "nobody"], 1, "there is no group nobody"),
        (["show", "assignments", "-g", "nobody"], 1, "there is no group nobody"),
        (["who-owned", "orders", "0", "--at", "yesterday"], 2, "'yesterday' is not a time"),
        (["who-owned", "orders", "first"], 2, "valid integer"),
        (["show", "rebalances", "--trigger", "boredom"], 2, "boredom"),
        (["show", "assignments", "--origin", "guessed"], 2, "guessed"),
        (["show", "rebalances", "--status", "odd"], 2, "odd"),
    ],
)
def test_what_cannot_be_answered_is_said(tables: Path, arguments: list[str], exit_code: int, said: str) -> None:
    result = ask(tables, *arguments)
    assert result.exit_code == exit_code
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "groups"],
        ["show", "group", "g"],
        ["show", "members"],
        ["show", "rebalances"],
        ["show", "assignments"],
        ["show", "findings"],
        ["who-owned", "t", "0"],
        ["explain", "x"],
        ["optimize"],
    ],
)
def test_without_tables_the_way_out_is_said(tmp_path: Path, arguments: list[str]) -> None:
    missing = ask(tmp_path / "nowhere", *arguments)
    assert (missing.exit_code, "--tables DIR" in missing.stderr) == (2, True)
    empty = ask(tmp_path, *arguments)
    assert (empty.exit_code, "--tables DIR" in empty.stderr) == (2, True)


def test_tables_that_are_not_there_yet_count_as_empty(tmp_path: Path) -> None:
    DeltaFiles(tmp_path, CHANGES)
    assert answer(tmp_path, "show", "groups") == []
    assert ask(tmp_path, "show", "group", "g").exit_code == 1


def test_a_quote_in_a_name_is_a_letter_like_any_other(tables: Path) -> None:
    assert ask(tables, "show", "group", "it's").exit_code == 1


def test_asking_for_a_time_imports_no_pandas(tmp_path: Path) -> None:
    DeltaFiles(tmp_path, MEMBERS).append(to_arrow(MEMBERS, [{"joined_at": 1}]), Mark("job", 0))
    asks = "import sys; from pathlib import Path; from streaming.views.reader import Reader, holds_at"
    reads = f"rows = Reader(Path({str(tmp_path)!r})).rows('members', keep=holds_at('joined_at', 'left_at', 5))"
    script = f"{asks}; {reads}; print(len(rows), 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "1 False\n"
