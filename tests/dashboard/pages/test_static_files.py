"""Static files are those of the list."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from dashboard.pages.static_files import FILES


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_with_its_type(client: TestClient, name: str) -> None:
    answer = client.get(f"/static/{name}")
    assert answer.content == FILES[name].read_bytes()
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "path",
    ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "/etc/hostname", "vendor/package.json", "", "vendor", "a%00.css"],
)
def test_no_path_leads_elsewhere(client: TestClient, path: str) -> None:
    assert client.get(f"/static/{path}").status_code == 404


def test_scripts_of_others_have_their_licences_beside_them() -> None:
    assert {"vendor/echarts.LICENSE.txt", "vendor/echarts.NOTICE.txt", "vendor/htmx.LICENSE.txt"} <= set(FILES)
