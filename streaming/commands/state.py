"""Command: `state`: inspect a checkpoint, roll it back, export it as events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from streaming.commands.command_group import CommandGroup
from streaming.commands.options import ClusterOption, ConfigOption, JsonOption, location_option
from streaming.settings.locations import Location, hand_on, location_of
from streaming.stores.access import access_error, require_stores
from streaming.stores.places import place_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.spark.checkpoint import Checkpoint
    from udfs.model.config import CoreConfig

app = typer.Typer(
    help="Inspect a checkpoint, roll it back, or export it as events for a new one.",
    cls=CommandGroup,
    no_args_is_help=True,
)
CheckpointOption = Annotated[str | None, location_option("Checkpoint folder of the job, or its URI.")]
_TIMES = frozenset({"clock", "newest"})


@app.command("show")
def show(
    checkpoint: CheckpointOption = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each shard: its clock, how many groups, what waits, what its bytes are spent on.

    Of members it counts those that live by their own heartbeats; `show groups` has those that snapshots show, too.
    """
    from streaming.spark.rollback import read_whole
    from streaming.spark.state_reader import summarise
    from streaming.terminal import output
    from streaming.views.name_checks import unknown_cluster

    with _opened(checkpoint, config) as (spark, opened, core):
        shards = read_whole(spark, opened)
        names = {stored.cluster for stored in shards}
        if cluster is not None and cluster not in names:
            raise typer.BadParameter(f"--cluster: {unknown_cluster(cluster, names)}")
        rows = [msgspec.to_builtins(summarise(stored, core)) for stored in shards if cluster in (None, stored.cluster)]
    if as_json:
        output.write_json_lines(rows, _TIMES)
        return
    numbers = ("groups", "heartbeat_members", "waiting", "late", "batches", "bytes")
    output.show_rows(
        rows,
        [
            output.field("CLUSTER", "cluster"),
            output.field("SHARD", "shard"),
            output.time_field("CLOCK", "clock"),
            output.time_field("NEWEST EVENT", "newest"),
            *(output.field(name.upper().replace("_", "-"), name) for name in numbers),
        ],
    )


@app.command("export")
def export(
    out: Annotated[str, location_option("Folder for the files of events, or its URI; made when missing, else empty.")],
    checkpoint: CheckpointOption = None,
    batch: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="State as of the end of this batch; default: the last one.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Write a checkpoint's state as events from which a new checkpoint starts with the same groups.

    Stop the job first. Then start it with a new --checkpoint, the --shards you like, and this folder's files moved
    into the folder of --events; a restored group makes no rebalance.
    """
    from streaming.spark.rollback import read_whole
    from streaming.spark.state_reader import export_to
    from udfs.group import coordinator

    folder = location_of(out)
    with _opened(checkpoint, config, out=folder) as (spark, opened, core):
        files = export_to(place_of(folder), read_whole(spark, opened, batch), core, coordinator)
    typer.echo(f"{len(files)} files in {folder}")


@app.command("rollback")
def rollback(checkpoint: CheckpointOption = None, config: ConfigOption = None) -> None:
    """Roll the last batch back where its state is damaged; the next start computes it again.

    Stop the job first. Nothing is lost, and nothing is written to the tables twice.
    """
    from streaming.spark.rollback import roll_back

    with _opened(checkpoint, config, changes=True) as (spark, opened, _), opened.exclusive_lock():
        batch = roll_back(spark, opened)
    typer.echo(f"batch {batch} is rolled back; the next start of the job computes it again")


@contextmanager
def _opened(
    folder: str | None, config: Path | None, *, changes: bool = False, out: Location | None = None
) -> Iterator[tuple[SparkSession, Checkpoint, CoreConfig]]:
    """Open a checkpoint: Spark, the checkpoint, and the core's settings with its own number of shards.

    Args:
        changes: Whether the checkpoint is changed.
        out: A folder for an export, which must be empty or not exist.
    """
    from streaming.machine import logs
    from streaming.settings.model import load
    from streaming.spark.checkpoint import Checkpoint, CheckpointError
    from streaming.spark.session import start_session

    settings = load(config, {"job.checkpoint": folder}, os.environ)
    logs.configure("warning", settings.log.format)
    hand_on(settings.storage.plain_options(), os.environ)
    _check(settings.job.checkpoint, changes, out)
    checkpoint = Checkpoint(settings.job.checkpoint)
    identity = checkpoint.read()
    if identity is None or not (checkpoint.query / "commits").is_dir():
        raise CheckpointError(
            f"{settings.job.checkpoint} holds no state yet: no batch has completed. Name the job's checkpoint with"
            " --checkpoint DIR."
        )
    core = msgspec.structs.replace(settings.core_config(), shards=identity.shards)
    shared = [checkpoint.root] if isinstance(checkpoint.root, Path) else []
    spark = start_session(settings, log_file=checkpoint.log_file("state.log"), shared=shared)
    try:
        yield spark, checkpoint, core
    finally:
        spark.stop()


def _check(checkpoint: Location, changes: bool, out: Location | None) -> None:
    """Check the places before Spark starts.

    Raises:
        SettingsError: A place cannot be used.
        BadParameter: The folder for the export contains files.
    """
    writes = ({"--checkpoint": checkpoint} if changes else {}) | ({"--out": out} if out is not None else {})
    local = {option: access_error(place) for option, place in writes.items() if isinstance(place, Path)}
    mistakes = [f"{option} {writes[option]}: {wrong}" for option, wrong in local.items() if wrong is not None]
    require_stores(writes, {} if changes else {"--checkpoint": checkpoint}, mistakes=mistakes)
    if out is None:
        return
    place = place_of(out)
    if place.is_dir() and any(place.iterdir()):
        raise typer.BadParameter(f"--out: {out} has files already; name another folder or empty it")
