"""Access to a server: from where, by which name, with which token."""

from __future__ import annotations

import pytest

from streaming.machine.http_access import AllowedHosts, bearer, is_local, is_token, require_token
from streaming.setup.errors import SetupError

TOKEN = "a long enough token"


@pytest.mark.parametrize(
    ("address", "expected"), [("127.0.0.1", True), ("::1", True), ("10.0.0.1", False), ("x", False)]
)
def test_addresses_that_only_this_machine_reaches(address: str, expected: bool) -> None:
    assert is_local(address) is expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("127.0.0.1:8687", True),
        ("localhost", True),
        ("[::1]:8687", True),
        ("Monitor.Example:8687", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("10.0.0.1", False),
        ("", False),
        ("[", False),
    ],
)
def test_a_name_must_be_listed(header: str, expected: bool) -> None:
    assert AllowedHosts("127.0.0.1", ["monitor.example"]).allows(header) is expected


def test_at_all_addresses_any_address_fits_and_no_other_name() -> None:
    hosts = AllowedHosts("0.0.0.0", [])
    assert hosts.allows("10.0.0.1:8687")
    assert not hosts.allows("evil.example:8687")


def test_a_server_that_is_reached_from_elsewhere_needs_a_token() -> None:
    require_token("127.0.0.1", "", "metrics.host")
    require_token("0.0.0.0", TOKEN, "metrics.host")
    with pytest.raises(SetupError, match=r"metrics\.host: 0\.0\.0\.0 .* no token"):
        require_token("0.0.0.0", "", "metrics.host")


def test_only_the_token_is_the_token() -> None:
    assert is_token(TOKEN, TOKEN)
    assert not any(is_token(TOKEN, given) for given in ("", TOKEN[:-1], TOKEN + " ", TOKEN.upper(), "\udcff"))


@pytest.mark.parametrize("header", ["", "Bearer", "Basic abc", "abc"])
def test_a_header_without_a_bearer_has_no_token(header: str) -> None:
    assert not bearer(header)
