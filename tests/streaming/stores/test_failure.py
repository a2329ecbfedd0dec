"""Errors of stores in one line, without colours, signatures and secrets."""

from __future__ import annotations

import errno

import pytest
from deltalake.exceptions import DeltaError

from streaming.stores.failure import one_line, store_error

REFUSED = """Generic S3 error
          \x1b[31m↳\x1b[0m Error performing GET http://127.0.0.1:9000/lake?prefix=c&sig=hush in 2.7ms
            \x1b[31m↳\x1b[0m 403 Forbidden
             \x1b[31m↳\x1b[0m <?xml version='1.0'?><Error><Code>SignatureDoesNotMatch</Code><Message>The request
signature differs.</Message><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>"""
AWAY = "Generic S3 error\n   \x1b[31m↳\x1b[0m Error performing GET https://host/lake?sig=hush in 3s\n ↳ timed out\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (REFUSED, "SignatureDoesNotMatch: The request\nsignature differs."),
        ("<Error><Code>SlowDown</Code></Error>", "SlowDown"),
        (AWAY, "Generic S3 error: Error performing GET https://host/lake in 3s: timed out"),
        ("a\na\nb", "a: b"),
        ("a\n   0: <unknown>\n   1: clone3\n      at clone3.S:81", "a"),
    ],
)
def test_what_a_store_reports_is_one_line_without_secrets(text: str, line: str) -> None:
    assert one_line(OSError(text)) == " ".join(line.split())


@pytest.mark.parametrize(
    ("raised", "kind", "number"),
    [
        (OSError(REFUSED), PermissionError, errno.EACCES),
        (OSError(AWAY), OSError, errno.EIO),
        (DeltaError("no such option"), OSError, errno.EIO),
        (FileNotFoundError("Object at location c/x not found"), FileNotFoundError, errno.ENOENT),
        (FileNotFoundError("404 <Code>NoSuchBucket</Code>"), OSError, errno.EIO),
    ],
)
def test_errors_of_a_client_become_those_of_the_system(raised: Exception, kind: type[OSError], number: int) -> None:
    with pytest.raises(kind) as found, store_error("s3://lake/c"):
        raise raised
    assert (type(found.value), found.value.errno, found.value.filename) == (kind, number, "s3://lake/c")
    assert "hush" not in str(found.value)


def test_other_errors_pass() -> None:
    for other in (IsADirectoryError(errno.EISDIR, "Is a directory"), ValueError("x")):
        with pytest.raises(type(other)) as found, store_error("s3://lake/c"):
            raise other
        assert found.value is other
