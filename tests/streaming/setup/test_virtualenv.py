"""The virtual environment: made once, each lock installed once, and every failure with its remedy."""

import json
import subprocess

import pytest

from streaming.setup import virtualenv
from streaming.setup.errors import SetupError
from tests.kit.own_view import patch_in

PIP_STEPS = ["requirements/build.lock", "requirements/dev.lock", "."]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with locks; what would be run is noted in ``project.ran`` and succeeds."""
    (tmp_path / "requirements").mkdir()
    for lock in ("build", "run", "dev"):
        (tmp_path / f"requirements/{lock}.lock").write_text(f"{lock}==1 \\\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    place = {"_ROOT": tmp_path, "_VENV": tmp_path / ".venv", "_PYTHON": tmp_path / ".venv/bin/python"}
    for name, value in {**place, "_RECORD": tmp_path / ".venv/installed.json"}.items():
        monkeypatch.setattr(virtualenv, name, value)
    monkeypatch.setattr(virtualenv, "find_java", lambda: None)
    return Project(tmp_path, monkeypatch)


class Project:
    def __init__(self, root, monkeypatch):
        self.root, self.monkeypatch, self.ran, self.exit_code = root, monkeypatch, [], 0
        patch_in(monkeypatch, virtualenv, "subprocess", run=self.run)

    def run(self, command, **_):
        if "venv" in command:
            (self.root / ".venv/bin").mkdir(parents=True, exist_ok=True)
            (self.root / ".venv/bin/python").touch()
            self.ran.append("venv")
        else:
            self.ran.append(command[-1])
        return subprocess.CompletedProcess(command, self.exit_code, stdout="", stderr="no ensurepip")

    def make(self, kind="dev"):
        self.ran.clear()
        virtualenv.make(kind)
        return self.ran


def test_everything_is_installed_once(project):
    assert project.make() == ["venv", *PIP_STEPS]
    assert project.make() == []


def test_only_what_has_changed_is_installed_again(project):
    project.make()
    (project.root / "requirements/dev.lock").write_text("dev==2 \\\n")
    assert project.make() == ["requirements/dev.lock"]
    assert project.make("run") == ["requirements/run.lock"]


def test_the_environment_of_a_copied_project_is_made_anew(project):
    project.make()
    record = project.root / ".venv/installed.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"root": "/somewhere/else"}))
    assert project.make() == ["venv", *PIP_STEPS]


@pytest.mark.parametrize("damaged", ["{", "[]"])
def test_a_record_that_cannot_be_read_is_none(project, damaged):
    project.make()
    (project.root / ".venv/installed.json").write_text(damaged)
    assert project.make() == ["venv", *PIP_STEPS]


def test_an_unfinished_installation_is_completed_at_the_next_start(project):
    project.make()
    (project.root / "requirements/dev.lock").write_text("dev==2 \\\n")
    project.exit_code = 1
    with pytest.raises(SetupError, match="pip failed"):
        project.make()
    project.exit_code = 0
    assert project.make() == ["requirements/dev.lock"]


def test_a_python_that_makes_no_environment_leaves_no_half_of_one(project):
    project.exit_code = 1
    with pytest.raises(SetupError, match="cannot make a virtual environment: no ensurepip") as refused:
        project.make()
    assert "apt install" in refused.value.remedy
    assert not (project.root / ".venv").exists()


def test_a_disk_that_is_too_small_is_named_before_anything_is_made(project, monkeypatch):
    free = type("Usage", (), {"free": 1_999_999_999})
    patch_in(monkeypatch, virtualenv, "shutil", disk_usage=lambda _: free)
    with pytest.raises(SetupError, match=rf"too little space in {project.root}: 2.0 GB are free, 2 are needed"):
        project.make()
    assert project.ran == []


def test_a_folder_that_cannot_be_written_is_named_before_anything_is_made(project, monkeypatch):
    patch_in(monkeypatch, virtualenv, "os", access=lambda *_: False)
    with pytest.raises(SetupError, match="is not writable for this user"):
        project.make()
    assert project.ran == []


@pytest.mark.parametrize("error", [SetupError("no Java", "install it"), OSError(28, "No space left on device")])
def test_errors_are_lines_and_not_tracebacks(project, capsys, monkeypatch, error):
    def refuse():
        raise error

    monkeypatch.setattr(virtualenv, "find_java", refuse)
    assert virtualenv.main(["dev"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    monkeypatch.setattr(virtualenv, "find_java", lambda: None)
    assert virtualenv.main([]) == 0
    assert project.ran == ["venv", "requirements/build.lock", "requirements/run.lock", "."]
