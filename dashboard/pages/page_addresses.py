"""Dashboard: addresses of pages and of their data: ids travel as parameters, never as parts of a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import urlencode

API = "/api/v1/"
# The parameters of every page that name its range of time.
RANGE = ("range", "from", "to")
# Those of the page that is rendered: each address of another page gets them, so that the range stays.
_KEPT: ContextVar[Mapping[str, str] | None] = ContextVar("kept", default=None)


@contextmanager
def keeping(parameters: Mapping[str, str]) -> Iterator[None]:
    """Add these parameters to every address of a page that is made meanwhile."""
    token = _KEPT.set(parameters)
    try:
        yield
    finally:
        _KEPT.reset(token)


def address(path: str, parameters: Mapping[str, object] | None = None, **more: object) -> str:
    """Return an address with the parameters that have a value, in their order.

    Example:
        >>> address("/group", cluster="c", group="a&b", sort=None)
        '/group?cluster=c&group=a%26b'
    """
    given = {**(parameters or {}), **more}
    if not path.startswith("/api/"):
        given = {**given, **{name: value for name, value in (_KEPT.get() or {}).items() if name not in given}}
    kept = {name: str(value) for name, value in given.items() if value not in (None, "")}
    return f"{path}?{urlencode(kept)}" if kept else path


def group_address(cluster: str, group: str) -> str:
    """Return the address of a group's page."""
    return address("/group", cluster=cluster, group=group)


def advice_address(cluster: str, group: str) -> str:
    """Return the address of the advice to a group."""
    return address("/advice", cluster=cluster, group_id=group)


def member_address(member: str, cluster: str | None = None) -> str:
    """Return the address of a member's page."""
    return address("/member", member=member, cluster=cluster)


def client_address(client: str, cluster: str | None = None) -> str:
    """Return the address of a client's page."""
    return address("/client", client=client, cluster=cluster)


def host_address(host: str, cluster: str | None = None) -> str:
    """Return the address of a host's page; ``host`` has no port."""
    return address("/host", host=host, cluster=cluster)


def topic_address(topic: str, cluster: str | None = None) -> str:
    """Return the address of a topic's page."""
    return address("/topic", cluster=cluster, topic=topic)


def rebalance_address(rebalance_id: str) -> str:
    """Return the address of a rebalance's page."""
    return address("/rebalance", id=rebalance_id)


def finding_address(finding_id: str) -> str:
    """Return the address of a finding, open or closed, in the list of findings."""
    return address("/findings", finding_id=finding_id, open="any")


def next_sort(order: str, current: str) -> str:
    """Return the order for a click on a column's heading: numbers and times descend first.

    Example:
        >>> next_sort("members", "-members"), next_sort("members", "cluster"), next_sort("cluster", "members")
        ('members', '-members', 'cluster')
    """
    ascends_first = order in _TEXTS
    if current.removeprefix("-") != order:
        return order if ascends_first else f"-{order}"
    return order if current.startswith("-") else f"-{order}"


_TEXTS = frozenset(
    {"cluster", "group_id", "member_id", "host", "client", "client_id", "health", "severity", "kind", "reason", "state"}
)


def inside(path: str) -> str:
    """Return an address of this server to redirect to, else the first page; never another server's.

    Example:
        >>> inside("/group?group=a"), inside("//evil.example"), inside("https://evil.example")
        ('/group?group=a', '/', '/')
    """
    is_ours = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if is_ours else "/"
