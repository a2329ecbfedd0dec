"""Locks for things that only one process may use, wherever they are."""

from __future__ import annotations

import pytest

from streaming.setup.errors import SetupError
from streaming.stores.locks import all_of, exclusive_use
from streaming.stores.places import Place


def test_a_second_use_is_refused_until_the_first_ends(either_place: Place) -> None:
    for _ in range(2):
        with exclusive_use(either_place / "lock", problem="taken", remedy="wait") as guard:
            guard()
            with (
                pytest.raises(SetupError, match="taken"),
                exclusive_use(either_place / "lock", problem="taken", remedy="wait"),
            ):
                pass
            guard()


def test_each_of_several_guards_raises() -> None:
    passed: list[str] = []

    def lost() -> None:
        raise OSError("lost")

    all_of(lambda: passed.append("one"), lambda: passed.append("other"))()
    assert passed == ["one", "other"]
    with pytest.raises(OSError, match="lost"):
        all_of(lambda: None, lost)()
