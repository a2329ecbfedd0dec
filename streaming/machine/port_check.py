"""Shell: checks, before a slow start, whether a server can be reached."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from streaming.setup.errors import UnreachableError

_TIMEOUT_S = 3.0


def require_reachable(addresses: Sequence[str], *, what: str, remedy: str) -> None:
    """Connect to the first address that accepts a connection.

    Args:
        addresses: ``host:port`` each.
        what: A name for the addresses in errors. remedy: What users may do.

    Raises:
        UnreachableError: None of them can be reached.
    """
    failures = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT_S).close()
        except OSError as error:
            failures.append(f"{address}: {error.strerror or error}")
        except UnicodeError:  # Python raises this for a label longer than host names allow
            failures.append(f"{address}: is not a host name")
        else:
            return
    raise UnreachableError(f"no {what} can be reached: {'; '.join(failures)}", remedy)


def remedy_by(option: str) -> str:
    """Return what users may do about an address that was given with an option."""
    return f"Check that it runs and that this machine can reach it, or give its address with {option}."
