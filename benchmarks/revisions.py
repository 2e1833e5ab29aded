"""Millstream at another revision beside the working tree: ``python -m benchmarks revisions REVISION``.

Each query runs in a process of its own, of both trees in turn, over the same parquet files. A process runs
the query over small data first, so that start-up and compilation are not measured. The ratio is the median
time of the working tree divided by that of the other revision.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.engine import data
from benchmarks.engine.contract import ROOT, SIDES
from benchmarks.engine.running import FOREIGN
from benchmarks.report import environment

QUERIES = ("range", "rows", "sliding", "recovery", "double_bottom", "join")
SMALL = data.Shape(rows=100_000, keys=1000)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks revisions", description=__doc__)
    parser.add_argument("revision", help="a commit of this repository")
    parser.add_argument(
        "--rows", type=int, default=4_000_000, help="rows of each stream (default: 4 million)"
    )
    parser.add_argument("--keys", type=int, default=1000, help="keys (default: 1000)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each query and tree (default: 3)")
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=QUERIES, help="some of the queries")
    options = parser.parse_args(argv)
    print(environment(), flush=True)
    with tempfile.TemporaryDirectory(prefix="revision-") as name:
        other = Path(name) / "tree"
        git = ("git", "-C", str(ROOT))
        subprocess.run([*git, "worktree", "add", "--detach", "-q", other, options.revision], check=True)
        try:
            for query in options.only:
                _compare(query, {"before": other, "now": ROOT}, options)
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", other], check=True)
    return 0


def _compare(query: str, trees: dict[str, Path], options: argparse.Namespace) -> None:
    sides = SIDES.get(query, 1)
    shape = data.Shape(rows=options.rows, keys=options.keys)
    directories = data.make(shape, 2, sides), data.make(SMALL, 2, sides)
    seconds: dict[str, list[float]] = {name: [] for name in trees}
    for _ in range(options.repeats):
        for name, tree in trees.items():
            seconds[name].append(_run(query, tree, *directories))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    spread = "  ".join(f"{name} {min(times):.2f} - {max(times):.2f} s" for name, times in seconds.items())
    ratio = medians["now"] / medians["before"]
    rate = options.rows / medians["now"]
    print(f"  {query:<14} {ratio:5.2f}   {rate:10,.0f} rows/s   {spread}", flush=True)


def _run(query: str, tree: Path, large: Path, small: Path) -> float:
    """Return the seconds that a query takes in a tree."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{query}-"))
    paths = (tree, tree / "src")
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    own = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYSPARK_PYTHON": sys.executable}
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "benchmarks.engine.own.queries", f"--query={query}"),
                *("--data", large, "--warm-up", small, "--scratch", scratch),
            ],
            cwd=tree,
            env=kept | own | {"SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"rows"')]
    if done.returncode or not lines:
        raise SystemExit(f"{query} failed in {tree}:\n{done.stderr[-3000:]}")
    return float(json.loads(lines[-1])["seconds"])
