"""Shell: texts of messages from users' templates, in a sandbox. No I/O."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from streaming.alerts.notices import Bundle

LONGEST_TITLE = 250
LONGEST_TEXT = 3_000
# Ids may be longer than the addresses that receivers accept.
LONGEST_LINK = 2_000
# Ids are values and never part of a template; users' templates may neither reach Python nor change values.
_SANDBOX = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_CONTROL = re.compile(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]")


class Templates:
    """The title and text of messages.

    Args:
        title, text: Templates; they get ``findings``, ``status``, ``severity``, ``cluster``, ``group_id``, ``link``.
        link: Address of the pages; empty for none.

    Raises:
        ValueError: One of them is not a template.
    """

    def __init__(self, title: str, text: str, link: str = "") -> None:
        self._link = link
        try:
            self._title, self._text = _SANDBOX.from_string(title), _SANDBOX.from_string(text)
        except TemplateError as error:
            raise ValueError(f"is not a template: {error}") from error

    def of(self, bundle: Bundle) -> tuple[str, str]:
        """Return title (one line) and text of a message, without control characters, cut.

        A failing template yields the kinds of the findings instead, so that no alert is lost.
        """
        first = bundle.notices[0]
        values = {
            "findings": [notice.shown() for notice in bundle.notices],
            "status": bundle.status,
            "severity": bundle.severity,
            "cluster": first.cluster,
            "group_id": first.group_id,
            "link": self.link(bundle),
        }
        try:
            title, text = self._title.render(values), self._text.render(values)
        except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
            title = f"{bundle.status}: {', '.join(sorted({notice.kind for notice in bundle.notices}))}"
            text = f"The template of alerts failed: {type(error).__name__}"
        return _plain(" ".join(title.split()), LONGEST_TITLE), _plain(text.strip(), LONGEST_TEXT)

    def link(self, bundle: Bundle) -> str:
        """Return the address of the page of a message's group, or of its cluster's findings; empty without pages."""
        cluster, group, _ = bundle.notices[0].key
        path, place = ("group", {"cluster": cluster, "group": group}) if group else ("findings", {"cluster": cluster})
        link = f"{self._link.rstrip('/')}/{path}?{urlencode(place, errors='replace')}"
        return link if self._link and len(link) <= LONGEST_LINK else self._link


def _plain(text: str, longest: int) -> str:
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= longest else text[: longest - 1] + "…"
