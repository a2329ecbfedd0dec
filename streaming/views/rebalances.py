"""Shell: rebalances, newest first."""

from __future__ import annotations

from streaming.tables import Row
from streaming.views.reading import AmbiguousError, NotFoundError, Reader

_CANDIDATES_SHOWN = 5


def rebalances(
    reader: Reader,
    *,
    group: str | None = None,
    cluster: str | None = None,
    trigger: str | None = None,
    status: str | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    limit: int | None = None,
) -> list[Row]:
    """Answer rebalances that fit, newest first.

    Args:
        trigger: One of the causes, not only the main one.
        since_ms: Not before; until_ms: before.
    """
    tests, parameters = ["true"], []
    if trigger is not None:
        tests.append("(trigger = ? OR list_contains([t.kind FOR t IN triggers], ?))")
        parameters += [trigger, trigger]
    for test, time_ms in (
        ("event_time >= make_timestamptz(?)", since_ms),
        ("event_time < make_timestamptz(?)", until_ms),
    ):
        if time_ms is not None:
            tests.append(test)
            parameters.append(time_ms * 1_000)
    bound = "" if limit is None else f"LIMIT {limit:d}"
    return reader.ask(
        f"""SELECT * FROM rebalances WHERE {" AND ".join(tests)}
            ORDER BY event_time DESC, cluster, group_id, generation DESC {bound}""",
        {"rebalances": reader.read("rebalances", where={"cluster": cluster, "group_id": group, "status": status})},
        parameters,
    )


def one_rebalance(reader: Reader, prefix: str) -> Row:
    """Answer the rebalance whose id begins so.

    Raises:
        NotFoundError: None does.
        AmbiguousError: More than one does.
    """
    found = reader.ask(
        "SELECT * FROM rebalances WHERE starts_with(rebalance_id, ?) ORDER BY rebalance_id",
        {"rebalances": reader.read("rebalances")},
        [prefix],
    )
    if not found or not prefix:
        raise NotFoundError(f"there is no rebalance {prefix}; `show rebalances` lists them")
    exact = [row for row in found if row["rebalance_id"] == prefix]
    if len(found) > 1 and not exact:
        names = ", ".join(row["rebalance_id"] for row in found[:_CANDIDATES_SHOWN])
        more = ", …" if len(found) > _CANDIDATES_SHOWN else ""
        raise AmbiguousError(f"{prefix} begins the ids of {len(found)} rebalances: {names}{more}")
    return (exact or found)[0]
