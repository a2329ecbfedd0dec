"""`check` says which Kubernetes clusters' pods are not known, and stays what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streaming.machine.clock import now_ms
from streaming.views.platforms import followed_rows, platform_states, unknown_texts
from streaming.views.reader import Reader
from streaming.views.unwritten_findings import platform_findings
from tests.streaming.tables.journals import T0
from tests.streaming.views.annotated_story import annotate, annotation
from tests.streaming.views.story import run, write_story

KNOWN = "the pods of kubernetes cluster k are known"
REFUSED = "not followed: pods (the credentials are not accepted (401); a token may have expired)"
NO_EVENTS = "not followed: events (the right to list events is missing (403))"


@pytest.mark.parametrize(
    ("text", "known_until", "written", "said"),
    [
        (KNOWN, 0, 0, []),
        (f"{KNOWN}; {NO_EVENTS}", 0, 0, [f"kubernetes cluster k is partly known: {NO_EVENTS}"]),
        (KNOWN, -89_000, -89_000, []),
        (
            KNOWN,
            -120_000,
            -120_000,
            [
                "the pods of kubernetes cluster k are not known since 2025-12-31T23:58:00.000Z:"
                " its collector has written nothing since"
            ],
        ),
        (
            f"{KNOWN}; {REFUSED}",
            -120_000,
            0,
            [f"the pods of kubernetes cluster k are not known since 2025-12-31T23:58:00.000Z: {REFUSED}"],
        ),
        (f"{KNOWN}; {REFUSED}", None, 0, [f"the pods of kubernetes cluster k never were known: {REFUSED}"]),
        (KNOWN, -8 * 86_400_000, -8 * 86_400_000, []),
    ],
)
def test_what_is_not_known_of_pods(
    text: str, known_until: int | None, written: int, said: list[str], tmp_path: Path
) -> None:
    write_story(tmp_path)
    row = annotation("p", -9 * 86_400_000, known_until, kind="pods_followed", text=text, platform="k")
    annotate(tmp_path, row | {"written_at": T0 + written})
    states = platform_states(followed_rows(Reader(tmp_path)), T0)
    assert unknown_texts(states) == said
    findings = platform_findings(states)
    assert [row["message"].lower() for row in findings] == [f"{text}.".lower() for text in said if "partly" not in text]
    since = T0 - 9 * 86_400_000 if known_until is None else T0 + known_until
    assert {row["opened_at"] for row in findings} <= {since}
    # It stays the same finding while it is open, in every process.
    later = platform_findings(platform_states(followed_rows(Reader(tmp_path)), T0 + 3_600_000))
    assert {row["finding_id"] for row in findings} <= {row["finding_id"] for row in later}


def test_check_names_it_and_its_state_does_not_change(tmp_path: Path) -> None:
    write_story(tmp_path)
    before = run(tmp_path, "check")
    at = now_ms() - T0
    row = annotation("p", at - 9_000_000, at - 300_000, kind="pods_followed", text=KNOWN, platform="k")
    annotate(tmp_path, row | {"written_at": T0 + at - 300_000})
    after = run(tmp_path, "check")
    assert after.exit_code == before.exit_code
    assert "the pods of kubernetes cluster k are not known since" in after.stdout
    assert json.loads(run(tmp_path, "check", "--json").stdout)["platforms"]
