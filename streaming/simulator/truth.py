"""Shell: the expected results of a simulation: rebalances and their causes, written by the script itself."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

import msgspec


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cause of a rebalance.

    Attributes:
        kind: A kind of trigger of the tables.
        also: Other kinds that the evidence allows as well: the script knows more than its events show.
    """

    kind: str
    member_id: str | None = None
    topic: str | None = None
    also: tuple[str, ...] = ()


class ExpectedRebalance(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One rebalance that the tables must contain; ``causes`` are all causes at its event time.

    Attributes:
        event_time: Epoch ms; RFC 3339 in the file.
        generation: None if it cannot be known.
        members_after: Only if it does not depend on when late events are read.
        late_until: The evidence arrives late. A job that reads it together with its neighbours finds the rebalance at
            ``event_time``; otherwise it is within (``event_time``, ``late_until``] with ``late_evidence``.
        required: False if only jobs that had decided before the late evidence came find it.
    """

    cluster: str
    system: str
    group_id: str
    event_time: int
    causes: list[Cause]
    generation: int | None = None
    generation_source: str = "counted"
    generations_missed: int | None = None
    members_after: int | None = None
    late_until: int | None = None
    required: bool = True


class SilentSource(msgspec.Struct, kw_only=True):
    """A span in which a cluster reported nothing: its last event before and its first after."""

    cluster: str
    silent_from: int
    silent_to: int


class Truth:
    """Collects causes as the script makes them and merges those of one group and event time."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str, int], ExpectedRebalance] = {}
        self._others: list[ExpectedRebalance] = []
        self._generations: dict[tuple[str, str], int | None] = {}
        self.newest: dict[str, int] = {}
        self.silences: list[SilentSource] = []

    def reported(self, cluster: str, event_time: int) -> None:
        """Record that the cluster reported an event of that time: later times are not known yet."""
        self.newest[cluster] = max(event_time, self.newest.get(cluster, event_time))

    def counted(
        self, cluster: str, system: str, group_id: str, event_time: int, cause: Cause, members_after: int | None
    ) -> None:
        """Add one cause to the rebalance of that event time; times come in order."""
        key = (cluster, group_id, event_time)
        found = self._counted.get(key)
        if found is None:
            last = self._generations.get((cluster, group_id), 0)
            generation = None if last is None else last + 1
            self._generations[cluster, group_id] = generation
            found = self._counted[key] = ExpectedRebalance(
                cluster=cluster,
                system=system,
                group_id=group_id,
                event_time=event_time,
                causes=[],
                generation=generation,
            )
        if cause not in found.causes:
            found.causes.append(cause)
        found.members_after = members_after

    def add(self, expected: ExpectedRebalance) -> None:
        """Add a whole rebalance of a reported generation, or one whose time depends on its reader."""
        self._others.append(expected)

    def forget_generation(self, cluster: str, group_id: str) -> None:
        """Expect no more generations of this group, because they depend on when late events are read."""
        self._generations[cluster, group_id] = None

    def rebalances(self) -> list[ExpectedRebalance]:
        """Return the rebalances that a reader of everything reported so far must have found, in order of time."""
        return _sorted(
            rebalance for rebalance in [*self._counted.values(), *self._others] if self._is_decided(rebalance)
        )

    def drain(self) -> list[ExpectedRebalance]:
        """Return the same as ``rebalances``, each only once: returned ones are forgotten."""
        taken = self.rebalances()
        self._counted = {key: rebalance for key, rebalance in self._counted.items() if not self._is_decided(rebalance)}
        self._others = [rebalance for rebalance in self._others if not self._is_decided(rebalance)]
        return taken

    def _is_decided(self, rebalance: ExpectedRebalance) -> bool:
        return rebalance.event_time <= self.newest.get(rebalance.cluster, 0)


def _sorted(rebalances: Iterable[ExpectedRebalance]) -> list[ExpectedRebalance]:
    ordered = sorted(
        rebalances,
        key=lambda rebalance: (rebalance.event_time, rebalance.cluster, rebalance.group_id, rebalance.generation or 0),
    )
    for rebalance in ordered:
        rebalance.causes.sort(key=lambda cause: (cause.kind, cause.member_id or "", cause.topic or ""))
    return ordered


def truth_lines(rebalances: Iterable[ExpectedRebalance]) -> bytes:
    """Write expected rebalances as JSON lines, times in RFC 3339."""
    return b"".join(msgspec.json.encode(_as_written(rebalance)) + b"\n" for rebalance in rebalances)


def read_truth(lines: bytes) -> list[ExpectedRebalance]:
    """Parse what ``truth_lines`` wrote."""
    return [_as_read(msgspec.json.decode(line)) for line in lines.splitlines() if line.strip()]


_TIMES = ("event_time", "late_until")


def _as_written(rebalance: ExpectedRebalance) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(rebalance)
    for name in _TIMES:
        if isinstance(plain.get(name), int):
            plain[name] = rfc3339(int(str(plain[name])))
    return plain


def _as_read(plain: dict[str, object]) -> ExpectedRebalance:
    for name in _TIMES:
        if plain.get(name) is not None:
            plain[name] = epoch_ms(str(plain[name]))
    return msgspec.convert(plain, ExpectedRebalance)


def rfc3339(time_ms: int) -> str:
    """Write a time as UTC with milliseconds and ``Z``."""
    time = datetime.datetime.fromtimestamp(time_ms // 1_000, datetime.UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time_ms % 1_000:03d}Z"


def epoch_ms(text: str) -> int:
    """Parse what ``rfc3339`` wrote."""
    time = datetime.datetime.fromisoformat(text)
    since = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return since // datetime.timedelta(milliseconds=1)
