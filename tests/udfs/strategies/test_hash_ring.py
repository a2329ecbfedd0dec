"""The ring of both consistent-hash strategies."""

import pytest

from udfs.strategies.hash_ring import HashRing, md5


@pytest.mark.parametrize(
    ("point", "owner"), [(0, "a"), (9, "a"), (10, "a"), (11, "b"), (20, "b"), (21, "a"), (2**32 - 1, "a")]
)
def test_a_point_belongs_to_the_first_at_or_after_it_and_behind_the_last_to_the_first(point: int, owner: str) -> None:
    assert HashRing({20: "b", 10: "a"}).owner(point) == owner


def test_an_empty_ring_has_no_owner() -> None:
    assert HashRing({}).owner(5) is None


def test_a_text_without_utf_8_is_hashed_as_java_writes_it() -> None:
    # RFC 1321, A.5.
    assert md5("abc").hex() == "900150983cd24fb0d6963f7d28e17f72"
    assert md5("é") != md5("?")
    assert md5("a\ud800") == md5("a?")
