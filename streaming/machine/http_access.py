"""Shell: access to the monitor's own servers: from where, by which name, with which token.

Names are checked so that no foreign page reaches a server under a name of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable

from streaming.setup.errors import SetupError

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY = frozenset({"0.0.0.0", "::"})


def is_local(host: str) -> bool:
    """Return whether only this machine can reach a listening address.

    Example:
        >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
        (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_token(host: str, token: str, setting: str) -> None:
    """Check that a server has a token if other machines reach it.

    Args:
        host: The address to listen on. setting: The setting that it comes from.

    Raises:
        SetupError: There is no token.
    """
    if not is_local(host) and not token:
        raise SetupError(
            f"{setting}: {host} is reached from other machines, and there is no token",
            "set dashboard.token (REBALANCE_MONITOR_DASHBOARD__TOKEN), or listen at 127.0.0.1",
        )


def is_token(token: str, given: str) -> bool:
    """Return whether a text is the token, in a time that does not depend on either's content."""
    return hmac.compare_digest(_digest(token), _digest(given))


def bearer(header: str) -> str | None:
    """Return the token of an ``Authorization`` header.

    Example:
        >>> bearer("Bearer secret"), bearer("Basic secret")
        ('secret', None)
    """
    scheme, _, given = header.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


class AllowedHosts:
    """Decides about ``Host`` headers.

    Args:
        listens_at: The address of the server. If it listens on all of a machine's addresses, any address matches; names
            must be listed.
    """

    def __init__(self, listens_at: str, names: Iterable[str]) -> None:
        self._names = _LOCAL | {listens_at.lower(), *(name.lower() for name in names)}
        self._any_address = listens_at in _ANY

    def allows(self, header: str) -> bool:
        """Return whether a ``Host`` header names this server."""
        name = host_name(header)
        return name in self._names or (self._any_address and _is_address(name))


def host_name(header: str) -> str:
    """Return the name in a ``Host`` header, without its port.

    Example:
        >>> host_name("Example.org:80"), host_name("[::1]:8687")
        ('example.org', '::1')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _digest(text: str) -> bytes:
    # Both texts have equal length, so the comparison does not reveal the token's.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
