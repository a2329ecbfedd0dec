"""Compare found rebalances with the truth: missing, invented and wrongly explained ones."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming.simulator.truth import Cause, ExpectedRebalance, epoch_ms, rfc3339
from udfs.model.journal import TRIGGER_ORDER

OF_A_TOPIC = {"queue_count_changed"}
OF_A_MEMBER = {
    "session_expired",
    "member_left",
    "member_gone",
    "member_joined",
    "subscription_changed",
    "strategy_changed",
}


@dataclass(frozen=True)
class FoundRebalance:
    """One row of ``rebalances``, limited to the columns that the truth has."""

    cluster: str
    group_id: str
    event_time: int
    generation: int
    generation_source: str
    trigger: str
    causes: frozenset[Cause]
    members_after: int
    generations_missed: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> FoundRebalance:
        """Make one from a row whose times are epoch ms, RFC 3339 or datetimes."""
        return cls(
            cluster=row["cluster"],
            group_id=row["group_id"],
            event_time=_epoch_ms(row["event_time"]),
            generation=row["generation"],
            generation_source=row["generation_source"],
            trigger=row["trigger"],
            causes=frozenset(
                _plain(trigger["kind"], trigger.get("member_id"), trigger.get("topic")) for trigger in row["triggers"]
            ),
            members_after=row["members_after"],
            generations_missed=row.get("generations_missed"),
        )


@dataclass
class Verdict:
    """The result of a check; ``invented`` and ``wrong`` in the order of the rows."""

    right: int = 0
    missing: list[ExpectedRebalance] = field(default_factory=list)
    invented: list[FoundRebalance] = field(default_factory=list)
    wrong: list[tuple[ExpectedRebalance, FoundRebalance, list[str]]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Return whether everything was found, and nothing else."""
        return not (self.missing or self.invented or self.wrong)

    def report(self, at_most: int = 20) -> str:
        """Write the differences for people."""
        lines = [
            f"{self.right} right, {len(self.missing)} missing, {len(self.invented)} invented,"
            f" {len(self.wrong)} wrongly explained"
        ]
        for expected in self.missing[:at_most]:
            lines.append(f"missing   {_place(expected)}  {_as_text(expected.causes)}")
        for found in self.invented[:at_most]:
            lines.append(f"invented  {_place(found)}  {_as_text(found.causes)}")
        for expected, found, problems in self.wrong[:at_most]:
            lines.append(f"wrong     {_place(found)}  {'; '.join(problems)}")
            lines.append(f"          expected {_as_text(expected.causes)}")
            lines.append(f"          found    {_as_text(found.causes)}")
        return "\n".join(lines)


def check(
    rows: Iterable[Mapping[str, Any]],
    truth: Iterable[ExpectedRebalance],
    until: Mapping[str, int] | None = None,
) -> Verdict:
    """Compare the rows of ``rebalances`` with the truth.

    Args:
        until: Each cluster's clock: what lies at it or after it was not applied yet. Clusters that are not in it
            were applied to their end.
    """
    clocks = until or {}
    expected: dict[tuple[str, str], list[ExpectedRebalance]] = defaultdict(list)
    for true_rebalance in truth:
        if true_rebalance.cluster not in clocks or true_rebalance.event_time < clocks[true_rebalance.cluster]:
            expected[true_rebalance.cluster, true_rebalance.group_id].append(true_rebalance)
    found: dict[tuple[str, str], list[FoundRebalance]] = defaultdict(list)
    for row in rows:
        rebalance = FoundRebalance.of(row)
        found[rebalance.cluster, rebalance.group_id].append(rebalance)
    verdict = Verdict()
    for group in sorted(expected.keys() | found.keys()):
        _check_group(expected[group], found[group], clocks.get(group[0]), verdict)
    return verdict


def _check_group(
    expected: list[ExpectedRebalance], found: list[FoundRebalance], clock: int | None, verdict: Verdict
) -> None:
    in_time = [rebalance for rebalance in expected if rebalance.required and rebalance.late_until is None]
    uncertain = [rebalance for rebalance in expected if not rebalance.required or rebalance.late_until is not None]
    left = sorted(found, key=lambda row: (row.event_time, row.generation))
    reported_late: set[int] = set()
    for rebalance in in_time:
        match = next((row for row in left if _same_time(rebalance, row)), None)
        if match is None:
            verdict.missing.append(rebalance)
            continue
        left.remove(match)
        problems = _differences(rebalance, match, uncertain, reported_late)
        if problems:
            verdict.wrong.append((rebalance, match, problems))
        else:
            verdict.right += 1
    for row in left:
        _match_uncertain(row, uncertain, reported_late, verdict)
    for number, rebalance in enumerate(uncertain):
        still_comes = clock is not None and rebalance.late_until is not None and clock <= rebalance.late_until
        if rebalance.required and number not in reported_late and not still_comes:
            verdict.missing.append(rebalance)


def _same_time(expected: ExpectedRebalance, row: FoundRebalance) -> bool:
    if expected.event_time != row.event_time:
        return False
    return expected.generation_source == "counted" or expected.generation == row.generation


def _match_uncertain(
    row: FoundRebalance, uncertain: list[ExpectedRebalance], reported_late: set[int], verdict: Verdict
) -> None:
    unexplained = {cause for cause in row.causes if cause.kind != "late_evidence"}
    explained = False
    for number, rebalance in enumerate(uncertain):
        if _may_be(rebalance, row.event_time):
            causes = {_plain(cause.kind, cause.member_id, cause.topic) for cause in rebalance.causes}
            late = rebalance.late_until is not None and row.event_time > rebalance.event_time
            if causes & row.causes or (late and any(cause.kind == "late_evidence" for cause in row.causes)):
                reported_late.add(number)
                unexplained -= causes
                explained = True
    if not explained or unexplained:
        verdict.invented.append(row)
    else:
        verdict.right += 1


def _may_be(rebalance: ExpectedRebalance, event_time: int) -> bool:
    return rebalance.event_time == event_time or (
        rebalance.late_until is not None and rebalance.event_time < event_time <= rebalance.late_until
    )


def _differences(
    expected: ExpectedRebalance, row: FoundRebalance, uncertain: list[ExpectedRebalance], reported_late: set[int]
) -> list[str]:
    problems = []
    surplus = set(row.causes)
    kinds = set()
    for cause in expected.causes:
        allowed = [_plain(kind, cause.member_id, cause.topic) for kind in (cause.kind, *cause.also)]
        present = [shown for shown in allowed if shown in surplus]
        if not present:
            problems.append(f"lacks {_as_text([cause])}")
        surplus -= set(present)
        kinds |= {shown.kind for shown in present}
    for number, rebalance in enumerate(uncertain):
        if _may_be(rebalance, row.event_time):
            also = {_plain(cause.kind, cause.member_id, cause.topic) for cause in rebalance.causes}
            if also & surplus:
                reported_late.add(number)
                surplus -= also
                surplus = {cause for cause in surplus if cause.kind != "late_evidence"}
    if surplus:
        problems.append(f"invents {_as_text(surplus)}")
    gravest = min((cause.kind for cause in row.causes), key=TRIGGER_ORDER.index, default=None)
    if row.trigger != gravest:
        problems.append(f"main cause {row.trigger}, not {gravest}")
    for name in ("generation", "members_after", "generations_missed"):
        wanted, got = getattr(expected, name), getattr(row, name)
        if wanted is not None and wanted != got:
            problems.append(f"{name} {got}, not {wanted}")
    if expected.generation_source != row.generation_source:
        problems.append(f"generation {row.generation_source}, not {expected.generation_source}")
    return problems


def _plain(kind: str, member_id: str | None, topic: str | None) -> Cause:
    return Cause(kind, member_id if kind in OF_A_MEMBER else None, topic if kind in OF_A_TOPIC else None)


def _epoch_ms(time: object) -> int:
    if isinstance(time, datetime.datetime):
        since = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return since // datetime.timedelta(milliseconds=1)
    return epoch_ms(time) if isinstance(time, str) else int(str(time))


def _place(rebalance: ExpectedRebalance | FoundRebalance) -> str:
    return f"{rebalance.cluster} {rebalance.group_id} {rfc3339(rebalance.event_time)}"


def _as_text(causes: Iterable[Cause]) -> str:
    return ", ".join(
        " ".join(part for part in (cause.kind, cause.member_id, cause.topic) if part)
        for cause in sorted(causes, key=lambda cause: (cause.kind, cause.member_id or "", cause.topic or ""))
    )
