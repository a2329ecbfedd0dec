"""The pages of advice and replays show what runs wrote, and what is computed for one group."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.reading import requested_advice
from streaming.settings.model import Dashboard
from tests.dashboard.replayed_tables import write_run
from tests.streaming.commands.test_advise import rows, write_savings
from tests.streaming.tables.signs import known, leave_sign, sign


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("advised")
    write_savings(found)
    write_run(found)
    return found


@pytest.fixture(scope="module")
def advised(root: Path, settings: Dashboard) -> Iterator[TestClient]:
    with TestClient(create_app(root, settings)) as test_client:
        yield test_client


def text_of(client: TestClient, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status, answer.text
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def test_all_groups_have_their_best_and_where_it_is_from(advised: TestClient) -> None:
    page = text_of(advised, "/advice")
    assert "From the run that was begun at 2026-09-21" in page
    assert "2 groups" in page
    assert re.search(r"orders shop strategy=CONSISTENT_HASH .* good|fair|weak", page)
    assert "unknown: what a moved queue costs this group was never measured" in page
    assert "orders" not in text_of(advised, "/advice?result=unknown").partition("However sure")[2]
    assert 'href="/advice?cluster=shop&amp;group_id=orders"' in advised.get("/advice").text
    assert "'maybe' is not one of advice, none, unknown" in text_of(advised, "/advice?result=maybe", 400)


def test_without_a_run_the_page_names_the_command_that_writes_one(client: TestClient) -> None:
    assert "rebalance-monitor advise --all writes one" in text_of(client, "/advice")
    assert "No replay is in these tables yet." in text_of(client, "/replays")


def test_one_group_has_every_entry_of_the_command(root: Path, advised: TestClient) -> None:
    (said,) = rows(root, "advise", "-g", "orders")
    page = text_of(advised, "/advice?cluster=shop&group_id=orders")
    assert "orders in shop, the last 7 days: " in page
    for number, entry in enumerate(said["advice"], start=1):
        assert f"{number}. {entry['policy']}" in page
        for sentence in (*entry["settings"], *entry["assumes"], *entry["costs"], entry["sure_because"]):
            assert sentence in page
    assert text_of(advised, "/advice?group_id=orders") == page
    assert "the last 1 day:" in text_of(advised, "/advice?cluster=shop&group_id=orders&days=1")
    assert "no saving can be named" in text_of(advised, "/advice?cluster=shop&group_id=unmeasured")
    assert "there is no group ordres" in text_of(advised, "/advice?group_id=ordres", 404)
    text_of(advised, "/advice?group_id=orders&days=0", 400)


def test_each_policy_has_a_panel_on_one_scale(root: Path, advised: TestClient) -> None:
    page = advised.get("/advice?cluster=shop&group_id=orders&days=30").text
    moved = {row["policy"]: row["moved"] for row in rows(root, "replay", "-g", "orders", "--all-strategies")}
    drawn = re.findall(r'aria-label="Queues moved: ([\d,]+), as recorded ([\d,]+)">(.*?)</svg>', page)
    bars = {
        (int(value.replace(",", "")), int(width))
        for value, _, picture in drawn
        for width in re.findall(r'y="6" width="(\d+)"', picture)
    }
    assert {int(recorded.replace(",", "")) for _, recorded, _ in drawn} == {moved[None]}
    assert set(moved.values()) <= {value for value, _ in bars} | {moved[None]}
    most = max(value for value, _ in bars)
    assert bars == {(value, round(100 * value / most)) for value, _ in bars}
    # It has no figures, but a reason.
    assert re.search(r"<code><bdi class=\"id\">static</bdi></code>", page)


def test_what_is_not_computed_is_taken_from_the_run(
    root: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requested_advice, "MOST_REBALANCES", 0)
    with TestClient(create_app(root, settings)) as limited:
        page = text_of(limited, "/advice?cluster=shop&group_id=orders")
    assert "Not computed here: orders has " in page
    assert "What follows is from the run that was begun at 2026-09-21" in page
    assert "1. strategy=CONSISTENT_HASH" in page


def test_a_replay_shows_its_policies_beside_what_was_recorded(root: Path, advised: TestClient) -> None:
    page = text_of(advised, "/replays")
    assert "of 2 groups: all groups" in page
    assert text_of(advised, "/replays?id=run-1") == page
    assert "there is no finished replay none" in text_of(advised, "/replays?id=none", 404)
    recorded = rows(root, "replay", "-g", "orders")[0]["moved"] + rows(root, "replay", "-g", "unmeasured")[0]["moved"]
    assert f"as recorded {recorded:,}" in advised.get("/replays").text


def test_the_api_has_the_list_and_one_group(root: Path, advised: TestClient) -> None:
    listed = advised.get("/api/v1/advice?result=advice").json()
    assert [row["group_id"] for row in listed["rows"]] == ["orders"]
    (said,) = rows(root, "advise", "-g", "orders")
    found = advised.get("/api/v1/group-advice?group_id=orders").json()
    assert {name: found[name] for name in said} == said
    lines = advised.get("/api/v1/group-advice?group_id=orders&format=csv").text.splitlines()
    assert len(lines) == 1 + len(said["advice"])
    assert advised.get("/api/v1/group-advice?group_id=orders&days=400").status_code == 400


def test_a_blind_cluster_is_named(root: Path, settings: Dashboard, tmp_path: Path) -> None:
    write_savings(tmp_path)
    leave_sign(tmp_path, sign(known("shop"), state="stopped"))
    with TestClient(create_app(tmp_path, settings)) as blind:
        page = text_of(blind, "/advice?cluster=shop&group_id=orders")
    assert re.search(r"shop is blind since .*: the job was stopped at .*What happened since is in no figure", page)
