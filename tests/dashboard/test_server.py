"""The server listens at this machine alone, unless there is a token."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import httpx2
import pytest

import dashboard.app
from dashboard.server import DashboardServer
from streaming.settings.model import load
from streaming.setup.errors import SetupError


def test_another_address_needs_a_token(story_tables: Path) -> None:
    with pytest.raises(SetupError, match="no token"):
        DashboardServer(story_tables, load(overrides={"dashboard.host": "0.0.0.0", "dashboard.port": 0}).dashboard)


def test_it_answers_at_its_address_and_a_port_in_use_is_named(story_tables: Path) -> None:
    server = DashboardServer(story_tables, load(overrides={"dashboard.port": 0}).dashboard)
    with pytest.raises(SetupError, match=f"127.0.0.1:{server.port}"):
        DashboardServer(story_tables, load(overrides={"dashboard.port": server.port}).dashboard)
    with server.in_background():
        answer = httpx2.get(f"{server.url}api/v1/openapi.json", trust_env=False, timeout=60)
        assert answer.json()["info"]["title"] == "Rebalance monitor"
        assert "server" not in answer.headers


def test_in_the_background_it_is_warm_before_its_context_begins(
    story_tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, was_begun = threading.Event(), list[bool]()
    monkeypatch.setattr(dashboard.app, "warm_up", lambda *_: was_begun.append(begun.wait(1)))
    with DashboardServer(story_tables, load(overrides={"dashboard.port": 0}).dashboard).in_background():
        begun.set()
    assert was_begun == [False]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_that_cannot_start_keeps_its_context_not_waiting(
    story_tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = DashboardServer(story_tables, load(overrides={"dashboard.port": 0}).dashboard)

    def fail(*_: object) -> None:
        raise OSError("no loop of events")

    monkeypatch.setattr(server._server, "run", fail)
    with server.in_background(), pytest.raises(httpx2.ConnectError):
        httpx2.get(server.url, trust_env=False)


def test_a_host_that_is_not_this_machines_is_named(story_tables: Path) -> None:
    settings = load(overrides={"dashboard.host": "192.0.2.1", "dashboard.token": "x" * 16, "dashboard.port": 0})
    with pytest.raises(SetupError, match=r"192\.0\.2\.1"):
        DashboardServer(story_tables, settings.dashboard)


@pytest.mark.timeout(60)
def test_one_that_was_stopped_before_it_took_signals_ends_at_once(story_tables: Path) -> None:
    server = DashboardServer(story_tables, load(overrides={"dashboard.port": 0}).dashboard)
    server.run(lambda: True, lambda: pytest.fail("it never answered"))
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(server.url, trust_env=False)


def test_it_ends_although_a_client_does_not_take_its_answers_and_leaves_no_connection(
    story_tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = DashboardServer(story_tables, load(overrides={"dashboard.port": 0}).dashboard)
    monkeypatch.setattr(server._server.config, "timeout_graceful_shutdown", 0.5)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    with client:
        with server.in_background():
            client.connect(("127.0.0.1", server.port))
            # Eight megabytes: more than the system takes for a client.
            client.sendall(13 * b"GET /static/vendor/echarts.min.js HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 200"
            assert len(server._server.server_state.connections) == 1
        assert server._server.server_state.connections == set()
        client.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1 << 16):
                pass  # what was sent before the end
