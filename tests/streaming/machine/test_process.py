"""Processes of this machine: distinguished from later ones of the same number, running or stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from streaming.machine.process import boot_id, is_same_machine, is_stopped, process_identity, since_boot_ms


def test_a_process_keeps_its_identity_and_another_has_another() -> None:
    mine = process_identity(os.getpid())
    assert mine == process_identity(os.getpid())
    assert mine.startswith(boot_id())
    assert mine != process_identity(1)
    assert is_same_machine(mine)
    assert is_same_machine(process_identity(1))


def test_nothing_is_known_about_other_machines_or_missing_processes() -> None:
    _, space, started = process_identity(os.getpid()).split()
    assert not is_same_machine(f"another-boot {space} {started}")
    assert not is_same_machine("")
    assert process_identity(2**30) == ""
    assert not is_stopped(2**30)


def test_a_stopped_process_is_distinguished_from_a_running_one() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        assert not is_stopped(child.pid)
        child.send_signal(signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        assert is_stopped(child.pid)
    finally:
        child.kill()
        child.wait()


def test_the_time_since_boot_goes_on() -> None:
    before = since_boot_ms()
    time.sleep(0.01)
    assert since_boot_ms() >= before + 10
