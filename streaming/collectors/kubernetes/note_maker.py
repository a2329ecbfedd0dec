"""Shell: makes annotations whose versions are in order, and which the contract accepts. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from udfs.model.annotations import MAX_PATTERNS, Annotation

_LONGEST_TEXT = 2_000
# Kubernetes' own names are shorter; an image may have a registry and a digest.
_LONGEST_NAME = 1_000


class NoteMaker:
    """Makes the annotations of one Kubernetes cluster.

    Args:
        platform: The name of the Kubernetes cluster. members_of: The monitored cluster whose members they may concern;
            None for any.
        last_ms: The ``event_time`` of the last one that was made.
    """

    def __init__(self, platform: str, members_of: str | None = None, last_ms: int = 0) -> None:
        self._platform = platform
        self._cluster = members_of
        self.last_ms = last_ms

    def note(
        self,
        name: str,
        kind: str,
        text: str,
        at_ms: int,
        *,
        began: int | None,
        ended: int | None,
        hosts: Sequence[str] = (),
        about: Mapping[str, str | None] | None = None,
    ) -> Annotation:
        """Return an annotation, newer than all before.

        Args:
            name: Its identity. at_ms: Now. about: Values of ``PLATFORM_FIELDS``.
        """
        self.last_ms = max(self.last_ms + 1, at_ms)
        named: dict[str, Any] = {field: value[:_LONGEST_NAME] for field, value in (about or {}).items() if value}
        return Annotation(
            schema_version=1,
            event_time=self.last_ms,
            kind=kind,
            id=name,
            text=text[:_LONGEST_TEXT],
            from_=began,
            # A node's clock may be ahead.
            to=ended if ended is None or began is None else max(began, ended),
            cluster=self._cluster,
            hosts=tuple(hosts),
            platform=self._platform,
            **named,
        )

    def notes(
        self,
        name: str,
        kind: str,
        text: str,
        at_ms: int,
        *,
        began: int | None,
        ended: int | None,
        hosts: Sequence[str],
        about: Mapping[str, str | None],
    ) -> Iterator[Annotation]:
        """Return an annotation of many hosts as several, because one has a limit; none if no host is known.

        Without a host it would concern every member.
        """
        for number, some in enumerate(_cut(sorted(hosts))):
            part = f"{name}/{number}" if number else name
            yield self.note(part, kind, text, at_ms, began=began, ended=ended, hosts=some, about=about)


def _cut(hosts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(hosts), MAX_PATTERNS):
        yield hosts[start : start + MAX_PATTERNS]
