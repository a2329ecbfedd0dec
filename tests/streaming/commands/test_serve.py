"""The command `serve`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2

from tests.streaming.views.story import write_story


def test_it_prints_its_address_answers_there_and_ends_with_the_signal(tmp_path: Path) -> None:
    write_story(tmp_path)
    program = "from streaming.commands import main; main()"
    command = [sys.executable, "-c", program, "serve", "--tables", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("pages: http://127.0.0.1:")
        assert httpx2.get(line.split()[1] + "api/v1/openapi.json", trust_env=False, timeout=60).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)


def test_a_folder_without_tables_is_refused(tmp_path: Path, complaint: Callable[..., str]) -> None:
    assert "no tables" in complaint("serve", "--tables", str(tmp_path))


def test_an_address_for_others_without_a_token_is_refused(tmp_path: Path, complaint: Callable[..., str]) -> None:
    assert "token" in complaint("serve", "--tables", str(tmp_path), "--host", "0.0.0.0")
