"""Shell: kinds of findings that are open in many groups of a cluster at once, for which no alert is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.views.reader import Reader, Within

if TYPE_CHECKING:
    from streaming.settings.model import Widespread


@dataclass(frozen=True, order=True)
class WidespreadKind:
    """A kind that is widespread in a cluster.

    Attributes:
        groups: How many groups have it, or had it until recently.
        of_groups: How many groups the cluster has, without those that have neither members nor the finding.
    """

    cluster: str
    kind: str
    groups: int
    of_groups: int

    @property
    def text(self) -> str:
        """Return a text; the names are as in the tables."""
        return f"{self.kind} in {self.groups} of {self.of_groups} groups of {self.cluster}"

    def has(self, finding: Row) -> bool:
        """Return whether a row of ``findings`` is of this kind and of a group of the cluster."""
        place = (finding["cluster"], finding["kind"])
        return place == (self.cluster, self.kind) and finding["group_id"] is not None


def widespread_kinds(
    reader: Reader, settings: Widespread, now_ms: int, *, cluster: str | None = None
) -> tuple[WidespreadKind, ...]:
    """Return the widespread kinds at a time, by cluster and kind.

    A kind is widespread in a cluster while more than ``settings.share`` of its groups, and at least
    ``settings.min_groups`` of them, have an open finding of it, or had one within the last ``settings.span_ms``. So it
    ends when few groups have had it for that long, and not while all of them calm down one after another.

    Args:
        now_ms: Event time in epoch milliseconds. The number of groups is always the current one, because it is not
            recorded.
    """
    if not settings.kinds:
        return ()
    where = {
        "cluster": cluster,
        "kind": set(settings.kinds),
        "opened_at": Within(until_ms=now_ms + 1),
        "closed_at": Within(since_ms=now_ms - settings.span_ms + 1, or_null=True),
    }
    having: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, kind, group in _rows(reader, "findings", where, "cluster", "kind", "group_id"):
        if group is not None:  # a finding of the cluster itself belongs to no group
            having[name, kind].add(group)
    many = {place: groups for place, groups in having.items() if len(groups) >= settings.min_groups}
    present = _present(reader, {name for name, _ in many})
    found = (
        WidespreadKind(name, kind, len(groups), len(groups | present[name])) for (name, kind), groups in many.items()
    )
    return tuple(sorted(spread for spread in found if spread.groups > settings.share * spread.of_groups))


def _present(reader: Reader, clusters: Set[str]) -> defaultdict[str, set[str]]:
    """Return the groups with members of each cluster."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    if clusters:
        for name, group, members in _rows(reader, "groups", {"cluster": clusters}, "cluster", "group_id", "members"):
            if members:
                found[name].add(group)
    return found


def _rows(reader: Reader, table: str, where: dict[str, Any], *columns: str) -> Iterable[tuple[Any, ...]]:
    return zip(*from_arrow_columns(reader.read(table, columns=columns, where=where), columns), strict=True)
