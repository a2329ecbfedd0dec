"""The outputs that a reader sees: `check`, `/metrics`, the API, a page and alerts, each run as users run it."""

from __future__ import annotations

import html
import http.server
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2

from tests.job.commands import MONITOR, Running
from tests.kit.processes import wait_until

CLUSTER = "shop"
_ROOT = Path(__file__).parents[2]
# All severe findings of a cluster that holds nothing but groups at rest are of knowledge.
_CHECK = ["check", "--ignore", "idle_members"]
_CHECK_TIMEOUT_S, _ANSWER_TIMEOUT_S, _START_TIMEOUT_S = 300, 30, 300
_KNOWLEDGE = re.compile(r'data-knowledge="(\w+)"')
_NOTICE = re.compile(r'<p class="notice blind">(.*?)</p>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Said:
    """All outputs at one moment.

    Attributes:
        exit_code, line, check_s: Of `check`, and how long it took.
        known, alive, groups: `source_known` and `jobs_alive` of `/metrics`, and how many groups that has; None: none.
        state, health: Of the cluster in `/api/v1/liveness`, and of its groups in `/api/v1/groups`.
        page, notice: The word and the first sentence of the first page.
        alerts: The kinds that are open, by the messages that a webhook got.
    """

    exit_code: int
    line: str
    check_s: float
    known: float | None
    alive: float | None
    groups: int
    state: str
    health: Sequence[str]
    page: str
    notice: str
    alerts: Sequence[str]

    @property
    def ok(self) -> list[str]:
        """Return the outputs that say that all is well, or show the present as if it were known."""
        # A partly known cluster may have groups that are known.
        is_partial = self.state == "partly_known"
        states = {
            "check": self.exit_code == 0,
            "metrics": self.known == 1 or (self.groups > 0 and not is_partial),
            "API": self.state in ("known", "recording") or ("ok" in self.health and not is_partial),
            "page": self.page in ("live", "recording"),
        }
        return [name for name, is_ok in states.items() if is_ok]

    @property
    def silent(self) -> list[str]:
        """Return who does not say that all is well."""
        return [name for name in ("check", "metrics", "API", "page") if name not in self.ok]


class _Webhook(http.server.ThreadingHTTPServer):
    """Takes the messages of alerts, and keeps which findings are open."""

    def __init__(self) -> None:
        self.open: dict[str, str] = {}
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def close(self) -> None:
        """End it, and give its port back."""
        self.shutdown()
        self.server_close()

    def take(self, message: Mapping[str, Any]) -> None:
        """Note which findings a message opens and closes."""
        for finding in message["findings"]:
            if finding["status"] == "opened":
                self.open[finding["finding_id"]] = finding["kind"]
            else:
                self.open.pop(finding["finding_id"], None)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Webhook

    def do_POST(self) -> None:
        self.server.take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass
class Reader:
    """Pages, API, metrics and alerts of one `serve`, and `check`, over the same tables.

    Attributes:
        tables: A folder, or a URI. folder: For logs, and for what alerts remember.
        settings: What they have in their environment. within: A command that becomes each of them.
    """

    tables: str
    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    within: Sequence[str] = ()

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._webhook = _Webhook()
        self._environment = {
            # The same kind may come again soon.
            "REBALANCE_MONITOR_ALERTS__COOL_DOWN_MS": "0",
            "REBALANCE_MONITOR_ALERTS__WEBHOOK_URL": self._webhook.url,
            "REBALANCE_MONITOR_ALERTS__STATE_FILE": str(self.folder / "alerts.json"),
            "REBALANCE_MONITOR_LOG__FORMAT": "text",
            **self.settings,
        }
        self._monitor = [*self.within, *MONITOR]
        self._start_serving()
        wait_until(self._serves, "pages are served", _START_TIMEOUT_S)
        self._url = self._serve.stderr().partition("pages: ")[2].split()[0].rstrip("/")
        self._client = httpx2.Client(timeout=_ANSWER_TIMEOUT_S, trust_env=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._serve.kill()
        self._webhook.close()

    def _start_serving(self) -> None:
        command, stderr = ["serve", "--tables", self.tables, "--port", "0"], self.folder / "serve.txt"
        self._serve = Running(command, stderr, monitor=self._monitor, environment=self._environment)

    def _serves(self) -> bool:
        """Return whether pages are served; it ends while the job has not made the tables yet."""
        if not self._serve.is_running:
            self._serve.kill()
            time.sleep(1)
            self._start_serving()
        return "pages: " in self._serve.stderr()

    def state(self) -> str:
        """Return the state of the cluster in `/api/v1/liveness`."""
        clusters = self._json("/api/v1/liveness").get("clusters", ())
        return next((row["state"] for row in clusters if row["cluster"] == CLUSTER), "none")

    def seems_well(self) -> bool:
        """Return whether the API says so, and nothing is alerted."""
        return self.state() == "known" and not self._webhook.open

    def seems_blind(self) -> bool:
        """Return whether the API does not show the present."""
        return self.state() not in ("known", "recording")

    def has_alerted(self, kind: str) -> bool:
        """Return whether a finding of this kind is open, by the messages that the webhook got."""
        return kind in self._webhook.open.values()

    def said(self) -> Said:
        """Return what is said now."""
        page = self._get("/")
        knowledge = _KNOWLEDGE.search(page)
        notices = [html.unescape(_TAG.sub("", found)).strip() for found in _NOTICE.findall(page)]
        state, groups = self.state(), self._json(f"/api/v1/groups?cluster={CLUSTER}")
        metrics = self._get("/metrics")
        # Where it has turned partly known meanwhile, the metrics may have groups.
        if (later := self.state()) == "partly_known":
            state = later
        exit_code, line, took_s = self._check()
        return Said(
            exit_code,
            line,
            took_s,
            _sample(metrics, f'source_known{{cluster="{CLUSTER}"}}'),
            _sample(metrics, "jobs_alive"),
            len(re.findall(rf'^rebalance_monitor_group_members{{cluster="{CLUSTER}"', metrics, re.MULTILINE)),
            state,
            sorted({row["health"] for row in groups.get("rows", ())}),
            knowledge.group(1) if knowledge else "none",
            notices[0] if notices else "",
            sorted(set(self._webhook.open.values())),
        )

    def _check(self) -> tuple[int, str, float]:
        began = time.monotonic()
        done = subprocess.run(
            [*map(str, self._monitor), *_CHECK, "--tables", self.tables],
            cwd=_ROOT,
            env=os.environ | {"PYTHONPATH": str(_ROOT)} | self._environment,
            capture_output=True,
            text=True,
            timeout=_CHECK_TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout.split(" | ")[0].strip(), time.monotonic() - began

    def _get(self, path: str) -> str:
        try:
            return self._client.get(f"{self._url}{path}").text
        except httpx2.HTTPError:
            return ""

    def _json(self, path: str) -> dict[str, Any]:
        try:
            found = json.loads(self._get(path))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def _sample(metrics: str, name: str) -> float | None:
    found = re.search(rf"^rebalance_monitor_{re.escape(name)} (\S+)$", metrics, re.MULTILINE)
    return float(found.group(1)) if found else None
