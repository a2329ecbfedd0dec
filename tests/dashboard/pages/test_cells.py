"""Each kind of cell, and that none lets markup through."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import product
from typing import Any

import pytest

from dashboard.pages import job_columns, page_columns
from dashboard.pages.cells import KINDS, health, members, outage, spark, table_rows, truth
from dashboard.pages.page_columns import PageColumn
from tests.dashboard.hostile import HOSTILE

TEXTS = ("text", "name", "group", "cluster", "member", "code", "queues", "prose", "raw", "health")
ROW: dict[str, Any] = {"cluster": "c1", "group_id": "g", "rebalance_id": "r1", "trigger": "member_joined"}


class Elements(HTMLParser):
    """The elements of a text, and their addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]


def cell(kind: str, value: object, **more: object) -> str:
    text = str(table_rows([PageColumn("value", "Value", kind)], [ROW | {"value": value} | more]))
    found = re.fullmatch(r'<tr><td class="k-\w+">(.*)</td></tr>\n', text, re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize("kind", TEXTS)
def test_hostile_texts_add_no_element(kind: str) -> None:
    plain = Elements()
    plain.feed(cell(kind, "plain"))
    for name in HOSTILE:
        hostile = Elements()
        hostile.feed(cell(kind, name, group_id=name, cluster=name, trigger=name))
        assert hostile.found == plain.found
        assert all(link.startswith(("/group?", "/member?", "/client?", "/host?", "/?")) for link in hostile.links)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *product((*TEXTS, "count", "span", "time", "findings", "spark", "rebalance"), (None, "")),
        ("truth", None),  # no column of truths has a text
    ],
)
def test_nothing_is_a_dash(kind: str, value: object) -> None:
    assert cell(kind, value) == '<span class="none">–</span>'


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("count", 12_345, "12,345"),
        ("count", 0, "0"),
        ("span", 3_200, "3.2 s"),
        ("truth", False, '<span class="no">no</span>'),
        ("findings", 0, '<span class="none">0</span>'),
        ("findings", 2, '<a href="/findings?cluster=c1&amp;group_id=g">2</a>'),
        ("code", "<a_b>", '<code><bdi class="id">&lt;a_b&gt;</bdi></code>'),
        ("rebalance_id", "r1", '<a href="/rebalance?id=r1"><bdi class="id">r1</bdi></a>'),
        ("group", "g", '<a href="/group?cluster=c1&amp;group=g"><bdi class="id">g</bdi></a>'),
    ],
)
def test_a_value_is_shown_as_its_kind(kind: str, value: object, expected: str) -> None:
    assert cell(kind, value) == expected


def test_kinds_of_the_whole_row_do_not_need_a_value() -> None:
    assert cell("lag", 4, lag_reliable=False) == '4<abbr title="not reliable">?</abbr>'
    assert cell("members", None, members_before=1, members_after=2) == "1→2"
    assert "m joined" in cell("cause", None, triggers=[{"kind": "member_joined", "member_id": "m"}])
    assert cell("outage", None, outage_min_ms=4_000, outage_max_ms=8_300) == "4.0 s to 8.3 s"
    assert cell("waiting", None, waiting_estimated_messages=7) == '<abbr title="estimated">~</abbr>7'


def test_messages_read_twice_are_counted_or_estimated() -> None:
    about = '<abbr title="estimated">~</abbr>'
    names = ("repeated_messages", "repeated_estimated_messages")
    for values, expected in (
        ((1_200, None), "1,200"),
        ((None, 0), f"{about}0"),
        ((7, 3_000), f"7 + {about}3,000"),
        ((None, None), '<span class="none">–</span>'),
    ):
        assert cell("repeated", values[0], **dict(zip(names, values, strict=True))) == expected


def test_a_rebalance_that_failed_is_marked() -> None:
    row = {"triggers": [{"kind": "member_left", "member_id": "a"}], "trigger": "member_left", "group_id": "g"}
    texts = [cell("cause", None, **row, status=status) for status in ("completed", "failed")]
    assert ['<span class="no">failed</span>' in text for text in texts] == [False, True]


def test_elements_of_their_own() -> None:
    assert 'class="health ok"' in health("ok")
    assert (str(truth(None)), str(truth(True))) == ('<span class="none">–</span>', "yes")
    assert str(members({"members_before": 3, "members_after": 3})) == "3"
    assert str(outage({"outage_unknown_queues": 2})) == "unknown"
    assert str(outage({"outage_min_ms": 0, "outage_unknown_queues": 2})) == "unknown"
    bounds = {"outage_min_ms": 4_000, "outage_max_ms": 8_000}
    assert str(outage(bounds | {"outage_unknown_queues": 2})) == "4.0 s to 8.0 s + 2 unknown"
    assert spark([0] * 23 + [7]).count("<rect") == 2


def test_a_row_without_a_cluster_is_of_the_pages() -> None:
    rows = table_rows([PageColumn("group_id", "Group", "group", wide=True)], [{"group_id": "g"}], "c9")
    assert '<td class="k-group wide"><a href="/group?cluster=c9&amp;group=g">' in rows


def test_every_kind_of_column_has_its_cell_or_is_text() -> None:
    tables = [
        value for module in (page_columns, job_columns) for value in vars(module).values() if isinstance(value, tuple)
    ]
    named = {column.kind for table in tables for column in table if isinstance(column, PageColumn)}
    assert named - KINDS == {"text", "name"}


def test_where_a_phone_hides_the_cluster_the_group_names_it() -> None:
    columns = [PageColumn("group_id", "Group", "group"), PageColumn("cluster", "Cluster", "name", wide=True)]
    rows = table_rows(columns, [{"group_id": "g", "cluster": "<b>"}])
    assert '<small class="narrow" data-more="&lt;b&gt;"></small></td>' in rows
    assert "narrow" not in table_rows(columns[:1], [{"group_id": "g", "cluster": "c"}])


def test_a_group_that_is_not_followed_has_its_coordinators_state_too() -> None:
    share = {"group_id": "g", "state": "not_followed", "members": 1, "protocol": "share", "generation": 3, "epoch": 3}
    polled = share | {"members": None, "protocol": None, "generation": None, "epoch": None}
    calm, busy = {"state": "stable"}, {"state": "empty", "condition": "restless", "finding_kinds": "flapping odd_kind"}
    rows = table_rows([PageColumn("finding_kinds", "Why", "why")], [share, polled, calm, busy])
    assert [re.sub("<.*?>", "", text) for text in rows.splitlines()] == [
        "stable (not_followed)",
        "not_followed",
        "–",
        "empty, 6 or more rebalances within 10 min, rebalances too often, odd kind",
    ]
