"""The image and the composition: what they start exists, and so does what they carry. No engine builds them here."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.settings.model import load
from tests.cluster.test_manifests import assert_command_exists

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name for name, service in SERVICES.items() if service["image"].startswith("rebalance-monitor:")}
# $NAME, ${NAME} and ${NAME:-default}
_DEFAULT = re.compile(r"\$\{\w+:-(.*?)\}")


def stage(name: str) -> str:
    """Return the lines of a stage of the Dockerfile."""
    (found,) = re.findall(rf"^FROM \S+ AS {name}$(.*?)(?=^FROM|\Z)", DOCKERFILE, re.MULTILINE | re.DOTALL)
    return str(found)


def variables(text: str) -> dict[str, str]:
    """Return the settings that a stage sets."""
    return dict(re.findall(r"(REBALANCE_MONITOR_\w+__\w+)=(\S+)", text))


def test_the_context_has_all_that_the_image_copies_and_the_wheel_needs() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [
        path for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for path in line.split()
    ]
    assert len(copied) > 5
    assert [path for path in copied if not (ROOT / path).exists()] == []
    assert [path for path in copied if not any(fnmatch.fnmatch(path, pattern) for pattern in allowed)] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] + project["project"]["license-files"]
    assert set(needed) <= set(copied)


@pytest.mark.parametrize("name", ["monitor", "spark"])
def test_the_image_runs_as_a_user_without_rights(name: str) -> None:
    assert re.findall(r"^USER (\S+)$", stage(name), re.MULTILINE) == ["185"]
    assert "useradd --uid 185" in DOCKERFILE


def test_the_settings_of_the_image_exist_and_write_only_to_its_volume() -> None:
    found = variables(stage("monitor"))
    assert len(found) == 3
    settings = load(env=found)
    written = [settings.job.tables, settings.job.checkpoint, settings.alerts.state_file]
    assert all(Path(str(path)).is_relative_to("/data") for path in written)
    assert "VOLUME /data\n" in stage("monitor")


def test_the_health_of_the_image_is_what_check_says() -> None:
    (command,) = re.findall(r"HEALTHCHECK .*rebalance-monitor (\w+);", DOCKERFILE)
    assert_command_exists([command])
    from streaming.commands.check import EXIT_CODES

    assert f"-ne {EXIT_CODES['unknown']}" in DOCKERFILE


def test_the_composition_has_the_whole_of_the_product() -> None:
    assert {SERVICES[name]["command"][0] for name in OURS} == {"run", "collect", "serve"}
    assert {"kafka", "prometheus", "grafana"} <= set(SERVICES)


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_starts_a_command_and_has_settings_that_there_are(name: str) -> None:
    service = SERVICES[name]
    assert_command_exists(service["command"])
    env = {key: _DEFAULT.sub(r"\1", value) for key, value in service.get("environment", {}).items()}
    settings = load(env=env | variables(stage("monitor")))
    assert settings.dashboard.token.get_secret_value() or not env
    assert service["read_only"]
    # Spark's libraries are loaded from there, which Docker forbids by default.
    assert service["tmpfs"] == ["/tmp:exec"]


def test_the_services_name_files_ports_and_services_that_there_are() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            assert (ROOT / source).is_dir() if source.startswith(".") else source in COMPOSE["volumes"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert {config["source"] for config in service.get("configs", ())} <= set(COMPOSE["configs"])
    scrape = yaml.safe_load(COMPOSE["configs"]["prometheus"]["content"])
    assert [(ROOT / "conf/prometheus" / Path(file).name).exists() for file in scrape["rule_files"]] == [True, True]
    (job,) = scrape["scrape_configs"]
    (targets,) = job["static_configs"]
    names = load(env=SERVICES["serve"]["environment"]).dashboard.allowed_hosts
    ports = {"serve": load().dashboard.port, "job": SERVICES["job"]["command"][-1]}
    assert targets["targets"] == [f"{name}:{ports[name]}" for name in names]
    assert _DEFAULT.findall(job["authorization"]["credentials"]) == _DEFAULT.findall(
        SERVICES["serve"]["environment"]["REBALANCE_MONITOR_DASHBOARD__TOKEN"]
    )
