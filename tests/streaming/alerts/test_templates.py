"""Templates of messages: in a sandbox, with ids as values and never as templates."""

from __future__ import annotations

import pytest

from streaming.alerts.notices import Bundle, notice_of
from streaming.alerts.templates import LONGEST_TEXT, LONGEST_TITLE, Templates
from tests.dashboard.hostile import HOSTILE
from tests.streaming.alerts.planted import finding, settings


def bundle(**more: object) -> Bundle:
    return Bundle([notice_of(finding("f", **more), "opened")])  # type: ignore[arg-type]


def test_the_templates_of_the_defaults() -> None:
    given = settings()
    page = "https://monitor.example"
    title, text = Templates(given.title, given.text, f"{page}/").of(bundle())
    assert title == "critical: duplicate_ids opened in orders (c1)"
    assert text.splitlines() == [
        f"{page}/group?cluster=c1&group=orders",
        "opened: Message of f. Advice. (since 2026-01-01T00:00:00.000Z)",
    ]
    title, text = Templates(given.title, given.text).of(bundle(group=None))
    assert title.endswith("in cluster (c1)")
    assert text.startswith("opened: ")


def test_the_link_is_the_page_of_the_group_or_the_findings_of_the_cluster() -> None:
    texts = Templates("t", "{{ link }}", "https://monitor.example")
    assert texts.of(bundle(group="a&b \ud800"))[1] == "https://monitor.example/group?cluster=c1&group=a%26b+%3F"
    assert texts.of(bundle(group=None))[1] == "https://monitor.example/findings?cluster=c1"
    assert texts.of(bundle(group="x" * 10_000))[1] == "https://monitor.example"


def test_ids_are_values_and_never_templates() -> None:
    given = settings()
    for name in ("{{ 7 * 7 }}", "{% for x in y %}", "{{ findings }}", "{# x #}"):
        assert name in Templates(given.title, given.text).of(bundle(group=name))[0]


def test_hostile_ids_leave_one_line_of_title_without_control_characters() -> None:
    given = settings()
    for name in HOSTILE:
        title, text = Templates(given.title, given.text).of(bundle(group=name, message=name))
        assert title.isprintable()
        assert len(title) <= LONGEST_TITLE
        assert len(text) <= LONGEST_TEXT
        assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ findings.append(1) }}",
        "{{ findings[0].clear() }}",
        "{% for x in range(10 ** 9) %}{{ x }}{% endfor %}",
        "{{ no_such_name }}",
        "{{ 1 / 0 }}",
        "{% include 'etc/passwd' %}",
    ],
)
def test_a_template_that_fails_or_wants_too_much_still_gives_a_message(template: str) -> None:
    title, text = Templates(template, template).of(bundle())
    assert title == "opened: duplicate_ids"
    assert text.startswith("The template of alerts failed")


def test_an_invalid_template_is_refused() -> None:
    with pytest.raises(ValueError, match="not a template"):
        Templates("{{ title", "text")
