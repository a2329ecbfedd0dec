"""Layers of settings, and the layer that set each value last."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.settings.layers import Origins, merge_layer, read_dotted, read_environment, read_file


def test_each_setting_comes_from_the_last_layer_that_gives_it() -> None:
    origins: Origins = {}
    merged = {"job": {"tables": "a", "shards": 1}, "log": {"level": "info"}}
    merge_layer(merged, {"job": {"tables": "b"}, "new": {"key": 1}}, "the file", origins)
    merge_layer(merged, {"job": {"tables": "c"}, "log": 3}, "the command line", origins)
    assert merged == {"job": {"tables": "c", "shards": 1}, "log": 3, "new": {"key": 1}}
    assert origins["job", "tables"] == "the command line"
    assert origins["new", "key"] == "the file"
    assert ("job", "shards") not in origins


def test_variables_of_other_programs_are_no_settings() -> None:
    mistakes: list[str] = []
    variables = {"REBALANCE_MONITOR_JOB__TABLES": "t", "HOME": "/", "REBALANCE_MONITOR_CACHE": "c"}
    assert read_environment(variables, mistakes) == {"job": {"tables": "t"}}
    assert mistakes == []


def test_names_of_properties_keep_their_dots_from_a_file_and_from_variables(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[kafka.options]\nssl.ca.location = "/ca"\n"sasl.mechanism" = "PLAIN"\n')
    expected = {"kafka": {"options": {"ssl.ca.location": "/ca", "sasl.mechanism": "PLAIN"}}}
    assert read_file(file, []) == expected
    prefix = "REBALANCE_MONITOR_KAFKA__OPTIONS__"
    variables = {f"{prefix}SSL__CA__LOCATION": "/ca", f"{prefix}SASL__MECHANISM": "PLAIN"}
    assert read_environment(variables, []) == expected
    dotted = {"kafka.options.ssl.ca.location": "/ca", "kafka.options.sasl.mechanism": "PLAIN"}
    assert read_dotted(dotted) == expected


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        (b"[job\n", "is not TOML"),
        (b"\xff\xfe", "is not in UTF-8"),
        (b"tables = 1\n", "tables: belongs to no section"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_empty_layer_and_a_mistake(
    content: bytes | None, mistake: str, tmp_path: Path
) -> None:
    file, mistakes = tmp_path / "a.toml", []
    if content is not None:
        file.write_bytes(content)
    assert read_file(file, mistakes) == {}
    assert len(mistakes) == 1
    assert mistakes[0].startswith(f"{file}: ")
    assert mistake in mistakes[0]


def test_options_left_out_on_the_command_line_override_nothing() -> None:
    assert read_dotted({"job.tables": None, "job.shards": 0}) == {"job": {"shards": 0}}
