"""The files for Kubernetes, Databricks and systemd in `conf/`, each checked by the schema or tool of its owner."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from databricks.bundles.jobs import Job
from kubeflow_spark_api.models import SparkV1beta2SparkApplication
from typer.testing import CliRunner

from streaming.commands.app import app
from tests.cluster.systemd_units import mistakes, service_of

CONF = Path(__file__).parents[2] / "conf"
KUBERNETES_VERSION = "1.37"
PLAIN = ("rbac.yaml", "driver-pod.yaml", "executor-pod.yaml")
JOB = CONF / "systemd/rebalance-monitor.service"
HAS_SYSTEMD = shutil.which("systemd-analyze") is not None
UNITS = sorted(JOB.parent.glob("*.service"))


def documents(name: str) -> list[dict[str, Any]]:
    """Return the objects of a file."""
    return list(yaml.safe_load_all((CONF / name).read_text()))


def assert_command_exists(arguments: list[str]) -> None:
    """Check that a command line of a manifest names a command and options that there are."""
    command, *rest = arguments
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "300"})
    assert shown.exit_code == 0
    for option in (argument for argument in rest if argument.startswith("--")):
        assert option in shown.output


@pytest.mark.parametrize("name", PLAIN)
def test_objects_of_kubernetes_fit_its_schema(name: str) -> None:
    for each in documents(f"kubernetes/{name}"):
        kubernetes_validate.validate(each, KUBERNETES_VERSION, strict=True)


def test_the_schema_of_kubernetes_refuses_an_unknown_key() -> None:
    (pod,) = documents("kubernetes/driver-pod.yaml")
    pod["spec"]["terminationGrace"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, KUBERNETES_VERSION, strict=True)


def missing_from_model(given: object, modelled: object, place: str = "") -> list[str]:
    """Return the keys of an object that the operator's model does not have; it passes over them silently."""
    if isinstance(given, list) and isinstance(modelled, list):
        pairs = zip(given, modelled, strict=True)
        return [entry for number, pair in enumerate(pairs) for entry in missing_from_model(*pair, f"{place}[{number}]")]
    if not isinstance(given, dict) or not isinstance(modelled, dict):
        return [] if given == modelled else [place]
    missing = [f"{place}.{key}" for key in given if key not in modelled]
    return missing + [
        deeper
        for key in given.keys() & modelled.keys()
        for deeper in missing_from_model(given[key], modelled[key], f"{place}.{key}")
    ]


def test_the_spark_application_fits_the_operators_model() -> None:
    (given,) = documents("kubernetes/spark-application.yaml")
    modelled = SparkV1beta2SparkApplication.from_dict(given)
    assert modelled is not None
    assert missing_from_model(given, modelled.to_dict()) == []
    assert_command_exists(given["spec"]["arguments"])
    given["spec"]["driver"]["corse"] = 1
    modelled = SparkV1beta2SparkApplication.from_dict(given)
    assert modelled is not None
    assert missing_from_model(given, modelled.to_dict()) == [".spec.driver.corse"]


def test_the_versions_in_manifests_are_those_of_the_project() -> None:
    spark, own = importlib.metadata.version("pyspark"), importlib.metadata.version("rebalance-monitor")
    (application,) = documents("kubernetes/spark-application.yaml")
    assert application["spec"]["sparkVersion"] == spark
    assert application["spec"]["image"].endswith(f":{own}")
    dockerfile = (CONF.parent / "Dockerfile").read_text()
    assert f"apache/spark:{spark}\n" in dockerfile
    assert f"rebalance-monitor:{own} " in dockerfile
    assert f"image: rebalance-monitor:{own}\n" in (CONF.parent / "compose.yaml").read_text()


def test_the_service_account_of_the_driver_is_the_one_with_the_role() -> None:
    account, role, binding = documents("kubernetes/rbac.yaml")
    name = account["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [name]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (pod,) = documents("kubernetes/driver-pod.yaml")
    (application,) = documents("kubernetes/spark-application.yaml")
    assert pod["spec"]["serviceAccountName"] == application["spec"]["driver"]["serviceAccount"] == name


def test_the_job_of_the_bundle_fits_the_model_of_databricks() -> None:
    (bundle,) = documents("databricks/databricks.yml")
    assert set(re.findall(r"\$\{var\.(\w+)\}", (CONF / "databricks/databricks.yml").read_text())) == set(
        bundle["variables"]
    )
    (given,) = bundle["resources"]["jobs"].values()
    assert Job.from_dict(given).as_dict() == given
    (task,) = given["tasks"]
    assert_command_exists(task["python_wheel_task"]["parameters"])
    points = importlib.metadata.distribution("rebalance-monitor").entry_points
    assert task["python_wheel_task"]["entry_point"] in points.select(group="console_scripts").names


def test_each_way_to_submit_the_job_keeps_the_lines_of_spark_away() -> None:
    (application,) = documents("kubernetes/spark-application.yaml")
    assert application["spec"]["sparkConf"]["spark.log.level"] == "WARN"
    root = CONF.parent
    texts = [(root / name).read_text().replace("\\\n", " ") for name in ("docs/operating.md", "docs/clusters.md")]
    lines = [line for text in texts for line in text.splitlines() if re.search(r"spark-submit .* run ", line)]
    assert len(lines) == 3
    assert all(" --conf spark.log.level=WARN " in line for line in lines)


def test_each_command_that_runs_for_months_has_its_unit() -> None:
    commands = {service_of(unit)["ExecStart"].split()[1] for unit in UNITS}
    assert commands == {"run", "serve", "alerts"}
    assert service_of(JOB)["KillMode"] == "mixed"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_a_command_that_there_is_as_hardened_as_the_job(unit: Path) -> None:
    program, *arguments = service_of(unit)["ExecStart"].split()
    assert Path(program).name == "rebalance-monitor"
    assert_command_exists(arguments)
    own = {"ExecStart", "EnvironmentFile", "Environment", "CacheDirectory", "KillMode", "TimeoutStopSec"}
    own |= {"RestartSec", "RestartPreventExitStatus"}
    job = {key: value for key, value in service_of(JOB).items() if key not in own}
    assert {key: value for key, value in service_of(unit).items() if key not in own} == job


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_has_sections_keys_and_values_that_systemd_documents(unit: Path) -> None:
    assert mistakes(unit.read_text()) == []


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("KillMode=mixed", "KillMode=mixd", "[Service] KillMode: 'mixd'"),
        ("RestartSec=10", "RestartSecs=10", "[Service] RestartSecs: unknown"),
        ("TimeoutStopSec=120", "TimeoutStopSec=two", "[Service] TimeoutStopSec: 'two'"),
        ("[Service]", "[Servise]", "[Servise] Type: unknown"),
        ("ExecStart=/opt", "ExecStart=opt", "[Service] ExecStart: "),
        ("WantedBy=multi-user.target", "", "no Install.WantedBy"),
    ],
)
def test_a_mistake_in_a_unit_is_found(right: str, wrong: str, expected: str, tmp_path: Path) -> None:
    changed = tmp_path / JOB.name
    changed.write_text(JOB.read_text().replace(right, wrong, 1))
    assert any(mistake.startswith(expected) for mistake in mistakes(changed.read_text()))
    if HAS_SYSTEMD and wrong:
        assert _verified(changed, tmp_path).stderr != ""


@pytest.mark.skipif(not HAS_SYSTEMD, reason="no systemd here; its documented keys are compared above")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_accepts_a_unit(unit: Path, tmp_path: Path) -> None:
    verified = _verified(unit, tmp_path)
    assert (verified.returncode, verified.stderr) == (0, "")


def _verified(unit: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Have systemd's own tool verify a unit; its program must be there."""
    here = folder / "verified" / unit.name
    here.parent.mkdir()
    here.write_text(unit.read_text().replace("/opt/rebalance-monitor/bin/rebalance-monitor", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(here)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
