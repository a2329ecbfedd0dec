"""Command: `annotate`: write down what was done to a platform, next to the events that the job reads."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from streaming.commands.options import ConfigOption, time_ms
from streaming.settings.errors import SettingsError
from streaming.settings.locations import Location, absolute, folder_of, hand_on, without_key
from streaming.stores.access import require_stores


def annotate(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What was done, e.g. 'orders 2.4.1'.")],
    kind: Annotated[
        str, typer.Option("--kind", "-k", metavar="KIND", help="deploy, scaling, drain, incident, or any other word.")
    ] = "deploy",
    annotation_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Its id: a newer version of the same id replaces it.")
    ] = None,
    began: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="When it began: 15m (ago), RFC 3339. Default: now.")
    ] = None,
    ended: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="When it ended, as --from; without it: not known.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Where there is more about it.")] = None,
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="Only this cluster is concerned.")] = None,
    groups: Annotated[
        list[str] | None, typer.Option("--group", "-g", metavar="GLOB", help="Only these groups. Repeatable.")
    ] = None,
    client_ids: Annotated[
        list[str] | None, typer.Option("--client-id", metavar="GLOB", help="Only these client ids. Repeatable.")
    ] = None,
    hosts: Annotated[
        list[str] | None, typer.Option("--host", metavar="GLOB", help="Only these hosts or addresses. Repeatable.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|URI|kafka:[HOST:PORT/]TOPIC",
            help="Where to. Default: where the job of the settings reads events.",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the annotation as it was written.")] = False,
) -> None:
    """Write an annotation: a deploy, a scaling, a drained node, an incident. Needs no Spark.

    It decides nothing. `explain`, pages and alerts show it beside what it concerns: GLOBs are shell patterns, and all
    that is given must match.
    """
    import msgspec

    from streaming.collectors.annotation_log import read_annotation, writer_to
    from streaming.machine.clock import now_ms
    from streaming.settings.model import load
    from streaming.terminal.escape import printable
    from udfs.model.annotations import annotation_change
    from udfs.model.rejection import Rejection

    folder, topic = _place(out)
    settings = load(config, {}, os.environ)
    given = {
        "text": text,
        "kind": kind,
        "id": annotation_id,
        "from": time_ms("--from", began),
        "to": time_ms("--to", ended),
        "url": url,
        "cluster": cluster,
        "groups": groups,
        "client_ids": client_ids,
        "hosts": hosts,
    }
    body = msgspec.json.encode({name: value for name, value in given.items() if value is not None})
    found = read_annotation(body, now_ms(), settings.core_config())
    if isinstance(found, Rejection):
        raise typer.BadParameter(printable(f"{found.reason}: {found.detail}"))
    hand_on(settings.storage.plain_options(), os.environ)
    require_stores({"--out": folder or "", "--events": settings.events.folder})
    writer_to(settings, folder, topic)(found)
    # In ASCII: the text may hold what moves a terminal's cursor.
    written = json.dumps(msgspec.to_builtins(found)) if as_json else printable(annotation_change(found).subject or "")
    sys.stdout.write(f"{written}\n")


def _place(out: str | None) -> tuple[Location | None, str]:
    """Return the folder or the topic, as ``[HOST:PORT/]TOPIC``; neither if none is given."""
    from streaming.collectors.annotation_log import TO_TOPIC, TOPIC_NAME

    if out is None:
        return None, ""
    if out.startswith(TO_TOPIC):
        topic = out.removeprefix(TO_TOPIC)
        if not TOPIC_NAME.fullmatch(topic.rpartition("/")[2]):
            raise SettingsError([f"--out {out}: {topic.rpartition('/')[2]!r} is not a valid topic name"])
        return None, topic
    try:
        return absolute(folder_of(out)), ""
    except ValueError as error:
        raise SettingsError([f"--out {without_key(out)}: {error}"]) from error
