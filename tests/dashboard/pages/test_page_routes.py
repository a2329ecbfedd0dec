"""Every page shows what the tables of the story hold, once for a version."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.pages import group_page
from dashboard.reading.churn import BUSIEST
from streaming.settings.model import Dashboard
from streaming.tables.schema import TABLES
from tests.browser.day_tables import T0, write_rows
from tests.dashboard.chart_tables import GROUPS, MINUTES, name_of, write_many
from tests.streaming.tables.journals import Journal, assigned, released, stable
from tests.streaming.views.many_groups import Troubled, names, opened, write_groups
from tests.streaming.views.story import FIRST, SECOND, THIRD, rebalance, store, write_audited_story

PAGES = {
    "/": ["orders", "twin", "popping", "c1", "c2"],
    "/?q=orders": ["orders"],
    "/group?cluster=c1&group=orders": ["orders-0", "orders-1", "static-a", "h2", "expected_differs"],
    "/rebalances": [THIRD, SECOND, "a expired", "b joined"],
    f"/rebalance?id={THIRD}": ["a expired", "session_expired", "orders(0,1)", "event-bb33"],
    "/member?member=b": ["orders-0", "orders-1", "h2"],
    "/client?client=b%40h2": ["orders", "h2"],
    "/host?host=h2": ["orders", "Clients"],
    "/members?open=yes": ["b"],
    "/findings": ["expected_differs", "compare the strategies of the clients"],
    "/rejected-events": ["There are none yet."],
    "/rejected-events?reason=late": ["Nothing fits these filters."],
    "/?q=zzz": ["groups fits these filters."],
    "/job": ["rebalances", "3.0 s"],
}

GROUP = f"/group?cluster=c&group={name_of(0)}"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_what_the_tables_hold(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert [text for text in PAGES[path] if text not in answer.text] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_that_is_there_already_is_sent_once(client: TestClient, path: str) -> None:
    first = client.get(path)
    again = client.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_an_empty_installation_names_the_cluster_that_is_followed(tmp_path: Path, settings: Dashboard) -> None:
    topic = {"cluster": "shop", "topic": "t", "queue_count": 1, "valid_from": 0, "valid_to": None}
    write_rows(tmp_path, "topics", [topic])
    with TestClient(create_app(tmp_path, settings)) as client:
        page = client.get("/").text
    assert "No group yet: shop is followed" in page
    assert "fits these filters" not in page


def test_a_search_leaves_the_others_out(client: TestClient) -> None:
    assert "popping" not in client.get("/?q=orders").text


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_inline_scripts_or_styles(client: TestClient, path: str) -> None:
    text = client.get(path).text
    assert "<style" not in text
    assert " style=" not in text
    assert " onclick=" not in text
    assert all("src=" in part.split(">")[0] for part in text.split("<script")[1:])


def test_pages_of_a_group_and_of_a_rebalance_show_audits(tmp_path: Path, settings: Dashboard) -> None:
    write_audited_story(tmp_path)
    with TestClient(create_app(tmp_path, settings)) as client:
        group = client.get("/group?cluster=c1&group=orders").text
        shown = ["Audits", "stale_metadata", "It is so with fewer queues.", "contradicted by 3 generations since"]
        assert [text for text in shown if text not in group] == []
        rebalance = client.get(f"/rebalance?id={SECOND}").text
        shown = ["Queues that differ", "orders-1", "missing", "nobody", "the leader, or a member, knew another number"]
        assert [text for text in shown if text not in rebalance] == []
        assert "No queue differs." in client.get(f"/rebalance?id={FIRST}").text
        (audit,) = client.get("/api/v1/audits?verdict=differs&since=0").json()["rows"]
        assert (audit["rebalance_id"], audit["differing"][0]["expected"]) == (SECOND, ["a"])
        csv = client.get("/api/v1/audits?since=0&format=csv").text
        assert len(csv.splitlines()) == 3


def test_pages_show_what_is_widespread_where_it_matters(tmp_path: Path, settings: Dashboard) -> None:
    write_groups(tmp_path, 8, Troubled(names(1, 4)))
    notice = "<code>flapping</code> in 4 of 8 groups of"
    with TestClient(create_app(tmp_path, settings)) as client:
        for path in ("/", "/?cluster=c1", "/findings", "/findings?cluster=c1", "/group?cluster=c1&group=g1"):
            assert client.get(path).text.count(notice) == 1
        for path in ("/?cluster=c2", "/findings?cluster=c2", "/group?cluster=c1&group=g8"):
            assert notice not in client.get(path).text
        assert client.get("/api/v1/groups?health=warning").json()["total"] == 0
        assert client.get("/v3/kafka/c1/consumer/g1/status").json()["status"]["status"] == "OK"


def test_findings_widespread_in_many_clusters_take_one_line(tmp_path: Path, settings: Dashboard) -> None:
    history = Journal()
    changes = [
        history.change(0, body, group, f"c{number}")
        for number in range(8)
        for group in names(1, 3)
        for body in (stable(2), opened(f"{number}-{group}", Troubled([])))
    ]
    store(tmp_path, [rebalance("r1", 0, "group_created", None)], changes)
    with TestClient(create_app(tmp_path, settings)) as client:
        for path in ("/", "/findings"):
            text = client.get(path).text
            assert text.count("<code>flapping</code> in 3 of 3 groups of") == 6
            assert text.count("</a> and 2 more: what is open in so many groups at once") == 1


def write_costs(root: Path) -> None:
    """Let a queue move twice: the first time nothing is known of its messages."""
    second = {"repeated_messages": 1_200, "repeated_estimated_messages": 34, "waiting_messages": 5_678}
    third = {"repeated_estimated_messages": 56}
    history = Journal()
    happened = [
        (0, assigned(0, "a", 0)),
        (10_000, released(0, "a", 10_000)),
        (10_000, assigned(0, "b", 10_000, generation=2, **second)),
        (10_000, stable(1, 2, 10_000)),
    ]
    rows = [
        rebalance("r1", 0, "group_created", None),
        rebalance("r2", 10_000, "member_left", "a", **second),
        rebalance("r3", 20_000, "member_left", "a", **third),
    ]
    store(root, rows, [history.change(at, body, group="orders") for at, body in happened])


def test_pages_lists_and_data_have_the_cost_in_messages(tmp_path: Path, settings: Dashboard) -> None:
    write_costs(tmp_path)
    about = '<abbr title="estimated">~</abbr>'
    cells = ["Messages read twice", f"1,200 + {about}34", "Messages that waited", "5,678"]
    with TestClient(create_app(tmp_path, settings)) as client:
        for path in ("/rebalances", "/group?cluster=c1&group=orders", "/rebalance?id=r2"):
            text = client.get(path).text
            assert [cell for cell in cells if cell not in text] == []
        # The same holds for the queue that moved as for the whole rebalance.
        assert client.get("/rebalance?id=r2").text.count(f"1,200 + {about}34") == 2
        facts = " ".join(client.get("/rebalance?id=r1").text.split())
        assert '<dt>Messages that waited</dt><dd><span class="none">–</span></dd>' in facts
        rows = client.get("/api/v1/rebalances?since=0&sort=-repeated_messages").json()["rows"]
        assert [row["rebalance_id"] for row in rows] == ["r2", "r3", "r1"]
        assert [row["waiting_messages"] for row in rows] == [5_678, None, None]
        head, *lines = client.get("/api/v1/rebalances?since=0&format=csv").text.splitlines()
        csv = [dict(zip(head.split(","), line.split(","), strict=False)) for line in lines]
        assert [row["rebalance_id"] for row in csv] == ["r3", "r2", "r1"]
        assert {"repeated_messages", "repeated_estimated_messages", "waiting_messages"} < csv[0].keys()
        (moved,) = client.get("/api/v1/rebalances/r2").json()["moves"]["computed"]
        assert (moved["repeated_messages"], moved["waiting_messages"]) == (1_200, 5_678)


def test_lists_without_any_cost_have_no_column_of_it(client: TestClient) -> None:
    for path in ("/rebalances", "/group?cluster=c1&group=orders"):
        assert "Messages" not in client.get(path).text


@pytest.mark.parametrize("path", [*PAGES, "/questions", "/questions/most-rebalances"])
def test_a_page_refuses_parameters_that_it_does_not_take_or_that_come_twice(client: TestClient, path: str) -> None:
    sign = "&" if "?" in path else "?"
    assert client.get(f"{path}{sign}colour=red").status_code == 400
    name = path.split("?")[1].split("=")[0] if "?" in path else "q"
    answer = client.get(f"{path}{sign}{name}=x&{name}=y")
    assert answer.status_code == 400
    assert "is given more than once" in answer.text or "does not take" in answer.text


def test_a_filter_by_a_value_that_there_is_not_is_refused(client: TestClient) -> None:
    assert client.get("/findings?severity=bogus").status_code == 400
    assert "expected_differs" in client.get("/findings?open=true").text
    assert client.get("/findings?severity=any").status_code == 200


def test_a_group_may_be_called_any(client: TestClient) -> None:
    assert "Nothing fits these filters." in client.get("/rebalances?group_id=any").text


def test_pages_depend_on_the_tables_that_they_read(client: TestClient) -> None:
    def depends(path: str) -> set[str]:
        found = re.search(r'data-depends="([^"]*)" data-versions="([^"]*)"', client.get(path).text)
        assert found is not None
        assert [part.split("=")[0] for part in found[2].split(".")] == found[1].split()
        # Each page says what is known of the present.
        assert "liveness" in found[1].split()
        return set(found[1].split()) - {"liveness"}

    assert depends("/job") == set(TABLES)
    assert depends("/group?cluster=c1&group=orders") == set(TABLES) - {"rejected_events"}
    assert depends("/member?member=b") == {"members", "assignments", "annotations", "findings"}
    assert depends("/questions/open-findings") == {"findings"}
    assert depends("/") == {"groups", "findings", "rebalances", "topics"}


def test_the_page_of_a_group_shows_the_lag_of_its_last_commit(tmp_path: Path, settings: Dashboard) -> None:
    group = {"cluster": "c", "group_id": "g"}
    queue = group | {"topic": "t", "queue_id": 0}
    offsets = {"committed_offset": 3, "committed_at": T0, "end_at": T0}
    write_rows(tmp_path, "groups", [group | {"system": "kafka", "state": "stable", "last_rebalance_at": T0}])
    write_rows(tmp_path, "queue_progress", [queue | offsets | {"event_time": T0, "end_offset": 10, "lag": 7}])
    app = create_app(tmp_path, settings)
    with TestClient(app) as client:

        def lag() -> str:
            text = client.get("/group", params={"cluster": "c", "group": "g"}).text
            return re.findall(r'<td class="k-lag">([\d,]*)', text)[0]

        assert lag() == "7"
        later = offsets | {"event_time": T0 + 1, "end_offset": 2_003, "lag": 2_000}
        write_rows(tmp_path, "queue_progress", [queue | later])
        app.state.reading.tables.refresh()
        assert lag() == "2,000"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, settings: Dashboard) -> Iterator[TestClient]:
    root = tmp_path_factory.mktemp("many")
    write_many(root)
    with TestClient(create_app(root, settings)) as client:
        yield client


def chart(client: TestClient, path: str, kind: str) -> tuple[str, list[dict[str, str]], list[dict[str, object]]]:
    """Return the text of a chart's figure, the rows of its CSV, and those that it draws."""
    found = re.search(rf'<figure class="chart {kind}">.*?</figure>', client.get(path).text, re.DOTALL)
    assert found is not None
    download, source = (
        html.unescape(match[1])
        for name in ('href="([^"]*format=csv)"', 'data-source="([^"]*)"')
        if (match := re.search(name, found[0]))
    )
    drawn = client.get(source).json()["rows"]
    return found[0], list(csv.DictReader(io.StringIO(client.get(download).text))), drawn


def rows_in(figure: str) -> int:
    return figure.count("<tr>") - 1


def test_the_heat_map_shows_the_busiest_groups_and_of_how_many(many: TestClient) -> None:
    figure, downloaded, drawn = chart(many, "/", "heat")
    busiest = [name_of(number) for number in range(BUSIEST)]
    assert sorted({row["group_id"] for row in drawn}) == busiest
    assert sorted({row["group_id"] for row in downloaded}) == busiest
    assert re.findall(r'k-group">.*?<bdi class="id">(g\d+)', figure) == [row["group_id"] for row in drawn]
    assert f"the {BUSIEST} with the most, of {GROUPS} groups that rebalanced" in figure


def test_the_chart_of_minutes_names_its_table_a_part(many: TestClient) -> None:
    figure, downloaded, drawn = chart(many, GROUP, "lines")
    assert (len(downloaded), len(drawn), rows_in(figure)) == (MINUTES, MINUTES, group_page.ROWS)
    assert f"({group_page.ROWS} of {MINUTES} minutes, the newest)" in figure
    assert f"All {MINUTES} minutes as CSV" in figure
    assert "only the newest" not in figure


def test_a_chart_of_minutes_that_is_cut_is_marked(many: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_page, "MINUTE_ROWS", 300)
    figure, downloaded, drawn = chart(many, GROUP + "&", "lines")
    assert (len(downloaded), len(drawn)) == (300, 300)
    assert f"only the newest 300 of {MINUTES} minutes" in figure


def test_churn_of_one_group_and_delays_are_their_tables(many: TestClient) -> None:
    for path, kind in ((GROUP, "heat"), ("/job", "delay")):
        figure, downloaded, drawn = chart(many, path, kind)
        assert 0 < len(drawn) == len(downloaded) == rows_in(figure)


def test_groups_that_are_not_followed_are_listed_with_protocol_and_the_coordinators_state(
    tmp_path: Path, settings: Dashboard
) -> None:
    group = {"cluster": "c", "system": "kafka", "state": "not_followed"}
    recorded = {"protocol": "share", "members": 2, "generation": 3, "epoch": 3, "assignment_epoch": 3}
    write_rows(tmp_path, "groups", [group | {"group_id": "polled"}, group | {"group_id": "recorded"} | recorded])
    with TestClient(create_app(tmp_path, settings)) as client:
        page = client.get("/").text
    cells = [re.findall(r'<td class="k-(\w+)[^>]*>(.*?)</td>', row) for row in page.split("<tr>") if "k-group" in row]
    kinds = ("group", "why", "count")
    shown = [[re.sub("<.*?>", "", text) for kind, text in row if kind in kinds] for row in cells]
    assert [row[:3] for row in shown if row] == [
        ["polled", "not_followed", "–"],
        ["recorded", "stable (not_followed)", "2"],
    ]
