"""Command: `alerts`: send findings that open and close to chats, mail, a webhook or an Alertmanager."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from streaming.commands.options import ConfigOption, TablesOption, reader_settings


def alerts(
    tables: TablesOption = None,
    config: ConfigOption = None,
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be sent now, one JSON object a line; send nothing.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Send what is due now, and stop.")] = False,
) -> None:
    """Send messages about findings that open and close, until Ctrl-C. Needs no Spark; `serve` does it, too.

    Channels, templates, cool-down and maintenance windows are in the settings [alerts].
    """
    from streaming.alerts import service
    from streaming.machine import logs
    from streaming.machine.stop_request import StopRequest
    from streaming.terminal.output import answering
    from streaming.views.reader import Reader
    from streaming.views.related_annotations import AnnotationSpans

    settings = reader_settings(config, {"job.tables": tables})
    logs.configure(settings.log.level, settings.log.format)
    root, near = settings.job.tables, AnnotationSpans.of(settings.annotations)
    with answering():
        Reader(root)
    if is_dry:
        for request in service.dry_run(root, settings.alerts, settings.widespread, near):
            sys.stdout.write(json.dumps(request, ensure_ascii=False) + "\n")
    elif once:
        sent = service.run_once(root, settings.alerts, settings.widespread, near=near)
        sys.stderr.write(f"sent: {sent}\n")
    else:
        stop = StopRequest()
        with stop.by_signals():
            service.run(root, settings.alerts, settings.widespread, stop.wait, near=near)
