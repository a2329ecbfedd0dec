"""Messages by apprise, as they arrive at receivers on loopback ports."""

from __future__ import annotations

import contextlib
import logging
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from pathlib import Path

import pytest
from apprise.plugins import pagerduty

from streaming.alerts.alert_state import AlertState
from streaming.alerts.channels import Message
from streaming.alerts.delivery import open_delivery
from streaming.alerts.delivery_error import DeliveryError
from streaming.views.rebalance_costs import Cost
from tests.streaming.alerts.hook import Hook
from tests.streaming.alerts.planted import Scene, finding, settings

LINK = "https://monitor.example"
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
# An address of each service, and the attribute in which its class keeps the server's address.
SERVICES = {
    "slack": (SLACK, "slack.NotifySlack.webhook_url", ""),
    "dingtalk": (f"dingtalk://{'a1' * 32}", "dingtalk.NotifyDingTalk.notify_url", "/send?access_token={token}"),
    "feishu": (f"feishu://{'a1' * 18}", "feishu.NotifyFeishu.notify_url", "/hook/{token}"),
    "wecom": (
        "wecombot://a1b2c3d4-0000-0000-0000-000000000000",
        "wecombot.NotifyWeComBot.notify_url",
        "/send?key={key}",
    ),
}


@pytest.fixture
def service(hook: Hook, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Return the address of a service whose server is the hook."""
    address, attribute, path = SERVICES[request.param]
    monkeypatch.setattr(f"apprise.plugins.{attribute}", hook.url + path)
    hook.content = b"ok" if request.param == "slack" else b"{}"
    return f"{address}?fresh={hook.server_port}"


def message(url: str, title: str = "a title", text: str = "a text", kind: str = "failure") -> Message:
    return Message("chat", "id-1", {"title": title, "text": text, "type": kind}, url)


def send(sent: Message, **values: object) -> None:
    with open_delivery(settings(**values)) as deliver:
        deliver(sent)


def sending(path: Path | None, *urls: str, **values: object) -> Iterator[Scene]:
    """Return a scene whose messages are really sent."""
    channels = {f"chat{number}": url for number, url in enumerate(urls)}
    scene = Scene(AlertState(path), webhook_url="", channels=channels, **values)
    with open_delivery(scene.settings) as deliver:
        scene.engine._deliver = deliver
        yield scene


def refusal(sent: Message) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        send(sent)
    return caught.value


def test_a_message_has_names_since_when_the_costs_and_a_link_to_the_page(hook: Hook) -> None:
    for scene in sending(None, f"json://{hook.host}/", link=LINK):
        scene.costs["f"] = Cost(12, 30_000, 45_000, 0, 1200, 0, 5678, 0)
        scene.open(finding("f", message="Clients on hosts 10.0.0.1 and 10.0.0.2 share the id a.", group="or&ders"))
        scene.step()
        scene.close("f")
        scene.step(5_000)
    opened, closed = (body for _, _, body in hook.bodies)
    assert opened["title"] == "critical: duplicate_ids opened in or&ders (c1)"
    assert opened["message"].splitlines() == [
        f"{LINK}/group?cluster=c1&group=or%26ders",
        "opened: Clients on hosts 10.0.0.1 and 10.0.0.2 share the id a. Advice. (since 2026-01-01T00:00:00.000Z)"
        f" In the hour before: {scene.costs['f'].text}.",
    ]
    assert (opened["type"], closed["type"]) == ("failure", "success")
    assert closed["title"] == "critical: duplicate_ids closed in or&ders (c1)"


@pytest.mark.parametrize("service", SERVICES, indirect=True)
def test_services_get_the_words_and_no_id_calls_people(hook: Hook, service: str) -> None:
    for scene in sending(None, service):
        scene.open(finding("f", group="<!channel> <@U1> @everyone 10.0.0.1@77"))
        scene.step()
    ((_, headers, body),) = hook.bodies
    assert headers["User-Agent"] == "rebalance-monitor"
    assert "Message of f. Advice." in str(body)
    assert "@everyone" not in str(body)
    assert "<@U1>" not in str(body)
    assert "10.0.0.1@77" in str(body)
    assert "slack" not in service or "&lt;!channel&gt;" in str(body)


@pytest.mark.parametrize("service", ["wecom"], indirect=True)
def test_a_text_that_is_longer_than_a_service_takes_is_cut(hook: Hook, service: str) -> None:
    send(message(service, text="x" * 3_000))
    ((_, _, body),) = hook.bodies
    assert len(body["text"]["content"]) == 2_048


def test_an_incident_of_pagerduty_is_resolved_by_the_key_of_its_finding(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pagerduty.PAGERDUTY_API_LOOKUP, "us", f"{hook.url}/v2/enqueue")
    monkeypatch.setattr(pagerduty.NotifyPagerDuty, "request_rate_per_sec", 0)
    for scene in sending(None, f"pagerduty://{'I' * 32}@{'A' * 20}/?action=map&dedup={{finding}}"):
        scene.open(finding("f"), finding("g", severity="warning"))
        scene.step()
        scene.close("f")
        scene.step(1_000)
    first, second, third = (body for _, _, body in hook.bodies)
    assert [event["event_action"] for event in (first, second, third)] == ["trigger", "trigger", "resolve"]
    assert first["dedup_key"] == third["dedup_key"] != second["dedup_key"]
    assert (first["payload"]["severity"], second["payload"]["severity"]) == ("critical", "warning")
    assert "Message of f." in first["payload"]["summary"]
    assert "Message of g." not in first["payload"]["summary"]


class _Mailbox(socketserver.TCPServer):
    mails: list[bytes]


class _Smtp(socketserver.StreamRequestHandler):
    server: _Mailbox

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for line in self.rfile:
            command = line[:4].upper()
            self.wfile.write({b"DATA": b"354 go\r\n", b"QUIT": b"221 bye\r\n"}.get(command, b"250 ok\r\n"))
            if command == b"DATA":
                self.server.mails.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                self.wfile.write(b"250 taken\r\n")


def test_a_mail_arrives() -> None:
    with _Mailbox(("127.0.0.1", 0), _Smtp) as server:
        server.mails = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"127.0.0.1:{server.server_address[1]}?from=monitor@example.com&to=oncall@example.com"
        send(message(f"mailto://{place}", "critical: lag opened", "Message of <f>."))
        server.shutdown()
    (raw,) = server.mails
    mail = message_from_bytes(raw, policy=policy.default)
    assert (mail["subject"], mail["to"]) == ("critical: lag opened", "oncall@example.com")
    body = mail.get_body()
    assert body is not None
    assert "Message of <f>." in body.get_content()


@pytest.mark.parametrize(("status", "is_refusal"), [(400, True), (404, True), (429, False), (500, False), (302, False)])
def test_the_status_of_an_answer_says_if_it_is_about_the_message(hook: Hook, status: int, is_refusal: bool) -> None:
    hook.answers = [(status, {"Location": f"{hook.url}/elsewhere"})]
    error = refusal(message(f"json://{hook.host}/{status}?retry=3&optional=yes"))
    assert (str(error), error.is_refusal) == (f"HTTP {status}", is_refusal)
    assert len(hook.bodies) == 1


def test_a_service_that_does_not_answer_failed() -> None:
    error = refusal(message("json://127.0.0.1:1/SECRET"))
    assert (error.is_refusal, "SECRET" in str(error)) == (False, False)


@pytest.mark.parametrize(("service", "is_noticed"), [("feishu", True), ("dingtalk", False)], indirect=["service"])
def test_apprise_does_not_notice_what_dingtalk_refuses_with_status_200(
    hook: Hook, service: str, is_noticed: bool
) -> None:
    """Check what docs/alerts.md says of apprise; if apprise learns it and this fails, change the page."""
    hook.content = b'{"code": 9499, "errcode": 310000, "errmsg": "keywords not in content"}'
    for scene in sending(None, service):
        scene.open(finding("f"))
        scene.step()
        assert bool(scene.engine.state.open_findings) is not is_noticed


def test_a_failing_channel_loses_and_repeats_nothing_also_after_a_restart(hook: Hook, tmp_path: Path) -> None:
    path, url = tmp_path / "alerts.json", f"json://{hook.host}/restart"
    hook.answers = [(500, {})] * 2
    for before in sending(path, url):
        before.open(finding("f"))
        before.step()
        before.step(1_000)
    for after in sending(path, url):
        after.open(finding("f"))
        after.step()
        after.step(10_000)
    for last in sending(path, url):
        last.open(finding("f"))
        last.close("f")
        last.step()
        last.step(10_000)
    assert [body["type"] for _, _, body in hook.bodies] == ["failure", "failure", "failure", "success"]


def test_no_log_and_no_output_shows_the_address(
    hook: Hook, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    hook.answers = [(200, {}), (500, {})]
    for number in (1, 2):
        sent = message(f"json://SECRET:SECRET@{hook.host}/SECRET?+token=SECRET{number}")
        assert "SECRET" not in f"{sent!r} {sent.shown()}"
        with contextlib.suppress(DeliveryError):
            send(sent)
    assert len(hook.bodies) == 2
    assert "SECRET" not in caplog.text + "".join(capfd.readouterr())


def test_the_proxy_of_the_environment_is_used(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", hook.url)
    send(message("json://receiver.invalid/path"))
    assert [path for path, _, _ in hook.bodies] == ["http://receiver.invalid/path"]


def test_services_that_limit_how_often_one_sends_get_one_message_a_step(hook: Hook) -> None:
    for scene in sending(None, f"json://{hook.host}/many"):
        scene.open(*(finding(name, group=name) for name in "abc"))
        for sent in (1, 2, 3, 3):
            scene.step()
            assert len(hook.bodies) == sent


def test_apprise_is_imported_by_those_alone_who_have_such_a_channel() -> None:
    loads = "import sys; from streaming.settings.model import load; from streaming.alerts import service"
    script = f"{loads}; service.is_configured(load().alerts); print('apprise' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
