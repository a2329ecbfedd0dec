"""A job's summary, from tables that are written here by hand."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest
from deltalake import write_deltalake
from rich.console import Console

from streaming.tables import schema
from streaming.tables.arrow_rows import to_arrow
from streaming.views.job_summary import Summary, print_summary, summarise


def _rebalance(number: int, cluster: str, group: str, trigger: str, moved: int, **more: object) -> dict[str, object]:
    return {
        "rebalance_id": f"r{number}",
        "cluster": cluster,
        "system": cluster,
        "group_id": group,
        "generation": number,
        "event_time": 1_000 * number,
        "trigger": trigger,
        "status": "completed",
        "queues_moved": moved,
        **more,
    }


@pytest.fixture
def written(tmp_path: Path) -> Path:
    rows = {
        schema.REBALANCES: [
            _rebalance(1, "kafka", "a", "group_created", 0, agrees=True),
            _rebalance(2, "kafka", "a", "member_joined", 4, agrees=False),
            _rebalance(3, "kafka", "a", "member_joined", 3, agrees=True),
            _rebalance(4, "metaq", "b", "session_expired", 2, status="failed"),
        ],
        schema.GROUPS: [
            {"cluster": "kafka", "group_id": "a", "members": 5},
            {"cluster": "metaq", "group_id": "b", "members": 2},
            {"cluster": "metaq", "group_id": "c", "members": 0},
        ],
        schema.FINDINGS: [
            {"finding_id": "1", "kind": "idle", "severity": "info", "message": "one idles", "opened_at": 1},
            {"finding_id": "2", "kind": "silent", "severity": "critical", "message": "gone", "opened_at": 1},
            {"finding_id": "3", "kind": "silent", "severity": "critical", "opened_at": 1, "closed_at": 2},
        ],
        schema.ASSIGNMENTS: [
            {"cluster": "kafka", "group_id": "a", "topic": "t", "queue_id": 0, "valid_to": 5},
            {"cluster": "kafka", "group_id": "a", "topic": "t", "queue_id": 7, "valid_to": None},
        ],
    }
    for table, some in rows.items():
        write_deltalake(str(tmp_path / table.name), to_arrow(table, some))
    return tmp_path


def test_rebalances_are_counted_by_system_and_cause(written: Path) -> None:
    assert summarise(written).causes == [
        ("kafka", "member_joined", 2),
        ("kafka", "group_created", 1),
        ("metaq", "session_expired", 1),
    ]


def test_totals_are_those_of_the_tables(written: Path) -> None:
    summary = summarise(written)
    assert (summary.clusters, summary.groups, summary.members) == (2, 3, 7)
    assert (summary.rebalances, summary.failed, summary.queues_moved) == (4, 1, 9)
    assert (summary.agreeing, summary.differing, summary.rejected) == (2, 1, 0)


def test_the_busiest_group_comes_first_with_its_usual_cause(written: Path) -> None:
    assert summarise(written).worst_groups[0] == ("kafka", "a", 3, 7, "member_joined")


def test_only_open_findings_are_shown_the_gravest_first(written: Path) -> None:
    assert summarise(written).findings == [
        ("silent", "critical", 1, "gone"),
        ("idle", "info", 1, "one idles"),
    ]


def test_commands_name_what_is_in_the_tables(written: Path) -> None:
    assert summarise(written).commands == [
        f"rebalance-monitor show groups --tables {written}",
        f"rebalance-monitor explain r4 --tables {written}",
        f"rebalance-monitor show group a --cluster kafka --tables {written}",
        f"rebalance-monitor who-owned t 7 --group a --tables {written}",
    ]


def test_names_in_commands_are_quoted_and_in_lists_printable(tmp_path: Path) -> None:
    where = tmp_path / "a folder"
    row = _rebalance(1, "my cluster", "a'b\x1b[2J", "group_created", 0)
    write_deltalake(str(where / schema.REBALANCES.name), to_arrow(schema.REBALANCES, [row]))
    summary = summarise(where)
    assert all(shlex.split(command)[-2:] == ["--tables", str(where)] for command in summary.commands)
    assert shlex.split(summary.commands[2])[3:6] == ["a'b\x1b[2J", "--cluster", "my cluster"]
    printed = io.StringIO()
    print_summary(Summary(worst_groups=summary.worst_groups), Console(file=printed, width=200))
    assert r"a'b\x1b[2J" in printed.getvalue()


def test_tables_that_are_not_there_yet_count_as_empty(tmp_path: Path) -> None:
    assert summarise(tmp_path) == Summary(commands=[f"rebalance-monitor show groups --tables {tmp_path}"])


def test_commands_are_printed_whole_however_narrow_the_screen(written: Path) -> None:
    printed = io.StringIO()
    print_summary(summarise(written), Console(file=printed, width=40))
    assert f"  rebalance-monitor explain r4 --tables {written}\n" in printed.getvalue()
    assert "4 rebalances" in printed.getvalue()


def test_on_a_narrow_screen_only_examples_are_cut(written: Path) -> None:
    finding = ("generations_missed", "warning", 1_234, "3 generations before generation 12 were never seen")
    printed = io.StringIO()
    print_summary(Summary(findings=[finding]), Console(file=printed, width=60))
    assert "generations_missed" in printed.getvalue()
    assert "1,234" in printed.getvalue()
    assert "warning" in printed.getvalue()
    assert max(map(len, printed.getvalue().splitlines()[:-1])) <= 60
