"""Whether one of several servers can be reached, and the error when none can."""

from __future__ import annotations

import socket

import pytest

from streaming.machine import port_check
from streaming.machine.port_check import remedy_by, require_reachable
from streaming.setup.errors import SetupError
from tests.kit.own_view import patch_in
from tests.kit.processes import free_port


def test_one_server_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        require_reachable([f"127.0.0.1:{free_port()}", f"127.0.0.1:{server.getsockname()[1]}"], what="x", remedy="y")


def test_an_address_of_version_6_is_in_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def connect(address: tuple[str, int], _timeout_s: float) -> socket.socket:
        tried.append(address)
        return socket.socket()

    patch_in(monkeypatch, port_check, "socket", create_connection=connect)
    require_reachable(["[::1]:9876", "b:1"], what="x", remedy="y")
    assert tried == [("::1", 9876)]


def test_every_server_that_does_not_answer_is_named_with_its_reason() -> None:
    first, long = f"127.0.0.1:{free_port()}", f"{'a' * 64}.example:1"
    with pytest.raises(SetupError) as caught:
        require_reachable([first, long], what="name server", remedy=remedy_by("--rocketmq"))
    assert f"no name server can be reached: {first}: Connection refused; {long}: is not a host name" in str(
        caught.value
    )
    assert caught.value.remedy.endswith("with --rocketmq.")
