"""Shell: the common parts of all sections of the settings: types of values, and which are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from streaming.settings.addresses import wrong_hosts
from streaming.settings.locations import location_of

SECRET_OPTIONS = re.compile(r"password|secret|jaas|\.key$|token|_url$|^alerts\.channels", re.IGNORECASE)

# RFC 9110, 5.5: every server and client reads these characters as the same text.
_HEADER_TEXT = re.compile(r"([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?")

# This is longer than the range of event times, 2000 to 2100.
CENTURY_H = 876_600
CENTURY_MS = CENTURY_H * 3_600_000
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1  # the ranges of Java and Arrow


def local_folder(value: object) -> Path:
    """Parse the path of a folder or file of this machine.

    Raises:
        ValueError: It is not a path, or it is the URI of a store.
    """
    location = location_of(value)
    if not isinstance(location, Path):
        raise ValueError("is on a store; this must be on the disk of this machine")
    return location


def _address(text: str, *, of_kafka: bool) -> str:
    wrong = wrong_hosts(text, of_kafka=of_kafka)
    if wrong:
        raise ValueError(f"{', '.join(map(repr, wrong))} is not HOST:PORT")
    return text


def pattern(text: str) -> str:
    """Check a regular expression and return it unchanged.

    Raises:
        ValueError: It is not a regular expression.
    """
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


def header_text(secret: SecretStr) -> SecretStr:
    """Return a secret that is sent in an HTTP header.

    Raises:
        ValueError: A header cannot contain it.
    """
    if not _HEADER_TEXT.fullmatch(secret.get_secret_value()):
        raise ValueError("has characters beyond printable ASCII, or spaces around it: no header of HTTP can hold it")
    return secret


Pattern = Annotated[str, AfterValidator(pattern)]
Span = Annotated[int, Field(ge=0, le=CENTURY_MS)]
SomeSpan = Annotated[Span, Field(ge=1)]
Hours = Annotated[int, Field(ge=0, le=CENTURY_H)]
Count = Annotated[int, Field(ge=0, le=INT_MAX)]
SomeCount = Annotated[Count, Field(ge=1)]
Bytes = Annotated[int, Field(ge=0, le=LONG_MAX)]
Folder = Annotated[Path, BeforeValidator(local_folder)]
Address = Annotated[str, AfterValidator(partial(_address, of_kafka=False))]
BearerToken = Annotated[SecretStr, AfterValidator(header_text)]
KafkaAddress = Annotated[str, AfterValidator(partial(_address, of_kafka=True))]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_is_a_number(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in (int, float):
            raise ValueError(f"is a number, not {str(value).lower()}")
        return value


class ClientOptions(Section):
    """Options of a Kafka client; likely secrets are kept out of logs."""

    options: dict[str, SecretStr]

    @field_validator("options", mode="before")
    @classmethod
    def _text(cls, options: object) -> object:
        if not isinstance(options, Mapping):
            return options
        return {key: _option_text(value) for key, value in options.items()}

    def plain_options(self) -> dict[str, str]:
        """Return the options including secrets, only for the client."""
        return {key: value.get_secret_value() for key, value in self.options.items()}


def _option_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value
