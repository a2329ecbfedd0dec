"""The command `check --plan`, on the small group of `what-if`, whose answers are worked out by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.streaming.commands.test_what_if import T0, planned
from tests.streaming.tables.signs import leave_recording_sign, leave_silent_sign
from tests.streaming.views.story import run

__all__ = ["planned"]

ORDERS = '[[change]]\ngroup = "orders"\n'
END = T0 + 5 * 60_000


@pytest.fixture(scope="module")
def known(planned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tables as a recording, so that they are known up to their end."""
    root = tmp_path_factory.mktemp("known") / "tables"
    shutil.copytree(planned, root)
    leave_recording_sign(root, ["kafka", "rocketmq"], {"kafka": END, "rocketmq": END})
    return root


def checked(tables: Path, tmp_path: Path, text: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    (tmp_path / "plan.toml").write_text(text)
    result = run(tables, "check", "--plan", str(tmp_path / "plan.toml"), "--json", *arguments)
    assert result.stdout.count("\n") == 1, result.output
    return result.exit_code, json.loads(result.stdout)


# One more member moves 1 queue of range, or 3 if its id sorts first, stops all 4, and pauses for 2 s.
@pytest.mark.parametrize(
    ("objective", "change", "code", "state", "foreseen"),
    [
        ("max_moved = 3", "add = 1", 0, "ok", (1, 3)),
        ("max_moved = 2", "add = 1", 3, "unknown", (1, 3)),
        ("max_moved = 0", "add = 1", 2, "critical", (1, 3)),
        ("max_moved = {value = 4, warn = 2}", "add = 1", 1, "warning", (1, 3)),
        ("max_moved = {value = 4, warn = 3}", "add = 1", 0, "ok", (1, 3)),
        ("max_moved = 7", "rolling_restart = true", 2, "critical", (8, 8)),
        ("max_moved = 8", "rolling_restart = true", 0, "ok", (8, 8)),
        ("max_moved = 0", "queues = {t = 4}", 0, "ok", (0, 0)),
        ("max_moved = 0", "queues = {t = 6}", 2, "critical", (1, 1)),
        ("max_moved = 0", "members = 2", 0, "ok", (0, 0)),
        ("max_moved = 1", "members = 1", 2, "critical", (2, 2)),
        ("max_stopped = 3", "add = 1", 2, "critical", (4, 4)),
        ("max_stopped = 1", 'add = 1\nstrategy = "range"', 2, "critical", (4, 4)),
        ("max_stopped = 0", 'strategy = "range"', 0, "ok", (0, 0)),
        ("max_stopped = 1", "rolling_restart = true\nstatic = true", 2, "critical", (2, 2)),
        ("max_pause = '2s'", "add = 1", 0, "ok", (2_000, 2_000)),
        ("max_pause = '1999ms'", "add = 1", 2, "critical", (2_000, 2_000)),
        ("max_pause = {value = '3s', warn = '1s'}", "add = 1", 1, "warning", (2_000, 2_000)),
        ("max_pause = '1h'", "rolling_restart = true\nstatic = true", 3, "unknown", (None, None)),
        ("max_pause = '1h'", "rolling_restart = true\nat_a_time = 2", 3, "unknown", (None, None)),
        ("max_pause = '2d'", 'lose_host = ["h-a"]', 3, "unknown", (86_400_000, None)),
        ("max_pause = '1h'", 'lose_host = ["h-a"]', 2, "critical", (86_400_000, None)),
        ("max_pause = '0s'", "members = 2", 0, "ok", (0, 0)),
        ("max_idle = 0", "members = 5", 2, "critical", (1, 1)),
        ("max_idle = 1", "members = 5", 0, "ok", (1, 1)),
        ("max_spread = 0", "add = 1", 2, "critical", (1, 1)),
    ],
)
def test_a_change_is_judged_by_what_is_foreseen_and_by_what_cannot_be_ruled_out(
    known: Path, tmp_path: Path, objective: str, change: str, code: int, state: str, foreseen: tuple[Any, Any]
) -> None:
    exit_code, found = checked(known, tmp_path, f"[objectives]\n{objective}\n{ORDERS}{change}\n")
    (judged,) = found["changes"]
    (each,) = judged["objectives"]
    assert (each["foreseen"], each["most"]) == foreseen
    assert (exit_code, found["state"], each["state"]) == (code, state, state)


def test_the_lines_say_what_each_change_does_and_why(known: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        f'[objectives]\nmax_moved = 2\nmax_pause = "1s"\n{ORDERS}add = 1\n[[change]]\ngroup = "nobody"\nadd = 1\n'
    )
    result = run(known, "check", "--plan", str(tmp_path / "plan.toml"))
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[:4] == [
        "PLAN CRITICAL - orders: max_moved 1, up to 3, at most 2; orders: max_pause 2.0 s, at most 1.0 s; "
        "nobody: max_moved unknown, at most 2; nobody: max_pause unknown, at most 1.0 s",
        "orders in kafka now (kafka.range, 2 members, 4 queues): 1 new member",
        "  unknown   max_moved    1, up to 3; at most 2 (by ids that are not known)",
        "  critical  max_pause    2.0 s; at most 1.0 s (from 1 rebalance of this group)",
    ]
    assert any(
        line.startswith("  unknown   max_moved    unknown; at most 2 (there is no group nobody") for line in lines
    )


def test_a_group_of_an_unknown_cluster_is_not_judged(planned: Path, tmp_path: Path) -> None:
    plan = f"[objectives]\nmax_moved = 0\nmax_idle = 9\n{ORDERS}add = 1\n"
    root = tmp_path / "tables"
    shutil.copytree(planned, root)
    leave_silent_sign(root, "kafka", known_until=END)
    code, found = checked(root, tmp_path, plan)
    assert (code, [each["state"] for each in found["changes"][0]["objectives"]]) == (3, ["unknown", "unknown"])
    assert "blind since" in found["changes"][0]["doubts"][0]
    (tmp_path / "settings.toml").write_text('[check]\nblind_state = "critical"\n')
    assert checked(root, tmp_path, plan, "--config", str(tmp_path / "settings.toml"))[0] == 2
    assert checked(root, tmp_path, plan, "--at", str(END))[0] == 2, "it was known then"


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("[[change]]\ngroup = 'g'\nadd = 1\n", ["objectives: is missing"]),
        ("[objectives]\n" + ORDERS + "add = 1\n", ["objectives: has none of max_moved, max_stopped, max_pause"]),
        ("[objectives]\nmax_moved = 1\n", ["change: is missing"]),
        ("change = []\n[objectives]\nmax_moved = 1\n", ["change: a plan has 1 to 1000 changes, not 0"]),
        ("[objectives]\nmax_moved = 1\n" + ORDERS, ["change.1: changes nothing"]),
        ("[objectives]\nmax_moved = 1\n" + ORDERS + "members = 3\nadd = 1\n", ["change.1: members says how many"]),
        ("[objectives]\nmax_moved = 1\n" + ORDERS + "members = 3\nstatic = true\n", ["only with rolling_restart"]),
        ("[objectives]\nmax_moved = 1\n" + ORDERS + "queues = {t = 0}\n", ["change.1.queues.t: ", "not 0"]),
        ("[objectives]\nmax_pause = 5\n" + ORDERS + "add = 1\n", ["max_pause.value: is a span of time in quotes"]),
        ("[objectives]\nmax_idle = {value = 1, warn = 1}\n" + ORDERS + "add = 1\n", ["warn is not lower than value"]),
        (
            "[objectives]\nmax_spead = 1\n" + ORDERS + "ad = 1\n",
            ["max_spread or", "change.1.ad: 'ad' is not one of group, cluster, members, add", "did you mean add?"],
        ),
        ("[objectives\n", ["is not TOML"]),
    ],
)
def test_mistakes_name_file_and_key_and_what_is_allowed(
    known: Path, tmp_path: Path, text: str, mistakes: list[str]
) -> None:
    code, found = checked(known, tmp_path, text)
    assert code == 3
    assert found["message"].startswith(f"REBALANCES UNKNOWN - {tmp_path / 'plan.toml'}: ")
    assert all(mistake in found["message"] for mistake in mistakes), found["message"]


def test_options_that_the_file_has_are_refused(known: Path, tmp_path: Path) -> None:
    code, found = checked(known, tmp_path, "", "--group", "orders")
    assert (code, "only with --at, --cluster" in found["message"]) == (3, True)
