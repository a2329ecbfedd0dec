"""Mutation testing of the core: ``make mutants`` breaks it in random places and prints by module how many tests notice.

mutmut does the work: it changes one place of a function at a time and runs the tests that call the function, each
mutant in a process of its own with a limit of CPU time. Here only a sample is drawn, and the result is printed by
module; a mutant that survives is a place that no fast test holds. It runs in a virtual environment of its own, in a
copy of the checkout, whose results are kept for the next run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".mutants" / "checkout"
ROOMS = ("group", "shard")
# Laws that take minutes say little more of a single mutant.
_SLOW = (
    "tests/udfs/shard/test_backlog.py::test_rows_do_not_depend_on_how_much_a_group_may_do_in_a_batch",
    "tests/udfs/group/test_coordinator.py::test_how_the_events_were_cut_into_batches_leaves_no_trace",
    "tests/udfs/group/test_coordinator.py::test_however_late_events_come_the_tables_hold_together",
    "tests/udfs/group/test_queue_handover.py::test_how_the_events_were_cut_into_batches_leaves_no_trace",
)
_KILLED = ("killed", "timeout", "segfault", "suspicious")


def copy_checkout() -> None:
    """Copy the files of the checkout that git knows, with what mutmut must know."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "udfs", "streaming", "conf", "tests", "pyproject.toml"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for old in ("udfs", "tests"):
        shutil.rmtree(WORK / old, ignore_errors=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists():
            (WORK / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, WORK / name)
    arguments = ["-p", "no:cacheprovider", *(f"--deselect={test}" for test in _SLOW)]
    with (WORK / "pyproject.toml").open("a") as file:
        file.write(
            "\n[tool.mutmut]\n"
            f"source_paths = ['udfs']\nonly_mutate = {[f'udfs/{room}/*' for room in ROOMS]}\n"
            f"also_copy = ['streaming', 'conf']\npytest_add_cli_args = {arguments}\n"
            f"pytest_add_cli_args_test_selection = {[f'tests/udfs/{room}' for room in ROOMS]}\n"
            "track_dependencies = false\nuse_git_change_detection = false\non_dependency_change = 'ignore'\n"
        )


def all_mutants(processes: int) -> list[str]:
    """Return the names of all mutants; those of unchanged functions are not made again."""
    from mutmut import __main__ as mutmut

    Path("mutants").mkdir(exist_ok=True)
    mutmut.set_mutant_under_test("mutant_generation")
    mutmut.copy_src_dir()
    mutmut.copy_also_copy_files()
    mutmut.setup_source_paths()
    mutmut.create_mutants(processes)
    found, _ = mutmut.collect_source_file_mutation_data(mutant_names=())
    return sorted(name for _, name, _ in found)


def results(names: list[str]) -> dict[str, str]:
    """Return what became of some mutants."""
    from mutmut import __main__ as mutmut
    from mutmut.stats import status_by_exit_code

    found, _ = mutmut.collect_source_file_mutation_data(mutant_names=())
    wanted = set(names)
    return {name: status_by_exit_code[code] for _, name, code in found if name in wanted}


def report(found: dict[str, str]) -> None:
    """Print the share killed by module, then every survivor's difference."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    tried, killed = Counter[str](), Counter[str]()
    for name, status in found.items():
        module = ".".join(name.split(".")[:3])
        tried[module] += 1
        killed[module] += status in _KILLED
    for name, status in sorted(found.items()):
        if status not in _KILLED:
            sys.stdout.write(f"{status}: {name}\n{get_diff_for_mutant(name)}\n")
    for module in sorted(tried):
        share = killed[module] / tried[module]
        sys.stdout.write(f"{module.removeprefix('udfs.'):32} {killed[module]:4} of {tried[module]:4} {share:7.0%}\n")
    total = sum(killed.values()) / max(1, sum(tried.values()))
    sys.stdout.write(f"{'killed':32} {sum(killed.values()):4} of {sum(tried.values()):4} {total:7.0%}\n")


def main() -> None:
    """Draw a sample, try it, report it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants (200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of their names: udfs.shard.topics")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    copy_checkout()
    os.chdir(WORK)
    names = [name for name in all_mutants(asked.processes) if asked.only in name]
    sample = sorted(random.Random(asked.seed).sample(names, min(asked.sample, len(names))))
    sys.stdout.write(f"{len(names)} mutants, a sample of {len(sample)}, seed {asked.seed}\n")
    sys.stdout.flush()
    subprocess.run([sys.executable, "-m", "mutmut", "run", "--max-children", str(asked.processes), *sample], check=True)
    report(results(sample))


if __name__ == "__main__":
    main()
