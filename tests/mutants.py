"""Mutation testing of the core: ``make mutants`` breaks it in random places and prints by module how many tests notice.

mutmut does the work: it changes one place of a function at a time and runs the tests that call the function, each
mutant in a process of its own with a limit of CPU time. Here a few mutants of each module are drawn and tried against
the module's own test file, with the examples of groups: one that survives is a place that these do not hold. It runs
in a virtual environment of its own, in a copy of the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".mutants" / "checkout"
ROOMS = ("group", "shard")
# Laws that take minutes add little about a single mutant.
_SLOW = (
    "tests/udfs/shard/test_backlog.py::test_rows_do_not_depend_on_how_much_a_group_may_do_in_a_batch",
    "tests/udfs/group/test_coordinator.py::test_results_do_not_depend_on_how_events_are_cut_into_batches",
    "tests/udfs/group/test_coordinator.py::test_however_late_events_come_the_tables_hold_together",
    "tests/udfs/group/assignment/test_queue_handover.py::test_results_do_not_depend_on_how_events_are_cut_into_batches",
)
_KILLED = ("killed", "timeout", "segfault", "suspicious")


def modules(only: str) -> list[str]:
    """Return the modules to be broken, as dotted names: those that begin so and have functions and a test file."""
    found = [path.relative_to(ROOT) for room in ROOMS for path in sorted((ROOT / "udfs" / room).rglob("[!_]*.py"))]
    return [dotted(path) for path in found if dotted(path).startswith(only) and (ROOT / own_tests(path)).exists()]


def dotted(path: Path) -> str:
    """Return the name of a module."""
    return ".".join(path.with_suffix("").parts)


def own_tests(path: Path) -> Path:
    """Return the test file of a module, or the folder of its room's tests if it has none."""
    file = Path("tests") / path.with_name(f"test_{path.name}")
    return file if file.exists() else file.parent


def tests_of(path: Path) -> list[str]:
    """Return what is run against the mutants of a module: its own tests, and those of a group also the examples."""
    examples = ["tests/udfs/group/test_examples.py"] if path.parts[1] == "group" else []
    return list(dict.fromkeys([str(own_tests(path)), *examples]))


def copy_checkout() -> None:
    """Copy the files of the checkout that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "udfs", "streaming", "conf", "docs", "tests"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    shutil.rmtree(WORK, ignore_errors=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists():
            (WORK / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, WORK / name)


def configure(module: str) -> None:
    """Write the settings of mutmut: the module to break, and the tests to run."""
    path = Path(*module.split(".")).with_suffix(".py")
    arguments = ["-p", "no:cacheprovider", *(f"--deselect={test}" for test in _SLOW)]
    settings = {
        "source_paths": ["udfs"],
        "only_mutate": [str(path)],
        "also_copy": ["streaming", "conf", "docs"],
        "pytest_add_cli_args": arguments,
        "pytest_add_cli_args_test_selection": tests_of(path),
        "track_dependencies": False,
        "use_git_change_detection": False,
    }
    # A value of JSON is one of TOML here.
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (WORK / "pyproject.toml").write_text(text + "\n[tool.mutmut]\n" + "".join(lines), encoding="utf-8")
    (WORK / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    # The copy for the module before is newer than its source: mutmut would take it as mutated already.
    (WORK / "mutants" / path).unlink(missing_ok=True)


def try_module(count: int, seed: int, processes: int) -> dict[str, list[str]]:
    """Return the outcome and the difference of some mutants of the configured module."""
    from mutmut import __main__ as mutmut
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    Path("mutants").mkdir(exist_ok=True)
    mutmut.set_mutant_under_test("mutant_generation")
    mutmut.copy_src_dir()
    mutmut.copy_also_copy_files()
    mutmut.setup_source_paths()
    mutmut.create_mutants(processes)
    names = sorted(name for _, name, _ in mutmut.collect_source_file_mutation_data(mutant_names=())[0])
    sample = random.Random(seed).sample(names, min(count, len(names)))
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(processes), *sample]
    if sample:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found, _ = mutmut.collect_source_file_mutation_data(mutant_names=tuple(sample))
    return {name: [status_by_exit_code[code], get_diff_for_mutant(name)] for _, name, code in found if name in sample}


def main() -> None:
    """Try the modules one after another, each in a process of its own; print the survivors, then the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=6, help="how many mutants of each module (6)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="the beginning of modules' names: udfs.shard.topics")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--found", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.found is not None:
        chosen.found.write_text(json.dumps(try_module(chosen.sample, chosen.seed, chosen.processes)))
        return
    copy_checkout()
    shares = []
    for module in modules(chosen.only):
        configure(module)
        found = WORK / "found.json"
        options = ["--sample", str(chosen.sample), "--seed", str(chosen.seed), "--processes", str(chosen.processes)]
        command = [sys.executable, "-m", "tests.mutants", *options, "--found", str(found)]
        subprocess.run(command, cwd=WORK, check=True, stdout=subprocess.DEVNULL)
        outcome = json.loads(found.read_text())
        for name, (status, difference) in sorted(outcome.items()):
            if status not in _KILLED:
                sys.stdout.write(f"{status}: {name}\n{difference}\n")
        shares.append((module, sum(status in _KILLED for status, _ in outcome.values()), len(outcome)))
        sys.stdout.write(shown(*shares[-1]))
        sys.stdout.flush()
    sys.stdout.write("\n" + "".join(shown(*share) for share in shares))
    sys.stdout.write(shown("killed", sum(killed for _, killed, _ in shares), sum(tried for _, _, tried in shares)))


def shown(name: str, killed: int, tried: int) -> str:
    """Return a line of the table."""
    return f"{name.removeprefix('udfs.'):32} {killed:4} of {tried:4} {killed / max(1, tried):7.0%}\n"


if __name__ == "__main__":
    main()
