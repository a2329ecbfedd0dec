"""Shell: a replay of many groups as a process of its own: Spark starts, the replay runs, Spark ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streaming.replays.replay_request import ReplayRequest
from streaming.replays.replay_run import ReplayRun
from streaming.settings.locations import Location, absolute, catalog_schema
from streaming.settings.model import Settings
from streaming.spark.session import end_session, start_session
from streaming.tables.engine import (
    AUTO,
    DELTA_SPARK,
    DeltaRsEngine,
    DeltaSparkEngine,
    Engine,
    exclusive_commits,
    stored_writer,
    writer_of,
)
from streaming.tables.schema import Row


def replay_groups(
    settings: Settings, into: Location | None, request: ReplayRequest, report: Callable[[int, int], None]
) -> Row:
    """Replay groups of the job's tables; return the finished row of ``replays``.

    Args:
        into: Where ``replays`` and ``replay_groups`` are; None for the job's own tables.
        report: Called with the number of groups that are done, and of all.

    Raises:
        SetupError: Spark does not start. NotFoundError, TableError: See ``ReplayRun.run``.
    """
    tables = absolute(settings.job.tables)
    into = tables if into is None else absolute(into)
    writer = writer_of(settings.tables.writer, into)
    if settings.tables.writer == AUTO and not catalog_schema(into):
        writer = stored_writer(into)
    places = [place for place in (tables, into) if isinstance(place, Path)]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)  # executors check that it exists
    with exclusive_commits(into, writer):
        spark = start_session(settings, "rebalance-monitor replay", shared=places, more=[tables, into])
        try:
            engine: Engine = DeltaSparkEngine(spark) if writer == DELTA_SPARK else DeltaRsEngine()
            return ReplayRun(spark, tables, into, engine, settings.core_config(), report).run(request)
        finally:
            end_session(spark)
