"""The page of ready questions lists them; `python -m tests.docs.test_questions_page` renews its table."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard.questions.catalog import questions

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
_TABLE = re.compile(r"(?<=<!-- the questions -->\n).*(?=<!-- end of the questions -->)", re.DOTALL)


def table() -> str:
    lines = ["| question | name | parameters |", "|---|---|---|"]
    lines += [
        f"| {question.title} | `{question.name}` | {', '.join(question.parameters)} |"
        for question in questions().values()
    ]
    return "\n".join(lines) + "\n"


def test_the_page_lists_every_question() -> None:
    found = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == table()


def test_the_texts_that_differ_are_named_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    differing = [question.name for question in questions().values() if len(set(question.texts.values())) > 1]
    assert differing
    assert [name for name in differing if f"`{name}`" not in page.split("## Dialects")[1]] == []


if __name__ == "__main__":
    PAGE.write_text(_TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
