"""Every value is text."""

from __future__ import annotations

import html
import re

import pytest

from dashboard.pages.elements import amount, shown, span, when
from streaming.terminal.escape import printable
from tests.dashboard.hostile import HOSTILE


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_an_id_is_one_element_with_text(name: str) -> None:
    text = str(shown(name, 20_000))
    found = re.fullmatch(r'<bdi class="id">([^<>"]*)</bdi>', text)
    assert found
    assert html.unescape(found[1]) == printable(name)
    assert html.unescape(found[1]).isprintable()


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_an_id_that_is_cut_is_one_element_with_a_title(name: str) -> None:
    assert re.fullmatch(r'<bdi class="id"( title="[^<>"]*")?>[^<>"]*</bdi>', str(shown(name, 25)))


def test_a_long_id_is_cut_in_the_middle_and_whole_in_its_title() -> None:
    text = str(shown("a" * 60 + "b" * 60))
    assert 'title="' + "a" * 60 + "b" * 60 in text
    assert "…" in text


def test_nothing_is_a_dash() -> None:
    assert all("–" in str(write(None)) for write in (when, amount, span))
    assert str(when(1_767_225_600_007)) == '<time datetime="2026-01-01T00:00:00.007Z">2026-01-01 00:00:00</time>'
