"""Plays an example: gives its events to a ``Script`` in batches, and compares what must be with what came of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from tests.udfs.group.example import UNCUT, Example, Step
from tests.udfs.group.example_events import take, types_of, value_of
from tests.udfs.group.group_script import T0, Script
from tests.udfs.group.record_script import RecordScript
from udfs.model import journal
from udfs.model.config import CoreConfig

_PATH = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


class Play:
    """One example that is played."""

    def __init__(self, example: Example) -> None:
        self.example = example
        self.script = _script(example.given)
        self.wrong: list[str] = []

    def as_written(self) -> Play:
        """Play it in the batches that it names."""
        return self._play(lambda _waiting, _clock: [])

    def event_by_event(self) -> Play:
        """Play the events of each time as a batch of their own."""
        return self._play(lambda waiting, _clock: sorted({time + 1 for time in waiting}))

    def cut_at_random(self, dice: random.Random) -> Play:
        """Play it in the batches that it names, with others between them."""

        def cuts(waiting: Sequence[int], clock: int) -> list[int]:
            places = [*waiting, clock - 1, *(dice.randint(min(waiting), clock) for _ in waiting[:3])] if waiting else []
            return sorted(dice.choice(places) + dice.randint(0, 1) for _ in range(dice.randint(0, min(4, len(places)))))

        return self._play(cuts)

    def _play(self, cuts: Callable[[Sequence[int], int], Iterable[int]]) -> Play:
        before = -(10**12)
        for step in self.example.steps:
            if step.verb == "until":
                waiting = sorted(event.event_time - T0 for event in self.script.waiting)
                for clock in cuts([time for time in waiting if time < step.at], step.at):
                    if before < clock < step.at:
                        self.script.run(clock)
                self.script.run(step.at)
                before = step.at
            elif step.verb.endswith(":"):
                self.wrong += differences(self.script, step)
            else:
                take(self.script, step)
        return self

    def in_one(self) -> Play:
        """Play it in as few batches as its late events allow; what must be in the middle is not looked at."""
        steps = [step for step in self.example.steps if not step.verb.endswith(":")]
        for number, step in enumerate(steps):
            if step.verb != "until":
                take(self.script, step)
            elif any(later.at < step.at for later in steps[number + 1 :]) or number == len(steps) - 1:
                self.script.run(step.at)
        return self

    def rows(self) -> dict[str, Any]:
        """Return all that came of it, without what depends on batches."""
        script = self.script
        changes = [change.body for change in script.changes]
        return {
            "rebalances": [msgspec.structs.replace(row, detected_at=0) for row in script.rebalances],
            "spans": script.spans(),
            "reported spans": script.spans("reported"),
            "sessions": script.sessions(),
            "findings": script.findings(),
            "row": next((body for body in reversed(changes) if isinstance(body, journal.GroupChanged)), None),
        }


def _script(given: Sequence[str]) -> Script:
    fields = dict(word.split("=", 1) for word in given if "=" in word)
    system = next((word for word in given if "=" not in word and word != UNCUT), "kafka")
    config = types_of(CoreConfig)
    reported = {name: value_of(text, config[name]) for name, text in fields.items() if name in config}
    if system != "records":
        return Script(system, **reported)
    partitions = value_of(fields.get("partitions", "4"), int)
    return RecordScript(partitions, has_offsets="has_offsets" in fields, **reported)


# ---- what must be


def differences(script: Script, step: Step) -> list[str]:
    """Return what is not as an example says, a line each."""
    verb, *rest = step.verb.removesuffix(":").split(" ")
    wanted = [] if step.words == ("none",) else list(step.words)
    if verb in _FIELDS and not (subject_and_path := _fields_of(script, verb, rest))[1]:
        wanted = [word for item in wanted for word in item.split()]
        found = [f"{path}={text_of(at_path(subject_and_path[0], path))}" for path in map(_path, wanted)]
    elif verb in _FIELDS or verb == "each":
        several = at_path(*subject_and_path) if verb in _FIELDS else _changes(script, rest)
        wanted = [" ".join(sorted(item.split())) for item in wanted]
        paths = sorted({_path(word) for item in wanted for word in item.split() if "=" in word})
        found = [" ".join(f"{path}={text_of(at_path(item, path))}" for path in paths) for item in several]
    elif verb == "rebalances":
        found = script.decided()
        for number in range(-1, -1 - min(len(found), len(wanted)), -1):
            row, paths = script.rebalances[number], [_path(word) for word in wanted[number].split() if "=" in word]
            found[number] = " ".join([found[number], *(f"{path}={text_of(at_path(row, path))}" for path in paths)])
    elif verb == "column":
        found = [" ".join(text_of(at_path(row, path)) for path in rest) for row in script.rebalances]
    else:
        found = _lines(script, step.verb.removesuffix(":"))
    for number, row in enumerate(script.rebalances, 1):
        found = [line.replace(row.rebalance_id, f"rebalance-{number}") for line in found]
    if wanted[:1] == ["..."]:
        found = ["...", *found[max(0, len(found) - len(wanted) + 1) :]]
    return [] if found == wanted else [f"{step.verb} {' | '.join(found)}", f"  not {' | '.join(wanted)}"]


_FIELDS = ("row", "group", "last", "rebalance", "audit", "change")


def _path(word: str) -> str:
    return word.partition("=")[0]


def _fields_of(script: Script, verb: str, rest: list[str]) -> tuple[Any, str]:
    """Return whose fields a line shows, and which list of it if it is a line of such a list."""
    if verb == "row":
        subject: Any = script.row()
    elif verb in ("group", "last"):
        subject = getattr(script, verb)
    else:
        several = {"rebalance": script.rebalances, "audit": script.audits()}.get(verb) or _changes(script, rest[:1])
        rest = rest[1:] if verb == "change" else rest
        subject, rest = several[int(rest[0]) - 1], rest[1:]
    return subject, rest[0] if rest else ""


class _Body:
    """The body of a change, and its time."""

    def __init__(self, change: journal.Change) -> None:
        self.change = change

    def __getattr__(self, name: str) -> Any:
        return self.change.event_time if name == "at" else getattr(self.change.body, name)


def _changes(script: Script, rest: list[str]) -> list[_Body]:
    """Return the changes of a kind that have these fields."""
    kind, *fields = rest
    bodies = [_Body(change) for change in script.changes if type(change.body).__name__ == kind]
    return [
        body
        for body in bodies
        if all(f"{_path(field)}={text_of(at_path(body, _path(field)))}" == field for field in fields)
    ]


def _lines(script: Script, name: str) -> list[str]:
    origin = "reported" if name.startswith("reported ") else "computed"
    what, *rest = name.removeprefix("reported ").split(" ")
    if what == "owners":
        owners = script.owners(int(rest[0]), origin)
        return [" ".join(f"{queue}={member}" for queue, member in owners.items())] if owners else []
    if what == "spans":
        return script.spans(origin)
    if what == "heard":
        return [" ".join(f"{member}={at - T0}" for member, at in sorted(script.last_heartbeats.items()))]
    shown = {"sessions": script.sessions, "findings": script.findings}
    return shown[what]()


def at_path(value: Any, path: str) -> Any:
    """Return what lies at ``triggers[0].kind`` of a value."""
    for key, name in _PATH.findall(path):
        if name:
            value = getattr(value, name)
        elif not key:
            value = ",".join(sorted(value))  # members[]: their ids
        else:
            value = value[key] if isinstance(value, dict) else value[int(key)]
    return value


def text_of(value: Any) -> str:
    """Spell a value as examples do: times are ``+`` and the ms after ``T0``."""
    if isinstance(value, int | None) and not isinstance(value, bool | None) and value > T0 - 10**9:
        return f"+{value - T0}"
    if value is None or isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, str):
        return value.replace(" ", "~") or "''"
    return msgspec.json.encode(_spelled(msgspec.to_builtins(value, str_keys=True))).decode().replace(" ", "~")


def _spelled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _spelled(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_spelled(item) for item in value]
    return f"+{value - T0}" if isinstance(value, int) and value > T0 - 10**9 else value
