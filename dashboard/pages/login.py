"""Dashboard: the login: a browser proves that it knows the token, and gets a session for it."""

from __future__ import annotations

import time
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from dashboard.pages.page_addresses import inside
from dashboard.security.frame import MAX_BODY_BYTES
from dashboard.security.token import COOKIE, SESSION_S, new_session
from streaming.machine.http_access import is_token

router = APIRouter(include_in_schema=False)

MAX_FIELDS = 4


def _form(request: Request, to: str, problem: str = "", status: int = 200) -> HTMLResponse:
    template = request.app.state.templates.get_template("login.html")
    return HTMLResponse(template.render(to=inside(to), problem=problem), status)


@router.get("/login")
def login_form(request: Request, to: Annotated[str, Query(alias="next")] = "/") -> Response:
    """Show the form."""
    return _form(request, to)


@router.post("/login")
async def login(request: Request) -> Response:
    """Check the token, and redirect to the requested page."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            return Response(status_code=413)
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MAX_FIELDS)
    except ValueError:
        return _form(request, "/", "This form has two fields.", 400)
    to = inside(fields.get("next", ["/"])[0])
    token = request.app.state.settings.token.get_secret_value()
    if token and not is_token(token, fields.get("token", [""])[0]):
        return _form(request, to, "This is not the token.", 403)
    answer = RedirectResponse(to, 303)
    if token:
        is_secure = request.url.scheme == "https"
        session = new_session(token, int(time.time()))
        answer.set_cookie(COOKIE, session, SESSION_S, httponly=True, samesite="strict", secure=is_secure)
    return answer
