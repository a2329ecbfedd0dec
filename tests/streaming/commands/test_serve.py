"""The command `serve`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from streaming.settings.locations import Location
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import GROUPS
from streaming.tables.writer import Mark
from tests.streaming.views.story import write_story

if TYPE_CHECKING:
    from tests.kit.s3 import S3Server

_DEADLINE_S = 60


@contextmanager
def serving(tables: Location) -> Iterator[str]:
    """Run `serve` until the block is left; give its address."""
    program = "from streaming.commands import main; main()"
    command = [sys.executable, "-c", program, "serve", "--tables", str(tables), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            while not line.startswith("pages: http://127.0.0.1:"):
                assert "holds no tables of the monitor yet" in line, line + process.stderr.read()
                line = process.stderr.readline()
            yield line.split()[1]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(_DEADLINE_S) in (0, -signal.SIGTERM)


def fetched(url: str) -> httpx2.Response:
    """Return an answer of the server."""
    answer = httpx2.get(url, trust_env=False, timeout=_DEADLINE_S)
    assert answer.status_code == 200, answer.text
    return answer


def test_it_prints_its_address_answers_there_and_ends_with_the_signal(tmp_path: Path) -> None:
    write_story(tmp_path)
    with serving(tmp_path) as url:
        fetched(f"{url}api/v1/openapi.json")


@pytest.mark.broker
def test_tables_on_a_store_are_served_like_those_on_a_disk_and_followed(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = s3.folder(monkeypatch)
    write_story(tmp_path)
    write_story(lake)
    listings = ("groups", "rebalances", "assignments", "members", "findings", "group-minutes", "clusters")

    def answers(url: str) -> dict[str, Any]:
        fetched(url)
        return {name: fetched(f"{url}api/v1/{name}").json() for name in listings}

    with serving(tmp_path) as url:
        expected = answers(url)
    with serving(lake) as url:
        assert answers(url) == expected
        rows = to_arrow(GROUPS, [{"cluster": "c1", "group_id": "newly-there", "system": "kafka", "members": 1}])
        DeltaRsTable(lake, GROUPS).append(rows, Mark("test", 0))
        deadline = time.monotonic() + _DEADLINE_S
        while "newly-there" not in fetched(f"{url}api/v1/groups").text:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_before_there_are_tables_nothing_is_known_and_then_they_are_shown(tmp_path: Path) -> None:
    with serving(tmp_path) as url:
        assert "Nothing is known yet" in fetched(url).text
        write_story(tmp_path)
        deadline = time.monotonic() + _DEADLINE_S
        while "orders" not in fetched(f"{url}api/v1/groups").text:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_a_catalogue_is_refused_because_only_spark_reads_it(complaint: Callable[..., str]) -> None:
    assert "is a schema of Spark's catalogue" in complaint("serve", "--tables", "main.monitor")


def test_an_address_for_others_without_a_token_is_refused(tmp_path: Path, complaint: Callable[..., str]) -> None:
    assert "token" in complaint("serve", "--tables", str(tmp_path), "--host", "0.0.0.0")
