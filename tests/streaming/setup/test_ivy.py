"""Jars: fetched once, whole or not at all, and only those whose sum is listed. The repository is a folder."""

import hashlib

import pytest

from streaming.setup import ivy
from streaming.setup.errors import SetupError

JARS = {"one-1.0.jar": b"the first", "two-2.0.jar": b"the second"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository of two jars, the files that name them, and an empty cache."""
    for name, content in JARS.items():
        module, revision = name.removesuffix(".jar").split("-")
        place = tmp_path / "repository" / "some" / module / revision
        place.mkdir(parents=True)
        (place / name).write_bytes(content)
    repository = tmp_path / "repository"
    (tmp_path / "ivysettings.xml").write_text(
        '<ivysettings><settings defaultResolver="here"/><resolvers><filesystem name="here">'
        f'<artifact pattern="{repository}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    (tmp_path / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="o" module="m"/><dependencies>'
        '<dependency org="some" name="one" rev="1.0"/><dependency org="some" name="two" rev="2.0"/>'
        "</dependencies></ivy-module>"
    )
    write_sums(tmp_path, JARS)
    monkeypatch.setenv("IVY_SETTINGS_FILE", str(tmp_path / "ivysettings.xml"))
    monkeypatch.setenv("REBALANCE_MONITOR_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write_sums(project, jars):
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in jars.items()]
    (project / "jars.sha256").write_text("".join(lines))


def fetch(project):
    reported = []
    return ivy.fetch(project / "ivy.xml", project / "jars.sha256", reported.append), reported


def test_jars_are_fetched_once_and_progress_counts_them(project):
    jars, reported = fetch(project)
    assert {jar.name: jar.read_bytes() for jar in jars} == JARS
    assert [line for line in reported if "1 of 2  one-1.0.jar" in line or "2 of 2  two-2.0.jar" in line] == reported[
        1:3
    ]
    again, reported = fetch(project)
    assert (again, reported) == (jars, [])


def test_a_jar_with_another_sum_is_refused_and_thrown_away(project):
    write_sums(project, JARS | {"two-2.0.jar": b"something else"})
    with pytest.raises(SetupError, match=r"two-2\.0\.jar differs from its SHA-256"):
        fetch(project)
    assert not list((project / "cache").rglob("*.jar"))


def test_a_jar_that_is_not_listed_is_refused(project):
    write_sums(project, {"one-1.0.jar": JARS["one-1.0.jar"]})
    with pytest.raises(SetupError, match=r"two-2\.0\.jar is not in the list"):
        fetch(project)


def test_a_lost_jar_is_fetched_again(project):
    jars, _ = fetch(project)
    jars[0].unlink()
    assert fetch(project)[0] == jars
    assert jars[0].read_bytes() == JARS["one-1.0.jar"]


def test_a_changed_jar_is_fetched_again_if_sums_are_asked_for(project):
    jars, _ = fetch(project)
    jars[0].write_bytes(b"another")
    assert fetch(project)[0][0].read_bytes() == b"another"
    assert ivy.fetch(project / "ivy.xml", project / "jars.sha256", lambda _: None, is_summed=True) == jars
    assert jars[0].read_bytes() == JARS["one-1.0.jar"]


def test_a_jar_that_the_repository_lacks_is_named(project):
    (project / "repository/some/two/2.0/two-2.0.jar").unlink()
    with pytest.raises(SetupError, match=r"some#two;2\.0: not found"):
        fetch(project)


def test_a_cache_that_cannot_be_written_is_named_with_the_way_out(project, monkeypatch):
    (project / "file").write_text("")
    monkeypatch.setenv("REBALANCE_MONITOR_CACHE", str(project / "file"))
    with pytest.raises(SetupError, match="cannot be written") as refused:
        fetch(project)
    assert "REBALANCE_MONITOR_CACHE" in refused.value.remedy


def test_the_cache_follows_the_users_settings(monkeypatch, tmp_path):
    monkeypatch.delenv("REBALANCE_MONITOR_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert ivy.cache_folder() == tmp_path / "rebalance-monitor"
