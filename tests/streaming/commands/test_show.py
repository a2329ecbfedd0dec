"""The commands `show …`: what people read, and the errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streaming.views.rebalancing_story import write_rebalancing
from tests.streaming.views.story import FIRST, SECOND, THIRD, json_of, run


def test_a_group_shows_computed_and_reported_assignments_side_by_side(tables: Path) -> None:
    (group,) = json_of(tables, "show", "group", "orders")
    (member,) = group["member_list"]
    assert [queue["queue_id"] for queue in member["computed"]] == [0, 1]
    assert [queue["queue_id"] for queue in member["reported"]] == [1]
    assert member["agrees"] is False
    assert [row["rebalance_id"] for row in group["last_rebalances"]] == [THIRD, SECOND, FIRST]
    assert [row["kind"] for row in group["finding_list"]] == ["expected_differs"]
    assert group["open_findings"] == 1
    text = run(tables, "show", "group", "orders", "--wide").stdout
    assert "orders(0,1)  orders(1)  no" in text


def test_members_have_the_column_names_of_kafkas_own_tool(tables: Path) -> None:
    header = run(tables, "show", "members", "-g", "orders", "--wide").stdout.splitlines()[0]
    names = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert [name for name in header.split() if name in names] == names


def test_members_of_a_group_with_epochs_show_theirs(tmp_path: Path) -> None:
    write_rebalancing(tmp_path)
    (group,) = json_of(tmp_path, "show", "group", "newer")
    assert [(row["member_id"], row["epoch"], row["target_epoch"]) for row in group["member_list"]] == [("old", 2, 3)]
    assert group["member_epochs"] == [{"member_id": "old", "epoch": 2}]
    headers = [run(tmp_path, "show", "group", name, "--wide").stdout.split() for name in ("newer", "classic")]
    for name in ("CURRENT-EPOCH", "TARGET-EPOCH"):
        assert [name in header for header in headers] == [True, False]


def test_members_of_a_group_that_reconciles_are_those_of_now(tmp_path: Path) -> None:
    write_rebalancing(tmp_path)
    (group,) = json_of(tmp_path, "show", "group", "listed")
    queues = [[(row["reported"], row["target"]) for row in group["member_list"]]]
    numbers = [[[queue["queue_id"] for queue in held] for held in pair] for pair in queues[0]]
    assert numbers == [[[0], [0]], [[], [1]]]
    text = run(tmp_path, "show", "group", "listed", "--wide").stdout
    assert "TARGET-ASSIGNMENT" in text
    assert "Members and owners are those before it" not in text
    young = next(line for line in text.splitlines() if line.startswith("young"))
    assert young.split()[-4:] == ["3", "3", "orders(1)", "-"]


@pytest.mark.parametrize(
    ("group", "state"),
    [("classic", "preparing_rebalance"), ("newer", "reconciling"), ("streams", "reconciling"), ("polled", None)],
)
def test_while_a_group_of_any_protocol_rebalances_its_lag_is_not_reliable(
    group: str, state: str | None, tmp_path: Path
) -> None:
    write_rebalancing(tmp_path)
    text = run(tmp_path, "show", "group", group).stdout
    assert (f"The group rebalances ({state}): its lag is not reliable." in text) == (state is not None)
    assert ("its lag is not reliable" in text) == (state is not None)
    assert ("Members and owners are those before it" in text) == (group == "newer")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["show", "group", "nobody"], 2, "there is no group nobody"),
        (["show", "members", "-g", "nobody"], 2, "there is no group nobody"),
        (["show", "rebalances", "-g", "nobody"], 2, "there is no group nobody"),
        (["show", "assignments", "-g", "nobody"], 2, "there is no group nobody"),
        (["show", "rebalances", "--trigger", "boredom"], 2, "boredom"),
        (["show", "assignments", "--origin", "guessed"], 2, "guessed"),
        (["show", "rebalances", "--status", "odd"], 2, "odd"),
        (["show", "rebalances", "--status", "fialed"], 2, "did you mean failed?"),
        (["show", "groups", "--cluster", "c9"], 2, "there is no cluster c9; there are c1, c2"),
        (["show", "group", "order"], 2, "there is no group order; did you mean orders?"),
        (["show", "findings", "--cluster", "c9"], 2, "there is no cluster c9"),
        (["show", "findings", "--kind", "expected_difers"], 2, "did you mean expected_differs?"),
        (["show", "audits", "-g", "nobody"], 2, "there is no group nobody"),
        (["show", "audits", "--verdict", "agree"], 2, "did you mean agrees?"),
        (["show", "assignments", "--topic", "oders"], 2, "there is no topic oders; did you mean orders?"),
        (["show", "assignments", "--member", "zz"], 2, "there is no member zz"),
        (["show", "groups", "--state", "stabel"], 2, "did you mean stable?"),
        (["show", "groups", "--health", "red"], 2, "critical, warning, info, ok, unknown"),
    ],
)
def test_each_mistake_has_its_sentence_and_exit_code(
    tables: Path, arguments: list[str], exit_code: int, sentence: str
) -> None:
    result = run(tables, *arguments)
    assert result.exit_code == exit_code
    assert sentence in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stdout == ""


def test_groups_have_their_health_as_the_pages_and_filters(tables: Path) -> None:
    rows = {row["group_id"]: row for row in json_of(tables, "show", "groups")}
    assert (rows["orders"]["health"], rows["orders"]["finding_kinds"]) == ("warning", "expected_differs")
    assert rows["popping"]["health"] == "ok"
    assert rows["orders"]["coordinator_state"] == rows["orders"]["state"]
    for filters, expected in (
        (("--health", "warning"), {"orders"}),
        (("--health", "warning", "--health", "OK"), set(rows)),
        (("--finding", "expected_differs"), {"orders"}),
        (("--search", "ORD"), {"orders"}),
        (("--system", "rocketmq"), {name for name, row in rows.items() if row["system"] == "rocketmq"}),
        (("--state", "failed"), set()),
    ):
        assert {row["group_id"] for row in json_of(tables, "show", "groups", *filters)} == expected, filters
    nothing = run(tables, "show", "groups", "--state", "failed")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "fits these filters" in nothing.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("groups",),
        ("rebalances",),
        ("findings",),
        ("members",),
        ("assignments",),
        ("audits",),
        ("group", "orders"),
    ],
)
def test_on_a_terminal_of_80_columns_each_row_is_one_line(
    command: tuple[str, ...], tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    whole = run(tables, "show", *command).stdout.splitlines()
    monkeypatch.setattr("streaming.terminal.output.is_terminal", lambda: True)
    lines = run(tables, "show", *command).stdout.splitlines()
    assert max((len(line) for line in lines if "  " in line), default=0) <= 80
    assert len(lines) == len(whole)
    # No heading is cut, so each column is there.
    assert not [line for line in lines if line.startswith(("CLUSTER", "REBALANCE")) and "…" in line]
    wide = run(tables, "show", *command, "--wide").stdout.splitlines()
    assert max(map(len, wide), default=0) >= max(map(len, lines), default=0)


def test_explain_accepts_the_shortened_id_that_is_shown(tables: Path) -> None:
    header, first, *_ = run(tables, "show", "rebalances").stdout.splitlines()
    assert header.split()[0] == "REBALANCE"
    assert run(tables, "explain", first.split()[0]).exit_code == 0


def test_a_column_of_which_all_rows_have_one_value_is_left_out(tables: Path) -> None:
    header = run(tables, "show", "rebalances", "--cluster", "c1", "-g", "orders").stdout.splitlines()[0].split()
    assert not {"CLUSTER", "GROUP"} & set(header)
    wide = run(tables, "show", "rebalances", "--cluster", "c1", "-g", "orders", "--wide").stdout.splitlines()[0].split()
    assert {"CLUSTER", "GROUP"} <= set(wide)


def test_times_before_now_choose_rows_and_an_empty_list_names_the_newest(tables: Path) -> None:
    assert json_of(tables, "show", "rebalances", "--since", "1m") == []
    nothing = run(tables, "show", "rebalances", "--since", "1m").stderr
    assert "the newest one is of 2026-01-01T00:01:10.000Z" in nothing
    assert len(json_of(tables, "show", "rebalances", "--until", "1m")) == 3


def test_groups_are_listed_again_until_ctrl_c(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    once = run(tables, "show", "groups").stdout
    monkeypatch.setattr("streaming.terminal.output.sleep", pause)
    watched = run(tables, "show", "groups", "--watch")
    assert (watched.exit_code, watched.stdout, pauses) == (0, once * 3, [2.0] * 3)
