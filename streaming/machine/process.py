"""Shell: the identity of a process and its machine, and how long this machine has run."""

from __future__ import annotations

import os
import time
from pathlib import Path


def process_identity(pid: int) -> str:
    """Return the boot of the machine, the namespace of process ids, and the start of a process; empty if unknown."""
    try:
        # The field follows the process name, which may contain anything: man 5 proc, field 22.
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{boot_id()} {os.readlink('/proc/self/ns/pid')} {started}"
    except (OSError, IndexError):
        return ""


def is_same_machine(identity: str) -> bool:
    """Return whether a process with this identity is one that this process can see."""
    ours = process_identity(os.getpid())
    return bool(ours and identity) and identity.split()[:2] == ours.split()[:2]


def is_stopped(pid: int) -> bool:
    """Return whether a process of this machine is stopped by a signal: man 5 proc, field 3."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False


def boot_id() -> str:
    """Return an id that distinguishes one boot of this machine from another.

    Raises:
        OSError: The system has no such id.
    """
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def since_boot_ms() -> int:
    """Return how long this machine has run, including suspension; setting its clock does not change it."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000
