"""The job killed again and again, with all its processes, and started again: the tables show nothing of it."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from streaming.tables.schema import TABLES
from tests.crash.commits import KINDS, CurrentRows, Place, newest_kind, proven
from tests.crash.recording import write_busy_files
from tests.job.commands import CONFIG, ManyRuns, Running, follow, once
from tests.job.table_bags import bags_of, differences, repeated_keys

# CRASH_SEED=7 makes other choices.
SEED = int(os.environ.get("CRASH_SEED", "1"))
_SHUFFLE_PARTITIONS = 2
# Each file of events ends a span of progress.
_AT_ONCE = f"{CONFIG}\n[time]\nqueue_progress_ms = 2000\n"
_BESIDE_THE_BATCHES = _AT_ONCE.replace("materialize_interval_ms = 0", "materialize_interval_ms = 300")
# Far below the time between two commits of a batch.
_POLL_EVERY_S = 0.001
# A kill that comes a moment too late is tried again, this many times in all.
_MORE_TRIES = 10
_LONGEST_LIFE_S = 240


class Kill(NamedTuple):
    """One kill: the step that it waited for (None: a random moment), and what had been committed by then."""

    wanted: str | None
    current: CurrentRows


class Killer:
    """Starts the job, kills it, and notes what had been committed.

    Args:
        place: Its checkpoint and tables.
        start: Starts the job, either to read what is there, with the tables following at once, or to go on until
            stopped, with the tables following beside the batches.
        at_most: So many kills, whatever they hit.
    """

    def __init__(self, place: Place, start: Callable[[bool], Running], chance: random.Random, at_most: int) -> None:
        self._at_most = at_most
        self._place = place
        self._start = start
        self._chance = chance
        self._lives_s: list[float] = []
        self.kills: list[Kill] = []

    def kill(self, kind: str | None) -> None:
        """Kill it after a commit of this kind, or at a random moment."""
        if kind is None:
            self._whenever()
        else:
            self._after(kind)

    def tries_left(self) -> bool:
        """Return whether a kind that was missed may be tried again."""
        return len(self.kills) < self._at_most

    def missed(self) -> list[str]:
        """Return the kinds of commit after which no kill came yet."""
        hit = {kind for kill in self.kills if (kind := newest_kind(kill.current))}
        return [kind for kind in KINDS if kind not in hit]

    def _after(self, kind: str) -> None:
        """Kill it as soon as a commit of this kind is seen, the next or the one after that."""
        files = self._place.next_files(kind, self._chance.randrange(2))
        self._kill(kind, self._start(True), lambda: all(map(os.path.exists, files)))

    def _whenever(self) -> None:
        """Kill it at a random moment of its life."""
        longest = sum(self._lives_s) / len(self._lives_s) + 1.0 if self._lives_s else 15.0
        end = time.monotonic() + self._chance.uniform(0.5, longest)
        self._kill(None, self._start(False), lambda: time.monotonic() >= end)

    def when_flushing(self) -> None:
        """Kill it when it has let the query decide everything up to the end."""
        control = self._place.root / "checkpoint/control"
        self._kill(None, self._start(True), lambda: any(control.glob("*-flush.json")))

    def _kill(self, wanted: str | None, running: Running, now: Callable[[], bool]) -> None:
        born = time.monotonic()
        try:
            while not now():
                assert running.is_running, f"it ended before the kill after {wanted}:\n{running.stderr()[-3000:]}"
                assert time.monotonic() - born < _LONGEST_LIFE_S, f"no {wanted} in {_LONGEST_LIFE_S} s"
                time.sleep(_POLL_EVERY_S)
        finally:
            running.kill()
        if wanted is not None:
            self._lives_s.append(time.monotonic() - born)
        self.kills.append(Kill(wanted, self._place.current()))
        assert _duplicate_rows(self._place.tables) == []


@pytest.mark.spark
@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(2, marks=pytest.mark.timeout(900)),
        pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
def test_a_job_that_is_killed_again_and_again_writes_what_an_undisturbed_one_writes(
    kills: int, runs: ManyRuns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    write_busy_files(tmp_path / "events", files=2 * kills + 6)
    (tmp_path / "at_once.toml").write_text(_AT_ONCE)
    (tmp_path / "beside.toml").write_text(_BESIDE_THE_BATCHES)
    one_file_a_batch = ["--max-files-per-batch", "1"]

    place = Place(tmp_path / "killed", _SHUFFLE_PARTITIONS)

    to_the_end = once(tmp_path / "events", place.root, tmp_path / "at_once.toml", ["--flush", *one_file_a_batch])
    beside = [*follow(tmp_path / "events", place.root, tmp_path / "beside.toml"), *one_file_a_batch]

    def start(is_to_the_end: bool) -> Running:
        return Running(to_the_end if is_to_the_end else beside, tmp_path / "said.txt")

    place.root.mkdir()
    killer = Killer(place, start, chance, kills + _MORE_TRIES)
    wanted: list[str | None] = [*chance.sample(KINDS, min(len(KINDS), kills // 2)), *[None] * (kills // 4)]
    for kind in chance.sample(wanted, len(wanted)):
        killer.kill(kind)
    while len(killer.kills) < kills - 1 or (kills >= len(KINDS) and killer.missed() and killer.tries_left()):
        killer.kill(next(iter(killer.missed()), None))
    killer.when_flushing()
    last = runs.run(to_the_end)
    assert last.exit_code == 0, last.stderr[-3000:]

    undisturbed = tmp_path / "undisturbed"
    ended = runs.run(once(tmp_path / "events", undisturbed, tmp_path / "at_once.toml", ["--flush", *one_file_a_batch]))
    assert ended.exit_code == 0, ended.stderr[-3000:]
    expected = bags_of(undisturbed / "tables")
    assert all(expected.values()), "every table must have something that could go missing"
    assert differences(expected, bags_of(place.tables)) == []
    assert _duplicate_rows(place.tables) == []

    in_the_end = place.current()
    coverage = Counter(kind for kill in killer.kills for kind in proven(kill.current, in_the_end))
    with capsys.disabled():
        sys.stdout.write(f"\n{_report(killer.kills, in_the_end)}")
    if kills >= len(KINDS):
        assert [kind for kind in KINDS if not coverage[kind]] == []


@pytest.mark.spark
@pytest.mark.timeout(1200)
@pytest.mark.slow
def test_a_job_with_tables_of_spark_that_is_killed_between_commits_writes_no_row_twice(
    runs: ManyRuns, tmp_path: Path
) -> None:
    write_busy_files(tmp_path / "events", files=4)
    (tmp_path / "rs.toml").write_text(_AT_ONCE)
    by_spark = f'{_AT_ONCE}\n[tables]\nwriter = "delta-spark"\nspark_interval_ms = '
    (tmp_path / "spark.toml").write_text(f"{by_spark}0\n")
    # All that the tables lack, in one commit of each: a MERGE by Spark costs as much as all batches.
    (tmp_path / "last.toml").write_text(f"{by_spark}3_600_000\n")
    more = ["--flush", "--max-files-per-batch", "2"]
    place = Place(tmp_path / "killed", _SHUFFLE_PARTITIONS)
    place.root.mkdir()
    to_the_end = once(tmp_path / "events", place.root, tmp_path / "spark.toml", more)
    killer = Killer(place, lambda _: Running(to_the_end, tmp_path / "said.txt"), random.Random(SEED), 2)
    # Between the append of the batch's rebalances and its journal's, and between two tables that follow it.
    for kind in ("rebalances", "members"):
        killer.kill(kind)
    last = runs.run(once(tmp_path / "events", place.root, tmp_path / "last.toml", more))
    assert last.exit_code == 0, last.stderr[-3000:]
    undisturbed = tmp_path / "undisturbed"
    ended = runs.run(once(tmp_path / "events", undisturbed, tmp_path / "rs.toml", more))
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert differences(bags_of(undisturbed / "tables"), bags_of(place.tables)) == []
    assert _duplicate_rows(place.tables) == []


def _duplicate_rows(tables: Path) -> list[str]:
    """Return what a reader would see twice now; tables that are not there yet have no rows."""
    made = all((tables / name / "_delta_log/00000000000000000000.json").exists() for name in TABLES)
    return repeated_keys(tables) if made else []


def _report(kills: list[Kill], in_the_end: CurrentRows) -> str:
    found = [
        f"kill {number:2}: batch {kill.current.batch:2}, wanted after {kill.wanted or 'any moment':16}"
        f" proven after {', '.join(sorted(proven(kill.current, in_the_end))) or 'nothing'}\n"
        for number, kill in enumerate(kills, 1)
    ]
    return "".join(found)
