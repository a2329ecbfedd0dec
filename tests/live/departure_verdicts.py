"""The core's verdicts on departures that were recorded, and how often they are right; see ``departures``."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias, get_args

import msgspec

from tests.core_config import core_config
from tests.simulation.core_run import CoreRun
from udfs.model.journal import Trigger

Kind: TypeAlias = Literal[
    "leaves", "is killed", "hangs briefly", "hangs", "polls too late", "host is lost", "deploy", "static restart"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SESSION_MS: Final = 6_000
READ: Final = ("records", "log")
_DEPARTURES = ("member_left", "session_expired", "member_gone")
_TRUTH = "truth.json"


class Departed(msgspec.Struct, frozen=True):
    """One member that departed; ``true``: its right cause, None if it does not depart."""

    library: str
    kind: Kind
    member_id: str
    true: str | None


class Truth(msgspec.Struct):
    """How members departed, and what else happened.

    Attributes:
        back: Ids under which clients that hung are back. lost: The members of each host that was lost. restarted: The
            last that joined of clients that were restarted one after the other.
    """

    departed: list[Departed]
    back: list[str]
    lost: list[list[str]]
    restarted: list[str] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, several: Iterable[Self]) -> Self:
        """Return the truth of several groups."""
        found = cls([], [], [])
        for truth in several:
            found.departed += truth.departed
            found.back += truth.back
            found.lost += truth.lost
            found.restarted += truth.restarted
        return found

    def write(self, folder: Path) -> None:
        """Write it beside what was collected."""
        (folder / _TRUTH).write_bytes(msgspec.json.encode(self))


class Run(msgspec.Struct):
    """One run: what is true, and the causes of all generations by what was read."""

    truth: Truth
    causes: dict[str, list[Trigger]]


def read(folder: Path) -> Run:
    """Return a run that was recorded into a folder."""
    truth = msgspec.json.decode((folder / _TRUTH).read_bytes(), type=Truth)
    return Run(truth, {name: _causes(folder / name) for name in READ})


def _causes(folder: Path) -> list[Trigger]:
    """Return the causes of all generations, in their order."""
    # The broker's session timeout for the new protocol, whose members report none.
    run, now = CoreRun(core_config(session_timeouts_ms={"kafka": SESSION_MS})), int(time.time() * 1_000)
    run.batch(now, [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()])
    run.flush(now)
    return [trigger for row in run.rebalances for trigger in row.triggers]


def verdict(departed: Departed, triggers: Iterable[Trigger]) -> str:
    """Return whether the causes that name a member are right, wrong or open."""
    found = [trigger for trigger in triggers if trigger.member_id == departed.member_id and trigger.kind in _DEPARTURES]
    if departed.true is None:
        # It departs only when its play is over: by itself, or under another id.
        return "right" if all(trigger.kind != "session_expired" for trigger in found) else "wrong"
    if not found or found[0].kind == "member_gone":
        return "open"
    return "right" if found[0].kind == departed.true else "wrong"


def verdicts(runs: Sequence[Run], name: str) -> dict[tuple[str, Kind], Counter[str]]:
    """Return how often causes were right, wrong and open, by library and kind; what is wrong is written at once."""
    counts: dict[tuple[str, Kind], Counter[str]] = {}
    for run in runs:
        named: dict[str | None, list[Trigger]] = {}
        for trigger in run.causes[name]:
            named.setdefault(trigger.member_id, []).append(trigger)
        for departed in run.truth.departed:
            mine = named.get(departed.member_id, [])
            found = verdict(departed, mine)
            counts.setdefault((departed.library, departed.kind), Counter())[found] += 1
            if found == "wrong":
                causes = [(trigger.kind, trigger.detail) for trigger in mine]
                sys.stderr.write(f"wrong: {departed.library}, {departed.kind}, {name}: {causes}\n")
    return counts


def print_tables(runs: Sequence[Run]) -> None:
    """Print a table for each of what was read: libraries beside each other, a row for each kind."""
    for name in READ:
        counts = verdicts(runs, name)
        libraries = list(dict.fromkeys(library for library, _ in counts))
        print(f"\n{name}\n\n| a member | {' | '.join(libraries)} |\n|---|{'---|' * len(libraries)}")  # noqa: T201
        for kind in KINDS:
            cells = [_cell(counts.get((library, kind), Counter())) for library in libraries]
            print(f"| {kind} | {' | '.join(cells)} |")  # noqa: T201
        total = sum(counts.values(), Counter[str]())
        print(f"\n{dict(total)}")  # noqa: T201
        for story, counted in stories(runs, name).items():
            print(f"- {story}: named for {counted['named']} of {counted['true']}, {counted['wrong']} times wrongly")  # noqa: T201


def _cell(counts: Counter[str]) -> str:
    total = counts.total()
    if not total:
        return ""
    others = [f"{counts[outcome]} {outcome}" for outcome in ("wrong", "open") if counts[outcome]]
    return ", ".join([f"{counts['right']} of {total}", *others])


def stories(runs: Sequence[Run], name: str) -> dict[str, Counter[str]]:
    """Return how often a cause that spans several members was named, and how often wrongly."""
    counts: dict[str, Counter[str]] = {whole: Counter() for whole in ("it hung", "host_lost", "rolling_restart")}
    for run in runs:
        found: dict[str, set[str | None]] = {
            "it hung": {trigger.member_id for trigger in run.causes[name] if "it hung" in (trigger.detail or "")},
            **{whole: _part_of(run.causes[name], whole) for whole in ("host_lost", "rolling_restart")},
        }
        true = {"it hung": [[member_id] for member_id in run.truth.back], "host_lost": run.truth.lost}
        true["rolling_restart"] = [[member_id] for member_id in run.truth.restarted]
        for story, several in true.items():
            counts[story]["true"] += len(several)
            counts[story]["named"] += sum(bool(found[story] & set(ids)) for ids in several)
            counts[story]["wrong"] += len(found[story] - {member_id for ids in several for member_id in ids})
    return counts


def _part_of(causes: Iterable[Trigger], whole: str) -> set[str | None]:
    return {trigger.member_id for trigger in causes if trigger.part_of == whole}


if __name__ == "__main__":
    print_tables([read(Path(folder)) for folder in sys.argv[1:]])
