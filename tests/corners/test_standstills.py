"""The tables of standstills, unread queues and retention: each history gives its findings, for every cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.core_config import core_config
from tests.corners.corner_run import BASE_MS, CornerRun, Cut, in_one

_STANDSTILLS, _UNREAD, _RETENTION = (
    Path(__file__).parent / f"{name}.txt" for name in ("standstills", "unread", "retention")
)
_COMMITS = [Path(__file__).parent / f"{name}.txt" for name in ("commits_back", "commits_expired")]
_KINDS = ("queue_stalled", "member_stalled", "group_stalled")
Event = dict[str, Any]


class History(NamedTuple):
    """One history and the findings that must come of it."""

    title: str
    system: str
    settings: dict[str, Any]
    unread_after_ms: dict[str, int]
    lines: list[list[str]]
    findings: list[str]
    messages: list[str]


def histories(table: Path) -> list[History]:
    """Read a table."""
    found = []
    for block in re.split(r"^## ", table.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, *lines = block.splitlines()
        history = History(title, "kafka", {}, {}, [], [], [])
        for line in filter(None, lines):
            verb, _, rest = line.partition(" ")
            if verb == "findings:":
                history.findings.extend([] if rest == "none" else [item.strip() for item in rest.split(" | ")])
            elif verb == "message:":
                history.messages.append(rest)
            elif verb == "system":
                history = history._replace(system=rest)
            elif verb == "settings_core":
                system, _, span = rest.partition("=")[2].partition(":")
                history.unread_after_ms[system] = int(span)
            elif verb == "settings":
                history.settings.update(item.split("=") for item in rest.split())
            else:
                history.lines.extend(item.split() for item in line.split(" | "))
        found.append(history)
    return found


class Story:
    """The events of a history."""

    def __init__(self, history: History) -> None:
        self.system = history.system
        self.events: list[Event] = []
        self.ends: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.last = 0.0
        self.alive: dict[str, float] = {}
        if history.settings:
            self.add(0, "group_settings", group="g", **history.settings)
        for words in history.lines:
            getattr(self, words[0])(*words[1:])
        for member, joined in self.alive.items():
            for at in range(int(joined) + 10, int(self.last), 10):
                self.add(at, "heartbeat", group="g", member_id=member)

    def add(self, at: float, kind: str, **fields: Any) -> None:
        """Add an event at some second."""
        self.last = max(self.last, at)
        self.events.append(
            {"t": round(at * 1_000), "type": kind, "system": self.system, "event_id": f"{len(self.events)}", **fields}
        )

    def topic(self, number: int, at: float = 0) -> None:
        """Describe topic t."""
        if self.system == "kafka":
            self.add(at, "topic_queues", topic="t", queue_count=number)
        else:
            self.add(
                at, "topic_queues", topic="t", queues=[{"broker": "b", "queue_id": each} for each in range(number)]
            )

    def group(self, *words: str) -> None:
        """Add a generation."""
        generation, words = (1, words) if "=" in "".join(words[1:2]) else (int(words[0]), words[1:])
        held = {name: numbers.split(",") for name, numbers in (word.split("=") for word in words[1:])}
        intervals = [
            ("rebalance_timeout_ms", held.pop("poll", None)),
            ("session_timeout_ms", held.pop("session", None)),
        ]
        described = {name: int(value[0]) * 1_000 for name, value in intervals if value is not None}
        if generation == 1:
            self.topic(sum(map(len, held.values())))
        members = [
            {"member_id": name, "client_id": name, "host": f"/10.0.0.{place}", "subscriptions": ["t"]} | described
            for place, name in enumerate(held, 1)
        ]
        assignments = {name: [{"topic": "t", "queue_id": int(each)} for each in of] for name, of in held.items()}
        self.add(
            float(words[0]),
            "group_snapshot",
            group="g",
            generation=generation,
            state="Stable" if held else "Empty",
            strategy="range",
            members=[member | {"strategies": ["range"]} for member in members],
            assignments=assignments,
        )

    def join(self, at: str, *names: str) -> None:
        """Add members of a counted group; each stays alive."""
        self.topic(2 * len(names))
        for name in names:
            self.add(float(at), "member_joined", group="g", member_id=name, subscriptions=["t"])
            self.alive[name] = float(at)

    def topics(self, at: str, topic_id: str, number: str) -> None:
        """Describe topic t as a topic with that id."""
        self.add(float(at), "topic_queues", topic="t", topic_id=topic_id, queue_count=int(number))

    def tombstone(self, queues: str, at: str) -> None:
        """Delete the commits of queues."""
        for queue in queues.split(","):
            self.add(float(at), "commits_deleted", group="g", queues=[{"topic": "t", "queue_id": int(queue)}])

    def grown(self, at: str, number: str) -> None:
        """Let topic t have so many queues."""
        self.topic(int(number), float(at))

    def holds(self, at: str, *words: str) -> None:
        """Let members report what they hold."""
        for name, numbers in (word.split("=") for word in words):
            queues = [{"topic": "t", "broker": "b", "queue_id": int(each)} for each in numbers.split(",")]
            self.add(float(at), "assignment_reported", group="g", member_id=name, queues=queues)

    def leave(self, at: str, name: str) -> None:
        """Let a member leave."""
        self.add(float(at), "member_left", group="g", member_id=name)

    def deleted(self, at: str) -> None:
        """Delete the group."""
        self.add(float(at), "group_deleted", group="g")

    def clock(self, at: str) -> None:
        """Say that everything is known up to then; the lateness comes on top."""
        for second in range(60, int(at), 60):
            self.add(second, "clock")
        self.add(float(at) + 2, "clock")

    def end(self, queue: str, at: str, value: str) -> None:
        """Add an end offset."""
        number = int(queue)
        now = self.ends.get(number, 0) + int(value) if value.startswith("+") else int(value)
        self.ends[number] = now
        if self.system == "kafka":
            self.add(float(at), "queue_ends", topic="t", queues=[{"queue_id": number, "end_offset": now}])
        elif number in self.committed:
            self._observe(number, float(at), moved=False)

    def start(self, queue: str, at: str, value: str) -> None:
        """Let the log of a queue begin at an offset."""
        place: Event = {"queue_id": int(queue)} | ({} if self.system == "kafka" else {"broker": "b"})
        known = place | {"end_offset": self.ends[int(queue)], "start_offset": int(value)}
        self.add(float(at), "queue_ends", topic="t", queues=[known])

    def position(self, queue: str, at: str, value: str) -> None:
        """Let the owner of a queue report how far it has read."""
        read = {"topic": "t", "broker": "b", "queue_id": int(queue), "position": int(value), "moved": False}
        self.add(float(at), "progress", group="g", queues=[read])

    def commit(self, queue: str, at: str, value: str = "") -> None:
        """Add a commit: up to the end, up to an offset, or some beyond the last."""
        number = int(queue)
        now = int(value or self.ends[number])
        self.committed[number] = self.committed.get(number, 0) + now if value.startswith("+") else now
        self.ends.setdefault(number, now)
        self._observe(number, float(at), moved=True)

    def _observe(self, number: int, at: float, *, moved: bool) -> None:
        queue: Event = {"topic": "t", "queue_id": number, "offset": self.committed[number]}
        if self.system != "kafka":
            queue |= {"broker": "b", "end_offset": self.ends[number], "moved": moved}
        self.add(at, "progress", group="g", queues=[queue])

    def works(self, queues: str, begin: str, end: str, every: str = "every=10") -> None:
        """Let queues be written and read."""
        for queue in queues.split(","):
            next_commit = int(begin) + 3
            for at in range(int(begin), int(end), 10):
                self.end(queue, str(at), "+100")
                if at + 3 >= next_commit:
                    self.commit(queue, str(at + 3))
                    next_commit += int(every.removeprefix("every="))

    def grows(self, queues: str, begin: str, end: str) -> None:
        """Let queues be written and not read."""
        for queue in queues.split(","):
            for at in range(int(begin), int(end), 10):
                self.end(queue, str(at), "+100")

    def repeats(self, queue: str, begin: str, end: str) -> None:
        """Commit the same offset again."""
        for at in range(int(begin), int(end), 5):
            self.commit(queue, str(at), str(self.committed[int(queue)]))


def cut_in(number: int) -> Cut:
    """Return a function that cuts a history into so many batches by time."""

    def cut(events: Sequence[Event]) -> list[list[Event]]:
        ordered = sorted(events, key=lambda event: event["t"])
        size = len(ordered) // number + 1
        return [ordered[start : start + size] for start in range(0, len(ordered), size)]

    return cut


_CUTS: dict[str, Cut] = {"one": in_one, "five": cut_in(5), "thirty": cut_in(30)}


def shown(run: CornerRun, kinds: Sequence[str] = _KINDS) -> Iterator[tuple[str, str]]:
    """Yield each finding as a line, with its message."""
    rows = [row for row in run.tables()["findings"] if row["kind"] in kinds]
    for row in sorted(rows, key=lambda row: (row["opened_at"], row["kind"])):
        times = [
            "" if row[name] is None else f"{(row[name] - BASE_MS) / 1_000:.3f}".rstrip("0").rstrip(".")
            for name in ("opened_at", "closed_at")
        ]
        queues = ",".join(f"{queue['topic']}-{queue['queue_id']}" for queue in row["queues"])
        members = ",".join(member["member_id"] for member in row["members"] or ())
        yield f"{row['kind']} {'..'.join(times)} {queues} {members}".rstrip(), row["message"]


@pytest.mark.parametrize("history", histories(_STANDSTILLS), ids=lambda history: history.title)
def test_standstills_are_found_as_the_table_says(history: History) -> None:
    _check(history, _KINDS)


@pytest.mark.parametrize("history", histories(_UNREAD), ids=lambda history: history.title)
def test_unread_queues_are_found_as_the_table_says(history: History) -> None:
    _check(history, ("queues_unread",))


@pytest.mark.parametrize("history", histories(_RETENTION), ids=lambda history: history.title)
def test_lost_messages_are_found_as_the_table_says(history: History) -> None:
    _check(history, ("messages_lost", "retention_risk"))


@pytest.mark.parametrize(
    "history", [history for table in _COMMITS for history in histories(table)], ids=lambda history: history.title
)
def test_commits_are_found_as_the_table_says(history: History) -> None:
    _check(history, ("commits_went_back", "commits_expired"))


def _check(history: History, kinds: Sequence[str]) -> None:
    story = Story(history)
    config = core_config(allowed_lateness_ms=2_000)
    config = msgspec.structs.replace(config, unread_after_ms={**config.unread_after_ms, **history.unread_after_ms})

    outcomes = {name: list(shown(CornerRun(story.events, cut, config=config), kinds)) for name, cut in _CUTS.items()}

    assert [line for line, _ in outcomes["one"]] == history.findings
    for text in history.messages:
        assert text in outcomes["one"][-1][1]
    assert outcomes["five"] == outcomes["one"]
    assert outcomes["thirty"] == outcomes["one"]
