"""Shell: in which pod a member ran, by its address and the time, as annotations of the kind ``pod`` say.

It decides nothing. A member runs in the pod that had the member's address when it joined; addresses are used by one pod
after another. Without such a pod, a pod is taken whose name is the member's host name, or begins its client id. Where
two pods fit, or nobody watched, the pod is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from streaming.tables.columns import TEXT, Column
from streaming.tables.schema import Row
from streaming.views.reader import Reader, Within
from udfs.model.annotations import FOLLOWED_KIND, POD_KIND
from udfs.model.clients import host_of

POD_COLUMNS: Final = (
    Column("pod", TEXT, "The pod that it ran in when it joined; null = not known, as in the next ones"),
    Column("namespace", TEXT, "The pod's namespace"),
    Column("workload", TEXT, "Kind and name of the pod's workload, e.g. deployment orders"),
    Column("revision", TEXT, "The workload's revision"),
    Column("node", TEXT, "The pod's node"),
    Column("image", TEXT, "The image of the pod's first container"),
)
POD_NAMES: Final = tuple(column.name for column in POD_COLUMNS)
NO_POD: Final[Row] = dict.fromkeys(POD_NAMES)
# Where the name of a pod may end within a client id, as in orders-7d9f-StreamThread-1-consumer.
_NAME_ENDS = re.compile(r"[^A-Za-z0-9]")


class Pods:
    """The lives of pods, by what they are known by.

    Args:
        lives: Rows of ``annotations`` of the kind ``pod``. followed: Those of the kind ``pods_followed``.
    """

    def __init__(self, lives: Iterable[Row], followed: Iterable[Row]) -> None:
        self._followed = {row["platform"]: row for row in followed}
        self._by_host: dict[str, list[Row]] = {}
        self._by_name: dict[str, list[Row]] = {}
        for life in lives:
            for host in life["hosts"] or ():
                self._by_host.setdefault(host, []).append(life)
            # A pod that nobody manages may be called anything, also like the beginning of others' client ids.
            if life["pod"] and life["workload"]:
                self._by_name.setdefault(life["pod"], []).append(life)

    @classmethod
    def around(cls, reader: Reader, sessions: Sequence[Mapping[str, Any]]) -> Pods:
        """Read the pods that lived when these sessions began."""
        times = [row["joined_at"] for row in sessions if row.get("joined_at") is not None]
        if not times:
            return cls((), ())
        began = {"began_at": Within(until_ms=max(times) + 1), "ended_at": Within(since_ms=min(times), or_null=True)}
        lives = reader.rows("annotations", where={"kind": POD_KIND, **began})
        return cls(lives, reader.rows("annotations", where={"kind": FOLLOWED_KIND}) if lives else ())

    def of(self, member: Mapping[str, Any]) -> Row | None:
        """Return the life of the pod in which a member ran when it joined; None if that is not known.

        Args:
            member: A row of ``members``.
        """
        joined_at = member.get("joined_at")
        if joined_at is None:
            return None
        found = [life for host in hosts_of(member) for life in self._by_host.get(host or "", ())]
        if present := self._present(found, member, joined_at):
            return _only(present)
        for name in _names(member):
            if present := self._present(self._by_name.get(name, ()), member, joined_at):
                return _only(present)
        return None

    def _present(self, lives: Iterable[Row], member: Mapping[str, Any], at_ms: int) -> dict[str, Row]:
        """Return those of some lives that went on at a time, by their identity."""
        return {
            life["annotation_id"]: life
            for life in lives
            if life["cluster"] in (None, member.get("cluster"))
            and life["began_at"] <= at_ms
            and at_ms < self._until(life)
        }

    def _until(self, life: Row) -> int:
        """Return until when a pod is known to have its address, exclusive."""
        if life["ended_at"] is not None:
            return int(life["ended_at"])
        followed = self._followed.get(life["platform"])
        is_followed = followed is not None and followed["began_at"] <= life["written_at"]
        known_until = followed["ended_at"] if followed is not None and is_followed else None
        return max(int(life["written_at"]), known_until or 0) + 1


def with_pods(reader: Reader, sessions: Sequence[Row]) -> list[Row]:
    """Return rows of ``members`` with ``POD_COLUMNS``."""
    pods = Pods.around(reader, sessions)
    return [row | pod_fields(pods.of(row)) for row in sessions]


def pod_fields(life: Row | None) -> Row:
    """Return what a life says of its pod; nulls if it is not known."""
    return dict(NO_POD) if life is None else {name: life[name] for name in POD_NAMES}


def hosts_of(member: Mapping[str, Any]) -> list[str | None]:
    """Return the names of a member's host, which may be addresses."""
    return [member.get("address"), host_of(member.get("host")), member.get("host")]


def _only(present: Mapping[str, Row]) -> Row | None:
    return next(iter(present.values())) if len(present) == 1 else None


def _names(member: Mapping[str, Any]) -> Iterator[str]:
    """Yield what may be the name of a pod in a member's ids, the longest first."""
    for text in (member.get("client_id"), member.get("instance_id")):
        if text:
            yield text
            yield from (text[: end.start()] for end in reversed(list(_NAME_ENDS.finditer(text))))
