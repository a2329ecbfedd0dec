"""The policy allows only what the server itself sends: nothing inline, nothing from other servers."""

from __future__ import annotations

from dashboard.security.headers import HEADERS, POLICY


def test_the_policy_has_no_exception() -> None:
    sources = {source for part in POLICY.split("; ") for source in part.split()[1:]}
    assert sources == {"'none'", "'self'"}
    assert POLICY.startswith("default-src 'none'")


def test_no_answer_is_guessed_framed_or_named_to_others() -> None:
    assert HEADERS["x-content-type-options"] == "nosniff"
    assert HEADERS["x-frame-options"] == "DENY"
    assert HEADERS["referrer-policy"] == "no-referrer"
