"""Command: `simulate`: write the events of a simulated fleet, and the truth about them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from streaming.commands.options import path_option
from streaming.writable import why_not_writable

USAGE_EXIT = 2


def simulate(
    out: Annotated[Path, path_option("Folder for events/*.jsonl and truth.jsonl.")],
    seed: Annotated[int, typer.Option(help="Decides everything: the same seed gives the same bytes.")] = 1,
    duration: Annotated[str, typer.Option(help="How long the fleet lives: 90s, 10m, 2h.")] = "10m",
    clusters: Annotated[int, typer.Option(min=1, help="Kafka, RocketMQ, MetaQ in turn.")] = 3,
    groups: Annotated[int, typer.Option(min=1, help="Over all clusters.")] = 24,
    members: Annotated[int | None, typer.Option(min=1, help="Over all groups, about; else eight for each.")] = None,
    speed: Annotated[float, typer.Option(min=0.01, help="How many times as often as usual something happens.")] = 1.0,
    disorder: Annotated[
        float, typer.Option(min=0.0, help="Late, repeated and missing events: 0 none, 1 as usual.")
    ] = 1.0,
    short_sessions: Annotated[
        bool, typer.Option("--short-sessions", help="Members tell session timeouts of seconds: crashes show soon.")
    ] = False,
    live: Annotated[bool, typer.Option("--live", help="Write events as they happen, until stopped or --for.")] = False,
    until: Annotated[str | None, typer.Option("--for", help="End a live simulation after so long.")] = None,
    load: Annotated[
        bool, typer.Option("--load", help="Only joins and heartbeats of a huge fleet, for measurements.")
    ] = False,
    rounds: Annotated[int, typer.Option(min=0, help="With --load: so many heartbeats of each member.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Say in JSON what was written.")] = False,
) -> None:
    """Write the events of a simulated fleet, and beside them the truth: each rebalance that must be found."""
    from streaming.settings import duration_ms
    from streaming.simulator.fleet import RECORDINGS_START_MS, Fleet
    from streaming.simulator.live import LiveWriter
    from streaming.simulator.load import write_load
    from streaming.simulator.recording import record
    from streaming.simulator.truth import rfc3339
    from streaming.wall_clock import now_ms
    from udfs.moments import LATEST_MS

    mistakes: list[str] = []
    spans = {}
    for name, text in (("--duration", duration), ("--for", until)):
        try:
            spans[name] = None if text is None else duration_ms(text)
        except ValueError as error:
            mistakes.append(f"{name}: {error}")
    if groups < clusters:
        mistakes.append(f"--groups: {clusters} clusters need at least as many groups, not {groups}")
    if RECORDINGS_START_MS + (spans.get("--duration") or 0) > LATEST_MS:
        mistakes.append("--duration: a recording begins in 2026 and ends before 2100")
    if load and members is not None and members < groups:
        mistakes.append(f"--members: {groups} groups need at least as many members, not {members}")
    if live and load:
        mistakes.append("--live and --load cannot go together")
    if until is not None and not live:
        mistakes.append("--for goes with --live; a recording has its --duration")
    events = out / "events"
    if (wrong := why_not_writable(events)) is not None:
        mistakes.append(f"--out: {wrong}")
    elif events.is_dir() and any(events.iterdir()):
        mistakes.append(f"--out: {events} has files already; name another folder or empty it")
    if mistakes:
        _say("\n".join(f"error: {mistake}" for mistake in mistakes), sys.stderr)
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
        said = write_load(events, groups=groups, members=members or 10 * groups, rounds=rounds)
        _report(said, as_json)
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
    """Wait for a signal to stop, no longer than so long."""
    import signal
    import threading

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    stop.wait(None if span_ms is None else span_ms / 1_000)


def _report(said: dict[str, object], as_json: bool) -> None:
    if as_json:
        _say(json.dumps(said), sys.stdout)
        return
    width = max(map(len, said))
    _say("\n".join(f"{name.replace('_', ' '):<{width}}  {value}" for name, value in said.items()), sys.stdout)


def _say(text: str, stream: TextIO) -> None:
    stream.write(text + "\n")
