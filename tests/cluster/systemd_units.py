"""What systemd documents of the sections and keys that a service may have, for machines without `systemd-analyze`.

Of systemd 247 (Debian 11) and later: systemd.unit(5), systemd.service(5), systemd.exec(5) and systemd.kill(5); only
those that a service of this project has or may well come to have. What is not listed is reported as unknown.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

_TRUTH = r"yes|no|true|false|on|off|1|0"
_SPAN = r"(\d+(\.\d+)?\s*(us|ms|s|sec|second|seconds|min|m|minutes?|h|hr|hours?|d|days?)?\s*)+|infinity"
_TEXT = r".+"
_UNITS = r"[\w@.\\-]+\.(service|target|socket|timer|mount)( [\w@.\\-]+\.(service|target|socket|timer|mount))*"
_FOLDERS = r"[^/\s][^\s]*( [^/\s][^\s]*)*"
_PATH = r"/\S*"
_STATUSES = r"(\d{1,3}|[A-Z]+)( (\d{1,3}|[A-Z]+))*"
# Section -> key -> pattern of the values that the key accepts.
DOCUMENTED = {
    "Unit": {
        "Description": _TEXT,
        "Documentation": r"(https?://|file:|man:|info:)\S+",
        **dict.fromkeys(("Wants", "Requires", "After", "Before", "BindsTo", "PartOf", "Conflicts"), _UNITS),
        "StartLimitIntervalSec": _SPAN,
        "StartLimitBurst": r"\d+",
    },
    "Service": {
        "Type": "simple|exec|forking|oneshot|dbus|notify|notify-reload|idle",
        **dict.fromkeys(("ExecStart", "ExecStartPre", "ExecStartPost", "ExecReload", "ExecStop"), r"[-@:+!]*/\S+.*"),
        "Environment": r"[A-Za-z_]\w*=.*",
        "EnvironmentFile": r"-?/\S+",
        "User": r"[a-z_][a-z0-9_-]*",
        "Group": r"[a-z_][a-z0-9_-]*",
        **dict.fromkeys(("StateDirectory", "CacheDirectory", "LogsDirectory", "RuntimeDirectory"), _FOLDERS),
        "WorkingDirectory": rf"-?({_PATH}|~)",
        "KillMode": "control-group|mixed|process|none",
        "KillSignal": r"SIG[A-Z0-9]+",
        **dict.fromkeys(("TimeoutStartSec", "TimeoutStopSec", "TimeoutSec", "RestartSec", "WatchdogSec"), _SPAN),
        "Restart": "no|on-success|on-failure|on-abnormal|on-watchdog|on-abort|always",
        **dict.fromkeys(("RestartPreventExitStatus", "RestartForceExitStatus", "SuccessExitStatus"), _STATUSES),
        **dict.fromkeys(
            (
                *("DynamicUser", "NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectKernelTunables"),
                *("ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ProtectClock"),
                *("ProtectHostname", "RestrictSUIDSGID", "RestrictRealtime", "LockPersonality"),
            ),
            _TRUTH,
        ),
        "ProtectHome": rf"{_TRUTH}|read-only|tmpfs",
        "ProtectSystem": rf"{_TRUTH}|full|strict",
        "LimitNOFILE": r"\d+(:\d+)?|infinity",
        "MemoryMax": r"\d+[KMGT]?|\d+%|infinity",
        "UMask": r"[0-7]{3,4}",
    },
    "Install": {"WantedBy": _UNITS, "RequiredBy": _UNITS, "Also": _UNITS, "Alias": _UNITS},
}


def entries(unit: str) -> Iterator[tuple[str, str, str]]:
    """Return section, key and value of each line of a unit file, repeated keys included."""
    section = ""
    for line in re.sub(r"\\\n", " ", unit).splitlines():
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            section = text[1:-1]
        elif text and text[0] not in "#;":
            key, _, value = text.partition("=")
            yield section, key.strip(), value.strip()


def mistakes(unit: str) -> list[str]:
    """Return the lines that systemd does not document, and the keys that a service needs and does not have."""
    found = []
    observed = set()
    for section, key, value in entries(unit):
        observed.add(f"{section}.{key}")
        form = DOCUMENTED.get(section, {}).get(key)
        if form is None:
            found.append(f"[{section}] {key}: unknown")
        elif re.fullmatch(form, value) is None:
            found.append(f"[{section}] {key}: {value!r}")
    return found + [f"no {name}" for name in ("Service.ExecStart", "Install.WantedBy") if name not in observed]


def service_of(unit: Path) -> configparser.SectionProxy:
    """Return the section of a unit that states how its command is run."""
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(unit)
    return parsed["Service"]
