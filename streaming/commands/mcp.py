"""Command: `mcp`: the tables for an agent on this machine, over standard input and output."""

from __future__ import annotations

import time

from streaming.commands.options import ConfigOption, TablesOption, reader_settings


def mcp(tables: TablesOption = None, config: ConfigOption = None) -> None:
    """Serve the tables to an agent by the Model Context Protocol over standard input and output, until that closes.

    Its tools only read: find groups, what is wrong, explain a rebalance, timeline, who owned, members, lag, ready
    questions, what-if. `serve` has the same over HTTP, at /mcp. docs/mcp.md shows how to add it to a client.
    """
    from dashboard.mcp.source import Source, ToolSettings
    from dashboard.mcp.tool_server import ToolServer
    from dashboard.reading.questions import Reading
    from dashboard.reading.snapshots import TableSnapshots
    from streaming.machine import logs
    from streaming.terminal.output import answering
    from streaming.views.related_annotations import AnnotationSpans

    settings = reader_settings(config, {"job.tables": tables})
    # On standard error: the library gives tools no other, and keeps standard output for answers.
    logs.configure(settings.log.level, settings.log.format)
    near = AnnotationSpans.of(settings.annotations)
    with answering():
        reading = Reading.of(settings.job.tables, settings.dashboard, widespread=settings.widespread, near=near)
    assert isinstance(reading.tables, TableSnapshots)
    snapshots, read_s = reading.tables, time.monotonic()

    def refresh() -> None:
        nonlocal read_s
        if time.monotonic() - read_s >= settings.dashboard.poll_interval_ms / 1_000:
            snapshots.refresh()
            read_s = time.monotonic()

    ToolServer(Source(reading, ToolSettings.of(settings)), refresh).run("stdio")
