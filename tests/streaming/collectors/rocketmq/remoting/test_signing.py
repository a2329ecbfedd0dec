import pytest

from streaming.collectors.rocketmq.remoting.signing import Credentials, sign
from tests.streaming.collectors.rocketmq.golden_answers import VERSIONS, wire

# Signatures that java/RocketMqWire.java had the clients' own hook make.
_FIELDS = {
    "zone": "zöne",
    "ﬁrst": "after surrogates as UTF-8 sorts, before them as Java does not",
    "\U0001f600": "smile",
    "Bname": "upper case goes first",
}
_BODY = '{"topic":"Töpic"}'.encode()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "token"), [("signature", None), ("signature-token", "a token")])
def test_the_signature_is_that_of_the_clients_own_hook(version, name, token):
    lines = wire(version)[name].decode().split("\n")
    expected = dict(zip(lines[::2], lines[1::2], strict=True))
    assert sign(_FIELDS, _BODY, Credentials("rocket-ä", "säcret 123", token)) == expected


def test_signing_again_replaces_the_signature():
    credentials = Credentials("key", "secret")
    once = sign({"a": "b"}, b"", credentials)
    assert sign(once, b"", credentials) == once
    assert sign({"a": "b"}, b"more", credentials)["Signature"] != once["Signature"]


def test_credentials_do_not_show_their_secret():
    credentials = Credentials("key", "hidden-one", "hidden-two")
    assert "hidden" not in repr(credentials)
    assert "hidden" not in f"{credentials}"
