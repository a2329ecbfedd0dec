"""Ids in addresses come back as they were sent."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from dashboard.pages.page_addresses import group_address, inside, member_address, rebalance_address
from tests.dashboard.hostile import HOSTILE


@pytest.mark.parametrize("name", HOSTILE[:50], ids=range(50))
def test_an_id_comes_back_from_its_address(name: str) -> None:
    assert parse_qs(urlsplit(group_address("c", name)).query, keep_blank_values=True)["group"] == [name]
    assert parse_qs(urlsplit(member_address(name)).query)["member"] == [name]
    assert parse_qs(urlsplit(rebalance_address(name)).query)["id"] == [name]


@pytest.mark.parametrize(
    "path", ["//evil.example", "https://evil.example", "/\\evil.example", "/\nx", "", "javascript:1"]
)
def test_no_login_leads_to_another_server(path: str) -> None:
    assert inside(path) == "/"
