"""Which annotations are related to a rebalance or a finding, in which order, and how they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streaming.tables.schema import Row
from streaming.views.explain import explain, story
from streaming.views.reader import Reader
from streaming.views.related_annotations import AnnotationSpans, Happening, lines, of_findings, related
from tests.dashboard.hostile import HOSTILE
from tests.streaming.tables.journals import T0
from tests.streaming.views.annotated_story import MINUTE, annotate, annotation
from tests.streaming.views.story import THIRD, json_of, run, write_story

AT = 10 * MINUTE
MEMBERS = [
    {"member_id": "m1", "client_id": "orders-1", "host": "/10.0.0.7", "address": "10.0.0.7"},
    {"member_id": "10.0.0.8@4711", "client_id": None, "host": "10.0.0.8:51022", "address": "10.0.0.8"},
    {"member_id": "m3", "client_id": "audit-1", "host": "node-3", "address": "node-3"},
]
REBALANCE = Happening("main", "orders", MEMBERS, T0 + AT, T0 + AT + 5_000)


def names(*rows: Row, happening: Happening = REBALANCE) -> list[str]:
    return [row["annotation_id"] for row in related(rows, happening)]


@pytest.mark.parametrize(
    ("began", "ended", "is_near"),
    [
        (AT, AT, True),
        (0, AT - 2 * MINUTE, True),  # it ended as long before as the lead is
        (0, AT - 2 * MINUTE - 1, False),
        (AT + 5_000, AT + 5_000, True),  # it began as the rebalance was completed
        (AT + 5_001, None, False),
        (AT - 60 * MINUTE, AT + 60 * MINUTE, True),
        (AT - 62 * MINUTE, None, True),  # without an end it counts for an hour
        (AT - 62 * MINUTE - 1, None, False),
        (AT - 62 * MINUTE - 1, AT, True),
    ],
)
def test_an_annotation_is_near_if_it_overlaps_the_rebalance_or_its_lead(
    began: int, ended: int | None, is_near: bool
) -> None:
    assert names(annotation("a", began, ended)) == ["a"] * is_near


@pytest.mark.parametrize(
    ("named", "concerns"),
    [
        ({}, True),
        ({"cluster": "main"}, True),
        ({"cluster": "other"}, False),
        ({"groups": ["orders"]}, True),
        ({"groups": ["ord*"]}, True),
        ({"groups": ["billing", "o?d[de]rs"]}, True),
        ({"groups": ["ORDERS"]}, False),
        ({"groups": ["order"]}, False),
        ({"cluster": "other", "groups": ["orders"]}, False),
        ({"client_ids": ["orders-*"]}, True),
        ({"client_ids": ["10.0.0.8@*"]}, True),  # a system whose members have no other client id
        ({"client_ids": ["m1"]}, False),
        ({"hosts": ["10.0.0.7"]}, True),
        ({"hosts": ["10.0.0.8"]}, True),
        ({"hosts": ["10.0.0.8:51022"]}, True),
        ({"hosts": ["10.0.0.*"]}, True),
        ({"hosts": ["node-[0-9]"]}, True),
        ({"hosts": ["10.0.0.9"]}, False),
        ({"hosts": ["10.0.0.9", "node-3"]}, True),
        ({"client_ids": ["orders-*"], "hosts": ["10.0.0.7"]}, True),
        ({"client_ids": ["orders-*"], "hosts": ["node-3"]}, False),  # not the same member
        ({"groups": ["billing"], "hosts": ["10.0.0.7"]}, False),
        ({"groups": ["[z-a]", "[", "*["]}, False),
    ],
)
def test_everything_that_an_annotation_names_must_match(named: dict[str, Any], concerns: bool) -> None:
    assert names(annotation("a", AT - 1_000, AT, **named)) == ["a"] * concerns


def test_what_concerns_no_group_or_member_matches_only_clusters() -> None:
    silent = Happening("main", None, [], T0 + AT, T0 + AT)
    rows = [annotation(name, AT, AT, **more) for name, more in (("all", {}), ("g", {"groups": ["*"]}))]
    rows += [annotation("h", AT, AT, hosts=["*"]), annotation("c", AT, AT, cluster="main")]
    assert names(*rows, happening=silent) == ["all", "c"]


def test_the_closest_comes_first() -> None:
    rows = [
        annotation("ended a minute before", AT - 2 * MINUTE, AT - MINUTE),
        annotation("under way, begun long before", AT - 50 * MINUTE, AT + MINUTE),
        annotation("begun a second before, without an end", AT - 1_000),
        annotation("ended a second before", AT - 3 * MINUTE, AT - 1_000),
        annotation("begun during it", AT + 2_000),
        annotation("under way, begun just before", AT - 4_480, AT + MINUTE),
    ]
    expected = ["under way, begun just before", "under way, begun long before"]
    expected += ["begun a second before, without an end", "ended a second before", "begun during it"]
    assert names(*rows) == names(*reversed(rows)) == [*expected, "ended a minute before"]
    assert [row["when_text"] for row in related(rows, REBALANCE)] == [
        "began 4.5 s before, ended 1 min 0 s after it began",
        "began 50 min 0 s before, ended 1 min 0 s after it began",
        "began 1.0 s before, its end is not known",
        "began 3 min 0 s before, ended 1.0 s before",
        "began 2.0 s after it began",
        "began 2 min 0 s before, ended 1 min 0 s before",
    ]


def test_hostile_texts_stay_printable_and_within_80_columns() -> None:
    rows = [
        annotation(str(number), AT, AT, text=text or "x", kind=text[:50] or "x", groups=["orders", text or "x"])
        for number, text in enumerate(HOSTILE)
    ]
    found = related(rows, REBALANCE)
    assert len(found) == len(HOSTILE)
    for row in found:
        written = lines({"annotations": [row]})
        assert all(line.isprintable() and len(line) <= 80 for line in written), row["text"]
        assert len(written) < 20
    most = lines({"annotations": found})
    assert most[-1] == f"  … and {len(HOSTILE) - 8} more annotations; --json lists them all"


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    write_story(tmp_path)
    annotate(
        tmp_path,
        annotation("far", -10 * MINUTE, -9 * MINUTE),
        annotation("drain", 25_200, 65_000, kind="drain", hosts=["h1"], url="https://nodes.example/h1", cluster="c1"),
        annotation("of b", 69_000, hosts=["h2"]),
        annotation("of another", 69_000, groups=["billing"]),
        annotation(
            "open", 8_000, groups=["ord*"], client_ids=["app-*"], text="orders 2.4.1\n\x1b[2Jby the pipeline " * 2
        ),
    )
    return tmp_path


def test_explain_shows_what_lay_beside_a_rebalance_and_concerns_it(annotated: Path) -> None:
    found = explain(Reader(annotated), THIRD)
    assert [row["annotation_id"] for row in found["annotations"]] == ["drain", "open"]
    text = story(found).splitlines()
    begin = text.index("What was done then, as annotated; it decides nothing here:")
    assert text[begin + 1 : begin + 7] == [
        "  drain: text of drain; began 44.8 s before, ended 5.0 s before (cluster c1,",
        "    host h1)",
        "    https://nodes.example/h1",
        "  deploy: orders 2.4.1 \\x1b[2Jby the pipeline orders 2.4.1 \\x1b[2Jby the",
        "    pipeline; began 1 min 2 s before, its end is not known (group ord*, client",
        "    app-*)",
    ]
    assert run(annotated, "explain", THIRD).stdout == story(found) + "\n"
    (report,) = json_of(annotated, "explain", THIRD)
    assert report["annotations"][0]["began_at"] == "2026-01-01T00:00:25.200Z"  # type: ignore[index]


def test_without_annotations_explain_has_no_such_part(tmp_path: Path) -> None:
    write_story(tmp_path)
    found = explain(Reader(tmp_path), THIRD)
    assert found["annotations"] == []
    assert "annotated" not in story(found)


def test_the_lead_is_a_setting(annotated: Path) -> None:
    found = explain(Reader(annotated), THIRD, AnnotationSpans(lead_ms=4_999, open_ms=57_000))
    assert found["annotations"] == []


def test_findings_get_the_annotations_of_their_opening(annotated: Path) -> None:
    reader = Reader(annotated)
    (finding,) = reader.rows("findings")
    named = {**finding, "finding_id": "f2", "members": [{"member_id": "a", "client": "static-a", "detail": None}]}
    silent = {**finding, "finding_id": "f3", "opened_at": T0 + 10 * 60 * MINUTE}
    of_cluster = {**finding, "finding_id": "f4", "group_id": None}
    found = of_findings(reader, [finding, named, silent, of_cluster])
    ids = {name: [row["annotation_id"] for row in rows] for name, rows in found.items()}
    assert ids == {"f2": ["drain", "open"]}
