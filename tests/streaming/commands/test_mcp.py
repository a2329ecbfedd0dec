"""The command `mcp`: nothing but the protocol on standard output, current tables, errors of a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import REBALANCES
from streaming.tables.writer import Mark
from tests.streaming.views.story import rebalance, run, write_story

_LOADED = """
import sys
from streaming.commands import main
main()
sys.stderr.write(" ".join(sorted(set(sys.modules) & {"pandas", "pyspark", "fastapi", "matplotlib"})))
"""
_OPENING: list[dict[str, Any]] = [
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "by hand", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
]


def _call(number: int, tool: str, **arguments: object) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def _lines(*messages: dict[str, Any]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def test_it_follows_the_tables_and_writes_nothing_but_the_protocol(tmp_path: Path) -> None:
    write_story(tmp_path)
    command = [sys.executable, "-c", _LOADED, "mcp", "--tables", str(tmp_path)]
    # Each call reads the newest versions.
    env = os.environ | {"REBALANCE_MONITOR_DASHBOARD__POLL_INTERVAL_MS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env) as process:

        def ask(*messages: dict[str, Any]) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(_lines(*messages))
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["id"] == messages[0]["id"]
            return dict(answer["result"])

        assert ask(*_OPENING)["serverInfo"]["name"] == "rebalance-monitor"
        for number in (1, 2):
            found = ask(_call(number, "run_question", question_name="most-rebalances"))
            assert found["structuredContent"]["answer"]["rows"][0]["rebalances"] == 2 + number
            more = [rebalance("dd44", 90_000, "member_left", "b")]
            DeltaRsTable(tmp_path, REBALANCES).append(to_arrow(REBALANCES, more), Mark("more", number))
        for number, tool in enumerate(("explain_rebalance", "timeline", "members", "lag", "what_is_wrong"), start=3):
            named = {"rebalance_id": "bb33"} if tool == "explain_rebalance" else {"group": "orders"}
            assert not ask(_call(number, tool, **named))["isError"]
        rest, errors = process.communicate(timeout=60)
    assert rest == ""
    assert (process.returncode, errors) == (0, ""), "it imports neither Spark nor pandas"


def test_without_tables_it_says_so(tmp_path: Path) -> None:
    result = run(tmp_path / "none", "mcp")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no such folder" in result.stderr
