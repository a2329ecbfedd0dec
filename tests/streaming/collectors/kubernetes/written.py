"""What a collector of Kubernetes has written, as the table would have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streaming.tables.schema import Row
from streaming.views.pods import Pods
from udfs.model.annotations import PLATFORM_FIELDS, Annotation


class Written:
    """Annotations by id, the newest version of each; no two versions may be of one time."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def take(self, annotations: Iterable[Annotation]) -> None:
        """Add annotations, in any order."""
        for found in annotations:
            assert found.id is not None
            before = self._rows.get(found.id)
            assert before is None or before["written_at"] != found.event_time
            if before is None or before["written_at"] < found.event_time:
                self._rows[found.id] = _row(found)

    def rows(self, kind: str) -> list[Row]:
        """Return what is said about a kind, as far as it is the same whenever it is written."""
        shown = ("annotation_id", "hosts", "began_at", "ended_at", "text", *PLATFORM_FIELDS)
        return [{name: row[name] for name in shown} for row in self._rows.values() if row["kind"] == kind]

    def pods(self) -> Pods:
        """Return which pod had which address."""
        of_kind: dict[str, list[Row]] = {"pod": [], "pods_followed": []}
        for row in self._rows.values():
            of_kind.setdefault(row["kind"], []).append(row)
        return Pods(of_kind["pod"], of_kind["pods_followed"])

    def compare(
        self, owner: Mapping[tuple[str, int], str], last: int, time_of: Callable[[float], int]
    ) -> tuple[list[Any], int, int]:
        """Return where another pod is named for an address than had it; how often the right one is, and how often none.

        Args:
            owner: Address and second -> the pod that had it.
        """
        pods, wrong, right, unknown = self.pods(), [], 0, 0
        for second in range(1, last + 1):
            for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
                true = owner.get((address, second))
                life = pods.of({"address": address, "joined_at": time_of(second)})
                named = None if life is None else life["pod"]
                if named is not None and named != true:
                    wrong.append((address, second, named, true))
                right += named is not None
                unknown += named is None and true is not None
        return wrong, right, unknown


def _row(found: Annotation) -> Row:
    return {
        "annotation_id": found.id,
        "kind": found.kind,
        "text": found.text,
        "cluster": found.cluster,
        "hosts": found.hosts,
        "began_at": found.from_,
        "ended_at": found.to,
        "written_at": found.event_time,
        **{name: getattr(found, name) for name in PLATFORM_FIELDS},
    }
