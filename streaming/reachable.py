"""Shell: whether a server is there at all; asked before anything that takes long is started."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from streaming.setup_error import SetupError

_TIMEOUT_S = 3.0


def require_reachable(addresses: Sequence[str], *, what: str, way_out: str) -> None:
    """Connect to the first of the addresses that lets us.

    Args:
        addresses: ``host:port`` each.
        what: They are, for people. way_out: What people may do.

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
        except UnicodeError:  # So says Python of a part that is longer than names of hosts are.
            failures.append(f"{address}: is no name of a host")
        else:
            return
    raise SetupError(f"no {what} can be reached: {'; '.join(failures)}", way_out)


def way_out_by(option: str) -> str:
    """Answer what people may do about an address that was given with an option."""
    return f"is it running, and can this machine reach it? Give its address with {option}."
