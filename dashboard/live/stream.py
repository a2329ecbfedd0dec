"""Dashboard: the stream of server-sent events about changed tables, identified by their versions."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from dashboard.live.table_poller import TablePoller

router = APIRouter()

# A comment at this interval shows both sides that the other is alive.
KEEP_ALIVE_S = 15.0
RETRY_MS = 1_000
_ID = re.compile(r"[a-z_]{1,40}=-?\d{1,18}")


def event_id(versions: Mapping[str, int]) -> str:
    """Return versions as the id of an event.

    Example:
        >>> event_id({"groups": 3, "members": 4})
        'groups=3.members=4'
    """
    return ".".join(f"{name}={version}" for name, version in sorted(versions.items()))


def versions_of(last_id: str) -> dict[str, int]:
    """Parse the id of an event; any other text has no versions.

    Example:
        >>> versions_of("groups=3.members=4"), versions_of("nonsense")
        ({'groups': 3, 'members': 4}, {})
    """
    parts = last_id.split(".")[:100]
    if not all(_ID.fullmatch(part) for part in parts):
        return {}
    return {name: int(version) for name, _, version in (part.partition("=") for part in parts)}


def differing(before: Mapping[str, int], now: Mapping[str, int]) -> list[str]:
    """Return the tables whose versions differ, sorted."""
    return sorted(name for name, version in now.items() if before.get(name) != version)


async def events(poller: TablePoller, last_id: str | None) -> AsyncIterator[str]:
    """Yield an event for each change of the tables.

    Args:
        last_id: The last id that the page received; its first event contains the changes since then. None for a new
            page.
    """
    shown = dict(poller.versions) if last_id is None else versions_of(last_id)
    yield f"retry: {RETRY_MS}\nid: {event_id(shown)}\nevent: hello\ndata: {{}}\n\n"
    while not poller.is_closing:
        now = dict(poller.versions)
        changed = differing(shown, now)
        if changed:
            shown = now
            yield f"id: {event_id(now)}\nevent: tables\ndata: {json.dumps({'changed': changed})}\n\n"
        elif not await poller.changed(KEEP_ALIVE_S):
            yield ": still here\n\n"


@router.get("/live", include_in_schema=False)
async def live(request: Request, since: str | None = None) -> Response:
    """Stream the changes of the tables.

    Args:
        since: The versions with which the page was made; a page that reconnects sends ``Last-Event-ID``.
    """
    state = request.app.state
    if state.streams >= state.settings.max_streams:
        return PlainTextResponse("Too many open pages.", 503, {"retry-after": "10"})
    last_id = request.headers.get("last-event-id") or since

    async def counted() -> AsyncIterator[str]:
        state.streams += 1
        try:
            async for event in events(state.poller, last_id):
                yield event
        finally:
            state.streams -= 1

    return StreamingResponse(counted(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
