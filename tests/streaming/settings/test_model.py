"""Settings: every mistake at once, the layers in their order, and default.toml as the whole reference."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from streaming.settings.conf_files import conf_file
from streaming.settings.errors import SettingsError
from streaming.settings.layers import is_setting
from streaming.settings.model import Settings, duration_ms, load
from udfs.model.config import CoreConfig


def write(folder: Path, text: str) -> Path:
    file = folder / "monitor.toml"
    file.write_text(text)
    return file


def test_each_setting_of_the_core_is_the_users_setting_of_that_name() -> None:
    changed = load(None, {"time.settle_ms": 7, "state.shards": 3, "session_timeouts.metaq_ms": 5}).core_config()
    assert (changed.settle_ms, changed.shards, changed.session_timeouts_ms["metaq"]) == (7, 3, 5)


def test_a_default_is_in_default_toml_alone() -> None:
    assert all(field.required for field in msgspec.structs.fields(CoreConfig))
    for section in Settings.model_fields.values():
        assert section.is_required()
        assert section.annotation is not None
        assert all(field.is_required() for field in section.annotation.model_fields.values()), section.annotation


def test_default_toml_explains_every_key() -> None:
    text = conf_file("default.toml").read_text()
    for line in text.splitlines():
        if line and not line.startswith("#"):
            assert "#" in line, f"no reason given: {line}"
    assert set(tomllib.loads(text)) == set(type(load()).model_fields)


def test_the_command_line_precedes_the_environment_and_that_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "[time]\nallowed_lateness_ms = 1\nsettle_ms = 1\nrepeat_span_ms = 1\n")
    env = {"REBALANCE_MONITOR_TIME__ALLOWED_LATENESS_MS": "2", "REBALANCE_MONITOR_TIME__SETTLE_MS": "2", "OTHER": "x"}
    time = load(file, {"time.allowed_lateness_ms": 3, "time.silence": None}, env).time
    assert (time.allowed_lateness_ms, time.settle_ms, time.repeat_span_ms, time.silence) == (3, 2, 1, "wait")


def test_every_mistake_is_named_with_its_place(tmp_path: Path) -> None:
    file = write(tmp_path, '[time]\nallowed_latenes_ms = 1\nsilence = "maybe"\n[kafka]\nexclude_groups = ["("]\n')
    with pytest.raises(SettingsError) as caught:
        load(file, {"state.shards": 0}, {"REBALANCE_MONITOR_JOB__STOP_TIMEOUT_MS": "soon"})
    text = "\n".join(caught.value.mistakes)
    assert len(caught.value.mistakes) == 5
    assert f"{file}: time.allowed_latenes_ms: there is no such setting" in text
    assert f"{file}: time.silence" in text
    assert "'(' is not a regular expression" in text
    assert "the command line: state.shards" in text
    assert "the environment: job.stop_timeout_ms" in text


def test_the_place_of_the_cache_is_no_setting_of_the_job() -> None:
    assert is_setting("REBALANCE_MONITOR_TIME__SETTLE_MS")
    assert not is_setting("REBALANCE_MONITOR_CACHE")
    assert load(env={"REBALANCE_MONITOR_CACHE": "/somewhere"}) == load()


def mistakes(folder: Path, text: str, env: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(write(folder, text), env=env)
    return caught.value.mistakes


@pytest.mark.parametrize(
    "setting",
    [
        "[time]\nallowed_lateness_ms = 99999999999999999999",
        "[time]\nallowed_lateness_ms = 9999999999999999",
        "[job]\nmax_offsets_per_batch = 9223372036854775808",
        "[job]\nmax_files_per_batch = 2147483648",
        "[limits]\nmax_event_bytes = 2147483648",
        "[tables]\nvacuum_after_hours = 10000000",
        "[job]\ntrigger_interval_ms = true",
        "[rocketmq]\nrunning_info_share = true",
        "[rocketmq]\nrunning_info_share = nan",
        '[job]\ntables = ""',
        '[job]\ncheckpoint = "a\\u0000b"',
        "job = 3",
        '[storage.options]\nregion = "eu-west-1"',
        "[kafka]\ninclude_groups = 3",
    ],
)
def test_each_invalid_value_is_one_mistake_with_its_place(setting: str, tmp_path: Path) -> None:
    (mistake,) = mistakes(tmp_path, setting)
    assert mistake.startswith(f"{tmp_path / 'monitor.toml'}: ")


@pytest.mark.parametrize("name", ["AWS_REGION", "aws_region"])
def test_options_of_stores_have_the_names_of_variables_in_whatever_case(name: str, tmp_path: Path) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text(f'[storage.options]\n{name} = "eu-west-1"\n')
    variables = {"REBALANCE_MONITOR_STORAGE__OPTIONS__AWS_ALLOW_HTTP": "true"}
    assert load(file, env=variables).storage.plain_options() == {"AWS_REGION": "eu-west-1", "AWS_ALLOW_HTTP": "true"}


def test_mistakes_of_a_broken_layer_do_not_hide_those_of_others(tmp_path: Path) -> None:
    env = {"REBALANCE_MONITOR_LOG": "x", "REBALANCE_MONITOR_LOG__LEVEL": "loud", "REBALANCE_MONITOR_LOG____A": "x"}
    output = mistakes(tmp_path, "[time", env)
    assert [mistake.split(":")[0] for mistake in output[1:]] == [
        "REBALANCE_MONITOR_LOG",
        "REBALANCE_MONITOR_LOG____A",
        "the environment",
    ]


def test_a_variable_below_another_is_a_mistake(tmp_path: Path) -> None:
    env = {"REBALANCE_MONITOR_KAFKA__OPTIONS": "x", "REBALANCE_MONITOR_KAFKA__OPTIONS__ACKS": "all"}
    assert any("REBALANCE_MONITOR_KAFKA__OPTIONS__ACKS" in mistake for mistake in mistakes(tmp_path, "", env))


def test_properties_may_be_written_without_quotes_and_as_variables(tmp_path: Path) -> None:
    text = '[kafka.options]\nsasl.mechanism = "PLAIN"\nsecurity.protocol = "SSL"\n[spark.conf]\nspark.a.b = "1"\n'
    env = {"REBALANCE_MONITOR_KAFKA__OPTIONS__SECURITY__PROTOCOL": "SASL_SSL"}
    settings = load(write(tmp_path, text), {"kafka.options.sasl.mechanism": "GSSAPI"}, env)
    assert settings.kafka.plain_options() == {"sasl.mechanism": "GSSAPI", "security.protocol": "SASL_SSL"}
    assert settings.spark.conf == {"spark.a.b": "1"}


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "windows.toml"
    file.write_bytes(b"\xef\xbb\xbf[time]\r\nsettle_ms = 7\r\n")
    assert load(file).time.settle_ms == 7


@pytest.mark.parametrize("content", [b"[time\n", b"\xff\xfe"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=r"broken\.toml"):
        load(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nowhere"):
        load(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "ms"), [("250ms", 250), ("2s", 2_000), ("1.5s", 1_500), ("10m", 600_000), ("1h", 3_600_000), ("7", 7_000)]
)
def test_spans_are_read_as_people_write_them(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 week", "1s2", "\u0661s", "36526d", "9" * 400])
def test_an_invalid_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|hundred years"):
        duration_ms(text)


def test_a_variable_lists_hosts_with_commas() -> None:
    settings = load(env={"REBALANCE_MONITOR_DASHBOARD__ALLOWED_HOSTS": "serve, job"})
    assert settings.dashboard.allowed_hosts == ("serve", "job")
