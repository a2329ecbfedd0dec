"""Shell: whether a server is there at all; asked before anything that takes long is started."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from streaming.setup_error import SetupError

_TIMEOUT_S = 3.0


def require_reachable(addresses: Sequence[str], *, what: str, option: str) -> None:
    """Connect to the first of the addresses that lets us.

    Args:
        addresses: ``host:port`` each.
        what: They are, for people. option: Where they were given.

    Raises:
        SetupError: None of them can be reached.
    """
    failures = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT_S).close()
        except OSError as error:
            failures.append(f"{address}: {error.strerror or error}")
        else:
            return
    raise SetupError(
        f"no {what} can be reached: {'; '.join(failures)}",
        f"is it running, and can this machine reach it? Give its address with {option}.",
    )
