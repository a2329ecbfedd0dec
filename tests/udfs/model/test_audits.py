"""The audit of a generation in the journal."""

from __future__ import annotations

import msgspec

from tests.streaming.tables.journals import audited
from udfs.model.audits import Audited
from udfs.model.journal import Body


def test_an_audit_comes_back_from_the_journal_as_it_was() -> None:
    audit = audited("r", 5, missing=2)
    text = msgspec.json.encode(audit)
    assert msgspec.json.decode(text, type=Body) == audit
    assert b'["orders",null,1,"missing",["a"],[]]' in text, "queues are packed"


def test_an_audit_that_lacks_newer_fields_is_read() -> None:
    fields = msgspec.to_builtins(audited("r", 5))
    del fields["digest"], fields["differing"]
    assert msgspec.convert(fields, Audited) == audited("r", 5)
