"""Two hundred ids that somebody may have chosen: markup, quotes, controls, directions, formulas, great length."""

from __future__ import annotations

_MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></tr></table><h1>gone",
    "<svg/onload=alert(1)>",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "&#x3c;script&#x3e;",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "${7*7}",
    "<style>*{display:none}</style>",
    "<base href=//evil.example>",
    "<a href=javascript:alert(1)>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "javascript:alert(1)",
)
_QUOTES = (
    "'",
    '"',
    "`",
    "''",
    '" onmouseover="alert(1)',
    "' or '1'='1",
    "'; drop table groups; --",
    "\\'",
    "a\\",
    "%27",
    "a\\n",
)
_FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "=cmd|' /C calc'!A0",
    "\t=1",
    "\r=1",
    " =1",
    "\uff1d1+1",
    '=HYPERLINK("http://evil.example")',
)
_CONTROLS = tuple(f"a{chr(code)}b" for code in [*range(1, 32), 127, *range(128, 160, 4)])
_DIRECTIONS = tuple(
    f"abc{chr(code)}def" for code in (0x200E, 0x200F, 0x202A, 0x202B, 0x202D, 0x202E, 0x2066, 0x2067, 0x2069, 0x061C)
)
_ANSI = ("\x1b[2J", "\x1b[31mred", "\x1b]0;title\x07", "\x9b2J")
_PATHS = (
    "../../etc/passwd",
    "..%2f..",
    "/",
    "//evil.example",
    "a/b",
    "?",
    "#",
    "a?b=c&d=e#f",
    ".",
    "..",
    "%00",
    "a b",
    "a+b",
    "%",
)
_SCRIPTS = (
    "日本語",
    "العربية",
    "עברית",
    "e\u0301",
    "👩‍👩‍👧",
    "\ufeffbom",
    "\u2028line",
    "\u2029part",
    "\u200bzero",
    "\ufffd",
    "Ω≈ç√",
    "\U0001f600",
)
_LONG = ("x" * 10_000, "<b>" * 3_333, "日" * 3_333, "'" * 10_000)
_PLAIN = (
    "null",
    "None",
    "undefined",
    "NaN",
    "true",
    "0",
    " ",
    "  lead",
    "trail  ",
    "__proto__",
    "constructor",
    "\n",
    "a\nb",
    "a\r\nSet-Cookie: x=1",
)

_ALL = (*_MARKUP, *_QUOTES, *_FORMULAS, *_CONTROLS, *_DIRECTIONS, *_ANSI, *_PATHS, *_SCRIPTS, *_LONG, *_PLAIN)
# Each is of a kind of its own. The others fill pages of listings: markup with a number.
KINDS: tuple[str, ...] = tuple(dict.fromkeys(_ALL))
HOSTILE: tuple[str, ...] = (
    *KINDS,
    *(f"{_MARKUP[number % len(_MARKUP)]}{number}" for number in range(200 - len(KINDS))),
)
