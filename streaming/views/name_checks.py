"""Shell: checks of names given by users, with suggestions for unknown ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow.compute as pc

from streaming.settings.suggestions import did_you_mean
from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.tables.schema import Row
from streaming.views.known_clusters import known_clusters
from streaming.views.reader import Reader, distinct
from udfs.group.batch.findings import RULES
from udfs.group.batch.observed_findings import OBSERVED
from udfs.model.first_few import first_few

# A group that was deleted long ago is only in its history; a cluster with a problem may be only in findings.
_NAMING = ("groups", "findings", "rebalances")
_FEW = 10


def require_present(reader: Reader, cluster: str | None, group: str | None = None) -> None:
    """Check that the tables know a cluster and a group, because a mistyped name would never show anything.

    Raises:
        NotFoundError: The tables do not know one of them.
    """
    if cluster is not None and not _has_rows(reader, (*_NAMING, "topics"), {"cluster": cluster}):
        raise NotFoundError(unknown_cluster(cluster, known_clusters(reader)))
    if group is not None and not _has_rows(reader, _NAMING, {"cluster": cluster, "group_id": group}):
        names = distinct(reader, ("groups",), "group_id", {"cluster": cluster})
        raise NotFoundError(f"there is no group {group}{_in(cluster)}{did_you_mean(group, names)}")


def unknown_cluster(cluster: str, names: Iterable[str]) -> str:
    """Return that there is no such cluster, and the existing clusters.

    Example:
        >>> unknown_cluster("shp", ["shop"])
        'there is no cluster shp; did you mean shop?'
    """
    there = sorted(set(names))
    listed = f"; there {'is' if len(there) == 1 else 'are'} {', '.join(there)}" if 0 < len(there) <= _FEW else ""
    return f"there is no cluster {cluster}{did_you_mean(cluster, there) or listed}"


def require_topic(reader: Reader, topic: str, *, cluster: str | None = None) -> None:
    """Check that a topic is known.

    Raises:
        NotFoundError: The topic is unknown.
    """
    tables = ("topics", "assignments")
    if not _has_rows(reader, tables, {"cluster": cluster, "topic": topic}):
        names = distinct(reader, tables, "topic", {"cluster": cluster})
        raise NotFoundError(f"there is no topic {topic}{_in(cluster)}{did_you_mean(topic, names)}")


def require_queue(
    reader: Reader, topic: str, queue_id: int, *, cluster: str | None = None, broker: str | None = None
) -> None:
    """Check that a topic has, or once had, a queue.

    Raises:
        NotFoundError: It never had; the message lists its queues.
    """
    require_topic(reader, topic, cluster=cluster)
    where = {"cluster": cluster, "topic": topic}
    spans = reader.read("assignments", columns=["broker", "queue_id"], where=where).to_pylist()
    places = {(span["broker"], span["queue_id"]) for span in spans}
    for row in reader.rows("topics", where=where):
        listed = row["queues"] or [{"broker": None, "queue_id": number} for number in range(row["queue_count"] or 0)]
        places |= {(queue["broker"], queue["queue_id"]) for queue in listed}
    brokers = {name for name, _ in places if name is not None}
    if broker is not None and broker not in brokers:
        there = f"; there are {', '.join(sorted(brokers)[:_FEW])}" if brokers else ": its queues have no brokers"
        raise NotFoundError(f"topic {topic} has no broker {broker}{did_you_mean(broker, brokers) or there}")
    numbers = {number for name, number in places if broker in (None, name)}
    # A topic that is shared by message has one entry for all queues of a broker.
    if queue_id not in numbers and not any(number < 0 for number in numbers):
        last = max(numbers, default=None)
        there = "it has none" if last is None else f"its queues are {min(numbers)} to {last}"
        raise NotFoundError(f"topic {topic} has no queue {queue_id}{_in(cluster)}; {there}")


def require_names(reader: Reader, given: Mapping[str, Any]) -> None:
    """Check the names among the parameters of a question.

    Raises:
        NotFoundError: The tables do not know one of them.
    """
    cluster, group, topic, queue = (given.get(name) for name in ("cluster", "group", "topic", "queue"))
    require_present(reader, cluster, group)
    if topic is not None and queue is not None:
        require_queue(reader, topic, queue, cluster=cluster)
    elif topic is not None:
        require_topic(reader, topic, cluster=cluster)


def member_named(reader: Reader, prefix: str, *, cluster: str | None = None, group: str | None = None) -> str:
    """Return the id of the member, at any time, that begins with a prefix.

    Raises:
        NotFoundError: There is no such member.
        AmbiguousError: Several ids begin with it, and none equals it.
    """
    where = {"cluster": cluster, "group_id": group}
    if _has_rows(reader, ("members",), where | {"member_id": prefix}):
        return prefix
    rows = reader.read("members", columns=["member_id"], where=where)
    found = sorted(set(rows.filter(pc.starts_with(rows["member_id"], prefix))["member_id"].to_pylist()))
    if not found:
        names = set(rows["member_id"].to_pylist())
        raise NotFoundError(f"there is no member {prefix}{_in(cluster)}{did_you_mean(prefix, names)}")
    if len(found) > 1:
        raise AmbiguousError(f"{len(found)} members have an id that begins with {prefix}: {first_few(found, _FEW)}")
    return str(found[0])


def require_kind(reader: Reader, kind: str) -> None:
    """Check that a kind of findings was not mistyped; sources may report kinds of their own.

    Raises:
        NotFoundError: No finding is of this kind, and a known kind is similar.
    """
    kinds = {name for name, _ in RULES} | set(OBSERVED) | distinct(reader, ("findings",), "kind")
    if kind not in kinds and (meant := did_you_mean(kind, kinds)):
        raise NotFoundError(f"there is no kind {kind}{meant}")


def one_group(reader: Reader, group: str, cluster: str | None = None) -> Row:
    """Return one group's row.

    Raises:
        NotFoundError: There is no such group.
        AmbiguousError: Several clusters have a group of this name.
    """
    found = reader.rows("groups", where={"cluster": cluster, "group_id": group})
    if not found:
        require_present(reader, cluster, group)
        raise NotFoundError(
            f"group {group}{_in(cluster)} was deleted; `show rebalances --group {group}` has its history"
        )
    if len(found) > 1:
        clusters = ", ".join(sorted(row["cluster"] for row in found))
        raise AmbiguousError(f"group {group} is in several clusters: {clusters}; name one with --cluster")
    return found[0]


def _in(cluster: str | None) -> str:
    return f" in cluster {cluster}" if cluster else ""


def _has_rows(reader: Reader, tables: Iterable[str], where: Mapping[str, Any]) -> bool:
    return any(reader.read(name, columns=["cluster"], where=where).num_rows for name in tables)
