"""Dashboard: the cookie that a browser gets for the bearer token."""

from __future__ import annotations

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie

COOKIE = "rebalance_monitor_session"
SESSION_S = 12 * 3_600
_PURPOSE = b"rebalance-monitor session "


def new_session(token: str, now_s: int) -> str:
    """Return a cookie's value that proves knowledge of the token until it expires, even after a restart."""
    until = now_s + SESSION_S
    return f"{until}.{_sign(token, until)}"


def is_session(token: str, value: str, now_s: int) -> bool:
    """Return whether a cookie's value was made with this token and has not expired."""
    until, _, signature = value.partition(".")
    if not until.isascii() or not until.isdecimal() or len(until) > len(str(now_s)):
        return False
    return hmac.compare_digest(_sign(token, int(until)).encode(), signature.encode()) and now_s < int(until)


def session_of(cookies: str) -> str | None:
    """Return the session in a ``Cookie`` header."""
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _sign(token: str, until: int) -> str:
    return hmac.new(token.encode(), _PURPOSE + str(until).encode(), hashlib.sha256).hexdigest()
