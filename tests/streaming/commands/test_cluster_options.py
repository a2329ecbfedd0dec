"""`run` and `collect` turn the options that name live clusters into settings, or report every mistake at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.commands.cluster_options import ClusterOptions
from streaming.settings.errors import SettingsError
from streaming.settings.model import load
from tests.kit.processes import free_port


def options(clusters: list[str], *, groups: list[str] | None = None, **addresses: str) -> ClusterOptions:
    return ClusterOptions(
        {system: addresses.get(system) for system in ("kafka", "rocketmq", "metaq")},
        clusters,
        include_groups=groups or [],
        exclude_groups=[],
        include_topics=[],
        exclude_topics=[],
        kafka_options=[],
    )


def test_a_name_is_that_of_the_cluster_that_is_followed() -> None:
    settings = load(None, options(["orders"], rocketmq="a:1;b", groups=["g.*"]).settings)
    assert settings.followed() == {"rocketmq": "orders"}
    assert settings.rocketmq.include_groups == ("g.*",)
    assert settings.kafka.include_groups == (".*",)


def test_several_clusters_are_followed_each_under_its_name() -> None:
    live = options(["metaq=old", "kafka=shop"], kafka="h:9092", metaq="z:2181/root")
    assert not live.mistakes
    settings = load(None, live.settings)
    assert settings.followed() == {"kafka": "shop", "metaq": "old"}
    assert settings.metaq.zookeeper == "z:2181/root"


def test_a_name_may_hold_an_equals_sign() -> None:
    assert load(None, options(["a=b"], kafka="h:1").settings).followed() == {"kafka": "a=b"}


@pytest.mark.parametrize(
    ("system", "address"),
    [
        *(("rocketmq", address) for address in ("h:0", "h:99999", "h:port", "h h", ";", "a;;b", "http://h")),
        *(("metaq", address) for address in ("h:0", "a,,b:1", "a b/root")),
        *(("kafka", address) for address in ("h", "h:99999", "a:1,b", "h h:1", "h:1/topic", "ssl://h", ",")),
    ],
)
def test_an_invalid_address_is_refused(system: str, address: str) -> None:
    with pytest.raises(SettingsError, match="is not HOST:PORT") as caught:
        load(None, options(["c"], **{system: address}).settings)
    assert len(caught.value.mistakes) == 1


@pytest.mark.parametrize(
    ("system", "address"),
    [
        *(("rocketmq", address) for address in ("h", "h:1", "10.0.0.1:9876", "a:1;b:2", "a,b", "[::1]:9876")),
        *(("metaq", address) for address in ("h", "zk.example/a/b", "a:1,b:2/meta")),
        *(("kafka", address) for address in ("h:1", "a:1, b:2", "SASL_SSL://h:1", "[::1]:9092")),
    ],
)
def test_addresses_are_taken_as_people_write_them(system: str, address: str) -> None:
    assert load(None, options(["c"], **{system: address}).settings).followed() == {system: "c"}


def test_a_name_for_no_cluster_and_a_second_name_are_mistakes() -> None:
    assert "add --metaq" in options(["kafka=a", "metaq=b"], kafka="h:1").mistakes[0]
    assert "already has a name" in options(["a", "b"], kafka="h:1").mistakes[0]
    assert "already has a name" in options(["a", "kafka=b"], kafka="h:1").mistakes[0]


@pytest.mark.parametrize(
    ("arguments", "mistakes"),
    [
        ("collect", ["--out is missing", "nothing to follow"]),
        ("collect --out d --rocketmq h", ["--rocketmq needs --cluster NAME"]),
        (
            "collect --out d --rocketmq h --kafka h:1 --cluster c",
            ["one cluster at a time", "ambiguous", "needs --clus"],
        ),
        ("collect --out kafka:t --metaq h --cluster c", ["the broker is missing"]),
        ("collect --out kafka:t --metaq h --kafka h:1 --rocketmq r", ["one cluster at a time: --rocketmq or --metaq"]),
        ("collect --out kafka:h:1/t* --kafka h:1", ["not a valid topic name", "--kafka needs --cluster NAME"]),
        ("collect --out d --kafka h:1 --cluster c --include-topic t", ["go with --rocketmq or --metaq"]),
        (
            "collect --rocketmq h:x --include-group ( --kafka-option k",
            [*"(", "--out is missing", "h:x", "KEY=VALUE", "NAME"],
        ),
        ("collect --out d --kafka-log no-such-file", ["--kafka-log needs --cluster NAME", "there is no such file"]),
        (
            "collect --out kafka:t --kafka-log - --kafka-log * --cluster c",
            ["- cannot be combined", "the broker is missing"],
        ),
        ("collect --out d --kafka-log - --metaq h --cluster c", ["--kafka-log needs --kafka, or no cluster at all"]),
        (
            "run --kafka h:1 --kafka-log no-such-file --kafka-log -",
            ["there is no such file", "- cannot be combined", "NAME"],
        ),
        ("run --metaq h --cluster c --kafka-log -", ["--kafka-log needs --kafka"]),
        ("run --kafka-events h:1/t --kafka-log s3://bucket/server.log", ["--kafka-log needs --kafka"]),
        ("run --kafka h:1 --cluster c --kafka-log s3://bucket/server.log", ["is on a store"]),
        ("run --rocketmq h --metaq z --cluster rocketmq=c --cluster metaq=c", ["names 2 clusters"]),
        ("simulate --out /dev/null --duration x", ["--out: /dev/null is not a folder", "--duration"]),
    ],
)
def test_every_mistake_is_named_at_once(arguments: str, mistakes: list[str], complaint: Callable[..., str]) -> None:
    text = complaint(*arguments.split())
    assert [mistake for mistake in mistakes if mistake not in text] == []


def test_logs_of_the_settings_belong_to_kafka_alone(tmp_path: Path, complaint: Callable[..., str]) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text('[kafka]\nbootstrap_servers = "h:1"\ncluster = "c"\nlogs = "no-such-file"\n')
    given = ["--config", str(file), "--out", str(tmp_path / "out")]
    assert "no-such-file: there is no such file" in complaint("collect", *given)
    assert "no-such-file" not in complaint("collect", *given, "--metaq", "h")
    assert "no-such-file: there is no such file" in complaint("run", "--config", str(file))
    assert "--kafka-log" in complaint("collect", *given, "--metaq", "h", "--cluster", "c", "--kafka-log", "-")


def test_a_key_without_its_secret_is_a_mistake(tmp_path: Path, complaint: Callable[..., str]) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text('[rocketmq]\naccess_key = "user"\nname_servers = "h"\ncluster = "c"\n')
    assert "go together" in complaint("collect", "--out", str(tmp_path / "out"), "--config", str(file))


@pytest.mark.parametrize("system", ["rocketmq", "metaq"])
@pytest.mark.parametrize("command", ["run", "collect --out out"])
def test_a_cluster_that_is_not_there_is_an_error_before_anything_starts(
    system: str,
    command: str,
    tmp_path: Path,
    complaint: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"127.0.0.1:{free_port()}"
    text = complaint(*command.split(), f"--{system}", address, "--cluster", "c", exit_code=1)
    assert f"{address}: Connection refused" in text
    assert f"--{system}" in text
    assert not list(tmp_path.iterdir())
