"""Shell: how a policy is set in practice, from conf/policies.toml: keys of configuration, or why it cannot be set."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import msgspec

from streaming.history.group_rows import GroupRows
from streaming.history.policy_texts import parts_of
from streaming.settings.conf_files import conf_file
from udfs.model.systems import SYSTEMS
from udfs.strategies.kafka.client_library import library_of

_BY_PLATFORM: Final = {
    "members": "the number of processes, or of threads that consume in each",
    "without": "its processes are stopped, or join another group",
}


# A protocol that strategies decide is set as they are.
_AS_STRATEGY: Final = {"eager": "sticky", "cooperative": "cooperative-sticky"}


class PolicySetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a policy is set, or why it cannot be.

    Attributes:
        library: The client library; None for all of the system. of: The values that it is about; empty for all.
        since, until: Versions of the library, or of brokers; the last without it. keys: What is set; empty if it cannot
            be. cannot: The reason. source: The document that says so, with its version.
    """

    policy: str
    system: str
    source: str
    library: str | None = None
    of: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    keys: tuple[str, ...] = ()
    note: str | None = None
    cannot: str | None = None

    def fits(self, policy: str, system: str, library: str | None, version: str | None, value: str | None) -> bool:
        """Return whether it is about that; without a version the newest is meant."""
        return (
            (self.policy, self.system) == (policy, system)
            and self.library in (None, library)
            and (not self.of or value in self.of)
            and (self.since is None or version is None or _version(version) >= _version(self.since))
            and (self.until is None or (version is not None and _version(version) < _version(self.until)))
        )


def setting_of(
    policy: str, system: str, library: str | None = None, version: str | None = None, value: str | None = None
) -> PolicySetting | None:
    """Return how a policy is set, or that it cannot be; None if no document that was read says it.

    Args:
        policy: The name of its kind. library, version: Of the client, else of the brokers. value: The strategy or
            protocol.
    """
    return next((entry for entry in entries() if entry.fits(policy, system, library, version, value)), None)


@cache
def entries() -> tuple[PolicySetting, ...]:
    """Return the entries of conf/policies.toml."""
    found = tomllib.loads(conf_file("policies.toml").read_text(encoding="utf-8"))
    return msgspec.convert(found["entry"], tuple[PolicySetting, ...])


def setting_lines(policies: Iterable[str], rows: GroupRows) -> Iterator[str]:
    """Yield how the parts of policies are set for the clients of a group; parts that are set alike share a line."""
    said: dict[str, dict[str, None]] = {}
    for text in policies:
        for part, sentence in _sentences(text, rows):
            said.setdefault(sentence, {})[part] = None
    for sentence, parts in said.items():
        yield f"{', '.join(parts)}: {sentence}"


def _sentences(text: str, rows: GroupRows) -> Iterator[tuple[str, str]]:
    """Yield the parts of a policy, with the libraries that it is for where several answers differ, and the answer."""
    for name, part, value in parts_of(text):
        if name in _BY_PLATFORM:
            yield part, _BY_PLATFORM[name]
            continue
        if name == "protocol" and value in _AS_STRATEGY:
            name, value = "strategy", _AS_STRATEGY[value]
        if name == "strategy" and value is not None and value.startswith("server."):
            name, value = "protocol", "consumer"  # the coordinator assigns there alone
        said: dict[str, list[str]] = {}
        for library, version in _libraries(rows):
            label = " ".join(word for word in (library, version) if word)
            said.setdefault(_said(setting_of(name, rows.system, library, version, value)), []).append(label)
        for sentence, labels in said.items():
            yield f"{part} ({', '.join(labels)})" if any(labels) else part, sentence


def _said(found: PolicySetting | None) -> str:
    if found is None:
        return "how it is set is not known"
    if found.cannot is not None:
        return f"cannot be set, because {found.cannot} [{found.source}]"
    note = f"; {found.note}" if found.note else ""
    return f"{', '.join(found.keys)}{note} [{found.source}]"


def _libraries(rows: GroupRows) -> list[tuple[str | None, str | None]]:
    """Return the client libraries that the group's members were seen with, and their versions as far as known."""
    if not SYSTEMS[rows.system].coordinator_assigns:
        return [(None, None)]  # what is set is the same in all clients, or the brokers', whose version no table has
    named = {name for session in rows.sessions for name in (session.get("client_library") or "java").split("|")}
    found: dict[tuple[str | None, str | None], None] = {}
    for name in sorted(named):
        library = library_of(name)
        version = None if library.version is None else ".".join(map(str, library.version))
        found[library.name, version] = None
    return list(found)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))
