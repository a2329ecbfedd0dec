"""The choice of Java, and the error if none fits."""

import pytest

from streaming.setup.errors import SetupError
from streaming.setup.java import find_java


def java_of_version(folder, specification):
    """A java that answers as that version does."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    text = f"    java.home = {folder}\\n    java.specification.version = {specification}\\n"
    program.write_text(f"#!/bin/sh\nprintf '{text}' >&2\n")
    program.chmod(0o755)
    return folder


def test_java_home_precedes_the_path(tmp_path):
    home = java_of_version(tmp_path / "home", "17")
    path = java_of_version(tmp_path / "path", "21")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")})
    assert (found.home, found.version) == (home, 17)


def test_an_unfit_java_home_does_not_hide_a_fitting_java_on_the_path(tmp_path):
    home = java_of_version(tmp_path / "home", "1.8")
    path = java_of_version(tmp_path / "path", "21")
    assert find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")}).version == 21


@pytest.mark.parametrize("specification", ["1.8", "11", "16", "18", "25"])
def test_a_java_that_spark_does_not_run_on_is_refused_by_name(tmp_path, specification):
    home = java_of_version(tmp_path / "home", specification)
    with pytest.raises(SetupError, match=rf"JAVA_HOME={home} is Java {specification.removeprefix('1.')} ") as refused:
        find_java({"JAVA_HOME": str(home), "PATH": ""})
    assert refused.value.remedy


def test_a_java_home_without_java_is_named(tmp_path):
    with pytest.raises(SetupError, match="does not answer"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_without_any_java_the_remedy_is_what_to_install():
    with pytest.raises(SetupError, match="JAVA_HOME is not set and there is no java on the PATH"):
        find_java({"PATH": ""})


def test_a_runtime_without_compiler_is_an_error_only_when_one_is_needed(tmp_path):
    found = find_java({"JAVA_HOME": str(java_of_version(tmp_path, "17")), "PATH": ""})
    with pytest.raises(SetupError, match="no compiler"):
        _ = found.javac
