"""An answer stays within a size, says what was left out, and can be read back."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dashboard.mcp.source import meant
from dashboard.mcp.tool_answer import LONGEST_TEXT, Listed, ToolAnswer, cleaned, document, shown, written


def of_rows(number: int, text: str, *, most: int, evidence: int = 0) -> dict[str, object]:
    rows = [{"at": 1_767_225_600_000 + at, "text": text} for at in range(number)]
    found = ToolAnswer(
        ["c"], {"name": text}, {"rows": Listed(rows, number + 5, "narrow it")}, evidence=[{"id": text}] * evidence
    )
    return dict(json.loads(written(document(found, "", [], most=most))))


def test_a_small_answer_is_whole_and_says_how_many_rows_were_not_read() -> None:
    found = of_rows(2, "a", most=1_000, evidence=1)
    assert found["answer"] == {
        "name": "a",
        "rows": [{"at": "2026-01-01T00:00:00.000Z", "text": "a"}, {"at": "2026-01-01T00:00:00.001Z", "text": "a"}],
    }
    assert found["more"] == ["5 more rows of rows: narrow it"]
    assert found["evidence"] == [{"id": "a"}]


@given(st.integers(0, 60), st.text(max_size=900), st.integers(0, 10))
def test_no_answer_is_larger_than_its_size(number: int, text: str, evidence: int) -> None:
    found = of_rows(number, text, most=4_000, evidence=evidence)
    assert len(json.dumps(found, ensure_ascii=False, separators=(",", ":"))) <= 4_000
    left = number + 5 - len(found["answer"]["rows"])  # type: ignore[index,arg-type]
    assert found["more"] == [f"{left} more rows of rows: narrow it"]


def test_rows_go_before_evidence() -> None:
    found = of_rows(50, "x" * 100, most=1_000, evidence=3)
    assert len(found["evidence"]) == 3  # type: ignore[arg-type]


@given(st.text(max_size=2_000))
def test_a_text_is_printable_and_short_and_the_same_again(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text)) <= LONGEST_TEXT
    assert shown(shown(text)) == shown(text)


@given(st.sets(st.text(max_size=900), min_size=1, max_size=5))
def test_a_name_means_itself_as_it_is_shown(names: set[str]) -> None:
    for name in names:
        if [shown(other) for other in names].count(shown(name)) == 1:
            assert meant(shown(name), lambda: names) == name
        assert meant(name, lambda: names) == name


def test_lists_inside_of_rows_are_cut_and_say_so() -> None:
    assert cleaned({"queues": list(range(60))})["queues"][-1] == "10 more"
    assert cleaned({"x\u202e": None}) == {"x\\u202e": None}
