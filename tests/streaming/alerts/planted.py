"""Findings and a receiver for tests of alerts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streaming.alerts.alert_engine import AlertEngine
from streaming.alerts.alert_state import AlertState
from streaming.alerts.channels import Request, channels
from streaming.alerts.delivery_error import DeliveryError
from streaming.alerts.findings_reader import CurrentFindings
from streaming.alerts.templates import Templates
from streaming.settings.alerts import Alerts
from streaming.settings.model import Widespread, load
from streaming.tables.schema import Row
from streaming.views.rebalance_costs import Cost
from streaming.views.widespread import WidespreadKind
from tests.streaming.tables.journals import T0

HOOK = "http://127.0.0.1:1/hook-SECRET"


def settings(**values: object) -> Alerts:
    """Return the section, with a webhook and without waits unless a test sets others."""
    given: dict[str, object] = {"webhook_url": HOOK, "group_wait_ms": 0, "cool_down_ms": 0, **values}
    return load(overrides={f"alerts.{name}": value for name, value in given.items()}).alerts


def widespread() -> Widespread:
    """Return the section as it is by default."""
    return load().widespread


def finding(name: str, *, group: str | None = "orders", kind: str = "duplicate_ids", **more: object) -> Row:
    """Return an open finding."""
    return {
        "finding_id": name,
        "cluster": "c1",
        "group_id": group,
        "kind": kind,
        "severity": "critical",
        "message": f"Message of {name}.",
        "advice": "Advice.",
        "opened_at": T0,
        "closed_at": None,
        **more,
    }


class Receiver:
    """Takes requests, or refuses them while `refuses` is set.

    Attributes:
        taken: What was accepted. refuses: Why the next ones are refused; None: they are accepted.
    """

    def __init__(self) -> None:
        self.taken: list[Request] = []
        self.attempts = 0
        self.refuses: DeliveryError | None = None

    def __call__(self, request: Request) -> None:
        self.attempts += 1
        if self.refuses is not None:
            raise self.refuses
        self.taken.append(request)

    def statuses(self) -> list[tuple[str, list[str]]]:
        """Return status and findings of each message to the webhook, and forget them."""
        bodies: list[Any] = [request.body for request in self.taken if request.channel == "webhook"]
        self.taken.clear()
        return [(body["status"], [row["finding_id"] for row in body["findings"]]) for body in bodies]


class Scene:
    """An engine at a time that a test moves, with the findings that it sees."""

    def __init__(self, state: AlertState | None = None, **values: object) -> None:
        self.now_ms = T0
        self.receiver = Receiver()
        self.settings = settings(**values)
        texts = Templates(self.settings.title, self.settings.text, self.settings.link)
        found = channels(self.settings, texts)
        self.costs: dict[str, Cost] = {}
        self.costs_read: list[str] = []
        self.annotations: dict[str, list[Row]] = {}
        self.annotations_read: list[str] = []
        self.engine = AlertEngine(
            self.settings,
            widespread(),
            found,
            self.receiver,
            state or AlertState(None),
            lambda: self.now_ms,
            read_costs=self._read_costs,
            read_annotations=self._read_annotations,
        )
        self.current: dict[str, Row] = {}
        self.closed: dict[str, Row] = {}
        self.missing: set[str] = set()
        self.many: list[WidespreadKind] = []

    def _read_costs(self, findings: Iterable[Row]) -> Mapping[str, Cost]:
        names = [row["finding_id"] for row in findings]
        self.costs_read += names
        return {name: self.costs[name] for name in names if name in self.costs}

    def _read_annotations(self, findings: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
        names = [row["finding_id"] for row in findings]
        self.annotations_read += names
        return {name: self.annotations[name] for name in names if name in self.annotations}

    def open(self, *rows: Row) -> None:
        """Open findings."""
        self.current |= {row["finding_id"]: row for row in rows}

    def close(self, *names: str) -> None:
        """Close findings now."""
        for name in names:
            self.closed[name] = {**self.current.pop(name), "closed_at": self.now_ms}

    @property
    def findings(self) -> CurrentFindings:
        """Return the findings that the table now has."""
        return CurrentFindings(self.current, self.closed, self.missing, self.many)

    def step(self, after_ms: int = 0) -> list[tuple[str, list[str]]]:
        """Move the time, let the engine work, and return what the webhook got."""
        self.now_ms += after_ms
        self.engine.step(self.findings)
        return self.receiver.statuses()


def bodies(requests: Sequence[Request], channel: str) -> list[Mapping[str, Any]]:
    """Return the bodies of requests to one channel."""
    return [request.body for request in requests if request.channel == channel and isinstance(request.body, Mapping)]
