"""Reasons why a reported assignment is not compared."""

from udfs.model import comparability
from udfs.model.comparability import NOT_RECOMPUTABLE, OF_LIBRARIES, SENTENCES, UNKNOWN_RESULTS


def test_every_reason_has_a_sentence_for_people() -> None:
    texts = {value for name, value in vars(comparability).items() if name.isupper() and isinstance(value, str)}
    assert texts - {NOT_RECOMPUTABLE} == set(SENTENCES)
    assert all(text == text.lower() and " " not in text for text in texts)
    assert set(SENTENCES) >= OF_LIBRARIES | UNKNOWN_RESULTS
