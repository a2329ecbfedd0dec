"""Command: `serve`: pages and API over the tables."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.options import ConfigOption, TablesOption, reader_settings

if TYPE_CHECKING:
    from streaming.settings.locations import Location


def serve(
    tables: TablesOption = None,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen at.")] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65_535, help="Port to listen at; 0 = a free one.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Serve pages, an API and tools for agents (at /mcp) over the tables, until Ctrl-C.

    It only reads the tables, and needs no Spark. Only this machine reaches it, unless --host names another address;
    then the setting dashboard.token is needed.
    """
    from dashboard.api.annotation_hook import AnnotationHook
    from dashboard.mcp.source import ToolSettings
    from dashboard.metrics.router import all_families
    from dashboard.server import DashboardServer
    from streaming.alerts import service as alerts
    from streaming.alerts.follower import AlertsStatus
    from streaming.machine import logs, telemetry
    from streaming.machine.stop_request import StopRequest
    from streaming.terminal.output import answering
    from streaming.views.related_annotations import AnnotationSpans

    settings = reader_settings(config, {"job.tables": tables, "dashboard.host": host, "dashboard.port": port})
    logs.configure(settings.log.level, settings.log.format)
    near, hook = AnnotationSpans.of(settings.annotations), None
    if token := settings.annotations.token.get_secret_value():
        from streaming.collectors.annotation_log import taker

        hook = AnnotationHook(token, taker(settings))
    with answering():
        _note_absence(settings.job.tables)
        status = AlertsStatus()
        server = DashboardServer(
            settings.job.tables,
            settings.dashboard,
            metrics=settings.metrics,
            widespread=settings.widespread,
            alerts=status,
            near=near,
            hook=hook,
            tools=ToolSettings.of(settings),
        )
    # The server passes a signal on to the previous handler: alerts finish sending, and then the process ends.
    stop = StopRequest()
    with (
        closing(server),
        telemetry.sent("serve", lambda: all_families(server.application.state)),
        stop.by_signals(),
        alerts.in_background(settings.job.tables, settings.alerts, settings.widespread, status, near),
    ):
        server.run(lambda: stop.is_requested, lambda: _announce(server.url))


def _note_absence(root: Location) -> None:
    """Say that there are no tables yet: the job that writes them may start later, and a name may be mistyped."""
    from streaming.tables.errors import NoTablesError
    from streaming.tables.location import table_uri
    from streaming.views.reader import Reader

    # A catalogue is refused: nothing will ever be there.
    table_uri(root, "groups")
    try:
        Reader(root)
    except NoTablesError as error:
        sys.stderr.write(f"{error} Until they are there, the pages say that nothing is known.\n")


def _announce(url: str) -> None:
    sys.stderr.write(f"pages: {url}\n")
    sys.stderr.flush()
