"""The archive of the code: whole, the same for the same code, and enough to run from."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from streaming.spark.code_archive import write_code_archive

ROOT = Path(__file__).parents[3]


def test_the_archive_has_all_code_and_the_files_of_conf(tmp_path: Path) -> None:
    archive = write_code_archive(tmp_path)
    code = {str(path.relative_to(ROOT)) for top in ("streaming", "udfs") for path in (ROOT / top).rglob("*.py")}
    conf = {f"streaming/{path.relative_to(ROOT)}" for path in (ROOT / "conf").rglob("*") if path.is_file()}
    assert code | conf <= set(zipfile.ZipFile(archive).namelist())


def test_an_archive_made_from_an_archive_is_the_same(tmp_path: Path) -> None:
    first = write_code_archive(tmp_path)
    program = (
        "import sys; from pathlib import Path; from streaming.spark.code_archive import write_code_archive\n"
        "print(write_code_archive(Path(sys.argv[1])).name)"
    )
    (tmp_path / "again").mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(tmp_path / "again")],
        cwd=tmp_path,
        env={"PYTHONPATH": str(first)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == first.name
    assert (tmp_path / "again" / first.name).read_bytes() == first.read_bytes()
