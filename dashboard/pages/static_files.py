"""Dashboard: static files from a list made at the start, so that no path leads anywhere else."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from dashboard.pages.templating import STATIC

router = APIRouter()

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}
# Pages name each file with its version, so a new version has another address.
KEPT = "public, max-age=31536000, immutable"


def _files() -> dict[str, Path]:
    return {
        path.relative_to(STATIC).as_posix(): path
        for path in sorted(STATIC.rglob("*"))
        if path.suffix in TYPES and not path.name.endswith(".entry.js")
    }


FILES = _files()


@router.get("/static/{name:path}", include_in_schema=False)
def static_file(name: str) -> Response:
    """Return a file of the pages."""
    path = FILES.get(name)
    if path is None:
        return PlainTextResponse("There is no such file.", 404)
    return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers={"cache-control": KEPT})
