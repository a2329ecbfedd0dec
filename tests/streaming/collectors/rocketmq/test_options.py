"""Where a RocketMQ cluster is, what of it is followed, and how the client logs in."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from pydantic import SecretStr

from streaming.collectors.rocketmq.options import RocketMqOptions, name_servers_of
from streaming.setup.errors import SetupError
from tests.cluster_options import rocketmq_options


def options(**more: object) -> RocketMqOptions:
    return rocketmq_options("a", "b:1", cluster="c", **more)


def test_addresses_are_read_as_rocketmqs_own_tools_read_them() -> None:
    assert name_servers_of(" a ;b:1,,c; ") == ("a", "b:1", "c")
    assert options().addresses() == ("a:9876", "b:1")
    assert rocketmq_options("[::1]", "[::1]:5", cluster="c").addresses() == ("[::1]:9876", "[::1]:5")


def test_a_proxy_is_queried_once_at_its_remoting_port() -> None:
    assert options(proxies=("p", "q:1;p:8080")).proxy_addresses == ("p:8080", "q:1")
    assert options().proxy_addresses == ()


@pytest.mark.parametrize(
    "name", ["TOOLS_CONSUMER", "CID_RMQ_SYS_TRANS", "CID_ONSAPI_PULL", "SELF_TEST_C_GROUP", "DEFAULT_PRODUCER"]
)
def test_groups_of_the_brokers_own_are_left_out_unless_they_are_wanted(name: str) -> None:
    assert not options().follows_group(name)
    assert options(system_names=True).follows_group(name)
    assert options().follows_group(f"my-{name}")


def test_a_retry_topic_is_followed_with_its_group() -> None:
    chosen = options(include_groups=("billing.*",), exclude_groups=("billing-test",), exclude_topics=("%RETRY%.*", "t"))
    followed = {
        name: chosen.follows_topic(name) for name in ("%RETRY%billing", "%RETRY%billing-test", "%RETRY%x", "t", "u")
    }
    assert followed == {"%RETRY%billing": True, "%RETRY%billing-test": False, "%RETRY%x": False, "t": False, "u": True}
    assert not options().follows_topic("rmq_sys_wheel_timer")


def test_a_pattern_is_for_whole_names() -> None:
    assert [options(include_groups=("a",)).follows_group(name) for name in ("a", "ab", "ba")] == [True, False, False]


def test_limits_are_in_seconds_and_a_login_needs_both_halves() -> None:
    limits = options(broker_timeout_ms=1_500, client_timeout_ms=250, requests_in_flight=3, relayed_in_flight=2).limits()
    assert (limits.request_timeout_s, limits.connect_timeout_s, limits.relayed_timeout_s) == (1.5, 1.5, 0.25)
    assert (limits.requests_in_flight, limits.relayed_in_flight) == (3, 2)
    assert options(access_key="me").credentials() is None
    login = options(access_key="me", secret_key=SecretStr("hush"), security_token=SecretStr("token"))
    credentials = login.credentials()
    assert credentials is not None
    assert (credentials.access_key, credentials.secret_key, credentials.security_token) == ("me", "hush", "token")
    assert "hush" not in repr(login)


def test_certificates_are_checked_unless_that_is_switched_off(tls_of_this_machine: tuple[Path, Path]) -> None:
    own, authority = tls_of_this_machine
    assert options().ssl_context() is None
    checking = options(tls=True, tls_ca=str(authority), tls_certificate=str(own)).ssl_context()
    trusting = options(tls=True, tls_verify=False).ssl_context()
    assert checking is not None
    assert trusting is not None
    assert (checking.verify_mode, checking.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (trusting.verify_mode, trusting.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize("setting", ["tls_ca", "tls_certificate"])
def test_a_file_that_is_no_certificate_is_an_error_with_its_remedy(setting: str, tmp_path: Path) -> None:
    for name in ("absent.pem", "text.pem"):
        (tmp_path / "text.pem").write_text("no certificate")
        with pytest.raises(SetupError, match="the TLS files of c cannot be used") as caught:
            options(tls=True, **{setting: str(tmp_path / name)}).ssl_context()
        assert "tls_key must name PEM files" in caught.value.remedy
