"""The proxy that falls silent: what is cut off gets no answer and no refusal, and what was held back arrives."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.kit.silent_proxy import SilentProxy, silent_proxy

_SILENT_S, _ANSWER_S = 0.5, 10


@pytest.fixture
def proxy() -> Iterator[SilentProxy]:
    """A proxy of a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server, silent_proxy(server.getsockname()[1]) as silent:

        def serve(connection: socket.socket) -> None:
            with connection:
                while sent := connection.recv(100):
                    connection.sendall(sent)

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=[connection], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield silent
        server.shutdown(socket.SHUT_RDWR)


def ask(client: socket.socket, text: bytes, timeout_s: float) -> bytes | None:
    client.settimeout(timeout_s)
    try:
        client.sendall(text)
        return client.recv(100)
    except TimeoutError:
        return None


@pytest.mark.parametrize(("to_server", "from_server"), [(True, True), (True, False), (False, True)])
def test_a_connection_that_is_cut_off_is_silent_until_it_is_restored(
    proxy: SilentProxy, to_server: bool, from_server: bool
) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port)) as client:
        assert ask(client, b"one", _ANSWER_S) == b"one"
        proxy.cut(to_server=to_server, from_server=from_server)
        assert ask(client, b"two", _SILENT_S) is None
        with socket.create_connection(("127.0.0.1", proxy.port)) as newcomer:
            assert ask(newcomer, b"three", _SILENT_S) is None
            proxy.restore()
            client.settimeout(_ANSWER_S)
            newcomer.settimeout(_ANSWER_S)
            assert (client.recv(100), newcomer.recv(100)) == (b"two", b"three")


def test_connections_end_if_no_server_listens(proxy: SilentProxy) -> None:
    proxy.server_port = None
    with socket.create_connection(("127.0.0.1", proxy.port)) as client:
        client.settimeout(_ANSWER_S)
        assert client.recv(100) == b""
