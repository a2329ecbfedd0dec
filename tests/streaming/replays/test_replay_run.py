"""Replays of many groups by Spark: each group's figures are those of the command for one group, each row is once."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from streaming.commands.app import app
from streaming.history.replay_figures import Asked
from streaming.replays import replay_run
from streaming.replays.group_frames import GroupFrames
from streaming.replays.replay_request import ReplayRequest
from streaming.replays.replay_run import ReplayRun
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.engine import DeltaRsEngine, DeltaSparkEngine
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import REBALANCES, Row
from streaming.tables.writer import Mark
from streaming.views.reader import Reader
from tests.core_config import core_config
from tests.streaming.replays.pasts import SEEDS, WITHOUT_PAST, written_pasts
from udfs.model.config import CoreConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ASKED = Asked(policies=("without g*",), all_strategies=True)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pasts")
    written_pasts(root, SEEDS)
    return root


@pytest.fixture(scope="module")
def config() -> CoreConfig:
    return core_config()


@pytest.fixture(scope="module")
def replayed(
    spark: SparkSession, tables: Path, config: CoreConfig, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Row]:
    into = tmp_path_factory.mktemp("into")
    return into, ReplayRun(spark, tables, into, DeltaRsEngine(), config).run(ReplayRequest(ASKED))


def figures(root: Path, replay_id: str) -> list[Row]:
    rows = Reader(root).rows("replay_groups", where={"replay_id": replay_id})
    return sorted(rows, key=lambda row: (row["cluster"], row["group_id"], row["policy"] or ""))


def of_command(tables: Path, rows: list[Row]) -> list[dict[str, Any] | None]:
    """Return what the command for one group says under the policies of its rows; None for each that it refuses."""
    given = ["--tables", str(tables), "-g", rows[0]["group_id"], "--cluster", rows[0]["cluster"], "--json"]
    policies = [argument for row in rows if row["policy"] is not None for argument in ("-p", row["policy"])]
    said = CliRunner().invoke(app, ["replay", *given, *policies])
    if not said.exit_code:
        lines = {line["policy"]: line for line in map(json.loads, said.stdout.splitlines())}
        return [lines[row["policy"]] for row in rows]
    if len(rows) == 1:
        assert rows[0]["unknown"] in said.stderr
        return [None]
    return [answer for row in rows for answer in of_command(tables, [row])]


def test_each_group_has_the_figures_of_the_command_for_one_group(replayed: tuple[Path, Row], tables: Path) -> None:
    into, row = replayed
    found = figures(into, row["replay_id"])
    reader = Reader(tables)
    groups = {(each["cluster"], each["group_id"]) for name in ("groups", "rebalances") for each in reader.rows(name)}
    assert {(each["cluster"], each["group_id"]) for each in found if each["policy"] is None} == groups
    assert row["groups"] == len(groups) > len(SEEDS)
    known = 0
    there = {(each["cluster"], each["group_id"]) for each in reader.rows("groups")}
    # The command for one group takes no deleted ones.
    shown = [each for each in found if (each["cluster"], each["group_id"]) in there]
    by_group = [list(rows) for _, rows in groupby(shown, lambda each: (each["cluster"], each["group_id"]))]
    answers = [answer for rows in by_group for answer in of_command(tables, rows)]
    for each, said in zip(shown, answers, strict=True):
        if said is None:
            assert (each["rebalances"], each["queues_moved"], each["queue_pause_ms"]) == (None, None, None)
            continue
        known += 1
        assert (each["rebalances"], each["queues_moved"]) == (said["rebalances"], said["moved"])
        assert (each["idle_members"], each["spread"]) == (said["idle"], said["spread"])
        assert each["queue_pause_ms"] == said["queue_pause_ms"]
        assert (each["gone_rebalance_ids"], each["added_rebalances"]) == (said["gone"], len(said["added"]))
        assert each["not_reproduced"] == len(said["not_reproduced"])
    assert known > 2 * len(SEEDS)
    assert any(each["gone_rebalances"] for each in found)


def test_a_group_without_a_past_has_its_reason_and_no_figures(replayed: tuple[Path, Row]) -> None:
    into, row = replayed
    rows = [each for each in figures(into, row["replay_id"]) if each["group_id"] == WITHOUT_PAST]
    assert [(each["policy"], each["rebalances"]) for each in rows] == [(None, None), ("without g*", None)]
    assert {each["unknown"] for each in rows} == {f"the tables have no rebalances of group {WITHOUT_PAST}"}
    assert {each["system"] for each in rows} == {"kafka"}


def test_what_is_recorded_is_summed_as_far_as_it_is_known(replayed: tuple[Path, Row], tables: Path) -> None:
    into, row = replayed
    recorded = Reader(tables).rows("rebalances")
    found = [each for each in figures(into, row["replay_id"]) if each["policy"] is None and each["rebalances"]]
    assert any(each["repeated_messages"] for each in found)
    for each in found:
        mine = [
            rebalance
            for rebalance in recorded
            if (rebalance["cluster"], rebalance["group_id"]) == (each["cluster"], each["group_id"])
            and each["covers_from"] <= rebalance["event_time"] <= each["covers_to"]
        ]
        repeated = [
            (rebalance["repeated_messages"] or 0) + (rebalance["repeated_estimated_messages"] or 0)
            for rebalance in mine
            if rebalance["repeated_messages"] is not None or rebalance["repeated_estimated_messages"] is not None
        ]
        outages = [rebalance["queue_outage_max_ms"] for rebalance in mine]
        assert each["repeated_messages"] == (sum(repeated) if repeated else None)
        assert each["queue_outage_max_ms"] == max((ms for ms in outages if ms is not None), default=None)
        lacking = sum(bool(rebalance["queues_moved"]) and rebalance["queue_pause_ms"] is None for rebalance in mine)
        assert ("queue_pause_ms:" in (each["unknown"] or "")) == (lacking > 0 or each["queue_pause_ms"] is None)
    (of_recorded,) = [sums for sums in row["sums"] if sums["policy"] is None]
    assert of_recorded["groups"] == row["groups"]
    assert of_recorded["groups_unknown"] == row["groups"] - len(found)
    assert of_recorded["queues_moved"] == sum(each["queues_moved"] for each in found)


def test_the_same_request_over_the_same_tables_adds_nothing(
    spark: SparkSession, replayed: tuple[Path, Row], tables: Path, config: CoreConfig
) -> None:
    into, row = replayed
    before = figures(into, row["replay_id"])
    again = ReplayRun(spark, tables, into, DeltaRsEngine(), config).run(ReplayRequest(ASKED))
    assert again == row
    assert Reader(into).rows("replays") == [row]
    assert figures(into, row["replay_id"]) == before


def test_new_rebalances_are_another_replay(spark: SparkSession, tmp_path: Path, config: CoreConfig) -> None:
    written_pasts(tmp_path, [6])
    request = ReplayRequest(Asked(), cluster="006-c0")
    first = ReplayRun(spark, tmp_path, tmp_path, DeltaRsEngine(), config).run(request)
    table = DeltaRsTable(tmp_path, REBALANCES)
    table.append(REBALANCES.schema.empty_table(), Mark("more", 0))
    second = ReplayRun(spark, tmp_path, tmp_path, DeltaRsEngine(), config).run(request)
    assert first["replay_id"] != second["replay_id"]
    assert first["sums"] == second["sums"]
    assert len(Reader(tmp_path).rows("replays")) == 2


class _KilledError(Exception):
    pass


def test_what_was_interrupted_after_any_piece_is_continued_from_there(
    spark: SparkSession, replayed: tuple[Path, Row], tables: Path, config: CoreConfig, tmp_path: Path
) -> None:
    whole, row = replayed
    begun, computed = [], []

    class Interrupted(GroupFrames):
        def replayed(self, piece: Any, *more: Any) -> Any:
            if len(computed) in (2, 5):
                begun.append(piece)
                computed.append(None)
                raise _KilledError
            computed.append(piece)
            return super().replayed(piece, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_run, "GroupFrames", Interrupted)
        for _ in range(2):
            with pytest.raises(_KilledError):
                ReplayRun(spark, tables, tmp_path, DeltaRsEngine(), config).run(ReplayRequest(ASKED))
        assert Reader(tmp_path).rows("replays")[0]["finished_at"] is None
        done = ReplayRun(spark, tables, tmp_path, DeltaRsEngine(), config).run(ReplayRequest(ASKED))
    pieces = [piece for piece in computed if piece is not None]
    assert len(pieces) == len(set(pieces)) > 5
    without_times = {"started_at": None, "finished_at": None}
    assert done | without_times == row | without_times
    assert [each | without_times for each in figures(tmp_path, row["replay_id"])] == [
        each | without_times for each in figures(whole, row["replay_id"])
    ]


def test_a_replay_is_continued_at_the_versions_at_which_it_began(
    spark: SparkSession, config: CoreConfig, tmp_path: Path
) -> None:
    written_pasts(tmp_path, [3])
    rebalances = DeltaRsTable(tmp_path, REBALANCES)
    before = ReplayRun(spark, tmp_path, tmp_path / "whole", DeltaRsEngine(), config).run(ReplayRequest(Asked()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReplayRun, "_finish", lambda *_: (_ for _ in ()).throw(_KilledError))
        with pytest.raises(_KilledError):
            ReplayRun(spark, tmp_path, tmp_path, DeltaRsEngine(), config).run(ReplayRequest(Asked()))
    rows = Reader(tmp_path).read("rebalances")
    rebalances.append(rows, Mark("twice", 0))
    after = ReplayRun(spark, tmp_path, tmp_path, DeltaRsEngine(), config).run(ReplayRequest(Asked()))
    assert (after["replay_id"], after["sums"]) == (before["replay_id"], before["sums"])


def test_spark_writes_the_same_rows(
    spark: SparkSession, replayed: tuple[Path, Row], tables: Path, config: CoreConfig, tmp_path: Path
) -> None:
    whole, row = replayed
    cluster = figures(whole, row["replay_id"])[0]["cluster"]
    done = ReplayRun(spark, tables, tmp_path, DeltaSparkEngine(spark), config).run(ReplayRequest(ASKED, (), cluster))
    without = {"started_at": None, "replay_id": None}
    assert [each | without for each in figures(tmp_path, done["replay_id"])] == [
        each | without for each in figures(whole, row["replay_id"]) if each["cluster"] == cluster
    ]
    assert Reader(tmp_path).rows("replays") == [done]


def test_a_group_that_the_tables_do_not_know_leaves_no_row(
    spark: SparkSession, tables: Path, config: CoreConfig, tmp_path: Path
) -> None:
    run = ReplayRun(spark, tables, tmp_path, DeltaRsEngine(), config)
    with pytest.raises(NotFoundError, match="there is no group nobody in cluster 006-c0"):
        run.run(ReplayRequest(Asked(), (), "006-c0", ("g0", "nobody")))
    assert Reader(tmp_path).rows("replays") == []
