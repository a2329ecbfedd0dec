"""Command: `simulate`: write the events of a simulated fleet, and the truth about them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from streaming.commands.options import path_option
from streaming.machine.folder_check import write_error

USAGE_EXIT = 2


def simulate(
    out: Annotated[Path, path_option("Folder for events/*.jsonl and truth.jsonl.")],
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed: the same seed gives the same bytes.")] = 1,
    duration: Annotated[str, typer.Option(metavar="DURATION", help="Duration of the fleet: 90s, 10m, 2h.")] = "10m",
    clusters: Annotated[int, typer.Option(metavar="N", min=1, help="Kafka, RocketMQ, MetaQ in turn.")] = 3,
    groups: Annotated[int, typer.Option(metavar="N", min=1, help="Over all clusters.")] = 24,
    members: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Over all groups, approximately. Default: eight per group.")
    ] = None,
    speed: Annotated[
        float, typer.Option(metavar="N", min=0.01, help="Factor on the rate of events; 1 = as usual.")
    ] = 1.0,
    disorder: Annotated[
        float, typer.Option(metavar="N", min=0.0, help="Late, repeated and missing events: 0 none, 1 as usual.")
    ] = 1.0,
    short_sessions: Annotated[
        bool, typer.Option("--short-sessions", help="Members report session timeouts of seconds: crashes show soon.")
    ] = False,
    live: Annotated[bool, typer.Option("--live", help="Write events as they happen, until stopped or --for.")] = False,
    until: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="Stop a live simulation after this time.")
    ] = None,
    load: Annotated[
        bool, typer.Option("--load", help="Only joins and heartbeats of a huge fleet, for measurements.")
    ] = False,
    rounds: Annotated[int, typer.Option(metavar="N", min=0, help="With --load: number of heartbeats per member.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary in JSON.")] = False,
) -> None:
    """Write the events of a simulated fleet, and separately the truth: each rebalance that must be found."""
    from streaming.machine.clock import now_ms
    from streaming.settings.model import duration_ms
    from streaming.simulator.fleet import RECORDINGS_START_MS, Fleet
    from streaming.simulator.live_writer import LiveWriter
    from streaming.simulator.load_fleet import write_load
    from streaming.simulator.recording import record
    from streaming.simulator.truth import rfc3339
    from udfs.model.timestamps import LATEST_MS

    mistakes: list[str] = []
    spans = {}
    for name, text in (("--duration", duration), ("--for", until)):
        try:
            spans[name] = None if text is None else duration_ms(text)
        except ValueError as error:
            mistakes.append(f"{name}: {error}")
    if groups < clusters:
        mistakes.append(f"--groups: {groups} is too few; {clusters} clusters need at least one group each")
    if RECORDINGS_START_MS + (spans.get("--duration") or 0) > LATEST_MS:
        mistakes.append("--duration: a recording begins in 2026 and ends before 2100")
    if load and members is not None and members < groups:
        mistakes.append(f"--members: {members} is too few; {groups} groups need at least one member each")
    if live and load:
        mistakes.append("--live and --load cannot go together")
    if until is not None and not live:
        mistakes.append("--for needs --live; a recording has --duration")
    events = out / "events"
    if (wrong := write_error(events)) is not None:
        mistakes.append(f"--out: {wrong}")
    elif events.is_dir() and any(events.iterdir()):
        mistakes.append(f"--out: {events} has files already; name another folder or empty it")
    if mistakes:
        _print("\n".join(f"error: {mistake}" for mistake in mistakes), sys.stderr)
        raise typer.Exit(USAGE_EXIT)
    shape = {
        "clusters": clusters,
        "groups": groups,
        "members": members,
        "speed": speed,
        "disorder": disorder,
        "short_sessions": short_sessions,
    }
    if load:
        summary = write_load(events, groups=groups, members=members or 10 * groups, rounds=rounds)
        _report(summary, as_json)
        return
    if live:
        start = now_ms()
        fleet = Fleet(seed, start_ms=start, **shape)  # type: ignore[arg-type]
        with LiveWriter(fleet, events, out / "truth.jsonl") as writer:
            _wait(spans["--for"])
        _report(
            {
                "events_folder": str(events),
                "truth_file": str(out / "truth.jsonl"),
                "events": writer.events,
                "from_time": rfc3339(start),
                "to_time": rfc3339(now_ms()),
            },
            as_json,
        )
        return
    recording = record(Fleet(seed, **shape), out, spans["--duration"] or 0)  # type: ignore[arg-type]
    _report({name: getattr(recording, name) for name in recording.__struct_fields__}, as_json)


def _wait(span_ms: int | None) -> None:
    """Wait for a signal to stop, at most this long."""
    from streaming.machine.stop_request import StopRequest

    stop = StopRequest()
    with stop.by_signals():
        stop.wait(None if span_ms is None else span_ms / 1_000)


def _report(summary: dict[str, object], as_json: bool) -> None:
    if as_json:
        _print(json.dumps(summary), sys.stdout)
        return
    width = max(map(len, summary))
    _print("\n".join(f"{name.replace('_', ' '):<{width}}  {value}" for name, value in summary.items()), sys.stdout)


def _print(text: str, stream: TextIO) -> None:
    stream.write(text + "\n")
