"""What all real Java consumers of the kit have in common: a child process that reports itself in lines of JSON."""

import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import msgspec

from tests.kit import class_archives
from tests.kit.jars import java
from tests.kit.processes import QUICK_START

WAIT_S = 120.0
# A small heap, a quick start; and what the machine itself has to say is no line of the member.
JVM_OPTIONS = ("-Xmx64m", *QUICK_START, "-XX:+DisplayVMOutputToStderr")


def java_command(class_path: str, *options: str) -> list[str]:
    """Return what starts a program of this class path, but for its name and its arguments."""
    return [java(), *JVM_OPTIONS, *class_archives.options_of(class_path), *options, "-cp", class_path]


# One for all members: a claim may be about several of them.
_NEWS = threading.Condition()


class Line(Protocol):
    """One line of a member about itself, whatever else it says."""

    @property
    def event(self) -> str: ...
    @property
    def at_ms(self) -> int: ...


ReportT = TypeVar("ReportT", bound=Line)


class JavaMember(Generic[ReportT]):
    """One running consumer. Leaving the `with` block kills it if it still runs.

    Args:
        command: what starts it.
        report: the type of its lines.
        farewell: the command on which it leaves in order.
    """

    def __init__(self, command: Sequence[str], report: type[ReportT], farewell: str) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        self._report = report
        self._farewell = farewell
        self._reports: list[ReportT] = []
        self._complaints: list[str] = []
        self._ended = False
        self._threads = [threading.Thread(target=read, daemon=True) for read in (self._read_output, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it closed its output: it left, failed or was killed."""
        return self._ended

    @property
    def reports(self) -> list[ReportT]:
        """All that it said, in order."""
        with _NEWS:
            return list(self._reports)

    def wait_until(self, claim: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
        """Return as soon as a claim holds; see `wait_until`."""
        wait_until([self], claim, timeout_s)

    def freeze(self) -> None:
        """Stop the whole process (SIGSTOP): a client that hangs; its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self, timeout_s: float = WAIT_S) -> None:
        """Leave in order and wait for the end."""
        self.send(self._farewell)
        self._process.wait(timeout_s)
        self._bury()

    def kill(self) -> None:
        """End it as a crash does (SIGKILL), and wait until it is gone."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._bury()

    def describe(self) -> str:
        """Report all that it said, for the message of a failed test."""
        output = "\n".join(str(report) for report in self.reports)
        return f"the member said:\n{output}\nand complained:\n{''.join(self._complaints[-20:])}"

    def send(self, command: str) -> None:
        """Give it a command of its own language."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report = msgspec.json.decode(line, type=self._report)
            with _NEWS:
                self._reports.append(report)
                _NEWS.notify_all()
        with _NEWS:
            self._ended = True
            _NEWS.notify_all()

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._complaints.append(line)

    def _bury(self) -> None:
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


class _Member(Protocol):
    @property
    def has_ended(self) -> bool: ...
    def describe(self) -> str: ...


def wait_until(members: Sequence[_Member], claim: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    """Return as soon as a claim about these members holds; it is asked again after each report.

    Raises:
        AssertionError: it did not hold in time, or one of them ended before; with what they said.
    """
    with _NEWS:
        _NEWS.wait_for(lambda: claim() or any(member.has_ended for member in members), timeout_s)
        if not claim():
            raise AssertionError("the claim did not come true:\n" + "\n".join(member.describe() for member in members))
