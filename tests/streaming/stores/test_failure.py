"""Errors of stores in one line, without colours, signatures and secrets."""

from __future__ import annotations

import errno

import pytest
from deltalake.exceptions import DeltaError

from streaming.stores.failure import StoreAwayError, is_passing, is_unreadable, one_line, reason_of, store_error

REFUSED = """Generic S3 error
          \x1b[31m↳\x1b[0m Error performing GET http://127.0.0.1:9000/lake?prefix=c&sig=hush in 2.7ms
            \x1b[31m↳\x1b[0m 403 Forbidden
             \x1b[31m↳\x1b[0m <?xml version='1.0'?><Error><Code>SignatureDoesNotMatch</Code><Message>The request
signature differs.</Message><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>"""
AWAY = "Generic S3 error\n   \x1b[31m↳\x1b[0m Error performing GET https://host/lake?sig=hush in 3s\n ↳ timed out\n"

# A machine without an identity.
METADATA = "Error performing GET http://169.254.169.254/metadata/identity/oauth2/token in 3s - HTTP error:"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (REFUSED, "SignatureDoesNotMatch: The request\nsignature differs."),
        ("<Error><Code>SlowDown</Code></Error>", "SlowDown"),
        (AWAY, "Generic S3 error: Error performing GET https://host/lake in 3s: timed out"),
        ("a\na\nb", "a: b"),
        (
            "RPC error: SafeModeException In safe mode.\n\tat a.b.C$D.e(C.java:1)\n\tat f.G.h(G.java)",
            "RPC error: SafeModeException In safe mode.",
        ),
        ("a\n   0: <unknown>\n   1: clone3\n      at clone3.S:81", "a"),
    ],
)
def test_store_errors_are_one_line_without_secrets(text: str, line: str) -> None:
    assert one_line(OSError(text)) == " ".join(line.split())


@pytest.mark.parametrize(
    ("raised", "kind", "number"),
    [
        (OSError(REFUSED), PermissionError, errno.EACCES),
        (OSError(AWAY), StoreAwayError, errno.EIO),
        (OSError(f"{METADATA} error sending request"), OSError, errno.EIO),
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


@pytest.mark.parametrize(
    ("reason", "is_away"),
    [
        ("Server returned non-2xx status code\n ↳ 503 Service Unavailable\n", True),
        ("software.amazon.awssdk.services.s3.model.S3Exception: Slow down (Service: S3, Status Code: 503)", True),
        ("java.net.ConnectException: Connection refused", True),
        ("java.net.UnknownHostException: lake.example", True),
        ("RPC error: org.apache.hadoop.ipc.StandbyException Operation category READ is not supported", True),
        ("HTTP error: error sending request: invalid peer certificate: Expired", True),
        ("HTTP error: error sending request: invalid peer certificate: UnknownIssuer", False),
        ("status code\n ↳ 404 Not Found\n", False),
        ("No space left on device", False),
    ],
)
def test_a_passing_failure_is_not_a_mistake(reason: str, is_away: bool) -> None:
    assert is_passing(reason) == is_away


def test_a_file_that_is_gone_is_unreadable_whichever_reader_says_so() -> None:
    by_arrow = ValueError(
        "C Data interface error: External error: Object Store error: Object at location /t/a not found"
    )
    assert is_unreadable(by_arrow)
    assert not is_unreadable(ValueError("no such column"))
    assert reason_of(FileNotFoundError(2, "No such file or directory", "/t/a")) == "No such file or directory"
    assert "/t/a not found" in reason_of(by_arrow)
