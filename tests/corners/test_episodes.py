"""The table of episodes: each history gives the episodes that it says, for every cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.core_config import core_config
from tests.corners.corner_run import BASE_MS, CornerRun, in_one
from tests.corners.test_standstills import cut_in
from tests.simulation.client_history import ClientHistory

_TABLE = Path(__file__).parent / "episodes.txt"


class History(NamedTuple):
    """One history and the episodes that must come of it."""

    title: str
    system: str
    steps: list[tuple[float, str]]
    episodes: list[str]
    text: str


def histories() -> list[History]:
    """Read the table."""
    found = []
    for block in re.split(r"^## ", _TABLE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, *lines = block.splitlines()
        history = History(title, "kafka", [], [], "")
        for line in filter(None, lines):
            verb, _, rest = line.partition(" ")
            if verb == "episodes:":
                history.episodes.extend([] if rest == "none" else rest.split(" | "))
            elif verb == "text:":
                history = history._replace(text=rest)
            elif verb == "system":
                history = history._replace(system=rest)
            else:
                for step in line.split(" | "):
                    first, _, second = step.partition(" ")
                    is_clock = first == "clock"
                    history.steps.append((float(second if is_clock else first), "clock" if is_clock else second))
        found.append(history)
    return found


def played(history: History) -> ClientHistory:
    """Return the events of a history."""
    story = ClientHistory(history.system)
    for second, what in history.steps:
        at = round(second * 1_000)
        if what == "clock":
            story.clock(at)
        elif what == "deleted":
            story.delete(at)
        elif what.startswith("="):
            story.begin(at, what[1:].split(","))
        elif what.startswith("*"):
            client, _, topic = what[1:].partition(":")
            story.subscribe(at, client, topic)
        else:
            story.change(at, [(deed, client) for deed, client in _deeds(what)])
    return story


def _deeds(what: str) -> Iterator[tuple[str, str]]:
    for part in re.findall(r"[-+!~][a-z]-[0-9a-z]+(?:-[0-9a-z]{5})?", what):
        yield part[0], part[1:]


def shown(run: CornerRun) -> Iterator[tuple[str, str]]:
    """Yield each episode as a line, with its text."""
    for row in sorted(run.tables()["episodes"], key=lambda row: row["began_at"]):
        times = [row[name] for name in ("began_at", "last_at", "closed_at") if row[name] is not None]
        span = "..".join(f"{(time - BASE_MS) / 1_000:.3f}".rstrip("0").rstrip(".") for time in times)
        who = row["client"] or row["prefix"] or row["topic"] or "none"
        yield f"{row['kind']} {span} {who} {row['rebalances']}", row["text"]


@pytest.mark.parametrize("history", histories(), ids=lambda history: history.title)
def test_episodes_are_found_as_the_table_says(history: History) -> None:
    events = played(history).events
    config = core_config(allowed_lateness_ms=2_000, settle_ms=200)
    runs = {name: CornerRun(events, cut, config=config) for name, cut in _CUTS.items()}
    outcomes = {name: list(shown(run)) for name, run in runs.items()}

    assert [line for line, _ in outcomes["one"]] == history.episodes
    assert not history.text or history.text in outcomes["one"][-1][1]
    assert outcomes["five"] == outcomes["one"]
    assert outcomes["thirty"] == outcomes["one"]
    for row in runs["one"].tables()["episodes"]:
        of_it = [each["rebalance_id"] for each in runs["one"].core.rows() if each["episode_id"] == row["episode_id"]]
        assert len({*of_it, *row["earlier_rebalance_ids"]}) == row["rebalances"]


_CUTS = {"one": in_one, "five": cut_in(5), "thirty": cut_in(30)}
