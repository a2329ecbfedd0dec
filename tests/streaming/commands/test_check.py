"""The command `check`: exit codes and the line that monitors read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.reading.objectives import Evaluation, Figure
from streaming.commands.app import app
from streaming.commands.check import sentence
from streaming.views.freshness import ClusterFreshness
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import leave_recording_sign
from tests.streaming.views.many_groups import Troubled, names, write_groups
from tests.streaming.views.story import run, write_story

# The story ends at 80 s with one open warning; an hour before it nothing was known.
AT = "2026-01-01T00:01:20Z"
BEGINNING = "2026-01-01T00:00:00Z"
RECORDED = f"c1 is a recording that ends at {AT}; c2 is a recording that ends at {AT}"
BEFORE, AFTER = "2025-12-31T23:00:00Z", "2026-01-01T00:01:21Z"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ended-story")
    write_story(root)
    ends_at(root, "c1", "c2")
    return root


def ends_at(root: Path, *clusters: str) -> None:
    """Let the recordings of these clusters end at ``AT``."""
    leave_recording_sign(root, clusters, dict.fromkeys(clusters, T0 + 80_000))


def checked(tables: Path, *arguments: str) -> tuple[int, str]:
    result = run(tables, "check", *arguments)
    assert result.stdout.count("\n") == 1
    return result.exit_code, result.stdout


def test_an_open_finding_of_severity_warning_is_a_warning(tables: Path) -> None:
    code, line = checked(tables)
    assert code == 1
    assert line.startswith("REBALANCES WARNING - open findings: 1 warning expected_differs, first of c1/orders; ")


def test_findings_not_open_at_the_time_or_ignored_do_not_count(tables: Path) -> None:
    code, line = checked(tables, "--at", BEGINNING)
    assert (code, line.split(" | ")[0]) == (0, f"REBALANCES OK - no open findings; {RECORDED}")
    assert checked(tables, "--ignore", "expected_differs")[0] == 0
    assert checked(tables, "--cluster", "c2")[0] == 0
    assert checked(tables, "--group", "twin")[0] == 0


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (BEFORE, f"c1, c2 blind: nothing is known before {BEGINNING}"),
        (AFTER, f"c1, c2 blind: nothing is known after {AT}"),
        ("2200-01-01T00:00:00Z", f"c1, c2 blind: nothing is known after {AT}"),
    ],
)
def test_a_time_of_which_the_tables_know_nothing_is_unknown(tables: Path, at: str, text: str) -> None:
    code, line = checked(tables, "--at", at, "--ignore", "expected_differs")
    assert code == 3
    assert line.startswith(f"REBALANCES UNKNOWN - {text}")


def test_widespread_findings_are_one_part_of_the_line(tmp_path: Path) -> None:
    write_groups(tmp_path, 5, Troubled(names(1, 4)))
    ends_at(tmp_path, "c1")
    code, line = checked(tmp_path, "--at", AT)
    text = "no open findings that count; widespread, not counted: flapping in 4 of 5 groups of c1"
    assert (code, line.split(" | ")[0]) == (0, f"REBALANCES OK - {text}; c1 is a recording that ends at {AT}")
    found = json.loads(checked(tmp_path, "--at", AT, "--json")[1])
    assert (found["state"], found["findings"]) == ("ok", [])
    assert found["widespread"] == [{"cluster": "c1", "kind": "flapping", "groups": 4, "of_groups": 5}]


def test_widespread_findings_hide_nothing_else(tmp_path: Path) -> None:
    write_groups(tmp_path, 5, Troubled(names(1, 4)), Troubled(["g1"], "queue_unassigned", severity="critical"))
    ends_at(tmp_path, "c1")
    code, line = checked(tmp_path, "--at", AT)
    text = "open findings: 1 critical queue_unassigned, first of c1/g1; widespread, not counted: flapping in 4 of 5"
    assert code == 2
    assert line.startswith(f"REBALANCES CRITICAL - {text}")


@pytest.mark.parametrize(
    ("objective", "code"),
    [
        ("rebalances_per_hour=4", 0),  # three of them in the hour before
        ("rebalances_per_hour=3", 1),
        ("rebalances_per_hour=2:3", 2),
        ("rebalances_per_hour=2:4", 1),
        ("queue_outage_s=46", 0),
        ("queue_outage_s=45", 1),
        ("queue_outage_s=1:45", 2),
        ("source_delay_s=3.1", 0),
        ("source_delay_s=3", 1),
        ("source_delay_s=0:3", 2),
    ],
)
def test_an_objective_is_missed_from_its_value_on(tables: Path, objective: str, code: int) -> None:
    found, line = checked(tables, "--at", AT, "--ignore", "expected_differs", "--objective", objective)
    assert found == code
    assert (objective.split("=")[0] + " is" in line) == (code > 0)


def test_rates_are_those_of_the_window(tables: Path) -> None:
    given = (
        "--at",
        AT,
        "--ignore",
        "expected_differs",
        "--window",
        "36s",
        "--objective",
        "rebalances_per_hour=100:101",
    )
    # One within 36 seconds is a hundred in an hour.
    assert checked(tables, *given)[0] == 1


def test_the_line_ends_with_figures_as_plugins_write_them(tables: Path) -> None:
    _, line = checked(tables, "--at", AT, "--objective", "queue_outage_s=10:20.5")
    figures = line.split(" | ")[1].split()
    assert figures == [
        "rebalances_per_hour=3;;;0",
        "queue_outage_s=45s;10;20.5;0",
        "queue_outage_s_per_day=45s;;;0",
        "source_delay_s=3s;;;0",
    ]


@pytest.mark.parametrize(
    ("budget", "code", "text", "left"),
    [
        ("0:60", 0, "budget of a day: 75% of 60 s used in c1/orders, 15 s left", 15.0),
        ("40:60", 1, "75% of 60 s used in c1/orders, 15 s left", 15.0),
        ("0:45", 2, "100% of 45 s used in c1/orders, 0 s left", 0.0),
        ("0:30", 2, "150% of 30 s used in c1/orders, none left", 0.0),
    ],
)
def test_a_budget_of_a_day_says_what_is_used_and_left(
    tables: Path, budget: str, code: int, text: str, left: float
) -> None:
    given = ("--at", AT, "--ignore", "expected_differs", "--objective", f"queue_outage_s_per_day={budget}")
    found, line = checked(tables, *given)
    assert (found, text in line) == (code, True), line
    of_budget = [each for each in json.loads(checked(tables, *given, "--json")[1])["objectives"] if "left" in each]
    assert [(each["left"], each["used_ratio"]) for each in of_budget] == [(left, 45 / float(budget.split(":")[1]))]


def test_a_budget_of_which_the_use_is_known_at_least_says_so() -> None:
    figure = Figure("queue_outage_s_per_day", 30.0, 0.0, 60.0, "c", "g", unknown_queues=2)
    line = sentence(Evaluation([], [figure]))
    assert line.startswith("REBALANCES UNKNOWN - queue_outage_s_per_day is at least 30 in c/g: for 2 queues")
    assert line.endswith("budget of a day: at least 50% of 60 s used in c/g, at most 30 s left")


@pytest.mark.parametrize("at", [BEFORE, AFTER])
def test_while_clusters_are_blind_no_figure_is_known(tables: Path, at: str) -> None:
    given = ("--at", at, "--objective", "queue_outage_s_per_day=10:60")
    line = checked(tables, *given)[1]
    assert "budget of a day: what is used is unknown" in line
    objectives = json.loads(checked(tables, *given, "--json")[1])["objectives"]
    assert {(each["state"], each["value"]) for each in objectives} == {("unknown", None)}
    assert [(each["used_ratio"], each["left"]) for each in objectives if "left" in each] == [(None, None)]


def test_a_budget_that_is_spent_stays_spent_where_another_cluster_is_blind() -> None:
    blind = [ClusterFreshness("b", None, "unknown", None, "the broker does not answer")]
    spent, partly = (Figure("queue_outage_s_per_day", used, 0.0, 60.0, "c", "g") for used in (75.0, 30.0))
    assert sentence(Evaluation([], [spent], blind=blind)).endswith("at least 125% of 60 s used in c/g, none left")
    assert sentence(Evaluation([], [partly], blind=blind)).endswith(
        "at least 50% of 60 s used in c/g, at most 30 s left"
    )


def test_json_has_all_values(tables: Path) -> None:
    code, line = checked(tables, "--at", AT, "--objective", "queue_outage_s=10:20.5", "--json")
    found = json.loads(line)
    assert (code, found["state"], found["exit_code"]) == (2, "critical", 2)
    assert [row["finding_id"] for row in found["findings"]] == ["f1"]
    assert found["findings"][0]["opened_at"] == "2026-01-01T00:01:10.000Z"
    (pause,) = [objective for objective in found["objectives"] if objective["name"] == "queue_outage_s"]
    assert pause == {
        "name": "queue_outage_s",
        "state": "critical",
        "value": 45.0,
        "warning": 10.0,
        "critical": 20.5,
        "cluster": "c1",
        "group_id": "orders",
        "unknown_queues": 0,
    }


@pytest.mark.parametrize("as_json", [False, True])
def test_tables_that_cannot_be_read_are_unknown(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "groups" / "_delta_log").mkdir(parents=True)
    (tmp_path / "findings" / "_delta_log").mkdir(parents=True)
    (tmp_path / "findings" / "_delta_log" / f"{0:020}.json").write_text("not json\n")
    for root in (tmp_path, tmp_path / "absent"):
        code, line = checked(root, *(["--json"] if as_json else []))
        assert code == 3
        assert (json.loads(line)["message"] if as_json else line).startswith("REBALANCES UNKNOWN - ")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--objective", "nonsense=3"], "nonsense=3"),
        (["--objective", "queue_outage_s"], "queue_outage_s"),
        (["--objective", "queue_outage_s=many"], "queue_outage_s=many"),
        (["--objective", "queue_outage_s=-1"], "queue_outage_s_warning"),
        (["--objective", "queue_outage_s=nan"], "queue_outage_s_warning"),
        (["--window", "0s"], "window_ms"),
        (["--window", "long"], "long"),
        (["--at", "noon"], "noon"),
        (["--no-such-option"], "--no-such-option"),
        (["--config", "absent.toml"], "absent.toml"),
        (["--group"], "--group"),
        (["one", "too many"], "one"),
        (["--cluster", "c3"], "there is no cluster c3"),
        (["--group", "absent"], "there is no group absent"),
        (["--cluster", "c2", "--group", "orders"], "there is no group orders in cluster c2"),
        (["--cluster", "a|b\nc"], "there is no cluster a¦b\\nc"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_arguments_that_cannot_be_used_are_unknown_with_one_line_of_the_reason(
    tables: Path, arguments: list[str], reason: str, as_json: bool
) -> None:
    # `--tables` comes first: behind an option that lacks its value, it would be taken for that value.
    result = CliRunner().invoke(app, ["check", "--tables", str(tables), *(["--json"] if as_json else []), *arguments])
    assert (result.exit_code, result.stdout.count("\n")) == (3, 1)
    line = json.loads(result.stdout)["message"] if as_json else result.stdout
    assert line.startswith("REBALANCES UNKNOWN - ")
    assert reason in line


def test_hostile_ids_keep_to_one_short_line() -> None:
    wild = "a|b;c\n\x1b[2J'\"" + "x" * 10_000
    row = {"severity": "critical", "kind": "duplicate_ids", "cluster": wild, "group_id": wild, "finding_id": "f"}
    line = sentence(Evaluation([row], [Figure("queue_outage_s", 5.0, 1.0, 2.0, wild, wild)]))
    assert re.search(r"[|\n\x1b]", line) is None
    assert len(line) <= 1_000
    assert line.startswith("REBALANCES CRITICAL - open findings: 1 critical duplicate_ids, first of a¦b;c\\n\\x1b[2J")
