"""Shell: a reader for the output of fastjson 1.x and 2.x, which is not always JSON. Pure.

In addition to JSON it accepts what RocketMQ's servers and clients send or could send: keys that are integers, bare
literals or objects; single quotes; NaN and infinities; numbers with a letter for their Java type. It never recurses,
takes time and space in proportion to the text, and fails with one error.

An object as a key becomes the tuple ``(topic, brokerName, queueId)`` if it is a queue, else the tuple of its pairs,
sorted.

Source: fastjson 1.2.83, ``JSONLexerBase``.
"""

from __future__ import annotations

import re
from typing import Any, Final

MAX_BYTES: Final = 16 * 1024 * 1024  # the size of a whole frame
MAX_DEPTH: Final = 100
# Long.MIN_VALUE has 20 characters, a double's longest exact text some 800.
MAX_NUMBER_LENGTH: Final = 1_000

_TOKEN: Final = re.compile(
    r"""[ \t\r\n\f\ufeff]*+(?:
        (?P<mark>[{}\[\]:,])
      | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')
      | (?P<number>-?[0-9]++(?P<fraction>(?:\.[0-9]*+)?+(?:[eE][+-]?[0-9]++)?+)[LBSFD]?+(?![\w$.]))
      | (?P<literal>-?[A-Za-z_$][\w$]*+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SPACE: Final = re.compile(r"[ \t\r\n\f]*+")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7])|(.))", re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PLAIN_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "F": "\f"} | {
    mark: mark for mark in "\"'/\\"
}
_LITERALS: Final[dict[str, Any]] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_QUEUE: Final = frozenset(("topic", "brokerName", "queueId"))

# The innermost open object or array waits for one of these.
_KEY_OR_END, _KEY, _COLON, _MEMBER, _ITEM_OR_END, _ITEM, _COMMA_OR_END = range(7)
_MAY_END: Final = frozenset((_KEY_OR_END, _ITEM_OR_END, _COMMA_OR_END))
_CLOSED_BY: Final[dict[str, type]] = {"}": dict, "]": list}


class FastjsonError(ValueError):
    """A text that fastjson could not have written, or one beyond the reader's limits.

    Args:
        position: Index of the character in the text, from 0.
    """

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(f"{problem} at character {position}")
        self.problem = problem
        self.position = position


class _Open:
    """An object or array without its end so far."""

    __slots__ = ("container", "is_key", "key", "waits_for")

    def __init__(self, container: dict[Any, Any] | list[Any], *, is_key: bool) -> None:
        self.container = container
        self.is_key = is_key
        self.key: Any = None
        self.waits_for = _KEY_OR_END if isinstance(container, dict) else _ITEM_OR_END


def read(data: bytes | str, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read one value.

    Bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD, as in Java. Of equal keys the last one wins. A
    reference (``{"$ref": …}``) is an object like any other: no recorded answer has one.

    Raises:
        FastjsonError: The text is not fastjson.
    """
    if len(data) > max_bytes:
        raise FastjsonError(f"{len(data)} bytes, more than {max_bytes}", max_bytes)
    return _Reading(data if isinstance(data, str) else data.decode(errors="replace")).value()


class _Reading:
    """One text and the position up to which it has been read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._open: list[_Open] = []
        self._root: Any = None
        self._is_done = False

    def value(self) -> Any:
        match, text = _TOKEN.match, self._text
        while not self._is_done:
            token = match(text, self._position)
            if token is None:
                self._position = self._after_space()
                raise self._violation(
                    "the text ends too early" if self._position == len(text) else "an unknown character"
                )
            kind = token.lastgroup
            start, self._position = token.start(kind or 0), token.end()
            if kind == "mark":
                self._take_mark(token["mark"], start)
            else:
                self._take_scalar(token, start)
        if self._after_space() != len(text):
            raise FastjsonError("trailing characters after the end", self._after_space())
        return self._root

    def _after_space(self) -> int:
        found = _SPACE.match(self._text, self._position)
        return found.end() if found else self._position

    def _violation(self, problem: str, position: int | None = None) -> FastjsonError:
        return FastjsonError(problem, self._position if position is None else position)

    def _take_mark(self, mark: str, start: int) -> None:
        top = self._open[-1] if self._open else None
        waits_for = top.waits_for if top else _ITEM
        if mark in "{[":
            if waits_for in (_COLON, _COMMA_OR_END) or (mark == "[" and waits_for in (_KEY, _KEY_OR_END)):
                raise self._violation(f"{mark} out of place", start)
            if len(self._open) >= MAX_DEPTH:
                raise self._violation(f"more than {MAX_DEPTH} levels", start)
            self._open.append(_Open({} if mark == "{" else [], is_key=waits_for in (_KEY, _KEY_OR_END)))
        elif top is None:
            raise self._violation(f"{mark} out of place", start)
        elif mark == ":" and waits_for == _COLON:
            top.waits_for = _MEMBER
        elif mark == "," and waits_for == _COMMA_OR_END:
            top.waits_for = _KEY if isinstance(top.container, dict) else _ITEM
        elif isinstance(top.container, _CLOSED_BY.get(mark, ())) and waits_for in _MAY_END:
            self._close(start)
        else:
            raise self._violation(f"{mark} out of place", start)

    def _close(self, position: int) -> None:
        ended = self._open.pop()
        container = ended.container
        if ended.is_key:
            self._put(_as_key(container, position), position)
        else:
            self._put(container, position)

    def _put(self, value: Any, position: int) -> None:
        """Add a finished value to its container."""
        if not self._open:
            self._root, self._is_done = value, True
            return
        top = self._open[-1]
        waits_for = top.waits_for
        if isinstance(top.container, list):
            if waits_for == _COMMA_OR_END:
                raise self._violation("a comma is missing", position)
            top.container.append(value)
            top.waits_for = _COMMA_OR_END
        elif waits_for == _MEMBER:
            top.container[top.key] = value
            top.waits_for = _COMMA_OR_END
        elif waits_for in (_KEY, _KEY_OR_END):
            top.key = value
            top.waits_for = _COLON
        else:
            raise self._violation("a comma or colon is missing", position)

    def _take_scalar(self, token: re.Match[str], start: int) -> None:
        is_key = bool(self._open) and self._open[-1].waits_for in (_KEY, _KEY_OR_END)
        if (string := token["string"]) is not None:
            value: Any = self._string(string, start)
        elif (number := token["number"]) is not None:
            value = self._number(number, token["fraction"], start)
        else:
            literal = token["literal"]
            if not is_key and literal not in _LITERALS:
                raise self._violation(f"the unknown literal {literal[:20]}", start)
            value = literal if is_key else _LITERALS[literal]
        self._put(value, start)

    def _string(self, quoted: str, start: int) -> str:
        text = quoted[1:-1]
        if "\\" in text:
            text = _ESCAPE.sub(lambda escape: self._unescaped(escape, start), text)
        if _SURROGATE.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def _unescaped(self, escape: re.Match[str], start: int) -> str:
        code = escape[1] or escape[2]
        if code is not None:
            return chr(int(code, 16))
        if escape[3] is not None:
            return chr(int(escape[3]))
        plain = _PLAIN_ESCAPES.get(escape[4])
        if plain is None:
            raise self._violation("an unknown escape", start + 1 + escape.start())
        return plain

    def _number(self, number: str, fraction: str, start: int) -> int | float:
        if len(number) > MAX_NUMBER_LENGTH:
            raise self._violation(f"a number of {len(number)} characters", start)
        digits = number.rstrip("LBSFD")
        return float(digits) if fraction or number[-1] in "FD" else int(digits)


def _as_key(value: Any, position: int) -> tuple[Any, ...]:
    if value.keys() == _QUEUE:
        topic, broker_name, queue_id = value["topic"], value["brokerName"], value["queueId"]
        if isinstance(topic, str) and isinstance(broker_name, str) and type(queue_id) is int:
            return topic, broker_name, queue_id
    if any(isinstance(inner, dict | list) for inner in value.values()):
        raise FastjsonError("an object within an object that is a key", position)
    return tuple(sorted(value.items(), key=lambda pair: str(pair[0])))
