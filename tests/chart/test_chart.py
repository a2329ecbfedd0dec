"""The chart: its values by its schema, and what Helm makes of them by the schemas of those who read it."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from kubeflow_spark_api.models import SparkV1beta2SparkApplication

from streaming.settings.model import load
from tests.cluster.test_manifests import CONF, KUBERNETES_VERSION, assert_command_exists, missing_from_model
from tests.kit.helm import MISSING, find_helm

CHART = CONF.parent / "charts/rebalance-monitor"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
TEMPLATES = "".join(file.read_text() for file in sorted((CHART / "templates").rglob("*.*")))
HELM = find_helm()
needs_helm = pytest.mark.skipif(HELM is None, reason=MISSING)
each_file = pytest.mark.parametrize("values", VALUES, ids=lambda file: file.stem)
_PODS = {"StatefulSet", "Deployment", "CronJob", "Pod"}
_CUSTOM = {"SparkApplication", "PodMonitor"}


def helm(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run helm."""
    command = [str(HELM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def rendered(values: Path, *more: str) -> list[dict[str, Any]]:
    """Return the objects that a release with these values has."""
    version = f"{KUBERNETES_VERSION}.0"
    done = helm("template", "prod", CHART, "--namespace", "watch", "--kube-version", version, "--values", values, *more)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def pod_of(each: dict[str, Any]) -> dict[str, Any]:
    """Return the specification of an object's pods."""
    spec = each["spec"]
    spec = spec["jobTemplate"]["spec"] if each["kind"] == "CronJob" else spec
    pod: dict[str, Any] = spec["template"]["spec"] if "template" in spec else spec
    return pod


def paths(value: object, place: str = "") -> set[str]:
    """Return the dotted path of each value that the schema describes."""
    if not isinstance(value, dict) or not value:
        return {place}
    return {path for key, below in value.items() for path in paths(below, f"{place}.{key}")}


def test_there_are_ten_files_of_values() -> None:
    assert len(VALUES) == 10


@each_file
def test_values_fit_the_schema(values: Path) -> None:
    jsonschema.validate(yaml.safe_load(values.read_text()), SCHEMA)
    jsonschema.validate(DEFAULTS, SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sttings": {}},
        {"job": {"mode": "cluster"}},
        {"storage": {"tables": "/data/tables"}},
        {"ingress": {"enabled": True}},
        {"alerts": {"enabled": True}},
        {"collectors": [{"name": "Orders", "args": []}]},
        {"persistence": {"size": "20"}},
        {"settings": {"kafka": "broker:9092"}},
    ],
    ids=lambda values: json.dumps(values),
)
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


def test_the_schema_describes_each_value_and_each_value_is_used() -> None:
    named = set(re.findall(r"\.Values((?:\.\w+)+)", TEMPLATES)) | set(re.findall(r"\$spark(\.\w+)", TEMPLATES))
    for path in paths(DEFAULTS):
        part, place = SCHEMA, ""
        for key in path.split(".")[1:]:
            if "properties" not in part:
                break
            assert key in part["properties"], path
            part = part["properties"][key]
            part = SCHEMA["definitions"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
            place += f".{key}"
        # The templates name the value, one of its parts, or that of which it is a part.
        spellings = (place, place.removeprefix(".job.spark"))
        is_used = any(
            f"{name}.".startswith(f"{spelling}.") or f"{spelling}.".startswith(f"{name}.")
            for spelling in spellings
            for name in named
        )
        assert is_used or place in (".job.spark.driver", ".job.spark.executor"), path


def test_the_roles_are_those_of_the_manifests() -> None:
    for file in ("kubernetes-role.yaml", "kubernetes/rbac.yaml"):
        roles = [each for each in yaml.safe_load_all((CONF / file).read_text()) if "rules" in each]
        assert len(roles) == 1
        text = yaml.safe_dump(roles[0]["rules"])
        rules = re.findall(r"^rules:\n((?:  .*\n)+)", TEMPLATES, re.MULTILINE)
        assert text in [yaml.safe_dump(yaml.safe_load(rule)) for rule in rules], file


def test_the_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((CONF.parent / "pyproject.toml").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = project["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert DEFAULTS["job"]["spark"]["image"].endswith(f":{version}")
    assert f"pyspark=={DEFAULTS['job']['spark']['version']}" in project["project"]["optional-dependencies"]["job"]


@needs_helm
def test_helm_finds_nothing_wrong() -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_helm
@each_file
def test_objects_fit_the_schemas_of_their_owners(values: Path) -> None:
    objects = rendered(values)
    names = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(names) == len(set(names))
    for each in objects:
        if each["kind"] not in _CUSTOM:
            kubernetes_validate.validate(each, KUBERNETES_VERSION, strict=True)
        if each["kind"] == "SparkApplication":
            modelled = SparkV1beta2SparkApplication.from_dict(each)
            assert modelled is not None
            assert missing_from_model(each, modelled.to_dict()) == []
            assert_command_exists(each["spec"]["arguments"])


@needs_helm
@each_file
def test_pods_run_commands_with_settings_that_there_are_and_without_rights(values: Path) -> None:
    objects = rendered(values)
    (settings,) = (each["data"]["monitor.toml"] for each in objects if each["kind"] == "ConfigMap")
    accounts = {each["metadata"]["name"] for each in objects if each["kind"] == "ServiceAccount"}
    for each in (each for each in objects if each["kind"] in _PODS):
        pod = pod_of(each)
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        if each["kind"] == "Pod":
            continue
        assert pod["serviceAccountName"] in accounts
        assert_command_exists(container["args"])
        env = {entry["name"]: entry.get("value", "a" * 32) for entry in container["env"]}
        config = tomllib.loads(settings)
        assert load(overrides=dotted(config), env=env).dashboard.token.get_secret_value() == "a" * 32


def dotted(config: dict[str, Any]) -> dict[str, object]:
    """Return settings of a file as the command line gives them."""
    return {f"{section}.{key}": value for section, below in config.items() for key, value in below.items()}


def kinds(objects: list[dict[str, Any]]) -> set[str]:
    """Return which parts run."""
    return {
        each["metadata"]["name"].removeprefix("prod-rebalance-monitor-") for each in objects if each["kind"] in _PODS
    }


@needs_helm
def test_each_file_of_values_runs_the_parts_that_it_names() -> None:
    by_name = {values.stem: kinds(rendered(values)) for values in VALUES}
    assert by_name["kafka-on-a-volume"] == {"job", "serve", "optimize", "test"}
    assert by_name["collectors"] == {"job", "serve", "optimize", "test", "collect-orders", "collect-shop"}
    assert by_name["spark-operator"] == {"serve", "optimize", "test", "collect-pods"}
    assert by_name["alerts-and-metrics"] == {"job", "serve", "optimize", "test", "alerts"}
    assert by_name["pages-only"] == {"serve", "test"}


@needs_helm
def test_only_what_follows_pods_may_read_them() -> None:
    objects = rendered(Path(__file__).parent / "values/pods.yaml")
    (role,) = (each for each in objects if each["kind"] == "ClusterRole")
    (binding,) = (each for each in objects if each["kind"] == "ClusterRoleBinding")
    (account,) = (subject["name"] for subject in binding["subjects"])
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    with_it = {
        each["metadata"]["name"]
        for each in objects
        if each["kind"] in _PODS and pod_of(each).get("serviceAccountName") == account
    }
    assert with_it == {"prod-rebalance-monitor-collect-pods"}


@needs_helm
def test_a_volume_that_one_node_mounts_keeps_all_beside_the_job() -> None:
    folder = Path(__file__).parent / "values"
    near = [each for each in rendered(folder / "collectors.yaml") if each["kind"] in _PODS - {"Pod"}]
    assert {each["metadata"]["name"][23:] for each in near if "affinity" not in pod_of(each)} == {"job"}
    for name in ("object-store.yaml", "shared-volume-on-chosen-nodes.yaml"):
        assert [each for each in rendered(folder / name) if each["kind"] in _PODS and "affinity" in pod_of(each)] == []


@needs_helm
def test_the_service_and_the_ingress_are_names_that_the_pages_answer_to() -> None:
    objects = rendered(Path(__file__).parent / "values/ingress-with-tls.yaml")
    (serve,) = (
        each for each in objects if each["metadata"]["name"].endswith("-serve") and each["kind"] == "Deployment"
    )
    env = {entry["name"]: entry.get("value", "a" * 32) for entry in pod_of(serve)["containers"][0]["env"]}
    hosts = load(env=env).dashboard.allowed_hosts
    assert {"prod-rebalance-monitor-serve", "monitor.internal", "monitor.example.org"} <= set(hosts)
    assert not [each for each in objects if each["kind"] == "Secret"]


@needs_helm
def test_pages_over_the_volume_of_another_release_follow_no_job() -> None:
    values = Path(__file__).parent / "values/shared-volume-on-chosen-nodes.yaml"
    changes = ("--set", "job.enabled=false", "--set", "persistence.accessMode=ReadWriteOnce")
    pods = [pod_of(each) for each in rendered(values, *changes) if each["kind"] in _PODS - {"Pod"}]
    assert pods
    assert [pod for pod in pods if "affinity" in pod or pod["nodeSelector"] != {"disk": "fast"}] == []


@needs_helm
@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        (["job.mode=spark-operator"], "needs an object store"),
        (["job.enabled=false"], "without the job, set storage.tables"),
        (["job.mode=cluster"], "job/mode"),
        (["ingress.enabled=true", "ingress.host=a.example", "serve.enabled=false"], "ingress.enabled needs serve"),
        (["job.enabled=false", "persistence.existingClaim=old"], "set accessMode ReadWriteMany"),
        (
            [f"collectors[{place}].{text}" for place in (0, 1) for text in ("name=a", "args={--kafka,k:9092}")],
            "collectors: two are named a",
        ),
        (["settings.job.tables=/elsewhere"], "settings.job.tables would have no effect: set storage.tables"),
        (["settings.dashboard.token=abc"], "settings.dashboard.token would have no effect: set tokenSecret"),
        (["storage.tables=s3://lake/t", "settings.tables.writer=delta-spark"], "set optimize.enabled=false"),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(changes: list[str], refused: str) -> None:
    sets = [text for change in changes for text in ("--set", change)]
    done = helm("template", "x", CHART, "--kube-version", f"{KUBERNETES_VERSION}.0", *sets)
    assert done.returncode != 0
    assert refused in done.stderr.replace("'", "").replace("job.mode: ", "job/mode: ")
