"""Pages of the ready questions."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.pages import question_pages
from dashboard.questions.catalog import questions
from streaming.settings.model import Dashboard
from tests.dashboard.hostile import HOSTILE

OWNER = "/questions/who-owned?topic=orders&queue=1&at=2026-01-01T00:00:05Z"


def test_the_list_has_every_question(client: TestClient) -> None:
    text = client.get("/questions").text
    assert set(re.findall(r'href="/questions/([\w-]+)"', text)) == set(questions())
    assert 'href="/questions"' in client.get("/").text


@pytest.mark.parametrize("name", questions())
def test_each_question_has_its_page_with_fields_and_sql(client: TestClient, name: str) -> None:
    needed = "?topic=orders&queue=1" if "topic" in questions()[name].parameters else ""
    answer = client.get(f"/questions/{name}{needed}")
    assert answer.status_code == 200
    assert html.escape(questions()[name].title, quote=False) in answer.text
    assert re.findall(r'<input type="(?:text|number)" name="(\w+)"', answer.text) == list(questions()[name].parameters)
    assert [dialect for dialect in ("DuckDB", "Spark", "Trino") if f"SQL for {dialect}" not in answer.text] == []


def test_the_answer_is_a_table_with_links(client: TestClient) -> None:
    text = client.get("/questions/most-rebalances").text
    assert 'href="/group?cluster=c1&amp;group=orders"' in text
    assert 'href="/api/v1/questions/most-rebalances' in text
    owner = client.get(OWNER).text
    assert ">a<" in re.sub(r"\s", "", owner)
    assert 'value="2026-01-01T00:00:05Z"' in owner


def test_a_question_without_a_required_parameter_names_it(client: TestClient) -> None:
    answer = client.get("/questions/who-owned")
    assert (answer.status_code, "Give the topic and the queue." in answer.text) == (200, True)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/questions/nonsense", 404),
        ("/questions/..%2f..%2fetc%2fpasswd", 404),
        ("/questions/most-rebalances?topic=t", 400),
        ("/questions/most-rebalances?since=noon", 400),
        ("/questions/most-rebalances?limit=0", 400),
        ("/questions/most-rebalances?limit=99999999999", 400),
    ],
)
def test_a_request_that_cannot_be_answered_gets_an_error_page(client: TestClient, path: str, status: int) -> None:
    assert client.get(path).status_code == status


def test_hostile_parameters_stay_text(client: TestClient) -> None:
    for name in HOSTILE[:60]:
        answer = client.get("/questions/most-rebalances", params={"cluster": name})
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert "No rows." in answer.text


def test_a_page_shows_a_page_of_rows_of_an_answer_that_is_bounded(story_tables: Path, settings: Dashboard) -> None:
    few = settings.model_copy(update={"max_rows": 2})
    with TestClient(create_app(story_tables, few)) as client:
        text = client.get("/questions/causes-of-a-group?limit=1000000").text
        assert text.count("<tr>") == 3  # its head and two rows
        assert re.search(r"<span>2 of \d+ rows</span>", text)
        found = client.get("/api/v1/questions/causes-of-a-group?limit=1000000").json()
        assert len(found["rows"]) == 2 < found["total"]


def test_more_rows_than_a_page_shows_are_in_the_download(
    story_tables: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_pages, "PAGE_ROWS", 1)
    with TestClient(create_app(story_tables, settings)) as client:
        text = client.get("/questions/causes-of-a-group?limit=1000").text
        total = client.get("/api/v1/questions/causes-of-a-group").json()["total"]
        assert f"<span>1 of {total} rows</span>" in text
        link = html.unescape(re.findall(r'href="(/api/v1/questions/[^"]*format=csv)"', text)[0])
        assert len(client.get(link).text.splitlines()) == 1 + total
