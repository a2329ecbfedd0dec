"""A rejected input is kept: its beginning as text, its length and hash whole."""

import hashlib

import hypothesis.strategies as st
import pytest
from hypothesis import given

from udfs.model.journal import Rejected
from udfs.model.rejection import Rejection, rejected

REASON = Rejection("not_json", "expected a value", "c", "g")


def kept(raw: bytes, limit: int) -> Rejected:
    return rejected(REASON, raw, source="events", position="f#1", seen_at=9, raw_limit_bytes=limit)


def test_a_rejected_input_has_its_reason_its_place_and_what_could_be_read() -> None:
    row = kept(b"abc", 10)
    assert (row.reason, row.detail, row.cluster, row.group_id) == ("not_json", "expected a value", "c", "g")
    assert (row.source, row.position, row.seen_at) == ("events", "f#1", 9)
    # SHA-256 of "abc", from FIPS 180-2, appendix B.1.
    assert (row.raw, row.raw_length) == ("abc", 3)
    assert row.raw_sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    ("raw", "limit", "text"),
    [
        (b"abcd", 4, "abcd"),
        (b"abcde", 4, "abcd"),
        (b"abc", 0, ""),
        # A character of two, three, four bytes is left out whole.
        ("aü".encode(), 2, "a"),
        ("a€".encode(), 3, "a"),
        ("a\U0001f600".encode(), 4, "a"),
        ("a\U0001f600".encode(), 5, "a\U0001f600"),
        # What is no UTF-8 is no character to be kept whole.
        (b"a\xff\xfe", 2, "a\\xff"),
        (b"a" + b"\x80" * 9, 8, "a" + "\\x80" * 4),
    ],
)
def test_a_text_is_cut_at_the_limit_and_never_inside_a_character(raw: bytes, limit: int, text: str) -> None:
    assert kept(raw, limit).raw == text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.integers(0, 40))
def test_the_longest_fitting_beginning_of_a_text_is_kept(text: str, limit: int) -> None:
    raw = text.encode()
    row = kept(raw, limit)
    assert row.raw is not None
    beginning = row.raw.encode()
    assert raw.startswith(beginning)
    assert limit - 3 <= len(beginning) <= limit or beginning == raw
    assert (row.raw_length, row.raw_sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
