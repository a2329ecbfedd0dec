"""Audits as rows and as sentences, of a story whose results are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.schema import Row
from streaming.views.audit_texts import QUEUES_SHOWN, reason_text, story, strategy_text
from tests.streaming.views.story import FIRST, SECOND, json_of, run, seconds, write_audited_story


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = tmp_path_factory.mktemp("audited")
    write_audited_story(tables)
    return tables


def test_audits_come_newest_first_and_by_their_filters(root: Path) -> None:
    def found(*options: str) -> list[object]:
        return [row["rebalance_id"] for row in json_of(root, "show", "audits", *options)]

    assert found() == [SECOND, FIRST]
    assert found("-n", "1") == [SECOND]
    assert found("--verdict", "agrees") == [FIRST]
    assert found("--since", seconds(0.001)) == [SECOND]
    assert found("--until", seconds(10)) == [FIRST]


def test_show_audits_has_verdicts_reasons_and_numbers(root: Path) -> None:
    second, first = json_of(root, "show", "audits")
    assert (second["verdict"], second["reason"], second["missing"]) == ("differs", "stale_metadata", 2)
    assert second["differing"][0]["expected"] == ["a"]
    assert first["event_time"] == "2026-01-01T00:00:00.000Z"
    assert "stale_metadata" in run(root, "show", "audits", "--verdict", "differs").stdout
    assert run(root, "show", "audits", "--verdict", "odd").exit_code == 2
    assert run(root, "show", "audits", "-g", "nobody").exit_code == 2


def test_a_group_shows_the_verdict_on_its_strategy(root: Path) -> None:
    text = run(root, "show", "group", "orders").stdout
    assert (
        "Strategy: contradicted by 3 generations since 2026-01-01T00:00:00.000Z:"
        " another client library, or another version of it, assigned." in text
    )
    (group,) = json_of(root, "show", "group", "orders")
    assert [row["rebalance_id"] for row in group["last_audits"]] == [SECOND, FIRST]
    assert group["strategy_verdict"] == "contradicted"


def test_explain_names_the_differing_queues_and_the_reason(root: Path) -> None:
    text = run(root, "explain", SECOND).stdout
    assert "Audit: 2 queues of 4 differ: 2 missing, 0 duplicate, 0 with an unexpected owner." in text
    assert "Likely reason: stale_metadata (the leader, or a member, knew another number of queues)." in text
    assert "Evidence: It is so with fewer queues." in text
    assert "orders-1: missing: expected a, reported nobody" in text
    (found,) = json_of(root, "explain", FIRST)
    assert found["audit"]["verdict"] == "agrees"
    assert "Audit: the reported assignment is the recomputed one" in run(root, "explain", FIRST).stdout


def test_generations_that_cannot_be_recomputed_have_no_expected_owners() -> None:
    queue = {"topic": "t", "broker": "b", "queue_id": 1, "kind": "duplicate", "expected": [], "reported": ["x", "y"]}
    row: Row = {
        "verdict": "not_recomputable", "reason": "custom_strategy", "detail": None, "queues": 30,
        "queues_differing": 30, "missing": 0, "duplicate": 30, "unexpected_owner": 0, "differing": [queue] * 25,
    }  # fmt: skip
    lines = story(row)
    assert lines[0].startswith("Audit: not recomputable: custom_strategy (")
    assert lines[1] == "  t@b-1: duplicate: reported x + y"
    assert lines[-1] == f"  … and {30 - QUEUES_SHOWN} more queues"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"strategy_verdict": None}, "without a verdict yet"),
        (
            {
                "strategy_verdict": "not_recomputable",
                "verdict_generations": 1,
                "verdict_from": 0,
                "verdict_reason": "new_one",
            },
            "not recomputable: new_one",
        ),
    ],
)
def test_strategy_verdicts_as_text(row: Row, text: str) -> None:
    assert strategy_text(row) == text


def test_a_reason_of_a_newer_release_is_shown_as_it_is() -> None:
    assert (reason_text("new_one"), reason_text(None)) == ("new_one", None)
    assert reason_text("another_strategy") == "another strategy assigned"
