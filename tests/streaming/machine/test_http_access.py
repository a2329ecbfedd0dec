"""By which names the server is called."""

from __future__ import annotations

import pytest

from dashboard.security.hosts import AllowedHosts, is_local


@pytest.mark.parametrize(
    ("address", "expected"), [("127.0.0.1", True), ("::1", True), ("10.0.0.1", False), ("x", False)]
)
def test_what_only_this_machine_reaches(address: str, expected: bool) -> None:
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
