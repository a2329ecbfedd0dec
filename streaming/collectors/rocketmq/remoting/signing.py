"""Shell: signing of requests for brokers with access control. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

import msgspec

_ACCESS_KEY = "AccessKey"
_SECURITY_TOKEN = "SecurityToken"
_SIGNATURE = "Signature"


class Credentials(msgspec.Struct, frozen=True):
    """The caller. Neither its text nor a traceback shows the secret."""

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials(access_key={self.access_key!r}, secret_key=…)"


def sign(fields: Mapping[str, str], body: bytes, credentials: Credentials) -> dict[str, str]:
    """Return the fields of a request with the caller's key and the signature added.

    The signature covers the values of all fields in the order of their names, as Java orders strings, and the body.

    Source: RocketMQ 4.9.8 and 5.5.0, ``AclClientRPCHook`` and ``AclUtils#combineRequestContent``.
    """
    signed = {name: value for name, value in fields.items() if name != _SIGNATURE}
    signed[_ACCESS_KEY] = credentials.access_key
    if credentials.security_token is not None:
        signed[_SECURITY_TOKEN] = credentials.security_token
    names = sorted(signed, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    content = "".join(signed[name] for name in names).encode() + body
    digest = hmac.new(credentials.secret_key.encode(), content, hashlib.sha1).digest()
    signed[_SIGNATURE] = base64.b64encode(digest).decode()
    return signed
