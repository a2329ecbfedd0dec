"""Pages show what the tables hold: each page in Chromium, over a day of simulated fleets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

import duckdb
import pytest
from deltalake import DeltaTable
from playwright.sync_api import BrowserContext, Page, expect

from dashboard.pages.overview_page import headline_text
from dashboard.questions.answer import without_zones
from dashboard.questions.catalog import questions
from dashboard.reading.churn import BUSIEST
from dashboard.reading.problems import problems
from dashboard.reading.questions import Reading
from dashboard.reading.window import HOUR_MS
from dashboard.server import DashboardServer
from streaming.settings.locations import location_of
from streaming.tables.schema import TABLES, Row
from streaming.terminal.format import queue_name, time_text
from streaming.views.explain import explain
from streaming.views.group_health import SEVERITIES
from streaming.views.reader import Reader
from tests.dashboard.chart_tables import name_of, write_many
from tests.streaming.views.story import THIRD


@pytest.fixture
def page(kept_page: Page) -> Page:
    """Let all tests of this file read one and the same page."""
    return kept_page


@pytest.fixture(scope="module")
def reader(day: Path) -> Reader:
    return Reader(location_of(str(day)))


def owners(reader: Reader, **where: str) -> list[Row]:
    """Return the open spans that have these values."""
    return reader.rows("assignments", where=where, keep=lambda rows: rows["valid_to"].is_null())


def newest(reader: Reader, **where: str) -> list[Row]:
    """Return the rebalances that have these values, newest first."""
    rows = reader.rows("rebalances", where=where)
    return sorted(rows, key=lambda row: (-row["event_time"], row["rebalance_id"]))


def open_findings(reader: Reader) -> list[Row]:
    """Return the open findings, the most severe first, then the newest."""
    rows = reader.rows("findings", keep=lambda found: found["closed_at"].is_null())
    return sorted(rows, key=lambda row: (SEVERITIES.index(row["severity"]), -row["opened_at"], row["finding_id"]))


def busiest(reader: Reader) -> Row:
    """Return the group with the most open spans."""
    (key, _), *_ = Counter((span["cluster"], span["group_id"]) for span in owners(reader)).most_common(1)
    return next(row for row in reader.rows("groups") if (row["cluster"], row["group_id"]) == key)


def cells(page: Page, table: str, column: int) -> list[str]:
    """Return the texts of a column; of ids that are cut, the whole."""
    found = page.locator(f'[role=region][aria-label="{table}"] tbody td:nth-child({column})')
    whole = "all => all.map(one => one.querySelector('.id[title], .word[title]')?.title ?? one.textContent.trim())"
    texts: list[str] = found.evaluate_all(whole)
    return texts


def group_url(day_url: str, row: Row) -> str:
    return f"{day_url}/group?{urlencode({'cluster': row['cluster'], 'group': row['group_id']})}"


def test_the_first_page_lists_every_group_with_its_figures(page: Page, day_url: str, reader: Reader) -> None:
    page.goto(f"{day_url}/?sort=cluster")
    expected = sorted(reader.rows("groups"), key=lambda row: (row["cluster"], row["group_id"]))
    shown = zip(cells(page, "Groups", 3), cells(page, "Groups", 2), cells(page, "Groups", 8), strict=True)
    assert sorted(shown) == sorted((row["cluster"], row["group_id"], f"{row['members']:,}") for row in expected[:100])
    expect(page.locator(".pager span").first).to_have_text(f"1–{min(100, len(expected))} of {len(expected)}")
    shown_findings = [text for text in cells(page, "Groups", 5) if text != "0"]
    assert sum(map(int, shown_findings)) == sum(row["group_id"] is not None for row in open_findings(reader))


def test_the_first_page_begins_with_what_is_wrong(page: Page, day_url: str, reader: Reader) -> None:
    page.goto(day_url)
    wrong = problems(Reading.once(location_of(str(reader.root))), None, 8)
    assert wrong.worst
    expect(page.locator("h1")).to_contain_text(headline_text(wrong.counts, wrong.roots))
    expect(page.locator(".problem")).to_have_count(len(wrong.worst))
    for shown, problem in zip(page.locator(".problem").all(), wrong.worst, strict=True):
        expect(shown).to_contain_text(problem.finding["message"][:60])
        assert problem.rebalance is not None
        expect(shown.get_by_role("link", name=re.compile("rebalance"))).to_have_attribute(
            "href", f"/rebalance?id={problem.rebalance['rebalance_id']}"
        )


def test_a_group_shows_its_queues_and_their_owners(page: Page, day_url: str, reader: Reader) -> None:
    row = busiest(reader)
    page.goto(group_url(day_url, row))
    spans = owners(reader, cluster=row["cluster"], group_id=row["group_id"], origin="computed")
    expected = {(queue_name(span["topic"], span["broker"], span["queue_id"]), span["member_id"]) for span in spans}
    table = "Queues and their owners"
    shown = set(zip(cells(page, table, 1), cells(page, table, 2), strict=True))
    assert shown == set(sorted(expected)[:200])
    last = newest(reader, cluster=row["cluster"], group_id=row["group_id"])[:25]
    # Those of an episode stand together.
    assert sorted(cells(page, "Rebalances", 5)) == sorted(f"{rebalance['queues_moved']:,}" for rebalance in last)


def test_the_timeline_draws_every_span_and_mark(page: Page, day_url: str, reader: Reader) -> None:
    row = busiest(reader)
    page.goto(group_url(day_url, row))
    expect(page.locator("[data-lanes]")).to_have_attribute("data-drawn", re.compile("[0-9]"))
    data = page.evaluate(
        "(({spans, marks, queues}) => [spans.length, marks.length, queues.length])"
        "(document.querySelector('[data-lanes]').lanes.data)"
    )
    expect(page.locator("figure.lanes summary")).to_contain_text(f"of {data[0]:,} spans")
    # Every lane has the colour of its owner somewhere: the picture is not empty.
    colours = page.evaluate(
        "(() => { const c = document.querySelector('[data-lanes] canvas');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const s = new Set();"
        " for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })()"
    )
    assert colours > 10
    assert data[1] > 0


def test_charts_draw_the_rows_that_their_tables_list(page: Page, day_url: str, reader: Reader) -> None:
    page.goto(day_url)
    chart = page.locator("[data-chart='heat']")
    expect(chart).to_have_attribute("data-drawn", str(len(cells(page, "Rebalances of the busiest groups", 1))))
    page.goto(group_url(day_url, busiest(reader)))
    for kind in ("lines", "heat"):
        expect(page.locator(f"[data-chart='{kind}'] canvas").first).to_be_visible()


def test_charts_of_many_groups_and_minutes_draw_what_their_downloads_have(
    page: Page, tmp_path: Path, serve: Callable[..., DashboardServer]
) -> None:
    write_many(tmp_path)
    url = serve(tmp_path).url.rstrip("/")
    for path in ("/", f"/group?cluster=c&group={name_of(0)}", "/job"):
        page.goto(url + path)
        for figure in page.locator("figure:has([data-chart])").all():
            with page.expect_download() as downloading:
                figure.locator(".downloads").get_by_role("link", name="CSV").click()
            lines = Path(downloading.value.path()).read_text(encoding="utf-8").splitlines()
            expect(figure.locator("[data-chart]")).to_have_attribute("data-drawn", str(len(lines) - 1))
    # The rows of the heat map are as high as the names beside them.
    page.goto(url)
    heat = page.locator("[data-chart='heat'][data-drawn]")
    heat.wait_for()
    assert heat.evaluate("one => one.clientHeight") >= 18 * BUSIEST


def test_a_rebalance_is_explained_with_its_evidence(page: Page, day_url: str, reader: Reader) -> None:
    moving = max(newest(reader)[:200], key=lambda rebalance: (rebalance["queues_moved"], rebalance["rebalance_id"]))
    found = explain(reader, moving["rebalance_id"])
    page.goto(f"{day_url}/rebalance?id={moving['rebalance_id']}")
    assert cells(page, "Causes", 1) == [cause["kind"] for cause in found["causes"]]
    assert cells(page, "Causes", 8) == [cause["event_id"] or "–" for cause in found["causes"]]
    moved = {queue_name(move["topic"], move["broker"], move["queue_id"]) for move in found["moves"]["computed"]}
    assert set(cells(page, "Queues that moved, computed", 1)) == moved


def test_rebalances_findings_members_and_rejected_events_are_the_tables(
    page: Page, day_url: str, reader: Reader
) -> None:
    page.goto(f"{day_url}/rebalances?since=0")
    expected = newest(reader)[:100]
    links = page.locator("tbody td.k-rebalance a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert {link.split("id=")[1] for link in links} == {row["rebalance_id"] for row in expected}
    page.goto(f"{day_url}/findings")
    assert Counter(cells(page, "Findings", 2)) == Counter(row["kind"] for row in open_findings(reader)[:100])
    page.goto(f"{day_url}/members?open=yes")
    sessions = reader.rows("members", keep=lambda rows: rows["left_at"].is_null())
    expect(page.locator(".pager span").first).to_contain_text(f"of {len(sessions):,}")
    page.goto(f"{day_url}/rejected-events")
    rejected = reader.rows("rejected_events")
    expect(page.locator(".pager span").first).to_contain_text(f"of {len(rejected):,}")


def test_a_member_shows_its_queues_in_all_groups(page: Page, day_url: str, reader: Reader) -> None:
    (name, _), *_ = Counter(span["member_id"] for span in owners(reader)).most_common(1)
    page.goto(f"{day_url}/member?{urlencode({'member': name})}")
    held = owners(reader, member_id=name)
    shown = cells(page, "Queues that the member holds", 1)
    assert sorted(shown) == sorted(queue_name(span["topic"], span["broker"], span["queue_id"]) for span in held)


def test_a_member_shows_its_sessions_in_all_groups(page: Page, day_url: str, reader: Reader) -> None:
    (name, _), *_ = Counter(row["member_id"] for row in reader.rows("members")).most_common(1)
    page.goto(f"{day_url}/member?{urlencode({'member': name})}")
    sessions = [row for row in reader.rows("members") if row["member_id"] == name]
    assert len(sessions) > 1
    table = "Sessions of the member"
    shown = zip(cells(page, table, 2), cells(page, table, 3), cells(page, table, 8), cells(page, table, 9), strict=True)
    expected = [
        (session["group_id"], session["cluster"], text_of(session["left_at"]), session["left_reason"] or "–")
        for session in sessions
    ]
    assert sorted(shown) == sorted(expected)
    joined = cells(page, table, 7)
    assert joined == sorted((text_of(session["joined_at"]) for session in sessions), reverse=True)


def text_of(epoch_ms: int | None) -> str:
    """Return a time as the pages write it."""
    return "–" if epoch_ms is None else time_text(epoch_ms)[:19].replace("T", " ")


def test_the_page_of_the_job_shows_tables_and_commits(page: Page, day_url: str, day: Path) -> None:
    page.goto(f"{day_url}/job")
    tables = {folder.name: DeltaTable(folder) for folder in day.iterdir() if folder.name in TABLES}
    shown = zip(cells(page, "Tables", 1), cells(page, "Tables", 3), cells(page, "Tables", 4), strict=True)
    assert {row for row in shown if row[0] in tables} == {
        (name, str(table.version()), str(len(table.file_uris()))) for name, table in tables.items()
    }
    assert set(cells(page, "Tables", 1)) == set(TABLES)
    commits = page.locator('[aria-label="Last commits to the tables"] tbody')
    for name in tables:
        expect(commits).to_contain_text(name)


def test_the_page_of_the_job_shows_the_delays_of_each_hour(
    page: Page, tmp_path: Path, serve: Callable[..., DashboardServer]
) -> None:
    write_many(tmp_path)
    page.goto(serve(tmp_path).url + "job")
    written = Reader(location_of(str(tmp_path))).rows("rebalances")
    hours = Counter(text_of(row["event_time"] // HOUR_MS * HOUR_MS) for row in written)
    table = "Delay by hour and cluster"
    shown = list(zip(*(cells(page, table, column) for column in range(1, 7)), strict=True))
    # Each was decided two seconds after its event.
    assert shown == [(hour, "c", f"{count:,}", *["2.0 s"] * 3) for hour, count in sorted(hours.items())]


def test_reported_owners_are_shown_beside_the_recomputed_ones(
    page: Page, story_tables: Path, serve: Callable[..., DashboardServer]
) -> None:
    url, tables = serve(story_tables).url.rstrip("/"), Reader(location_of(str(story_tables)))
    page.goto(f"{url}/group?cluster=c1&group=orders")
    holders: dict[str, dict[str, str]] = {}
    for span in owners(tables, cluster="c1", group_id="orders"):
        queue = queue_name(span["topic"], span["broker"], span["queue_id"])
        holders.setdefault(queue, {})[span["origin"]] = span["member_id"]
    table = "Queues and their owners"
    shown = list(zip(*(cells(page, table, column) for column in (1, 2, 3)), strict=True))
    assert shown == [
        (queue, held.get("computed", "–"), held.get("reported", "–")) for queue, held in sorted(holders.items())
    ]
    assert cells(page, table, 4) == ["no", "yes"]
    page.goto(f"{url}/rebalance?id={THIRD}")
    sides = "Queues of each member before and after, recomputed and reported"
    assert list(zip(*(cells(page, sides, column) for column in (1, 2, 3, 4)), strict=True)) == [
        ("a", "orders(0)", "-", "-"),
        ("b", "orders(1)", "orders(0,1)", "orders(1)"),
    ]


@pytest.mark.parametrize("name", ["most-rebalances", "open-findings", "main-causes", "uneven-groups"])
def test_a_question_shows_the_answer_of_its_sql(page: Page, day_url: str, day: Path, name: str) -> None:
    chosen = questions()[name]
    # The text that the page gives for DuckDB, over the files themselves.
    page.goto(f"{day_url}/questions/{name}")
    text = page.locator("details", has_text="SQL for DuckDB").locator("pre").text_content()
    assert text is not None
    with duckdb.connect() as connection:
        for table in chosen.tables:
            found = DeltaTable(day / table).to_pyarrow_table()
            connection.register(table, without_zones(found))
        expected = connection.execute(text).fetchall()
    assert expected
    columns = page.locator(".scroll th").count()
    shown = list(zip(*(cells(page, chosen.title, column + 1) for column in range(columns)), strict=True))
    assert shown == [tuple(map(cell_text, row)) for row in expected]


def cell_text(value: object) -> str:
    """Return a value as a cell of an answer writes it."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def test_filters_and_order_survive_a_reload_and_a_shared_link(
    page: Page, open_context: Callable[..., BrowserContext], day_url: str
) -> None:
    page.goto(day_url)
    # A choice by pointer takes effect at once.
    page.get_by_label("System").click()
    page.get_by_label("System").select_option("kafka")
    page.wait_for_url("**system=kafka*")
    page.get_by_role("link", name="Members", exact=True).nth(-1).click()
    page.wait_for_url("**sort=-members*")
    shown = cells(page, "Groups", 2)
    assert shown
    page.reload()
    assert cells(page, "Groups", 2) == shown
    other = open_context().new_page()
    other.goto(page.url)
    assert cells(other, "Groups", 2) == shown
    members = [int(text) for text in cells(page, "Groups", 8)]
    assert members == sorted(members, reverse=True)


def test_times_are_shown_in_utc_and_in_local_time(page: Page, day_url: str) -> None:
    page.goto(f"{day_url}/rebalances?since=0")
    time = page.locator("tbody time").first
    utc, stamp = time.text_content(), time.get_attribute("datetime")
    assert stamp is not None
    assert utc == stamp[:19].replace("T", " ")
    page.get_by_role("button", name="Times in UTC").click()
    hours = (int(stamp[11:13]) + 9) % 24
    expect(time).to_contain_text(f" {hours:02}:")
    page.reload()
    expect(page.locator("tbody time").first).to_contain_text(f" {hours:02}:")


def test_displayed_data_can_be_downloaded(page: Page, day_url: str) -> None:
    page.goto(f"{day_url}/?q=group-1")
    shown = cells(page, "Groups", 2)
    with page.expect_download() as downloading:
        page.locator(".pager").get_by_role("link", name="CSV").click()
    lines = Path(downloading.value.path()).read_text(encoding="utf-8").splitlines()
    # The order of the first page, by what is worst in its range, is its own.
    assert sorted(line.split(",")[2] for line in lines[1:]) == sorted(shown)


def test_a_phone_shows_the_cluster_below_the_name_of_a_group(
    open_context: Callable[..., BrowserContext], day_url: str
) -> None:
    shown = {}
    for width in (390, 1360):
        page = open_context(viewport={"width": width, "height": 844}).new_page()
        page.goto(f"{day_url}/?sort=cluster")
        cluster = page.locator('[aria-label="Groups"] td.k-group .narrow').first
        shown[width] = cluster.evaluate(
            "one => [getComputedStyle(one).display, getComputedStyle(one, '::after').content]"
        )
    assert shown[390] == ["block", '"kafka-main"']
    assert shown[1360][0] == "none"
