"""The address that takes annotations: off by default, with a token of its own, and nothing else to write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.api.annotation_hook import AnnotationHook
from dashboard.app import create_app
from dashboard.security.frame import MAX_ANNOTATION_BYTES
from streaming.collectors.annotation_log import taker
from streaming.settings.model import load
from tests.streaming.collectors.test_annotation_log import written
from udfs.model.rejection import Rejection

TOKEN, READING = "of annotations only", "of reading the pages"
BEARER = {"authorization": f"Bearer {TOKEN}"}
DEPLOY = {"kind": "deploy", "text": "orders 2.4.1", "id": "r42", "groups": ["orders*"]}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def hooked(story_tables: Path, events: Path) -> Iterator[TestClient]:
    """The application with the address, and a token for reading."""
    given = {"dashboard.allowed_hosts": ["testserver"], "dashboard.token": READING, "events.folder": events}
    settings = load(overrides=given)
    hook = AnnotationHook(TOKEN, taker(settings))
    with TestClient(create_app(story_tables, settings.dashboard, hook=hook), follow_redirects=False) as client:
        yield client


def test_an_annotation_is_written_for_the_job(hooked: TestClient, events: Path) -> None:
    answer = hooked.post("/annotations", json=DEPLOY, headers=BEARER)
    assert (answer.status_code, answer.json()) == (202, {"id": "r42"})
    assert "content-security-policy" in answer.headers
    again = hooked.post("/annotations", content=json.dumps({**DEPLOY, "to": 1_795_245_120_000}), headers=BEARER)
    assert again.status_code == 202
    assert [(event["id"], event.get("to")) for event in written(events)] == [("r42", None), ("r42", 1_795_245_120_000)]


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": f"Bearer {READING}"}, {"authorization": f"Basic {TOKEN}"}, {"accept": "text/html"}],
)
def test_only_its_own_token_writes(hooked: TestClient, events: Path, headers: dict[str, str]) -> None:
    before = len(written(events))
    answer = hooked.post("/annotations", json=DEPLOY, headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert len(written(events)) == before


@pytest.mark.parametrize("path", ["/", "/api/v1/groups", "/metrics"])
def test_its_token_reads_nothing(hooked: TestClient, path: str) -> None:
    assert hooked.get(path, headers=BEARER).status_code == 401


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "empty_body"),
        ("no JSON", "not_json"),
        ('{"kind": "deploy"}', "missing_text"),
        ('{"kind": "deploy", "text": "v2", "url": "javascript:alert(1)"}', "malformed_url"),
        ('{"kind": "\\u001b[2J", "text": "v2"}', "control_character_in_kind"),
    ],
)
def test_what_is_no_annotation_is_refused_with_its_reason(hooked: TestClient, body: str, reason: str) -> None:
    answer = hooked.post("/annotations", content=body, headers=BEARER)
    assert (answer.status_code, answer.json()["reason"], answer.json()["error"]) == (400, reason, True)
    assert answer.text.isprintable()


def test_a_long_body_is_refused_before_it_is_read(hooked: TestClient) -> None:
    text = {**DEPLOY, "text": "x" * MAX_ANNOTATION_BYTES}
    assert hooked.post("/annotations", json=text, headers=BEARER).status_code == 413


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_there_is_nothing_to_read_at_it(hooked: TestClient, method: str) -> None:
    headers = {"authorization": f"Bearer {READING}"}
    assert hooked.request(method, "/annotations", headers=headers).status_code in (404, 405)


def test_it_is_off_unless_it_has_a_token(client: TestClient) -> None:
    assert client.post("/annotations", json=DEPLOY, headers=BEARER).status_code == 405


def test_a_log_that_cannot_be_written_is_no_reason_to_forget(story_tables: Path) -> None:
    def fails(_body: bytes) -> str | Rejection:
        raise OSError("the disk is full")

    settings = load(overrides={"dashboard.allowed_hosts": ["testserver"]}).dashboard
    with TestClient(create_app(story_tables, settings, hook=AnnotationHook(TOKEN, fails))) as client:
        answer = client.post("/annotations", json=DEPLOY, headers=BEARER)
    assert answer.status_code == 503
    assert "disk" not in answer.text
