"""A TCP proxy that can fall silent, as a network does that drops packets: nothing is refused, reset or closed.

proxy = SilentProxy(broker_port)     # clients connect to proxy.address
proxy.cut(to_server=True)            # what clients send no longer arrives
proxy.restore()                         # what was held back arrives, as TCP would send it again
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator

from tests.kit.processes import free_port

_CHUNK = 65_536
_POLL_S = 0.05


class SilentProxy:
    """Forwards connections to a loopback port, in its own thread, until it is closed.

    Attributes:
        port, address: Where it listens. server_port: Where it forwards to; None: nobody listens there yet.
    """

    def __init__(self, server_port: int | None = None) -> None:
        self.server_port = server_port
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        # By the socket that is read: the one that is written, and whether that is towards the server.
        self._pairs: dict[socket.socket, tuple[socket.socket, bool]] = {}
        self._held = {True: False, False: False}
        self._changed = threading.Event()
        self._is_closed = False
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="silent-proxy", daemon=True)
        self._thread.start()

    def cut(self, *, to_server: bool = False, from_server: bool = False) -> None:
        """Hold back what is sent in these directions; no connection is accepted any more."""
        self._held = {True: to_server, False: from_server}
        self._changed.set()

    def restore(self) -> None:
        """Forward everything again, what was held back first."""
        self.cut()

    def close(self) -> None:
        """End it, with all connections."""
        self._is_closed = True
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            if self._changed.is_set():
                self._changed.clear()
                self._select_again()
            # Nothing may be selected while both directions are cut.
            for key, _ in self._selector.select(_POLL_S):
                own = key.fileobj
                assert isinstance(own, socket.socket)
                if own is self._listener:
                    self._accept()
                # A cut counts from the moment it is made, also for what was selected before.
                elif own in self._pairs and not self._held[self._pairs[own][1]]:
                    self._forward(own)
        for own in (*self._pairs, self._listener):
            own.close()
        self._selector.close()

    def _select_again(self) -> None:
        is_cut = any(self._held.values())
        self._select(self._listener, wanted=not is_cut)
        for own, (_, to_server) in self._pairs.items():
            self._select(own, wanted=not self._held[to_server])

    def _select(self, own: socket.socket, *, wanted: bool) -> None:
        if wanted and own not in self._selector.get_map():
            self._selector.register(own, selectors.EVENT_READ)
        elif not wanted and own in self._selector.get_map():
            self._selector.unregister(own)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            client, _ = self._listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.server_port or 0), timeout=5)
            except OSError:
                client.close()  # Nobody listens there: what a client of the server itself would see.
                return
            for own, other, to_server in ((client, server, True), (server, client, False)):
                own.setblocking(True)
                self._pairs[own] = (other, to_server)
                self._select(own, wanted=not self._held[to_server])

    def _forward(self, own: socket.socket) -> None:
        other, _ = self._pairs[own]
        try:
            sent = own.recv(_CHUNK)
            if sent:
                other.sendall(sent)
                return
        except OSError:
            pass
        for side in (own, other):
            self._pairs.pop(side, None)
            self._select(side, wanted=False)
            side.close()


@contextlib.contextmanager
def silent_proxy(server_port: int | None = None) -> Iterator[SilentProxy]:
    """Run one until the block is left."""
    proxy = SilentProxy(server_port)
    try:
        yield proxy
    finally:
        proxy.close()
