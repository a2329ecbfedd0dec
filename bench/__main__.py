"""Bench: runs the benchmarks that are named, or all: `python -m bench [job] [sink] ...`."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys

import bench


def main() -> int:
    """Run each benchmark's ``main`` in turn; a benchmark is a module of this package with one."""
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if module.name.endswith("_bench"))
    wanted = [f"{name.removesuffix('_bench')}_bench" for name in sys.argv[1:]] or names
    unknown = [name for name in wanted if name not in names]
    if unknown:
        sys.stderr.write(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(names)}\n")
        return 2
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for name in wanted:
        print(f"\n{name.removesuffix('_bench')}, load {os.getloadavg()[0]:.1f}")
        importlib.import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
