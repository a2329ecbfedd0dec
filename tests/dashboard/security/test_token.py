"""The token and the session that stands for it."""

from __future__ import annotations

from dashboard.security.token import COOKIE, SESSION_S, is_session, new_session, session_of

TOKEN = "a long enough token"
NOW = 1_767_225_600


def test_a_session_holds_until_it_expires() -> None:
    session = new_session(TOKEN, NOW)
    assert is_session(TOKEN, session, NOW + SESSION_S - 1)
    assert not is_session(TOKEN, session, NOW + SESSION_S)
    assert TOKEN not in session


def test_a_session_of_another_token_or_with_another_end_is_none() -> None:
    session = new_session(TOKEN, NOW)
    until, signature = session.split(".")
    forged = ["", ".", "x", f"{int(until) + 1}.{signature}", f"{until}.", f"{'9' * 5_000}.{signature}", f"²{session}"]
    assert not any(is_session(TOKEN, value, NOW) for value in [*forged, new_session("another token is here", NOW)])


def test_a_cookie_header_is_searched_for_the_session() -> None:
    assert session_of(f"theme=dark; {COOKIE}=12.ab") == "12.ab"
    assert session_of("theme=dark") is None
    assert session_of('"\x00;=;') is None
