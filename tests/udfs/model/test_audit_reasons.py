"""The reasons of audits."""

from __future__ import annotations

from udfs.model import audit_reasons, comparability


def test_each_reason_has_a_sentence() -> None:
    reasons = {value for name, value in vars(audit_reasons).items() if name.isupper() and isinstance(value, str)}
    assert reasons <= audit_reasons.SENTENCES.keys()
    assert comparability.SENTENCES.keys() <= audit_reasons.SENTENCES.keys()
    assert audit_reasons.SENTENCES.keys() >= audit_reasons.AGAINST_THE_STRATEGY | audit_reasons.PASSING
