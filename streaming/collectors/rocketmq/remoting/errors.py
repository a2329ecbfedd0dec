"""Shell: the errors between the monitor and a RocketMQ server, by their cause."""

from __future__ import annotations


class RemotingError(Exception):
    """A request had no usable answer; the base of all errors of the client.

    Args:
        address: ``host:port`` of the server of the request; for a list of name servers, all of them, joined by ``;``.
        problem: What happened, as text.
    """

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(f"{address}: {problem}")
        self.address = address
        self.problem = problem


class Unreachable(RemotingError):  # noqa: N818 - a state of the server, named as such
    """No connection, or it broke before the answer; also while the client waits before it tries again."""


class TimedOut(RemotingError):  # noqa: N818
    """The connection is open, and the answer did not come in time."""

    def __init__(self, address: str, code: int, timeout_s: float) -> None:
        super().__init__(address, f"no answer to request {code} within {timeout_s:g} s")
        self.code = code
        self.timeout_s = timeout_s


class Refused(RemotingError):  # noqa: N818
    """The server answered with a code that is not success.

    Args:
        code: The response's code (`ResponseCode`, or one that it does not list).
        remark: The server's message, without the stack trace that some servers add.
    """

    def __init__(self, address: str, request_code: int, code: int, remark: str | None) -> None:
        super().__init__(address, f"request {request_code} was refused with code {code}: {remark or 'no remark'}")
        self.request_code = request_code
        self.code = code
        self.remark = remark


class ProtocolError(RemotingError):
    """A violation of the protocol: a frame, a header or a body that cannot be read.

    Args:
        code: The answered request; None if the frame does not contain it.
    """

    def __init__(self, address: str, problem: str, code: int | None = None) -> None:
        super().__init__(address, problem if code is None else f"answer to request {code}: {problem}")
        self.code = code
