"""Texts that are packed are the texts."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from udfs.packets.packed_texts import PackedTexts


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_packed_texts_are_the_texts(texts: list[str]) -> None:
    packed = PackedTexts.pack(texts)
    assert packed.unpack() == texts
    assert packed.count == len(texts)
