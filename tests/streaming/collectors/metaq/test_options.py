"""Where a cluster is, what of it is followed, and how the client logs in."""

from __future__ import annotations

from pydantic import SecretStr

from streaming.collectors.metaq.options import split_address
from tests.cluster_options import metaq_options


def test_addresses_and_patterns_are_as_people_write_them() -> None:
    assert split_address(" zk:2181 ") == ("zk:2181", "/meta")
    assert split_address("a:1,b:2/x/meta/") == ("a:1,b:2", "/x/meta")
    options = metaq_options(
        "zk:2181", cluster="c", include_groups=("a.*",), exclude_groups=("ab",), exclude_topics=("t",)
    )
    assert [options.follows_group(name) for name in ("a", "ab", "b")] == [True, False, False]
    assert [options.follows_topic(name) for name in ("t", "tt")] == [False, True]
    assert "secret" not in repr(metaq_options("zk", cluster="c", sasl={"password": SecretStr("secret")}))


def test_a_client_logs_in_with_the_secrets_themselves() -> None:
    options = metaq_options(
        "zk:2181",
        cluster="c",
        session_timeout_ms=2_500,
        auth={"digest": SecretStr("user:hush"), "a": SecretStr("b")},
        sasl={"mechanism": SecretStr("DIGEST-MD5"), "password": SecretStr("hush")},
    )
    assert options.client_settings() == {
        "hosts": "zk:2181",
        "timeout": 2.5,
        "read_only": False,
        "auth_data": [("a", "b"), ("digest", "user:hush")],
        "sasl_options": {"mechanism": "DIGEST-MD5", "password": "hush"},
    }


def test_without_a_login_none_is_tried() -> None:
    settings = metaq_options("zk", cluster="c").client_settings()
    assert (settings["auth_data"], settings["sasl_options"], "use_ssl" in settings) == (None, None, False)


def test_certificates_are_checked_unless_that_is_switched_off() -> None:
    files = {"tls_ca": "/ca", "tls_certificate": "/me", "tls_key": "/key"}
    settings = metaq_options("zk", cluster="c", tls=True, **files, tls_key_password=SecretStr("hush")).client_settings()
    assert (settings["use_ssl"], settings["verify_certs"], settings["check_hostname"]) == (True, True, True)
    assert [settings[name] for name in ("ca", "certfile", "keyfile", "keyfile_password")] == [
        "/ca",
        "/me",
        "/key",
        "hush",
    ]
    trusting = metaq_options("zk", cluster="c", tls=True, tls_verify=False).client_settings()
    assert (trusting["verify_certs"], trusting["check_hostname"], trusting["ca"]) == (False, False, None)
