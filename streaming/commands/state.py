"""Command: `state`: a look into a checkpoint, and its export as events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from streaming.commands.options import ClusterOption, JsonOption

if TYPE_CHECKING:
    from streaming.state_reader import StoredShard
    from udfs.rules import Rules

app = typer.Typer(help="Look into a checkpoint, or export it as events for a new one.", no_args_is_help=True)
CheckpointOption = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="DIR", help="Folder of the job's own memory.")
]
_TIMES = frozenset({"clock", "newest"})


@app.command("show")
def show(checkpoint: CheckpointOption = None, cluster: ClusterOption = None, as_json: JsonOption = False) -> None:
    """Show each shard: its clock, how many groups and members, what waits, what its bytes are spent on."""
    from streaming import output
    from streaming.state_reader import look

    with _stored(checkpoint) as (shards, rules):
        looks = [msgspec.to_builtins(look(stored, rules)) for stored in shards if cluster in (None, stored.cluster)]
    if as_json:
        output.write_json_lines(looks, _TIMES)
        return
    numbers = ("groups", "members", "waiting", "late", "batches", "bytes")
    output.show_rows(
        looks,
        [
            output.field("CLUSTER", "cluster"),
            output.field("SHARD", "shard"),
            output.time_field("CLOCK", "clock"),
            output.time_field("NEWEST EVENT", "newest"),
            *(output.field(name.upper(), name) for name in numbers),
        ],
    )


@app.command("export")
def export(
    out: Annotated[Path, typer.Option(help="Folder for the files of events; made when missing, else empty.")],
    checkpoint: CheckpointOption = None,
) -> None:
    """Write a checkpoint's state as events from which a new checkpoint starts with the same groups.

    Stop the job first. Then start it with a new --checkpoint, the --shards you like, and this folder's files moved
    into the folder of --events; a restored group makes no rebalance.
    """
    from streaming.state_reader import export_to
    from udfs import group

    if out.is_dir() and any(out.iterdir()):
        raise typer.BadParameter(f"--out: {out} has files already; name another folder or empty it")
    with _stored(checkpoint) as (shards, rules):
        files = export_to(out, shards, rules, group)
    typer.echo(f"{len(files)} files in {out}")


@contextmanager
def _stored(folder: Path | None) -> Iterator[tuple[list[StoredShard], Rules]]:
    """Read a checkpoint's shards, and the rules with its own number of shards."""
    from streaming import logs
    from streaming.checkpoint import Checkpoint, CheckpointError
    from streaming.session import start_session
    from streaming.settings import load
    from streaming.state_reader import read_shards

    logs.configure("warning")
    settings = load(overrides={"job.checkpoint": folder}, env=os.environ)
    checkpoint = Checkpoint(settings.job.checkpoint.absolute())
    identity = checkpoint.read()
    if identity is None or not (checkpoint.query / "commits").is_dir():
        raise CheckpointError(f"{settings.job.checkpoint} holds no state yet: no batch has ended there")
    rules = msgspec.structs.replace(settings.rules(), shards=identity.shards)
    spark = start_session(settings, log_file=checkpoint.root / "state.log")
    try:
        yield list(read_shards(spark, checkpoint.query)), rules
    finally:
        spark.stop()
