"""Installed packages, the lock and the jars fit each other."""

import importlib.metadata
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[3]
IVY_FILES = [
    (ROOT / "conf/ivy.xml", ROOT / "conf/jars.sha256"),
    (ROOT / "conf/ivy-s3.xml", ROOT / "conf/jars-s3.sha256"),
] + [(file, file.with_suffix(".sha256")) for file in sorted((ROOT / "tests/kit/ivy").glob("*.xml"))]


def jars_of(ivy_file):
    return {
        dependency.attrib["name"]: dependency.attrib["rev"]
        for dependency in ElementTree.parse(ivy_file).iter("dependency")
        if dependency.attrib["transitive"] == "false"
    }


@pytest.mark.parametrize(("ivy_file", "sums"), IVY_FILES, ids=lambda file: file.name)
def test_every_jar_that_is_named_has_a_sum_and_no_other(ivy_file, sums):
    classifiers = {
        artifact.attrib["name"]: f"-{artifact.attrib['{http://ant.apache.org/ivy/maven}classifier']}"
        for artifact in ElementTree.parse(ivy_file).iter("artifact")
    }
    named = sorted(f"{name}-{revision}{classifiers.get(name, '')}.jar" for name, revision in jars_of(ivy_file).items())
    assert sorted(line.split()[1] for line in sums.read_text().splitlines()) == named


def test_the_jars_fit_the_installed_spark_and_delta():
    spark = importlib.metadata.version("pyspark")
    jars = jars_of(ROOT / "conf/ivy.xml")
    assert jars["spark-sql-kafka-0-10_2.13"] == spark
    assert jars[f"delta-spark_{spark.rpartition('.')[0]}_2.13"] == importlib.metadata.version("delta-spark")


@pytest.mark.parametrize("lock", ["run", "dev", "image"])
def test_installed_packages_are_those_of_the_lock(lock):
    text = (ROOT / f"requirements/{lock}.lock").read_text()
    pins = re.findall(r"^([\w.-]+)==(\S+) \\$", text, re.MULTILINE)
    assert len(pins) > 20
    assert {name: importlib.metadata.version(name) for name, _ in pins} == dict(pins)


def test_the_lock_holds_everything_that_the_project_requires():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for lock, named in (("run", ["job"]), ("dev", ["dev", "job"]), ("image", ["job", "kubernetes", "otel"])):
        wanted = [*project["dependencies"], *(name for extra in named for name in extras[extra])]
        locked = (ROOT / f"requirements/{lock}.lock").read_text()
        names = [re.split(r"[=<>]", name)[0] for name in wanted]
        assert [name for name in names if not re.search(rf"^{name}==", locked, re.MULTILINE)] == [], lock


@pytest.mark.parametrize("lock", ["build", "run", "dev", "image"])
def test_no_lock_names_a_registry(lock):
    assert "://" not in (ROOT / f"requirements/{lock}.lock").read_text()
