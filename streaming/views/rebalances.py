"""Shell: one rebalance by its id, and texts about rebalances in tables of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow.compute as pc

from streaming.tables.arrow_rows import from_arrow
from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.tables.schema import REBALANCES, Row
from streaming.terminal.format import time_text
from streaming.terminal.member_names import is_opaque
from streaming.views.name_checks import one_group
from streaming.views.reader import Reader

_CANDIDATES_SHOWN = 5


def one_rebalance(reader: Reader, prefix: str) -> Row:
    """Return the rebalance whose id begins with a prefix.

    Raises:
        NotFoundError: No id begins with it.
        AmbiguousError: Several ids do.
    """
    # A whole id is found by the statistics of the files; a mere prefix requires reading all of them.
    fitting = reader.read("rebalances", where={"rebalance_id": prefix})
    if not fitting.num_rows:
        fitting = reader.read("rebalances", keep=lambda rows: pc.starts_with(rows["rebalance_id"], prefix))
    found = from_arrow(REBALANCES, fitting.sort_by("rebalance_id"))
    if not found or not prefix:
        raise NotFoundError(f"there is no rebalance {prefix}; `show rebalances` lists them")
    exact = [row for row in found if row["rebalance_id"] == prefix]
    if len(found) > 1 and not exact:
        names = ", ".join(row["rebalance_id"] for row in found[:_CANDIDATES_SHOWN])
        more = ", …" if len(found) > _CANDIDATES_SHOWN else ""
        raise AmbiguousError(f"{len(found)} rebalances have an id that begins with {prefix}: {names}{more}")
    return (exact or found)[0]


def last_rebalance_of(reader: Reader, group: str, cluster: str | None = None) -> str:
    """Return the id of a group's last rebalance.

    Raises:
        NotFoundError: There is no such group, or none of its rebalances was seen. AmbiguousError: See ``one_group``.
    """
    found: str | None = one_group(reader, group, cluster)["last_rebalance_id"]
    if found is None:
        raise NotFoundError(f"no rebalance of group {group} was seen")
    return found


def causes_text(row: Row, name_of: Callable[[str], str] = str) -> str:
    """Return the main cause of a rebalance, and how many others it has.

    Example:
        >>> one = {"kind": "member_joined", "member_id": "a", "topic": None}
        >>> causes_text({"trigger": "member_joined", "triggers": [one, one | {"member_id": "b"}]})
        'member_joined a (+1)'
    """
    main = [cause for cause in row["triggers"] or [] if cause["kind"] == row["trigger"]]
    member = main[0]["member_id"] if main else None
    subject = name_of(member) if member else main[0]["topic"] if main else None
    others = len(row["triggers"] or []) - 1
    return f"{row['trigger']}" + (f" {subject}" if subject else "") + (f" (+{others})" if others > 0 else "")


def none_fit(reader: Reader, since_ms: int | None, until_ms: int | None) -> str:
    """Return that there is no rebalance, or none that matches, and when the newest one was."""
    newest = reader.newest_ms("rebalances", "event_time")
    if newest is None:
        return "no rebalances yet"
    bounds = [f"not before {time_text(since_ms)}"] if since_ms is not None else []
    bounds += [f"before {time_text(until_ms)}"] if until_ms is not None else []
    return f"no rebalance fits{': ' if bounds else ''}{', '.join(bounds)}; the newest one is of {time_text(newest)}"


def client_ids(reader: Reader, rows: Iterable[Row]) -> dict[str, str]:
    """Return the client ids of members that caused rebalances, if their member ids may be merely random."""
    causes = (cause["member_id"] for row in rows for cause in row["triggers"] or [] if cause["kind"] == row["trigger"])
    wanted = {member for member in causes if member and is_opaque(member)}
    if not wanted:
        return {}
    found = reader.read("members", columns=["member_id", "client_id"], where={"member_id": wanted})
    pairs = zip(found["member_id"].to_pylist(), found["client_id"].to_pylist(), strict=True)
    return {member: client for member, client in pairs if client is not None}


def repeated_text(row: Row) -> str:
    """Return how many messages are read twice; a ~ marks an estimate."""
    return _exact_and_estimated(row["repeated_messages"], row["repeated_estimated_messages"])


def waiting_text(row: Row) -> str:
    """Return how many messages waited for new owners; a ~ marks an estimate."""
    return _exact_and_estimated(row["waiting_messages"], row["waiting_estimated_messages"])


def _exact_and_estimated(exact: int | None, estimated: int | None) -> str:
    parts = [str(exact)] if exact is not None else []
    if estimated is not None:
        parts.append(f"~{estimated}")
    return "+".join(parts) or "-"
